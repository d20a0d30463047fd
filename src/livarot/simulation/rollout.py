"""Playing a policy in the true model: only this module and the judge see theta*."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.views import Bundle, opened, view
from livarot.errors import bad, require_positive_int
from livarot.model.episodes import Episodes, Played, check_policy
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem, require_model
from livarot.simulation.streams import action_uniforms, environment_uniforms
from livarot.system.sizes import require_memory

INT32 = np.dtype(np.int32)


def simulate(mdp: MNLMDP, policy: NDArray[Any], n_episodes: int, seed: int = 0) -> Episodes:
    """Episodes of a fixed policy, int (H, S) or probabilities (H, S, A): states (n, H+1), actions (n, H).

    What they earned, in the units of the rewards or costs that were given, is ``mdp.problem.returns(episodes)``.
    """
    problem = require_model(mdp)
    require_positive_int("n_episodes", n_episodes)
    require_positive_int("seed", seed, minimum=0)
    table = check_policy(problem, policy)
    require_memory("n_episodes", "the episodes", 5 * n_episodes * (problem.horizon + 4))
    env = environment_uniforms(seed, 0, n_episodes, problem.horizon)
    act = action_uniforms(seed, 0, n_episodes, problem.horizon)
    kernel = transition_kernel(mdp)
    return play(problem, kernel.prob[None], kernel.base, table[None], env, act)


class World(NamedTuple):
    """What a rollout reads of the true model, as views."""

    row_start: Any
    next_state: Any
    stage_table: Any
    start: Any
    prob: Any  # (R or 1, rows of all stages)
    base: Any  # (H, S) a row of a state has its probability of stage h at prob[., base[h, s] + row]
    n_actions: Any

    @classmethod
    def of(cls, problem: Problem, prob: FloatArray, base: IntArray) -> World:
        """Probabilities of all rows, those of stage h from base[h] on."""
        rows = problem.rows
        arrays = (rows.row_start, rows.next_state, problem.stage_table, problem.start, prob)
        bases = np.repeat(base, problem.n_states).reshape(problem.horizon, problem.n_states)
        return cls._make((*map(np.ascontiguousarray, arrays), bases, problem.n_actions))

    @classmethod
    def of_reachable(cls, problem: Problem, probs: Sequence[FloatArray], base: IntArray) -> World:
        """The same with one array per model, of which the states that can be reached keep their probabilities.

        What an episode may read is then close together: most stages of most problems reach few states.
        """
        (node_start, states), starts = problem.nodes, problem.rows.row_start
        stage = np.repeat(np.arange(problem.horizon), np.diff(node_start))
        pair = (problem.stage_table[stage].astype(np.int64) * problem.n_states + states) * problem.n_actions
        first, counts = starts[pair], starts[pair + problem.n_actions] - starts[pair]
        ends = np.cumsum(counts)
        if ends[-1] >= len(probs[0]):
            return cls.of(problem, np.stack(probs), base)
        bases = np.zeros((problem.horizon, problem.n_states), dtype=np.int64)
        bases[stage, states] = ends - counts - first
        rows = np.arange(ends[-1]) + np.repeat(base[stage] - bases[stage, states], counts)
        return cls.of(problem, np.stack([prob[rows] for prob in probs]), base)._replace(base=bases)


def play(
    problem: Problem,
    prob: FloatArray,
    base: IntArray,
    policy: NDArray[Any],
    uniforms: FloatArray,
    action_uniforms: FloatArray,
) -> Episodes:
    """One episode per row of the uniforms; ``prob`` and ``policy`` have one entry for all rows, or one each."""
    replicas, horizon = len(uniforms), problem.horizon
    if len(policy) not in (1, replicas) or policy.shape[1:3] != (horizon, problem.n_states):
        raise bad("policy", f"has shape {policy.shape} for {replicas} replicas", cure="give (R, H, S) or (R, H, S, A)")
    episodes = unplayed(replicas, horizon)
    world, luck = Bundle(World.of(problem, prob, base)), np.ascontiguousarray(uniforms)
    if policy.ndim == 3:
        _play(world, np.ascontiguousarray(policy), luck, *episodes)
    else:
        _play_mixed(world, laws_of(policy), luck, np.ascontiguousarray(action_uniforms), *episodes)
    return episodes


def unplayed(replicas: int, horizon: int) -> Played:
    """Arrays to be filled with one episode per replica."""
    empty, shape = np.empty, (replicas, horizon)
    arrays = (empty((replicas, horizon + 1), INT32), empty(shape, INT32), empty(shape, INT32))
    return tuple.__new__(Played, arrays)  # as Played(*arrays), in half the time


def laws_of(policy: NDArray[Any]) -> FloatArray:
    """A policy (R, H, S, A) that draws its actions as (R H, S, A): views have three axes at most."""
    return np.ascontiguousarray(policy).reshape(-1, *policy.shape[2:])


@jit
def _play(world, policy, uniforms, states, actions, choices):
    """:func:`rollout`, for Python."""
    rollout(opened(world), view(policy), view(uniforms), view(states), view(actions), view(choices))


@jit
def _play_mixed(world, laws, uniforms, luck, states, actions, choices):
    """:func:`rollout_mixed`, for Python."""
    played = (view(states), view(actions), view(choices))
    rollout_mixed(opened(world), view(laws), view(uniforms), view(luck), *played)


def _first_state(start, u):
    """The first state by inverse distribution function; the last possible state takes the rest."""
    total = 0.0
    last = 0
    for s in range(len(start)):
        if start[s] > 0.0:
            last = s
            total += start[s]
            if total > u:
                return s
    return last


def _row(prob, row, end, u):
    """The row of the next state, from row to end (included)."""
    total = prob[row]
    while total <= u and row < end:
        row += 1
        total += prob[row]
    return row


draw_start, draw_row = jit(_first_state), jit(_row)  # for arrays
start_of, row_of = inner(_first_state), inner(_row)  # for views


@inner
def move(world, r, h, s, a, u):
    """The next state of replica r, and its place among those that (s, a) can lead to at stage h."""
    pair = (world.stage_table[h] * len(world.start) + s) * world.n_actions + a
    base = world.base[h, s]
    first, end = base + world.row_start[pair], base + world.row_start[pair + 1] - 1
    row = row_of(world.prob[r if len(world.prob) > 1 else 0], first, end, u)
    return world.next_state[row - base], row - first


@inner
def rollout(world, policy, uniforms, states, actions, choices):
    """One episode per replica of a deterministic policy (R or 1, H, S)."""
    replicas, horizon = actions.shape
    for r in range(replicas):
        states[r, 0] = start_of(world.start, uniforms[r, 0])
    for h in range(horizon):  # replicas inside: they do not wait for each other's memory
        for r in range(replicas):
            s = states[r, h]
            a = policy[r if len(policy) > 1 else 0, h, s]
            actions[r, h] = a
            states[r, h + 1], choices[r, h] = move(world, r, h, s, a, uniforms[r, h + 1])


@inner
def rollout_mixed(world, laws, uniforms, luck, states, actions, choices):
    """One episode per replica of a policy that draws its actions, ``laws`` (R H or H, S, A)."""
    replicas, horizon = actions.shape
    for r in range(replicas):
        table = r * horizon if len(laws) > horizon else 0
        states[r, 0] = start_of(world.start, uniforms[r, 0])
        for h in range(horizon):
            s = states[r, h]
            actions[r, h] = row_of(laws[table + h, s], 0, world.n_actions - 1, luck[r, h])
            states[r, h + 1], choices[r, h] = move(world, r, h, s, actions[r, h], uniforms[r, h + 1])
