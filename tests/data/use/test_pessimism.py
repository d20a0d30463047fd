"""Pessimistic plans from a fit: lower confidence bounds, and how far a log covers a policy."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import livarot
from livarot.data import (
    MNLTransition,
    coverage_coefficients,
    labels_of,
    plan_optimistic,
    plan_pessimistic,
    support_check,
)
from livarot.infinite import InfiniteMDP, policy_value
from tests.support.machine_logs import PAYS, SETS, TRUTH, WEAR, fitted, make_log, to_mdp
from tests.twins.plans import probabilities


def true_value(fit, policy, horizon=6):
    """What a policy is worth in the machine that made the log."""
    problem = fit.to_mdp(PAYS, horizon, "new", param_bound=10.0, terminal="broken").problem
    truth = livarot.MNLMDP(problem, np.array([[TRUTH["mend"], TRUTH["run"]]]) * problem.feature_scale)
    return float(problem.start @ livarot.evaluate(truth, policy)[0])


def test_no_parameter_of_the_set_is_worth_less():
    """A fine grid of what the pairs ask for, used at all stages: one coefficient per action, so theta is in a box."""
    fit = fitted(150)
    mdp = to_mdp(fit)
    plan = plan_pessimistic(fit, mdp, 0.95)
    free = fit.to_mdp(PAYS, 6, "new", param_bound=50.0, terminal="broken").problem
    reach = norm.isf(0.05 / 2 / 2) * np.sqrt(np.diag(fit.covariance_))  # two sides, two actions
    worst = math.inf
    for x, y in itertools.product(np.linspace(-1.0, 1.0, 21), repeat=2):
        theta = fit.theta_ + reach * [x, y]
        value = livarot.evaluate(livarot.MNLMDP(free, theta[None] * free.feature_scale), plan.policy)[0]
        worst = min(worst, float(value @ free.start))
    assert worst - 0.3 * (plan.nominal - worst) < plan.lower < worst < plan.nominal
    assert plan.nominal == pytest.approx(float(livarot.evaluate(mdp, plan.policy)[0] @ mdp.problem.start), abs=1e-12)
    assert plan.lower <= plan.upper <= plan_optimistic(fit, mdp, 0.95).start_value[0]
    assert plan_pessimistic(fit, mdp, 0.5).lower > plan.lower
    assert plan_pessimistic(fit, mdp, 0.95, kind="finite-sample").lower < plan.lower
    assert "lower 95 % bound" in str(plan) and "(wald)" in str(plan)


def test_stages_with_sets_of_their_own():
    fit = fitted(900, homogeneous=False, stage="week")
    mdp = fit.to_mdp(PAYS, start="new", terminal="broken")
    plan = plan_pessimistic(fit, mdp)
    assert plan.policy.shape == (3, 4)
    assert 0.0 < plan.lower <= plan.nominal <= livarot.solve(mdp).value[0] @ mdp.problem.start + 1e-12
    one = fitted(900)
    assert plan.lower < plan_pessimistic(one, to_mdp(one, 3)).lower  # a third of the data each, and a union bound


def information_by_loops(fit, mdp, policy):
    """The visits of a policy, and I_pi and I_log of a model without stages, written out."""
    problem = mdp.problem
    flow, visits = list(problem.start), np.zeros((problem.n_states, problem.n_actions))
    for h in range(problem.horizon):
        after = [0.0] * problem.n_states
        for s in range(problem.n_states):
            a = int(policy[h, s])
            visits[s, a] += flow[s] / problem.horizon
            for p, n in zip(mdp.probabilities(h, s, a), problem.next_states(h, s, a), strict=True):
                after[n] += flow[s] * p
        flow = after
    return visits, *spreads(fit, labels_of(mdp), visits)


def spreads(fit, labels, visits):
    """I_pi and I_log, pair by pair."""
    needed, known, count = np.zeros((2, 2)), np.zeros((2, 2)), fit.support()["count"]
    for (state, action), nexts in SETS.items():
        rows = [[WEAR[x] * (action == "mend"), WEAR[x] * (action == "run")] for x in nexts]
        p = probabilities([0.0] * len(rows), rows, fit.theta_)
        mean = np.array(p) @ np.array(rows)
        spread = sum(q * np.outer(np.array(r) - mean, np.array(r) - mean) for q, r in zip(p, rows, strict=True))
        needed += visits[labels.states.index(state), labels.actions.index(action)] * spread
        known += count.get((state, action), 0.0) / count.sum() * spread
    return needed, known


def test_coverage_against_loops():
    fit = fitted(300)
    mdp = to_mdp(fit)
    policy = plan_pessimistic(fit, mdp).policy
    found = coverage_coefficients(fit, mdp, policy)
    visits, needed, known = information_by_loops(fit, mdp, policy)
    labels, count = labels_of(mdp), fit.support()["count"]
    ratios = {
        (s, a): visits[labels.states.index(s), labels.actions.index(a)] * count.sum() / count[s, a] for s, a in SETS
    }
    assert found.concentrability == pytest.approx(max(ratios.values()), rel=1e-12)
    assert found.worst_pair == max(ratios, key=ratios.get)
    assert found.information == pytest.approx(np.linalg.eigvals(np.linalg.solve(known, needed)).real.max(), rel=1e-9)
    assert plan_pessimistic(fit, mdp).coverage == found
    by_stage = fitted(900, homogeneous=False, stage="week")
    assert (
        0.5 < coverage_coefficients(by_stage, by_stage.to_mdp(PAYS, start="new", terminal="broken")).information < 20.0
    )


def test_without_an_end():
    """The bound is that of a long discounted horizon, and no parameter of a fine grid is worth less."""
    fit = fitted(150)
    mdp = fit.to_mdp(PAYS, discount=0.9, start="new", terminal="broken")
    plan, long = (
        plan_pessimistic(fit, mdp),
        plan_pessimistic(fit, fit.to_mdp(PAYS, 200, "new", discount=0.9, terminal="broken")),
    )
    assert plan.lower == pytest.approx(long.lower, abs=1e-5) and plan.nominal == pytest.approx(long.nominal, abs=1e-7)
    assert plan.lower <= plan.upper == pytest.approx(long.upper, abs=1e-5)
    assert np.array_equal(np.where(mdp.problem.terms.terminal, 0, plan.policy), long.policy[0])
    free = fit.to_mdp(PAYS, discount=0.9, start="new", param_bound=50.0, terminal="broken")
    reach = norm.isf(0.05 / 2 / 2) * np.sqrt(np.diag(fit.covariance_))  # two sides, two actions
    for x, y in itertools.product(np.linspace(-1.0, 1.0, 17), repeat=2):
        theta = (fit.theta_ + reach * [x, y]) * free.problem.stage.feature_scale
        other = InfiniteMDP(livarot.MNLMDP(free.stage.problem, theta[None]), free.terms)
        assert policy_value(other, plan.policy) @ mdp.problem.start >= plan.lower
    assert plan_pessimistic(fit, mdp, 0.5).lower > plan.lower
    assert plan_pessimistic(fit, mdp, kind="finite-sample").lower < plan.lower
    assert plan.value.shape == plan.policy.shape == (4,)


def test_coverage_without_an_end_against_loops():
    """Discounted visits, added up step by step, in the place of those of an episode."""
    fit = fitted(300)
    mdp, episodes = fit.to_mdp(PAYS, discount=0.9, start="new", terminal="broken"), to_mdp(fit, 1)
    policy = plan_pessimistic(fit, mdp).policy
    flow, visits = mdp.problem.start.copy(), np.zeros((4, 2))
    for t in range(400):
        after = np.zeros(4)
        for s in range(4):
            a = max(int(policy[s]), 0)
            visits[s, a] += 0.1 * 0.9**t * flow[s]
            after[mdp.problem.next_states(s, a)] += flow[s] * mdp.probabilities(s, a)
        flow = after
    found = coverage_coefficients(fit, mdp, policy)
    labels, count = labels_of(mdp), fit.support()["count"]
    ratios = {
        (s, a): visits[labels.states.index(s), labels.actions.index(a)] * count.sum() / count[s, a] for s, a in SETS
    }
    assert found.concentrability == pytest.approx(max(ratios.values()), rel=1e-9)
    assert found.worst_pair == max(ratios, key=ratios.get)
    needed, known = spreads(fit, labels_of(episodes), visits)
    assert found.information == pytest.approx(np.linalg.eigvals(np.linalg.solve(known, needed)).real.max(), rel=1e-8)


def test_average_rewards_are_refused():
    fit = fitted(150)
    mdp = fit.to_mdp(PAYS, start="new", terminal="broken")
    with pytest.raises(livarot.LivarotError, match="the worst case of an average reward is not planned for"):
        plan_pessimistic(fit, mdp)
    with pytest.raises(livarot.LivarotError, match="has no discount"):
        coverage_coefficients(fit, mdp)


def test_what_was_never_logged_is_not_covered():
    log = make_log(600, 0)
    log = log[~((log.state == "worn") & (log.action == "mend"))]
    states = pd.DataFrame({"state": list(WEAR), "wear": list(WEAR.values())})
    fit = MNLTransition(features=["action:wear"], reachable=SETS, states=states).fit(log)
    mdp = to_mdp(fit)
    found = coverage_coefficients(fit, mdp)
    assert support_check(fit, mdp).attrs["share"] > 0.0
    assert found.concentrability == math.inf and found.worst_pair == ("worn", "mend")
    assert 0.0 < found.information < math.inf  # the coefficients were seen elsewhere
    assert "never logged: 'mend' in 'worn'" in str(found)
    alone = MNLTransition(
        features=["action:wear"], states=states, reachable={k: v for k, v in SETS.items() if k != ("worn", "mend")}
    )
    sunk = alone.fit(log).to_mdp(PAYS, 6, "new", unseen="sink", terminal="broken")
    mends = np.zeros((6, 5), dtype=np.int32)
    assert coverage_coefficients(alone, sunk, mends).concentrability == math.inf


@pytest.mark.statistical
def test_the_bound_holds_as_often_as_it_says():
    """500 logs of 60 transitions: a Wald set of level .9 holds the truth in about 90 %, the bound at least so often."""
    below = []
    for seed in range(500):
        fit = fitted(60, seed, reg=1e-3)
        plan = plan_pessimistic(fit, to_mdp(fit), 0.9)
        below.append(plan.lower <= true_value(fit, plan.policy))
    assert np.mean(below) >= 0.9
