"""From a fitted model to an MDP that can be planned in, in the user's names and units.

An action exists in a state if the data have a reachable set for it there.  Others are unavailable: nothing is known
about them, so no plan may take them, unless the user says what they do (``unseen=``).  A state in which no action was
ever seen has to be declared terminal by the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.reading.alternatives import merge_equal
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import Columns
from livarot.data.use.pays import Steps, is_table, read_pay, table_of_pay
from livarot.errors import bad, require_finite
from livarot.infinite.problem import InfiniteMDP
from livarot.model.labels import Labels, ModelLabels, model_labels
from livarot.model.problem import MNLMDP, Problem
from livarot.model.terms.existing import check_available, check_terminal, number_named
from livarot.model.terms.rewards import one_of, read_terminal
from livarot.system.sizes import require_memory

SINK = "(unseen)"  # label of the extra state of unseen="sink"
UNSEEN = ("unavailable", "stay", "sink", "error")
NOTHING, STAYS, SINKS = -1, -2, -3  # in place of the number of a choice set


class Asked(NamedTuple):
    """The arguments of :meth:`livarot.data.MNLTransition.to_mdp`."""

    reward: Any = None
    cost: Any = None
    horizon: int | None = None
    start: Any = None
    discount: float | None = None
    terminal: Any = None
    terminal_reward: Any = None
    terminal_cost: Any = None
    available: Any = None
    unseen: str = "unavailable"
    param_bound: float | None = None


@checked
def labels_of(model: MNLMDP | Problem | InfiniteMDP) -> ModelLabels:
    """The names of a model's states, actions and stages: those of the data if it was fitted, otherwise numbers."""
    if isinstance(model, InfiniteMDP):
        return model_labels(model.problem.stage)
    return model_labels(model.problem if isinstance(model, MNLMDP) else model)


def at_profile(choices: Choices, at: Mapping[str, Any] | None) -> Choices:
    """The choice sets of one profile of covariates, where there are covariates."""
    if choices.design is None:
        if at is not None:
            problem = "is given, and the model has no covariates"
            raise bad("at", problem, cure="leave it out; covariates are columns of a log of transitions")
        return choices
    if at is None:
        names = ", ".join(map(repr, choices.design.names))
        raise bad("at", f"is not given, and the model depends on {names}", cure="give the values to plan for")
    observed = choices.design.at(at)
    weight = np.zeros(observed.n_sets)
    where = choices.design.sets.locate(choices.state, choices.action, choices.stage)  # type: ignore[arg-type]
    np.add.at(weight, where, choices.weight)
    count = np.zeros(observed.n_rows)
    count[observed.start[:-1]] = weight  # of the sets only: the counts of next states depend on the covariates
    return replace(observed, count=count)


def build_mdp(
    choices: Choices, theta: FloatArray, stages: Labels | None, columns: Columns, asked: Asked
) -> MNLMDP | InfiniteMDP:
    """See :meth:`livarot.data.MNLTransition.to_mdp`; ``stages`` None is one theta for all."""
    if asked.unseen not in UNSEEN:
        raise bad("unseen", f"{asked.unseen!r} is not known", cure=f"use {', '.join(map(repr, UNSEEN))}")
    labels = choices.labels
    if labels is None or choices.state is None or choices.action is None or choices.next_state is None:
        cure = "name the columns state, action and next_state when fitting"
        raise bad("data", "has no states, actions and next states", cure=cure)
    weights = _first_states(choices, labels, asked)
    if stages is None and choices.stage is not None:  # one table for all stages, where the sets do not depend on it
        pooled = merge_equal(replace(choices, stage=None), always=True)
        if len(np.unique(pooled._key(pooled.state, pooled.action, None))) == pooled.n_sets:  # type: ignore[arg-type]
            choices = pooled
    steps = _horizon(asked.horizon, choices, labels)
    start = _start(asked.start, weights, labels.states)
    ends = _Ends(asked, labels, columns)
    layout = _Layout(choices, labels, steps, ends.mask)
    layout.decide(asked, start)
    pays = _pays(asked, columns, layout, steps)
    n_more = len(layout.states) - len(labels.states)
    settings: dict[str, Any] = {
        **layout.arrays(),
        **pays,
        "theta": theta,
        "start": np.concatenate((start, np.zeros(n_more))),
        "param_bound": asked.param_bound,
        "normalise": True,
        "states": layout.states,
        "actions": labels.actions,
    }
    sizes = len(layout.states), len(labels.actions)
    if steps is None:
        ended = ends.without_horizon(labels.states, -1.0 if "cost" in pays else 1.0)
        return InfiniteMDP.from_arrays(*sizes, **settings, terminal=ended, discount=asked.discount)
    mdp = MNLMDP.from_arrays(
        steps,
        *sizes,
        **settings,
        stage_table=np.zeros(steps, dtype=np.int32) if layout.n_tables == 1 else np.arange(steps, dtype=np.int32),
        discount=1.0 if asked.discount is None else asked.discount,
        terminal=None if not ends.mask.any() else np.append(ends.mask, np.zeros(n_more, dtype=np.bool_)),
        terminal_reward=None if ends.pay is None else np.append(ends.pay, np.full(n_more, min(0.0, ends.pay.min()))),
        available=layout.mask_of_stages,
    )
    own = labels.stages if labels.stages is not None and len(labels.stages) == steps else None
    return mdp if own is None else replace(mdp, problem=replace(mdp.problem, stages=own))


