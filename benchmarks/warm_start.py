"""Does a start from logged data help?  ``python -m benchmarks.warm_start [--json] [--figure docs/img/warm_start.png]``

Machine maintenance, 26 weeks (synthetic).  Every seed has its own log of some machines under the crew of
``examples/machines/make_log.py``, and its own fit (a little ridge, .3: a short log may lack some event).  Then

cold        ``Livarot()`` from zero
warm N      the same agent, started from the fit to N machines (``livarot.data.warm_start``)
fit N       no learning: the optimal policy of that fit, for ever

play the same episodes (same seeds, numbers of the log drawn apart).  Regret is exact.  Reported: mean cumulative regret
with its standard error over seeds, and the paired difference warm - cold.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import importlib.util
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import livarot
from livarot.data import DataWarning, MNLTransition, warm_start
from livarot.envs.problems.maintenance import machine_maintenance
from livarot.storage import write_atomic

ROOT = Path(__file__).parents[1]
MACHINES = (10, 40, 80)
SHOWN = (10, 40, 80)  # whose fit without learning is shown too
BOUND = 12.0  # what the agents know about |theta|; the truth is 8.1
LOG_SEEDS = 10_000  # the logs' seeds begin here, away from those of the runs
COLOUR = {"cold": "#222222", 10: "#E69F00", 40: "#0072B2", 80: "#009E73"}
MARKER = {"cold": "o", 10: "s", 40: "^", 80: "D"}


def example() -> Any:
    """The module that makes the example's data."""
    spec = importlib.util.spec_from_file_location("make_log", ROOT / "examples" / "machines" / "make_log.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fitted(machines: int, seed: int) -> MNLTransition:
    made = example()
    model = MNLTransition(features=list(made.COLUMNS), reachable=made.reachable(), reg=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a short log may not have met every event
        return model.fit(made.log(machines, LOG_SEEDS + seed))


def study(n_seeds: int, n_episodes: int, machines: tuple[int, ...] = MACHINES) -> dict[str, Any]:
    """Cumulative regret (seeds, episodes) of every side."""
    truth = machine_maintenance(param_bound=BOUND)
    agent = livarot.agents.Livarot()
    found = {"cold": livarot.run(truth, agent, n_episodes, seed=range(n_seeds)).regret.cumsum(axis=1)}
    optimum = float(truth.problem.start @ livarot.solve(truth).value[0])
    for n in machines:
        warm, plain = [], []
        for seed in range(n_seeds):
            fit = fitted(n, seed)
            started = warm_start(agent, truth.problem, fit)
            warm.append(livarot.run(truth, started, n_episodes, seed=seed).regret[0].cumsum())
            own = livarot.MNLMDP(truth.problem, fit.theta_[None] * truth.problem.feature_scale)
            value = livarot.evaluate(truth, livarot.solve(own).policy)[0]
            plain.append(optimum - float(truth.problem.start @ value))
        found[f"warm {n}"] = np.stack(warm)
        found[f"fit {n}"] = np.outer(plain, np.arange(1, n_episodes + 1))
    return found


def table(found: dict[str, Any]) -> list[dict[str, Any]]:
    cold = found["cold"][:, -1]
    rows = []
    for name, curves in found.items():
        last = curves[:, -1]
        gain = cold - last
        rows.append(
            {
                "side": name,
                "regret": float(last.mean()),
                "se": float(last.std(ddof=1) / np.sqrt(len(last))),
                "less_than_cold": float(gain.mean()),
                "less_se": float(gain.std(ddof=1) / np.sqrt(len(gain))),
                "seeds_better": int((gain > 0).sum()),
                "seeds": len(last),
            }
        )
    return rows


def draw(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(8.0, 3.8), layout="constrained")
    axes = figure.subplots()
    top = 1.15 * max(curves.mean(axis=0)[-1] for name, curves in found.items() if "fit" not in name)
    for name, curves in found.items():
        kind, _, n = name.partition(" ")
        if kind == "fit" and int(n) not in SHOWN:
            continue
        start = "cold" if kind == "cold" else int(n)
        colour = COLOUR[start]
        label = {"cold": "from zero", "warm": f"from {n} logged machines", "fit": f"fit to {n}, no learning"}[kind]
        mean, se = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
        episodes = np.arange(1, len(mean) + 1)
        if mean[-1] > top:
            label += f" ({mean[-1]:.0f} in the end)"
        style = {"linestyle": ":" if kind == "fit" else "-", "marker": MARKER[start], "markevery": 50, "markersize": 4}
        axes.plot(episodes, mean, color=colour, label=label, **style)
        if kind != "fit":
            axes.fill_between(episodes, mean - se, mean + se, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("machines run after the start")
    axes.set_ylabel("cumulative regret (weeks of full pay)\nmean over seeds, bands ± 1 standard error")
    axes.set_xlim(0, None)
    axes.set_ylim(0, top)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description="Start from logged data, or from zero.")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = study(options.seeds, options.episodes)
    rows = table(found)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print(f"{options.seeds} seeds, {options.episodes} episodes; cumulative regret, +- one standard error")
        for row in rows:
            gain = (
                f"{row['less_than_cold']:8.2f} +- {row['less_se']:.2f}, {row['seeds_better']} of {row['seeds']} seeds"
            )
            print(f"{row['side']:<9}{row['regret']:9.2f} +- {row['se']:<6.2f} less than cold: {gain}")
    if options.figure is not None:
        buffer = io.BytesIO()
        draw(found).savefig(buffer, format="png", dpi=150)
        write_atomic(options.figure, buffer.getvalue())


if __name__ == "__main__":
    main()
