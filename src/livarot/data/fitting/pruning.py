"""Columns that say nothing, and columns that say what others have said.

A column without information is the same for all alternatives of every choice that was met: the cell of a state that
was never left, of an action never tried there, of a next state that cannot follow
(:mod:`livarot.data.fitting.separation` has the mathematics).  Such columns of a category are dropped, with one warning
that lists them.  A term that has no other columns is refused in a list of features, since it was asked for by name; a
formula may make it by the way (``age * next_state``), and it is dropped too.

Columns that earlier ones explain exactly within the choice sets are refused, or, with ``collinear="drop"``, left out
as R does: the later ones go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livarot.data.fitting.likelihood import Derivatives, derivatives
from livarot.data.fitting.separation import EXACT, dependencies, relative_range, require_moderate
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import warn
from livarot.errors import bad

MOST_NAMED = 12


def pruned(choices: Choices, collinear: str, *, formula: bool) -> tuple[Choices, Derivatives, tuple[str, ...]]:
    """The choices without columns that say nothing, their derivatives at zero, and the names of what was dropped."""
    if collinear not in ("refuse", "drop"):
        raise bad("collinear", f"{collinear!r} is not known", cure="use 'refuse' or 'drop'")
    at_zero = derivatives(choices, np.zeros(choices.dim))
    require_moderate(choices, at_zero)
    dead = at_zero.spread == 0.0
    if dead.all() or choices.n_choices == 0:
        return choices, at_zero, ()
    alive_terms = {choices.terms[j] for j in np.flatnonzero(~dead)}
    out = [int(j) for j in np.flatnonzero(dead) if formula or choices.terms[j] in alive_terms]
    if out:
        warn(f"without information, dropped: {listed(choices, out)} (the same for all alternatives of every choice)")
    if collinear == "drop":
        doubled = _explained(choices, at_zero, dead)
        if doubled:
            warn(f"collinear within choice sets, dropped: {listed(choices, doubled)} (others say the same)")
            out += doubled
    if not out:
        return choices, at_zero, ()
    kept = [j for j in range(choices.dim) if j not in set(out)]
    names = tuple(choices.columns[j] for j in sorted(out))
    inner = at_zero.hessian[np.ix_(kept, kept)]
    return choices.keep_columns(kept), at_zero._replace(
        gradient=at_zero.gradient[kept], hessian=np.ascontiguousarray(inner), spread=at_zero.spread[kept]
    ), names  # fmt: skip


def _explained(choices: Choices, at_zero: Derivatives, dead: np.ndarray) -> list[int]:
    """Columns that earlier ones explain, up to rounding."""
    found = []
    for combination in dependencies(at_zero.hessian, ~dead):
        if relative_range(choices, combination, at_zero.spread) <= EXACT:
            found.append(int(np.flatnonzero(combination)[-1]))
    return found


def listed(choices: Choices, columns: Sequence[int]) -> str:
    """The names of columns, for a message."""
    names = [repr(choices.columns[j]) for j in columns]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
