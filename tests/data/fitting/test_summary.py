"""What is printed about a fit: small numbers can be read, tests of terms agree with refits, LaTeX is well formed."""

import re

import numpy as np
import pandas as pd
import pytest

from livarot.data import MNLTransition, likelihood_ratio, lr_test, term_tests, wald_test
from livarot.errors import LivarotError


def table(n=400, scale=1.0):
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "zone": np.tile(["a", "b_c", "d"], n)})
    found["x"], found["wide"] = rng.normal(size=3 * n), scale * rng.normal(size=3 * n)
    u = 0.5 * found.x + 0.4 * found.wide / scale + rng.gumbel(size=3 * n)
    found["chosen"] = u == u.groupby(found.choice).transform("max")
    return found


def fitted(formula="~ C(zone) + x + wide", data=None, **options):
    return MNLTransition(formula=formula, **options).fit(table() if data is None else data)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e-6])
def test_every_coefficient_can_be_read(scale):
    """Three digits of coefficient and standard error, whatever the units."""
    fit = fitted(data=table(scale=scale))
    line = next(line for line in str(fit.summary()).splitlines() if line.startswith("wide"))
    shown = [float(word) for word in line.split()[1:]]
    row = fit.summary().table.loc["wide"]
    np.testing.assert_allclose(shown[:2], [row["coef"], row["std err"]], rtol=6e-3)
    np.testing.assert_allclose(shown[4:], [row["lower"], row["upper"]], rtol=6e-2)
    assert len({len(text) for text in str(fit.summary()).splitlines() if set(text) <= {"=", "-"}}) == 1


def test_facts():
    fit = fitted()
    facts = fit.summary().facts
    assert facts["AIC"] == pytest.approx(2 * 4 - 2 * fit.log_likelihood_)
    assert facts["BIC"] == pytest.approx(4 * np.log(400) - 2 * fit.log_likelihood_)
    assert facts["Pseudo R-squared"] == pytest.approx(1 - fit.log_likelihood_ / (-400 * np.log(3)))
    assert "BIC" in str(fit.summary()) and "BIC" in fit.summary()._repr_html_()


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


def test_latex():
    text = fitted().summary().to_latex()
    assert text.startswith(r"\begin{tabular}") and text.endswith(r"\end{tabular}")
    assert r"C(zone)[b\_c]" in text and text.count("{") == text.count("}")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 6 for line in body[:5])
