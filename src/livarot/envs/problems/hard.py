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

In :func:`jittered_chain` (ours) the bias differs between stages: its coordinate of theta_h is
(1 + e_h / log(1/delta - 1)) / beta, e_h normal and cut at 3 standard deviations, so that the logit of going on is
log(H-1) + e_h - bD x_h . a.  A learner that assumes all stages to be alike is wrong there.

Deviations: no factor B in bD (E29: it would break that identity); d counts the bias coordinate, so there are d - 1
signs and 2^(d-1) actions (E32).
"""

from __future__ import annotations

import math
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from livarot.core.arguments import checked, several
from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.model.problem import MNLMDP, Problem
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory

MOST_JITTER = 3.0  # standard deviations
MOST_SIGNS = 40  # 2^40 actions are more than any machine holds; beyond that the number itself is too large to print


def require_sign_actions(signs: int) -> None:
    """Refuse so many signs that the 2^signs actions cannot be listed."""
    if signs > MOST_SIGNS:
        raise bad("dim", f"{signs} signs are 2^{signs} actions", cure="take a smaller dim")
    require_memory("dim", f"a list of 2^{signs} actions", 2**signs * (signs + 8))


@checked
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
    step = gap
    if delta < 1e-300:
        raise bad("base_probability", f"{delta:.6g} is so small that its odds overflow", cure="take at least 1e-300")
    if not 0.0 < step < (1.0 - delta) / signs:
        raise bad(
            "gap",
            f"is {step:.6g}, outside (0, {(1.0 - delta) / signs:.6g})",
            cure=f"the best action reaches the good state with probability {delta:.6g} + (d-1) gap < 1",
        )
    odds = (1.0 - delta) * (delta + signs * step) / (delta * (1.0 - delta - signs * step))
    tilt = math.log(odds) / signs
    if tilt <= 0.0:
        raise bad("gap", f"{step:.6g} is lost in rounding beside {delta:.6g}", cure="take at least 1e-15")
    alpha = math.sqrt(tilt / (1.0 + signs * tilt))
    beta = math.sqrt(1.0 / (1.0 + signs * tilt))
    return SignFeatures(tilt, alpha, beta, beta * math.log(1.0 / delta - 1.0))


@checked(horizon=several, dim=several)
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
    return _chain(horizon, dim, paper_gap(horizon, n_episodes) if gap is None else gap, seed, 0.0, param_bound)


@checked(horizon=several, dim=several)
def jittered_chain(
    horizon: int = 10,
    dim: int = 2,
    gap: float = 0.05,
    bias_jitter: float = 0.5,
    seed: int = 0,
    *,
    param_bound: float | Literal["tight"] | None = None,
) -> MNLMDP:
    """The chain with a bias of its own per stage; ``bias_jitter`` is the standard deviation of its logit.

    ``param_bound`` as for :func:`hard_chain`, None with the largest |theta_h| that can be drawn: all seeds have one
    :class:`livarot.Problem`.

    >>> mdp, plain = jittered_chain(seed=1), hard_chain(gap=0.05, seed=1)
    >>> bool((mdp.theta[:, 0] == plain.theta[:, 0]).all()), bool((mdp.theta[:, 1] == plain.theta[:, 1]).any())
    (True, False)
    """
    if horizon < 3:
        raise bad("horizon", "the bias of a chain of 2 stages is 0", cure="take a longer one")
    return _chain(horizon, dim, gap, seed, bias_jitter, param_bound)


def _chain(
    horizon: int, dim: int, gap: float, seed: int, jitter: float, param_bound: float | Literal["tight"] | None
) -> MNLMDP:
    signs = dim - 1
    require_sign_actions(signs)
    require_memory("horizon", "the rewards and rows of the chain", 2**signs * horizon * (horizon + 2 + 2 * dim + 8))
    tilt, alpha, beta, _ = sign_features(1.0 / horizon, gap, signs)
    bias = beta * math.log(horizon - 1.0)
    actions = np.array(list(product((-1.0, 1.0), repeat=signs)))  # (A, d-1)
    moving = np.column_stack((-alpha * actions, np.full(len(actions), bias)))
    scale = float(np.linalg.norm(moving, axis=1).max())
    moving /= scale
    x = stream(seed, "hard chain signs").choice((-1.0, 1.0), size=(horizon, signs))
    common, furthest = np.full(horizon, 1.0 / beta), 0.0
    if jitter > 0.0:
        most = MOST_JITTER * jitter / bias
        common += np.clip(stream(seed, "hard chain bias").normal(0.0, jitter / bias, horizon), -most, most)
        furthest = scale * math.hypot(tilt / alpha * math.sqrt(signs), 1.0 / beta + most)
    theta = scale * np.column_stack((tilt / alpha * x, common))
    tight = float(np.linalg.norm(theta, axis=1).max())
    if param_bound is None:
        bound = max(1.5 * (1.0 + math.log(horizon - 1.0)), tight, furthest)
    elif param_bound == "tight":
        bound = tight
    else:
        bound = param_bound
    return MNLMDP(_chain_problem(horizon, moving, bound), theta)


def _chain_problem(horizon: int, moving: FloatArray, bound: float) -> Problem:
    n_states, n_actions, dim = horizon + 2, len(moving), moving.shape[1]
    end, good = horizon, horizon + 1
    outcomes = np.full((n_states, n_actions), 2)
    outcomes[[end, good]] = 1
    next_state = np.full((horizon, n_actions, 2), good)
    next_state[:, :, 0] = np.arange(1, horizon + 1)[:, None]
    features = np.zeros((horizon, n_actions, 2, dim))
    features[:, :, 0] = moving
    ends = np.repeat([end, good], n_actions)
    reward = np.zeros((horizon, n_states, n_actions))
    reward[:, good] = 1.0
    return Problem.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=outcomes,
        next_state=np.append(next_state, ends),
        features=np.concatenate((features.reshape(-1, dim), np.zeros((len(ends), dim)))),
        reward=reward,
        param_bound=bound,
        stage_table=np.zeros(horizon, dtype=np.int32),
    )
