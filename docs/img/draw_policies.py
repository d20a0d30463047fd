"""Draws csv_to_policy.png and prints its table: ``python docs/img/draw_policies.py`` (from the project's root).

Four plans from the log in ``examples/machines``: what each claims, what its policy is worth under the fit with a 95 %
interval, and what it is truly worth in the simulator that made the log.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import livarot
from livarot.data import (
    MNLTransition,
    labels_of,
    plan_optimistic,
    plan_pessimistic,
    plan_robust,
    value_interval,
)
from livarot.storage import write_atomic

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "machines"
STATES = ("new", "light", "medium", "heavy", "worn out", "broken")  # in the order of the simulator
ACTIONS = ("gently", "hard", "service")
WEEKS = 26


class Row(NamedTuple):
    """One plan."""

    plan: str
    claim: float
    under_fit: livarot.data.ValueInterval
    true: float


def rows() -> list[Row]:
    """The plans of docs/csv_to_policy.md."""
    reachable = pd.read_csv(DATA / "reachable.csv")
    fit = MNLTransition(features=list(reachable.columns[3:]), reachable=reachable).fit(DATA / "log.csv")
    pays = pd.read_csv(DATA / "rewards.csv").set_index(["state", "action"])["reward"]
    mdp = fit.to_mdp(pays, horizon=WEEKS, start="new")
    start = mdp.problem.start
    nominal, robust = livarot.solve(mdp), plan_robust(fit, mdp)
    careful, hopeful = plan_pessimistic(fit, mdp), plan_optimistic(fit, mdp)
    plans = {
        "nominal": (nominal.policy, float(start @ nominal.value[0])),
        "KL-robust": (robust.policy, float(start @ robust.value[0])),
        "pessimistic": (careful.policy, careful.lower),
        "optimistic": (hopeful.policy[0], float(np.asarray(hopeful.start_value)[0])),
    }
    found = []
    for name, (policy, claim) in plans.items():
        found.append(Row(name, claim, value_interval(fit, mdp, policy), true_value(mdp, policy)))
    return found


def true_value(mdp: livarot.MNLMDP, policy: np.ndarray) -> float:
    """The value of a policy of the fitted model in the simulator, whose states have another order."""
    world, labels = livarot.envs.machine_maintenance(WEEKS), labels_of(mdp)
    states = [labels.states.index(label) for label in STATES]
    actions = np.array([ACTIONS.index(label) for label in labels.actions])
    return float(world.problem.start @ livarot.evaluate(world, actions[policy[:, states]])[0])


def table(found: list[Row]) -> list[str]:
    """The table of the page."""
    lines = ["| plan | claims | under the fit, 95 % interval | truly |", "|---|---|---|---|"]
    for row in found:
        own = row.under_fit
        middle = f"{own.value:.2f} [{own.lower:.2f}, {own.upper:.2f}]"
        lines.append(f"| {row.plan} | {row.claim:.2f} | {middle} | {row.true:.2f} |")
    return lines


def draw(found: list[Row]) -> Figure:
    figure = Figure(figsize=(7.0, 2.6), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(found))[::-1]
    value = np.array([row.under_fit.value for row in found])
    off = [value - [row.under_fit.lower for row in found], [row.under_fit.upper for row in found] - value]
    axes.errorbar(value, places, xerr=off, fmt="o", color="#0072B2", capsize=3.0, label="under the fit, 95 % interval")
    axes.plot([row.claim for row in found], places, "D", color="#E69F00", label="what the plan claims")
    axes.plot([row.true for row in found], places, "x", color="#222222", markersize=9, label="truth")
    axes.set_yticks(places, [row.plan for row in found])
    axes.set(xlabel="weeks of full pay in 26 weeks", ylim=(-0.6, len(found) - 0.4))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def main() -> None:
    found = rows()
    print("\n".join(table(found)))
    buffer = io.BytesIO()
    draw(found).savefig(buffer, format="png", dpi=150)
    write_atomic(Path(__file__).with_name("csv_to_policy.png"), buffer.getvalue())


if __name__ == "__main__":
    main()
