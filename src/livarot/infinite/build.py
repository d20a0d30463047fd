"""The constructors of a stationary model: from functions, from long arrays, from known transition probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import LivarotError, bad, require_callable, require_finite
from livarot.infinite.terms import (
    Given,
    Names,
    Pairs,
    Terms,
    read_available,
    read_pay,
    read_terminal,
    require_actions,
    stored_discount,
    unit_of,
)
from livarot.model.building.long_arrays import Long
from livarot.model.building.validation import (
    check_long,
    check_outcomes,
    check_rows,
    check_start,
    check_theta,
    collect_stage,
)
from livarot.model.labels import Labels, check_labels
from livarot.model.problem import MNLMDP, Problem
from livarot.model.ragged import Rows
from livarot.model.terms.rewards import Gains, next_gains
from livarot.model.terms.rewards import normalise as normalised
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.infinite.problem import InfiniteMDP

PairFunction = Callable[[int, int], Any]


class Declared:
    """The names and terminal states that a user declares; everything else is read with them."""

    def __init__(self, names: Names, terminal: BoolArray) -> None:
        self.names, self.terminal = names, terminal

    def ended(self, counts: IntArray, next_state: Any, features: Any, offset: Any) -> Long:
        """The rows; those of a terminal state are replaced by one, of its first action, that leads back to it."""
        shape = 1, self.names.n_states, self.names.n_actions
        long = check_long(counts.reshape(shape), next_state, features, offset, np.zeros(1, dtype=np.int32))
        ended = long.only(None, self.terminal if self.terminal.any() else None)
        require_actions(ended.counts.reshape(-1), self.terminal, self.names)
        return ended


@checked
def from_function(
    cls: type[InfiniteMDP],
    n_states: int,
    n_actions: int,
    *,
    features: PairFunction,
    theta: ArrayLike,
    param_bound: float | None = None,
    normalise: bool = False,
    offset: PairFunction | None = None,
    **terms: Unpack[Given],
) -> InfiniteMDP:
    """Build from ``features(s, a) -> (next_states, phi)``; see :meth:`livarot.MNLMDP.from_function`.

    The functions are called where the action exists.  ``reward`` or ``cost``, of any scale: (S, A), r(s, a),
    r(s, a, s'), or a table with names.  ``available``: a mask (S, A), a list of actions for each state, {state:
    actions}, or a function of (s, a).  ``terminal``: states where everything ends, or {state: reward there}.
    ``discount`` in [0, 1] is kept with the model.  ``start``: a state or a distribution.  ``states`` and ``actions``
    are their names, any hashables.

    >>> from livarot.infinite import InfiniteMDP
    >>> def features(s, a):            # stay or leave, a logit in one feature
    ...     return [0, 1], [[0.0], [1.0 if a else -1.0]]
    >>> mdp = InfiniteMDP.from_function(2, 2, features=features, reward=[[0, 0], [1, 1]], theta=[0.5])
    >>> mdp.problem.n_states, mdp.problem.dim
    (2, 1)
    """
    declared, given = _read(n_states, n_actions, dict(terms))
    names = declared.names
    require_memory("n_states", "the answers of features for every (s, a)", 50 * n_states * n_actions)
    exists = read_available(given.get("available"), names) & ~declared.terminal[:, None]
    require_actions(exists.astype(np.int64).reshape(-1), declared.terminal, names)
    collected = _collect(features, offset, exists)
    return _with_parameter(cls, declared, given, collected, theta, param_bound, normalise)


@checked
def from_arrays(
    cls: type[InfiniteMDP],
    n_states: int,
    n_actions: int,
    *,
    outcomes: ArrayLike,
    next_state: ArrayLike,
    features: Any,
    theta: ArrayLike,
    offset: ArrayLike | None = None,
    param_bound: float | None = None,
    normalise: bool = False,
    **terms: Unpack[Given],
) -> InfiniteMDP:
    """Build from long arrays, for large models; the other keywords are those of :meth:`from_function`.

    ``outcomes`` (S, A) counts the next states of each pair, 0 for an action that does not exist; ``next_state``
    (rows,), ``features`` (rows, d) (dense or scipy sparse) and ``offset`` (rows,) list them in that order.
    """
    declared, given = _read(n_states, n_actions, dict(terms))
    counts = check_outcomes(outcomes, n_states * n_actions)
    if len(counts) != n_states * n_actions:
        raise bad("outcomes", f"has {len(counts)} entries, expected {n_states * n_actions}")
    _agree(given.get("available"), counts, declared)
    return _with_parameter(cls, declared, given, (counts, next_state, features, offset), theta, param_bound, normalise)


@checked
def from_transitions(cls: type[InfiniteMDP], transitions: Any, **terms: Unpack[Given]) -> InfiniteMDP:
    """A stationary model with known transition probabilities; the keywords are those of :meth:`from_function`.

    ``transitions`` is dense (S, A, S); a scipy sparse matrix (S A, S) with row s A + a; or one sparse matrix (S, S) for
    each action.  A row without entries is an action that does not exist.  Inside, the probabilities are offsets log p,
    and the parameter is 0.

    >>> from livarot.infinite import InfiniteMDP, solve
    >>> mdp = InfiniteMDP.from_transitions(
    ...     [[[0.9, 0.1], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]],     # the second state has one action only
    ...     cost={("old", "keep"): 5.0, ("old", "replace"): 20.0, ("new", "keep"): 1.0},
    ...     discount=0.95, states=["old", "new"], actions=["keep", "replace"])
    >>> solve(mdp).policy["old"]
    'replace'
    """
    from scipy.sparse import csr_array

    table = stacked("transitions", transitions)
    n_states = int(table.shape[1])
    n_actions = int(table.shape[0]) // n_states
    declared, given = _read(n_states, n_actions, dict(terms))
    _check_probabilities(table, declared.terminal, n_actions)
    table.eliminate_zeros()
    counts, prob, nexts = np.diff(table.indptr).astype(np.int64), table.data, table.indices
    if given.get("available") is not None:
        mask = read_available(given["available"], declared.names)
        kept, counts = np.repeat(mask.reshape(-1), counts), np.where(mask.reshape(-1), counts, 0)
        prob, nexts = prob[kept], nexts[kept]
        _agree(mask, counts, declared)
    rows, _ = check_rows(declared.ended(counts, nexts, csr_array((len(nexts), 1)), np.log(prob)), normalise=False)
    return _finished(cls, declared, given, rows, np.zeros((1, 1)), (0.0, 1.0))


def with_terms(mdp: InfiniteMDP, given: Any) -> InfiniteMDP:
    """See :meth:`InfiniteMDP.with_terms`."""
    problem, own = mdp.problem, mdp.problem.terms
    settings = {"states": problem.stage.states, "actions": problem.stage.actions, "discount": own.discount}
    declared, given = _read(problem.n_states, problem.n_actions, settings | dict(given))
    names = declared.names
    if given.get("available") is not None:
        raise bad("available", "cannot be changed in a finished model", cure="build the model with it")
    if "terminal" in given and not np.array_equal(declared.terminal, own.terminal):
        raise bad("terminal", "cannot be changed in a finished model", cure="build the model with it")
    start = problem.start if given.get("start") is None else _start(given, names)
    stage = replace(problem.stage, states=names.states, actions=names.actions, start=start)
    if given.get("reward") is None and given.get("cost") is None:
        terms = replace(own, discount=stored_discount("discount", given.get("discount")))
        return type(mdp)(MNLMDP(stage, mdp.stage.theta), terms)
    if "terminal" not in given:
        declared.terminal = own.terminal
    found = _finished(type(mdp), declared, given, problem.rows, mdp.stage.theta, (problem.param_bound, 1.0))
    scaled = replace(found.stage.problem, feature_scale=problem.stage.feature_scale, start=start)
    return type(mdp)(MNLMDP(scaled, mdp.stage.theta), found.terms)


def with_horizon(mdp: InfiniteMDP, horizon: int) -> MNLMDP:
    """See :meth:`InfiniteMDP.with_horizon`.  Stages are alike, so that their rewards are mapped into [0, 1] as one."""
    problem, terms = mdp.problem, mdp.problem.terms
    require_memory("horizon", "the rewards (H, S, A)", horizon * problem.n_states * problem.n_actions)
    counts = problem.rows.outcomes.reshape(1, problem.n_states, problem.n_actions)
    long = Long(counts, problem.rows.next_state.astype(np.int64), None, None, np.zeros(1, dtype=np.int32))
    gains = Gains(terms.reward[None], None)
    if terms.outcome_reward is not None:
        gains = next_gains([terms.outcome_reward + np.repeat(terms.reward.reshape(-1), counts.reshape(-1))], long)
    ends = terms.terminal if terms.terminal.any() else None
    final = terms.terminal_reward if terms.terminal_reward.any() else None
    gamma = 1.0 if terms.discount is None else terms.discount
    paid = normalised(gains, final, long, ends, gamma, terms.costs)
    stages = replace(
        problem.stage,
        horizon=horizon,
        stage_table=np.zeros(horizon, dtype=np.int32),
        reward=np.repeat(paid.reward, horizon, axis=0),
        discount=gamma,
        next_reward=None if paid.more is None else paid.more[0],
        terminal_reward=paid.terminal_reward,
        terminal=ends,
        units=paid.units,
    )
    return MNLMDP(stages, mdp.stage.theta)


def _read(n_states: int, n_actions: int, given: dict[str, Any]) -> tuple[Declared, dict[str, Any]]:
    """The names and terminal states that everything else is read with; unknown keywords are refused."""
    unknown = [name for name in given if name not in Given.__annotations__]
    if unknown:
        cure = f"the keywords are {', '.join(Given.__annotations__)}"
        raise bad(unknown[0], "is not an argument", count=len(unknown), cure=cure)
    labels: list[Labels | None] = []
    for name, size in (("states", n_states), ("actions", n_actions)):
        labels.append(check_labels(name, given.get(name), size))
    names = Names(n_states, n_actions, *labels)
    sign = -1.0 if given.get("cost") is not None else 1.0
    terminal, pay = read_terminal(given.get("terminal"), names, sign)
    given["terminal_reward"] = pay
    return Declared(names, terminal), given


def _collect(features: PairFunction, offset: PairFunction | None, exists: BoolArray) -> tuple[Any, ...]:
    """Long arrays from the user's functions, called for the pairs that exist."""
    require_callable(features=features, offset=offset)

    def own(function: PairFunction) -> Callable[[int, int, int], Any]:
        return lambda h, s, a: function(s, a)

    try:
        table = collect_stage(0, exists, own(features), None if offset is None else own(offset))
    except LivarotError as error:
        raise _without_stage(error) from error
    return table["outcomes"], table["next_state"], table["features"], table["offset"]


