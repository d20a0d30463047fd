"""Tests of terms: by the formula, by refits without the term, and over several stages."""

import numpy as np
import pytest
from scipy.stats import chi2

from livarot.data import MNLTransition, likelihood_ratio, lr_test, term_tests, wald_test
from livarot.errors import LivarotError
from tests.support.machine_logs import fitted as machines
from tests.support.zones import fitted, table


def test_terms_are_tested():
    fit, small = fitted(), fitted("~ x + wide")
    ratio = lr_test(fit, "C(zone)")
    assert ratio == likelihood_ratio(small, fit) and ratio.df == 2
    wald = wald_test(fit, "C(zone)")
    part = fit.covariance_[:2, :2]
    assert wald.statistic == pytest.approx(fit.theta_[:2] @ np.linalg.solve(part, fit.theta_[:2]))
    assert wald.statistic == pytest.approx(ratio.statistic, rel=0.1)
    single = wald_test(fit, "x")
    assert single.statistic == pytest.approx(fit.summary().table.loc["x", "z"] ** 2)
    assert wald_test(fit, ["C(zone)[b_c]", "C(zone)[d]"]) == wald
    both = term_tests(fit, "lr")
    assert list(both.index) == ["C(zone)", "x", "wide"] and list(term_tests(fit).df) == [2, 1, 1]
    only = fitted("~ x")
    assert lr_test(only, "x").statistic == pytest.approx(2 * (only.log_likelihood_ - only.null_log_likelihood_))
    for call, message in (
        (lambda: wald_test(fit, "zone"), "there is no 'zone'; the terms are"),
        (lambda: term_tests(fit, "score"), "kind: 'score' is not known"),
        (lambda: lr_test(fitted(reg=1.0), "x"), "has a ridge"),
        (lambda: wald_test(fit, []), "is empty"),
    ):
        with pytest.raises(LivarotError, match=message):
            call()


def test_stages_add_up():
    """Chi-squares of independent stages: statistics and degrees of freedom are sums."""
    fit = machines(600, homogeneous=False, stage="week")
    found = wald_test(fit, "action:wear")
    parts = [t @ np.linalg.solve(c, t) for t, c in zip(fit.theta_, fit.covariance_, strict=True)]
    assert len(parts) == 3 and found.statistic == pytest.approx(sum(parts), rel=1e-9) and found.df == fit.theta_.size
    assert found.p_value == pytest.approx(chi2.sf(sum(parts), fit.theta_.size), rel=1e-6)
    ratio = lr_test(fit, "action:wear")
    assert ratio.df == found.df
    assert ratio.statistic == pytest.approx(2 * (fit.log_likelihood_ - fit.null_log_likelihood_))


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_units_do_not_matter(scale):
    expected = term_tests(fitted())
    np.testing.assert_allclose(term_tests(fitted(data=table(scale=scale))).statistic, expected.statistic, rtol=1e-5)


def test_weights_leave_no_likelihood_to_compare():
    fit = MNLTransition(features=["x"], weights="w").fit(table().assign(w=2.0))
    assert str(wald_test(fit, "x")).startswith("Wald chi2 = ") and " on 1 df, p = " in str(wald_test(fit, "x"))
    with pytest.raises(LivarotError, match="weights or clusters"):
        lr_test(fit, "x")
