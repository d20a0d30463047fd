"""The unknown laws of a problem as a tabular learner sees them: one distribution over next states per pair.

Stages with the same table and the same parameter have the same *law* P_h; with one parameter per stage every stage has
a law of its own.  So a tabular agent is the homogeneous algorithm on one problem and the stage-dependent one on
another; there is no option to set, or to set wrongly.

Pairs are numbered law after law: ``first_pair[h] + s * A + a`` at stage h; the possible next states of a pair are its
rows ``row_start[pair]:row_start[pair + 1]``, as in :mod:`livarot.model.ragged`.

**Known or unknown reachable sets.**  Every learner here knows ``Problem.next_states``; with ``known=True`` the rows are
those.  An empirical law then lives on the reachable states only and a pair with one outcome needs no visit at all.
With ``known=False`` any state may follow any other, as the published tabular algorithms assume; which actions exist and
where an episode is over is known in both cases.
The difference is large: on RiverSwim swimming left is certain, so with known sets only swimming right is unknown, and
optimism is right from the first episode on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.arrays import Int32Array, IntArray
from livarot.model.derived import derived
from livarot.model.probabilities import kernel_layout
from livarot.model.problem import Problem
from livarot.model.terms.after import After, after, number_kinds, outcome_kinds


class Laws(NamedTuple):
    """The layout of laws, pairs and rows that the module's docstring describes."""

    row_start: IntArray  # (pairs of all laws + 1,)
    next_state: Int32Array  # (rows,)
    first_pair: IntArray  # (H,)
    node_start: IntArray  # (H + 1,) the states to plan for, stage by stage ...
    node_state: Int32Array  # ... all of them, or those that the start can reach if reachable sets are known
    n_actions: int
    known: bool

    @property
    def law(self) -> IntArray:
        """The number of each stage's law, (H,)."""
        return self.first_pair // (self.n_states * self.n_actions)

    @property
    def n_states(self) -> int:
        """S, from the number of pairs: each law has S A of them."""
        return (len(self.row_start) - 1) // len(set(self.first_pair.tolist())) // self.n_actions


def laws_of(problem: Problem, known: bool = True) -> Laws:
    """The laws of a problem, with known reachable sets or with any next state.

    >>> import livarot
    >>> shared = livarot.envs.river_swim(4, 6, shared_parameter=True).problem
    >>> [len(laws_of(shared, known).next_state) for known in (True, False)]  # 4 left, 2 + 3 + 3 + 2 right; 8 * 4
    [14, 32]
    """
    return _known_sets(problem) if known else _any_next_state(problem)


@derived
def _known_sets(problem: Problem) -> Laws:
    return _laws(problem, known=True)


@derived
def _any_next_state(problem: Problem) -> Laws:
    return _laws(problem, known=False)


def _laws(problem: Problem, *, known: bool) -> Laws:
    layout, per_law = kernel_layout(problem), problem.n_states * problem.n_actions
    law = {(int(table), int(parameter)): number for number, (table, parameter, _) in enumerate(layout.jobs)}
    stages = zip(problem.stage_table.tolist(), problem.stage_parameter.tolist(), strict=True)
    first_pair = np.array([law[stage] * per_law for stage in stages], dtype=np.int64)
    outcomes = problem.rows.outcomes.reshape(-1, per_law)[layout.jobs[:, 0]].reshape(-1)
    nodes = problem.nodes
    if known:
        next_state = problem.rows.next_state[_rows_of_laws(problem)]
    else:
        state = (np.arange(len(outcomes)) // problem.n_actions) % problem.n_states
        over = np.zeros(len(outcomes), dtype=np.bool_) if problem.terminal is None else problem.terminal[state]
        outcomes = np.where(outcomes > 0, np.where(over, 1, problem.n_states), 0)  # an episode that is over stays so
        pair = np.repeat(np.arange(len(outcomes)), outcomes)
        place = np.arange(len(pair)) - (np.cumsum(outcomes) - outcomes)[pair]
        next_state = np.where(over[pair], state[pair], place).astype(np.int32)
        every = np.tile(np.arange(problem.n_states, dtype=np.int32), problem.horizon)
        nodes = np.arange(problem.horizon + 1, dtype=np.int64) * problem.n_states, every
    row_start = np.concatenate(([0], np.cumsum(outcomes))).astype(np.int64)
    return Laws(row_start, next_state, first_pair, *nodes, problem.n_actions, known)


def _rows_of_laws(problem: Problem) -> IntArray:
    """The rows of the problem, law after law."""
    starts, per_law = problem.rows.row_start, problem.n_states * problem.n_actions
    tables = kernel_layout(problem).jobs[:, 0]
    return np.concatenate([np.arange(starts[t * per_law], starts[(t + 1) * per_law]) for t in tables])


def law_kinds(problem: Problem, laws: Laws) -> tuple[Int32Array, After]:
    """The kind of each outcome of the laws, and what kinds are worth (:mod:`livarot.model.terms.after`).

    A next state that cannot follow adds nothing to the reward.
    """
    follow = after(problem)
    if laws.known:
        return np.ascontiguousarray(outcome_kinds(problem)[_rows_of_laws(problem)]), follow
    if problem.next_reward is None:
        return laws.next_state, follow
    known, more, rows = laws_of(problem), np.zeros(len(laws.next_state)), _rows_of_laws(problem)
    pair = np.repeat(np.arange(len(known.row_start) - 1), np.diff(known.row_start))
    single = np.diff(laws.row_start)[pair] == 1
    more[laws.row_start[pair] + np.where(single, 0, known.next_state)] = problem.next_reward[rows]
    kind, state, gain = number_kinds(laws.next_state, more)
    return kind, follow._replace(state=state, gain=gain, span=float(np.ptp(gain)))
