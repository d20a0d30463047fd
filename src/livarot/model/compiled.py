"""What compiled planners, the judge and simulators read of a problem, as one argument."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.compiling.inner import inner
from livarot.core.linalg import Blocks
from livarot.core.views import Bundle, view
from livarot.model.derived import derived
from livarot.model.problem import Problem
from livarot.model.terms.after import after, gains, outcome_kinds


class Model(NamedTuple):
    """What a plan reads of a problem; its next states are kinds of outcomes (:mod:`livarot.model.terms.after`)."""

    graph: Any  # the rows
    stage_table: Any  # (H,)
    stage_parameter: Any  # (H,)
    node_start: Any  # (H + 1,)
    node_state: Any
    start: Any  # (S,)
    reward: Any  # (H, S, A), -inf where the pair does not exist
    most_out: int  # the largest number of outcomes, of columns and of coordinates of a block
    most_cols: int
    most_size: int
    after: Any  # :class:`livarot.model.terms.after.After`


@derived
def plan_model(problem: Problem) -> Bundle:
    """The :class:`Model` of a problem."""
    rows = problem.rows
    return Bundle(
        Model(
            rows.graph._replace(next_state=outcome_kinds(problem)),
            problem.stage_table,
            problem.stage_parameter,
            *problem.nodes,
            problem.start,
            gains(problem),
            problem.max_reachable,
            max(int(rows.col_count.max()), 1),
            max(int(np.diff(rows.block_start).max()), 1),
            after(problem),
        )
    )


@derived
def blocks_of(problem: Problem) -> Bundle:
    """The blocks of a problem's Gram matrices."""
    return Bundle(Blocks(problem.rows.block_start, problem.rows.gram_start))


@inner
def own(array, r):
    """The entry of replica r in an array with one entry for each replica, or a single one for all."""
    return view(array)[r if len(array) > 1 else 0]
