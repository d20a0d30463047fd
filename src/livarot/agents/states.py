"""Which state may be used with which agent and problem: the check behind files, checkpoints and ``Online(state=)``.

A state is compared with the one that the agent's own ``init`` makes for the problem:

- **Always**: the same parts by the same names, the same types, the same number of axes, and one number R of replicas
  where ``init`` has one replica per entry of the leading axis.
- **States of this package**: the same sizes, except where a part grows; whole numbers (counts, indices, episodes) are
  not negative; floats are finite where ``init`` leaves them finite; indices of pairs, outcomes and actions are those of
  the problem (:data:`RULES`).  Nothing a kernel indexes with is left unchecked.
- **Other states**: the same sizes, unless the state is known to belong to the problem (its fingerprint says so): a
  state may grow.

Whether the numbers come from the agent's own episodes cannot be checked.  That W'W is the inverse of the Gram matrix is
not checked either: it would cost a factorisation per replica and stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.agents.base import Agent, NoState
from livarot.agents.exploration import Log
from livarot.agents.leaves import leaves, mapped
from livarot.agents.tabular.ucrl2 import UCRL2State
from livarot.agents.variants.rare_switching import Kept, _inner, _packed, _unpacked
from livarot.errors import LivarotError, bad
from livarot.estimation.history import History
from livarot.estimation.omd import ParameterSet
from livarot.file_layout import Layout, Misfit, Tensor, check_range
from livarot.model.episodes import Estimate, check_estimate, check_policy
from livarot.model.problem import Problem


def flat(state: tuple[Any, ...]) -> dict[str, NDArray[Any]]:
    """The arrays of a state (NamedTuples, nested or not) by their dotted names.

    >>> flat(NoState(np.zeros(2)))
    {'policy': array([0., 0.])}
    """
    return {name: np.asarray(leaf) for name, leaf in leaves(state).items()}


def rebuilt(pattern: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """A state of the pattern's type: scalars come back as scalars, arrays as arrays."""
    return mapped(lambda name, leaf: arrays[name] if isinstance(leaf, np.ndarray) else arrays[name].item(), pattern)


def layout_of(agent: Agent[Any], problem: Problem, *, same_problem: bool) -> Layout:
    """What the arrays of a state have to be, by the names of :func:`flat`."""
    one = agent.init(problem)
    try:
        two = agent.init(problem, 2)
    except LivarotError:  # made for one replica
        two = one
    return Layout({}, _tensors(one, two, "", same_problem), {"R": 1} if two is one else {})


def _tensors(one: Any, two: Any, prefix: str, same_problem: bool) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    own, rule = _is_own(one), RULES.get(type(one), Rule())
    grows = one._fields if same_problem and not own else rule.grows
    for name, part, twice in zip(one._fields, one, two, strict=True):
        where = f"{prefix}{name}"
        if isinstance(part, tuple):
            found |= _tensors(part, twice, f"{where}.", same_problem)
            continue
        array, more = np.asarray(part), np.shape(twice)
        shape: list[str | int] = [f"{where} {axis}" for axis in range(array.ndim)] if name in grows else [*array.shape]
        if array.ndim and more[0] != array.shape[0]:
            shape[0] = "R"
        low = 0.0 if own and array.dtype.kind == "i" else -np.inf
        finite = own and name not in rule.infinite and bool(np.isfinite(array).all())
        found[where] = Tensor(array.dtype.name, tuple(shape), low=low, finite=finite)
    return found


def check_state(problem: Problem, state: Any) -> None:
    """Do the parts of a state of the right layout fit each other and the problem?  :class:`Misfit` if not."""
    rule = RULES.get(type(state))
    if rule is not None and rule.check is not None:
        rule.check(problem, state)
    for part in state:
        if isinstance(part, Kept):
            _check_kept(problem, state, part)
        if isinstance(part, tuple):
            check_state(problem, part)


def require_state(agent: Agent[Any], problem: Problem, state: Any, *, same_problem: bool) -> None:
    """Refuse a state in memory that is not one of this agent for this problem."""
    pattern = agent.init(problem)
    if type(state) is not type(pattern):
        cure = f"pass a state of {agent.name}"
        raise bad("state", f"is {type(state).__name__}, expected {type(pattern).__name__}", cure=cure)
    arrays = flat(state)
    layout = layout_of(agent, problem, same_problem=same_problem)
    try:
        sizes = layout.check_head({}, {name: (x.dtype.name, x.shape) for name, x in arrays.items()})
        layout.check_numbers(arrays, sizes)
        check_state(problem, state)
    except Misfit as error:
        raise bad("state", str(error), cure="pass a state that was learned in this problem") from error


