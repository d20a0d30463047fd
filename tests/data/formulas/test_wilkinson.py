"""Formulas: the algebra, the coding of categories, references, and that any coding of one model fits alike."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import DataWarning, MNLTransition
from livarot.errors import LivarotError


def log(n=800, seed=0):
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(50.0, 10.0, n).round(1), rng.choice(["f", "m"], n)
    state, action = rng.choice(["low", "mid", "high"], n), rng.choice(["a", "b"], n)
    u = np.stack([np.zeros(n), 0.02 * age - 1.0, 0.8 * (sex == "m") + 0.3 * (action == "b") - 0.5], axis=1)
    after = np.array(["low", "mid", "high"])[(u + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return pd.DataFrame({"state": state, "action": action, "next_state": after, "age": age, "sex": sex})


LOG = log()


def fitted(formula, data=LOG, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return MNLTransition(formula=formula, **{"reachable": "all"} | options).fit(data)


@pytest.mark.parametrize(
    ("formula", "columns"),
    [
        ("~ next_state", ("next_state[low]", "next_state[mid]")),
        ("next_state ~ next_state:state", tuple(f"next_state[{t}]:state[{s}]" for t in ("low", "mid")
                                                for s in ("high", "low", "mid"))),
        ("~ next_state + next_state:sex", ("next_state[low]", "next_state[mid]", "next_state[low]:sex[m]",
                                           "next_state[mid]:sex[m]")),
        ("~ 1 | sex", ("next_state[low]", "next_state[mid]", "sex[m]:next_state[low]", "sex[m]:next_state[mid]")),
        ("~ 0 + C(sex, contr.treatment(base='m')) * next_state", ("next_state[low]", "next_state[mid]",
         "C(sex)[f]:next_state[low]", "C(sex)[f]:next_state[mid]")),
        ("~ next_state / log(age)", ("next_state[low]", "next_state[mid]", "next_state[low]:log(age)",
                                     "next_state[mid]:log(age)")),
    ],
)  # fmt: skip
def test_columns(formula, columns):
    assert fitted(formula).columns_ == columns


def test_any_coding_of_one_model_fits_alike():
    """Reference levels, margins or cells, bars or products, raw or scaled numbers: the probabilities are the same."""
    spellings = [
        "~ next_state * (age + sex)",
        "~ next_state + age:next_state + sex:next_state",
        "~ 1 | age + sex",
        "~ next_state:sex + age:next_state",
        "~ next_state + standardise(age):next_state + C(sex, Treatment('m')):next_state",
        "~ next_state + poly(age, 1):next_state + I(sex_m * 1):next_state",
    ]
    data = LOG.assign(sex_m=(LOG.sex == "m") * 1.0)
    first = fitted(spellings[0], data).predict_proba(data)
    for text in spellings[1:]:
        np.testing.assert_allclose(fitted(text, data).predict_proba(data), first, atol=1e-9)
    other = fitted(spellings[0], data, reference={"next_state": "mid", "sex": "m"})
    assert other.columns_[:2] == ("next_state[high]", "next_state[low]")
    np.testing.assert_allclose(other.predict_proba(data), first, atol=1e-9)


def test_a_categorical_has_its_own_order():
    order = pd.CategoricalDtype(["low", "mid", "high"])
    data = LOG.astype({"state": order, "next_state": order}).assign(sex=pd.Categorical(LOG.sex, ["m", "f"]))
    fit = fitted("~ next_state * sex", data)
    assert fit.columns_ == tuple(f"next_state[{t}]{s}" for s in ("", ":sex[f]") for t in ("mid", "high"))
    assert list(fit.states_) == ["low", "mid", "high"]
    terms = MNLTransition(features=["next_state:C(sex)"], reachable="all").fit(data)
    assert terms.columns_[:2] == ("next_state[mid]:C(sex)[m]", "next_state[mid]:C(sex)[f]")
    np.testing.assert_allclose(fit.predict_proba(data), terms.predict_proba(data), atol=1e-9)


def test_the_reference_of_a_list_of_terms():
    fit = MNLTransition(features=["next_state"], reference={"next_state": "mid"}, reachable="all").fit(LOG)
    assert fit.columns_ == ("next_state[high]", "next_state[low]")
    for reference, message in (({"zone": "x"}, "no category 'zone'"), ({"next_state": "x"}, "is not a category")):
        with pytest.raises(LivarotError, match=message):
            MNLTransition(features=["next_state"], reference=reference, reachable="all").fit(LOG)


def test_labels_that_are_numbers_can_be_computed_with():
    rng = np.random.default_rng(1)
    state = rng.integers(5, size=900)
    data = pd.DataFrame({"state": state, "next_state": np.clip(state + rng.integers(-1, 2, size=900), 0, 4)})
    fit = fitted("~ abs(next_state - state) + I(next_state > state)", data, action=None, reachable=None)
    assert fit.columns_ == ("abs(next_state - state)", "I(next_state > state)")


def test_offsets():
    table = pd.DataFrame({"choice": np.repeat(np.arange(200), 3), "p0": np.tile([0.2, 0.3, 0.5], 200)})
    table["x"] = np.random.default_rng(0).normal(size=600)
    table["chosen"] = (np.arange(600) % 3) == np.repeat(np.random.default_rng(1).integers(3, size=200), 3)
    by_formula = MNLTransition(formula="chosen ~ x + offset(log(p0))").fit(table)
    by_column = MNLTransition(features=["x"], nominal="p0").fit(table)
    np.testing.assert_allclose(by_formula.theta_, by_column.theta_, rtol=1e-10)
    np.testing.assert_allclose(by_formula.predict_proba(table), by_column.predict_proba(table), rtol=1e-10)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ age.mean():next_state", "may not be used"),
        ("~ next_state:__import__('os')", "may not be used"),
        ("~ next_state + nothing:next_state", "there is no column 'nothing'"),
        ("~ C(sex, contr.sum):next_state", "is not a treatment contrast"),
        ("~ next_state + offset(age)", r"offset\(age\) is the same for all next states"),
        ("~ next_state:offset(age)", r"offset\(...\) stands in a product"),
        ("~ age +", "formula: '~ age \\+'"),
        ("~ 1", "has no terms"),
        ("sex ~ next_state", "'sex' stands on the left"),
        ("~ a | b | c | d", "has 4 parts"),
        ("~ age", "column 'age': constant within every choice set"),
        (5, "formula"),
    ],
)
def test_refused(formula, message):
    with pytest.raises(LivarotError, match=message):
        fitted(formula)


def test_a_formula_or_features():
    with pytest.raises(LivarotError, match="formula and features are both given"):
        MNLTransition(features=["next_state"], formula="~ next_state", reachable="all").fit(LOG)
    with pytest.raises(LivarotError, match="is a formula"):
        MNLTransition(features=["~ next_state"], reachable="all").fit(LOG)
