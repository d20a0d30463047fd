"""What an agent gives (a :class:`Plan`) and what it gets back (:class:`Episodes`), for R replicas at once.

Compiled code does not check the indices it is handed.  So whatever comes from outside passes one of the checks below
first: policies and plans (:func:`check_policy`, :class:`PlanCheck`), episodes (:func:`check_episodes`,
:func:`first_foreign` within the kernels that learn from them) and estimates (:func:`check_estimate`).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.core.compiling.jit import jit
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import LivarotError, bad, require_finite
from livarot.model.problem import Problem, require_problem
from livarot.model.shown import compact

_FLOAT = np.dtype(np.float64)


@compact
class Estimate(NamedTuple):
    """theta with its Gram matrix, per replica and parameter; ``whiten`` is W with W'W = gram^-1.

    W is recomputed from ``gram`` whenever a block changes, so it cannot drift away from it.
    """

    theta: FloatArray  # (R, K, d)
    gram: FloatArray  # (R, K, G) packed
    whiten: FloatArray  # (R, K, G) packed, lower triangular blocks


@compact
class Plan(NamedTuple):
    """One policy per replica, fixed before the episode, with what the agent believes about it.

    ``policy`` is int (R, H, S), or float (R, H, S, A) when actions are drawn at random; a leading axis of 1 is one
    policy for all replicas.  States that the start cannot reach keep action 0.  The rest is for the judge and is
    None where an agent has no such thing: ``value`` (R, H+1, S) and ``start_value`` (R,) are the values the agent
    believes in, ``upper`` (R,) is a certified upper bound of the start value over the confidence sets, ``inner_gap``
    (R,) the largest first-order gap of the inner maxima relative to the stage's value range; ``center``, ``gram`` and
    ``radius`` are the confidence sets ``{theta : |theta - center|_gram <= radius}``, one per parameter.  ``engine``
    says how an optimistic plan was computed (:mod:`livarot.planning.optimistic.plan`).

    Numbers are normalised, as rewards in [0, 1] give them: agents and the judge exchange these.  :meth:`in_units` has
    them in the units of the rewards or costs of a problem.
    """

    policy: NDArray[np.int32] | FloatArray
    value: FloatArray | None = None  # (R, H + 1, S)
    start_value: FloatArray | None = None  # (R,)
    upper: FloatArray | None = None  # (R,)
    inner_gap: FloatArray | None = None  # (R,)
    center: FloatArray | None = None  # (R, K, d)
    gram: FloatArray | None = None  # (R, K, G) packed
    radius: FloatArray | None = None  # (R,)
    engine: str | None = None

    def in_units(self, problem: Problem) -> Plan:
        """The same plan with values, start value and upper bound in the units that the problem was given in."""
        units, horizon = problem.units, problem.horizon
        converted: dict[str, Any] = {}
        if self.value is not None:
            converted["value"] = np.stack([units.values(own, horizon) for own in self.value])
        for name in ("start_value", "upper"):
            if getattr(self, name) is not None:
                converted[name] = units.value(getattr(self, name), horizon)
        return self._replace(**converted)


@compact
class Episodes(NamedTuple):
    """One episode per replica: ``choices`` says which of its reachable next states each transition took."""

    states: Int32Array  # (R, H + 1)
    actions: Int32Array  # (R, H)
    choices: Int32Array  # (R, H)

    @classmethod
    def from_states(cls, problem: Problem, states: NDArray[np.integer], actions: NDArray[np.integer]) -> Episodes:
        """Episodes observed elsewhere, from their states (R, H+1) and actions (R, H)."""
        require_problem(problem)
        horizon = problem.horizon
        states, actions = np.atleast_2d(_array("states", states)), np.atleast_2d(_array("actions", actions))
        if states.shape[1] != horizon + 1 or actions.shape != (len(states), horizon):
            raise bad(
                "states",
                f"states {states.shape} and actions {actions.shape} do not fit horizon {horizon}",
                cure=f"give states (R, {horizon + 1}) and actions (R, {horizon})",
            )
        for argument, numbers, size in (("states", states, problem.n_states), ("actions", actions, problem.n_actions)):
            wrong = np.argwhere((numbers < 0) | (numbers >= size))
            if len(wrong):
                first = tuple(int(i) for i in wrong[0])
                cure = f"they are numbered 0..{size - 1}"
                raise bad(argument, f"{numbers[first]} is out of range", index=first, count=len(wrong), cure=cure)
        choices = np.zeros(actions.shape, dtype=np.int32)
        for r, h in np.ndindex(*actions.shape):
            found = np.flatnonzero(problem.next_states(h, int(states[r, h]), int(actions[r, h])) == states[r, h + 1])
            if len(found) == 0:
                raise bad(
                    "states",
                    f"state {states[r, h + 1]} cannot follow (state, action) {(states[r, h], actions[r, h])}",
                    index=(int(r), int(h) + 1),
                    cure="check the reachable sets of the problem against the data",
                )
            choices[r, h] = found[0]
        return cls(states.astype(np.int32), actions.astype(np.int32), choices)


def check_estimate(problem: Problem, estimate: Estimate) -> None:
    """Refuse an estimate that was made for another problem: kernels do not check the bounds of its arrays.

    Only shapes and types are checked, since this is done for every plan: theta (R, K, d), gram and whiten (R, K, G),
    all float64.
    """
    try:
        theta, gram, whiten = estimate
        replicas = len(theta)
        if (
            theta.shape == (replicas, *problem.theta_shape)
            and gram.shape == whiten.shape == (replicas, *problem.gram_shape)
            and theta.dtype == gram.dtype == whiten.dtype == _FLOAT
        ):
            return
    except (TypeError, ValueError, AttributeError) as error:
        cure = "pass the Estimate in an agent's state"
        raise bad("estimate", f"is not an Estimate but {type(estimate).__name__}", cure=cure) from error
    for name, array in zip(Estimate._fields, estimate, strict=True):
        expected = (replicas, *(problem.theta_shape if name == "theta" else problem.gram_shape))
        if array.shape != expected or array.dtype != _FLOAT:
            found = f"{name} has shape {array.shape} and dtype {array.dtype}, this problem needs {expected} of float64"
            raise bad("estimate", found, cure="pass an estimate that was made for this problem")


class Played(Episodes):
    """Episodes that this package made: int32 arrays of the right shapes.  A changed copy is an ``Episodes`` again."""

    @classmethod
    def _make(cls, iterable: Any) -> Episodes:  # type: ignore[override]
        return Episodes(*iterable)


def typed(episodes: Episodes) -> Episodes:
    """Episodes of any origin as contiguous int32 arrays (R, H + 1), (R, H), (R, H); ranges are not checked."""
    if type(episodes) is Played:
        return episodes
    if not isinstance(episodes, tuple) or len(episodes) != 3:
        cure = "use Episodes.from_states(problem, states, actions)"
        raise bad("episodes", f"{type(episodes).__name__} is not Episodes", cure=cure)
    if all(type(part) is np.ndarray and part.dtype == np.int32 and part.flags.c_contiguous for part in episodes):
        found = list(episodes)  # the usual case
    else:
        found = [_whole(f"episodes.{name}", part) for name, part in zip(Episodes._fields, episodes, strict=True)]
    states, actions, choices = found
    if not (states.ndim == 2 and actions.shape == choices.shape == (len(states), states.shape[1] - 1)):
        shapes = f"states {states.shape}, actions {actions.shape}, choices {choices.shape}"
        raise bad("episodes", f"do not fit each other: {shapes}", cure="give (R, H + 1), (R, H) and (R, H)")
    return Played(states, actions, choices)


def _whole(argument: str, given: Any) -> Int32Array:
    array = _array(argument, given)
    if array.dtype.kind not in "iu":
        raise bad(argument, f"has dtype {array.dtype}", cure="give integers")
    if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        raise bad(argument, "has numbers beyond those of any state or action")
    return np.ascontiguousarray(array, dtype=np.int32)


def check_episodes(problem: Problem, episodes: Episodes) -> Episodes:
    """Episodes of this problem, as arrays that a kernel can read, or an error that says what is wrong with them."""
    found = typed(episodes)
    refuse_foreign(problem.rows.row_start, problem.stage_table, problem.n_states, problem.n_actions, found)
    return found


def refuse_foreign(row_start: IntArray, table: NDArray[Any], n_states: int, n_actions: int, episodes: Episodes) -> None:
    """Refuse episodes with a transition that the problem does not have; arguments as in :func:`first_foreign`."""
    horizon = episodes.actions.shape[1]
    if horizon != len(table):
        raise bad("episodes", f"have {horizon} stages, the problem has {len(table)}")
    place, count = first_foreign(row_start, table, n_states, n_actions, *episodes)
    if count:
        r, h = divmod(int(place), horizon)
        triple = tuple(int(x) for x in (episodes.states[r, h], episodes.actions[r, h], episodes.choices[r, h]))
        message = f"no transition of the problem at (replica, stage): (state, action, choice) is {triple}"
        cure = "use Episodes.from_states(problem, states, actions), which numbers the choices"
        raise bad("episodes", message, index=(r, h), count=count, cure=cure)


@jit
def first_foreign(row_start, table, n_states, n_actions, states, actions, choices):
    """The first transition (r H + h) with a state, action or choice that the problem does not have; how many there are.

    The pairs of stage h begin at table[h] S A.  In episodes of another horizon every transition counts as foreign.
    """
    replicas, horizon = actions.shape
    if horizon != len(table):
        return 0, replicas * horizon
    place, count = -1, 0
    for r in range(replicas):
        for h in range(horizon):
            s, a, c = states[r, h], actions[r, h], choices[r, h]
            good = 0 <= s < n_states and 0 <= a < n_actions and c >= 0
            if good:
                pair = (table[h] * n_states + s) * n_actions + a
                good = c < row_start[pair + 1] - row_start[pair]
            if not good:
                place = r * horizon + h if count == 0 else place
                count += 1
    return place, count


def check_shape(argument: str, array: Any, shape: tuple[int, ...]) -> None:
    """Refuse a part of an agent's state whose shape does not fit this problem."""
    if np.shape(array) != shape:
        cure = "use a state that was made for this problem"
        raise bad(argument, f"has shape {np.shape(array)}, this problem needs {shape}", cure=cure)


