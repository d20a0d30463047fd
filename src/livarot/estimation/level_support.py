"""How far a linear function reaches over a likelihood-ratio set, with a certificate: the set itself, no ellipsoid.

    maximise  w . theta   over   {F(theta) <= F(theta_hat) + level},      F = L + reg/2 |theta|^2

With level = radius^2/2 of :mod:`livarot.estimation.level_set` the set holds theta* with the probability promised there
(that is the first of the two inequalities of its ellipsoid).  It is convex, so this is a convex program:

    theta(s) = argmin F(theta) - s w . theta,     with s > 0 such that  F(theta(s)) = F(theta_hat) + level.

u(s) = sqrt(2 (F(theta(s)) - F(theta_hat))) grows, nearly linearly, with slope s w'H^-1 w/u (H the Hessian there);
Newton's method on it, inside a bracket, takes a few steps, each with a few damped Newton steps for theta(s).

**The ball.**  On |theta| <= B, F(theta) <= F(theta_hat) + level implies the same of F + mu/2 |theta|^2 with the level
raised by mu/2 (B^2 - |theta_hat|^2), for every mu >= 0.  We take mu = -grad F(theta_hat) . theta_hat/|theta_hat|^2, the
multiplier of the ball if theta_hat lies on its boundary, and 0 inside: then theta_hat minimises the new F, which is
meant below (reg + mu in place of reg).  And no bound is larger than B |w|.

**Certificate**, whatever the solver did: for every s > 0 and theta, with r = grad F(theta) - s w,

    max w . theta' <= w . theta + (F(theta_hat) + level - F(theta))/s + |r|^2/(2 reg s).

For on the set s w . theta' <= F(theta_hat) + level - (F(theta') - s w . theta'), and what is in brackets is strongly
convex with modulus reg, so it is nowhere below F(theta) - s w . theta - |r|^2/(2 reg).  And by convexity of F the point
theta_hat + share (theta - theta_hat), share = min(1, level/(F(theta) - F(theta_hat))), is in the set: what it gives is
*attained*.  The bound is tight to second order in the error of s, the attained value to first.

**What it is for.**  Where pairs have two outcomes, E_theta[V] is monotone in (phi_0 - phi_1) . theta, so its maximum
over the set is exact (:mod:`livarot.planning.optimistic.between`).  With three or more outcomes it is not concave, and
we know of no certificate that is better than the ellipsoid's.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.linalg import Blocks, add, copy, dot, factor, solve_packed
from livarot.core.views import matrix, opened, part, view
from livarot.errors import bad
from livarot.estimation.history import History, check_history
from livarot.estimation.mle import _Data, _Point, derivatives
from livarot.estimation.seen import learn_model
from livarot.model.derived import derived
from livarot.model.episodes import check_shape
from livarot.model.problem import Problem

NEAR = 1e-6  # u(s) is this close to its target, relatively: upper misses the maximum by the square of it
DECREMENT = 1e-7  # of the last Newton step for theta(s)
STEPS, MOST = 60, 60  # of s, and of theta(s)
ROUNDING = 1e-9  # by which an upper bound is raised
EPS = 2.0**-52


class Reach(NamedTuple):
    """Bounds on w . theta over the set of every replica and parameter, for every contrast w that is wanted."""

    lower: FloatArray  # (R, K, n) at most the minimum
    upper: FloatArray  # (R, K, n) at least the maximum
    attained: FloatArray  # (R, K, n) the largest difference between a bound and what a point of the set attains


class Contrasts(NamedTuple):
    """phi_0 - phi_1 of pairs with two outcomes, each vector once."""

    vectors: FloatArray  # (n, d)
    of_pair: IntArray  # (pairs,) which one, or -1 where the law is known
    wanted: BoolArray  # (K, n) does a state that can be reached use it with this parameter?


@derived
def contrasts(problem: Problem) -> Contrasts:
    """The contrasts of a problem whose pairs have at most two outcomes, those of known law included."""
    rows, dense = problem.rows, np.zeros((problem.rows.n_pairs, problem.dim))
    many = np.flatnonzero(rows.outcomes > 2)
    if len(many):
        cure = "take the ellipsoid around the set, whose maximum is certified for any number of outcomes"
        told = f"pair {many[0]} has {rows.outcomes[many[0]]} outcomes, where two are possible ({len(many)} such pairs)"
        raise bad("problem", told, cure=cure)
    for pair in np.flatnonzero((rows.pair_block >= 0) & (rows.outcomes > 1)):
        count, begin, block = rows.col_count[pair], rows.feat_start[pair], rows.pair_block[pair]
        columns = rows.cols[rows.col_start[pair] : rows.col_start[pair] + count]
        features = rows.feat[begin : begin + 2 * count].reshape(2, count)
        dense[pair, rows.block_coords[rows.block_start[block] + columns]] = features[0] - features[1]
    moves = dense.any(axis=1)
    vectors, which = np.unique(dense[moves], axis=0, return_inverse=True)
    of_pair = np.full(rows.n_pairs, -1, dtype=np.int64)
    of_pair[moves] = which.reshape(-1)
    wanted = np.zeros((problem.n_parameters, len(vectors)), dtype=np.bool_)
    by_state = of_pair.reshape(rows.n_tables, problem.n_states, problem.n_actions)
    for h in range(problem.horizon):
        used = by_state[problem.stage_table[h]][problem.reachable[h]]
        wanted[problem.stage_parameter[h], used[used >= 0]] = True
    return Contrasts(np.ascontiguousarray(vectors), of_pair, wanted)


def reach_of(
    problem: Problem, theta: FloatArray, history: History, reg: float, level: FloatArray, bound: float = math.inf
) -> Reach:
    """How far all contrasts reach over the sets around theta (R, K, d), for levels (R, K) > 0, within the B-ball."""
    check_history(problem, history, len(theta))
    check_shape("theta", theta, (len(theta), *problem.theta_shape))
    check_shape("level", level, theta.shape[:2])
    if not (reg > 0.0 and np.isfinite(level).all() and (level > 0.0).all()):
        raise bad("level", "a level or reg is not finite and > 0", cure="give finite numbers above 0")
    found, shape = contrasts(problem), (*theta.shape[:2], len(contrasts(problem).vectors))
    ahead = np.ascontiguousarray(found.vectors[:, problem.rows.block_coords])
    reach = Reach(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    settings = float(reg), float(bound), level
    _reach(learn_model(problem), theta, tuple(history), settings, ahead, found.wanted, tuple(reach))
    most = bound * np.linalg.norm(found.vectors, axis=1)
    return Reach(np.maximum(reach.lower, -most), np.minimum(reach.upper, most), reach.attained)


class _Work(NamedTuple):
    """The set of one parameter, and memory."""

    hat: FloatArray  # (d,) theta_hat in the order of the blocks
    loss: float  # F there
    level: float
    noise: tuple[float, float]  # a loss is wrong by noise_0 + noise_1 |theta|, a gradient by noise_1
    step: FloatArray  # (d,)
    start: FloatArray
    low: FloatArray  # (G,)


@jit
def _reach(bundle, theta, history, settings, vectors, wanted, reach):
    """The bounds of every (replica, parameter, contrast)."""
    model, d = opened(bundle), theta.shape[2]
    size = model.graph.gram_start[len(model.graph.gram_start) - 1]
    (pairs, counts, used), (reg, bound, level), (lower, upper, attained) = history, settings, reach
    rows, packed = np.empty((6, d)), np.empty((2, size))
    small, square = np.empty((5, model.longest)), np.empty(model.longest**2)
    x, local, w = view(rows), view(small), view(vectors)
    point = _Point(x[0], x[1], view(packed)[0], local[0], local[1], local[2], local[3], local[4], view(square))
    blocks = Blocks(model.graph.block_start, model.graph.gram_start)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            seen = part(view(pairs)[r, k], 0, used[r, k]), view(counts[r, k])
            for i in range(d):
                x[2][i] = theta[r, k, model.graph.block_coords[i]]
            copy(x[2], point.x)
            derivatives(model.graph, blocks, _Data(*seen, reg), point)
            square, more = dot(point.x, point.x), 0.0
            if bound < math.inf and square > 0.0:
                more = max(-dot(point.gradient, point.x) / square, 0.0)
            data = _Data(*seen, reg + more)
            raised = level[r, k] + (0.5 * more * max(bound * bound - square, 0.0) if more > 0.0 else 0.0)
            loss = derivatives(model.graph, blocks, data, point)
            noise = rounding_of(model.graph, seen)
            work = _Work(x[2], loss, raised, noise, x[3], x[4], view(packed)[1])
            for n in range(len(vectors)):
                if wanted[k, n]:
                    high, inside_high = support(model.graph, blocks, data, w[n], 1.0, work, point)
                    low, inside_low = support(model.graph, blocks, data, w[n], -1.0, work, point)
                    upper[r, k, n], lower[r, k, n] = high, -low
                    attained[r, k, n] = max(high - inside_high, low - inside_low)


@inner
def support(graph, blocks, data, w, sign, work, point):
    """A bound on the maximum of sign w . theta over the set of ``work``, and what a point of the set attains."""
    copy(work.hat, point.x)
    value = derivatives(graph, blocks, data, point)
    target, least, most = math.sqrt(2.0 * work.level), 0.0, math.inf
    s = target / max(length_in_metric(blocks, w, work, point), 1e-300)
    upper, inside, start = math.inf, -math.inf, sign * dot(w, work.hat)
    size, length = math.sqrt(dot(w, w)), math.sqrt(dot(work.hat, work.hat))
    for _ in range(STEPS):
        value, residual = tilted(graph, blocks, data, w, sign * s, work, point)
        rise, reached = max(value - work.loss, 0.0), sign * dot(w, point.x)
        # what rounding may have taken from the losses, from r and from w . theta is given back
        furthest = max(length, math.sqrt(dot(point.x, point.x)))
        wrong = 2.0 * (work.noise[0] + work.noise[1] * furthest) + 4.0 * EPS * (
            abs(value) + abs(work.loss) + work.level
        )
        slope = math.sqrt(residual) + work.noise[1] + 4.0 * EPS * (data.reg * furthest + s * size)
        over = (work.level - (value - work.loss) + wrong + slope * slope / (2.0 * data.reg)) / s
        upper = min(upper, reached + over + 4.0 * len(w) * EPS * size * furthest)
        share = 1.0 if rise <= work.level else work.level / rise
        inside = max(inside, start + share * (reached - start))
        u = math.sqrt(2.0 * rise)
        if abs(u - target) <= NEAR * target:
            break
        least, most = (s, most) if u < target else (least, s)
        slope = s * length_in_metric(blocks, w, work, point) ** 2 / max(u, 1e-300)
        s += (target - u) / slope
        if not least < s < most:
            s = 0.5 * (least + most) if most < math.inf else 4.0 * least
    return upper + ROUNDING * (1.0 + abs(upper)), inside


@inner
def rounding_of(graph, seen):
    """A loss is wrong by at most a + b |theta|, a gradient by b: the digits of logits, summed over the visits."""
    pairs, counts = seen
    offsets, lengths = 0.0, 0.0
    for n in range(len(pairs)):
        pair = pairs[n]
        m, begin = graph.col_count[pair], graph.row_start[pair]
        u, visits, widest, longest = graph.row_start[pair + 1] - begin, 0.0, 0.0, 0.0
        phi = matrix(graph.feat, graph.feat_start[pair], u, m)
        for i in range(u):
            square = 0.0
            for j in range(m):
                square += phi[i, j] * phi[i, j]
            visits += counts[n, i]
            widest, longest = max(widest, abs(graph.offset[begin + i])), max(longest, math.sqrt(square))
        offsets += visits * (1.0 + widest)
        lengths += visits * longest
    digits = 4.0 * EPS * (len(pairs) + 16)
    return digits * offsets, digits * lengths


@inner
def length_in_metric(blocks, w, work, point):
    """|w| in the norm of the inverse Hessian at the point."""
    factor(blocks, point.hessian, work.low)
    copy(w, work.step)
    solve_packed(blocks, work.low, work.step)
    return math.sqrt(max(dot(w, work.step), 0.0))


@inner
def tilted(graph, blocks, data, w, s, work, point):
    """Move the point to the minimiser of F - s w . theta; gives F there and |grad F - s w|^2."""
    value = derivatives(graph, blocks, data, point)
    for _ in range(MOST):
        for i in range(len(w)):
            work.step[i] = s * w[i] - point.gradient[i]
        current, uphill = value - s * dot(w, point.x), 0.0
        copy(work.step, work.start)
        factor(blocks, point.hessian, work.low)
        solve_packed(blocks, work.low, work.step)
        uphill = dot(work.step, work.start)
        if uphill <= DECREMENT * DECREMENT:
            break
        copy(point.x, work.start)
        length = 1.0
        for _ in range(60):
            add(work.start, length, work.step, point.x)
            value = derivatives(graph, blocks, data, point)
            gained = current - (value - s * dot(w, point.x))
            if gained >= 1e-4 * length * uphill or uphill <= 1e-13 * (1.0 + abs(current)):
                break
            length *= 0.5
    residual = 0.0
    for i in range(len(w)):
        residual += (s * w[i] - point.gradient[i]) ** 2
    return value, residual
