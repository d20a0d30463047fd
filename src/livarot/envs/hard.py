"""The hard chain of Park, Kwon and Lee, behind the lower bound and the paper's figures (certain).

States s_1 .. s_{H+2} (numbered from 0 here), start s_1, actions {-1, 1}^{d-1}.  At stage h the chain is in s_h and
moves on to s_{h+1}, or falls into the good state s_{H+2}, which pays 1 at every stage; s_{H+1} and s_{H+2} are
absorbing.  With delta = 1/H (``base_probability``), Delta (``gap``) and a sign vector x_h in {-1, 1}^{d-1} per stage:

    bD    = log( (1-delta)(delta + (d-1) Delta) / (delta (1 - delta - (d-1) Delta)) ) / (d-1)
    alpha = sqrt(bD / (1 + (d-1) bD)),   beta = sqrt(1 / (1 + (d-1) bD))
    phi(s_{h+1}|s_h, a) = (-alpha a, beta log(1/delta - 1)),   phi(s_{H+2}|s_h, a) = 0
    theta_h = (bD x_h / alpha, 1 / beta)

so that P(s_{H+2}|s_h, a) = 1/(1 + (H-1) exp(-bD x_h . a)), which is delta + (d-1) Delta at a = x_h.  Features are then
divided by their largest norm (theta multiplied by it).

Deviations: no factor B in bD (E29: it would break that identity); d counts the bias coordinate, so there are d - 1
signs and 2^(d-1) actions (E32).
"""

from __future__ import annotations

import math
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from livarot.core.problem import MNLMDP, Problem
from livarot.core.ragged import FloatArray
from livarot.errors import bad, require_non_negative, require_positive_int
from livarot.simulation.streams import stream


def paper_gap(horizon: int, n_episodes: int) -> float:
    """Delta = 1/(4 sqrt(2 H T)), the gap tuned to the number of episodes."""
    return 1.0 / (4.0 * math.sqrt(2.0 * horizon * n_episodes))


class SignFeatures(NamedTuple):
    """The numbers behind features (-alpha a, bias) and a parameter (tilt x / alpha, 1 / beta) for sign vectors."""

    tilt: float  # bD
    alpha: float
    beta: float
    bias: float  # beta log(1/delta - 1)


def sign_features(delta: float, gap: float, signs: int) -> SignFeatures:
    """bD, alpha, beta and the bias that give the right signs the probability delta + signs * gap."""
    step = float(require_non_negative("gap", gap))
    if not 0.0 < step < (1.0 - delta) / signs:
        raise bad(
            "gap",
            f"is {step:.6g}, outside (0, {(1.0 - delta) / signs:.6g})",
            cure=f"the best action reaches the good state with probability {delta:.6g} + (d-1) gap < 1",
        )
    odds = (1.0 - delta) * (delta + signs * step) / (delta * (1.0 - delta - signs * step))
    tilt = math.log(odds) / signs
    alpha = math.sqrt(tilt / (1.0 + signs * tilt))
    beta = math.sqrt(1.0 / (1.0 + signs * tilt))
    return SignFeatures(tilt, alpha, beta, beta * math.log(1.0 / delta - 1.0))


def hard_chain(
    horizon: int = 10,
    n_episodes: int = 1000,
    dim: int = 2,
    gap: float | None = None,
    seed: int = 0,
    *,
    param_bound: float | Literal["tight"] | None = None,
) -> MNLMDP:
    """The chain with random signs per stage, drawn from ``seed``.

    ``gap`` is the paper's Delta: the best action reaches the good state with probability 1/H + (d-1) gap; None is the
    paper's 1/(4 sqrt(2 H T)), T = ``n_episodes``.  ``param_bound`` None is max(1.5 (1 + log(H-1)), max|theta_h|), the
    bound the paper quotes; "tight" is max|theta_h|; or a number.

    >>> mdp = hard_chain(5, n_episodes=1000, param_bound="tight")
    >>> round(mdp.problem.param_bound, 3)
    1.403
    """
    require_positive_int("horizon", horizon, minimum=2)
    require_positive_int("n_episodes", n_episodes)
    require_positive_int("dim", dim, minimum=2)
    signs = dim - 1
    tilt, alpha, beta, _ = sign_features(1.0 / horizon, paper_gap(horizon, n_episodes) if gap is None else gap, signs)
    bias = beta * math.log(horizon - 1.0)
    actions = np.array(list(product((-1.0, 1.0), repeat=signs)))  # (A, d-1)
    moving = np.column_stack((-alpha * actions, np.full(len(actions), bias)))
    scale = float(np.linalg.norm(moving, axis=1).max())
    moving /= scale
    x = stream(seed, "hard chain signs").choice((-1.0, 1.0), size=(horizon, signs))
    theta = scale * np.column_stack((tilt / alpha * x, np.full(horizon, 1.0 / beta)))
    tight = float(np.linalg.norm(theta, axis=1).max())
    if param_bound is None:
        bound = max(1.5 * (1.0 + math.log(horizon - 1.0)), tight)
    elif param_bound == "tight":
        bound = tight
    else:
        bound = float(require_non_negative("param_bound", param_bound))
    return MNLMDP(_chain_problem(horizon, moving, bound), theta)


def _chain_problem(horizon: int, moving: FloatArray, bound: float) -> Problem:
    n_states, n_actions, dim = horizon + 2, len(moving), moving.shape[1]
    end, good = horizon, horizon + 1
    outcomes = np.full((n_states, n_actions), 2)
    outcomes[[end, good]] = 1
    next_state, features = [], []
    for s in range(horizon):
        for row in moving:
            next_state += [s + 1, good]
            features += [row, np.zeros(dim)]
    next_state += [end] * n_actions + [good] * n_actions
    features += [np.zeros(dim)] * (2 * n_actions)
    reward = np.zeros((horizon, n_states, n_actions))
    reward[:, good] = 1.0
    return Problem.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=outcomes,
        next_state=next_state,
        features=np.array(features),
        reward=reward,
        param_bound=bound,
        stage_table=np.zeros(horizon, dtype=np.int32),
    )
