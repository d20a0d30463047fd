"""The judge: every reported number is computed here, from the true model, and never by the agent.

Per episode: the exact regret V*(s1) - V^{pi_t}(s1) by policy evaluation; the paper's realised regret
V*(s_{t,1}) - sum_h r_h along the trajectory (noisy: its sd is an order of magnitude above its mean, reading E33); the
variance increment (1/H) sum_h Var[V*_{h+1}|s_{t,h}, pi*]/H^2, whose mean over episodes is sigma_bar^2; and whether
theta* lies in all confidence sets.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.jit import jit
from livarot.core.kernel import transition_kernel
from livarot.core.plan import Episodes, Plan
from livarot.core.problem import MNLMDP
from livarot.core.ragged import FloatArray
from livarot.planning.backward import solve_kernel

LAST_BIT = 1 << 31  # of a word of ``RunResult.stage_bits``


class Judge:
    """What is true of R replicas: one model for all, or one each."""

    def __init__(self, mdps: Sequence[MNLMDP]) -> None:
        self.problem = mdps[0].problem
        kernels = [transition_kernel(mdp) for mdp in mdps]
        solutions = [solve_kernel(self.problem, kernel) for kernel in kernels]
        self.prob = np.stack([kernel.prob for kernel in kernels])
        self.base = kernels[0].base
        self.theta = np.stack([mdp.theta for mdp in mdps])
        self.value = np.stack([s.value[0] for s in solutions])  # (R or 1, S)
        self.variance = np.stack([s.variance for s in solutions])  # (R or 1, H, S)
        self.optimum = self.value @ self.problem.start  # (R or 1,)
        # the policies judged last and their values: most agents keep most of their policies most of the time
        self._judged: NDArray[Any] = np.zeros((0, 0, 0), dtype=np.int32)
        self._policy_value = np.array(self.optimum)

    def episode(
        self, plan: Plan, episodes: Episodes, regret: FloatArray, realised: FloatArray, variance: FloatArray
    ) -> None:
        """Fill one episode's numbers, one per replica; a plan handed over again is not evaluated again."""
        problem, rows = self.problem, self.problem.rows
        if plan.policy is not self._judged:
            out = np.empty(max(len(plan.policy), len(self.prob)))
            model = (rows.row_start, rows.next_state, problem.stage_table, *problem.nodes, problem.reward)
            if plan.policy.ndim == 4:
                start_value_mixed(*model, problem.start, self.prob, self.base, plan.policy, out)
            else:
                last = self._judged if self._judged.shape == plan.policy.shape else plan.policy[:0]
                if len(last) == len(out):
                    out[:] = self._policy_value
                start_value(*model, problem.start, self.prob, self.base, plan.policy, last, out)
            self._judged, self._policy_value = plan.policy, out
        np.subtract(self.optimum, self._policy_value, out=regret)
        score(problem.reward, self.value, self.variance, episodes.states, episodes.actions, realised, variance)

    def covered(self, plan: Plan, out: FloatArray, bits: NDArray[np.int32] | None = None) -> bool:
        """Is theta* in every confidence set?  1 or 0 per replica; ``bits`` (R, words) takes one bit per set.

        False if the distance of theta* is not a number somewhere: such a set covers nothing.
        """
        rows = self.problem.rows
        bits = np.empty((len(out), 0), dtype=np.int32) if bits is None else bits
        places = (rows.block_start, rows.gram_start, rows.block_coords)
        return bool(coverage(*places, self.theta, plan.center, plan.gram, plan.radius, out, bits))


@jit
def start_value(
    row_start, next_state, stage_table, node_start, node_state, reward, start, prob, base, policy, last, out
):
    """start . V^pi_1 over the reachable states; a replica that plays what it played in ``last`` keeps its value."""
    horizon, n_states, n_actions = reward.shape
    value = np.zeros((horizon + 1, n_states))
    for r in range(len(out)):
        own = prob[r if len(prob) > 1 else 0]
        table = r if len(policy) > 1 else 0
        if len(last) == len(out) and len(policy) == len(out) and same_policy(node_start, node_state, policy, last, r):
            continue
        for h in range(horizon - 1, -1, -1):
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                a = policy[table, h, s]
                pair = (stage_table[h] * n_states + s) * n_actions + a
                total = 0.0
                if h < horizon - 1:
                    for row in range(row_start[pair], row_start[pair + 1]):
                        total += own[base[h] + row] * value[h + 1, next_state[row]]
                value[h, s] = reward[h, s, a] + total
        total = 0.0
        for node in range(node_start[0], node_start[1]):
            total += start[node_state[node]] * value[0, node_state[node]]
        out[r] = total


