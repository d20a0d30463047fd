"""Writes log.csv, reachable.csv, rewards.csv, the data of docs/tutorial.md: ``python examples/machines/make_log.py``.

**Synthetic**: 80 machines are watched for 26 weeks in livarot's own simulator (``livarot.envs.machine_maintenance``),
run by a crew that is careful with worn machines and otherwise does as it pleases.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import livarot
from livarot.envs import machine_maintenance

STATES = ("new", "light", "medium", "heavy", "worn out", "broken")
ACTIONS = ("gently", "hard", "service")
COLUMNS = ("wears", "wears_hard", "breaks", "breaks_by_wear", "breaks_hard", "improves", "as_new", "repaired")
WEEKS = 26


def crew() -> np.ndarray:
    """What the crew does, (weeks, states, actions): probabilities of gently, hard, service."""
    habits = [(0.5, 0.45, 0.05), (0.5, 0.4, 0.1), (0.5, 0.3, 0.2), (0.5, 0.2, 0.3), (0.4, 0.1, 0.5), (0.1, 0.1, 0.8)]
    return np.tile(np.array(habits), (WEEKS, 1, 1))


def reachable() -> pd.DataFrame:
    """One row per (state, action, next state) with its features, in the machine's own units."""
    problem = machine_maintenance(WEEKS).problem
    rows = []
    for s, state in enumerate(STATES):
        for a, action in enumerate(ACTIONS):
            phi = problem.features(0, s, a) * problem.feature_scale
            for after, own in zip(problem.next_states(0, s, a), phi, strict=True):
                rows.append((state, action, STATES[after], *own.round(12) + 0.0))
    return pd.DataFrame(rows, columns=["state", "action", "next_state", *COLUMNS])


def log(n_machines: int, seed: int) -> pd.DataFrame:
    """One row per machine and week."""
    episodes = livarot.simulate(machine_maintenance(WEEKS), crew(), n_episodes=n_machines, seed=seed)
    machine, week = np.divmod(np.arange(n_machines * WEEKS), WEEKS)
    return pd.DataFrame(
        {
            "machine": machine,
            "week": week,
            "state": np.array(STATES)[episodes.states[:, :-1].ravel()],
            "action": np.array(ACTIONS)[episodes.actions.ravel()],
            "next_state": np.array(STATES)[episodes.states[:, 1:].ravel()],
        }
    )


def rewards() -> pd.DataFrame:
    """What a week pays: .6 gently, 1 hard, nothing while it is serviced or broken."""
    pays = {"gently": 0.6, "hard": 1.0, "service": 0.0}
    rows = [(s, a, 0.0 if s == "broken" else pays[a]) for s in STATES for a in ACTIONS]
    return pd.DataFrame(rows, columns=["state", "action", "reward"])


def main(folder: Path) -> None:
    for name, table in (("log", log(80, seed=1)), ("reachable", reachable()), ("rewards", rewards())):
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