def _without_stage(error: LivarotError) -> LivarotError:
    """The error of a pair, with (s, a) in place of (h, s, a)."""
    if error.index is None or len(error.index) != 3:
        return error
    problem = str(error).partition(": ")[2].partition(" (")[0].replace("(h, s, a)", "(s, a)")
    return bad(error.argument or "features", problem, index=error.index[1:], count=error.count, cure=error.cure)


def _agree(available: Any, counts: IntArray, declared: Declared) -> None:
    """Refuse a mask that contradicts the rows; terminal states have no action whatever the mask says."""
    if available is None:
        return
    names = declared.names
    mask = read_available(available, names).reshape(-1)
    wrong = np.flatnonzero((mask != (counts > 0)) & ~np.repeat(declared.terminal, names.n_actions))
    if len(wrong):
        pair, has = int(wrong[0]), bool(counts[wrong[0]])
        message = f"{names.pair_names(pair)} {'has next states' if has else 'has none'}, the mask says otherwise"
        cure = "leave available out: an action without next states does not exist"
        raise bad("available", message, index=divmod(pair, names.n_actions), count=len(wrong), cure=cure)


def _with_parameter(
    cls: type[InfiniteMDP],
    declared: Declared,
    given: dict[str, Any],
    collected: tuple[Any, ...],
    theta: ArrayLike,
    param_bound: float | None,
    normalise: bool,
) -> InfiniteMDP:
    """The model of long arrays and a parameter."""
    if require_finite("theta", theta).ndim != 1:
        raise bad("theta", f"has {np.ndim(theta)} axes, expected (d,)", cure="all steps share one parameter")
    vector, bound, _ = check_theta(theta, param_bound)
    rows, scale = check_rows(declared.ended(*collected), normalise)
    return _finished(cls, declared, given, rows, vector * scale, (bound * scale, scale))


