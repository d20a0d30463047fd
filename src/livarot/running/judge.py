"""The judge: every reported number is computed here, from the true model, and never by the agent.

Per episode: the exact regret V*(s1) - V^{pi_t}(s1) by policy evaluation; the paper's realised regret
V*(s_{t,1}) - sum_h r_h along the trajectory (noisy: its sd is an order of magnitude above its mean, reading E33); the
variance increment (1/H) sum_h Var[V*_{h+1}|s_{t,h}, pi*]/H^2, whose mean over episodes is sigma_bar^2; and whether
theta* lies in all confidence sets.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray
from livarot.core.compiling.basics import all_below
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import Kernel, compile_only, jit
from livarot.core.tolerances import SUM_SLACK
from livarot.core.views import Bundle, flat, opened, view
from livarot.model.episodes import Episodes, Plan
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.model.terms.after import after, blank_values, gains, outcome_kinds, worth
from livarot.planning.exact import solve_kernel
from livarot.running.coverage import coverage
from livarot.simulation.rollout import World, rollout, rollout_mixed, unplayed

REFUSED, DOUBTFUL, FINE = 0, 1, 2  # verdicts on a plan: not played; some distance is not a number; as it should be
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
    """What is true of all replicas (a leading axis of 1) or of each of them."""

    world: World
    node_start: Any
    node_state: Any
    reward: Any  # (H, S, A), -inf where the pair does not exist
    kind: Any  # (rows,) of outcomes ...
    after: Any  # ... and what they are worth, :mod:`livarot.model.terms.after`
    more: Any  # (rows,) what the next state adds to the reward, or nothing
    all_exist: int  # do all actions exist in all states?
    value: Any  # (R or 1, S) V*_1
    variance: Any  # (R or 1, H, S)
    optimum: Any  # (R or 1,) V*_1(s_1)
    theta: Any  # (R or 1, K, d)
    block_start: Any
    gram_start: Any
    block_coords: Any


class Scene(NamedTuple):
    """All that compiled code needs besides the plan of an episode."""

    truth: Truth
    record: Record
    uniforms: Any  # (episodes, R, H + 1) of the environment
    luck: Any  # (episodes, R, H) of policies that draw their actions, or nothing
    first: int  # an episode that the uniforms begin with
    judged: Any  # (R, nodes) the policies judged last: most agents keep most of their policies most of the time
    worth: Any  # (R,) their values
    room: Any  # (H + 1, S) for a value function; the last row stays V_H
    ahead: Any  # (kinds,)
    away: Any  # (d,)


class Beliefs(NamedTuple):
    """The optional parts of a plan; those that it does not have are empty."""

    start_value: Any
    upper: Any
    inner_gap: Any
    center: Any
    gram: Any
    radius: Any


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
            World.of_reachable(problem, [kernel.prob for kernel in kernels], kernels[0].base),
            *problem.nodes,
            gains(problem),
            outcome_kinds(problem),
            after(problem),
            _NOTHING if problem.next_reward is None else problem.next_reward,
            int(problem.all_exist),
            value,
            np.stack([s.variance for s in solutions]),
            value @ problem.start,
            np.stack([mdp.theta for mdp in mdps]),
            rows.block_start,
            rows.gram_start,
            rows.block_coords,
        )

    def seat(self, record: Record, uniforms: FloatArray, luck: Callable[[], FloatArray], first: int = 0) -> None:
        """Episodes from ``first`` on have these uniforms, (episodes, R, H + 1), in turn; when all have been used, the
        next episode has the first ones again, so new numbers should stand there by then.  ``luck`` draws those of
        actions, if they are needed.
        """
        replicas, nodes = uniforms.shape[1], self.truth.node_state
        values, ahead = blank_values(self.problem, 1)[0], np.empty(len(self.truth.after.state))
        rooms = np.empty(replicas), values, ahead, np.empty(self.problem.dim)
        judged = np.full((replicas, len(nodes)), -1, dtype=np.int32)
        self._replicas, self._luck = replicas, luck
        self._scene = Bundle(Scene(self.truth, record, uniforms, _NO_TABLE, first, judged, *rooms))
        compile_only(play, *_types(self._scene, numba.int32[:, :, ::1]))

    def episode(self, plan: Plan, t: int) -> tuple[Episodes, int]:
        """Play episode t, fill its row of the record, and return the verdict on the plan.

        What the plan believes is compared with the truth, where it says so: start value - V*_1(s_1); upper bound -
        start value; the inner gap; and whether theta* is in every confidence set, with one bit per set.

        A plan is checked by the same compiled function that plays it, which accepts one combination of types.  A plan
        that does not fit is ``REFUSED`` and changes nothing.  The numbers of center and gram are not checked one by
        one: ``DOUBTFUL`` is a plan for which the distance of theta* is not a number; such a set covers nothing.
        """
        episodes = unplayed(self._replicas, self.problem.horizon)
        if not isinstance(plan, Plan) or type(plan.policy) is not np.ndarray:  # a masked array would pass for one
            return episodes, REFUSED
        policy, _, start_value, upper, inner_gap, center, gram, radius, _ = plan
        kernel = play if policy.ndim == 3 else self._mixed()
        sets = _NO_TABLE if center is None else center, _NO_TABLE if gram is None else gram
        try:
            return episodes, kernel(
                self._scene,
                t,
                policy,
                _NOTHING if start_value is None else start_value,
                _NOTHING if upper is None else upper,
                _NOTHING if inner_gap is None else inner_gap,
                (*sets, _NOTHING if radius is None else radius),
                *episodes,
            )
        except TypeError:  # types that it is not compiled for
            return episodes, REFUSED

    def _mixed(self) -> Kernel:
        if self._scene.fields.luck.size == 0:
            self._scene = Bundle(self._scene.fields._replace(luck=self._luck()))
            compile_only(play_mixed, *_types(self._scene, numba.float64[:, :, :, ::1]))
        return play_mixed


def _types(scene: Bundle, policy: Any) -> tuple[Any, ...]:
    """The types of the arguments of :func:`play`."""
    numbers, table, played = numba.float64[::1], numba.float64[:, :, ::1], numba.int32[:, ::1]
    sets = numba.types.Tuple((table, table, numbers))
    return numba.typeof(scene), numba.int64, policy, numbers, numbers, numbers, sets, played, played, played


@jit
def play(scene, t, policy, start_value, upper, inner_gap, sets, states, actions, choices):
    """One episode of policies (R or 1, H, S); those that have not changed since they were judged keep their values."""
    scene, policy, states, actions = opened(scene), view(policy), view(states), view(actions)
    beliefs = Beliefs(view(start_value), view(upper), view(inner_gap), view(sets[0]), view(sets[1]), view(sets[2]))
    truth = scene.truth
    if not (fitting_shape(scene, policy.shape) and fitting_actions(truth, flat(policy)) and fitting(scene, beliefs)):
        return REFUSED
    if not (truth.all_exist or existing_actions(truth, policy)):
        return REFUSED
    uniforms = scene.uniforms[(t - scene.first) % len(scene.uniforms)]
    rollout(truth.world, policy, uniforms, states, actions, view(choices))
    start_values(truth, policy, scene)
    score(truth, states, actions, view(choices), scene.worth, scene.record, t)
    return believed(scene, t, beliefs)


@jit
def play_mixed(scene, t, policy, start_value, upper, inner_gap, sets, states, actions, choices):
    """One episode of policies that draw their actions, (R or 1, H, S, A)."""
    scene, states, actions = opened(scene), view(states), view(actions)
    beliefs = Beliefs(view(start_value), view(upper), view(inner_gap), view(sets[0]), view(sets[1]), view(sets[2]))
    truth, (tables, horizon, n_states, n_actions) = scene.truth, policy.shape
    laws = view(policy.reshape((tables * horizon, n_states, n_actions)))  # views have three axes at most
    if not (fitting_shape(scene, policy.shape[:3]) and fitting_laws(truth, laws) and fitting(scene, beliefs)):
        return REFUSED
    place = (t - scene.first) % len(scene.uniforms)
    rollout_mixed(truth.world, laws, scene.uniforms[place], scene.luck[place], states, actions, view(choices))
    start_values_mixed(truth, laws, scene)
    score(truth, states, actions, view(choices), scene.worth, scene.record, t)
    return believed(scene, t, beliefs)


@inner
def fitting_shape(scene, shape):
    """Is there one table of the right size, or one per replica?"""
    horizon, n_states, _ = scene.truth.reward.shape
    return (shape[0] == 1 or shape[0] == len(scene.worth)) and shape[1] == horizon and shape[2] == n_states


@inner
def fitting_actions(truth, actions):
    """Do the actions exist?"""
    return all_below(actions, truth.world.n_actions)


@inner
def existing_actions(truth, policy):
    """Do the actions exist in their states?"""
    good, (tables, horizon, n_states) = True, policy.shape
    for i in range(tables * horizon):
        for s in range(n_states):
            good &= exists(truth.world, i % horizon, s, policy[i // horizon, i % horizon, s])
    return good


@inner
def exists(world, h, s, a):
    """Does the action lead anywhere?"""
    pair = (world.stage_table[h] * len(world.start) + s) * world.n_actions + a
    return world.row_start[pair + 1] > world.row_start[pair]


@inner
def fitting_laws(truth, laws):
    """Are they probabilities over the actions that exist?"""
    tables, n_states, n_actions = laws.shape
    good, horizon = n_actions == truth.world.n_actions, len(truth.reward)
    for i in range(tables * n_states if good else 0):
        law, total = laws[i // n_states, i % n_states], 0.0
        for a in range(n_actions):
            total += law[a]
            good &= law[a] >= 0.0
            if law[a] > 0.0 and not truth.all_exist:
                good &= exists(truth.world, (i // n_states) % horizon, i % n_states, a)
        good &= abs(total - 1.0) < SUM_SLACK
    return good


@inner
def fitting(scene, beliefs):
    """Are shapes, and all numbers but center and gram, as they should be?"""
    good, replicas, truth = True, len(scene.worth), scene.truth
    for numbers in (beliefs.start_value, beliefs.upper, beliefs.inner_gap, beliefs.radius):
        good &= len(numbers) == replicas or len(numbers) == 0
        for i in range(len(numbers)):
            good &= numbers[i] - numbers[i] == 0.0  # a finite number
    for i in range(len(beliefs.radius)):
        good &= beliefs.radius[i] >= 0.0
    if len(beliefs.radius) > 0:
        parameters, d, size = truth.theta.shape[1], truth.theta.shape[2], truth.gram_start[len(truth.gram_start) - 1]
        good &= beliefs.center.shape == (replicas, parameters, d) and beliefs.gram.shape == (replicas, parameters, size)
    return good


@inner
def believed(scene, t, beliefs):
    """Compare what the agent believes with the truth; FINE or DOUBTFUL."""
    truth, record, start_value = scene.truth, scene.record, beliefs.start_value
    for r in range(len(start_value)):
        record.optimism[t, r] = start_value[r] - truth.optimum[r if len(truth.optimum) > 1 else 0]
        if len(beliefs.upper) > 0:
            record.loss[t, r] = beliefs.upper[r] - start_value[r]
    for r in range(len(beliefs.inner_gap)):
        record.inner[t, r] = beliefs.inner_gap[r]
    return FINE if coverage(truth, beliefs, record.covered[t], record.bits[t], scene.away) else DOUBTFUL


@inner
def plus_next(truth, r, h, s, a, follow, total):
    """total + E[v | s, a] in the model of replica r, v what the outcomes of stage h are worth."""
    world = truth.world
    prob, base = world.prob[r if len(world.prob) > 1 else 0], world.base[h, s]
    pair = (world.stage_table[h] * len(world.start) + s) * world.n_actions + a
    for row in range(world.row_start[pair], world.row_start[pair + 1]):
        total += prob[base + row] * follow[truth.kind[row]]
    return total


@inner
def at_start(truth, value):
    """start . V_1."""
    total = 0.0
    for node in range(truth.node_start[0], truth.node_start[1]):
        total += truth.world.start[truth.node_state[node]] * value[0, truth.node_state[node]]
    return total


@inner
def start_values(truth, policy, scene):
    """start . V^pi_1 over the reachable states; a policy that has not changed since it was judged keeps its value."""
    horizon, value = len(truth.reward), scene.room
    for r in range(len(scene.worth)):
        table = policy[r if len(policy) > 1 else 0]
        if not another(truth, table, scene.judged[r]):
            continue
        if r > 0 and len(policy) == 1 and len(truth.world.prob) == 1:
            scene.worth[r] = scene.worth[0]
            continue
        for h in range(horizon - 1, -1, -1):
            follow, last = worth(truth.after, value[h + 1], scene.ahead), h == horizon - 1 and truth.after.idle
            for node in range(truth.node_start[h], truth.node_start[h + 1]):
                s = truth.node_state[node]
                a = table[h, s]
                ahead = 0.0 if last else plus_next(truth, r, h, s, a, follow, 0.0)
                value[h, s] = truth.reward[h, s, a] + ahead
        scene.worth[r] = at_start(truth, value)


@inner
def another(truth, table, judged):
    """Does a policy differ from the one judged last in a state that can be reached?  Then it takes its place."""
    found = False
    for h in range(len(truth.reward)):
        for node in range(truth.node_start[h], truth.node_start[h + 1]):
            action = table[h, truth.node_state[node]]
            found |= action != judged[node]
            judged[node] = action
    return found


@inner
def start_values_mixed(truth, laws, scene):
    """start . V^pi_1 of policies that draw their actions, (R H or H, S, A)."""
    horizon, value = len(truth.reward), scene.room
    for r in range(len(scene.worth)):
        table = r * horizon if len(laws) > horizon else 0
        for h in range(horizon - 1, -1, -1):
            follow = worth(truth.after, value[h + 1], scene.ahead)
            for node in range(truth.node_start[h], truth.node_start[h + 1]):
                s = truth.node_state[node]
                mixed = 0.0
                for a in range(truth.world.n_actions):
                    gain = truth.reward[h, s, a]
                    if gain >= 0.0:  # the action exists
                        mixed += laws[table + h, s, a] * plus_next(truth, r, h, s, a, follow, gain)
                value[h, s] = mixed
        scene.worth[r] = at_start(truth, value)
        scene.judged[r, 0] = -1  # not an action: whatever comes next is a different policy


@inner
def score(truth, states, actions, choices, worth, record, t):
    """Regret, realised regret and the increment of sigma_bar^2 of episode t."""
    horizon = len(truth.reward)
    for r in range(len(states)):
        own = r if len(truth.value) > 1 else 0
        total, spread = 0.0, 0.0
        for h in range(horizon):
            total += truth.reward[h, states[r, h], actions[r, h]]
            spread += truth.variance[own, h, states[r, h]]
        if len(truth.after.state) > 0 or not truth.after.idle:
            total = earned(truth, states[r], actions[r], choices[r])
        record.regret[t, r] = truth.optimum[own] - worth[r]
        record.realised[t, r] = truth.value[own, states[r, 0]] - total
        record.variance[t, r] = spread / (horizon * horizon * horizon)


@inner
def earned(truth, states, actions, choices):
    """The discounted rewards of an episode, with those of next states and of the last one."""
    world, total, faded = truth.world, 0.0, 1.0
    for h in range(len(actions)):
        total += faded * truth.reward[h, states[h], actions[h]]
        if len(truth.more) > 0:
            pair = (world.stage_table[h] * len(world.start) + states[h]) * world.n_actions + actions[h]
            total += faded * truth.more[world.row_start[pair] + choices[h]]
        faded *= truth.after.discount
    return total + faded * truth.after.end[states[len(actions)]]
