"""The estimator's contract with scikit-learn, and its own."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import estimator_checks

from livarot.data import DataWarning, MNLTransition, NotIdentified
from livarot.errors import LivarotError

WITHOUT_DATA = [
    "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types", "check_estimator_repr",
    "check_no_attributes_set_in_init", "check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order",
    "check_parameters_default_constructible", "check_get_params_invariance", "check_set_params",
]  # fmt: skip


def log(n=600, seed=0):
    """States 0..3, moves of -1, 0, 1 that mostly go up."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(4, size=n), rng.choice(["x", "y"], size=n)
    moves = rng.choice([-1, 0, 1], p=[0.2, 0.3, 0.5], size=n)
    after = np.clip(state + moves, 0, 3)
    return pd.DataFrame({"state": state, "action": action, "next_state": after, "height": after.astype(float)})


REACHABLE = {s: [t for t in (s - 1, s, s + 1) if 0 <= t <= 3] for s in range(4)}
STATES = pd.DataFrame({"height": np.arange(4.0), "kind": list("aabb")})
FITTED = {"features": ["height", "C(kind)"], "reachable": REACHABLE, "states": STATES}


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_scikit_learn_checks_that_need_no_matrix(name):
    estimator = MNLTransition(features=["height"])
    getattr(estimator_checks, name)("MNLTransition", estimator)