def _finished(
    cls: type[InfiniteMDP],
    declared: Declared,
    given: dict[str, Any],
    rows: Rows,
    theta: FloatArray,
    bound_and_scale: tuple[float, float],
) -> InfiniteMDP:
    """The model of these rows in the user's terms; the stage behind it has rewards in [0, 1]."""
    names = declared.names
    pairs = Pairs(rows, declared.terminal, names)
    reward, outcome_reward, costs = read_pay(given.get("reward"), given.get("cost"), pairs)
    unit = unit_of(reward, outcome_reward, given["terminal_reward"])
    discount = stored_discount("discount", given.get("discount"))
    terms = Terms(reward, outcome_reward, declared.terminal, given["terminal_reward"], discount, costs, unit)
    stage = Problem(
        horizon=1,
        rows=rows,
        stage_table=np.zeros(1, dtype=np.int32),
        reward=_in_unit_interval(reward)[None],
        start=_start(given, names),
        param_bound=bound_and_scale[0],
        shared_parameter=True,
        feature_scale=bound_and_scale[1],
        states=names.states,
        actions=names.actions,
    )
    return cls(MNLMDP(stage, theta), terms)


def _in_unit_interval(reward: FloatArray) -> FloatArray:
    low, high = float(reward.min()), float(reward.max())
    if low >= 0.0 and high <= 1.0:
        return reward
    return np.clip((reward - low) / max(high - low, 1e-300), 0.0, 1.0)


