"""Nominal models: models given by their transition probabilities, and the checks of these.

An :class:`livarot.model.problem.MNLMDP` is a nominal model by itself; a table of probabilities becomes one here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import bad
from livarot.model.building.build import Terms, read_terms
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP, WITHOUT_END, Problem, without_end
from livarot.model.terms.rewards import RewardLike
from livarot.system.sizes import require_memory


class Nominal(NamedTuple):
    """A model given by its probabilities: a problem (reachable sets, rewards, start) and a kernel for it."""

    problem: Problem
    kernel: Kernel


@checked
def nominal_model(
    transitions: Any,
    reward: RewardLike | None = None,
    horizon: int | None = None,
    *,
    start: Any = 0,
    **terms: Unpack[Terms],
) -> Nominal:
    """A nominal model from transition probabilities: logits log p0 without a parameter.

    ``transitions`` is dense (S, A, S) or (H, S, A, S); or a scipy sparse matrix (S A, S) with row s A + a; or a list of
    H such matrices.  Rows are distributions; a state of probability 0 is not a next state, and no adversary can make it
    one.  ``reward`` and the other keywords (``cost``, ``discount``, ``available``, ``terminal``, ..) are those of
    :meth:`livarot.MNLMDP.from_function`; rows of actions that are not available, and of terminal states, are not read.

    >>> model = nominal_model([[[0.9, 0.1]], [[0.2, 0.8]]], [[0.0], [1.0]], horizon=3)
    >>> from livarot import solve_robust
    >>> solve_robust(model, penalty=1.0).value[0].round(4)
    array([0.1493, 2.1001])
    """
    if horizon is None:
        raise bad("horizon", "is missing", cure="without an end use livarot.infinite.InfiniteMDP.from_transitions")
    require_memory("horizon", "the stages of the model", 8 * horizon)
    tables = _tables(transitions, horizon)
    n_pairs, n_states = tables[0].shape
    n_actions = n_pairs // n_states
    stage_table = np.arange(horizon, dtype=np.int32) % len(tables)
    read, exists = read_terms(terms, stage_table, n_states, n_actions)
    for h, (table, own) in enumerate(zip(tables, exists.reshape(len(tables), n_pairs), strict=True)):
        _check_rows(table.data, table.indptr, h, (n_states, n_actions), own, "transitions")
        table.data[~np.repeat(own, np.diff(table.indptr))] = 0.0
        table.eliminate_zeros()
    problem = Problem.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=np.concatenate([np.diff(table.indptr) for table in tables]),
        next_state=np.concatenate([table.indices for table in tables]),
        features=np.zeros((sum(table.nnz for table in tables), 1)),
        offset=np.log(np.concatenate([table.data for table in tables])),
        reward=reward,
        start=start,
        param_bound=0.0,
        shared_parameter=True,
        **read,
    )
    return Nominal(problem, transition_kernel(MNLMDP(problem, np.zeros(problem.theta_shape))))


def as_nominal(nominal: Any) -> Nominal:
    """A model with its own kernel, or a pair (problem, kernel) after a check."""
    if isinstance(nominal, MNLMDP):
        return Nominal(nominal.problem, transition_kernel(nominal))
    if not (isinstance(nominal, tuple) and len(nominal) == 2 and isinstance(nominal[0], Problem)):
        cure = "give an MNLMDP, a (Problem, Kernel), or nominal_model(transitions, reward, horizon)"
        cure = WITHOUT_END if without_end(nominal) else cure
        raise bad("nominal", f"is a {type(nominal).__name__}", cure=cure)
    problem = nominal[0]
    kernel = Kernel(*nominal[1])
    prob = np.ascontiguousarray(kernel.prob, dtype=np.float64)
    base = np.ascontiguousarray(kernel.base, dtype=np.int64)
    rows, n_pairs = problem.rows, problem.n_states * problem.n_actions
    if base.shape != (problem.horizon,) or prob.ndim != 1:
        raise bad("nominal", f"its kernel has base {base.shape} for {problem.horizon} stages")
    seen = set()
    for h in range(problem.horizon):
        table = int(problem.stage_table[h])
        if (table, int(base[h])) in seen:
            continue
        seen.add((table, int(base[h])))
        starts = rows.row_start[table * n_pairs : (table + 1) * n_pairs + 1]
        first, last = int(base[h] + starts[0]), int(base[h] + starts[-1])
        if first < 0 or last > len(prob):
            raise bad("nominal", "its kernel has no probabilities for stage", index=h, cure="use transition_kernel")
        sizes, exists = (problem.n_states, problem.n_actions), np.diff(starts) > 0
        _check_rows(prob[first:last], starts - starts[0], h, sizes, exists, "nominal")
    return Nominal(problem, Kernel(prob, base))


def _check_rows(
    data: FloatArray, starts: Any, h: int, sizes: tuple[int, int], exists: BoolArray, argument: str
) -> None:
    """Refuse probabilities of a stage that are not distributions; pairs that do not exist, (S A,), are not read."""
    where, n_actions = "at (h, s, a)", sizes[1]
    owner = np.repeat(np.arange(sizes[0] * n_actions), np.diff(starts))
    wrong = np.flatnonzero(~np.isfinite(data) & exists[owner])
    problem, cure = f"NaN or infinite probability {where}", "give finite probabilities"
    if len(wrong) == 0:
        wrong = np.flatnonzero((data < 0.0) & exists[owner])
        problem, cure = f"negative probability {where}", "probabilities are >= 0"
    if len(wrong):
        index = (h, *divmod(int(owner[wrong[0]]), n_actions))
        raise bad(argument, problem, index=index, count=len(wrong), cure=cure)
    sums = np.bincount(owner, weights=data, minlength=len(exists))
    off = np.flatnonzero((np.abs(sums - 1.0) > SUM_SLACK) & exists)
    if len(off):
        pair = int(off[0])
        cure = "divide each row by its sum; what does not exist is left out of available=, or listed in terminal="
        told = f"probabilities sum to {sums[pair]:.9g}, not 1, {where}"
        raise bad(argument, told, index=(h, *divmod(pair, n_actions)), count=len(off), cure=cure)


def _tables(transitions: Any, horizon: int) -> list[Any]:
    """One CSR matrix (S A, S) for all stages, or one per stage."""
    from scipy.sparse import csr_array

    if hasattr(transitions, "tocsr"):
        parts = [transitions]
    elif isinstance(transitions, Sequence) and transitions and hasattr(transitions[0], "tocsr"):
        parts = list(transitions)
    else:
        try:
            dense = np.asarray(transitions, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise bad("transitions", f"are not numbers ({error})") from error
        if dense.ndim not in (3, 4) or dense.shape[-3] != dense.shape[-1] or dense.size == 0:
            raise bad(
                "transitions", f"has shape {dense.shape}", cure="give (S, A, S) or (H, S, A, S), or sparse matrices"
            )
        parts = list(dense.reshape(-1, dense.shape[-3] * dense.shape[-2], dense.shape[-1]))
    if len(parts) not in (1, horizon):
        raise bad("transitions", f"has {len(parts)} stages, the horizon is {horizon}")
    tables = [csr_array(part, dtype=np.float64, copy=True) for part in parts]
    for h, table in enumerate(tables):
        table.sum_duplicates()
        if table.shape != tables[0].shape or table.shape[1] == 0 or table.shape[0] % table.shape[1]:
            raise bad("transitions", f"has shape {table.shape} at stage", index=h, cure="give matrices (S A, S)")
    return tables