def check_policy(problem: Problem, policy: Any, replicas: int | None = None) -> NDArray[Any]:
    """A policy as int32 (H, S) or float64 (H, S, A), or an error that says what is wrong with it.

    With ``replicas`` = R there is a leading axis: one policy per replica, or a single one for all.
    """
    table = _array("policy", policy)
    shape: tuple[int, ...] = (problem.horizon, problem.n_states)
    if replicas is not None:
        shape = (1 if table.ndim and len(table) == 1 else replicas, *shape)
    where = "(h, s)" if replicas is None else "(replica, h, s)"
    if table.dtype.kind in "iu" and table.shape == shape:
        wrong = np.argwhere((table < 0) | (table >= problem.n_actions))
        if len(wrong):
            first = tuple(int(i) for i in wrong[0])
            cure = f"actions are numbered 0..{problem.n_actions - 1}"
            raise bad("policy", f"no action {table[first]} at {where}", index=first, count=len(wrong), cure=cure)
        table = np.require(table, np.int32, ["C", "W", "A"])
        return table if problem.all_exist else _existing(problem, table, where)
    if table.dtype.kind == "f" and table.shape == (*shape, problem.n_actions):
        with np.errstate(invalid="ignore"):
            sums = np.abs(table.sum(axis=-1) - 1.0) < SUM_SLACK
        wrong = np.argwhere(~(sums & (table >= 0).all(axis=-1)))
        if len(wrong):
            first = tuple(int(i) for i in wrong[0])
            message = f"is not a distribution over actions at {where}"
            cure = "give probabilities >= 0 that sum to 1"
            raise bad("policy", message, index=first, count=len(wrong), cure=cure)
        table = np.require(table, np.float64, ["C", "W", "A"])
        return table if problem.all_exist else _existing_laws(problem, table, where)
    raise bad(
        "policy",
        f"has shape {table.shape} and dtype {table.dtype}",
        cure=f"give integers {shape} or probabilities {(*shape, problem.n_actions)}",
    )


