"""sigma_bar against the horizon, exactly, for the hard chain, a KL-robust family and a random one.

Two numbers per model, both normalised as in the paper, sqrt( (1/H) sum_h v_h / H^2 ):

``optimal``  v_h the expected variance of V*_{h+1} under the state distribution of pi* itself, by forward propagation;
``worst``    v_h the largest variance among the states that can be reached at stage h: no trajectory has more.

The paper's curves: 1/(2 sqrt(H)) bounds ``optimal`` for every MDP (Proposition `prop:bound bar sigma optimal
trajectory`); log U/(H eta) is its rate for KL-robust MDPs, which Proposition `prop:regret bound KLCR MDP` bounds by
sqrt(log^2 U + 2 log U + 2)/(H eta).  That proof omits the nominal kernel (reading E37): log(1/p0_min) has to take the
place of log U.

The KL-robust chain is the hard chain as the nominal model, with the kernel p0 exp(-eta V*) of the paper's recursion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.envs.problems.hard import hard_chain
from livarot.envs.random_model import random_mdp
from livarot.envs.robust_embedding import kl_robust
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve_kernel
from livarot.planning.robust.plan import solve_robust
from livarot.planning.solution import PlainSolution
from livarot.theory.audits.facts import sigma_bar_worst
from livarot.theory.variance import stage_variance

HORIZONS = (4, 8, 16, 32, 64, 128)
ROBUSTNESS = 1.0  # eta of the KL-robust family
N_STATES, N_ACTIONS, N_REACHABLE, DIM = 12, 3, 4, 4


@dataclass(frozen=True, eq=False)
class Curve:
    """sigma_bar of one family: (horizons, seeds)."""

    key: str
    label: str
    horizons: tuple[int, ...]
    optimal: FloatArray = field(repr=False)
    worst: FloatArray = field(repr=False)

    def summary(self) -> dict[str, Any]:
        """Ready for JSON; ``slope`` is that of log mean on log H over the longer half of the horizons."""
        found: dict[str, Any] = {"key": self.key, "label": self.label, "horizons": list(self.horizons)}
        for name, numbers in (("optimal", self.optimal), ("worst", self.worst)):
            mean = numbers.mean(axis=1)
            half = len(self.horizons) // 2
            x, y = np.log(np.array(self.horizons[half:], dtype=np.float64)), np.log(mean[half:])
            found[name] = {
                "mean": mean.tolist(),
                "min": numbers.min(axis=1).tolist(),
                "max": numbers.max(axis=1).tolist(),
                "slope": float((x - x.mean()) @ y / ((x - x.mean()) @ (x - x.mean()))) if len(x) > 1 else None,
            }
        return found


def _chain(horizon: int, seed: int) -> tuple[float, float]:
    return _plain(hard_chain(horizon, gap=0.5 / horizon, seed=seed))


def _robust_chain(horizon: int, seed: int) -> tuple[float, float]:
    mdp = hard_chain(horizon, gap=0.5 / horizon, seed=seed)
    found = solve_robust(mdp, penalty=ROBUSTNESS, count_penalty=False)
    return _both(mdp, PlainSolution(found.value, found.q, found.policy, found.variance), found.kernel)


def _robust(horizon: int, seed: int) -> tuple[float, float]:
    return _plain(kl_robust(N_STATES, N_ACTIONS, N_REACHABLE, DIM, horizon, ROBUSTNESS, seed))


def _random(horizon: int, seed: int) -> tuple[float, float]:
    return _plain(random_mdp(N_STATES, N_ACTIONS, N_REACHABLE, DIM, horizon, seed=seed))


def _plain(mdp: MNLMDP) -> tuple[float, float]:
    kernel = transition_kernel(mdp)
    return _both(mdp, solve_kernel(mdp.problem, kernel), kernel)


def _both(mdp: MNLMDP, solution: PlainSolution, kernel: Kernel) -> tuple[float, float]:
    """sigma_bar under the optimal policy, and of the worst trajectory."""
    mean = float(stage_variance(mdp, solution, kernel).mean())
    return math.sqrt(mean), sigma_bar_worst(mdp, solution=solution)


FAMILIES: dict[str, tuple[str, Callable[[int, int], tuple[float, float]]]] = {
    "hard-chain": ("hard chain, gap 1/(2H)", _chain),
    "kl-robust-chain": (f"KL-robust hard chain, eta = {ROBUSTNESS:g}", _robust_chain),
    "kl-robust": (f"KL-robust random MDPs, eta = {ROBUSTNESS:g}", _robust),
    "random": ("random MDPs", _random),
}


def sigma_curves(n_seeds: int) -> tuple[Curve, ...]:
    """All families, seeds 0, 1, .. of each."""
    curves = []
    for key, (label, numbers) in FAMILIES.items():
        found = np.array([[numbers(horizon, seed) for seed in range(n_seeds)] for horizon in HORIZONS])
        curves.append(Curve(key, label, HORIZONS, found[:, :, 0], found[:, :, 1]))
    return tuple(curves)
