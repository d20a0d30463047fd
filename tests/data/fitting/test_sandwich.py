"""Clusters and sampling weights: naive loops, duplicates of rows, simulations."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import DataWarning, MNLTransition, bootstrap, robust_radius, value_interval
from livarot.data.fitting.sandwich import cluster_scores, inverse, variance_along
from livarot.errors import LivarotError


def panel(n_people=60, visits=8, seed=0, taste=1.0):
    """Choices of three alternatives; every person has a taste for x of their own."""
    rng = np.random.default_rng(seed)
    n = n_people * visits
    x = rng.normal(size=(n, 3))
    own = np.repeat(rng.normal(1.0, taste, size=n_people), visits)
    chosen = (own[:, None] * x + rng.gumbel(size=(n, 3))).argmax(axis=1)
    table = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "x": x.reshape(-1), "z": rng.normal(size=3 * n)})
    table["person"] = np.repeat(np.repeat(np.arange(n_people), visits), 3)
    table["w"] = np.repeat(rng.uniform(0.2, 3.0, size=n), 3)
    table["chosen"] = np.tile(np.arange(3), n) == np.repeat(chosen, 3)
    return table


def naive_scores(table, theta, weight):
    """phi_y - mu of every choice, loop by loop."""
    found = []
    for _, rows in table.groupby("choice"):
        x = rows[["x", "z"]].to_numpy()
        p = np.exp(x @ theta)
        p /= p.sum()
        found.append((x[rows.chosen.to_numpy()][0] - p @ x) * float(rows[weight].iloc[0] if weight else 1.0))
    return np.array(found)


@pytest.mark.parametrize("weight", [None, "w"])
def test_covariances_by_loops(weight):
    table = panel()
    shuffled = table.sample(frac=1.0, random_state=0)
    fit = MNLTransition(features=["x", "z"], cluster="person", weights=weight).fit(shuffled)
    scores = naive_scores(table, fit.theta_, weight)
    people = table.groupby("choice").person.first().to_numpy()
    sums = np.array([scores[people == k].sum(axis=0) for k in range(60)])
    order = {label: k for k, label in enumerate(dict.fromkeys(shuffled.person))}
    np.testing.assert_allclose(
        cluster_scores(fit.choices_, fit.theta_)[[order[k] for k in range(60)]], sums, atol=1e-10
    )
    bread = np.linalg.inv(fit.maxima_[0].hessian)
    correction = 60 / 59 * (480 - 1) / (480 - 2)
    np.testing.assert_allclose(fit.covariance_, correction * bread @ sums.T @ sums @ bread, rtol=1e-8)
    plain = MNLTransition(features=["x", "z"], weights=weight, covariance="sandwich").fit(table)
    np.testing.assert_allclose(plain.covariance_, bread @ scores.T @ scores @ bread, rtol=1e-8)
    assert fit.covariance_[0, 0] > 1.5 * plain.covariance_[0, 0]


def test_a_frequency_is_many_rows_and_a_weight_is_not():
    table = panel(20, 4)
    twice = pd.concat([table, table.assign(choice=table.choice + 10**6)], ignore_index=True)
    doubled = table.assign(n=2.0 * table.chosen, two=2.0).drop(columns="chosen")
    rows = MNLTransition(features=["x", "z"], covariance="sandwich").fit(twice)
    counted = MNLTransition(features=["x", "z"], count="n", covariance="sandwich").fit(doubled)
    weighted = MNLTransition(features=["x", "z"], weights="two").fit(table.assign(two=2.0))
    single = MNLTransition(features=["x", "z"], covariance="sandwich").fit(table)
    np.testing.assert_allclose(counted.covariance_, rows.covariance_, rtol=1e-9)
    np.testing.assert_allclose(weighted.covariance_, single.covariance_, rtol=1e-9)
    np.testing.assert_allclose(rows.covariance_, single.covariance_ / 2.0, rtol=1e-9)
    assert weighted.choices_.n_observations == 80 and weighted.choices_.n_choices == 160
    assert "Wald chi2" in weighted.summary().facts and "AIC" not in weighted.summary().facts


def test_refused():
    table = panel(5, 3)
    for options, message in (
        ({"cluster": "who"}, "cluster: there is no column 'who'"),
        ({"weights": "heavy"}, "weights: there is no column 'heavy'"),
        ({"covariance": "cluster"}, "is by clusters, and none are given"),
        ({"covariance": "robust"}, "covariance: 'robust' is not known"),
    ):
        with pytest.raises(LivarotError, match=message):
            MNLTransition(features=["x"], **options).fit(table)
    with pytest.raises(LivarotError, match="one cluster only"):
        MNLTransition(features=["x"], cluster="person").fit(table.assign(person=1))
    with pytest.raises(LivarotError, match="column 'w': negative weights"):
        MNLTransition(features=["x"], weights="w").fit(table.assign(w=-1.0))


def visits(n_people=80, steps=6, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(n_people):
        luck, state = rng.normal(0.0, 1.5), "ill"
        for week in range(steps):
            after = "well" if luck + rng.logistic() > 0.0 else "ill"
            rows.append((person, week % 2, state, after))
            state = after
    return pd.DataFrame(rows, columns=["person", "week", "state", "next_state"])


def model(**options):
    settings = {"formula": "~ next_state + next_state:state", "action": None, "reachable": "all"}
    return MNLTransition(**settings | options).fit(visits())


def test_intervals_and_radii_follow_the_clusters():
    plain, clustered = model(), model(cluster="person")
    mdp = clustered.to_mdp({"well": 1.0, "ill": 0.0}, 5, "ill")
    narrow, wide = value_interval(plain, mdp), value_interval(clustered, mdp)
    assert wide.standard_error > 1.2 * narrow.standard_error and wide.value == narrow.value
    resampled = value_interval(clustered, mdp, kind="bootstrap", n_resamples=150)
    assert resampled.standard_error == pytest.approx(wide.standard_error, rel=0.3)
    asked = value_interval(plain, mdp, cluster=visits().person)
    assert asked.standard_error == pytest.approx(wide.standard_error, rel=1e-9)
    named = value_interval(clustered, mdp, cluster="person")
    assert named.standard_error == pytest.approx(wide.standard_error, rel=1e-9)
    radii = [robust_radius(fit, mdp, 0.8, n_resamples=40).max() for fit in (plain, clustered)]
    assert radii[1] > 1.3 * radii[0]
    for call, message in (
        (lambda: bootstrap(plain, 5, cluster="person"), "the fit does not know 'person'"),
        (lambda: bootstrap(plain, 5, cluster=[1, 2]), "has 2 labels for 480 observations"),
        (lambda: bootstrap(plain, 5, resample="cluster"), "the fit has none"),
    ):
        with pytest.raises(LivarotError, match=message):
            call()


def test_a_cluster_bootstrap_draws_whole_clusters():
    clustered = model(cluster="person")
    draws = bootstrap(clustered, 200).theta[:, 0]
    error = np.sqrt(np.diag(clustered.covariance_))
    assert draws.std(axis=0) == pytest.approx(error, rel=0.25)
    np.testing.assert_array_equal(bootstrap(clustered, 5).theta, bootstrap(clustered, 9).theta[:5])


def test_clusters_link_the_stages():
    staged = model(stage="week", homogeneous=False, cluster="person")
    slope = np.ones((2, len(staged.columns_)))
    apart = sum(float(g @ cov @ g) for g, cov in zip(slope, staged._covariances(), strict=True))
    together = variance_along(staged, slope)
    parts = zip(staged._groups(staged.choices_), staged.maxima_, slope, strict=True)
    sums = [cluster_scores(own, found.theta) @ np.linalg.inv(found.hessian) @ g for (_, own), found, g in parts]
    total = sums[0] + sums[1]
    correction = 80 / 79 * (480 - 1) / (480 - len(staged.columns_))
    assert together == pytest.approx(correction * float(total @ total), rel=1e-9)
    assert abs(together - apart) > 0.05 * apart


@pytest.mark.statistical
def test_clustered_intervals_cover():
    """95 % intervals of a mean taste over 300 panels: clustered ones cover, the others do not."""
    inside = {"cluster": 0, None: 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        truth = float(np.mean([MNLTransition(features=["x"]).fit(panel(2000, 8, seed=10**6)).theta_[0]]))
        for seed in range(300):
            table = panel(80, 8, seed)
            for kind in inside:
                fit = MNLTransition(features=["x"], cluster=None if kind is None else "person").fit(table)
                inside[kind] += abs(fit.theta_[0] - truth) <= 1.96 * math.sqrt(fit.covariance_[0, 0])
    assert 0.91 <= inside["cluster"] / 300 <= 0.98
    assert inside[None] / 300 < 0.85


@pytest.mark.parametrize(("apart", "refused"), [(1e-3, False), (1e-6, False), (3e-8, True), (1e-9, True)])
def test_what_only_rounding_makes_positive_is_refused(apart, refused):
    """The squared sine between two columns is apart^2; a factorisation may still succeed where that is rounding."""
    x, z = np.random.default_rng(0).normal(size=(2, 50))
    columns = np.stack((x, 2.0 * x + apart * z), axis=1)
    if refused:
        with pytest.raises(LivarotError, match="hessian: is not positive definite; drop collinear columns"):
            inverse(columns.T @ columns)
    else:
        assert np.isfinite(inverse(columns.T @ columns)).all()