def _is_own(part: Any) -> bool:
    inner = getattr(type(part), "inner", None)  # rare switching extends the inner agent's state
    return (inner if isinstance(inner, type) else type(part)).__module__.startswith("livarot.")


# ---------------------------------------------------------------- what kernels index with


def _check_estimate(problem: Problem, part: Estimate) -> None:
    check_estimate(problem, part)
    rows = problem.rows
    sizes = np.diff(rows.block_start)
    starts = np.repeat(rows.gram_start[:-1], sizes)
    place = np.arange(len(starts)) - np.repeat(rows.block_start[:-1], sizes)
    diagonal = starts + place * (np.repeat(sizes, sizes) + 1)
    for name, packed in (("gram", part.gram), ("whiten", part.whiten)):
        if not (packed[..., diagonal] > 0.0).all():
            raise Misfit(f"{name} has a diagonal entry that is not positive")


def _check_set(problem: Problem, part: ParameterSet) -> None:
    replicas = len(part.radius)
    full = ((replicas, *problem.theta_shape), (replicas, *problem.gram_shape))
    empty = part.center.shape == part.shape.shape == (0, 0, 0) and bool(np.isinf(part.radius).all())
    if not (empty or (part.center.shape, part.shape.shape) == full):
        raise Misfit(f"the burn-in's set has shapes {part.center.shape} and {part.shape.shape}, expected {full}")
    if not (part.bound >= 0.0 and (part.radius >= 0.0).all()):
        raise Misfit("the burn-in's set has a radius below 0")


def _check_log(problem: Problem, part: Log) -> None:
    _check_pairs(problem, part.pairs)
    if not (part.choices < problem.rows.outcomes[part.pairs]).all():
        raise Misfit("the burn-in's log has an outcome that its pair does not have")


def _check_history(problem: Problem, part: History) -> None:
    _check_pairs(problem, part.pairs)
    room = part.pairs.shape[2]
    expected = (len(part.pairs), problem.n_parameters, room)
    if part.pairs.shape != expected or part.counts.shape != (*expected, problem.max_reachable) or room < 1:
        raise Misfit(f"the history has shapes {part.pairs.shape} and {part.counts.shape}")
    check_range("the history's length", part.used, 0, room)
    check_range("the history", part.counts, 0.0, np.inf)
    used = np.arange(room) < part.used[:, :, None]
    if not (problem.rows.pair_block[part.pairs[used]] >= 0).all():
        raise Misfit("the history has a pair that teaches nothing")
    beyond = np.arange(problem.max_reachable) >= problem.rows.outcomes[part.pairs][..., None]
    if (part.counts[beyond] != 0.0).any():
        raise Misfit("the history counts an outcome that its pair does not have")


def _check_pairs(problem: Problem, pairs: NDArray[Any]) -> None:
    check_range("a list of pairs", pairs, 0, problem.rows.n_pairs - 1)


def _check_policies(problem: Problem, part: Any) -> None:
    for one in part.policy:
        check_policy(problem, one)


def _check_kept(problem: Problem, state: Any, kept: Kept) -> None:
    """The inner state of the last switch is kept flattened; rebuilt from its numbers, it has to be valid too."""
    inner, replicas = _inner(state), len(kept.since)
    if kept.inner.shape != _packed(inner, replicas).shape:
        raise Misfit(f"the state of the last switch has {kept.inner.shape[1]} numbers, not as many as the state has")
    if (kept.since > kept.episode).any():
        raise Misfit("the last switch is later than the episode")
    for r in range(replicas):  # each switched at its own time
        packed = kept.inner[r : r + 1]
        with np.errstate(invalid="ignore"):
            then = _unpacked(inner, packed, replicas)
            whole = np.array_equal(_packed(then, 1), packed, equal_nan=True)
        if not whole or (_is_own(state) and any((x < 0).any() for x in flat(then).values() if x.dtype.kind != "f")):
            raise Misfit("the state of the last switch has a count that is not a whole number >= 0")
        check_state(problem, then)


class Rule(NamedTuple):
    """What is special about a part of a state: a check of its numbers, fields that grow or may be infinite."""

    check: Callable[[Problem, Any], None] | None = None
    grows: tuple[str, ...] = ()
    infinite: tuple[str, ...] = ()


RULES: dict[type, Rule] = {
    Estimate: Rule(_check_estimate),
    ParameterSet: Rule(_check_set, ("center", "shape"), ("bound", "radius")),
    Log: Rule(_check_log),
    History: Rule(_check_history, ("pairs", "counts")),
    NoState: Rule(_check_policies),
    UCRL2State: Rule(_check_policies),
    Kept: Rule(grows=("inner",)),
}