def _existing(problem: Problem, policy: NDArray[Any], where: str) -> NDArray[Any]:
    """The same policy, with action 0 in terminal states; refused where it plays an action that does not exist."""
    if problem.terminal is not None and policy[..., problem.terminal].any():
        policy = policy.copy()
        policy[..., problem.terminal] = 0
    there = np.take_along_axis(
        np.broadcast_to(problem.exists, (*policy.shape, problem.n_actions)), policy[..., None], -1
    )
    _refuse_unavailable(problem, np.argwhere(~there[..., 0]), policy, where)
    return policy


def _existing_laws(problem: Problem, policy: NDArray[Any], where: str) -> NDArray[Any]:
    """The same for a policy that draws its actions."""
    if problem.terminal is not None:
        policy = policy.copy()
        policy[..., problem.terminal, :] = np.eye(1, problem.n_actions)[0]
    wrong = (policy > 0.0) & ~problem.exists
    _refuse_unavailable(problem, np.argwhere(wrong.any(axis=-1)), wrong.argmax(axis=-1), where)
    return policy


def _refuse_unavailable(problem: Problem, wrong: NDArray[Any], actions: NDArray[Any], where: str) -> None:
    if len(wrong):
        first = tuple(int(i) for i in wrong[0])
        action, state = int(actions[first]), first[-1]
        message = f"action {problem.actions[action] if problem.actions else action!r} is not available"
        message += f" in state {problem.states[state]!r}" if problem.states else ""
        cure = "play the actions of problem.available"
        raise bad("policy", f"{message} at {where}", index=first, count=len(wrong), cure=cure)


