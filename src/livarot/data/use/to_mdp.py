"""From a fitted model to an MDP that can be planned in, labels included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.data.reading.alternatives import merge_equal
from livarot.data.reading.choices import Choices
from livarot.errors import bad, require_finite
from livarot.model.labels import Labels, ModelLabels, model_labels
from livarot.model.problem import MNLMDP, Problem
from livarot.system.sizes import require_memory

SINK = "(unseen)"  # label of the extra state of unseen="sink"


@checked
def labels_of(model: MNLMDP | Problem) -> ModelLabels:
    """The names of a model's states, actions and stages: those of the data if it was fitted, otherwise numbers."""
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
    count[observed.start[:-1]] = weight  # how often each set was met; who went where depends on the covariates
    return replace(observed, count=count)


def build_mdp(
    choices: Choices,
    theta: FloatArray,
    stages: Labels | None,
    reward: Any,
    horizon: int | None,
    start: Any,
    *,
    unseen: str,
    param_bound: float | None,
) -> MNLMDP:
    """See :meth:`livarot.data.MNLTransition.to_mdp`; ``stages`` None is one theta for all."""
    if unseen not in ("error", "stay", "sink"):
        raise bad("unseen", f"{unseen!r} is not known", cure="use 'error', 'stay' or 'sink'")
    labels = choices.labels
    if labels is None or choices.state is None or choices.action is None or choices.next_state is None:
        cure = "name the columns state, action and next_state when fitting"
        raise bad("data", "has no states, actions and next states", cure=cure)
    weights = _first_stage(choices, labels) if start is None else None
    if stages is None and choices.stage is not None:  # one table for all stages, where the sets do not depend on it
        pooled = merge_equal(replace(choices, stage=None), always=True)
        if len(np.unique(pooled._key(pooled.state, pooled.action, None))) == pooled.n_sets:  # type: ignore[arg-type]
            choices = pooled
    steps = _horizon(horizon, choices, labels)
    n_tables = 1 if choices.stage is None else len(labels.stages or ())
    sets = _table_of_sets(choices, labels, n_tables)
    arrays, states = _rows(choices, labels, sets, unseen)
    mdp = MNLMDP.from_arrays(
        steps,
        len(states),
        len(labels.actions),
        **arrays,
        reward=_reward(reward, labels, steps, len(states)),
        theta=theta,
        start=_start(start, weights, states, len(labels.states)),
        stage_table=np.zeros(steps, dtype=np.int32) if n_tables == 1 else np.arange(steps, dtype=np.int32),
        param_bound=param_bound,
        normalise=True,
    )
    own = labels.stages if labels.stages is not None and len(labels.stages) == steps else None
    return replace(mdp, problem=replace(mdp.problem, states=states, actions=labels.actions, stages=own))


def _horizon(horizon: int | None, choices: Choices, labels: ModelLabels) -> int:
    known = None if choices.stage is None or labels.stages is None else len(labels.stages)
    if horizon is None:
        if known is None:
            raise bad("horizon", "is not given, and the data have no stages", cure="say how many steps an episode has")
        return known
    require_memory("horizon", "the stages of the model", horizon * len(labels.states) * len(labels.actions))
    if known is not None and horizon != known:
        cure = "leave horizon out, or fit with homogeneous=True and features that do not depend on the stage"
        raise bad("horizon", f"is {horizon}, the model was fitted to {known} stages", cure=cure)
    return horizon


def _table_of_sets(choices: Choices, labels: ModelLabels, n_tables: int) -> IntArray:
    """The choice set of every (table, state, action), -1 where there is none, (tables, S, A)."""
    key = choices._key(choices.state, choices.action, choices.stage)  # type: ignore[arg-type]
    if len(np.unique(key)) < len(key):
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        g = int(first[np.argmax(counts > 1)])
        pair = labels.states[int(choices.state[g])], labels.actions[int(choices.action[g])]  # type: ignore[index]
        problem = f"the features of {pair!r} differ from choice to choice"
        cure = "an MDP needs one choice set per (state, action): put what they depend on into the state"
        raise bad("features", problem, count=int((counts > 1).sum()), cure=cure)
    table = np.full(n_tables * len(labels.states) * len(labels.actions), -1, dtype=np.int64)
    table[key] = np.arange(choices.n_sets)
    return table.reshape(n_tables, len(labels.states), len(labels.actions))


