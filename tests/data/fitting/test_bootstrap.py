"""The bootstrap: it repeats, and says when resamples have no maximum."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import MNLTransition, bootstrap
from tests.support.machine_logs import fitted


def test_the_bootstrap_repeats_and_a_longer_one_begins_with_the_shorter():
    fit = fitted(300)
    long, short = bootstrap(fit, 20, seed=4).theta, bootstrap(fit, 10, seed=4).theta
    assert np.array_equal(long[:10], short)
    assert not np.array_equal(short, bootstrap(fit, 10, seed=5).theta)


def test_many_resamples_without_a_maximum_are_an_error():
    log = pd.DataFrame({"state": "a", "action": "x", "next_state": ["a"] * 9 + ["b"], "z": [0.0] * 9 + [1.0]})
    fit = MNLTransition(features=["z"], reachable="all").fit(log)
    with pytest.raises(livarot.LivarotError, match="resamples have no maximum"):
        bootstrap(fit, 50)  # one in three resamples has no "b" at all
    ridge = MNLTransition(features=["z"], reachable="all", reg=0.5).fit(log)
    assert bootstrap(ridge, 50).n_failed == 0


def test_it_is_shown_in_one_line():
    shown = repr(bootstrap(fitted(100), 5))
    assert shown.startswith("Bootstrap: theta (5, 1, ") and shown.endswith("n_failed 0") and "\n" not in shown
