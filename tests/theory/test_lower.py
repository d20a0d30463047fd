"""The lower bound: the twin, its rate, and learners that obey it."""

import math

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, agents, envs
from livarot.errors import LivarotError
from livarot.theory import TheoryWarning
from livarot.theory.lower import chain_lower_bound, lower_bound
from livarot.theory.variance import sigma_bar_star
from tests.support.theory import constants
from tests.twins import theory as twin


@pytest.mark.parametrize(
    ("H", "d", "T", "gap"), [(3, 2, 100, 0.02), (10, 3, 300, None), (6, 5, 200, 0.005), (2, 2, 9, 0.1)]
)
def test_lower_bound_against_the_twin(H, d, T, gap):
    """The closed form of the sum over episodes is below the sum, and close to it."""
    step = envs.paper_gap(H, T) if gap is None else gap
    found = chain_lower_bound(H, d, T, gap=gap)
    exact = twin.chain_lower_bound(H, d, T, step)
    assert 0.8 * exact < found.value <= exact * (1 + 1e-12)
    mdp = envs.hard_chain(H, T, dim=d, gap=gap, param_bound="tight")
    assert found.param_bound == pytest.approx(mdp.problem.param_bound, rel=1e-12)
    assert found.sigma_bar == pytest.approx(sigma_bar_star(mdp), abs=1e-12)
    assert found.gap == pytest.approx(step)


def uniform_regret(H, d, T, gap=None):
    mdp = envs.hard_chain(H, T, dim=d, gap=gap)
    A = 2 ** (d - 1)
    return T * (livarot.solve(mdp).value[0, 0] - livarot.evaluate(mdp, np.full((H, H + 2, A), 1 / A))[0, 0])


@pytest.mark.parametrize(("H", "d", "T"), [(3, 2, 1000), (5, 2, 1000), (10, 2, 1000), (30, 2, 1000), (10, 4, 5000)])
def test_at_the_paper_s_gap_no_learner_is_much_better_than_chance(H, d, T):
    """The uniform policy's regret is the same for all signs; every learner's mean is at least 86 % of it (E35)."""
    found, uniform = chain_lower_bound(H, d, T), uniform_regret(H, d, T)
    assert 0.85 * uniform < found.value < uniform
    best = chain_lower_bound(H, d, T, gap="best")
    assert best.value > 2 * found.value and 3 < best.gap / found.gap < 6
    for factor in (0.8, 1.25):
        assert chain_lower_bound(H, d, T, gap=factor * best.gap).value < best.value
    assert best.value < uniform_regret(H, d, T, best.gap)


def test_the_rate_of_the_lower_bound():
    """value / (d H^{3/2} sqrt T) is a constant: 0.02 at the paper's gap with d = 2, over four times 1/(160 sqrt 2)."""
    found = [chain_lower_bound(H, 2, T).constant for H, T in ((10, 1000), (30, 1000), (100, 10**5), (300, 10**7))]
    assert np.ptp(found) < 0.001 and 4 / (160 * math.sqrt(2)) < min(found) < 0.021
    assert chain_lower_bound(10, 6, 10**5).constant > found[0]  # (d-1)/d


def test_the_lower_bound_holds_for_a_learner_who_knows_all_but_the_signs():
    """A greedy Bayesian on 2000 random chains: at the paper's gap within 10 % of the bound, elsewhere above it."""
    rng = np.random.default_rng(0)
    mean, error = twin.greedy_bayes_regret(5, 500, envs.paper_gap(5, 500), 2000, rng)
    bound = chain_lower_bound(5, 2, 500).value
    assert bound - 3 * error < mean < 1.1 * bound
    mean, error = twin.greedy_bayes_regret(4, 200, 0.06, 1000, rng)
    assert chain_lower_bound(4, 2, 200, gap=0.06).value < mean - 3 * error


@pytest.mark.statistical
def test_the_lower_bound_holds_for_our_agents():
    """Mean regret over 60 random sign vectors, d = 2, H = 5, T = 300: not below the bound by more than 3 errors."""
    models = [envs.hard_chain(5, 300, seed=k) for k in range(60)]
    bound = chain_lower_bound(5, 2, 300).value
    for agent in (agents.Livarot(), agents.UCRLMNLOL()):
        regret = livarot.run(models, agent, 300, seed=list(range(60))).cumulative_regret[:, -1]
        assert regret.mean() > bound - 3 * regret.std() / math.sqrt(60)


def test_bad_gaps():
    for gap in (0.0, 0.9, -1.0, math.nan):
        with pytest.raises(LivarotError):
            chain_lower_bound(10, 2, 100, gap=gap)


def test_without_a_chain_the_lower_bound_is_zero():
    with pytest.warns(TheoryWarning):
        assert lower_bound(constants(d=1), 1000).value == 0.0
    one = MNLMDP.from_function(1, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0, 0.0], [1.0, 0.0]]),
                               reward=np.zeros((2, 1)), theta=[1.0, 0.0])  # fmt: skip
    with pytest.warns(TheoryWarning):
        assert lower_bound(one, 1000).value == 0.0
