"""Audits: numbers of a result made by hand, of runs, stored and not, and the coverage that the theory promises."""

import dataclasses
import json
import warnings

import numpy as np
import pytest

import livarot
from livarot import LivarotError, envs
from livarot.agents import UCRLMNLOL, CertaintyEquivalent, Livarot, Oracle, Uniform
from livarot.running.result import RunResult
from livarot.theory.audits.auditing import audit
from livarot.theory.bound_terms import TERMS
from livarot.theory.bounds import regret_bound
from livarot.theory.constants import TheoryWarning
from livarot.theory.lower import lower_bound
from livarot.theory.variance import sigma_bar_star
from tests.support.audits import by_hand
from tests.support.models import random_model, to_mdp

CHAIN = envs.hard_chain(4, gap=0.1)
RAGGED = to_mdp(random_model(np.random.default_rng(1), H=4, S=5, A=3, d=3, U=4))


THEORY = {"failure_level": 0.05, "beta_scale": 1.0, "reg": None, "n_explore": None, "promised_coverage": 0.95}


def test_coverage_by_hand():
    """Two seeds, four episodes, the first without sets; parameter 0 misses once, parameter 1 twice."""
    covered = [[None, 1, 0, 0], [None, 1, 1, 0]]
    bits = [[0, 3, 1, 2], [0, 3, 3, 1]]  # bit 0: [1, 1, 0], [1, 1, 1]; bit 1: [1, 0, 1], [1, 1, 0]
    found = audit(by_hand(covered, bits, agent=THEORY)).coverage
    assert found["episodes"] == pytest.approx(3 / 6)
    assert found["seeds_always"] == 0.0
    assert found["first_miss"] == 2
    assert found["per_stage"] == pytest.approx([5 / 6, 4 / 6])
    assert found["per_stage_always"] == [0.5, 0.0]
    shares = [row for row in found["per_block_and_stage"] if row[0] is not None]
    assert shares == [[1.0, 1.0], [1.0, 0.5], [0.5, 0.5]]
    assert found["claimed"] is True
    assert found["allowed_misses"] == pytest.approx(0.05 + 3 * np.sqrt(0.05 * 0.95 / 2))


@pytest.mark.parametrize(("missing", "verdict"), [(0, "holds"), (1, "holds"), (40, "fails")])
def test_the_verdict_on_coverage(missing, verdict):
    covered = np.ones((100, 3))
    covered[:missing, 2] = 0
    found = audit(by_hand(covered.tolist(), None, agent=THEORY))
    (line,) = [line for line in found.lines if line.quantity == "seeds that never miss"]
    assert line.verdict == verdict
    assert bool(found.failures) == (verdict == "fails")
    for change in ({"promised_coverage": None}, {"failure_level": None}):
        relaxed = audit(by_hand(covered.tolist(), None, agent=THEORY | change))
        assert not relaxed.failures


@pytest.mark.parametrize(
    "change",
    [{"beta_scale": 0.5}, {"reg": 10.0}, {"printed_radius": True}, {"step_size": 3.0}],
)
def test_other_settings_than_the_theory_s_promise_nothing(change):
    """What is promised is decided once, for audits and reports alike."""
    theory = Livarot.theory(10)
    assert theory.promised_coverage() == 0.95
    changed = dataclasses.replace(theory, **change)
    assert changed.promised_coverage() is None
    result = livarot.run(CHAIN, changed, 3, seed=range(2))
    assert not audit(result).coverage["claimed"]
    assert result.facts["agent"]["promised_coverage"] is None


def test_without_a_burn_in_its_settings_do_not_count():
    assert Livarot(step_size=1.0, reg=None, beta_scale=1.0, failure_level=0.1).promised_coverage() == 0.9
    assert Livarot(step_size=1.0, reg=None, beta_scale=1.0, n_explore=5).promised_coverage() is None


def test_optimism_by_hand():
    covered = [[1, 1, 0, 1]]
    gap, loss = [[0.5, -0.2, -1.0, None]], [[0.0, 0.3, 0.1, None]]
    found = audit(by_hand(covered, None, gap=gap, loss=loss)).optimism
    assert found["share"] == pytest.approx(1 / 3)
    assert found["worst_shortfall"] == 1.0
    assert found["certified_share"] == pytest.approx(2 / 3)
    assert found["certified_worst_shortfall"] == pytest.approx(0.9)
    assert found["certified_share_when_covered"] == 1.0
    broken = audit(by_hand(covered, None, gap=gap, loss=[[0.0, 0.1, 0.1, None]]))
    assert broken.optimism["certified_share_when_covered"] == 0.5
    assert [line.quantity for line in broken.failures] == ["the same where theta* is covered"]


def test_regret_and_sigma_bar_by_hand():
    found = audit(by_hand([[1, 1], [1, 1]], None, regret=[[0.5, 0.25], [0.0, 0.25]]))
    assert found.regret["mean"] == 0.5
    assert (found.regret["min"], found.regret["max"]) == (0.25, 0.75)
    assert found.regret["standard_error"] == pytest.approx(0.25)
    assert found.regret["trivial"] == 4.0
    assert found.sigma_bar["mean"] == pytest.approx(0.1)
    assert found.regret["bounds"] is None and "pass mdp=" in str(found)
    too_much = audit(by_hand([[1, 1]], None, regret=[[2.5, 2.0]]))
    assert [line.section for line in too_much.failures] == ["regret"]


