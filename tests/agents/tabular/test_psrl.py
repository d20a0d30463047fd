"""PSRL: plans are optimal for draws of the replica's own stream, and the draws are Dirichlet."""

import numpy as np
import pytest

import livarot
from livarot import LivarotError
from livarot.agents import PSRL
from livarot.agents.tabular.psrl import PSRLState
from livarot.model.tabular_view import laws_of
from livarot.simulation.streams import AgentRandom
from tests.support.episodes import play_agent
from tests.support.tabular import MODELS, assert_same_plan, dense_counts, follow_of, law_of
from tests.twins import tabular as ref


@pytest.mark.parametrize("agent", [PSRL(), PSRL(alpha0=None), PSRL(0.3, known_support=False)], ids=repr)
@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_every_plan_is_optimal_for_its_draw(mdp, agent):
    laws = laws_of(mdp.problem, agent.known_support)
    log, _ = play_agent(mdp, agent, 6, seed=9)
    alpha0 = 1 / mdp.problem.n_states if agent.alpha0 is None else agent.alpha0
    for t in range(6):
        draws = AgentRandom([9], t).generators[0].standard_gamma(log["states"][t].counts[0] + alpha0)
        weights = dense_counts(mdp, laws, draws)
        twin = ref.sampled_plan(follow_of(mdp, agent.known_support), law_of(mdp), mdp.problem.reward, weights)
        assert_same_plan(mdp, log["plans"][t], twin, agent.known_support)


def test_the_draws_have_the_moments_of_a_dirichlet():
    """One decision, rewards behind it: the planned value of a replica is one draw of p.v."""
    n, replicas = np.array([4, 1, 0]), 6000
    values = np.array([0.1, 0.9, 0.4])
    mdp = livarot.MNLMDP.from_function(
        2, 4, 1,
        features=lambda h, s, a: ([1, 2, 3], np.eye(3)) if s == 0 else ([s], np.zeros((1, 3))),
        reward=lambda h, s, a: 0.0 if s == 0 else float(values[s - 1]) * (h == 1),
        theta=[[0.0, 0.0, 0.0]] * 2, param_bound=1.0,
    )  # fmt: skip
    counts = np.zeros((replicas, len(laws_of(mdp.problem).next_state)), dtype=np.int64)
    counts[:, :3] = n
    drawn = PSRL(0.5).plan(mdp.problem, PSRLState(counts), AgentRandom(range(replicas))).start_value
    alpha = n + 0.5
    p = alpha / alpha.sum()
    mean = p @ values
    variance = (p @ values**2 - mean**2) / (alpha.sum() + 1)
    assert drawn.mean() == pytest.approx(mean, abs=5 * (variance / replicas) ** 0.5)
    assert drawn.var() == pytest.approx(variance, rel=0.15)  # its relative error is about sqrt(2/6000) = 2 %


def test_it_learns():
    mdp = livarot.envs.hard_chain(4, gap=0.2)
    regret = livarot.run(mdp, PSRL(), 600, seed=range(6)).regret
    uniform = livarot.run(mdp, livarot.agents.Uniform(), 1).regret[0, 0]
    assert regret[:, :10].mean() > 0.2 * uniform  # at first it does not know
    assert regret[:, -100:].mean() < 0.1 * uniform


def test_bad_settings():
    with pytest.raises(LivarotError, match="alpha0"):
        PSRL(0.0)
