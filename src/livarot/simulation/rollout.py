"""Playing a policy in the true model: the only place, with the judge, that sees theta*."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.jit import jit
from livarot.core.kernel import transition_kernel
from livarot.core.plan import Episodes, Played, check_policy
from livarot.core.problem import MNLMDP, Problem, require_model
from livarot.core.ragged import FloatArray, IntArray
from livarot.core.sizes import require_memory
from livarot.errors import bad, require_positive_int
from livarot.simulation.streams import action_uniforms, environment_uniforms


def simulate(mdp: MNLMDP, policy: NDArray[Any], n_episodes: int, seed: int = 0) -> Episodes:
    """Episodes of a fixed policy (int (H, S) or probabilities (H, S, A)): states (n, H+1), actions (n, H)."""
    problem = require_model(mdp)
    require_positive_int("n_episodes", n_episodes)
    require_positive_int("seed", seed, minimum=0)
    table = check_policy(problem, policy)
    require_memory("n_episodes", "the episodes", 5 * n_episodes * (problem.horizon + 4))
    env = environment_uniforms(seed, 0, n_episodes, problem.horizon)
    act = action_uniforms(seed, 0, n_episodes, problem.horizon)
    kernel = transition_kernel(mdp)
    return play(problem, kernel.prob[None], kernel.base, table[None], env, act)


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
    episodes = Played(
        np.empty((replicas, horizon + 1), dtype=np.int32),
        np.empty((replicas, horizon), dtype=np.int32),
        np.empty((replicas, horizon), dtype=np.int32),
    )
    rows = problem.rows
    model = (rows.row_start, rows.next_state, problem.stage_table, problem.n_actions, problem.start, prob, base)
    if policy.ndim == 3:
        rollout(*model, policy, uniforms, *episodes)
    else:
        rollout_mixed(*model, policy, uniforms, action_uniforms, *episodes)
    return episodes


@jit
def draw_start(start, u):
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


@jit
def draw_row(prob, row, end, u):
    """The row of the next state, from row to end (included)."""
    total = prob[row]
    while total <= u and row < end:
        row += 1
        total += prob[row]
    return row


@jit
def rollout(
    row_start, next_state, stage_table, n_actions, start, prob, base, policy, uniforms, states, actions, choices
):
    """One episode per replica of a deterministic policy."""
    replicas, horizon = actions.shape
    n_states = len(start)
    for r in range(replicas):
        own = prob[r if len(prob) > 1 else 0]
        table = r if len(policy) > 1 else 0
        s = draw_start(start, uniforms[r, 0])
        for h in range(horizon):
            a = policy[table, h, s]
            pair = (stage_table[h] * n_states + s) * n_actions + a
            first = base[h] + row_start[pair]
            row = draw_row(own, first, base[h] + row_start[pair + 1] - 1, uniforms[r, h + 1])
            states[r, h] = s
            actions[r, h] = a
            choices[r, h] = row - first
            s = next_state[row - base[h]]
        states[r, horizon] = s


@jit
def rollout_mixed(
    row_start, next_state, stage_table, n_actions, start, prob, base, policy, uniforms, luck, states, actions, choices
):
    """One episode per replica of a policy that draws its actions."""
    replicas, horizon = actions.shape
    n_states = len(start)
    for r in range(replicas):
        own = prob[r if len(prob) > 1 else 0]
        table = r if len(policy) > 1 else 0
        s = draw_start(start, uniforms[r, 0])
        for h in range(horizon):
            a = draw_row(policy[table, h, s], 0, n_actions - 1, luck[r, h])
            pair = (stage_table[h] * n_states + s) * n_actions + a
            first = base[h] + row_start[pair]
            row = draw_row(own, first, base[h] + row_start[pair + 1] - 1, uniforms[r, h + 1])
            states[r, h] = s
            actions[r, h] = a
            choices[r, h] = row - first
            s = next_state[row - base[h]]
        states[r, horizon] = s
