"""Columns without information are dropped with one warning; collinear ones are refused or dropped, as asked."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import MNLTransition, NotIdentified, load_fit, save_fit
from livarot.errors import LivarotError


def ratings(n=600, seed=0):
    """A rating matrix with structural zeros: from A never to C, D is never left."""
    rng = np.random.default_rng(seed)
    state = rng.choice(["A", "B", "C"], n)
    after = [str(rng.choice({"A": ["A", "B"], "B": ["A", "B", "C"], "C": ["B", "C", "D"]}[s])) for s in state]
    return pd.DataFrame({"state": state, "next_state": after})


def heard(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made = call()
    return made, [str(one.message) for one in found if "inferred" not in str(one.message)]


def test_a_saturated_model_with_empty_cells_gives_the_frequencies():
    log = ratings()
    for options in (
        {"features": ["state:next_state"]},
        {"formula": "~ state:next_state"},
        {"formula": "~ state*next_state"},
    ):
        fit, told = heard(lambda options=options: MNLTransition(action=None, collinear="drop", **options).fit(log))
        assert sum("without information" in text for text in told) == 1 and fit.dropped_
        assert str(len(fit.dropped_)) in str(fit.summary())
        expected = pd.crosstab(log.state, log.next_state, normalize="index").to_numpy()
        rows = pd.DataFrame({"state": ["A", "B", "C"]})
        np.testing.assert_allclose(fit.predict_proba(rows), expected, atol=1e-8)


def test_one_warning_names_the_columns():
    log = ratings()
    fit, told = heard(lambda: MNLTransition(formula="~ state:next_state", action=None).fit(log[log.state != "C"]))
    assert len(told) == 1 and "without information, dropped: " in told[0] and "next_state[C]" in told[0]
    assert all(name in told[0] for name in fit.dropped_) and not set(fit.dropped_) & set(fit.columns_)


def test_a_term_that_says_nothing_is_still_refused():
    log = ratings().assign(age=1.0)
    with pytest.raises(NotIdentified, match="constant within every choice set"):
        MNLTransition(features=["next_state", "state"], action=None, reachable="all").fit(log)


def table(n=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3 * n, 2))
    found = pd.DataFrame(
        {"choice": np.repeat(np.arange(n), 3), "a": x[:, 0], "b": x[:, 1], "c": x[:, 0] - 2.0 * x[:, 1]}
    )
    found["d"] = found.b + found.choice  # the same as b within a choice
    found["chosen"] = np.tile([True, False, False], n)[rng.permutation(3 * n).argsort().argsort()]
    found["chosen"] = (np.arange(3 * n) % 3) == np.repeat(rng.integers(3, size=n), 3)
    return found


def test_collinear_columns_are_refused_or_dropped():
    with pytest.raises(NotIdentified, match=r"collinear within choice sets.*collinear='drop'"):
        MNLTransition(features=["a", "b", "c", "d"]).fit(table())
    fit, told = heard(lambda: MNLTransition(features=["a", "b", "c", "d"], collinear="drop").fit(table()))
    assert len(told) == 1 and "dropped: 'c', 'd'" in told[0] and fit.dropped_ == ("c", "d")
    plain = MNLTransition(features=["a", "b"]).fit(table())
    np.testing.assert_array_equal(fit.theta_, plain.theta_)
    np.testing.assert_array_equal(fit.predict_proba(table()), plain.predict_proba(table()))
    with pytest.raises(LivarotError, match="collinear: 'keep' is not known"):
        MNLTransition(features=["a"], collinear="keep").fit(table())


def test_what_was_dropped_is_in_the_file(tmp_path):
    fit, _ = heard(lambda: MNLTransition(features=["a", "b", "c"], collinear="drop").fit(table()))
    save_fit(tmp_path / "m", fit)
    again = load_fit(tmp_path / "m")
    assert again.dropped_ == ("c",)
    np.testing.assert_array_equal(again.predict_proba(table()), fit.predict_proba(table()))


def test_a_ridge_is_not_advised_where_there_is_one():
    """At most one warning about columns, and none that advises reg > 0."""
    log = ratings(8).assign(u=1.0)
    _, told = heard(lambda: MNLTransition(features=["next_state", "state:next_state"], action=None, reachable="all",
                                          reg=1.0).fit(log))  # fmt: skip
    assert told and not any("reg > 0" in text for text in told)
    assert sum("the ridge alone decides" in text for text in told) <= 1


def nearly(small, n=400):
    """p = 2x + small z, and choices by x."""
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    chosen = (x + rng.gumbel(size=(n, 3))).argmax(axis=1)
    data = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "x": x.reshape(-1)})
    data["p"] = 2.0 * data.x + small * z.reshape(-1)
    return data.assign(chosen=np.tile(np.arange(3), n) == np.repeat(chosen, 3))


@pytest.mark.filterwarnings("ignore::livarot.data.DataWarning")
def test_nearly_collinear_is_not_separable():
    """The data overlap, and no certificate may say otherwise: what is wrong is the collinearity."""
    fit, alone = (MNLTransition(features=names).fit(nearly(1e-6)) for names in (["x", "p"], ["x"]))
    assert fit.converged_ and fit.log_likelihood_ >= alone.log_likelihood_
    for small in (1e-8, 1e-9):
        with pytest.raises(LivarotError, match="collinear") as caught:
            MNLTransition(features=["x", "p"]).fit(nearly(small))
        assert "separable" not in str(caught.value)
