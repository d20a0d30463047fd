"""Optimistic and robust plans from a fit, and the data they rest on."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import MNLTransition, bootstrap, labels_of, plan_optimistic, plan_robust, robust_radius, support_check
from livarot.data.use.plans import estimate
from tests.support.machine_logs import PAYS, SETS, TRUTH, WEAR, fitted, make_log, to_mdp
from tests.twins.plans import divergence


def true_model(mdp):
    """The model with the truth's parameter, in the units of ``mdp``."""
    theta = np.array([[TRUTH["mend"], TRUTH["run"]]]) * mdp.problem.feature_scale
    problem = fitted(50, reg=1.0).to_mdp(PAYS, mdp.problem.horizon, "new", param_bound=10.0, terminal="broken").problem
    return livarot.MNLMDP(problem, theta)


def test_optimism_is_the_largest_value_over_the_set():
    fit = fitted(400)
    mdp = to_mdp(fit)
    plan = plan_optimistic(fit, mdp, 0.95)
    nominal = float(livarot.solve(mdp).value[0] @ mdp.problem.start)
    # any theta of the set, used at all stages, is worth no more than the certified bound
    found = fit.confidence_set(0.95)
    best = nominal
    for angle in np.linspace(0, 2 * np.pi, 60):
        theta = found.support([np.cos(angle), np.sin(angle)])
        moved = fit.to_mdp(PAYS, 6, "new", param_bound=50.0, terminal="broken").problem
        value = livarot.solve(livarot.MNLMDP(moved, theta[None] * moved.feature_scale)).value[0]
        best = max(best, float(value @ moved.start))
    assert nominal < best <= plan.upper[0] + 1e-9
    assert best <= plan.start_value[0] + 1e-9
    assert plan.start_value[0] <= plan.upper[0] + 1e-12
    assert plan_optimistic(fit, mdp, 0.5).start_value[0] < plan.start_value[0]
    assert plan_optimistic(fit, mdp, 0.95, kind="finite-sample").start_value[0] > plan.start_value[0]


def test_stages_with_sets_of_their_own():
    fit = fitted(900, homogeneous=False, stage="week")
    mdp = fit.to_mdp(PAYS, start="new", terminal="broken")
    plan = plan_optimistic(fit, mdp, kind="finite-sample")
    sets = fit.confidence_set(kind="finite-sample", problem=mdp.problem)
    assert len({round(own.radius, 6) for own in sets}) == 3
    gram = mdp.problem.rows.unpack(plan.gram[0])
    for own, matrix in zip(sets, gram, strict=True):  # the same ellipsoids, with one radius
        assert matrix / plan.radius[0] ** 2 == pytest.approx(own.matrix / own.radius**2, rel=1e-12)
    radius = robust_radius(fit, mdp, n_resamples=40)
    assert radius.shape == (3, 4, 2)
    assert not np.array_equal(radius[0], radius[1])
    assert plan_robust(fit, mdp, radius).value[0] @ mdp.problem.start < livarot.solve(mdp).value[0] @ mdp.problem.start


def test_the_radius_is_a_quantile_of_divergences():
    fit = fitted(300)
    mdp = to_mdp(fit)
    found = robust_radius(fit, mdp, 0.9, n_resamples=50, seed=2, simultaneous=False)
    together = robust_radius(fit, mdp, 0.9, n_resamples=50, seed=2)
    draws = bootstrap(fit, 50, seed=2).theta[:, 0]
    problem = fit.to_mdp(PAYS, 6, "new", param_bound=100.0, terminal="broken").problem
    every = np.zeros((50, 4, 2))
    for b, theta in enumerate(draws):
        other = livarot.MNLMDP(problem, theta[None] * problem.feature_scale)
        for s in range(4):
            for a in np.flatnonzero(problem.available[0, s]).tolist():
                every[b, s, a] = divergence(mdp.probabilities(0, s, a).tolist(), other.probabilities(0, s, a).tolist())
    quantile = np.sort(every, axis=0)[int(np.ceil(0.9 * 49))]
    assert found == pytest.approx(quantile, abs=1e-13)
    wide = quantile > 0
    worst = np.sort((every[:, wide] / quantile[wide]).max(axis=1))[int(np.ceil(0.9 * 49))]
    assert together == pytest.approx(quantile * worst, abs=1e-13)
    assert worst > 1.0
    assert found[labels_of(mdp).states.index("broken")].max() == 0.0  # it ends there: nothing to doubt


