"""Draws bus_engine.png: ``python docs/img/draw_bus_engine.py`` (from the project's root).

The code of docs/bus_engine.md is run first; the picture shows its numbers.
"""

from __future__ import annotations

import doctest
import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from livarot import infinite
from livarot.data import bootstrap, plan_robust
from livarot.data.fitting.bootstrap import drawn
from livarot.infinite import InfiniteMDP
from livarot.storage import write_atomic

HERE = Path(__file__).parent
RADII = np.concatenate(([0.0], np.geomspace(1e-4, 0.1, 25)))


def page() -> dict[str, Any]:
    """The names that the page's examples leave."""
    names: dict[str, Any] = {}
    text = (HERE.parent / "bus_engine.md").read_text(encoding="utf-8")
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, "bus_engine.md", "single"), names)  # noqa: S102 (the project's own page)
    return names


def main() -> None:
    names = page()
    fit, mdp, threshold = names["fit"], names["mdp"], names["threshold"]
    refits = drawn(mdp.stage.problem, bootstrap(fit, 200).theta)
    found = [threshold(infinite.solve(InfiniteMDP(own, mdp.terms))) for own in refits]
    robust = [plan_robust(fit, mdp, radius) for radius in RADII]
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    bins, counts = np.unique(found, return_counts=True)
    left.bar(bins, counts, width=0.8, color="C0", label="refits")
    left.axvline(threshold(names["best"]), color="black", label="fit")
    left.axvline(threshold(names["robust"]), color="C3", linestyle="--", label="robust, radius of the log")
    left.set(xlabel="replace from this bin of 5000 miles on", ylabel="refits of 200", xlim=(72, 81))
    left.legend(fontsize=8, loc="upper right")
    costs = right.twinx()
    lines = [
        *right.step(RADII, [threshold(one) for one in robust], where="mid", color="C3", label="threshold (left axis)"),
        *costs.plot(
            RADII, [one.cost[0] / 1e6 for one in robust], color="C0", linestyle="--", label="cost (right axis)"
        ),
        right.axvline(float(names["radius"].max()), color="grey", linestyle=":", label="radius of the log"),
    ]
    right.set(xlabel="radius of the KL balls", ylabel="robust threshold, bin")
    right.set_xscale("symlog", linthresh=1e-4)
    right.set_xlim(0.0, RADII[-1])
    right.legend(handles=lines, fontsize=8, loc="upper left")
    costs.set_ylabel("cost in the worst case, million dollars")
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=110)
    write_atomic(HERE / "bus_engine.png", image.getvalue())


if __name__ == "__main__":
    main()
