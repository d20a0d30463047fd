"""The oracle among a few models: run by run, against the sign oracle of the chain, and what it refuses."""

import itertools
import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.errors import LivarotError
from livarot.simulation.streams import stream
from livarot.theory import candidate_oracle, sign_oracle
from tests.support import field


def chains(horizon, gap):
    """The chain with every choice of signs."""
    mdp = envs.hard_chain(horizon, gap=gap)
    size = np.abs(mdp.theta)
    return [
        livarot.MNLMDP(mdp.problem, size * np.column_stack((x, np.ones(horizon))))
        for x in itertools.product((-1.0, 1.0), repeat=horizon)
    ]


def twin(models, n_episodes, seed):
    """One run, loop by loop."""
    problem, draws = models[0].problem, stream(seed, "candidate oracle")
    truth = models[draws.integers(len(models), size=1)[0]]
    optimum, total = problem.start @ livarot.solve(truth).value[0], 0.0
    weight, chosen = [0.0] * len(models), 0
    for _ in range(n_episodes):
        policy = livarot.solve(models[chosen]).policy
        total += abs(optimum - problem.start @ livarot.evaluate(truth, policy)[0])
        luck, s = draws.random((1, problem.horizon + 1))[0], 0
        while luck[0] >= problem.start[: s + 1].sum():
            s += 1
        for h in range(problem.horizon):
            a, u, k = int(policy[h, s]), luck[h + 1], 0
            law = truth.probabilities(h, s, a)
            while k < len(law) - 1 and u >= law[: k + 1].sum():
                k += 1
            for m, model in enumerate(models):
                weight[m] += math.log(model.probabilities(h, s, a)[k])
            s = int(problem.next_states(h, s, a)[k])
        chosen = next(m for m in range(len(models)) if weight[m] >= max(weight) - 1e-9)
    return total


def others(mdp, count):
    """Models of the same problem."""
    rng = np.random.default_rng(7)
    return [livarot.MNLMDP(mdp.problem, rng.normal(size=mdp.theta.shape) / 3) for _ in range(count)]


@pytest.mark.parametrize(
    "models",
    [chains(3, 0.1), others(field.ragged(), 4), others(envs.make("park-two-state"), 3)],
    ids=["chain", "ragged", "park"],
)
def test_as_the_twin(models):
    for seed in range(3):
        found = candidate_oracle(models, 25, n_runs=1, seed=seed)
        assert found.regret[0] == pytest.approx(twin(models, 25, seed), abs=1e-9)
        assert found.curve[-1] == pytest.approx(found.mean, abs=1e-12)


def test_all_signs_of_a_chain_are_the_sign_oracle():
    """Two programs and two streams of random numbers: the means agree within four standard errors."""
    whole, stagewise = candidate_oracle(chains(4, 0.1), 200, n_runs=400), sign_oracle(4, 200, 0.1, n_runs=400)
    assert abs(whole.mean - stagewise.mean) < 4 * math.hypot(whole.se, stagewise.se)


def test_costs_are_lost_upwards():
    def model(theta, sign):
        return livarot.MNLMDP.from_function(
            horizon=3,
            n_states=2,
            n_actions=2,
            features=lambda h, s, a: ([0, 1], [[1.0 - 2.0 * a], [0.0]]),
            theta=[theta],
            **{("cost" if sign < 0 else "reward"): lambda h, s, a: 5.0 * ((s == 1) == (sign < 0))},
        )

    paid, earned = (candidate_oracle([model(1.0, sign), model(-1.0, sign)], 40, n_runs=50) for sign in (-1, 1))
    assert paid.mean > 0
    np.testing.assert_allclose(paid.regret, earned.regret, atol=1e-9)


def test_runs_do_not_depend_on_each_other_in_the_first_episode():
    found = candidate_oracle(chains(3, 0.1), 1, n_runs=300)
    assert 0 < found.mean < found.regret.max()


def test_bad_n_episodes():
    with pytest.raises(LivarotError, match="n_episodes"):
        candidate_oracle(chains(3, 0.1), 10**15, n_runs=1)


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (chains(3, 0.1)[:1], "has 1 models"),
        ([envs.hard_chain(3, gap=0.1), envs.hard_chain(4, gap=0.1)], "another problem than model 0 .*first at index 1"),
        ([envs.hard_chain(3, gap=0.1), 5], "is no MNLMDP .*first at index 1"),
    ],
)
def test_bad_models(models, told):
    with pytest.raises(LivarotError, match=told):
        candidate_oracle(models, 10)
