"""Columns that say nothing, columns that say what others have said, and transitions that were never seen.

A column without information is the same for all alternatives of every choice that was met: the cell of a state that
was never left, of an action never tried there, of a next state that cannot follow
(:mod:`livarot.data.fitting.separation` has the mathematics).  Such columns of a category are dropped, with one warning
that lists them.  A term that has no other columns is refused in a list of features, since it was asked for by name; a
formula may make it by the way (``age * next_state``), and it is dropped too.

Columns that earlier ones explain exactly within the choice sets are refused, or, with ``collinear="drop"``, left out
as R does: the later ones go.

With a parameter per stage, a column may say nothing (or nothing new) at some stages only.  There it is **held at 0**:
it stays in the model for the other stages, where it was asked for and can be estimated.

What a dropped coefficient would have decided is not known.  A (state, action) that was never met, and whose
probabilities depend on a dropped or held coefficient, is left out of the choice sets: 0 would be a guess that looks
like an estimate.  Then no choice set depends on such coefficients any more, and whatever is computed from the others is
exact.  With a ridge nothing is unknown (the prior speaks, and the covariance says how little it knows), so only columns
that are constant in all sets, met or not, are dropped.

**Never seen.**  With ``reachable="all"`` a saturated model has a cell for every transition.  That of a transition that
was never seen has its maximum at minus infinity, "separable"; in the limit the transition has probability 0, and the
others have the estimates of the model without it (Geyer 2009).  So it is left out of the sets, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from livarot.core.arrays import BoolArray, FloatArray
from livarot.data.fitting.likelihood import Derivatives, blocks, derivatives
from livarot.data.fitting.separation import EXACT, NotIdentified, dependencies, relative_range, require_moderate
from livarot.data.reading.choices import Choices
from livarot.errors import bad

MOST_NAMED = 12


class Pruned(NamedTuple):
    """Choices without what says nothing."""

    choices: Choices
    at_zero: Derivatives
    dropped: tuple[str, ...]
    told: list[str]  # one warning each


def pruned(choices: Choices, collinear: str, *, formula: bool, ridge: bool) -> Pruned:
    """The choices without columns that say nothing, their derivatives at zero, and what was dropped."""
    if collinear not in ("refuse", "drop"):
        raise bad("collinear", f"{collinear!r} is not known", cure="use 'refuse' or 'drop'")
    at_zero = derivatives(choices, np.zeros(choices.dim))
    require_moderate(choices, at_zero)
    dead = at_zero.spread == 0.0
    if dead.all() or choices.n_choices == 0:
        return Pruned(choices, at_zero, (), [])
    alive_terms = {choices.terms[j] for j in np.flatnonzero(~dead)}
    flat = dead & ~_anywhere(choices) if ridge else dead
    out = [int(j) for j in np.flatnonzero(flat) if formula or choices.terms[j] in alive_terms]
    directions, told = [np.eye(choices.dim)[j] for j in out], []
    if out:
        told.append(
            f"without information, dropped: {listed(choices, out)} (the same for all alternatives of every choice)"
        )
    if collinear == "drop":
        doubled = _explained(choices, at_zero, dead)
        if doubled:
            told.append(f"collinear within choice sets, dropped: {listed(choices, doubled)} (others say the same)")
            out += doubled
            directions += doubled.values()
    if not out:
        return Pruned(choices, at_zero, (), [])
    lost = _unknown(choices, out, directions)
    told[-1] += _pairs_told(choices, lost)
    names = tuple(choices.columns[j] for j in sorted(out))
    kept = [j for j in range(choices.dim) if j not in set(out)]
    inner = at_zero.hessian[np.ix_(kept, kept)]
    at_zero = at_zero._replace(
        gradient=at_zero.gradient[kept], hessian=np.ascontiguousarray(inner), spread=at_zero.spread[kept]
    )
    return Pruned(_without(choices, lost).keep_columns(kept), at_zero, names, told)


class HeldBack(NamedTuple):
    """Which coefficients are estimated at which stage."""

    choices: Choices
    free: BoolArray  # (stages, d)
    told: list[str]


def held_back(choices: Choices, stages: Iterable[tuple[str, Choices]], collinear: str) -> HeldBack:
    """Hold what says nothing at a stage, and leave out the (stage, state, action) that depend on it."""
    base, lost, free, held = _base(choices), np.zeros(_base(choices).n_sets, dtype=np.bool_), [], []
    for k, (where, part) in enumerate(stages):
        at_zero = derivatives(part, np.zeros(part.dim))
        require_moderate(part, at_zero)
        dead = at_zero.spread == 0.0
        out = {} if dead.all() else {int(j): np.eye(part.dim)[j] for j in np.flatnonzero(dead)}  # all: it is refused
        if collinear == "drop" and not dead.all():
            out |= _explained(part, at_zero, dead)
        if out:
            lost |= _unknown(choices, list(out), list(out.values())) & (base.stage == k)
            held += [f"{choices.columns[j]!r}{where}" for j in sorted(out)]
        free.append([j not in out for j in range(part.dim)])
    told = []
    if held:
        told.append(f"without information at a stage, held at 0 there: {_few(held)}{_pairs_told(choices, lost)}")
    return HeldBack(_without(choices, lost), np.array(free), told)


def _explained(choices: Choices, at_zero: Derivatives, dead: BoolArray) -> dict[int, FloatArray]:
    """Columns that earlier ones explain, up to rounding, each with the combination that is constant."""
    found = {}
    for combination in dependencies(at_zero.hessian, ~dead):
        if relative_range(choices, combination, at_zero.spread) <= EXACT:
            found[int(np.flatnonzero(combination)[-1])] = combination
    return found


def _base(choices: Choices) -> Choices:
    """One set per (stage, state, action), met or not."""
    return choices if choices.design is None else choices.design.sets


def _varies(choices: Choices, directions: FloatArray) -> BoolArray:
    """Does ``phi . v`` differ within a set, for one v of the directions (d, m)?  (sets, m)"""
    found = np.zeros((choices.n_sets, directions.shape[1]), dtype=np.bool_)
    for block in blocks(choices):
        size = np.abs(block.shifted) @ np.abs(directions)
        moves = np.abs(block.shifted @ directions) > EXACT * size
        first = choices.start[block.first : block.last] - block.begin
        found[block.first : block.last] = np.logical_or.reduceat(moves, first, axis=0)
    return found


def _anywhere(choices: Choices) -> BoolArray:
    """The columns that differ within a set, met or not, (d,)."""
    return np.asarray(_varies(_base(choices), np.eye(choices.dim)).any(axis=0))


def _unknown(choices: Choices, out: Sequence[int], directions: Sequence[FloatArray]) -> BoolArray:
    """The sets of :func:`_base` that were never met and depend on directions of theta that no data tell.

    Where covariates enter, a set depends on a column if the part of it without covariates does.
    """
    base, met = _base(choices), np.zeros(_base(choices).n_sets, dtype=np.bool_)
    if choices.design is None:
        met = choices.weight > 0.0
        return np.asarray(~met & _varies(base, np.stack(directions, axis=1)).any(axis=1))
    met[base.locate(choices.state, choices.action, choices.stage)] = True  # type: ignore[arg-type]
    return np.asarray(~met & _varies(base, np.eye(base.dim)[:, list(out)]).any(axis=1))


def _without(choices: Choices, lost: BoolArray) -> Choices:
    if not lost.any():
        return choices
    if choices.design is None:
        return choices.select(~lost)
    return replace(choices, design=replace(choices.design, sets=choices.design.sets.select(~lost)))


def _pairs_told(choices: Choices, lost: BoolArray) -> str:
    """For a message: which (state, action) have no model."""
    labels, base = choices.labels, _base(choices)
    if not lost.any() or labels is None or base.state is None or base.action is None:
        return ""
    pairs = zip(base.state[lost].tolist(), base.action[lost].tolist(), strict=True)
    names = dict.fromkeys(repr((labels.states[s], labels.actions[a])) for s, a in pairs)
    return f"; never met and not known without them: {_few(list(names))}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def listed(choices: Choices, columns: Iterable[int]) -> str:
    """The names of columns, for a message."""
    return _few([repr(choices.columns[j]) for j in columns])


def without_never_seen(choices: Choices, error: NotIdentified, next_state: str) -> pd.DataFrame | None:
    """The transitions (stage, state, action, next_state) of ``choices`` but for those that ``error`` rules out.

    None if it is not the cells of transitions that separate the data.  ``attrs["left_out"]`` has those left out.
    """
    part, direction = error.choices, error.direction
    if error.kind != "separable" or part is None or part.layout != "transitions":
        return None
    if not all(_is_cell(name, next_state) for name in error.columns):
        return None
    cells = [j for j, name in enumerate(part.columns) if _is_cell(name, next_state)]
    values = part.rows(slice(None))[:, cells]
    never = (values >= 0.0).all(axis=0) & (values[part.count > 0.0] == 0.0).all(axis=0)
    ruled = (values[:, never] > 0.0).any(axis=1)
    along = part.rows(slice(None)) @ direction
    top = np.maximum.reduceat(along, part.start[:-1])[part.set_of_row]
    ruled |= along < top - EXACT * np.abs(direction).sum()
    frame = part.frame().assign(ruled=ruled)
    keys = [name for name in ("stage", "state", "action", "next_state") if name in frame]
    seen = frame.groupby(keys, sort=False, dropna=False).agg(count=("count", "sum"), ruled=("ruled", "all"))
    out = seen.index[(seen["count"] == 0.0) & seen["ruled"]]
    everything = _base(choices).frame().drop(columns=["set", "count"])
    gone = pd.MultiIndex.from_frame(everything[keys]).isin(out)
    if not gone.any():
        return None
    left = everything[~gone].reset_index(drop=True)
    left.attrs["left_out"] = [_transition(row) for row in everything[gone].to_dict("records")]
    return left


def _is_cell(column: str, next_state: str) -> bool:
    return any(factor.startswith(f"{next_state}[") for factor in column.split(":"))


def _transition(row: dict[Any, Any]) -> str:
    return f"{row['state']!r} -> {row['next_state']!r}"


def never_told(left_out: Sequence[str]) -> str:
    """The warning of transitions that were left out."""
    names = list(dict.fromkeys(left_out))
    return (
        f"never seen, and taken to be impossible, since cells of their own have no finite estimate: {_few(names)}; if "
        "they can happen, set reg > 0 or merge levels"
    )
