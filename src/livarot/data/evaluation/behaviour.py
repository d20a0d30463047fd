"""The policy that made a log: its probabilities, known or estimated, and the scores of the estimate.

``"counts"``        b(a|s) = n(s, a)/n(s), the same at all steps
``"stage counts"``  b_t(a|s) = n_t(s, a)/n_t(s)
``"logit"``         a multinomial logit of the action on state and step (main effects; ridge 1/C, C = 1e4)

The score of an episode is the gradient of the log-likelihood of its actions: the sum over its steps of
(1{a_t = a} - b(a|s)) for each state (or each column of the logit) and action.  Estimates of a value that use
*estimated* probabilities vary less than with the true ones: to first order, their influence function is the residual of
its regression on the scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, IntArray
from livarot.data.evaluation.logged import LoggedEpisodes
from livarot.errors import bad
from livarot.system.sizes import require_memory

KINDS = ("counts", "stage counts", "logit")
WEAK_RIDGE = 1e4  # C of the logit: an action that was never taken in a state has no finite coefficient


class Behaviour(NamedTuple):
    """The policy that made the log."""

    kind: str  # "known" or one of KINDS
    probability: FloatArray  # (n, T) of the logged actions, 1 after the end of an episode
    scores: FloatArray | None  # (n, k) of the estimate, per episode
    logged: IntArray  # (T, S, A) how often an action was logged in a state: at that step, or at all of them
    visits: IntArray  # (T, S) how often a state was logged at a step


def behaviour_of(log: LoggedEpisodes, kind: str) -> Behaviour:
    """Known probabilities where the log has them, else an estimate of that kind."""
    if kind not in KINDS:
        raise bad("behaviour", f"{kind!r} is not known", cure=f"use one of {', '.join(map(repr, KINDS))}")
    n_states, n_actions = len(log.labels.states), len(log.labels.actions)
    require_memory("log", "its counts", 2 * log.n_steps * n_states * n_actions)
    live = log.live
    count = np.zeros((log.n_steps, n_states, n_actions), dtype=np.int64)
    step = np.broadcast_to(np.arange(log.n_steps), live.shape)
    np.add.at(count, (step[live], log.state[live], log.action[live]), 1)
    visits = count.sum(axis=2)
    if log.probability is not None or kind != "stage counts":
        pooled = np.broadcast_to(count.sum(axis=0), count.shape)
    else:
        pooled = count
    if log.probability is not None:
        return Behaviour("known", log.probability, None, pooled, visits)
    if kind == "logit":
        return Behaviour(kind, *_by_logit(log), pooled, visits)
    with np.errstate(invalid="ignore"):
        table = np.nan_to_num(pooled / pooled.sum(axis=2, keepdims=True))
    taken = np.where(live, table[step, log.state, log.action], 1.0)
    return Behaviour(kind, taken, _table_scores(log, table, by_stage=kind == "stage counts"), pooled, visits)


def _table_scores(log: LoggedEpisodes, table: FloatArray, *, by_stage: bool) -> FloatArray:
    """Scores of relative frequencies: a column per (step,) state and action that varies, but one per state."""
    n_states, n_actions = table.shape[1:]
    cells = (log.n_steps if by_stage else 1) * n_states
    require_memory("log", "the scores of its actions", len(log) * cells * n_actions)
    scores = np.zeros((len(log), cells, n_actions))
    who = np.arange(len(log))
    for t in range(log.n_steps):
        on = t < log.length
        cell = log.state[:, t] + (t * n_states if by_stage else 0)
        scores[who[on], cell[on]] -= table[t, log.state[on, t]]
        scores[who[on], cell[on], log.action[on, t]] += 1.0
    flat = scores[:, :, 1:].reshape(len(log), -1)  # those of a cell add up to 0
    return np.asarray(flat[:, np.abs(flat).max(axis=0) > 1e-12])


def _by_logit(log: LoggedEpisodes) -> tuple[FloatArray, FloatArray]:
    """Probabilities of the logged actions, and scores."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    live = log.live
    episode, step = np.nonzero(live)
    state, action = log.state[live], log.action[live]
    n_states = len(log.labels.states)
    columns = np.zeros((len(state), n_states + log.n_steps))
    require_memory("log", "the columns of the logit", 3 * columns.size)
    columns[np.arange(len(state)), state] = 1.0
    columns[np.arange(len(state)), n_states + step] = 1.0
    taken = np.ones(live.shape)
    found, place = np.unique(action, return_inverse=True)
    if len(found) == 1:
        return taken, np.zeros((len(log), 0))
    model = LogisticRegression(C=WEAK_RIDGE, fit_intercept=False, max_iter=2000, tol=1e-8).fit(columns, place)
    p = np.asarray(model.predict_proba(columns), dtype=np.float64)
    taken[live] = p[np.arange(len(place)), place]
    off = -p
    off[np.arange(len(place)), place] += 1.0
    scores = np.zeros((len(log), columns.shape[1], len(found) - 1))
    each = columns[:, :, None] * off[:, None, 1:]
    np.add.at(scores, episode, each)
    return taken, scores.reshape(len(log), -1)
