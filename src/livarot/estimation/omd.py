"""The online mirror descent estimate with a general step size eta (certain).

With g and Hs the gradient and Hessian of the episode's loss at a stage,

    Ht          = Hcal + eta Hs(theta_t)
    theta'      = theta_t - eta Ht^-1 g                     minimises <g, theta> + |theta - theta_t|^2_Ht / (2 eta)
    theta_{t+1} = projection of theta' on Theta in the Ht norm (not the Euclidean one)
    Hcal       += Hs(theta_{t+1})                           the Hessian at the NEW point

eta = 1 is the update the paper prints (reading E15).  Theta is the B-ball, or an ellipsoid, or both intersected.
Per stage and episode: O(U d^2 + d^3) with d the size of the pair's block.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.inner import inner
from livarot.core.jit import jit
from livarot.core.lanes import W, any_of, lanes
from livarot.core.linalg import blocks_of, whiten_all
from livarot.core.plan import Episodes, Estimate, check_episodes, check_estimate, check_shape, typed
from livarot.core.pool import SMALL, fresh_copy
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray
from livarot.core.sizes import require_memory
from livarot.core.small import cholesky, invert, solve
from livarot.core.views import flat, opened, view
from livarot.estimation.projection import SLACK, project_parameters
from livarot.estimation.seen import (
    Seen,
    add_hessian,
    add_outcomes,
    alike,
    collect,
    fits,
    law,
    learn_model,
    load,
    load_gradient,
    locate,
    make_places,
    make_room,
    mark,
    move,
    n_waves,
    square_length,
    store,
    store_symmetric,
)


class ParameterSet(NamedTuple):
    """Theta: the ball |theta| <= bound, intersected with |theta - center|_shape <= radius where radius is finite."""

    bound: float
    center: FloatArray  # (R, K, d)
    shape: FloatArray  # (R, K, G)
    radius: FloatArray  # (R,)


def ball(problem: Problem, bound: float, n_replicas: int) -> ParameterSet:
    """The B-ball alone; an infinite bound is no constraint at all."""
    return ParameterSet(bound, np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.full(n_replicas, math.inf))


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
    return stepped(problem, estimate, episodes, StepRule(float(step_size), 0.0), within)


class StepRule(NamedTuple):
    """eta, and what phi phi' of one outcome is taken to be worth: 0 where the Hessian says (OMD; else ONS)."""

    rate: float
    information: float


def stepped(
    problem: Problem, estimate: Estimate, episodes: Episodes, rule: StepRule, within: ParameterSet
) -> Estimate:
    """The estimate after the steps of one episode per replica."""
    theta, gram, whiten = estimate
    if not (theta.dtype == gram.dtype == whiten.dtype == np.float64):
        check_estimate(problem, estimate)
    if gram.size < SMALL:
        new = Estimate(theta.copy(), gram.copy(), whiten.copy())
    else:
        new = Estimate(fresh_copy(theta), fresh_copy(gram), fresh_copy(whiten))
    take_steps(problem, new, typed(episodes), rule, within)
    return new


def take_steps(problem: Problem, new: Estimate, episodes: Episodes, rule: StepRule, within: ParameterSet) -> None:
    """The steps of one episode per replica, in place; our error if something belongs to another problem."""
    pending = np.zeros(new.theta.shape[:2], dtype=np.int8)
    # parameters of an ellipsoid are all looked at: no length is below -1
    limit = -1.0 if within.center.size else within.bound * within.bound * (1.0 + SLACK)
    model, numbers, turn = learn_model(problem), (*rule, limit), 0
    while True:
        turn = _update(model, *episodes, numbers, turn, *new, pending)
        if turn < 0 or len(within.radius) != len(pending):
            check_estimate(problem, new)
            check_episodes(problem, episodes)
            check_shape("estimate.theta", new.theta, (len(episodes.states), *problem.theta_shape))
            check_set(new, within)
        if turn <= 0:
            return
        project(problem, new, within, pending)


def check_set(estimate: Estimate, within: ParameterSet) -> None:
    """Refuse the set of another problem, or of other replicas."""
    check_shape("within.radius", within.radius, estimate.theta.shape[:1])
    if within.center.size or np.isfinite(within.radius).any():
        check_shape("within.center", within.center, estimate.theta.shape)
        check_shape("within.shape", within.shape, estimate.gram.shape)


