"""Feature maps: from the transitions of a table of probabilities to the features of an MNL model.

A map gets the reachable sets of a kernel p0, flat (:class:`Transitions`), and answers with one feature row per
transition, a known offset, and, where it knows it, the parameter (:class:`Encoding`); the model is then

    p(s'|s, a) = exp(offset(s') + phi(s'|s, a) . theta) / sum_{s''} exp(offset(s'') + phi(s''|s, a) . theta),

s'' over the reachable next states.

==============  ====================================================  ==========================================
map             phi(s'|s, a)                                          represents
==============  ====================================================  ==========================================
``OneHot``      one coordinate per (s, a, s'), except a support       every kernel: theta = log p(s')/p(support)
                state of each (s, a), the most likely one (phi = 0)
``Moves``       up / down, and the same at either bank, per action    chains whose moves do not depend on s
``NextState``   attributes of s' (by default: which state it is)      p(s'|s, a) ~ w(s') on the reachable set
``LogNominal``  offset log p0, features x(s, a, s') of a tilt         p ~ p0 exp(w . x); theta = 0 is p0 itself
``Function``    any function of (s, a, s')                            what the function can express
``LongTable``   columns of a long table                               what the columns can express
==============  ====================================================  ==========================================

One-hot features are sparse: a row has one entry, Gram matrices fall into blocks as small as a reachable set, and
nothing costs d^2.  A map is an object with one method, ``encode``: write your own, and hand it to
:func:`livarot.envs.from_tabular`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.errors import bad, require_finite
from livarot.model.building.build import Terms
from livarot.model.building.validation import whole_numbers
from livarot.model.problem import MNLMDP
from livarot.system.sizes import require_memory

UP, DOWN, UP_FROM_BOTTOM, DOWN_FROM_TOP = range(4)  # columns of Moves, per action


@dataclass(frozen=True, eq=False)
class Transitions:
    """The reachable sets of a tabular kernel, pair after pair; pair = (table * S + s) * A + a.

    A pair that does not exist has no outcome.
    """

    n_states: int
    n_actions: int
    outcomes: IntArray  # (pairs,)
    next_state: IntArray  # (rows,)
    probability: FloatArray  # (rows,) p0, positive, sums to 1 in each pair
    shared_parameter: bool = True  # one theta for all tables?

    @property
    def n_rows(self) -> int:
        return len(self.next_state)

    @property
    def n_tables(self) -> int:
        return len(self.outcomes) // (self.n_states * self.n_actions)

    @cached_property
    def pair(self) -> IntArray:
        """The pair of each row, (rows,)."""
        return np.repeat(np.arange(len(self.outcomes)), self.outcomes)

    @cached_property
    def first_row(self) -> IntArray:
        """The first row of each pair, (pairs,)."""
        return np.concatenate(([0], np.cumsum(self.outcomes)[:-1])).astype(np.int64)

    @property
    def table(self) -> IntArray:
        return self.pair // (self.n_states * self.n_actions)

    @property
    def state(self) -> IntArray:
        return self.pair // self.n_actions % self.n_states

    @property
    def action(self) -> IntArray:
        return self.pair % self.n_actions

    @cached_property
    def support(self) -> IntArray:
        """The row of the most likely next state of each pair (the first of equals), (pairs,); -1 if it has none."""
        order = np.lexsort((np.arange(self.n_rows), -self.probability, self.pair))
        found, some = np.full(len(self.outcomes), -1, dtype=np.int64), self.outcomes > 0
        found[some] = order[self.first_row[some]]
        return found

    @cached_property
    def informative(self) -> BoolArray:
        """Rows of pairs with more than one outcome, (rows,)."""
        return np.asarray(self.outcomes[self.pair] > 1)

    def where(self, row: int) -> tuple[int, ...]:
        """(state, action, next state) of a row, for messages; the table first if there are several."""
        place = (int(self.state[row]), int(self.action[row]), int(self.next_state[row]))
        return place if self.n_tables == 1 else (int(self.table[row]), *place)


class Encoding(NamedTuple):
    """What a map returns: features (rows, d), dense or scipy sparse; offset (rows,); theta (1 or tables, d)."""

    features: Any
    offset: FloatArray | None = None
    theta: FloatArray | None = None  # None: to be fitted to p0


class FeatureMap(Protocol):
    """Anything that encodes transitions."""

    def encode(self, transitions: Transitions) -> Encoding: ...


@dataclass(frozen=True)
class OneHot:
    """One coordinate per (s, a, s') but the support state of (s, a): exact for every kernel, nothing is shared.

    With one theta for all stages and probabilities that depend on the stage, each table has its own coordinates.
    A deterministic kernel gets one coordinate that no row uses.
    """

    def encode(self, transitions: Transitions) -> Encoding:
        t = transitions
        used = np.ones(t.n_rows, dtype=np.bool_)
        used[t.support[t.outcomes > 0]] = False
        rows = np.flatnonzero(used)
        group = t.table if t.shared_parameter else np.zeros(t.n_rows, dtype=np.int64)
        pair = (group * t.n_states + t.state) * t.n_actions + t.action
        key = pair[rows] * np.int64(t.n_states) + t.next_state[rows]
        unique, column = np.unique(key, return_inverse=True)
        dim = max(len(unique), 1)
        odds = np.log(t.probability[rows] / t.probability[t.support[t.pair[rows]]])
        theta = np.zeros((1 if t.shared_parameter else t.n_tables, dim))
        theta[np.zeros(len(rows), dtype=np.int64) if t.shared_parameter else t.table[rows], column] = odds
        features = scipy.sparse.coo_array((np.ones(len(rows)), (rows, column)), shape=(t.n_rows, dim))
        return Encoding(features, None, theta)


@dataclass(frozen=True)
class Moves:
    """Moves along a line of states, shared by all of them: four coordinates per action whose outcome is uncertain.

    *Up* and *down* in the middle, *up* from the lowest state, *down* from the highest; staying has phi = 0.
    """

    def encode(self, transitions: Transitions) -> Encoding:
        t = transitions
        step = t.next_state - t.state
        far = np.flatnonzero(t.informative & (np.abs(step) > 1))
        if len(far):
            raise bad(
                "features",
                "moves lead to neighbouring states only, but (state, action, next state) jumps further",
                index=t.where(int(far[0])),
                count=len(far),
                cure="use features='one-hot' or a map of your own",
            )
        moving = np.flatnonzero(t.informative & (step != 0))
        kind = np.where(step > 0, UP, DOWN)
        kind = np.where((step > 0) & (t.state == 0), UP_FROM_BOTTOM, kind)
        kind = np.where((step < 0) & (t.state == t.n_states - 1), DOWN_FROM_TOP, kind)
        actions, which = np.unique(t.action[moving], return_inverse=True)
        column = 4 * which + kind[moving]
        shape = (t.n_rows, max(4 * len(actions), 1))
        return Encoding(scipy.sparse.coo_array((np.ones(len(moving)), (moving, column)), shape=shape))


@checked
@dataclass(frozen=True, eq=False)
class NextState:
    """phi depends on the next state: ``attributes`` (S, k), or which state it is; ``per_action`` separately."""

    attributes: ArrayLike | None = None
    per_action: bool = False

    def encode(self, transitions: Transitions) -> Encoding:
        t = transitions
        if self.attributes is None:
            shape = (t.n_rows, t.n_states)
            plain = scipy.sparse.csr_array((np.ones(t.n_rows), (np.arange(t.n_rows), t.next_state)), shape=shape)
        else:
            table = require_finite("attributes", self.attributes)
            if table.ndim != 2 or len(table) != t.n_states or table.shape[1] < 1:
                raise bad("attributes", f"has shape {table.shape}, expected ({t.n_states}, k), a row per state")
            plain = scipy.sparse.csr_array(table)[t.next_state]
        if not self.per_action:
            return Encoding(plain)
        entries = plain.tocoo()
        row, column = entries.coords
        return Encoding(
            scipy.sparse.coo_array(
                (entries.data, (row, t.action[row] * plain.shape[1] + column)),
                shape=(t.n_rows, t.n_actions * plain.shape[1]),
            )
        )


@checked
@dataclass(frozen=True, eq=False)
class Function:
    """``function(s, a, s') -> d numbers``, called for every transition; the same at every stage."""

    function: Callable[[int, int, int], ArrayLike]

    def encode(self, transitions: Transitions) -> Encoding:
        t = transitions
        triples = zip(t.state.tolist(), t.action.tolist(), t.next_state.tolist(), strict=True)
        answers = [np.atleast_1d(np.asarray(self.function(*triple), dtype=np.float64)) for triple in triples]
        widths = np.array([answer.shape[0] if answer.ndim == 1 else -1 for answer in answers])
        wrong = np.flatnonzero((widths < 1) | (widths != widths[0]))
        if len(wrong):
            raise bad(
                "features",
                f"the function gives shape {answers[wrong[0]].shape} at (state, action, next state)",
                index=t.where(int(wrong[0])),
                count=len(wrong),
                cure="return the same number of features everywhere",
            )
        features = np.stack(answers)
        infinite = np.argwhere(~np.isfinite(features))
        if len(infinite):
            where = t.where(int(infinite[0, 0]))
            raise bad("features", "not finite at (state, action, next state)", index=where, count=len(infinite))
        return Encoding(features)


@checked
@dataclass(frozen=True, eq=False)
class LogNominal:
    """A known nominal kernel p0 and a tilt: p(s'|s, a) ~ p0(s'|s, a) exp(w . x(s, a, s')).

    log p0 is the offset of the model, so theta = w, and d is that of ``tilt``, a function of (s, a, s') or another map.
    ``learn_nominal=True`` makes log p0 the first feature instead, with an unknown coefficient (1 is p0 itself).
    """

    tilt: Callable[[int, int, int], ArrayLike] | FeatureMap
    learn_nominal: bool = False

    def encode(self, transitions: Transitions) -> Encoding:
        inner: FeatureMap = self.tilt if hasattr(self.tilt, "encode") else Function(self.tilt)
        answer = inner.encode(transitions)
        nominal = np.log(transitions.probability)
        if answer.offset is not None:
            raise bad(
                "features", "a tilt of a nominal kernel has no offset of its own", cure="give LogNominal a plain map"
            )
        if not self.learn_nominal:
            return Encoding(answer.features, nominal, np.zeros((1, answer.features.shape[1])))
        tilts: Any = answer.features
        if scipy.sparse.issparse(answer.features):
            features = scipy.sparse.hstack((scipy.sparse.csr_array(nominal[:, None]), tilts))
        else:
            features = np.column_stack((nominal, tilts))
        return Encoding(features, None, np.eye(1, tilts.shape[1] + 1))


@checked
@dataclass(frozen=True, eq=False)
class LongTable:
    """One line per transition: its state, action, next state, (stage,) and features (rows, d), in any order.

    As a feature map it has to list every transition of the kernel, without a stage.  :meth:`mdp` builds a model from
    the table alone: then the lines *are* the reachable sets.

    >>> table = LongTable([0, 0, 1], [0, 0, 0], [0, 1, 1], [[0.0], [1.0], [0.0]])
    >>> mdp = table.mdp(horizon=2, n_states=2, n_actions=1, reward=[[0], [1]], theta=[0.0])
    >>> mdp.probabilities(0, 0, 0)
    array([0.5, 0.5])
    """

    state: ArrayLike
    action: ArrayLike
    next_state: ArrayLike
    features: Any
    stage: ArrayLike | None = None

    @classmethod
    @checked
    def from_columns(
        cls,
        table: Any,
        features: list[str] | tuple[str, ...],
        *,
        state: str = "state",
        action: str = "action",
        next_state: str = "next_state",
        stage: str | None = None,
    ) -> LongTable:
        """From anything with named columns: a dict of arrays, a pandas or polars frame."""
        names = [state, action, next_state, *features, *([] if stage is None else [stage])]
        if not hasattr(table, "keys") and not hasattr(table, "columns"):
            raise bad("table", f"{type(table).__name__} has no named columns", cure="give a dict of arrays or a frame")
        known = list(table.keys() if hasattr(table, "keys") else table.columns)
        missing = [name for name in names if name not in known]
        if missing or not features:
            problem = f"has no column {missing[0]!r}" if missing else "names no feature column"
            raise bad("table" if missing else "features", problem, count=len(missing) or None, cure=f"columns: {known}")
        columns = [require_finite(name, table[name]) for name in features]
        when = None if stage is None else np.asarray(table[stage])
        who, what, where = (np.asarray(table[name]) for name in (state, action, next_state))
        return cls(who, what, where, np.column_stack(columns), when)

    def encode(self, transitions: Transitions) -> Encoding:
        t = transitions
        if self.stage is not None:
            raise bad("stage", "a feature map has no stages", cure="build the model with LongTable.mdp")
        _, state, action, nexts, features = self._columns(None, t.n_states, t.n_actions)
        mine = (state * t.n_actions + action) * t.n_states + nexts
        order = np.argsort(mine, kind="stable")
        asked = (t.state * t.n_actions + t.action) * t.n_states + t.next_state
        place = np.minimum(np.searchsorted(mine[order], asked), len(order) - 1)
        absent = np.flatnonzero(mine[order][place] != asked)
        if len(absent):
            where = t.where(int(absent[0]))
            cure = "give a line for every transition of positive probability"
            raise bad("features", "no line for (state, action, next state)", index=where, count=len(absent), cure=cure)
        return Encoding(features[order[place]])

    def mdp(
        self,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        reward: Any = None,
        theta: ArrayLike,
        start: Any = 0,
        offset: ArrayLike | None = None,
        param_bound: float | None = None,
        normalise: bool = False,
        **terms: Unpack[Terms],
    ) -> MNLMDP:
        """The model whose reachable sets are the lines; the rest is as in :meth:`livarot.MNLMDP.from_arrays`."""
        tables = 1 if self.stage is None else horizon
        require_memory("n_states", "the sets of next states", 4 * tables * n_states * n_actions + horizon)
        stage, state, action, nexts, features = self._columns(horizon, n_states, n_actions)
        pair = (stage * n_states + state) * n_actions + action
        order = np.argsort(pair, kind="stable")
        shift = None if offset is None else require_finite("offset", offset)
        if shift is not None and shift.shape != state.shape:
            raise bad("offset", f"has shape {shift.shape}, expected {state.shape}, a number per line")
        return MNLMDP.from_arrays(
            horizon,
            n_states,
            n_actions,
            outcomes=np.bincount(pair, minlength=tables * n_states * n_actions),
            next_state=nexts[order],
            features=features[order],
            reward=reward,
            theta=theta,
            start=start,
            stage_table=np.arange(horizon) if tables > 1 else np.zeros(horizon, dtype=np.int32),
            offset=None if shift is None else shift[order],
            param_bound=param_bound,
            normalise=normalise,
            **terms,
        )

    def _columns(self, horizon: int | None, n_states: int, n_actions: int) -> tuple[Any, ...]:
        """Checked columns: stage, state, action, next state and features."""
        state = whole_numbers("state", self.state)
        sparse = scipy.sparse.issparse(self.features)
        features = self.features.tocsr() if sparse else require_finite("features", self.features)
        if features.ndim != 2 or features.shape[0] != len(state) or features.shape[1] < 1 or len(state) == 0:
            raise bad("features", f"has shape {features.shape}, expected ({len(state)}, d), a row per line")
        columns = [np.zeros(len(state), dtype=np.int64) if self.stage is None else whole_numbers("stage", self.stage)]
        columns += [state, whole_numbers("action", self.action), whole_numbers("next_state", self.next_state)]
        limits = (1 if horizon is None or self.stage is None else horizon, n_states, n_actions, n_states)
        for name, column, limit in zip(("stage", "state", "action", "next_state"), columns, limits, strict=True):
            if len(column) != len(state):
                raise bad(name, f"has {len(column)} entries, expected {len(state)}")
            wrong = np.flatnonzero((column < 0) | (column >= limit))
            if len(wrong):
                cure = f"number from 0 to {limit - 1}"
                raise bad(name, f"{column[wrong[0]]} is out of range", index=int(wrong[0]), count=len(wrong), cure=cure)
        key = ((columns[0] * n_states + state) * n_actions + columns[2]) * n_states + columns[3]
        order = np.argsort(key, kind="stable")
        repeated = order[1:][key[order][1:] == key[order][:-1]]
        if len(repeated):
            first = int(repeated.min())
            cure = "list every transition once"
            raise bad("next_state", "the transition was listed before", index=first, count=len(repeated), cure=cure)
        return (*columns, features)
