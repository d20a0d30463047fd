"""The judge: every reported number is computed here, from the true model, and never by the agent.

Per episode: the exact regret V*(s1) - V^{pi_t}(s1) by policy evaluation; the paper's realised regret
V*(s_{t,1}) - sum_h r_h along the trajectory (noisy: its sd is an order of magnitude above its mean, reading E33); the
variance increment (1/H) sum_h Var[V*_{h+1}|s_{t,h}, pi*]/H^2, whose mean over episodes is sigma_bar^2; and whether
theta* lies in all confidence sets.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray
from livarot.core.inner import inner
from livarot.core.jit import jit
from livarot.core.views import Bundle, flat, opened, view
from livarot.model.episodes import Episodes, Plan
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve_kernel
from livarot.simulation.rollout import World, laws_of, rollout, rollout_mixed, unplayed

LAST_BIT = 1 << 31  # of a word of ``RunResult.stage_bits``
_NOTHING, _NO_TABLE = np.empty(0), np.empty((0, 0, 0))


class Record(NamedTuple):
    """Where the numbers of T episodes of R replicas go, (T, R) each, so that an episode writes contiguous rows."""

    regret: FloatArray
    realised: FloatArray
    variance: FloatArray
    optimism: FloatArray
    loss: FloatArray
    inner: FloatArray
    covered: FloatArray
    bits: NDArray[np.int32]  # (T, R, words)


class Truth(NamedTuple):
    """What is true of all replicas (a leading axis of 1), or of each."""

    world: World
    node_start: Any
    node_state: Any
    reward: Any  # (H, S, A)
    value: Any  # (R or 1, S) V*_1
    variance: Any  # (R or 1, H, S)
    optimum: Any  # (R or 1,) V*_1(s_1)
    theta: Any  # (R or 1, K, d)
    block_start: Any
    gram_start: Any
    block_coords: Any


class Scene(NamedTuple):
    """All that compiled code needs beside the plan of an episode."""

    truth: Truth
    record: Record
    uniforms: Any  # (episodes, R, H + 1) of the environment
    luck: Any  # (episodes, R, H) of policies that draw their actions, or nothing
    worth: Any  # (R,) values of the policies that were judged last
    room: Any  # (H + 1, S) for a value function; the last row stays 0


class Judge:
    """Plays the plans of R replicas in the true model (one for all, or one each) and writes down what is true of them.

    ``seat`` says where the numbers go and which uniforms the coming episodes have.
    """

    def __init__(self, mdps: Sequence[MNLMDP]) -> None:
        self.problem = problem = mdps[0].problem
        kernels = [transition_kernel(mdp) for mdp in mdps]
        solutions = [solve_kernel(problem, kernel) for kernel in kernels]
        value = np.stack([s.value[0] for s in solutions])
        rows = problem.rows
        self.truth = Truth(
            World.of(problem, np.stack([kernel.prob for kernel in kernels]), kernels[0].base),
            *problem.nodes,
            np.ascontiguousarray(problem.reward),
            value,
            np.stack([s.variance for s in solutions]),
            value @ problem.start,
            np.stack([mdp.theta for mdp in mdps]),
            rows.block_start,
            rows.gram_start,
            rows.block_coords,
        )
        # the policies judged last: most agents keep most of their policies most of the time
        self._judged: NDArray[Any] = np.zeros((0, 0, 0), dtype=np.int32)

    def seat(self, record: Record, uniforms: FloatArray, luck: FloatArray, first: int = 0) -> None:
        """Episodes from ``first`` on have these uniforms."""
        self._first, self._replicas = first, uniforms.shape[1]
        worth, room = np.empty(self._replicas), np.zeros((self.problem.horizon + 1, self.problem.n_states))
        self._scene = Bundle(Scene(self.truth, record, uniforms, luck, worth, room))
        self._judged = self._judged[:0]

    def episode(self, plan: Plan, t: int) -> Episodes:
        """Play episode t and fill its row of the record, but for what the agent believes."""
        policy, judged = plan.policy, self._judged
        episodes = unplayed(self._replicas, self.problem.horizon)
        if policy.ndim == 4:
            play_mixed(self._scene, t, t - self._first, laws_of(policy), *episodes)
            self._judged = judged[:0]
            return episodes
        again = policy is judged  # a plan handed over again is not evaluated again
        last = judged if judged.shape == policy.shape else policy[:0]
        play(self._scene, t, t - self._first, again, policy, last, *episodes)
        self._judged = policy
        return episodes

    def beliefs(self, plan: Plan, t: int) -> bool:
        """Hold what the agent believes against the truth.

        Written where there is something: start value - V*_1(s_1); upper bound - start value; the inner gap; and whether
        theta* is in every confidence set, with one bit per set.  False if the distance of theta* is not a number
        somewhere: such a set covers nothing.
        """
        _, _, start_value, upper, inner_gap, center, gram, radius, _ = plan
        if start_value is None and inner_gap is None and radius is None:
            return True
        return bool(
            believed(
                self._scene,
                t,
                _NOTHING if start_value is None else start_value,
                _NOTHING if upper is None else upper,
                _NOTHING if inner_gap is None else inner_gap,
                _NO_TABLE if center is None else center,
                _NO_TABLE if gram is None else gram,
                _NOTHING if radius is None else radius,
            )
        )


@jit
def play(scene, t, place, again, policy, last, states, actions, choices):
    """One episode of policies (R or 1, H, S); those that are as in ``last``, or all ``again``, keep their worth."""
    scene = opened(scene)
    truth, policy, last = scene.truth, view(policy), view(last)
    states, actions = view(states), view(actions)
    rollout(truth.world, policy, scene.uniforms[place], states, actions, view(choices))
    if not again:
        start_values(truth, policy, last, scene.room, scene.worth)
    score(truth, states, actions, scene.worth, scene.record, t)


@jit
def play_mixed(scene, t, place, laws, states, actions, choices):
    """One episode of policies that draw their actions, (R H or H, S, A)."""
    scene = opened(scene)
    truth, laws, states, actions = scene.truth, view(laws), view(states), view(actions)
    rollout_mixed(truth.world, laws, scene.uniforms[place], scene.luck[place], states, actions, view(choices))
    start_values_mixed(truth, laws, scene.room, scene.worth)
    score(truth, states, actions, scene.worth, scene.record, t)


@jit
def believed(scene, t, start_value, upper, inner_gap, center, gram, radius):
    """:meth:`Judge.beliefs`; what is not there is empty."""
    scene = opened(scene)
    truth, record = scene.truth, scene.record
    for r in range(len(start_value)):
        record.optimism[t, r] = start_value[r] - truth.optimum[r if len(truth.optimum) > 1 else 0]
        if len(upper) > 0:
            record.loss[t, r] = upper[r] - start_value[r]
    for r in range(len(inner_gap)):
        record.inner[t, r] = inner_gap[r]
    return coverage(truth, view(center), view(gram), view(radius), record.covered[t], record.bits[t])


@inner
def plus_next(world, r, h, s, a, value, total):
    """total + E[V_{h+1}(s') | s, a] in the model of replica r."""
    prob, base = world.prob[r if len(world.prob) > 1 else 0], world.base[h]
    pair = (world.stage_table[h] * len(world.start) + s) * world.n_actions + a
    for row in range(world.row_start[pair], world.row_start[pair + 1]):
        total += prob[base + row] * value[h + 1, world.next_state[row]]
    return total


@inner
def at_start(truth, value):
    """start . V_1."""
    total = 0.0
    for node in range(truth.node_start[0], truth.node_start[1]):
        total += truth.world.start[truth.node_state[node]] * value[0, truth.node_state[node]]
    return total


@inner
def start_values(truth, policy, last, value, worth):
    """start . V^pi_1 over the reachable states; a policy that is as in ``last`` keeps its worth."""
    horizon = len(truth.reward)
    for r in range(len(worth)):
        table = r if len(policy) > 1 else 0
        if len(last) > 0 and same_policy(truth, policy, last, table):
            continue
        if r > 0 and len(policy) == 1 and len(truth.world.prob) == 1:
            worth[r] = worth[0]
            continue
        for h in range(horizon - 1, -1, -1):
            for node in range(truth.node_start[h], truth.node_start[h + 1]):
                s = truth.node_state[node]
                a = policy[table, h, s]
                ahead = plus_next(truth.world, r, h, s, a, value, 0.0) if h < horizon - 1 else 0.0
                value[h, s] = truth.reward[h, s, a] + ahead
        worth[r] = at_start(truth, value)


@inner
def same_policy(truth, policy, last, table):
    for h in range(len(truth.node_start) - 1):
        for node in range(truth.node_start[h], truth.node_start[h + 1]):
            s = truth.node_state[node]
            if policy[table, h, s] != last[table, h, s]:
                return False
    return True


@inner
def start_values_mixed(truth, laws, value, worth):
    """start . V^pi_1 of policies that draw their actions, (R H or H, S, A)."""
    horizon = len(truth.reward)
    for r in range(len(worth)):
        table = r * horizon if len(laws) > horizon else 0
        for h in range(horizon - 1, -1, -1):
            for node in range(truth.node_start[h], truth.node_start[h + 1]):
                s = truth.node_state[node]
                mixed = 0.0
                for a in range(truth.world.n_actions):
                    mixed += laws[table + h, s, a] * plus_next(truth.world, r, h, s, a, value, truth.reward[h, s, a])
                value[h, s] = mixed
        worth[r] = at_start(truth, value)


@inner
def score(truth, states, actions, worth, record, t):
    """Regret, realised regret and the increment of sigma_bar^2 of episode t."""
    horizon = len(truth.reward)
    for r in range(len(states)):
        own = r if len(truth.value) > 1 else 0
        total, spread = 0.0, 0.0
        for h in range(horizon):
            total += truth.reward[h, states[r, h], actions[r, h]]
            spread += truth.variance[own, h, states[r, h]]
        record.regret[t, r] = truth.optimum[own] - worth[r]
        record.realised[t, r] = truth.value[own, states[r, 0]] - total
        record.variance[t, r] = spread / (horizon * horizon * horizon)


@inner
def coverage(truth, center, gram, radius, covered, bits):
    """1 where |theta* - center|_gram <= radius for every parameter; its bit is set where it holds for one.

    Returns whether all distances are numbers.
    """
    parameters, d = truth.theta.shape[1], truth.theta.shape[2]
    size = truth.gram_start[len(truth.gram_start) - 1]
    target, middle, metric = flat(truth.theta), flat(center), flat(gram)
    away, numbers = np.empty(d), True
    for r in range(len(radius)):
        limit = radius[r] * radius[r] * (1.0 + 1e-12)
        inside, word, bit = True, 0, 1
        for k in range(bits.shape[1]):
            bits[r, k] = 0
        for k in range(parameters):
            first, here = ((r if len(truth.theta) > 1 else 0) * parameters + k) * d, (r * parameters + k) * d
            total = square_distance(truth, target, first, middle, here, metric, (r * parameters + k) * size, away)
            if total <= limit:  # NaN is not inside
                bits[r, word] |= np.int32(bit)
            else:
                inside = False
                numbers &= total < np.inf
            bit *= 2
            if bit > LAST_BIT:
                word, bit = word + 1, 1
        covered[r] = 1.0 if inside else 0.0
    return numbers


@inner
def square_distance(truth, target, first, middle, here, metric, at, away):
    """|x|^2 in the packed metric that begins at ``at``, x = target - middle, from ``first`` and ``here`` on."""
    total = 0.0
    for b in range(len(truth.block_start) - 1):
        base, n = truth.block_start[b], truth.block_start[b + 1] - truth.block_start[b]
        row = at + truth.gram_start[b]
        if n == 2:  # the same, unrolled
            c, e = truth.block_coords[base], truth.block_coords[base + 1]
            x, y = target[first + c] - middle[here + c], target[first + e] - middle[here + e]
            total += x * x * metric[row] + y * (2.0 * metric[row + 2] * x + metric[row + 3] * y)
            continue
        for i in range(n):  # twice what is below the diagonal: the Gram matrix is symmetric
            c = truth.block_coords[base + i]
            x, part = target[first + c] - middle[here + c], 0.0
            away[i] = x
            for j in range(i):
                part += metric[row + j] * away[j]
            total += x * (2.0 * part + metric[row + i] * x)
            row += n
    return total
