"""The figures of docs/covariates.md, docs/repeated.md and docs/coming_from.md: ``python docs/img/draw_data_pages.py``.

The models are those of the pages: their examples are run first.
"""

from __future__ import annotations

import doctest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from livarot.data import MNLTransition, plot_coefficients, plot_probabilities, value_interval

HERE = Path(__file__).parent
SPREADS, PANELS, PEOPLE, VISITS = (0.0, 0.5, 1.0, 1.5, 2.0), 200, 80, 8


def names_of(page: str) -> dict[str, Any]:
    """What the examples of a page define."""
    test = doctest.DocTestParser().get_doctest((HERE.parent / page).read_text("utf-8"), {}, page, page, 0)
    for example in test.examples:
        if example.exc_msg is None and not example.source.startswith("print"):
            exec(compile(example.source, page, "single"), test.globs)  # noqa: S102 (a page of this project)
    return test.globs


def covariates() -> Figure:
    known = names_of("covariates.md")
    fit, reward = known["fit"], known["reward"]
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_probabilities(fit, "age", state="ill", action="wait", at={"sex": "f"}, ax=left)
    ages = np.linspace(30.0, 85.0, 23)
    for sex, style in (("f", "-"), ("m", "--")):
        found = [
            value_interval(fit, fit.to_mdp(reward, 10, "well", at={"age": age, "sex": sex}, terminal="dead"))
            for age in ages
        ]
        (line,) = right.plot(ages, [one.value for one in found], style, label=f"sex {sex}")
        ends = [one.lower for one in found], [one.upper for one in found]
        right.fill_between(ages, *ends, color=line.get_color(), alpha=0.2, linewidth=0.0)
    right.set(xlabel="age", ylabel="value of the best policy, ten steps")
    right.legend(frameon=False, title="95 % intervals")
    return figure


def panel(spread: float, people: int, seed: int) -> pd.DataFrame:
    """Choices between three alternatives by people with a taste for x of their own."""
    rng = np.random.default_rng(seed)
    n = people * VISITS
    x = rng.normal(size=(n, 3))
    own = np.repeat(rng.normal(1.0, spread, size=people), VISITS)
    chosen = (own[:, None] * x + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return pd.DataFrame(
        {
            "choice": np.repeat(np.arange(n), 3),
            "person": np.repeat(np.arange(n) // VISITS, 3),
            "x": x.reshape(-1),
            "chosen": np.tile(np.arange(3), n) == np.repeat(chosen, 3),
        }
    )


def coverage(spread: float, cluster: str | None) -> float:
    """Share of 95 % intervals that hold the coefficient of a very long panel."""
    truth = MNLTransition(features=["x"]).fit(panel(spread, 20_000, seed=10**6)).theta_[0]
    inside = 0
    for seed in range(PANELS):
        fit = MNLTransition(features=["x"], cluster=cluster).fit(panel(spread, PEOPLE, seed))
        inside += abs(fit.theta_[0] - truth) <= 1.959964 * np.sqrt(fit.covariance_[0, 0])
    return inside / PANELS


def repeated() -> Figure:
    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0.95, color="0.7", linewidth=1.0, label="95 %")
    for cluster, style, label in (("person", "o-", 'cluster="person"'), (None, "s--", "no clusters")):
        share = np.array([coverage(spread, cluster) for spread in SPREADS])
        error = 2.0 * np.sqrt(share * (1.0 - share) / PANELS)
        axes.errorbar(SPREADS, share, yerr=error, fmt=style, capsize=2, label=label)
    axes.set(xlabel="spread of people's tastes", ylabel="coverage of 95 % intervals", ylim=(0.4, 1.0))
    axes.legend(frameon=False, title=f"{PANELS} panels each, ± 2 s.e.")
    return figure


def coming_from() -> Figure:
    trips = names_of("coming_from.md")["trips"]
    formula = "choice ~ C(mode) + standardise(ttme) + standardise(gc) + standardise(hinc):C(mode)"
    fit = MNLTransition(formula=formula, reference={"mode": "car"}, choice="individual", chosen="choice").fit(trips)
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    plot_coefficients(fit, ax=figure.subplots())
    return figure


def main() -> None:
    warnings.simplefilter("ignore")
    for draw in (covariates, repeated, coming_from):
        draw().savefig(HERE / f"{draw.__name__}.png", dpi=110)


if __name__ == "__main__":
    main()
