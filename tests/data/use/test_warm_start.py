"""Agents that start from a fit: the right numbers in the right units, the contract, and less regret."""

import numpy as np
import pytest

import livarot
from livarot import agents
from livarot.data import DataWarning, warm_start
from livarot.data.fitting.likelihood import derivatives
from livarot.running.check_agent import agent_checks
from tests.support.machine_logs import PAYS, fitted

OMD = [
    agents.Livarot(),
    agents.CertaintyEquivalent(),
    agents.ThompsonLivarot(),
    agents.BonusLivarot(),
    agents.UCRLMNLOL(),
    agents.UCRLMNLPlus(),
    agents.ORRLMNL(),
    agents.DriftingLivarot(),
]


def model(fit, horizon=5):
    return fit.to_mdp(PAYS, horizon, "new", param_bound=6.0, terminal="broken")


@pytest.mark.parametrize("agent", OMD, ids=lambda agent: agent.name)
def test_every_omd_agent_starts_there_and_learns_on(agent):
    fit = fitted(400)
    mdp = model(fit)
    problem = mdp.problem
    started = warm_start(agent, problem, fit)
    state = started.init(problem, 3)
    scale = problem.feature_scale
    hessian = derivatives(fit.choices_, fit.theta_).hessian / scale**2
    cold = agent.init(problem, 3).estimate
    assert state.estimate.theta == pytest.approx(np.tile(fit.theta_ * scale, (3, 1, 1)), rel=1e-14)
    gram = problem.rows.unpack(state.estimate.gram - cold.gram)
    assert gram == pytest.approx(np.tile(hessian, (3, 1, 1, 1)), rel=1e-9)
    result = livarot.run(mdp, started, 5, seed=range(2))
    assert result.agent == "warm-started"
    assert np.isfinite(result.regret).all()


@pytest.mark.parametrize("rule", [name for name, _ in agent_checks(agents.Uniform())])
def test_the_contract(rule):
    fit = fitted(200)
    mdp = model(fit, 4)
    started = warm_start(agents.Livarot(), mdp.problem, fit)
    dict(agent_checks(started, env=mdp))[rule]()


def test_weights_and_stages():
    fit = fitted(400)
    problem = model(fit).problem
    whole, half = (warm_start(agents.Livarot(), problem, fit, weight=w).gram for w in (1.0, 0.5))
    assert whole == pytest.approx(2.0 * half, rel=1e-12)
    own = fitted(400, homogeneous=False, stage="week")
    staged = own.to_mdp(PAYS, start="new", param_bound=6.0, terminal="broken").problem
    started = warm_start(agents.Livarot(), staged, own)
    assert started.theta == pytest.approx(own.theta_ * staged.feature_scale, rel=1e-14)
    shared = warm_start(agents.Livarot(), staged, fit)  # one theta for all: every stage has its share
    assert shared.theta == pytest.approx(np.tile(fit.theta_ * staged.feature_scale, (3, 1)), rel=1e-14)
    assert 3.0 * shared.gram[0] == pytest.approx(whole[0], rel=1e-9)


def test_refusals():
    fit = fitted(200)
    problem = model(fit).problem
    for agent in (agents.Uniform(), agents.UCRLMNL(), agents.ONSUCRLMNL(), agents.RRLMNL()):
        with pytest.raises(livarot.LivarotError, match="keeps no OMD estimate"):
            warm_start(agent, problem, fit)
    with pytest.raises(livarot.LivarotError, match="wraps another agent"):
        warm_start(agents.RareSwitching(), problem, fit)
    with pytest.raises(livarot.LivarotError, match="weight: 2"):
        warm_start(agents.Livarot(), problem, fit, weight=2.0)
    with pytest.raises(livarot.LivarotError, match="has 8 features, the fit 2"):
        warm_start(agents.Livarot(), livarot.envs.machine_maintenance(4).problem, fit)
    small = fitted(50, reg=100.0).to_mdp(PAYS, 3, "new", terminal="broken").problem
    with pytest.raises(livarot.LivarotError, match="raise param_bound"):
        warm_start(agents.Livarot(), small, fit)
    with pytest.warns(DataWarning, match="edge of the problem's ball"):
        warm_start(agents.Livarot(), fit.to_mdp(PAYS, 3, "new", terminal="broken").problem, fit)
    with pytest.raises(livarot.LivarotError, match="is not the one this start was made for"):
        warm_start(agents.Livarot(), problem, fit).init(livarot.envs.machine_maintenance(4).problem)


def test_inside_rare_switching():
    fit = fitted(200)
    mdp = model(fit)
    lazy = agents.RareSwitching(warm_start(agents.Livarot(), mdp.problem, fit))
    assert np.isfinite(livarot.run(mdp, lazy, 5, seed=range(2)).regret).all()


def test_less_regret_than_from_zero():
    """Machine maintenance with the example's log: every one of five seeds is better off (see benchmarks)."""
    from benchmarks.warm_start import study, table

    rows = {row["side"]: row for row in table(study(5, 60, machines=(40,)))}
    assert rows["warm 40"]["seeds_better"] == 5
    assert rows["warm 40"]["less_than_cold"] > 5 * rows["warm 40"]["less_se"]


def test_its_arrays_are_not_shown():
    fit = fitted(100)
    started = warm_start(agents.Livarot(), model(fit).problem, fit)
    assert repr(started).startswith("WarmStarted(agent=Livarot(") and "array" not in repr(started)
    page = started._repr_html_()
    assert started.start in page and "<th" in page and f"({len(started.theta)}, " in page
