"""Playing a policy in the true model: the only place, with the judge, that sees theta*."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.inner import inner
from livarot.core.jit import jit
from livarot.core.kernel import transition_kernel
from livarot.core.model import own, plan_model
from livarot.core.plan import Episodes, Played, check_policy
from livarot.core.problem import MNLMDP, Problem, require_model
from livarot.core.ragged import FloatArray, IntArray
from livarot.core.sizes import require_memory
from livarot.core.views import opened, part
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
    model = plan_model(problem), np.ascontiguousarray(prob), base
    if policy.ndim == 3:
        rollout(*model, policy, uniforms, *episodes)
    else:
        mixed = np.ascontiguousarray(policy).reshape(len(policy), horizon, -1)
        rollout_mixed(*model, mixed, uniforms, action_uniforms, *episodes)
    return episodes


@jit
def draw_start(start, u):
    """The first state by inverse distribution function; the last possible state takes the rest."""
    return start_of(start, u)


@jit
def draw_row(prob, row, end, u):
    """The row of the next state, from row to end (included)."""
    return row_of(prob, row, end, u)


@inner
def start_of(start, u):
    total = 0.0
    last = 0
    for s in range(len(start)):
        if start[s] > 0.0:
            last = s
            total += start[s]
            if total > u:
                return s
    return last


@inner
def row_of(prob, row, end, u):
    total = prob[row]
    while total <= u and row < end:
        row += 1
        total += prob[row]
    return row


@inner
def draw_next(m, prob, base, h, s, a, u):
    """Which outcome of a pair follows, and its state."""
    pair = (m.stage_table[h] * m.reward.shape[1] + s) * m.reward.shape[2] + a
    first, last = base + m.graph.row_start[pair], base + m.graph.row_start[pair + 1] - 1
    row = row_of(prob, first, last, u)
    return row - first, m.graph.next_state[row - base]


@jit
def rollout(model, prob, base, policy, uniforms, states, actions, choices):
    """One episode per replica of a deterministic policy."""
    m = opened(model)
    replicas, horizon = actions.shape
    for r in range(replicas):
        law, played = own(prob, r), own(policy, r)
        s = start_of(m.start, uniforms[r, 0])
        for h in range(horizon):
            states[r, h], actions[r, h] = s, played[h, s]
            choices[r, h], s = draw_next(m, law, base[h], h, s, played[h, s], uniforms[r, h + 1])
        states[r, horizon] = s


@jit
def rollout_mixed(model, prob, base, policy, uniforms, luck, states, actions, choices):
    """One episode per replica of a policy that draws its actions."""
    m = opened(model)
    replicas, horizon = actions.shape
    n_actions = m.reward.shape[2]
    for r in range(replicas):
        law, played = own(prob, r), own(policy, r)
        s = start_of(m.start, uniforms[r, 0])
        for h in range(horizon):
            a = row_of(part(played[h], s * n_actions, n_actions), 0, n_actions - 1, luck[r, h])
            states[r, h], actions[r, h] = s, a
            choices[r, h], s = draw_next(m, law, base[h], h, s, a, uniforms[r, h + 1])
        states[r, horizon] = s
