"""How often each pair led to each of its next states: all that a tabular learner keeps.

Counts (R, rows) lie in the layout of :mod:`livarot.model.tabular_view`: stages that have one law share them.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from livarot.core.arrays import Int32Array, IntArray
from livarot.core.compiling.jit import jit
from livarot.errors import bad
from livarot.model.episodes import Episodes, Played, check_shape, refuse_foreign, typed
from livarot.model.tabular_view import Laws
from livarot.system.sizes import require_memory


def initial_counts(laws: Laws, n_replicas: int) -> IntArray:
    """No visits yet, (R, rows)."""
    require_memory("n_replicas", "the counts of all replicas", n_replicas * len(laws.next_state))
    return np.zeros((n_replicas, len(laws.next_state)), dtype=np.int64)


def count_episodes(laws: Laws, counts: IntArray, episodes: Episodes) -> IntArray:
    """The counts after one more episode per replica; the old ones are left as they were.

    >>> import livarot
    >>> from livarot.model.tabular_view import laws_of
    >>> problem = livarot.envs.river_swim(3, 4, shared_parameter=True).problem
    >>> episode = livarot.Episodes.from_states(problem, [[0, 0, 1, 1, 2]], [[1, 1, 1, 1]])
    >>> counts = count_episodes(laws_of(problem), initial_counts(laws_of(problem), 1), episode)
    >>> pair_visits(laws_of(problem), counts).reshape(3, 2)  # state, action
    array([[0, 2],
           [0, 2],
           [0, 0]])
    """
    episodes = typed(episodes)
    check_shape("counts", counts, (len(episodes.states), len(laws.next_state)))
    states, actions, choices = episodes
    outcome = choices if laws.known else _next_states(laws, states, actions)
    refuse_foreign(laws.row_start, laws.law, laws.n_states, laws.n_actions, Played(states, actions, outcome))
    new = counts.copy()
    _count(laws.row_start, laws.first_pair, laws.n_actions, states, actions, outcome, new)
    return new


def count_states(visits: IntArray, episodes: Episodes) -> IntArray:
    """N'_h(s): visits of each state at each stage, (R, H, S), after one more episode per replica."""
    episodes = typed(episodes)
    check_shape("state_visits", visits, (*episodes.actions.shape, *np.shape(visits)[2:3]))
    if not 0 <= episodes.states.min() <= episodes.states.max() < visits.shape[2]:
        raise bad("episodes", "have states of another problem", cure=f"they are numbered 0..{visits.shape[2] - 1}")
    new = visits.copy()
    _count_states(episodes.states, new)
    return new


def pair_visits(laws: Laws, counts: IntArray) -> IntArray:
    """N(s, a) of each law, (R, pairs)."""
    some = np.diff(laws.row_start) > 0  # pairs without rows do not exist
    if some.all():
        return np.asarray(np.add.reduceat(counts, laws.row_start[:-1], axis=1))
    visits = np.zeros((len(counts), len(some)), dtype=counts.dtype)
    visits[:, some] = np.add.reduceat(counts, laws.row_start[:-1][some], axis=1)
    return visits


def _next_states(laws: Laws, states: Int32Array, actions: Int32Array) -> Int32Array:
    """The place of each next state among all states; 0 where an episode that is over stays so."""
    nexts = np.ascontiguousarray(states[:, 1:])
    sizes = np.diff(laws.row_start)
    if sizes.min() == sizes.max() or actions.shape[1] != len(laws.first_pair):
        return nexts
    pair = laws.first_pair + states[:, :-1].astype(np.int64) * laws.n_actions + actions
    single = sizes[np.clip(pair, 0, len(sizes) - 1)] == 1
    return np.where(single, np.int32(0), nexts)


@jit
def _count(row_start, first_pair, n_actions, states, actions, outcome, counts):
    replicas, horizon = actions.shape
    for r in range(replicas):
        for h in range(horizon):
            pair = first_pair[h] + states[r, h] * n_actions + actions[r, h]
            counts[r, row_start[pair] + outcome[r, h]] += 1


@jit
def _count_states(states, visits):
    for r in range(len(visits)):
        for h in range(visits.shape[1]):
            visits[r, h, states[r, h]] += 1
