"""When is there a maximum likelihood estimate?  Collinear and separable data, found and named by column.

**Collinear**: some direction v has ``phi_i . v`` constant within every choice set; moving theta along it changes
nothing.  The Hessian at theta = 0 is the Gram matrix of the rows centred in their sets, with positive weights, so its
null space is exactly the set of those directions (certain).

**Separable** (Albert and Anderson 1984; certain): some v has ``(phi_y - phi_i) . v >= 0`` for all observed y and all
alternatives i of their sets, and > 0 at least once.  Then the likelihood grows for ever along v and no finite
maximum exists; without such a v, and without collinearity, there is exactly one.  v is looked for by a linear
programme with cuts: least ``|v|_1`` (few columns to name) with ``c . v = 1``, c the sum of all those differences, under
the constraints that earlier candidates violated most.  No solution proves that the data overlap; a solution that
violates no constraint of the data is a certificate of separation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog

from livarot.core.arrays import FloatArray
from livarot.data.fitting.likelihood import Derivatives, blocks
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import warn
from livarot.errors import LivarotError, bad

RANK_SLACK = 1e-10  # squared sine of the angle below which a column counts as a combination of others
EXACT = 1e-9  # relative range along a direction below which it counts as rounding
CUTS = 4000  # constraints added per round
ROUNDS = 60  # of the linear programme
FEASIBLE = 1e-7  # what the solver of the linear programme calls zero


class NotIdentified(LivarotError):
    """No unique finite estimate exists: ``columns`` says which columns are to blame, ``direction`` (d,) proves it."""

    kind: str = "collinear"
    columns: tuple[str, ...] = ()
    direction: FloatArray
    choices: Choices | None = None  # that are separable

    @classmethod
    def of(cls, error: LivarotError, kind: str, columns: Sequence[str], direction: FloatArray) -> NotIdentified:
        found = cls(str(error), argument=error.argument, index=error.index, count=error.count, cure=error.cure)
        found.kind, found.columns, found.direction = kind, tuple(columns), direction
        return found


def require_moderate(choices: Choices, at_zero: Derivatives) -> None:
    """Refuse columns whose squares are beyond floating-point numbers."""
    wild = ~np.isfinite(np.diag(at_zero.hessian)) | ~np.isfinite(at_zero.gradient)
    if wild.any() or not np.isfinite(at_zero.hessian).all():
        name = choices.columns[int(wild.argmax())]
        raise bad(f"column {name!r}", "is too large to compute with", count=int(wild.sum()), cure="rescale it")


def check_identified(choices: Choices, at_zero: Derivatives, *, ridge: bool, where: str = "") -> None:
    """Refuse constant and collinear columns (with a ridge, warn: there the ridge alone decides)."""
    if (choices.sizes[choices.weight > 0] < 2).all():
        cure = "give the sets of next states that can occur in reachable="
        raise bad("data", f"no choice set has two alternatives{where}: one observed class tells nothing", cure=cure)
    require_moderate(choices, at_zero)
    dead = at_zero.spread == 0.0
    told: list[str] = []
    if dead.any():
        names = [name for name, flat in zip(choices.columns, dead, strict=True) if flat]
        text = ", ".join(map(repr, names))
        problem = f"constant within every choice set{where}, so that {text} cancels from the probabilities"
        cure = "leave it out, or make it a product with something that varies, such as 'action:x' or 'x:C(next.y)'"
        error = bad(f"column {names[0]!r}", problem, index=0, count=len(names), cure=cure)
        if not ridge:
            raise NotIdentified.of(error, "constant", names, dead.astype(np.float64))
        told.append(f"{text} never vary in what was met")
    for combination in dependencies(at_zero.hessian, ~dead):
        names = [name for name, share in zip(choices.columns, combination, strict=True) if share]
        text = ", ".join(map(repr, names))
        exact = relative_range(choices, combination, at_zero.spread) <= EXACT
        if not exact:
            warn(f"columns {text} are nearly collinear within choice sets{where}: expect wide intervals")
            continue
        problem = f"collinear within choice sets{where}: {text} add up to the same number for all alternatives"
        cure = "drop one of them (collinear='drop' does), or set reg > 0"
        error = bad(f"column {names[-1]!r}", problem, count=len(names), cure=cure)
        if not ridge:
            raise NotIdentified.of(error, "collinear", names, combination)
        told.append(f"{text} are collinear within choice sets")
    if told:
        more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
        warn(f"the ridge alone decides some coefficients{where}: {'; '.join(told[:3])}{more}")


def dependencies(gram: FloatArray, alive: np.ndarray) -> list[FloatArray]:
    """Combinations v with ``v' gram v`` near 0, one per column that earlier columns explain."""
    d = len(gram)
    size = np.sqrt(np.where(alive, np.diag(gram), 1.0))
    unit = gram / size / size[:, None]
    kept: list[int] = []
    found = []
    for j in np.flatnonzero(alive):
        if kept:
            inner, cross = unit[np.ix_(kept, kept)], unit[kept, j]
            share = cho_solve(cho_factor(inner, lower=True), cross)
            rest = unit[j, j] - cross @ share
        else:
            share, rest = np.empty(0), 1.0
        if rest > RANK_SLACK:
            kept.append(int(j))
            continue
        combination = np.zeros(d)
        combination[kept] = -np.where(np.abs(share) > 1e-6, share, 0.0)
        combination[j] = 1.0
        found.append(combination / size)
    return found


