"""Logged episodes of a model without an end: what was cut off after the last logged step.

With T the length of the longest episode and gamma the discount, the value of a stationary policy is

    V = E sum_{t < T} gamma^t r_t + gamma^T E[V(s_T)],     low/(1 - gamma) <= V(s) <= high/(1 - gamma)

for rewards in [low, high], those of the model.  The first part is what estimators see: it is the value of the model
with T steps.  Of the second one only the range is known without trusting the law; its middle is added to every
estimate, and half its width, ``truncation``, to both sides of every interval.  It falls as gamma^T: where it exceeds
the standard error, episodes are too short for that discount.

Where a model has terminal states, a shorter episode has ended in one; otherwise all have to have one length.  An ended
episode earns nothing more, so that 0 is in the range too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from livarot.core.arrays import FloatArray
from livarot.data.evaluation.estimators import Interval
from livarot.data.evaluation.logged import LoggedEpisodes
from livarot.data.reading.table import Table, read_table
from livarot.data.use.policy_table import policy_array
from livarot.errors import bad
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.model.problem import MNLMDP


def cut_model(log: LoggedEpisodes, mdp: InfiniteMDP) -> MNLMDP:
    """The model of as many steps as the log has; episodes that were cut at different lengths are refused."""
    if mdp.discount is None or mdp.discount == 1.0:
        told = "has no discount: what a log says about the average reward of a chain without an end is not estimated"
        raise bad("mdp", told, cure="give to_mdp(discount=...) below 1, or a horizon")
    last = np.arange(len(log)), log.length - 1
    rows, pair = mdp.problem.rows, log.state[last] * mdp.problem.n_actions + log.action[last]
    ends = np.concatenate(([0], np.cumsum(mdp.problem.terms.terminal[rows.next_state])))
    may_end = ends[rows.row_start[pair + 1]] > ends[rows.row_start[pair]]
    cut = np.flatnonzero((log.length < log.n_steps) & ~may_end)
    if len(cut):
        told = f"an episode has {log.length[cut[0]]} of {log.n_steps} steps and cannot have ended in a terminal state"
        cure = f"keep the first {int(log.length.min())} steps of every episode"
        raise bad("log", told, index=int(cut[0]), count=len(cut), cure=cure)
    return mdp.with_horizon(log.n_steps)


def stationary_policy(policy: Any, log: LoggedEpisodes, mdp: InfiniteMDP) -> FloatArray:
    """The same law at every step, (T, S, A), from actions (S,), probabilities (S, A) or a table without stages."""
    n, n_actions = mdp.problem.n_states, mdp.problem.n_actions
    if isinstance(policy, str | Path | pd.DataFrame | Table):
        table = read_table(policy)
        if "stage" in table:
            raise bad("policy", "has stages, and the model has none", cure="give one action per state")
        once = mdp.with_terms(start=np.full(n, 1.0 / n)).with_horizon(1)
        staged = table.with_column("stage", [0] * table.n_rows)
        law = policy_array(staged, log.labels, once, np.zeros((1, n), dtype=np.bool_))[0]
    else:
        found = check_stationary(mdp.problem, policy)
        law = np.eye(n_actions)[found] if found.ndim == 1 else found
    return np.repeat(law[None], log.n_steps, axis=0)


def later_rewards(log: LoggedEpisodes, mdp: InfiniteMDP) -> tuple[float, float]:
    """The least and the most that the steps after the log can add, by the rewards of the model."""
    problem, gamma = mdp.problem, float(mdp.discount or 0.0)
    pays = np.repeat(problem.scaled_pay(gamma).reshape(-1), problem.rows.outcomes)  # a terminal state's: (1 - gamma) g
    if problem.scaled_outcome_reward is not None:
        pays = pays + problem.scaled_outcome_reward
    none = 0.0 if problem.terms.terminal.any() else pays[0]
    share = problem.terms.unit * gamma**log.n_steps / (1.0 - gamma)
    return share * min(float(pays.min()), none), share * max(float(pays.max()), none)


def completed(found: dict[str, Interval], later: tuple[float, float]) -> dict[str, Interval]:
    """Estimates of the first steps as estimates of all of them."""
    low, high = later
    return {
        name: Interval(one.value + 0.5 * (low + high), one.standard_error, one.lower + low, one.upper + high)
        for name, one in found.items()
    }