def _rows(choices: Choices, labels: ModelLabels, sets: IntArray, unseen: str) -> tuple[dict[str, Any], Labels]:
    """The long arrays of :meth:`MNLMDP.from_arrays`, and the labels of the states with the sink."""
    absorbing = np.asarray((sets < 0).all(axis=2))  # (tables, S): nothing was ever tried there
    lost = (sets < 0) & ~absorbing[:, :, None]
    states = labels.states
    if lost.any():
        if unseen == "error":
            _, s, a = (int(i) for i in np.argwhere(lost)[0])
            problem = (
                f"{int(lost.sum())} (state, action) have no reachable set, such as {(states[s], labels.actions[a])!r}"
            )
            cure = "pass unseen='sink' (pessimistic) or 'stay', or give reachable= when fitting"
            raise bad("unseen", problem, index=(s, a), count=int(lost.sum()), cure=cure)
        if unseen == "sink":
            if SINK in states:
                raise bad("unseen", f"a state is called {SINK!r} already", cure="rename it")
            states = Labels([*states, SINK], ordered=True)
    n_tables, n_old, n_actions = sets.shape
    if len(states) > n_old:
        sets = np.concatenate((sets, np.full((n_tables, 1, n_actions), -1, dtype=np.int64)), axis=1)
        lost = np.concatenate((lost, np.zeros((n_tables, 1, n_actions), dtype=bool)), axis=1)
    instead = np.broadcast_to(np.arange(len(states))[:, None], (n_tables, len(states), n_actions))
    instead = np.where(lost & (unseen == "sink"), len(states) - 1, instead).reshape(-1)
    flat = sets.reshape(-1)
    outcomes = np.where(flat >= 0, choices.sizes[flat], 1)
    pair = np.repeat(np.arange(len(flat)), outcomes)
    within = np.arange(len(pair)) - np.repeat(np.concatenate(([0], np.cumsum(outcomes)[:-1])), outcomes)
    known = flat[pair] >= 0
    source = np.where(known, choices.start[flat[pair]] + within, 0)
    features = np.where(known[:, None], choices.rows(source), 0.0)
    offset = np.zeros(len(pair)) if choices.offset is None else np.where(known, choices.offset[source], 0.0)
    assert choices.next_state is not None  # noqa: S101 (build_mdp has checked)
    return {
        "outcomes": outcomes,
        "next_state": np.where(known, choices.next_state[source], instead[pair]),
        "features": features,
        "offset": offset,
    }, states


def _reward(reward: Any, labels: ModelLabels, horizon: int, n_states: int) -> FloatArray:
    """Rewards (H, S, A) or (S, A) from labels or arrays; the sink has none."""
    known, n_actions = len(labels.states), len(labels.actions)
    if isinstance(reward, Mapping) or hasattr(reward, "to_dict"):
        array = _from_mapping(dict(reward), labels)
    elif callable(reward):
        called: Callable[[Any, Any], float] = reward
        array = require_finite("reward", [[called(s, a) for a in labels.actions] for s in labels.states])
    else:
        array = require_finite("reward", reward)
        if array.shape == (known,):
            array = np.repeat(array[:, None], n_actions, axis=1)
    if array.shape not in ((known, n_actions), (horizon, known, n_actions)):
        shapes = f"({known},), ({known}, {n_actions}) or ({horizon}, {known}, {n_actions})"
        raise bad("reward", f"has shape {array.shape}, expected {shapes}", cure="or give a mapping from labels")
    if n_states > known:
        array = np.concatenate((array, np.zeros((*array.shape[:-2], 1, n_actions))), axis=-2)
    return np.asarray(array)


def _from_mapping(reward: Mapping[Any, Any], labels: ModelLabels) -> FloatArray:
    array = np.zeros((len(labels.states), len(labels.actions)))
    for key, value in reward.items():
        if key in labels.states:
            array[labels.states.index(key)] = value
        elif isinstance(key, tuple) and len(key) == 2 and key[0] in labels.states and key[1] in labels.actions:
            array[labels.states.index(key[0]), labels.actions.index(key[1])] = value
        else:
            raise bad("reward", f"{key!r} is neither a state nor a (state, action)", cure=f"states: {labels.states!r}")
    return require_finite("reward", array)


def _first_stage(choices: Choices, labels: ModelLabels) -> FloatArray:
    """How often each state began an episode."""
    if choices.stage is None or labels.stages is None or choices.state is None:
        cure = f"give a state, one of {labels.states!r}, or probabilities of states"
        raise bad("start", "is not given, and data without stages do not tell where episodes begin", cure=cure)
    first = choices.stage == 0
    weights = np.bincount(choices.state[first], weights=choices.weight[first], minlength=len(labels.states))
    if not weights.sum() > 0:
        raise bad("start", f"nothing was observed at stage {labels.stages[0]!r}", cure="give start=")
    return np.asarray(weights / weights.sum())


def _start(start: Any, weights: FloatArray | None, states: Labels, known: int) -> FloatArray:
    full = np.zeros(len(states))
    if weights is not None:
        full[:known] = weights
    elif isinstance(start, Mapping) or hasattr(start, "to_dict"):
        for label, p in dict(start).items():
            full[states.index(label)] = p
    elif isinstance(start, np.ndarray | list) and len(start) in (known, len(states)):
        full[: len(start)] = require_finite("start", start)
    else:
        full[states.index(start)] = 1.0
    return full
