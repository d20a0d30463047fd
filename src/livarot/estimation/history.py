"""Everything seen so far, and the ridge maximum likelihood estimate of it, for R replicas.

    theta_hat = argmin  sum over all transitions of -log p + reg/2 |theta|^2

The loss depends on the data only through how often each outcome of a pair was seen, so those counts are kept instead of
a log of episodes: the same estimate, and neither memory nor time grows with the number of episodes once every pair has
been met.  Newton's method starts at the last estimate and takes two to four steps as a rule; a step costs
O(n U d^2 + d^3) with n the distinct pairs of the parameter: at most the transitions so far, and at most the pairs of
the model.  (The papers' algorithms cost O(t) per episode and keep O(t) numbers.)
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, IntArray
from livarot.core.compiling.jit import jit
from livarot.core.views import opened
from livarot.errors import bad
from livarot.estimation.mle import fit_counts
from livarot.estimation.omd import whitened
from livarot.estimation.seen import learn_model, pair_of
from livarot.model.episodes import Episodes, Estimate, check_episodes, check_shape, typed
from livarot.model.problem import Problem

logger = logging.getLogger(__name__)
FIRST_ROOM = 8


class History(NamedTuple):
    """The distinct pairs of every parameter and how often each outcome followed; the capacity C doubles when full."""

    pairs: IntArray  # (R, K, C)
    counts: FloatArray  # (R, K, C, U)
    used: IntArray  # (R, K) how many of the C places are used


def empty_history(problem: Problem, n_replicas: int) -> History:
    """Nothing seen yet."""
    used = np.zeros((n_replicas, problem.n_parameters), dtype=np.int64)
    room = (*used.shape, FIRST_ROOM)
    return History(np.zeros(room, dtype=np.int64), np.zeros((*room, problem.max_reachable)), used)


def record(problem: Problem, history: History, episodes: Episodes) -> History:
    """The history with one more episode per replica; transitions of pairs with one outcome are left out."""
    episodes = typed(episodes)
    check_history(problem, history, len(episodes.states))
    room = history.pairs.shape[2]
    short = int(history.used.max()) + (problem.horizon if problem.shared_parameter else 1) - room
    new = History(history.pairs.copy(), history.counts.copy(), history.used.copy())
    if short > 0 and room < problem.rows.n_pairs:
        extra = max(room, short)
        new = new._replace(
            pairs=np.pad(history.pairs, ((0, 0), (0, 0), (0, extra))),
            counts=np.pad(history.counts, ((0, 0), (0, 0), (0, extra), (0, 0))),
        )
    if not _record(learn_model(problem), *episodes, *new):
        check_episodes(problem, episodes)
    return new


def fit_history(
    problem: Problem,
    theta: FloatArray,
    history: History,
    reg: float,
    tol: float = 1e-10,
    max_iter: int = 100,
    bound: float | None = None,
) -> Estimate:
    """The ridge estimate of every replica and parameter, started at ``theta`` (R, K, d), which is not changed.

    ``gram`` is the Hessian of the objective at the estimate, ridge included.  ``tol`` bounds the Newton decrement.
    With a ``bound`` the estimate is the minimiser over |theta| <= bound.
    """
    check_history(problem, history, len(theta))
    check_shape("theta", theta, (len(theta), *problem.theta_shape))
    theta, gram = theta.copy(), np.empty((*theta.shape[:2], problem.rows.gram_size))
    report = fit_counts(problem, (history.pairs, history.counts, history.used), reg, tol, max_iter, bound, theta, gram)
    failed = int((report[:, :, 1] > tol).sum())
    if failed:
        logger.warning("Newton's method stopped after %d steps in %d of the fits", max_iter, failed)
    return whitened(problem, theta, gram)


def check_history(problem: Problem, history: History, replicas: int) -> None:
    """Refuse the history of another problem, or of other replicas: kernels index with its pairs."""
    shape = (replicas, problem.n_parameters)
    room = history.pairs.shape[2:]
    check_shape("history.used", history.used, shape)
    check_shape("history.pairs", history.pairs, (*shape, *room[:1]))
    check_shape("history.counts", history.counts, (*shape, *room[:1], problem.max_reachable))
    last = problem.rows.n_pairs - 1
    if history.pairs.size and not 0 <= history.pairs.min() <= history.pairs.max() <= last:
        raise bad("history.pairs", f"has pairs outside 0..{last}", cure="use a state that was made for this problem")
    if history.used.min() < 0 or history.used.max() > room[0]:
        raise bad("history.used", f"counts more than {room[0]} pairs, or fewer than 0")


@jit
def _record(bundle, states, actions, choices, pairs, counts, used):
    """Count one episode per replica; False if there is a transition that the problem does not have."""
    model = opened(bundle)
    if actions.shape[1] != len(model.stage_table):
        return False
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            pair = pair_of(model, h, states[r, h], actions[r, h], choices[r, h])
            if pair < 0:
                return False
            if model.graph.pair_block[pair] >= 0:
                k, at = model.stage_parameter[h], 0
                while at < used[r, k] and pairs[r, k, at] != pair:
                    at += 1
                pairs[r, k, at] = pair
                counts[r, k, at, choices[r, h]] += 1.0
                used[r, k] = max(used[r, k], at + 1)
    return True