def _array(argument: str, given: Any) -> NDArray[Any]:
    if np.ma.is_masked(given):
        raise bad(argument, "has masked entries", cure="fill them: there is no data under a mask")
    try:
        return np.asarray(given)
    except (TypeError, ValueError, OverflowError) as error:  # a ragged list, for instance
        raise bad(argument, f"is not an array ({error})") from error


class PlanCheck:
    """Checks the plans of an agent: ``plan = check(plan, episode)`` is the plan in the types that kernels take.

    A bad plan is a LivarotError that names agent, episode, first bad index and count.  ``value`` is not checked, for
    nothing is computed from it.  In a run the judge's own, faster check comes first
    (:meth:`livarot.running.judge.Judge.episode`).
    """

    def __init__(self, problem: Problem, replicas: int, agent: str) -> None:
        self.problem, self.replicas, self.agent = problem, replicas, agent
        self._shapes = {
            "start_value": (replicas,),
            "upper": (replicas,),
            "inner_gap": (replicas,),
            "center": (replicas, *problem.theta_shape),
            "gram": (replicas, *problem.gram_shape),
            "radius": (replicas,),
        }

    def __call__(self, plan: Plan, episode: int) -> Plan:
        try:
            if not isinstance(plan, Plan):
                message = f"is {type(plan).__name__}, not a Plan"
                raise bad("it", message, cure="let the agent's plan() return livarot.Plan(policy)")
            policy = check_policy(self.problem, plan.policy, self.replicas)
            beliefs: dict[str, Any] = {}
            for name, shape in self._shapes.items():
                if getattr(plan, name) is not None:
                    numbers = require_finite(name, getattr(plan, name))
                    if numbers.shape != shape:
                        raise bad(name, f"has shape {numbers.shape}", cure=f"give {shape}")
                    beliefs[name] = np.require(numbers, np.float64, ["C", "W", "A"])
            if plan.radius is not None:
                negative = np.flatnonzero(beliefs["radius"] < 0.0)
                if len(negative):
                    raise bad("radius", "is negative", index=int(negative[0]), count=len(negative))
                if plan.center is None or plan.gram is None:
                    raise bad("radius", "comes without center and gram", cure="give all three, or none")
            return plan._replace(policy=policy, **beliefs)
        except LivarotError as error:
            raise plan_error(self.agent, f"episode {episode}", error) from error


def require_agent(agent: Any) -> None:
    """Refuse what is not an agent: a class, a name, or anything without ``init``, ``plan`` and ``update``."""
    if isinstance(agent, type):
        raise bad("agent", f"{agent.__name__} is a class, not an agent", cure=f"call it: {agent.__name__}()")
    if isinstance(agent, str):
        raise bad("agent", f"{agent!r} is a name, not an agent", cure=f"make it: livarot.agents.make({agent!r})")
    missing = [name for name in ("init", "plan", "update") if not callable(getattr(agent, name, None))]
    if not isinstance(getattr(agent, "name", None), str):
        missing.append("name")
    if missing:
        message = f"{type(agent).__name__} is not an agent: it has no {', '.join(missing)}"
        raise bad("agent", message, cure="pass an agent such as livarot.agents.Livarot()")


def plan_error(agent: str, when: str, error: LivarotError) -> LivarotError:
    """The error of a plan, with the agent and the time that it comes from."""
    message = f"plan: agent {agent!r}, {when}: {error}"
    return LivarotError(message, argument="plan", index=error.index, count=error.count, cure=error.cure)
