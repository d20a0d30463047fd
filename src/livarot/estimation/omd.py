"""The online mirror descent estimate with a general step size eta (certain).

With g and Hess the gradient and Hessian of the episode's loss at a stage,

    Hcal~       = Hcal + eta Hess(theta_t)
    theta'      = theta_t - eta Hcal~^-1 g
    theta_{t+1} = argmin over theta in Theta of |theta - theta'|_{Hcal~}
    Hcal        <- Hcal + Hess(theta_{t+1})

theta' minimises <g, theta> + |theta - theta_t|^2_{Hcal~} / (2 eta), the projection is in the norm of Hcal~ and not the
Euclidean one, and the Hessian that is added is that at the NEW point.  eta = 1 is the update the paper prints (reading
E15).  Theta is the B-ball, or an ellipsoid, or both intersected.  Per stage and episode: O(U d^2 + d^3) with d the size
of the pair's block.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.basics import new_integers
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import compile_only, jit
from livarot.core.lanes import W
from livarot.core.linalg import whiten_all
from livarot.core.small import cholesky, invert, solve
from livarot.core.views import Bundle, flat, opened, view
from livarot.errors import bad, require_non_negative, require_positive_int
from livarot.estimation.projection import SLACK, project_parameters
from livarot.estimation.seen import (
    Seen,
    add_hessian,
    add_outcomes,
    alike,
    collect,
    law,
    learn_model,
    load,
    load_gradient,
    locate,
    make_places,
    make_room,
    memory_of,
    move,
    store,
)
from livarot.model.compiled import blocks_of
from livarot.model.derived import derived
from livarot.model.episodes import Episodes, Estimate, check_estimate, check_shape, refuse_foreign, typed
from livarot.model.problem import Problem
from livarot.system.memory import SMALL, fresh_copy
from livarot.system.sizes import require_memory

INT8 = np.dtype(np.int8)
HESSIAN = -1.0


class ParameterSet(NamedTuple):
    """Theta: the ball |theta| <= bound, intersected with |theta - center|_shape <= radius where radius is finite."""

    bound: float
    center: FloatArray  # (R, K, d)
    shape: FloatArray  # (R, K, G)
    radius: FloatArray  # (R,)


def ball(problem: Problem, bound: float, n_replicas: int) -> ParameterSet:
    """The B-ball alone; an infinite bound is no constraint at all."""
    limit = bound if isinstance(bound, float) and bound == math.inf else require_non_negative("bound", bound)
    replicas = require_positive_int("n_replicas", n_replicas)
    return ParameterSet(limit, np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.full(replicas, math.inf))


@checked
def initial_estimate(problem: Problem, n_replicas: int, reg: float) -> Estimate:
    """theta = 0 and gram = reg I."""
    shape = (n_replicas, problem.n_parameters)
    require_memory(
        "n_replicas", "the estimates of all replicas", math.prod(shape) * (problem.dim + 2 * problem.rows.gram_size)
    )
    gram = np.tile(problem.rows.pack_identity(reg), (*shape, 1))
    whiten = np.tile(problem.rows.pack_identity(1.0 / math.sqrt(reg)), (*shape, 1))
    return Estimate(np.zeros((*shape, problem.dim)), gram, whiten)


def whitened(problem: Problem, theta: FloatArray, gram: FloatArray) -> Estimate:
    """An estimate from theta (R, K, d) and packed Gram matrices (R, K, G)."""
    gram = np.ascontiguousarray(gram)
    whiten = np.empty_like(gram)
    whiten_all(blocks_of(problem), gram, whiten)
    return Estimate(theta, gram, whiten)


def omd_update(
    problem: Problem, estimate: Estimate, episodes: Episodes, step_size: float, within: ParameterSet
) -> Estimate:
    """One OMD step per stage with the transitions of one episode per replica, in stage order."""
    if not isinstance(within, ParameterSet):
        raise bad("within", f"{type(within).__name__} is not a ParameterSet", cure="give livarot.agents.ball(...)")
    return stepped(problem, estimate, episodes, (require_non_negative("step_size", step_size), HESSIAN), within)


# the step size eta, and the assumed curvature per phi phi' of an outcome (ONS), or HESSIAN for the Hessian itself (OMD)
StepRule = tuple[float, float]


def stepped(problem: Problem, estimate: Estimate, episodes: Episodes, rule: StepRule, within: ParameterSet) -> Estimate:
    """The estimate after the steps of one episode per replica."""
    try:
        theta, gram, whiten = estimate
        copied = fresh_copy if gram.size >= SMALL else np.ndarray.copy
        new = Estimate(copied(theta), copied(gram), copied(whiten))
        take_steps(problem, new, typed(episodes), rule, within)
    except (TypeError, ValueError, AttributeError):
        check_estimate(problem, estimate)
        raise
    return new


def take_steps(problem: Problem, new: Estimate, episodes: Episodes, rule: StepRule, within: ParameterSet) -> None:
    """The steps of one episode per replica, in place; a LivarotError if something belongs to another problem."""
    replicas = len(episodes.states)
    if len(within.radius) != replicas:
        check_shape("within.radius", within.radius, new.theta.shape[:1])
    pending = np.zeros((replicas, problem.n_parameters), INT8)
    # with an ellipsoid every parameter has to be checked: every square length exceeds -1
    limit = -1.0 if within.center.size else within.bound * within.bound * (1.0 + SLACK)
    model, turn = _model(problem), 0
    while True:
        turn = _update(model, *episodes, (*rule, limit), turn, *new, pending)
        if turn == 0:
            return
        if turn < 0:
            check_estimate(problem, new)
            check_shape("estimate.theta", new.theta, (replicas, *problem.theta_shape))
            refuse_foreign(problem.rows.row_start, problem.stage_table, problem.n_states, problem.n_actions, episodes)
        project(problem, new, within, pending)


@derived
def _model(problem: Problem) -> Bundle:
    """What steps read of a problem; they are compiled for the types of an :class:`Estimate` only."""
    model = learn_model(problem)
    played, table = numba.int32[:, ::1], numba.float64[:, :, ::1]
    types = played, played, played, numba.types.UniTuple(numba.float64, 3), numba.int64, table, table, table
    compile_only(_update, numba.typeof(model), *types, numba.int8[:, ::1])
    return model


def check_set(estimate: Estimate, within: ParameterSet) -> None:
    """Refuse the set of another problem, or of other replicas."""
    check_shape("within.radius", within.radius, estimate.theta.shape[:1])
    check_shape("within.center", within.center, estimate.theta.shape)
    check_shape("within.shape", within.shape, estimate.gram.shape)


def project(problem: Problem, estimate: Estimate, within: ParameterSet, chosen: Any) -> None:
    """Project the chosen parameters (R, K) on Theta in the norms of their Gram matrices, in place."""
    sets: tuple[FloatArray, ...] = within[1:]
    if within.center.size:
        check_set(estimate, within)
        sets = tuple(np.ascontiguousarray(part, dtype=np.float64) for part in sets)
    order, blocks = problem.rows.block_coords, blocks_of(problem)
    project_parameters(blocks, order, estimate.gram, float(within.bound), *sets, estimate.theta, chosen)


def project_estimate(problem: Problem, estimate: Estimate, within: ParameterSet) -> Estimate:
    """theta projected on Theta in the norm of its Gram matrix."""
    check_estimate(problem, estimate)
    new = estimate._replace(theta=estimate.theta.copy())
    project(problem, new, within, np.ones(new.theta.shape[:2], dtype=np.int8))
    return new


class _Numbers(NamedTuple):
    """The estimates of all replicas and parameters, one after the other."""

    theta: Any
    gram: Any
    whiten: Any
    pending: Any  # 1 where a step left Theta
    dim: Any
    size: Any  # of a packed matrix


@jit
def _update(bundle, states, actions, choices, rule, turn, theta, gram, whiten, pending):
    """The steps of an episode from a turn on; 0 when all are done, -1 if a transition is not one of the problem's.

    Turn 2w makes the steps of wave w: of all stages, or of stage w where they share a parameter.  Where a step leaves
    Theta, ``gram`` becomes Ht and ``whiten`` keeps Hcal (OMD).  Once theta has been projected in the norm of ``gram``,
    turn 2w + 1 is due: it gives both of them their new values.
    """
    model, replicas = opened(bundle), len(states)
    size = model.graph.gram_start[len(model.graph.gram_start) - 1]
    fits = theta.shape == (replicas, model.n_parameters, model.dim) and pending.shape == theta.shape[:2]
    if not (fits and gram.shape == whiten.shape == (replicas, model.n_parameters, size)):
        return -1
    own = _Numbers(flat(view(theta)), flat(view(gram)), flat(view(whiten)), flat(view(pending)), model.dim, size)
    transitions = new_integers(3, actions.size)
    return _turns(model, view(states), view(actions), view(choices), rule, turn, own, transitions, memory_of(model))


@inner
def _turns(model, states, actions, choices, rule, turn, own, transitions, memory):
    """:func:`_update` on views of memory that belongs to the caller."""
    rows, horizon = view(transitions), len(model.stage_table)
    seen, at = Seen(rows[0], rows[1], rows[2]), make_places(memory)
    waves = horizon if model.n_parameters == 1 else 1
    if actions.shape[1] != horizon:
        return -1
    while turn < 2 * waves:
        wave = turn // 2
        found = collect(model, states, actions, choices, wave, wave + 1 if waves > 1 else horizon, seen)
        if found < 0:
            return -1
        first, left = np.int64(0), False
        while first < found:
            count = alike(model, seen, first, found)
            u, n, every = locate(model.graph, seen, first, count, (own.dim, own.size), at)
            room = make_room(u, n, memory)
            left |= _advance(model.graph, seen, at, every, rule[0], rule[1], rule[2], turn % 2 == 1, own, room)
            first += count
        if left:
            return turn + 1
        turn += 2 - turn % 2
    return 0


@inner
def _advance(graph, seen, at, every, rate, information, limit, projected, own, room):
    """The step of W transitions, each with a parameter (or block) of its own, or the end of a step after a projection.
    True if a parameter left Theta.

    A step and its end share their arithmetic: law, curvature, factor.  It is written once here, so that it is inlined.
    """
    if projected:
        due = own.pending[seen.own[at.seen[0]]] > 0 and information == HESSIAN
        _mark(seen, at, False, own.pending)
        if not due:
            return False
    load(graph, seen, at, every, own.theta, own.whiten if projected else own.gram, room)
    gram, whiten, ending, left = room.metric, room.gram, projected, False
    for i in range(len(room.gram)):
        for j in range(i + 1):
            room.metric[i, j] = room.gram[i, j]
    while True:
        if ending:  # Hcal += Hs at the new point
            gram, whiten = room.gram, room.metric
        law(room)
        _add_curvature(room, 1.0 if ending else rate, information, gram)
        cholesky(gram, room.low)
        if ending:
            break
        load_gradient(room)
        solve(room.low, room.step)
        left = move(room, rate, at, own.theta, own.dim, limit)
        if left or information != HESSIAN:
            break
        ending = True
    if left:
        _mark(seen, at, True, own.pending)
    if ending or information != HESSIAN:
        invert(room.low, whiten)
    store(gram, whiten, at, own.gram, own.whiten)
    return left


@inner
def _mark(seen, at, flag, pending):
    for k in range(W):
        pending[seen.own[at.seen[k]]] = flag


@inner
def _add_curvature(room, rate, information, to):
    if information == HESSIAN:
        add_hessian(room, rate, to)
    else:
        add_outcomes(room, information, to)