@jit
def same_policy(node_start, node_state, policy, last, r):
    for h in range(len(node_start) - 1):
        for node in range(node_start[h], node_start[h + 1]):
            if policy[r, h, node_state[node]] != last[r, h, node_state[node]]:
                return False
    return True


@jit
def start_value_mixed(
    row_start, next_state, stage_table, node_start, node_state, reward, start, prob, base, policy, out
):
    """start . V^pi_1 of policies that draw their actions."""
    horizon, n_states, n_actions = reward.shape
    value = np.zeros((horizon + 1, n_states))
    for r in range(len(out)):
        own = prob[r if len(prob) > 1 else 0]
        table = r if len(policy) > 1 else 0
        for h in range(horizon - 1, -1, -1):
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                mixed = 0.0
                for a in range(n_actions):
                    pair = (stage_table[h] * n_states + s) * n_actions + a
                    total = reward[h, s, a]
                    for row in range(row_start[pair], row_start[pair + 1]):
                        total += own[base[h] + row] * value[h + 1, next_state[row]]
                    mixed += policy[table, h, s, a] * total
                value[h, s] = mixed
        total = 0.0
        for node in range(node_start[0], node_start[1]):
            total += start[node_state[node]] * value[0, node_state[node]]
        out[r] = total


@jit
def score(reward, value, variance, states, actions, realised, increment):
    horizon = reward.shape[0]
    for r in range(len(states)):
        own = r if len(value) > 1 else 0
        total, spread = 0.0, 0.0
        for h in range(horizon):
            total += reward[h, states[r, h], actions[r, h]]
            spread += variance[own, h, states[r, h]]
        realised[r] = value[own, states[r, 0]] - total
        increment[r] = spread / (horizon * horizon * horizon)


@jit
def coverage(block_start, gram_start, coords, theta, center, gram, radius, out, bits):
    """1 where |theta* - center|_gram <= radius for every parameter; its bit is set where it holds for one.

    Returns whether all distances that were computed are numbers.
    """
    parameters, d, size = theta.shape[1], theta.shape[2], gram.shape[2]
    truth, middle, flat = theta.reshape(-1), center.reshape(-1), gram.reshape(-1)
    every = bits.shape[1] > 0
    away, numbers = np.empty(d), True
    for r in range(len(radius)):
        limit = radius[r] * radius[r] * (1.0 + 1e-12)
        first, here, at = (r if len(theta) > 1 else 0) * parameters * d, r * parameters * d, r * parameters * size
        inside, word, bit = True, 0, 1
        bits[r] = 0
        for _ in range(parameters):
            total = 0.0
            for b in range(len(block_start) - 1):
                base, n = block_start[b], block_start[b + 1] - block_start[b]
                row = at + gram_start[b]
                if n == 2:  # the same, unrolled
                    c, e = coords[base], coords[base + 1]
                    x, y = truth[first + c] - middle[here + c], truth[first + e] - middle[here + e]
                    total += x * x * flat[row] + y * (2.0 * flat[row + 2] * x + flat[row + 3] * y)
                    continue
                for i in range(n):  # twice what is below the diagonal: the Gram matrix is symmetric
                    c = coords[base + i]
                    x, part = truth[first + c] - middle[here + c], 0.0
                    away[i] = x
                    for j in range(i):
                        part += flat[row + j] * away[j]
                    total += x * (2.0 * part + flat[row + i] * x)
                    row += n
            if not total <= limit:  # NaN is not inside
                inside = False
                numbers &= total < np.inf
                if not every:
                    break
            elif every:
                bits[r, word] |= np.int32(bit)
            bit *= 2
            if bit > LAST_BIT:
                word, bit = word + 1, 1
            first, here, at = first + d, here + d, at + size
        out[r] = 1.0 if inside else 0.0
    return numbers