def _horizon(horizon: int | None, choices: Choices, labels: ModelLabels) -> int | None:
    """The number of stages, None for a model without an end."""
    known = None if choices.stage is None or labels.stages is None else len(labels.stages)
    if horizon is None:
        return known
    require_memory("horizon", "the stages of the model", horizon * len(labels.states) * len(labels.actions))
    if known is not None and horizon != known:
        cure = "leave horizon out, or fit with homogeneous=True and features that do not depend on the stage"
        raise bad("horizon", f"is {horizon}, the model was fitted to {known} stages", cure=cure)
    return horizon


def _pays(asked: Asked, columns: Columns, layout: _Layout, horizon: int | None) -> dict[str, Any]:
    given, argument, sign = one_of(asked.reward, asked.cost)
    if given is None:
        raise bad("reward", "is missing", cure="give reward= or cost=, any finite numbers")
    if is_table(given):
        given = table_of_pay(argument, given, columns, layout.labels)
    pay = read_pay(argument, given, layout.steps(), horizon, sign)
    if horizon is None and callable(pay):
        return {argument: lambda s, a, to: pay(0, s, a, to)}
    return {argument: pay}


class _Ends:
    """Where an episode is over, and what states are worth at the end."""

    def __init__(self, asked: Asked, labels: ModelLabels, columns: Columns) -> None:
        states, given = labels.states, asked.terminal
        reward, cost = (
            table_of_pay(name, pay, columns, labels) if is_table(pay) else pay
            for name, pay in (("terminal_reward", asked.terminal_reward), ("terminal_cost", asked.terminal_cost))
        )
        if isinstance(given, Mapping):
            if reward is not None or cost is not None:
                cure = "give the numbers in one of them"
                raise bad("terminal", "has numbers, and so has terminal_reward or terminal_cost", cure=cure)
            reward, cost = (given, None) if asked.cost is None else (None, given)
            given = list(given)
        found = check_terminal(given, states, len(states))
        self.mask: BoolArray = np.zeros(len(states), dtype=np.bool_) if found is None else found
        self.pay = read_terminal(reward, cost, len(states), states)  # None where all of them are 0

    def without_horizon(self, states: Labels, sign: float) -> dict[Any, float] | None:
        """{terminal state: number}; refused if a state that is not terminal has a terminal reward."""
        pay = np.zeros(len(states)) if self.pay is None else self.pay
        lost = np.flatnonzero((pay != 0.0) & ~self.mask)
        if len(lost):
            message = f"state {states[int(lost[0])]!r} has one, but without a horizon nothing ends there"
            cure = "give horizon=, or list it in terminal="
            raise bad("terminal_reward", message, index=int(lost[0]), count=len(lost), cure=cure)
        if not self.mask.any():
            return None
        return {states[int(s)]: sign * float(pay[s]) for s in np.flatnonzero(self.mask)}


