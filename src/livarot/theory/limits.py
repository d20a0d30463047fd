"""How much regret is unavoidable on the hard chain: an oracle that lacks only the signs, and the rate of log T.

At s_h an action a = x_h with m wrong signs reaches the good state with probability g(n - 2m), n = d - 1,

    g(y) = 1/(1 + (H-1) e^{-bD y}),      and loses  (g(n) - g(n - 2m)) DeltaV_{h+1},   DeltaV_{h+1} = (1 - q^{H-h})/p,

p = g(n), q = 1 - p (:mod:`livarot.theory.lower`).  Where each stage has a bias e_h of its own
(:func:`livarot.envs.jittered_chain`), H-1 is times e^{e_h}, and DeltaV_{h+1} = 1 + q_{h+1} DeltaV_{h+2}, 0 at the end.

**The sign oracle** knows H, d, the base rate and the gap, and not x_h.  It keeps the exact posterior over the 2^n sign
vectors of each stage, from a uniform prior, and plays the most probable one (the first among equals).  For d = 2 that
is the myopic Bayes rule, the action of largest posterior probability of the good state; for d = 4 that rule locks in:
knowing that one of three signs is wrong, and not which, no single change looks better, and its regret is up to five
times larger.  The regret is that of a simulation, exact given the actions.  It is not a lower bound, but an agent that
has to learn the base rate too can hardly do better: "regret over the sign oracle" is how far it is from the best.

**The rate of log T** (Lai and Robbins 1985; Graves and Lai 1997), for agents that know neither base rate nor effects:
any agent whose regret is o(T^a) for all a > 0 on every chain with another theta has

    liminf Reg_T/log T >= C = sum_h DeltaV_{h+1} min over eta of sum_m binom(n, m) eta_m (g(n) - g(n - 2m))

subject to: for every theta' of a stage that agrees with theta on its best action and has another best one,
sum over actions of eta kl(g, g') >= 1.  It is about T -> infinity: at T = 1000 agents are far below C log T.

With u_j the effect of the right sign j (bD each), theta' has u_i <= 0 for some i, since a sum over wrong signs can be
<= 0 only then; by symmetry and convexity eta depends on m only, u_i = 0 and all other u_j are one v:

    for all v:  sum_m eta_m ( binom(n-1, m) kl(m bD, m v) + binom(n-1, m-1) kl(m bD, (m-1) v) ) >= 1,

kl(x, y) between the laws whose logits of the good state are lower by 2x and 2y than at the best action.  It is a linear
program in n unknowns with one constraint per v, solved by cutting planes; for n = 1 it is Lai and Robbins' constant.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
import scipy

from livarot.core.arguments import checked, several
from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory

MOST_SIGNS = 3  # of the sign oracle: its posterior has 2^n entries for each of the 2^n actions
MOST_CUTS = 200
MOST_KINDS = 12  # signs of the rate of log T: the program has one unknown for each
MOST_EPISODES = 10**8  # of the sign oracle
MOST_JITTER = 3.0  # standard deviations at which jittered_chain cuts its biases
MOST_BIAS = 10.0  # standard deviation of the stages' biases; beyond, good states are impossible or certain
LEAST_TILT = 1e-6  # effects below have divergences that rounding swallows


class SignOracle(NamedTuple):
    """The oracle's regret: of every run after T episodes, and the mean over runs after each episode."""

    regret: FloatArray  # (runs,)
    curve: FloatArray  # (T,)

    @property
    def mean(self) -> float:
        return float(self.regret.mean())

    @property
    def se(self) -> float:
        """The standard error of the mean over runs."""
        return float(self.regret.std(ddof=1) / math.sqrt(len(self.regret))) if len(self.regret) > 1 else 0.0


def _effect(horizon: int, gap: float, signs: int) -> float:
    """bD, the effect of one sign on the logit of the good state."""
    delta = 1.0 / horizon
    if not 0.0 < gap < (1.0 - delta) / signs:
        raise bad("gap", f"is {gap:.6g}, outside (0, {(1.0 - delta) / signs:.6g})")
    best = delta + signs * gap
    tilt = math.log((1.0 - delta) * best / (delta * (1.0 - best))) / signs
    if not tilt > LEAST_TILT:
        raise bad("gap", f"{gap:.6g} is lost in rounding beside {delta:.6g}", cure="take a larger one")
    return tilt