def project(problem: Problem, estimate: Estimate, within: ParameterSet, chosen: Any) -> None:
    """The chosen parameters (R, K) to the nearest points of Theta in the norms of their Gram matrices, in place."""
    check_set(estimate, within)
    sets = (np.ascontiguousarray(part, dtype=np.float64) for part in within[1:])
    order, blocks = problem.rows.block_coords, blocks_of(problem)
    project_parameters(blocks, order, estimate.gram, float(within.bound), *sets, estimate.theta, chosen)


def project_estimate(problem: Problem, estimate: Estimate, within: ParameterSet) -> Estimate:
    """theta projected on Theta in the norm of its Gram matrix."""
    check_estimate(problem, estimate)
    new = estimate._replace(theta=estimate.theta.copy())
    project(problem, new, within, np.ones(new.theta.shape[:2], dtype=np.int8))
    return new


class Numbers(NamedTuple):
    """The estimates of all replicas and parameters, one after the other."""

    theta: Any
    gram: Any
    whiten: Any
    pending: Any  # 1 where Theta was left
    dim: Any


@jit
def _update(bundle, states, actions, choices, rule, turn, theta, gram, whiten, pending):
    """The steps of an episode from a turn on; 0 when all are done, -1 if something belongs to another problem.

    Turn 2w makes the steps of wave w.  Where Theta was left, ``gram`` becomes Ht and ``whiten`` keeps Hcal (OMD), and
    turn 2w + 1 is due once theta has been projected in the norm of ``gram``: it gives both their new values.
    """
    model = opened(bundle)
    if not fits(model, actions, theta, gram, whiten):
        return -1
    numbers, chosen = np.empty((2, actions.size), dtype=np.int64), np.empty(actions.size, dtype=np.int32)
    vectors, squares = np.empty((7, model.longest, W)), np.empty((5, model.longest * model.longest, W))
    rows, coordinates = np.empty((5, W), dtype=np.int64), np.empty((model.longest, W), dtype=np.int64)
    seen = Seen(view(numbers)[0], view(numbers)[1], view(chosen))
    own = Numbers(flat(view(theta)), flat(view(gram)), flat(view(whiten)), flat(view(pending)), theta.shape[2])
    sizes, at = (theta.shape[2], gram.shape[2]), make_places(view(rows), view(coordinates))
    while turn < 2 * n_waves(model):
        found = collect(model, view(states), view(actions), view(choices), turn // 2, theta.shape[1], seen)
        if found < 0:
            return -1
        first, left = 0, False
        while first < found:
            count = alike(model, seen, first, found)
            room = make_room(model, seen.pair[first], lanes(vectors), lanes(squares))
            locate(model, seen, first, count, sizes, len(room.theta), at)
            if turn % 2 == 0:
                left |= _step(model, seen, at, rule, own, room)
            elif own.pending[seen.own[first]] > 0:
                mark(seen, at, 0, own.pending)
                if rule[1] == 0.0:
                    load(model, seen, at, own.theta, own.whiten, room)
                    _finish(at, own, room)
            first += count
        if left:
            return turn + 1
        turn += 2 - turn % 2
    return 0


@inner
def _step(model, seen, at, rule, own, room):
    """The step of W transitions, each with a parameter (or block) of its own; has one left Theta?"""
    eta, information, limit = rule
    load(model, seen, at, own.theta, own.gram, room)
    law(room)
    load_gradient(room)
    for i in range(len(room.gram)):
        for j in range(i + 1):
            room.metric[i, j] = room.gram[i, j]
    if information > 0.0:
        add_outcomes(room, information, room.metric)
    else:
        add_hessian(room, eta, room.metric)
    cholesky(room.metric, room.low)
    solve(room.low, room.step)
    move(room, eta, at, own.theta)
    left = any_of(square_length(own.theta, at, own.dim) > limit)
    if left:
        mark(seen, at, 1, own.pending)
    if information == 0.0 and not left:
        _finish(at, own, room)
        return False
    if information > 0.0:
        invert(room.low, room.gram)
    store_symmetric(room.metric, at, own.gram)
    store(room.gram, at, own.whiten)
    return left


@inner
def _finish(at, own, room):
    """Hcal += Hs at the new point, and its whitener."""
    law(room)
    add_hessian(room, 1.0, room.gram)
    cholesky(room.gram, room.low)
    invert(room.low, room.metric)
    store_symmetric(room.gram, at, own.gram)
    store(room.metric, at, own.whiten)
