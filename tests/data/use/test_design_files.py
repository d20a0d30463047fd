"""Covariates in the file of a fit: they come back as they were, and what does not fit together is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from livarot.data import load_fit, save_fit
from livarot.data.use.design_files import design_tensors, design_words, read_design
from livarot.file_layout import Misfit
from tests.support.machine_logs import PAYS, fitted, with_covariates

NEW = pd.DataFrame({"state": ["worn", "new"], "action": "run", "age": [0.5, 2.0], "kind": ["saw", "drill"]})


@pytest.fixture(scope="module")
def fit():
    return with_covariates()


@pytest.fixture
def stored(fit):
    """What a file has of the covariates, and the choices without them."""
    bare = replace(fit.choices_, design=None, profile={})
    return design_tensors(fit.choices_), design_words(fit.choices_), bare


def test_a_fit_without_covariates_has_no_design():
    choices = fitted(100).choices_
    assert design_tensors(choices) == {} and design_words(choices) is None


def test_a_design_comes_back(fit, stored):
    own = fit.choices_.design
    design, profile = read_design(*stored)
    assert design.names == own.names and design.uses == own.uses
    assert [(f.text, f.name, f.category) for f in design.factors] == [(f.text, f.name, f.category) for f in own.factors]
    for name in ("start", "state", "action", "next_state"):
        np.testing.assert_array_equal(getattr(design.sets, name), getattr(own.sets, name))
    np.testing.assert_array_equal(design.sets.rows(slice(None)), own.sets.rows(slice(None)))
    assert set(profile) == {"age", "kind"}
    for name, values in fit.choices_.profile.items():
        assert profile[name].tolist() == values.tolist() and profile[name].dtype == values.dtype


def test_a_file_predicts_as_the_fit_did(fit, tmp_path):
    save_fit(tmp_path / "model", fit)
    again = load_fit(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(NEW), fit.predict_proba(NEW))
    at = {"age": 1.0, "kind": "saw"}
    one, two = (x.to_mdp(PAYS, 3, "new", at=at, terminal="broken") for x in (fit, again))
    np.testing.assert_array_equal(one.theta, two.theta)
    assert one.problem.same_as(two.problem)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("base_start", lambda x: x[:-1], "not a partition"),
        ("base_state", lambda x: x + 99, "base_state"),
        ("base_next_state", lambda x: None, "no states and actions"),
        ("base_features", lambda x: None, "incomplete"),
        ("base_action", lambda x: x * 0, "without a set"),
        ("base_offset", lambda x: np.zeros(3), "other parts"),
        ("profile", lambda x: x[:, :1], "are missing"),
        ("profile", lambda x: x + 0.25, "profile"),
        ("profile", lambda x: x - 50.0, "profile"),
    ],
)
def test_tensors_that_do_not_fit(stored, name, change, message):
    tensors, words, bare = stored
    changed = change(tensors.get(name))
    tensors = {key: value for key, value in (tensors | {name: changed}).items() if value is not None}
    with pytest.raises(Misfit, match=message):
        read_design(tensors, words, bare)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: None, "incomplete"),
        (lambda w: w | {"uses": w["uses"][:-1]}, "covariates that it does not have"),
        (lambda w: w | {"uses": [[["age", 7]]] * len(w["uses"])}, "covariates that it does not have"),
        (lambda w: w | {"factors": [["age", "other", "age"]]}, "is not a covariate"),
        (lambda w: w | {"profile": w["profile"][::-1]}, "other names"),
    ],
)
def test_words_that_do_not_fit(stored, change, message):
    tensors, words, bare = stored
    with pytest.raises(Misfit, match=message):
        read_design(tensors, change(words), bare)