AGENTS = [Livarot(), Livarot(n_explore=5), Livarot.theory(20), UCRLMNLOL(), CertaintyEquivalent(), Uniform()]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: f"{agent.name}-{getattr(agent, 'n_explore', 0)}")
@pytest.mark.parametrize("mdp", [CHAIN, RAGGED], ids=["chain", "ragged"])
def test_every_agent_stored_and_not(agent, mdp, tmp_path):
    result = livarot.run(mdp, agent, 20, seed=range(3))
    found = audit(result)
    result.save(tmp_path / "run")
    assert audit(RunResult.load(tmp_path / "run")).to_dict() == found.to_dict()
    json.dumps(found.to_dict(), allow_nan=False)
    assert not found.failures
    assert str(found).splitlines()[0] == f"audit of {agent.name}: 3 seeds, 20 episodes"
    assert len(str(found).splitlines()) == 3 + len(found.lines)
    if result.covered.count():
        assert found.coverage["episodes"] == pytest.approx(float(result.covered.mean()))
        assert found.coverage["per_stage"] == pytest.approx([result.stage_covered(k).mean() for k in range(4)])
    assert found.regret["mean"] == pytest.approx(result.cumulative_regret[:, -1].mean())
    assert found.sigma_bar["star"]["max"] == pytest.approx(sigma_bar_star(mdp), abs=1e-14)


def test_the_oracle_has_no_regret():
    result = livarot.run(CHAIN, Oracle(livarot.solve(CHAIN).policy), 5)
    assert audit(result).regret["max"] == pytest.approx(0.0, abs=1e-12)


def test_bounds_are_those_of_the_theory():
    result = livarot.run(CHAIN, Livarot(), 30, seed=range(3))
    sigma = float(np.sqrt(np.mean(result.sigma_bar**2)))
    exact, stored = audit(result, CHAIN).regret["bounds"], audit(result).regret["bounds"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TheoryWarning)
        expected = regret_bound(CHAIN, 30, sigma_bar=sigma)
        assert exact["lower"] == lower_bound(CHAIN, 30).value
        as_run = regret_bound(CHAIN, 30, sigma_bar=sigma, n_explore=0)
    assert tuple(exact["terms"]) == TERMS
    assert exact["terms"] == pytest.approx(expected.terms)
    assert exact["upper"] == pytest.approx(sum(exact["terms"].values()), rel=1e-12)
    assert exact["dominant"] == expected.dominant
    assert exact["upper_as_run"] == pytest.approx(as_run.total)
    assert exact["kappa"]["exact"]
    assert stored["terms"]["variance"] == pytest.approx(exact["terms"]["variance"], rel=1e-12)
    assert stored["terms"]["curvature"] >= exact["terms"]["curvature"]  # only the cheap bound of kappa is stored
    assert stored["log_upper"] >= exact["log_upper"]
    assert {"UCRL-MNL", "UCRL-MNL-OL", "ORRL-MNL"} <= {row["name"] for row in exact["rates"]}


@pytest.mark.parametrize("wrong", [None, 3, {"facts": {}}, CHAIN])
def test_what_is_not_a_result_is_refused(wrong):
    with pytest.raises(LivarotError, match="result"):
        audit(wrong)


def test_another_model_is_refused():
    result = livarot.run(CHAIN, Livarot(), 5)
    for other in (envs.hard_chain(4, gap=0.11), RAGGED, envs.hard_chain(4, gap=0.1, param_bound=9.0)):
        with pytest.raises(LivarotError, match="pass the model of this run"):
            audit(result, other)
    for nothing in ([], [3], "chain"):
        with pytest.raises(LivarotError, match="mdp"):
            audit(result, nothing)
    chains = [envs.hard_chain(4, gap=0.1, seed=s) for s in range(3)]
    assert audit(livarot.run(chains, Livarot(), 5, seed=range(3)), chains).facts["problem"]["n_models"] == 3


@pytest.mark.statistical
@pytest.mark.parametrize("mdp", [CHAIN, envs.river_swim(3, 3)], ids=["chain", "river"])
def test_the_theory_s_sets_hold_the_truth(mdp):
    """400 seeds, 200 episodes: seeds that miss theta* once are at most delta plus three standard errors.

    The same estimator with a thousandth of the radius misses at once: the check can fail.
    """
    found = audit(livarot.run(mdp, Livarot.theory(200), 200, seed=range(400)))
    assert found.coverage["claimed"]
    assert 1.0 - found.coverage["seeds_always"] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert found.optimism["certified_share_when_covered"] == 1.0
    assert not found.failures
    thin = Livarot(step_size=1.0, reg=None, beta_scale=0.001)
    assert audit(livarot.run(mdp, thin, 20, seed=range(20))).coverage["seeds_always"] == 0.0