class _Layout:
    """Which choice set, if any, belongs to every (table, state, action), and the rows of all of them."""

    def __init__(self, choices: Choices, labels: ModelLabels, horizon: int | None, ends: BoolArray) -> None:
        self.choices, self.labels, self.horizon, self.ends = choices, labels, horizon, ends
        self.states = labels.states
        self.n_tables = 1 if choices.stage is None else len(labels.stages or ())
        self.sets = _table_of_sets(choices, labels, self.n_tables)
        self.filler = np.zeros(self.sets.shape, dtype=np.bool_)
        self.mask_of_stages: BoolArray | None = None

    def decide(self, asked: Asked, start: FloatArray) -> None:
        """Replace the sets of what does not exist."""
        shape = (self.horizon or 1, *self.sets.shape[1:])
        allowed = check_available(asked.available, shape, self.states, self.labels.actions)
        self.sets[:, self.ends] = NOTHING
        open_ = np.broadcast_to(~self.ends[:, None], self.sets.shape)
        if allowed is not None:
            open_ = self._allowed(np.asarray(allowed), asked.unseen) & open_
        self.sets[~open_] = NOTHING
        absorbing = np.broadcast_to((self.sets < 0).all(axis=2, keepdims=True), self.sets.shape)
        lost = (self.sets < 0) & open_
        if asked.unseen == "error":
            self._refuse(lost & ~absorbing)
        elif asked.unseen in ("stay", "sink"):
            self._make_up(lost, absorbing, asked.unseen)
        self._require_actions(start)

    def _allowed(self, mask: BoolArray, unseen: str) -> BoolArray:
        """The user's mask for every table; one that says that an unseen action exists is refused."""
        if mask.ndim == 3 and self.n_tables == 1 and len(mask) > 1:
            self.mask_of_stages, mask = mask, np.asarray(mask.any(axis=0))
        lacking = np.broadcast_to(mask, self.sets.shape) & (self.sets < 0) & ~self.ends[:, None]
        if lacking.any() and unseen not in ("stay", "sink"):
            message = f"{self._pair(lacking)} was never seen: nothing says where it leads"
            cure = "give its reachable= when fitting, or unseen='stay' or 'sink', or take it out"
            raise bad("available", message, count=int(lacking.sum()), cure=cure)
        return np.broadcast_to(mask, self.sets.shape)

    def _pair(self, wrong: BoolArray) -> str:
        _, s, a = (int(i) for i in np.argwhere(wrong)[0])
        return repr((self.states[s], self.labels.actions[a]))

    def _refuse(self, lost: BoolArray) -> None:
        if lost.any():
            problem = f"{int(lost.sum())} (state, action) have no reachable set, such as {self._pair(lost)}"
            cure = "leave unseen out, pass 'sink' (pessimistic) or 'stay', or give reachable= when fitting"
            raise bad("unseen", problem, count=int(lost.sum()), cure=cure)

    def _make_up(self, lost: BoolArray, absorbing: BoolArray, unseen: str) -> None:
        """Unseen actions stay, or lead to the sink; where nothing was ever seen they stay."""
        self.sets[lost] = STAYS
        lost = lost & ~absorbing
        if unseen == "stay" or not lost.any():
            return
        if SINK in self.states:
            raise bad("unseen", f"a state is called {SINK!r} already", cure="rename it")
        self.sets[lost] = SINKS
        self.states = Labels([*self.states, SINK], ordered=True)
        more = np.full((self.n_tables, 1, self.sets.shape[2]), STAYS)
        self.sets = np.concatenate((self.sets, more), axis=1)
        self.filler = np.concatenate((self.filler, more < 0), axis=1)
        if self.mask_of_stages is not None:
            wide = np.ones((len(self.mask_of_stages), 1, self.sets.shape[2]), dtype=np.bool_)
            self.mask_of_stages = np.concatenate((self.mask_of_stages, wide), axis=1)

    def _require_actions(self, start: FloatArray) -> None:
        """Refuse states that need an action and have none; at stages where they are never reached they stay."""
        stuck = (self.sets == NOTHING).all(axis=2)
        stuck[:, : len(self.ends)] &= ~self.ends
        never = np.flatnonzero(stuck.all(axis=0))
        if len(never):
            few = ", ".join(repr(self.states[int(s)]) for s in never[:3])
            message = f"no action is known in {len(never)} states: {few}"
            cure = "list them in terminal= if an episode ends there, or say unseen='stay'"
            raise bad("terminal", message, index=int(never[0]), count=len(never), cure=cure)
        if not stuck.any():
            return
        wrong = np.argwhere(stuck & self._reached(start))
        if len(wrong):
            h, s = (int(i) for i in wrong[0])
            stages = self.labels.stages
            message = f"no action is known in {self.states[s]!r} at stage {stages[h] if stages else h!r}"
            cure = "give reachable= when fitting, terminal=, or unseen='stay'"
            raise bad("terminal", message, index=(h, s), count=len(wrong), cure=cure)
        self.sets[stuck, 0] = STAYS
        self.filler[stuck, 0] = True

    def _reached(self, start: FloatArray) -> BoolArray:
        """Which states have positive probability at which stage, (tables, S)."""
        reached = np.zeros(self.sets.shape[:2], dtype=np.bool_)
        reached[0, : len(start)] = start > 0.0
        sets, follow = self.choices.set_of_row, self.choices.next_state
        for t in range(self.n_tables - 1):
            own = self.sets[t][reached[t]]
            leads = np.zeros(self.choices.n_sets, dtype=np.bool_)
            leads[own[own >= 0]] = True
            reached[t + 1, follow[leads[sets]]] = True  # type: ignore[index]
            reached[t + 1] |= reached[t] & (self.sets[t] == STAYS).any(axis=1)
            reached[t + 1, : len(start)] |= reached[t, : len(start)] & self.ends
            reached[t + 1, -1] |= bool((own == SINKS).any())
        return reached

    def arrays(self) -> dict[str, Any]:
        """The long arrays of :meth:`MNLMDP.from_arrays`."""
        choices, source, known = self.choices, *self._source()[2:]
        features = np.where(known[:, None], choices.rows(source), 0.0)
        offset = np.zeros(len(source)) if choices.offset is None else np.where(known, choices.offset[source], 0.0)
        shape = self.sets.shape if self.horizon is not None else self.sets.shape[1:]
        counts = self._source()[0].reshape(shape)
        return {"outcomes": counts, "next_state": self.steps().next_state, "features": features, "offset": offset}

    def steps(self) -> Steps:
        """The rows, for rewards."""
        _, pair, source, known = self._source()
        state = pair // self.sets.shape[2] % len(self.states)
        to = np.where(self.sets.reshape(-1)[pair] == SINKS, len(self.states) - 1, state)
        assert self.choices.next_state is not None  # noqa: S101 (build_mdp has checked)
        to = np.where(known, self.choices.next_state[source], to)
        paid = ((self.sets != NOTHING) & ~self.filler).any(axis=0)
        return Steps(self.labels, state, pair % self.sets.shape[2], to, paid)

    def _source(self) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
        """The number of rows of each pair; of every row its pair, its row in the data (or 0), and if it has one."""
        flat = self.sets.reshape(-1)
        outcomes = np.where(flat >= 0, self.choices.sizes[flat], (flat != NOTHING).astype(np.int64))
        pair = np.repeat(np.arange(len(flat)), outcomes)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(outcomes) - outcomes, outcomes)
        known: BoolArray = np.asarray(flat[pair] >= 0)
        return outcomes, pair, np.where(known, self.choices.start[flat[pair]] + within, 0), known


