"""Random models: the sizes, the gap and the variance that were asked for, or an error with the attainable range."""

import re

import numpy as np
import pytest

import livarot
from livarot import envs
from tests.twins import envs as ref

SIZES = [
    {},
    {"n_states": 5, "n_actions": 2, "n_reachable": 5, "dim": 1, "horizon": 3, "param_bound": 0.5},
    {"n_states": 9, "n_actions": 4, "n_reachable": 2, "dim": 7, "horizon": 5, "param_bound": 4.0},
    {"n_states": 9, "n_reachable": 3, "persistent": True},
]


def table(mdp):
    problem = mdp.problem
    P = np.zeros((problem.horizon, problem.n_states, problem.n_actions, problem.n_states))
    for h, s, a in np.ndindex(*P.shape[:3]):
        P[h, s, a, problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
    return P


def smallest_gap(mdp):
    value, q = ref.solve_table(table(mdp), mdp.problem.reward, mdp.problem.horizon)
    gaps = value[:-1, :, None] - q
    return gaps[gaps > 1e-9].min()


def sigma(mdp):
    return ref.sigma_bar(table(mdp), mdp.problem.reward, mdp.problem.start)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes(sizes, shared):
    mdp = envs.random_mdp(**sizes, seed=5, shared_parameter=shared)
    problem = mdp.problem
    asked = {"n_states": 6, "n_actions": 3, "n_reachable": 3, "dim": 4, "horizon": 8, "param_bound": 2.0} | sizes
    for name in ("n_states", "n_actions", "dim", "horizon", "param_bound"):
        assert getattr(problem, name) == asked[name]
    assert (problem.rows.outcomes == asked["n_reachable"]).all()
    np.testing.assert_allclose(np.linalg.norm(mdp.theta, axis=1), asked["param_bound"], rtol=1e-14)
    assert len(mdp.theta) == (1 if shared else asked["horizon"])
    norms = problem.rows.norms().reshape(-1, asked["n_reachable"])
    np.testing.assert_array_equal(norms[:, 0], 0.0)  # the support state
    np.testing.assert_allclose(norms[:, 1:], 1.0, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gap", [1e-3, 0.1, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_gap_is_the_one_asked_for(sizes, gap, seed):
    assert smallest_gap(envs.random_mdp(**sizes, gap=gap, seed=seed)) == pytest.approx(gap, abs=1e-9)


@pytest.mark.parametrize("gap", [None, 0.05, 0.3])
@pytest.mark.parametrize("sizes", SIZES)
def test_sigma_bar_is_the_one_asked_for(sizes, gap):
    with pytest.raises(livarot.LivarotError, match="attainable range") as caught:
        envs.random_mdp(**sizes, gap=gap, sigma_bar=0.6, seed=2)
    largest = float(re.search(r"\[0, ([\d.e-]+)\]", str(caught.value)).group(1))
    assert caught.value.argument == "sigma_bar" and 0 < largest < 0.5 / np.sqrt(sizes.get("horizon", 8))
    for share in (0.0, 0.3, 0.999):
        mdp = envs.random_mdp(**sizes, gap=gap, sigma_bar=share * largest, seed=2)
        assert sigma(mdp) == pytest.approx(share * largest, abs=1e-9)
        if gap is not None:
            assert smallest_gap(mdp) == pytest.approx(gap, abs=1e-9)


def test_persistent_models_reach_larger_variances():
    plain, persistent = (envs.random_mdp(9, sigma_bar=None, seed=1, persistent=p) for p in (False, True))
    assert sigma(persistent) > 3 * sigma(plain)
    halves = table(persistent).sum(axis=(0, 2)) > 0
    assert not halves[1:5, 5:].any() and not halves[5:, :5].any() and halves[0, 1:5].any() and halves[0, 5:].any()


def test_seeds():
    one, same, other = (envs.random_mdp(seed=s) for s in (1, 1, 2))
    assert one.problem.same_as(same.problem) and one.theta.tobytes() == same.theta.tobytes()
    assert not one.problem.same_as(other.problem)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"n_states": 0}, "n_states"),
        ({"n_reachable": 7}, "n_reachable"),
        ({"n_reachable": 4, "persistent": True}, "n_reachable"),
        ({"dim": 0}, "dim"),
        ({"param_bound": -1.0}, "param_bound"),
        ({"gap": 0.0}, "gap"),
        ({"gap": 1.5}, "gap"),
        ({"gap": 0.1, "n_actions": 1}, "gap"),
        ({"sigma_bar": -0.1}, "sigma_bar"),
        ({"sigma_bar": float("nan")}, "sigma_bar"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input(options, argument):
    with pytest.raises(livarot.LivarotError) as caught:
        envs.random_mdp(**options)
    assert caught.value.argument == argument
