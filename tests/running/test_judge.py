"""The judge's numbers: exact regret, realised regret, sigma_bar of the optimal policy."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import Livarot, Oracle, Uniform
from tests.support.episodes import play_agent
from tests.support.models import to_model
from tests.support.runs import LEARNERS, RAGGED, RIVER, ids
from tests.twins import core as ref


@pytest.mark.parametrize("agent", LEARNERS, ids=ids)
def test_regret_is_that_of_the_policy_played(agent):
    """Episode by episode: V* - V^pi by evaluation, realised regret and variance along the trajectory."""
    for mdp in (RIVER, RAGGED):
        log, _ = play_agent(mdp, agent, 10, seed=7)
        result = livarot.run(mdp, agent, 10, seed=7)
        best, start = livarot.solve(mdp), mdp.problem.start
        model = to_model(mdp)
        exact = ref.solve(model["rows"], model["theta"], model["reward"])
        for t in range(10):
            plan, episode = log["plans"][t], log["episodes"][t]
            value = livarot.evaluate(mdp, plan.policy[0])[0]
            assert result.regret[0, t] == pytest.approx(start @ (best.value[0] - value), abs=1e-12)
            states, actions = episode.states[0], episode.actions[0]
            earned = sum(mdp.problem.reward[h, states[h], actions[h]] for h in range(mdp.problem.horizon))
            assert result.realised_regret[0, t] == pytest.approx(best.value[0, states[0]] - earned, abs=1e-12)
            assert result.variance[0, t] == pytest.approx(ref.episode_variance(exact, states), abs=1e-13)
            if plan.start_value is not None:
                assert result.optimism_gap[0, t] == pytest.approx(
                    plan.start_value[0] - start @ best.value[0], abs=1e-12
                )
            if plan.upper is not None:
                assert result.optimism_loss[0, t] == pytest.approx(plan.upper[0] - plan.start_value[0], abs=1e-12)
            if plan.radius is not None:
                gram = mdp.problem.rows.unpack(plan.gram[0])
                away = max(ref.norm_in(mdp.theta[k] - plan.center[0, k], gram[k]) for k in range(len(mdp.theta)))
                assert bool(result.covered[0, t]) == (away <= plan.radius[0])
        states = [episode.states[0] for episode in log["episodes"]]
        sigma = ref.sigma_bar_trajectory(model["rows"], model["theta"], model["reward"], states)
        assert result.sigma_bar[0] == pytest.approx(sigma, abs=1e-13)


def test_realised_regret_averages_to_the_exact_one():
    """Over 300 seeds x 20 episodes, within four standard errors; and with a start distribution."""
    for mdp in (envs.hard_chain(5, gap=0.2, seed=1), RAGGED):
        for agent in (Uniform(), Livarot()):
            result = livarot.run(mdp, agent, 20, seed=range(300))
            noise = (result.realised_regret - result.regret).mean(axis=1)
            assert abs(noise.mean()) < 4 * noise.std(ddof=1) / np.sqrt(300)


def test_sigma_bar_of_the_optimal_policy():
    """The mean of its square is the exact one of the twin."""
    model = to_model(RAGGED)
    exact = ref.sigma_bar_optimal(model["rows"], model["theta"], model["reward"], model["start"])
    result = livarot.run(RAGGED, Oracle(livarot.solve(RAGGED).policy), 500, seed=range(8))
    squares = result.variance.reshape(-1)
    assert abs(squares.mean() - exact**2) < 4 * squares.std() / np.sqrt(len(squares))
    assert np.all(result.sigma_bar <= 1 / (2 * np.sqrt(3)))