def _table_of_sets(choices: Choices, labels: ModelLabels, n_tables: int) -> IntArray:
    """The choice set of every (table, state, action), NOTHING where there is none, (tables, S, A)."""
    key = choices._key(choices.state, choices.action, choices.stage)  # type: ignore[arg-type]
    if len(np.unique(key)) < len(key):
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        g = int(first[np.argmax(counts > 1)])
        pair = labels.states[int(choices.state[g])], labels.actions[int(choices.action[g])]  # type: ignore[index]
        problem = f"the features of {pair!r} differ from choice to choice"
        cure = "an MDP needs one choice set per (state, action): put what they depend on into the state"
        raise bad("features", problem, count=int((counts > 1).sum()), cure=cure)
    table = np.full(n_tables * len(labels.states) * len(labels.actions), NOTHING, dtype=np.int64)
    table[key] = np.arange(choices.n_sets)
    return table.reshape(n_tables, len(labels.states), len(labels.actions))


def _first_states(choices: Choices, labels: ModelLabels, asked: Asked) -> FloatArray | None:
    """How often each state began an episode; without a horizon, how often it was visited."""
    if asked.start is not None:
        return None
    assert choices.state is not None  # noqa: S101 (build_mdp has checked)
    staged = choices.stage is not None and labels.stages is not None
    if not staged and asked.horizon is not None:
        cure = f"give a state, one of {labels.states!r}, or probabilities of states"
        raise bad("start", "is not given, and data without stages do not say where episodes begin", cure=cure)
    first = choices.stage == 0 if staged else np.ones(choices.n_sets, dtype=np.bool_)
    weights = np.bincount(choices.state[first], weights=choices.weight[first], minlength=len(labels.states))
    if not weights.sum() > 0:
        where = f"at stage {labels.stages[0]!r}" if labels.stages else "anywhere"
        raise bad("start", f"nothing was observed {where}", cure="give start=")
    return np.asarray(weights / weights.sum())


def _start(start: Any, weights: FloatArray | None, states: Labels) -> FloatArray:
    full = np.zeros(len(states))
    if weights is not None:
        return weights
    if isinstance(start, Mapping) or hasattr(start, "to_dict"):
        for label, p in dict(start).items():
            full[number_named("start", label, states, len(states))] = p
    elif isinstance(start, np.ndarray | list) and len(start) == len(states):
        full[:] = require_finite("start", start)
    else:
        full[states.index(start)] = 1.0
    return full
