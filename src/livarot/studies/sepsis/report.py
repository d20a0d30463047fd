"""The files of the sepsis demonstration: one figure, ``summary.json``, ``survival.csv`` and a text on what they say."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from livarot.report.drawing import STYLE
from livarot.report.output import check_folder, write_all
from livarot.studies.sepsis.experiment import Curve, SepsisStudy
from livarot.studies.writing import contents, filled, seeds_told, spread

BLUE, ORANGE, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#222222"


def write_files(study: SepsisStudy, folder: str | os.PathLike[str]) -> list[Path]:
    """Write all files, each complete or not at all; all are rendered before the first one is written."""
    check_folder(folder)
    tables = {"survival.csv": table(study)}
    return write_all(folder, contents(text(study), study.summary(), tables, {"sepsis": figure(study)}))


def table(study: SepsisStudy) -> str:
    """Survival under the policy planned after so many patients, one line per dimension, seed and plan."""
    lines = ["dim,seed,patients,survival,belief"]
    for curve in study.curves:
        for r, seed in enumerate(study.seeds):
            for k, patients in enumerate(curve.patients):
                numbers = f"{curve.survival[r, k]:.10g},{curve.belief[r, k]:.10g}"
                lines.append(f"{curve.dim},{seed},{patients},{numbers}")
    return "\n".join(lines) + "\n"


def rows(study: SepsisStudy) -> list[list[str]]:
    """The table of the results: policy, survival, deaths that the optimum would have avoided."""
    found = [["optimal policy", f"{study.optimum:.4f}", ""]]
    for curve in study.curves:
        lost = curve.lost(study.optimum)
        name = f"LIVAROT, d = {curve.dim}, after {study.n_patients} patients"
        found.append([name, _spread(curve.survival[:, -1], 4), _spread(lost, 1)])
    away = study.n_patients
    found.append(["nominal optimum", f"{study.nominal:.4f}", f"{away * (study.optimum - study.nominal):.1f}"])
    for radius, value in study.robust:
        found.append([f"KL-robust, radius {radius:g}", f"{value:.4f}", f"{away * (study.optimum - value):.1f}"])
    found.append(["random treatment", f"{study.random:.4f}", f"{away * (study.optimum - study.random):.1f}"])
    return found


def text(study: SepsisStudy) -> str:
    """What was done and what came out, every number from the study."""
    paragraphs = [
        "A demonstration on a public simulator (ICU-Sepsis). It is not medical advice: the hospital is made up, the "
        "simulator's own model is an estimate from records, and nothing here was checked on patients.",
        f"A hospital with weights {_list(study.weights)} on (death x vasopressor, death x fluid, SOFA x vasopressor, "
        f"SOFA x fluid), {study.horizon} treatments per patient, {study.n_patients} patients, "
        f"{seeds_told(len(study.seeds))}; mean and standard deviation over seeds. Survival is exact, given the policy.",
    ]
    closed = study.optimum - study.nominal
    for curve in study.curves:
        ahead = [int(p) for p, s in zip(curve.patients, curve.survival.mean(axis=0), strict=True) if s > study.nominal]
        share = (curve.survival[:, -1].mean() - study.nominal) / closed if closed > 0 else float("nan")
        first = f"; after {ahead[0]} patients its mean stays above the nominal optimum" if _stays(study, curve) else ""
        paragraphs.append(
            f"d = {curve.dim}: LIVAROT starts at the nominal model, with a policy under which "
            f"{curve.survival[:, 0].mean():.3f} of the patients survive (optimism tries what it does not know), and "
            f"ends at {_spread(curve.survival[:, -1], 4)}, which closes {100 * share:.1f} % of the gap between the "
            f"nominal optimum and the optimum{first}. While learning it lost "
            f"{_spread(curve.lost(study.optimum), 1)} patients that the optimal policy would have saved."
        )
    if study.robust:
        radius, value = max(study.robust, key=lambda pair: pair[1])
        paragraphs.append(
            f"The KL-robust policies do not learn. Under the best one here (radius {radius:g}) {value:.4f} of the "
            f"patients survive, under the nominal optimum {study.nominal:.4f}."
        )
    return filled(paragraphs)


def figure(study: SepsisStudy) -> Figure:
    """Survival of the current policy against patients treated, one panel per dimension."""
    with mpl.rc_context(STYLE):
        count = len(study.curves)
        drawn = Figure(figsize=(3.9 * count + 0.4, 3.5))
        axes = drawn.subplots(1, count, sharey=True, squeeze=False)[0]
        for panel, curve in zip(axes, study.curves, strict=True):
            _panel(panel, study, curve)
        axes[0].set_ylabel("probability of survival")
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.suptitle("ICU-Sepsis, a made-up hospital (no medical advice)", fontsize=9.5)
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, handlelength=2.6)
        return drawn


def _panel(axes: Axes, study: SepsisStudy, curve: Curve) -> None:
    at = curve.patients + 1  # the patient that the plan is for
    mean, low, high = curve.survival.mean(axis=0), curve.survival.min(axis=0), curve.survival.max(axis=0)
    axes.axhline(study.optimum, color=GREY, linestyle="-", linewidth=1.0, label="optimal policy")
    axes.axhline(study.nominal, color=ORANGE, linestyle=(0, (6, 1.5)), label="nominal optimum")
    if study.robust:
        values = [value for _, value in study.robust]
        radii = [radius for radius, _ in study.robust]
        name = f"KL-robust, radius {min(radii):g} to {max(radii):g}"
        axes.axhspan(min(values), max(values), color=PURPLE, alpha=0.15, linewidth=0, label=name)
        axes.axhline(max(values), color=PURPLE, linestyle=(0, (5, 1, 1, 1)), linewidth=1.0, label="best KL-robust")
    axes.axhline(study.random, color=GREY, linestyle=(0, (1, 1)), label="random treatment")
    axes.fill_between(at, low, high, step="post", color=BLUE, alpha=0.15, linewidth=0)
    name = f"LIVAROT, mean and range of {len(study.seeds)} seeds"
    axes.step(at, mean, where="post", color=BLUE, marker="o", markersize=2.5, label=name, zorder=4)
    axes.set_xscale("log")
    axes.set_xlim(1, curve.patients[-1] + 1)
    known = "log p0 known" if curve.dim == 4 else "its coefficient learned too"
    axes.set_title(f"d = {curve.dim}: {known}")
    axes.set_xlabel("patient")


def _stays(study: SepsisStudy, curve: Curve) -> bool:
    """Once above the nominal optimum, is the mean above it for good?"""
    above = curve.survival.mean(axis=0) > study.nominal
    return bool(above.any() and above[int(np.argmax(above)) :].all())


def _spread(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], digits: int) -> str:
    return f"{values.mean():.{digits}f} ± {spread(values):.{digits}f}"


def _list(numbers: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{x:g}" for x in numbers) + ")"