def _chain(horizon: int, tilt: float, signs: int, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
    """g(n - 2m) for m = 0..n wrong signs, (., H, n+1), and DeltaV_{h+1} for h = 1..H; ``bias`` has e_h, (., H)."""
    right = signs - 2.0 * np.arange(signs + 1)
    good = 1.0 / (1.0 + (horizon - 1.0) * np.exp(bias[:, :, None] - tilt * right))
    ahead = np.zeros_like(bias)
    for h in range(horizon - 2, -1, -1):
        ahead[:, h] = 1.0 + (1.0 - good[:, h + 1, 0]) * ahead[:, h + 1]
    return good, ahead


@checked(horizon=several, dim=several)
def sign_oracle(
    horizon: int,
    n_episodes: int,
    gap: float,
    dim: int = 2,
    *,
    bias_jitter: float = 0.0,
    n_runs: int = 1000,
    seed: int = 0,
    rule: Literal["most probable", "myopic"] = "most probable",
) -> SignOracle:
    """The regret of the oracle that lacks only the signs, on ``hard_chain(horizon, dim=dim, gap=gap)``; d <= 4.

    With ``bias_jitter`` it plays ``jittered_chain`` and knows the bias of each stage, drawn anew for every run.
    ``rule`` "myopic" plays the action of largest posterior probability of the good state instead.

    >>> found = sign_oracle(5, 200, 0.1, n_runs=50)
    >>> found.curve.shape, bool(0 < found.mean < 30)
    ((200,), True)
    """
    signs = dim - 1
    if signs > MOST_SIGNS:
        raise bad("dim", f"is {dim}", cure=f"take at most {MOST_SIGNS + 1}")
    if n_episodes > MOST_EPISODES:
        raise bad("n_episodes", f"is {n_episodes}", cure=f"take at most {MOST_EPISODES}")
    if bias_jitter > MOST_BIAS:
        raise bad("bias_jitter", f"is {bias_jitter!r}", cure=f"take at most {MOST_BIAS:g}")
    require_memory("n_runs", "the posteriors", 4 * n_runs * horizon * 4**signs)
    tilt, bias = _effect(horizon, gap, signs), np.zeros((1, horizon))
    if bias_jitter > 0.0:
        most = MOST_JITTER * bias_jitter
        drawn = stream(seed, "sign oracle bias").normal(0.0, bias_jitter, (n_runs, horizon))
        bias = np.clip(drawn, -most, most)
    good, ahead = _chain(horizon, tilt, signs, bias)
    vectors = np.array(list(product((-1, 1), repeat=signs)))
    wrong = (signs - vectors @ vectors.T) // 2  # (actions, sign vectors)
    runs, stages = np.indices((n_runs, horizon))
    shape = (n_runs, horizon, signs + 1)
    good, hit, miss = (np.broadcast_to(x, shape) for x in (good, np.log(good), np.log1p(-good)))
    draws = stream(seed, "sign oracle")
    truth = draws.integers(len(vectors), size=(n_runs, horizon))
    weight = np.zeros((n_runs, horizon, len(vectors)))  # log posterior, up to a constant
    actions, total, curve = np.zeros((n_runs, horizon), dtype=np.int64), np.zeros(n_runs), np.empty(n_episodes)
    for t in range(n_episodes):
        p = good[runs, stages, wrong[actions, truth]]
        on = np.cumprod(np.concatenate((np.ones((n_runs, 1)), 1.0 - p[:, :-1]), axis=1), axis=1)
        total += (on * (good[:, :, 0] - p) * ahead).sum(axis=1)
        curve[t] = total.mean()
        falls = np.asarray(draws.random(p.shape) < p)
        before = np.concatenate((np.zeros((n_runs, 1), dtype=np.bool_), falls[:, :-1]), axis=1)
        seen = np.logical_not(np.asarray(np.logical_or.accumulate(before, axis=1)))
        r, h = np.nonzero(seen)
        kinds = (r[:, None], h[:, None], wrong[actions[r, h]])
        weight[r, h] += np.where(falls[r, h][:, None], hit[kinds], miss[kinds])
        value = np.exp(weight[r, h] - weight[r, h].max(axis=1, keepdims=True))  # the posterior, up to a factor
        if rule == "myopic":
            value = np.einsum("nx,nax->na", value, good[r, h][:, wrong])
        best = value.max(axis=1, keepdims=True)
        actions[r, h] = np.argmax(value >= best * (1.0 - 1e-12), axis=1)
    return SignOracle(total, curve)


@checked(horizon=several, dim=several)
def chain_log_rate(horizon: int, gap: float, dim: int = 2) -> float:
    """C: the least regret per log T on the chain of an agent that is consistent for every theta (see the module).

    >>> round(chain_log_rate(10, 0.05), 2)
    76.18
    """
    signs = dim - 1
    if signs > MOST_KINDS:
        raise bad("dim", f"is {dim}", cure=f"take at most {MOST_KINDS + 1}")
    require_memory("horizon", "the stages", 4 * horizon)
    good, ahead = _chain(horizon, _effect(horizon, gap, signs), signs, np.zeros((1, horizon)))
    return float(ahead.sum() * least_visits(good[0, 0], signs)[0])


def _kl(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)))


def least_visits(good: FloatArray, signs: int) -> tuple[float, FloatArray]:
    """The least loss per stage and unit of DeltaV, and its eta (n,), by cutting planes on v."""
    wrong = np.arange(1, signs + 1)
    top = math.log(good[0] / (1.0 - good[0]))
    tilt = 0.5 * (top - math.log(good[1] / (1.0 - good[1])))
    without = np.array([math.comb(signs - 1, m) for m in wrong], dtype=np.float64)
    within = np.array([math.comb(signs - 1, m - 1) for m in wrong], dtype=np.float64)
    cost = (without + within) * (good[0] - good[1:])

    def learned(v: float) -> FloatArray:
        """Information about sign i from one visit of each kind of action, if the other effects were v."""
        other = 1.0 / (1.0 + np.exp(-(top - 2.0 * np.arange(signs + 1) * v)))
        return without * _kl(good[1:], other[1:]) + within * _kl(good[1:], other[:-1])

    cuts = [learned(tilt), learned(0.0)]
    for _ in range(MOST_CUTS):
        found = scipy.optimize.linprog(cost, A_ub=-np.array(cuts), b_ub=-np.ones(len(cuts)))
        worst = scipy.optimize.minimize_scalar(
            lambda v, eta=found.x: float(learned(v) @ eta), bounds=(-4.0 * tilt, 6.0 * tilt), method="bounded"
        )
        if worst.fun >= 1.0 - 1e-9:
            break
        cuts.append(learned(float(worst.x)))
    return float(cost @ found.x), np.asarray(found.x)
