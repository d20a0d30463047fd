"""Exact regret on the chain with a fixed gap .5/H, many seeds: ``python -m benchmarks.fixed_gap [n_seeds]``.

The settings of the paper have heavy tails (a few seeds lock in on a wrong action), so the table has the median, the
worst seed and the share of locked-in seeds (regret above half of the uniform policy's) beside the mean and its
standard error.
B is the bound of the paper, 1.5 (1 + log(H-1)), or the tight max|theta_h|: it sets the ball and LIVAROT's radius.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import livarot
from livarot.agents import UCRLMNLOL, CertaintyEquivalent, Livarot, Uniform

N_EPISODES = 1000
AGENTS: dict[str, Any] = {
    "uniform": Uniform(),
    "UCRL-MNL-OL paper()": UCRLMNLOL.paper(),
    "LIVAROT paper(), tau=0": Livarot(step_size=20.0, reg=10.0, beta_scale=0.01, printed_radius=True),
    "LIVAROT paper(), tau=80": Livarot.paper(),
    "LIVAROT default": Livarot(),
    "certainty-equivalent": CertaintyEquivalent(),
}


def main(n_seeds: int = 200) -> None:
    seeds = range(n_seeds)
    print(f"T = {N_EPISODES}, {n_seeds} seeds; mean +- standard error, median, worst seed, locked-in share")
    for horizon in (5, 10):
        for bound in (None, "tight"):
            models = [
                livarot.envs.hard_chain(horizon, N_EPISODES, gap=0.5 / horizon, seed=s, param_bound=bound)
                for s in seeds
            ]
            half = np.inf
            for name, agent in AGENTS.items():
                total = livarot.run(models, agent, N_EPISODES, seed=seeds, workers=2).regret.sum(axis=1)
                half = 0.5 * total.mean() if name == "uniform" else half
                error = total.std(ddof=1) / np.sqrt(n_seeds)
                print(
                    f"H={horizon:<3} B={'paper' if bound is None else bound:<6} {name:<24}"
                    f" {total.mean():7.1f} +- {error:5.1f}  median {np.median(total):7.1f}  worst {total.max():7.1f}"
                    f"  locked {np.mean(total > half):6.1%}"
                )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