def test_the_rest_of_the_checks_is_skipped_by_its_tags():
    """fit takes tables, not matrices; the tags say so, and scikit-learn then skips the remaining checks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = estimator_checks.check_estimator(MNLTransition(), on_fail="warn")
    assert {r["status"] for r in results} <= {"passed", "skipped"}
    assert any("requires input" in str(w.message) for w in caught)


def test_contract():
    """What those checks would test: self returned, idempotent, inputs and parameters untouched, clone, pickle."""
    data = log()
    before = data.copy()
    fit = MNLTransition(**FITTED)
    params = dict(fit.get_params())
    assert fit.fit(data) is fit
    pd.testing.assert_frame_equal(data, before)
    assert all(fit.get_params()[k] is v for k, v in params.items())
    theta = fit.theta_.copy()
    np.testing.assert_array_equal(fit.fit(data).theta_, theta)
    fresh = clone(fit)
    assert not hasattr(fresh, "theta_")
    np.testing.assert_array_equal(fresh.fit(data).theta_, theta)
    again = pickle.loads(pickle.dumps(fit))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(data), fit.predict_proba(data))
    attributes = {"theta_", "covariance_", "n_iter_", "converged_", "log_likelihood_"}
    assert attributes <= set(vars(fit)) and fit.converged_ and fit.n_iter_ >= 1


@pytest.mark.parametrize("stages", [False, True])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(stages):
    options = FITTED | ({"homogeneous": False, "stage": "week"} if stages else {})
    data = log().assign(week=np.arange(600) % 2)
    steps = []
    fit = MNLTransition(**options).fit(data, progress=steps.append)
    assert steps[0] == 0 and set(steps[1:]) == {1}  # the table is read, then step by step
    assert sum(steps) == sum(one.n_iter for one in fit.maxima_)
    before, fresh = dict(vars(fit)), MNLTransition(**options)

    def interrupt(count):
        if count:
            raise KeyboardInterrupt

    for one in (fit, fresh):
        with pytest.raises(KeyboardInterrupt):
            one.fit(data.iloc[::2], progress=interrupt)
    assert all(vars(fit)[name] is value for name, value in before.items()) and len(vars(fit)) == len(before)
    with pytest.raises(NotFittedError):
        fresh.summary()
    with pytest.raises(LivarotError, match="progress: must be True"):
        fresh.fit(data, progress="yes")


def test_nothing_works_before_fit():
    fresh = MNLTransition(features=["height"])
    for call in (fresh.summary, fresh.confidence_set, fresh.support, lambda: fresh.predict_proba(log()),
                 lambda: fresh.score(log()), lambda: fresh.to_mdp({}, 3, 0), lambda: fresh.predict(log())):  # fmt: skip
        with pytest.raises(NotFittedError):
            call()


def test_predictions_add_up_and_keep_labels():
    fit = MNLTransition(**FITTED).fit(log())
    new = pd.DataFrame({"state": [0, 3, 1], "action": ["x", "y", "x"]})
    p = fit.predict_proba(new)
    assert p.shape == (3, 4) and list(fit.classes_) == [0, 1, 2, 3]
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[0, 2] == p[0, 3] == 0.0  # not reachable
    assert list(fit.predict(new)) == [fit.classes_[row.argmax()] for row in p]
    with pytest.raises(LivarotError, match=r"column 'state': 1 rows.*not known, such as 9 \(first at index 0"):
        fit.predict_proba(pd.DataFrame({"state": [9], "action": ["x"]}))


def test_y_may_be_given_apart():
    data = log()
    whole = MNLTransition(**FITTED).fit(data)
    apart = MNLTransition(**FITTED).fit(data.drop(columns="next_state"), data.next_state)
    np.testing.assert_array_equal(whole.theta_, apart.theta_)
    assert whole.score(data) == whole.score(data.drop(columns="next_state"), list(data.next_state))
    with pytest.raises(LivarotError, match="y: has 3 entries for 600 rows"):
        apart.fit(data.drop(columns="next_state"), [1, 2, 3])


def test_score_is_the_mean_log_likelihood():
    data = log()
    fit = MNLTransition(**FITTED).fit(data)
    p = fit.predict_proba(data)[np.arange(600), data.next_state]
    assert fit.score(data) == pytest.approx(np.log(p).mean(), rel=1e-12)
    assert fit.score(data) == pytest.approx(fit.log_likelihood_ / 600, rel=1e-12)


def test_model_selection():
    data = log()
    scores = cross_val_score(MNLTransition(**FITTED), data, cv=3)
    assert scores.shape == (3,) and (scores < 0).all()
    grid = GridSearchCV(MNLTransition(**FITTED), {"reg": [0.0, 1.0, 1e4]}, cv=3).fit(data)
    assert grid.best_params_["reg"] < 1e4


def test_summary_is_printed_as_people_know_it():
    fit = MNLTransition(**FITTED).fit(log())
    text = str(fit.summary())
    for word in (
        "Log-likelihood",
        "Pseudo R-squared",
        "LR chi2",
        "coef",
        "std err",
        "P>|z|",
        "[0.025",
        "0.975]",
        "height",
    ):
        assert word in text
    assert len({len(line) for line in text.splitlines() if set(line) <= {"=", "-"}}) == 1
    assert "height" in fit.summary()._repr_html_()


BAD = {"choice": [0, 0, 1, 1, 2, 2], "chosen": [1, 0, 0, 1, 1, 0], "a": [1.0, 2.0, 0.5, 3.0, 1.0, 0.0]}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"chosen": [1, 0, 1, 1, 0, 0]}, {}, r"column 'chosen': 2 choices do not have exactly one.*at index 2"),
        ({"chosen": [1, 0, 0, 2, 1, 0]}, {}, r"column 'chosen': must be 0 or 1 \(1 in all, first at index 3\)"),
        ({"choice": [0, 0, 1, None, 2, 2]}, {}, r"column 'choice': missing values \(1 in all, first at index 3\)"),
        ({"a": [1.0, 2.0, np.nan, 3.0, 1.0, 0.0]}, {}, r"column 'a': missing values \(1 in all, first at index 2\)"),
        ({"a": [1.0, 2.0, -np.inf, 3.0, 1.0, 0.0]}, {}, r"column 'a': infinite values \(1 in all, first at index 2\)"),
        ({"a": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]}, {}, r"column 'a': constant within every choice set"),
        ({}, {"choice": "trip"}, r"choice: there is no column 'trip' in the table; its columns are"),
        ({"choice": [0, 1, 2, 3, 4, 5], "chosen": [1] * 6}, {}, "no choice set has two alternatives: one observed"),
        ({}, {"reg": -1.0}, "reg: must be a finite number >= 0"),
        ({}, {"tol": 0.0}, "tol: must be greater than 0"),
        ({}, {"max_iter": 0}, "max_iter: must be an integer >= 1"),
        ({}, {"count": "a2"}, "count: there is no column 'a2'"),
    ],
)  # fmt: skip
def test_bad_input(change, options, message):
    with pytest.raises(LivarotError, match=message):
        MNLTransition(**({"features": ["a"]} | options)).fit(BAD | change)


def test_shuffled_rows_report_rows_of_the_table():
    bad_flags = {"choice": [0, 1, 2, 0, 1, 2], "chosen": [1, 1, 0, 0, 1, 1], "a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    with pytest.raises(
        LivarotError, match=r"1 choices do not have exactly one chosen row, the first has 2 \(first at index 1"
    ):
        MNLTransition(features=["a"]).fit(bad_flags)


def test_more_parameters_than_choices_warn():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(6, 3)), columns=list("abc")).assign(
        choice=[0, 0, 0, 1, 1, 1], chosen=[1, 0, 0] * 2
    )
    with (
        pytest.warns(DataWarning, match="more parameters than choices: 3 columns, 2 choices"),
        pytest.raises(NotIdentified),
    ):
        MNLTransition(features=list("abc")).fit(table)
    with pytest.warns(DataWarning, match="more parameters than choices"):
        assert MNLTransition(features=list("abc"), reg=1.0).fit(table).converged_


def test_one_observed_class_warns():
    data = log(50).assign(next_state=3, state=2, height=3.0)
    with pytest.warns(DataWarning, match="one observed class: every choice led to 3"), pytest.raises(NotIdentified):
        MNLTransition(**FITTED | {"features": ["height"]}).fit(data)


def test_an_empty_table():
    with pytest.raises(LivarotError, match="the table has no rows"):
        MNLTransition(features=["a"]).fit(pd.DataFrame({"state": [], "a": []}))


def test_a_fit_does_not_import_what_it_does_not_need():
    code = """
import sys
from livarot import MNLTransition, data
MNLTransition().fit(data.Choices.from_arrays([[[0.0], [1.0]]] * 4, chosen=[0, 1, 1, 1]))
found = {'livarot.agents', 'livarot.planning', 'livarot.data.fitting.diagnostics'} & sys.modules.keys()
assert not found, found
import livarot.data.use.intervals
assert callable(data.bootstrap) and callable(data.policy_table)  # functions, whatever was imported
assert all(hasattr(data, name) for name in data.__all__)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
