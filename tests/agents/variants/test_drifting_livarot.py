"""LIVAROT that forgets: its Gram matrices, its limit without drift, and what it gains when the truth changes."""

import numpy as np
import pytest

import livarot
from livarot import LivarotError
from livarot.agents import DriftingLivarot, Livarot
from livarot.confidence.radii import livarot_radius
from livarot.envs import Drifting
from livarot.estimation.omd import ball, omd_update, whitened
from tests.support.episodes import play_agent
from tests.support.models import random_model, same_bits, to_mdp

CHAIN = livarot.envs.hard_chain(5, gap=0.15)
BLOCKS = to_mdp(random_model(np.random.default_rng(3), H=3, S=5, A=2, d=6, U=3, kind="block"))
SHARED = to_mdp(random_model(np.random.default_rng(4), H=3, S=4, A=2, d=3, U=3, one_table=True), shared=True)


def flipping(n_pieces, every):
    """The chain whose good actions become the bad ones, again and again; the gap stays."""
    flipped = CHAIN.theta * [-1.0, 1.0]
    thetas = np.stack([flipped if i % 2 else CHAIN.theta for i in range(n_pieces)])
    return Drifting(CHAIN.problem, thetas, every * np.arange(n_pieces))


@pytest.mark.parametrize("mdp", [CHAIN, BLOCKS, SHARED], ids=["chain", "blocks", "shared"])
def test_nothing_forgotten_is_livarot(mdp):
    still = livarot.run(mdp, DriftingLivarot(1.0, step_size=3.0, reg=2.0, beta_scale=0.1), 60, seed=range(3))
    plain = livarot.run(mdp, Livarot(step_size=3.0, reg=2.0, beta_scale=0.1), 60, seed=range(3))
    for name, column in plain.columns.items():
        assert same_bits(column.filled(0.0), still.columns[name].filled(0.0)), name


@pytest.mark.parametrize("mdp", [CHAIN, BLOCKS, SHARED], ids=["chain", "blocks", "shared"])
def test_the_gram_matrix_fades_to_reg(mdp):
    agent, problem = DriftingLivarot(0.9, reg=2.0), mdp.problem
    log, _ = play_agent(mdp, agent, 30)
    for t in range(30):
        old, new = log["states"][t].estimate, log["states"][t + 1].estimate
        dense = 0.9 * problem.rows.unpack(old.gram) + 0.1 * 2.0 * np.eye(problem.dim)
        faded = whitened(problem, old.theta, problem.rows.pack(dense))
        step = omd_update(problem, faded, log["episodes"][t], agent.step_size, ball(problem, problem.param_bound, 1))
        np.testing.assert_allclose(new.theta, step.theta, rtol=0, atol=1e-12)
        np.testing.assert_allclose(new.gram, step.gram, rtol=1e-12)
        inverse = np.linalg.inv(problem.rows.unpack(new.gram))
        w = problem.rows.unpack(new.whiten)
        np.testing.assert_allclose(w.swapaxes(-1, -2) @ w, inverse, rtol=0, atol=1e-12)
        # what a memory of 10 episodes can hold: reg and 10 Hessians of trace 1 (times H if all stages share theta)
        trace = np.trace(problem.rows.unpack(new.gram), axis1=-2, axis2=-1)
        assert trace.max() <= 2.0 * problem.dim + 10 * (problem.horizon if problem.shared_parameter else 1)


def test_radius_counts_what_has_weight():
    problem = CHAIN.problem
    sizes = (problem.dim, problem.horizon, problem.param_bound, 3.0, 0.05)
    agent = DriftingLivarot(0.9, beta_scale=1.0)
    assert agent.radius(problem, 30) == livarot_radius(9, *sizes)  # (1 - .9^30)/.1 = 9.58
    assert DriftingLivarot(1.0, restart_every=7, beta_scale=1.0).radius(problem, 17) == livarot_radius(3, *sizes)


def test_restarts_begin_afresh():
    agent = DriftingLivarot(1.0, restart_every=7)
    log, _ = play_agent(CHAIN, agent, 15)
    begin = agent.init(CHAIN.problem)
    for t, state in enumerate(log["states"]):
        assert same_bits(tuple(state.estimate), tuple(begin.estimate)) == (t % 7 == 0)


def test_a_change_costs_less_than_stationary_livarot():
    """The chain turns round after 500 of 1000 episodes; regret after the change, 12 seeds."""
    after = []
    for agent in (Livarot(), DriftingLivarot(), DriftingLivarot(1.0, restart_every=250, beta_scale=0.05)):
        regret = livarot.run(flipping(2, 500), agent, 1000, seed=range(12)).regret
        after.append(regret[:, 500:].sum(axis=1))
        assert regret[:, 400:500].mean() < 0.15  # it had learned the first model (uniform: 0.66)
    plain, fading, restarting = after
    assert fading.mean() < 0.5 * plain.mean() and restarting.mean() < 0.5 * plain.mean()


@pytest.mark.statistical
def test_many_changes_and_slow_ones():
    """40 seeds, T = 2000, three changes (or one slow turn): half the regret of stationary LIVAROT, or less."""
    slow = Drifting.rotation(CHAIN, 2000, angle=1.5, every=20)
    for truth in (flipping(4, 500), slow):
        plain, fading = (
            livarot.run(truth, agent, 2000, seed=range(40)).cumulative_regret[:, -1]
            for agent in (Livarot(), DriftingLivarot())
        )
        assert fading.mean() < 0.5 * plain.mean()


def test_bad_settings():
    for discount in (0.0, 1.1, float("nan")):
        with pytest.raises(LivarotError, match="discount"):
            DriftingLivarot(discount)
    with pytest.raises(LivarotError, match="restart_every"):
        DriftingLivarot(restart_every=0)
