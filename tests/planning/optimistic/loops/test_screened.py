"""Plans that solve only pairs that can be best have the numbers of solving all pairs, whatever their shapes."""

import numpy as np
import pytest

import livarot
from livarot.estimation.omd import whitened
from livarot.model.episodes import Estimate
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import (
    FrankWolfe,
    JointMaximum,
    PlugIn,
    SecondOrderBonus,
    ShiftedPower,
    VarianceBonus,
)
from tests.support.rivals import both, estimate, known, model, rivals

SHARP = JointMaximum(ShiftedPower(tol=1e-13, max_iter=3000))


@pytest.mark.parametrize("scale", [0.3, 30.0, 3e4])
def test_it_gives_the_numbers_of_solving_all_pairs(scale):
    for seed, options in enumerate(({}, {"dense": True, "dependent": False}, {"dim": 7}, {"start": 0, "n_states": 9})):
        problem = model(seed, **options).problem
        general, special = both(problem, estimate(problem, seed, scale=scale), np.array([0.7, 1.9]), SHARP)
        assert special.value == pytest.approx(general.value, abs=1e-12)
        assert np.array_equal(special.policy, general.policy)
        assert special.start_value == pytest.approx(general.start_value, abs=1e-12)
        # a pair is left out of the second recursion by a bound that may be smaller than its own certified one
        assert np.all(special.upper <= general.upper + 1e-12)
        assert np.all(special.upper >= special.start_value)
        assert (special.inner_gap <= general.inner_gap + 1e-12).all()  # of the pairs that were solved only


@pytest.mark.parametrize("scale", [0.3, 30.0, 3e4])
def test_the_variance_bonus_is_that_of_all_pairs(scale):
    """In wide sets, where it is max V for most pairs, and in narrow ones; it is not exact for two outcomes."""
    for seed, options in enumerate(({}, {"dense": True, "dependent": False}, {"dim": 7}, {"start": 0, "n_states": 9})):
        problem = model(seed, **options).problem
        for radius in (np.array([0.07, 0.4]), np.array([0.7, 1.9])):
            general, special = both(problem, estimate(problem, seed, scale=scale), radius, VarianceBonus())
            assert special.value == pytest.approx(general.value, abs=1e-12)
            assert np.array_equal(special.policy, general.policy)
            assert special.upper == pytest.approx(general.upper, abs=1e-12)
            assert np.array_equal(special.start_value, special.upper)


@pytest.mark.parametrize("stages", ["one parameter", "one each", "other features"])
def test_stages_may_share_what_is_kept_or_not(stages):
    mdp = model(1, horizon=5)
    rng = np.random.default_rng(4)
    tables = [model(1 + (stages == "other features") * h) for h in range(5)]

    def rows(h, s, a):
        return tables[h].problem.next_states(0, s, a), tables[h].problem.features(0, s, a)

    theta = rng.standard_normal((5, 4) if stages != "one parameter" else 4)
    problem = livarot.MNLMDP.from_function(
        5, 14, 5, features=rows, reward=mdp.problem.reward, theta=theta, start=np.full(14, 1 / 14)
    ).problem
    n = problem.n_parameters
    root = rng.standard_normal((2, n, 4, 4))
    gram = problem.rows.pack(root @ root.swapaxes(2, 3) + 0.1 * np.eye(4))
    guess = whitened(problem, rng.standard_normal((2, n, 4)), gram)
    general, special = both(problem, guess, np.array([0.2, 1.0]), SHARP)
    assert special.value == pytest.approx(general.value, abs=1e-12)
    assert np.array_equal(special.policy, general.policy)


def test_two_outcomes_only():
    rng = np.random.default_rng(3)
    phi = rng.standard_normal((6, 3, 2, 3)) / 4.0
    nexts = np.stack([np.stack([rng.choice(6, 2, replace=False) for _ in range(3)]) for _ in range(6)])
    mdp = livarot.MNLMDP.from_function(
        7,
        6,
        3,
        features=lambda h, s, a: (nexts[s, a], phi[s, a]),
        reward=rng.random((6, 3)),
        theta=rng.standard_normal(3),
    )
    general, special = both(mdp.problem, estimate(mdp.problem), 0.8, JointMaximum())
    assert special.value == pytest.approx(general.value, abs=1e-13)
    assert np.array_equal(special.policy, general.policy)


def test_when_it_is_used():
    problem = model().problem
    guess = estimate(problem, replicas=1)
    assert optimistic_plan(problem, guess, 0.5).engine == "screened"
    assert optimistic_plan(problem, guess, 0.5, JointMaximum(FrankWolfe())).engine == "pairs"  # it does not climb
    for rule in (VarianceBonus(), PlugIn(), SecondOrderBonus()):
        assert optimistic_plan(problem, guess, 0.5, rule).engine == "pairs"
        assert optimistic_plan(problem, estimate(problem, replicas=8), 0.5, rule).engine == "replicas"
    assert optimistic_plan(problem, estimate(problem, replicas=9), 0.5).engine == "screened"
    large = model(n_states=100, n_actions=8, horizon=3).problem
    assert optimistic_plan(large, estimate(large, replicas=9), 0.5, VarianceBonus()).engine == "screened"
    assert optimistic_plan(large, estimate(large, replicas=9), 0.5, PlugIn()).engine == "replicas"
    chain = livarot.envs.hard_chain(6, gap=0.1).problem  # two outcomes
    guess = livarot.agents.Livarot().init(chain).estimate
    assert optimistic_plan(chain, guess, 0.5).engine == "pairs"


def test_replicas_do_not_depend_on_each_other():
    problem = model(2).problem
    guess = estimate(problem, replicas=3)
    together = optimistic_plan(problem, guess, np.array([0.3, 0.9, 2.0]))
    for r, radius in enumerate((0.3, 0.9, 2.0)):
        alone = optimistic_plan(problem, Estimate(*(part[r : r + 1] for part in guess)), radius)
        assert np.array_equal(alone.value[0], together.value[r])
        assert np.array_equal(alone.policy[0], together.policy[r])


# ---------------------------------------------------------------- which pairs may be left out


def test_actions_tie_within_a_relative_tolerance():
    """The first action within 1e-9 (1 + |Q|) of the best, Q = 1/2 here: a rival must be worth 1.5e-9 more."""
    for more, action in ((-1e-8, 0), (0.0, 0), (1.4e-9, 0), (1.6e-9, 1), (1e-8, 1)):
        for made in rivals([known(0.5), (np.full(3, 0.5 + more), [[-1.0], [0.0], [1.0]], np.zeros(3), 0.0)], 0.3):
            assert made.policy[0, 0, 0] == action
            assert made.start_value[0] == pytest.approx(0.5 + max(more, 0.0), abs=1e-15)
