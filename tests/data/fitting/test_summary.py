"""What is printed about a fit: small numbers can be read, LaTeX is well formed."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.zones import fitted, table


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


def test_latex():
    text = fitted().summary().to_latex()
    assert text.startswith(r"\begin{tabular}") and text.endswith(r"\end{tabular}")
    assert r"C(zone)[b\_c]" in text and text.count("{") == text.count("}")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 6 for line in body[:5])


def test_no_coefficient_that_the_data_say_anything_about():
    """As in a file whose Hessian is 0: the facts are shown, and an empty table."""
    summary = fitted().summary()
    shown = str(replace(summary, table=summary.table.iloc[:0]))
    assert "MNL transition model" in shown and "coef" in shown