def relative_range(choices: Choices, direction: FloatArray, spread: FloatArray) -> float:
    """Largest range of ``phi . v`` within a set that was met, relative to the size of its terms."""
    widest = 0.0
    for block in blocks(choices):
        along = block.shifted @ direction
        first = choices.start[block.first : block.last] - block.begin
        reach = np.maximum.reduceat(along, first) - np.minimum.reduceat(along, first)
        met = choices.weight[block.first : block.last] > 0
        widest = max(widest, float(reach[met].max(initial=0.0)))
    size = float(np.abs(direction) @ spread)
    return widest / size if size > 0.0 else math.inf


class Separation(NamedTuple):
    """A direction along which the likelihood grows for ever, and the columns it uses."""

    direction: FloatArray  # (d,)
    columns: tuple[str, ...]


def separation(choices: Choices, theta: FloatArray, spread: FloatArray) -> Separation | None:
    """A certificate of separation, or None if the data overlap; ``theta`` is a first candidate."""
    total = _total_difference(choices) / spread
    size = float(np.abs(total).max())
    if size == 0.0:
        return None
    total /= size
    cuts = np.empty((0, choices.dim))
    candidate, fallback = theta * spread, None
    for attempt in range(ROUNDS):
        worst, gain, new = _violations(choices, candidate / spread, spread)
        if worst <= FEASIBLE * gain and float(total @ candidate) > 0.0:
            fallback = _named(choices, candidate, spread)
            if attempt:  # the first candidate proves it, but uses all columns
                return fallback
        known = len(cuts)
        cuts = np.unique(np.concatenate((cuts, new)), axis=0)
        if attempt and len(cuts) == known:  # the solver cannot do better than its tolerance
            break
        both = np.concatenate((-cuts, cuts), axis=1)
        solved = linprog(
            np.ones(2 * choices.dim),
            A_ub=both if len(both) else None,
            b_ub=np.zeros(len(both)) if len(both) else None,
            A_eq=np.concatenate((total, -total))[None, :],
            b_eq=[1.0],
            method="highs",
        )
        if solved.status != 0:  # infeasible: no direction satisfies even these constraints
            break
        both_signs = np.asarray(solved.x, dtype=np.float64)
        candidate = both_signs[: choices.dim] - both_signs[choices.dim :]
    return fallback


def _named(choices: Choices, candidate: FloatArray, spread: FloatArray) -> Separation:
    share = np.abs(candidate) / np.abs(candidate).max()
    names = tuple(name for name, part in zip(choices.columns, share, strict=True) if part > 1e-6)
    return Separation(candidate / spread, names)


def _total_difference(choices: Choices) -> FloatArray:
    """sum of phi_y - phi_i over observed rows y and all rows i of their sets."""
    total = np.zeros(choices.dim)
    for block in blocks(choices):
        first = choices.start[block.first : block.last] - block.begin
        seen = choices.count[block.begin : block.end] > 0
        sizes = choices.sizes[block.first : block.last]
        observed = np.add.reduceat(seen.astype(np.float64), first)
        weights = np.where(seen, np.repeat(sizes, sizes), 0.0) - np.repeat(observed, sizes)
        total += weights @ block.shifted
    return total


def _violations(choices: Choices, direction: FloatArray, spread: FloatArray) -> tuple[float, float, FloatArray]:
    """Largest ``(phi_i - phi_y) . v`` and largest ``(phi_y - phi_i) . v`` over the sets, and the differences
    (phi_y - phi_i)/spread that are worst.

    The first is compared with the second: a direction along which *nothing* moves by more than rounding (columns that
    are nearly collinear) is no separation.
    """
    worst, gain, found, sizes_of = 0.0, 0.0, [], []
    for block in blocks(choices):
        along = block.shifted @ direction
        first = choices.start[block.first : block.last] - block.begin
        seen = choices.count[block.begin : block.end] > 0
        sizes = choices.sizes[block.first : block.last]
        lowest = np.where(seen, along, np.inf)
        excess = np.maximum.reduceat(along, first) - np.minimum.reduceat(lowest, first)
        bad_sets = np.flatnonzero(excess > 0.0)
        worst = max(worst, float(excess.max(initial=0.0)))
        highest = np.maximum.reduceat(np.where(seen, along, -np.inf), first)
        gain = max(gain, float((highest - np.minimum.reduceat(along, first)).max(initial=0.0)))
        for g in bad_sets[np.argsort(-excess[bad_sets])][: CUTS // 4]:
            rows = slice(int(first[g]), int(first[g] + sizes[g]))
            up, down = int(np.argmin(lowest[rows])), int(np.argmax(along[rows]))
            found.append((block.shifted[rows][up] - block.shifted[rows][down]) / spread)
            sizes_of.append(float(excess[g]))
    if not found:
        return worst, gain, np.empty((0, choices.dim))
    order = np.argsort(-np.asarray(sizes_of), kind="stable")[:CUTS]
    rows_found = np.asarray(found)[order]
    return worst, gain, rows_found / np.abs(rows_found).max(axis=1, keepdims=True)
