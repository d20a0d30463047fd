"""sigma_bar: trajectories, the optimal policy's own states, the hard chain in closed form, and its limits attained."""

import math

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, agents, envs
from livarot.errors import LivarotError
from livarot.model.probabilities import transition_kernel
from livarot.theory import variance as var
from tests.support.models import random_model, to_mdp
from tests.twins import core as ref
from tests.twins import theory as twin


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
@pytest.mark.parametrize("seed", range(3))
def test_against_the_twins(kind, seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, H=4, S=5, A=3, d=4, U=4, kind=kind, offsets=True, scale=2.0)
    mdp = to_mdp(model)
    arguments = model["rows"], model["theta"], model["reward"]
    assert var.sigma_bar_star(mdp) == pytest.approx(ref.sigma_bar_optimal(*arguments, model["start"]), abs=1e-13)
    episodes = livarot.simulate(mdp, np.full((4, 5, 3), 1 / 3), 20, seed=seed)
    exact = ref.sigma_bar_trajectory(*arguments, episodes.states)
    assert var.sigma_bar(mdp, episodes) == pytest.approx(exact, abs=1e-13)
    assert var.sigma_bar(mdp, episodes.states) == var.sigma_bar(mdp, episodes.states[:, :4]) == pytest.approx(exact)
    parts = [livarot.Episodes(*(part[k : k + 10] for part in episodes)) for k in (0, 10)]
    assert var.sigma_bar(mdp, parts) == pytest.approx(exact, abs=1e-13)


def test_the_judge_adds_up_the_same_thing():
    mdp = envs.river_swim(4, 8)
    run = livarot.run(mdp, agents.Uniform(), 40, seed=3)
    episodes = livarot.simulate(mdp, np.full((8, 4, 2), 0.5), 40, seed=3)
    increments = var.episode_variance(livarot.solve(mdp).variance, episodes.states)
    np.testing.assert_allclose(run.variance[0], increments, rtol=0, atol=1e-15)
    assert var.sigma_bar(mdp, episodes) == pytest.approx(float(run.sigma_bar[0]), abs=1e-14)


def test_the_star_is_the_mean_over_trajectories():
    mdp = envs.river_swim(4, 8)
    best = livarot.solve(mdp)
    episodes = livarot.simulate(mdp, best.policy, 20_000, seed=0)
    increments = var.episode_variance(best.variance, episodes.states)
    error = increments.std() / math.sqrt(len(increments))
    assert abs(increments.mean() - var.sigma_bar_star(mdp) ** 2) < 4 * error
    profile = var.stage_variance(mdp, best, transition_kernel(mdp))
    assert profile.mean() == pytest.approx(var.sigma_bar_star(mdp) ** 2, abs=1e-15)
    assert profile[-1] == 0.0


# ---------------------------------------------------------------- the hard chain
@pytest.mark.parametrize(("H", "d", "gap"), [(2, 2, 0.1), (5, 2, None), (10, 2, 0.2), (10, 3, 0.05), (40, 4, None)])
def test_the_hard_chain_in_closed_form(H, d, gap):
    mdp = envs.hard_chain(H, 1000, dim=d, gap=gap, seed=1)
    p = 1 / H + (d - 1) * (envs.paper_gap(H, 1000) if gap is None else gap)
    assert var.sigma_bar_star(mdp) == pytest.approx(var.hard_chain_sigma_bar(H, p), abs=1e-12)
    assert var.hard_chain_sigma_bar(H, p) == pytest.approx(twin.hard_chain_sigma_bar(H, p), abs=1e-12)
    never = np.append(np.arange(H), H)[None, :]
    assert var.sigma_bar(mdp, never) == pytest.approx(var.hard_chain_sigma_bar(H, p, never_falls=True), abs=1e-12)
    spread = var.hard_chain_variance(H, p)
    np.testing.assert_allclose(livarot.solve(mdp).variance[np.arange(H), np.arange(H)] / H**2, spread, atol=1e-12)
    assert np.all(spread <= p + 1e-15)  # Eq. (lower bound 1)


def test_sigma_bar_of_the_chain_is_of_order_one_over_root_h():
    """H sigma_bar^2 tends to a constant at p = 1/H, and stays below the paper's 2."""
    sizes = [10, 100, 1000, 10_000]
    under = [H * var.hard_chain_sigma_bar(H, 1 / H) ** 2 for H in sizes]
    never = [H * var.hard_chain_sigma_bar(H, 1 / H, never_falls=True) ** 2 for H in sizes]
    e = math.e
    assert under[-1] == pytest.approx(1 - 2 / e - 1 / e**2, rel=1e-3)  # integral of e^-x (1 - e^{x-1})^2
    assert never[-1] == pytest.approx(2 / e - 0.5 - 1 / (2 * e**2), rel=1e-3)  # without e^-x
    assert max(never) < 2 and min(under) > 0.1


def test_tiny_probabilities_do_not_cancel():
    """p -> 0: (1 - q^n) = n p, so the sum is p sum_h (H - h)^2 / H^3."""
    H, p = 50, 1e-13
    exact = p * sum((H - h) ** 2 for h in range(1, H + 1)) / H**3
    assert var.hard_chain_sigma_bar(H, p) ** 2 == pytest.approx(exact, rel=1e-10)


# ---------------------------------------------------------------- the limits are attained
def coin(H, waits):
    """State 0 tosses a fair coin between 1 for ever (state 1) and 0 for ever (state 2); or one ``waits``."""

    def features(h, s, a):
        return ([s], [[0.0]]) if s or a else ([1, 2], [[0.0], [0.0]])

    reward = np.zeros((3, 2 if waits else 1))
    reward[1] = 1.0
    return MNLMDP.from_function(H, 3, 2 if waits else 1, features=features, reward=reward, theta=[0.0])


@pytest.mark.parametrize("H", [1, 2, 3, 10, 40])
def test_the_limits_are_attained(H):
    assert var.sigma_bar_star(coin(H, False)) == pytest.approx(var.sigma_bar_star_limit(H), abs=1e-14)
    waiting = np.zeros((1, H + 1), dtype=int)
    assert var.sigma_bar(coin(H, True), waiting) == pytest.approx(var.sigma_bar_limit(H), abs=1e-14)
    assert var.sigma_bar_limit(H) < 1 / (2 * math.sqrt(3))
    assert var.sigma_bar_star_limit(H) ** 2 < 1 / (4 * H)


def test_with_one_stage_nothing_varies():
    """E25: V*_2 = 0."""
    mdp = to_mdp(random_model(np.random.default_rng(0), H=1, S=4, A=2, d=3, U=3))
    assert var.sigma_bar_star(mdp) == 0.0 == var.sigma_bar_limit(1)


@pytest.mark.parametrize(
    "states", [[[0.0, 1.0]], [[0, 1]], [[0, 9, 0, 0, 0, 0]], [[-1, 0, 0, 0, 0, 0]], np.zeros((0, 6), dtype=int)]
)
def test_bad_trajectories(states):
    with pytest.raises(LivarotError) as error:
        var.sigma_bar(envs.hard_chain(5, gap=0.1), states)
    assert error.value.argument == "episodes"


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_bad_probabilities(p):
    with pytest.raises(LivarotError):
        var.hard_chain_sigma_bar(5, p)