def test_robust_plans():
    fit = fitted(300)
    mdp = to_mdp(fit)
    start = mdp.problem.start
    auto = plan_robust(fit, mdp, n_resamples=100)
    given = plan_robust(fit, mdp, robust_radius(fit, mdp, n_resamples=100))
    assert np.array_equal(auto.value, given.value)
    nominal = livarot.solve(mdp).value[0] @ start
    assert auto.value[0] @ start < livarot.evaluate(mdp, auto.policy)[0] @ start <= nominal + 1e-12
    assert np.array_equal(plan_robust(fit, mdp, 0.0).value, livarot.solve(mdp).value)
    more = to_mdp(fitted(3000))
    assert robust_radius(fitted(3000), more, n_resamples=100).max() < robust_radius(fit, mdp, n_resamples=100).max()
    with pytest.raises(livarot.LivarotError, match="settings"):
        plan_robust(fit, mdp, 0.1, seed=3)
    with pytest.raises(livarot.LivarotError, match=r"n_resamples: 10 refits have no 0\.95 quantile"):
        robust_radius(fit, mdp, n_resamples=10)


@pytest.mark.statistical
def test_the_robust_value_is_a_lower_bound():
    """120 data sets: the balls hold the truth together in 95 +- 2 % of them; the bound must hold at least as often."""
    inside, below = [], []
    for seed in range(120):
        fit = fitted(400, seed)
        mdp = to_mdp(fit)
        truth = true_model(mdp)
        radius = robust_radius(fit, mdp, n_resamples=60, seed=seed)
        far = [
            divergence(truth.probabilities(0, s, a).tolist(), mdp.probabilities(0, s, a).tolist()) - radius[s, a]
            < 1e-12
            for s, a in np.argwhere(mdp.problem.available[0]).tolist()
        ]
        inside.append(all(far))
        plan = plan_robust(fit, mdp, radius)
        below.append(plan.value[0] @ mdp.problem.start <= livarot.evaluate(truth, plan.policy)[0] @ mdp.problem.start)
    assert np.mean(inside) >= 0.895
    assert np.mean(below) >= np.mean(inside)


def test_where_a_policy_goes_without_data():
    log = make_log(600, 0)
    log = log[~((log.state == "worn") & (log.action == "run"))]
    states = pd.DataFrame({"state": list(WEAR), "wear": list(WEAR.values())})
    fit = MNLTransition(features=["action:wear"], reachable=SETS, states=states).fit(log)
    mdp = to_mdp(fit, 8)
    run = np.full((8, 4), labels_of(mdp).actions.index("run"), dtype=np.int32)
    thin = support_check(fit, mdp, run)
    assert list(thin.index) == [("worn", "run")]
    assert thin["count"].tolist() == [0.0]
    assert thin["first_stage"].tolist() == [2]  # new, used, worn
    assert thin.attrs["share"] == pytest.approx(thin["visits"].sum() / 8)
    mend = np.full((8, 4), labels_of(mdp).actions.index("mend"), dtype=np.int32)
    assert len(support_check(fit, mdp, mend)) == 0
    assert len(support_check(fit, mdp, mend, min_count=1e9)) == 3  # "broken" is absorbing: nothing to decide
    assert support_check(fit, mdp, mend).attrs["share"] == 0.0


def test_a_sink_counts_as_no_data():
    states = pd.DataFrame({"state": list(WEAR), "wear": list(WEAR.values())})
    log = make_log(600, 0)
    log = log[~((log.state == "worn") & (log.action == "run"))]
    sets = {pair: nexts for pair, nexts in SETS.items() if pair != ("worn", "run")}
    fit = MNLTransition(features=["action:wear"], reachable=sets, states=states).fit(log)
    mdp = fit.to_mdp(PAYS, 8, "new", unseen="sink", terminal="broken")
    run = np.full((8, 5), labels_of(mdp).actions.index("run"), dtype=np.int32)
    assert next(iter(support_check(fit, mdp, run).index)) == ("(unseen)", "run")
    assert plan_robust(fit, mdp, n_resamples=40).value.shape == (9, 5)
    assert plan_optimistic(fit, mdp).policy.shape == (1, 8, 5)


def test_a_matrix_of_other_features_is_refused():
    problem = livarot.envs.river_swim(4, 4).problem  # one-hot features: many blocks
    full = np.ones((problem.n_parameters, problem.dim, problem.dim)) + 2 * np.eye(problem.dim)
    with pytest.raises(livarot.LivarotError, match="links coefficients that never meet"):
        estimate(problem, np.zeros((problem.n_parameters, problem.dim)), full)
