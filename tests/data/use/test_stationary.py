"""From a fit to a plan without an end: the same chain of answers, in the user's units."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot import infinite
from livarot.data import (
    bootstrap,
    plan_optimistic,
    plan_pessimistic,
    plan_robust,
    policy_table,
    robust_radius,
    support_check,
    value_interval,
)
from livarot.errors import LivarotError
from tests.support.machine_logs import fitted

COSTS = {(s, a): {"new": 5.0, "used": 40.0, "worn": 150.0}[s] + 60.0 * (a == "mend") for s in ("new", "used", "worn")
         for a in ("run", "mend")}  # fmt: skip
TERMS = {"cost": COSTS, "start": "new", "terminal": {"broken": 900.0}}


@pytest.fixture(scope="module")
def fit():
    return fitted(600)


@pytest.fixture(scope="module")
def mdp(fit):
    return fit.to_mdp(**TERMS, discount=0.9)


def test_the_interval_is_that_of_a_long_horizon(fit, mdp):
    found = value_interval(fit, mdp)
    long = fit.to_mdp(**TERMS, discount=0.9, horizon=400)
    policy = np.tile(np.maximum(infinite.solve(mdp).policy, 0), (400, 1)).astype(np.int32)
    expected = value_interval(fit, long, policy)
    for name in ("value", "lower", "upper", "standard_error"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert found.lower < found.value < found.upper < 0.0 and str(found).startswith("cost ")
    covariance = fit.covariance_ * mdp.stage.problem.feature_scale**2
    own = infinite.value_interval(mdp, covariance)
    assert (own.value, own.standard_error) == pytest.approx((found.value, found.standard_error), rel=1e-9)


def test_the_bootstrap_refits_and_plans_anew(fit, mdp):
    def mends(solution):
        return [float(solution.policy[s] == "mend") for s in ("new", "used", "worn")]

    found = value_interval(fit, mdp, kind="bootstrap", n_resamples=30, seed=3, statistic=mends)
    draws = bootstrap(fit, 30, seed=3).theta[:, 0]
    policy = infinite.solve(mdp).policy
    values, plans = [], []
    for theta in draws:
        own = fitted(600)
        own.theta_ = theta
        drawn = own.to_mdp(**TERMS, discount=0.9)
        values.append(infinite.evaluate(drawn, policy)[1])  # "new"
        plans.append(mends(infinite.solve(drawn)))
    assert (found.lower, found.upper) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))), rel=1e-9)
    assert found.statistic["estimate"].tolist() == mends(infinite.solve(mdp))
    np.testing.assert_allclose(found.statistic["upper"], np.quantile(plans, 0.975, axis=0), atol=1e-12)
    with pytest.raises(LivarotError, match="statistic: needs refits"):
        value_interval(fit, mdp, statistic=mends)


def test_a_statistic_of_episodic_plans(fit):
    episodic = fit.to_mdp(**TERMS, horizon=5)
    found = value_interval(
        fit, episodic, kind="bootstrap", n_resamples=20, statistic=lambda best: float(best["worn"][0] == "mend")
    )
    assert found.statistic["estimate"] == float(livarot.solve(episodic)["worn"][0] == "mend")


def test_robust_plans(fit, mdp):
    radii = robust_radius(fit, mdp, n_resamples=40)
    episodic = robust_radius(fit, fit.to_mdp(**TERMS, horizon=3), n_resamples=40)
    np.testing.assert_allclose(radii, episodic, rtol=1e-12)
    robust = plan_robust(fit, mdp, n_resamples=40)
    np.testing.assert_array_equal(robust.value, infinite.solve_robust(mdp, radius=radii).value)
    assert (robust.upper <= infinite.solve(mdp).upper + 1e-9).all() and robust.policy["broken"] is None
    np.testing.assert_allclose(plan_robust(fit, mdp, 0.0).value, infinite.solve(mdp).value, rtol=1e-9)


def test_optimistic_plans(fit, mdp):
    found = plan_optimistic(fit, mdp, 0.9)
    covariance = fit.covariance_ * mdp.stage.problem.feature_scale**2
    expected = infinite.solve_optimistic(mdp, covariance, level=0.9)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-6)
    assert (found.upper >= infinite.solve(mdp).value - 1e-9).all()
    careful = plan_pessimistic(fit, mdp, 0.9)
    assert careful.lower < float(mdp.problem.start @ infinite.solve(mdp).value) < float(mdp.problem.start @ found.upper)


def test_optimistic_plans_with_stages_are_in_dollars(fit):
    episodic = fit.to_mdp(**TERMS, horizon=5)
    found, best = plan_optimistic(fit, episodic), livarot.solve(episodic)
    assert best.value[0] @ episodic.problem.start <= found.start_value[0] + 1e-9 < 0.0


def test_policy_tables(fit, mdp):
    best = infinite.solve(mdp)
    table = policy_table(mdp, best.policy, value=best.value, fit=fit)
    assert list(table.columns) == ["state", "action", "cost", "count"] and "broken" not in set(table.state)
    for row in table.itertuples():
        assert row.action == best.policy[row.state] and row.cost == -best.value[fit.states_.index(row.state)]
    drawn = policy_table(mdp, np.full((4, 2), 0.5))
    assert set(drawn.probability) == {0.5} and len(drawn) == 6
    with pytest.raises(LivarotError, match=r"value: has shape \(2,\); give \(4,\)"):
        policy_table(mdp, best.policy, value=np.zeros(2))


def test_support(fit, mdp):
    assert support_check(fit, mdp).attrs["share"] == 0.0
    every = support_check(fit, mdp, min_count=1e9)
    assert list(every.columns) == ["count", "visits"] and "broken" not in every.index.get_level_values(0)
    # discounted visits against a long simulation-free sum
    p, policy = mdp.table, np.maximum(np.asarray(infinite.solve(mdp).policy), 0)
    chain, flow, total = p[np.arange(4), policy], mdp.problem.start, np.zeros(4)
    for t in range(400):
        total += 0.1 * 0.9**t * flow
        flow = flow @ chain
    for state in ("new", "used", "worn"):
        assert every.loc[state].visits.sum() == pytest.approx(total[fit.states_.index(state)], rel=1e-9)
    with pytest.raises(LivarotError, match="mdp: has no discount"):
        support_check(fit, fit.to_mdp(**TERMS), np.zeros(4, dtype=np.int32))


def test_a_model_of_another_fit_is_refused(mdp):
    other = fitted(100, seed=5)
    for call in (value_interval, plan_robust, plan_optimistic, support_check, robust_radius):
        with pytest.raises(LivarotError, match="was not made from this fit"):
            call(other, mdp)


def test_average_cost_of_a_chain_with_one_class():
    """Without an end and without a discount: the gain, its interval against central differences of the gain."""
    rng = np.random.default_rng(1)
    log = pd.DataFrame({"state": rng.choice(["a", "b"], 300), "action": rng.choice(["x", "y"], 300),
                        "next_state": rng.choice(["a", "b"], 300)})  # fmt: skip
    fit = livarot.data.MNLTransition(formula="~ action:next_state", reachable="all").fit(log)
    mdp = fit.to_mdp(cost={"a": 100.0, "b": 20.0})
    found = value_interval(fit, mdp)
    best = infinite.solve(mdp)
    assert found.value == pytest.approx(best.gain, rel=1e-9) and found.standard_error > 0.0
    draws = value_interval(fit, mdp, best.policy, kind="bootstrap", n_resamples=200)
    assert 0.7 < draws.standard_error / found.standard_error < 1.4