def _start(given: dict[str, Any], names: Names) -> FloatArray:
    start = given.get("start", 0)
    return check_start(0 if start is None else start, names.n_states, names.states)


def stacked(argument: str, transitions: Any) -> Any:
    """One CSR matrix (S A, S), row s A + a, of transitions or of their rewards."""
    from scipy.sparse import csr_array, vstack

    cure = "give (S, A, S), a sparse matrix (S A, S), or one sparse matrix (S, S) for each action"
    several = isinstance(transitions, Sequence) and len(transitions) > 0
    if hasattr(transitions, "tocsr"):
        table = csr_array(transitions, dtype=np.float64, copy=True)
    elif several and all(hasattr(one, "tocsr") for one in transitions):
        parts = [csr_array(one, dtype=np.float64) for one in transitions]
        n = parts[0].shape[1]
        wrong = [a for a, one in enumerate(parts) if one.shape != (n, n)]
        if wrong:
            raise bad(argument, f"has shape {parts[wrong[0]].shape} for action", index=wrong[0], cure=cure)
        table = csr_array(vstack(parts, format="csr"))[np.arange(n * len(parts)).reshape(-1, n).T.reshape(-1)]
    else:
        dense = _dense(argument, transitions, cure)
        table = csr_array(dense.reshape(-1, dense.shape[2]))
    if 0 in table.shape or table.shape[0] % table.shape[1]:
        raise bad(argument, f"has shape {table.shape}", cure=cure)
    table.sum_duplicates()
    return table


def _dense(argument: str, transitions: Any, cure: str) -> FloatArray:
    try:
        dense = np.asarray(transitions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad(argument, f"are not numbers ({error})", cure=cure) from error
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or dense.size == 0:
        raise bad(argument, f"has shape {dense.shape}", cure=cure)
    return dense


def _check_probabilities(table: Any, terminal: BoolArray, n_actions: int) -> None:
    """Refuse rows that are neither empty nor distributions; those of terminal states are not read."""
    data, owner_ends = table.data, np.repeat(terminal, n_actions)
    wrong = np.flatnonzero(~(np.isfinite(data) & (data >= 0.0)))
    if len(wrong):
        pair = int(np.searchsorted(table.indptr, wrong[0], side="right")) - 1
        message = f"{data[wrong[0]]:.6g} is not a probability at (s, a)"
        raise bad("transitions", message, index=divmod(pair, n_actions), count=len(wrong), cure="give numbers >= 0")
    sums = np.asarray(table.sum(axis=1)).reshape(-1)
    off = np.flatnonzero((np.abs(sums - 1.0) > SUM_SLACK) & (sums != 0.0) & ~owner_ends)
    if len(off):
        pair = int(off[0])
        message = f"probabilities sum to {sums[pair]:.9g}, not 1, at (s, a)"
        cure = "divide each row by its sum; a row of zeros is an action that does not exist"
        raise bad("transitions", message, index=divmod(pair, n_actions), count=len(off), cure=cure)
