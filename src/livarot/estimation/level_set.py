"""Likelihood-ratio confidence sets: valid for any adaptive data, and small enough to learn with.

L(theta) is the negative log-likelihood of the n transitions of a parameter, |theta*| <= B, theta_hat any point of the
B-ball (here the ridge estimate there), H its Hessian.

**The set** (Lee, Yun, Jun, "A unified confidence sequence for generalized linear models", 2024).  With probability
1 - delta, for all K parameters and at all times,

    L(theta*) - L(theta_hat) <= beta = log(K/delta) + min over P of ( KL(P | Q) + E_P[L(theta)] - L(theta_hat) ),

Q the uniform law on the B-ball and P any law, which may depend on the data.  Proof: for a fixed theta,
exp(L(theta*) - L(theta)) is the product of the likelihood ratios of the transitions, each of conditional mean 1
whatever chose the pair, so it is a martingale that starts at 1 (transition by transition, so H of them per episode do
no harm where stages share the parameter).  So is its average over Q; by Ville's inequality it never exceeds K/delta,
with probability 1 - delta/K.  The rest is Donsker and Varadhan's inequality, log E_Q[e^f] >= E_P[f] - KL(P | Q), for
all P at once, and a union over the K parameters.  Nothing is asked of theta_hat.

What the minimum costs is in :mod:`livarot.estimation.level_cost`: as Lee, Yun and Jun publish it, with P uniform on a
small ball, and ours (the default), whose P follows the data.  Both come from one event, so their minimum is valid too.

*Prequential*: for a predictable p_hat, exp(L(theta*)) prod p_hat is a martingale as well, so
L(theta*) <= sum over transitions of -log p_hat + log(K/delta).  Here p_hat is the estimate before the episode.

**The ellipsoid around it.**  With F = L + reg/2 |theta|^2, theta_hat its minimiser on the B-ball up to a first-order
gap, v = theta* - theta_hat, and for every pair seen its visits n, its Hessian H_p at theta_hat and the span s_p of
phi . v over its outcomes:

    F(theta*) - F(theta_hat) <= beta + reg/2 (B^2 - |theta_hat|^2),
    F(theta*) - F(theta_hat) >= -gap + reg/2 |v|^2 + sum over pairs of n g(s_p) |v|_{H_p}^2,

g(s) = (e^-s + s - 1)/s^2.
For the third derivative of a row's loss along v is at most s_p times the second (generalised self-concordance, Bach
2010), so log f'' falls by at most s_p along the segment; integrate twice.  And grad F . v >= -gap, with
gap = B |grad F| + grad F . theta_hat: 0 at the minimiser on the ball.  g decreases, so for any bounds S_p >= s_p

    |v|_gram <= radius,   gram = reg I + sum over pairs of 2 g(S_p) n H_p,
                          radius^2 = 2 beta + reg (B^2 - |theta_hat|^2) + 2 gap.

The first bounds are S_p = (B + |theta_hat|) max_ij |phi_i - phi_j|.  The ellipsoid that they give bounds the spans
anew, S_p = radius max_ij |phi_i - phi_j|_{gram^-1}, which gives a smaller ellipsoid, and so on: each round is valid.
Where data are plenty, S_p is small and 2 g(S_p) nearly 1.

**Rounding.**  Rows are taken relative to the first one of their pair: only differences matter, and a large part that
they have in common would swallow them.  What rounding may have taken from a set is given back: by ``digits``, the
relative error of a sum over the pairs, to the level and the gap; and to the ellipsoid by :func:`open_up`.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.law import log_sum_exp, logits, mean_row, softmax
from livarot.core.linalg import Blocks, block_of, dot, identity, whitener
from livarot.core.views import matrix, opened, part, view
from livarot.estimation.history import History, check_history
from livarot.estimation.level_cost import TRUSTED, mixture_cost, published_cost, rounding
from livarot.estimation.seen import learn_model
from livarot.model.episodes import check_shape
from livarot.model.problem import Problem

ROUNDS = 5  # of bounds on the spans; later ones change little
ROUNDING = 1e-9  # by which a radius is enlarged
EPS = 2.0**-52


class Levels(NamedTuple):
    """The likelihood-ratio sets of R replicas with K parameters each, and ellipsoids around them."""

    beta: FloatArray  # (R, K) L(theta*) - L(theta_hat) is at most this
    loss: FloatArray  # (R, K) L(theta_hat)
    radius: FloatArray  # (R, K) |theta* - theta_hat|_gram is at most this
    gram: FloatArray  # (R, K, G)
    whiten: FloatArray  # (R, K, G)


class LevelSettings(NamedTuple):
    """What the sets depend on besides the data."""

    bound: float  # B
    reg: float  # the ridge of the estimate
    surprise: float  # log(K/delta)
    published: bool  # the level as published


def level_sets(
    problem: Problem, theta: FloatArray, history: History, settings: LevelSettings, predicted: FloatArray | None = None
) -> Levels:
    """The sets around estimates theta (R, K, d) in the B-ball (:func:`fit_history` with a bound).

    ``predicted`` (R, K), the losses so far (:mod:`livarot.estimation.predictions`), asks for the prequential level.
    """
    check_history(problem, history, len(theta))
    check_shape("theta", theta, (len(theta), *problem.theta_shape))
    shape, packed = theta.shape[:2], (*theta.shape[:2], problem.rows.gram_size)
    losses = np.zeros((0, 0)) if predicted is None else predicted
    if predicted is not None:
        check_shape("predicted", predicted, shape)
    levels = Levels(np.empty(shape), np.empty(shape), np.empty(shape), np.zeros(packed), np.zeros(packed))
    numbers = tuple(float(number) for number in settings)
    _levels(learn_model(problem), theta, tuple(history), numbers, losses, levels)
    return levels


class _Room(NamedTuple):
    """Memory for one parameter."""

    x: Any  # (d,) in the order of the blocks
    gradient: Any
    above: Any  # (G,) A
    shifted: Any  # (G,) I/m^2 + rho A
    low: Any
    inverse: Any
    local: Any  # (longest,)
    p: Any
    mean: Any
    away: Any
    spans: Any  # (C,) bounds S_p
    rows: Any  # (longest^2,) phi_i - phi_0 of a pair
    offset: Any  # (longest,) the same of its offsets


class _Pair(NamedTuple):
    """A pair that was seen."""

    phi: Any  # (U, m) relative to the first row
    offset: Any  # (U,) likewise
    cols: Any  # (m,)
    block: int
    first: int  # coordinate of the block


@jit
def _levels(bundle, theta, history, settings, predicted, levels):
    """The level, the radius and the Gram matrix of every (replica, parameter)."""
    model, d, size = opened(bundle), theta.shape[2], levels.gram.shape[2]
    pairs, counts, used = history
    vectors, squares, small = np.empty((2, d)), np.empty((4, size)), np.empty((5, model.longest))
    spans, differences = np.empty(pairs.shape[2]), np.empty(model.longest**2)
    rows, packed, local = view(vectors), view(squares), view(small)
    square = packed[0], packed[1], packed[2], packed[3]
    memory = local[0], local[1], local[2], local[3], view(spans), view(differences), local[4]
    room = _Room(rows[0], rows[1], *square, *memory)
    blocks = Blocks(model.graph.block_start, model.graph.gram_start)
    bound, reg, surprise, published = settings
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            own = view(theta)[r, k]
            for i in range(d):
                room.x[i] = own[model.graph.block_coords[i]]
            data = part(view(pairs)[r, k], 0, used[r, k]), view(counts[r, k])
            loss, lipschitz, offsets = gather(model.graph, blocks, data, room)
            length, digits = math.sqrt(dot(room.x, room.x)), 4.0 * EPS * (used[r, k] + model.longest + 8)
            noise = digits * (offsets + max(bound, length) * lipschitz)
            if len(predicted) > 0:
                beta = surprise + max(predicted[r, k] - loss, 0.0)
            else:
                beta = surprise + published_cost(d, bound, lipschitz)
                if published == 0.0:
                    beta = min(beta, surprise + mixture_cost(blocks, bound, length, digits, room))
            beta += noise
            ridge, gap = reg * max(bound * bound - length * length, 0.0), first_order_gap(reg, bound, room) + noise
            radius = math.sqrt(2.0 * (beta + gap) + ridge) * (1.0 + ROUNDING)
            levels.beta[r, k], levels.loss[r, k], levels.radius[r, k] = beta, loss, radius
            shape = view(levels.gram)[r, k], view(levels.whiten)[r, k]
            enclose(model.graph, blocks, data, (reg, radius, bound + length, digits), shape, room)


@inner
def pair_seen(graph, blocks, pair, room):
    """The rows of a pair, relative to the first one."""
    block, m, begin = graph.pair_block[pair], graph.col_count[pair], graph.row_start[pair]
    u = graph.row_start[pair + 1] - begin
    given, phi, offset = matrix(graph.feat, graph.feat_start[pair], u, m), matrix(room.rows, 0, u, m), room.offset
    for i in range(u):
        for j in range(m):
            phi[i, j] = given[i, j] - given[0, j]
        offset[i] = graph.offset[begin + i] - graph.offset[begin]
    return _Pair(phi, part(offset, 0, u), part(graph.cols, graph.col_start[pair], m), block, blocks.first[block])


@inner
def law_of(pair, room):
    """The logits of a pair's outcomes at room.x."""
    z = part(room.p, 0, len(pair.phi))
    for j in range(len(pair.cols)):
        room.local[j] = room.x[pair.first + pair.cols[j]]
    logits(pair.offset, pair.phi, room.local, z)
    return z


@inner
def gather(graph, blocks, data, room):
    """One pass over the pairs seen: grad L and A into ``room``; gives L(theta_hat), Lip and the same of offsets."""
    pairs, counts = data
    for i in range(len(room.gradient)):
        room.gradient[i] = 0.0
    identity(blocks, 0.0, room.above)
    loss, lipschitz, offsets = 0.0, 0.0, 0.0
    for n in range(len(pairs)):
        pair = pair_seen(graph, blocks, pairs[n], room)
        u, m = pair.phi.shape
        p, mean, visits = law_of(pair, room), part(room.mean, 0, m), 0.0
        loss += count_loss(counts[n], p)
        softmax(p, p)
        mean_row(p, pair.phi, mean)
        widest = 0.0
        for i in range(u):
            visits += counts[n, i]
            widest = max(widest, abs(pair.offset[i]))
        offsets += visits * widest
        for j in range(m):
            slope = visits * mean[j]
            for i in range(u):
                slope -= counts[n, i] * pair.phi[i, j]
            room.gradient[pair.first + pair.cols[j]] += slope
        centre(pair.phi, mean)
        for i in range(u):
            p[i] = 0.5
        add_squares(pair, p, visits, mean, block_of(blocks, room.above, pair.block))
        room.spans[n] = plain_width(pair.phi, mean)
        lipschitz += visits * room.spans[n]
    return loss, lipschitz, offsets


@inner
def enclose(graph, blocks, data, sizes, shape, room):
    """Gram matrix and whitener of the ellipsoid; ``sizes`` are reg, the radius, B + |theta_hat| and ``digits``."""
    (pairs, counts), (reg, radius, furthest, digits), (gram, whiten) = data, sizes, shape
    for n in range(len(pairs)):
        room.spans[n] *= furthest
    for turn in range(ROUNDS):
        identity(blocks, reg, gram)
        for n in range(len(pairs)):
            pair = pair_seen(graph, blocks, pairs[n], room)
            u, m = pair.phi.shape
            p, mean, visits = law_of(pair, room), part(room.mean, 0, m), 0.0
            softmax(p, p)
            mean_row(p, pair.phi, mean)
            for i in range(u):
                visits += counts[n, i]
            add_squares(pair, p, 2.0 * visits * concordance(room.spans[n]), mean, block_of(blocks, gram, pair.block))
        whitener(blocks, gram, whiten, room.low)
        open_up(blocks, reg, digits, gram, whiten)
        for n in range(len(pairs) if turn < ROUNDS - 1 else 0):
            pair = pair_seen(graph, blocks, pairs[n], room)
            mean = part(room.mean, 0, len(pair.cols))
            centre(pair.phi, mean)
            width = white_width(pair, mean, block_of(blocks, whiten, pair.block), room)
            room.spans[n] = min(room.spans[n], radius * width)


@inner
def open_up(blocks, reg, digits, gram, whiten):
    """Enlarge the ellipsoid of a block by what rounding may have taken from it.

    Entries of gram and of its Cholesky factor times its transpose are wrong by at most digits sqrt(G_ii G_jj): with
    D = diag(G), |x|_{gram^-1} is wrong by at most a share n digits |D^1/2 gram^-1 D^1/2| of itself, and the trace is at
    least that norm.  Where this is much, gram >= reg I is all that is used.
    """
    for b in range(len(blocks.first) - 1):
        own, image = block_of(blocks, gram, b), block_of(blocks, whiten, b)
        n, wrong = len(own), rounding(own, image, digits)
        if wrong < ROUNDING:
            continue
        for i in range(n):
            for j in range(n):
                if wrong < TRUSTED:
                    own[i, j] /= (1.0 + wrong) * (1.0 + wrong)
                    image[i, j] *= 1.0 + wrong
                else:
                    own[i, j] = reg if i == j else 0.0
                    image[i, j] = 1.0 / math.sqrt(reg) if i == j else 0.0


@inner
def concordance(s):
    """g(s) = (e^-s + s - 1)/s^2, rounded down."""
    return (0.5 - s / 6.0 if s < 1e-4 else (s + math.expm1(-s)) / (s * s)) * (1.0 - 1e-11)


@inner
def count_loss(counts, z):
    """sum_i counts_i (log sum exp z - z_i), from the logits."""
    whole, loss = log_sum_exp(z), 0.0
    for i in range(len(z)):
        loss += counts[i] * (whole - z[i])
    return loss


@inner
def centre(phi, mean):
    """mean <- the plain average of the rows."""
    u, m = phi.shape
    for j in range(m):
        total = 0.0
        for i in range(u):
            total += phi[i, j]
        mean[j] = total / u


@inner
def add_squares(pair, p, weight, mean, to):
    """to += weight * sum_i p_i (phi_i - mean)(phi_i - mean)'."""
    u, m = pair.phi.shape
    for j in range(m):
        for k in range(j + 1):
            total = 0.0
            for i in range(u):
                total += p[i] * (pair.phi[i, j] - mean[j]) * (pair.phi[i, k] - mean[k])
            to[pair.cols[j], pair.cols[k]] += weight * total
            if k < j:
                to[pair.cols[k], pair.cols[j]] += weight * total


@inner
def plain_width(phi, mean):
    """A bound on max_ij |phi_i - phi_j|: the two largest distances from the average; exact for two outcomes."""
    u, m = phi.shape
    most, second = 0.0, 0.0
    for i in range(u):
        square = 0.0
        for j in range(m):
            square += (phi[i, j] - mean[j]) ** 2
        most, second = larger_two(most, second, math.sqrt(square))
    return most + second


@inner
def white_width(pair, mean, whiten, room):
    """The same in the norm of gram^-1."""
    u, m = pair.phi.shape
    most, second = 0.0, 0.0
    for i in range(u):
        square = 0.0
        for a in range(len(whiten)):
            room.away[a] = 0.0
        for j in range(m):
            step = pair.phi[i, j] - mean[j]
            for a in range(pair.cols[j], len(whiten)):
                room.away[a] += whiten[a, pair.cols[j]] * step
        for a in range(len(whiten)):
            square += room.away[a] * room.away[a]
        most, second = larger_two(most, second, math.sqrt(square))
    return most + second


@inner
def larger_two(most, second, x):
    """The two largest of three numbers, most >= second."""
    return max(most, x), max(second, min(most, x))


@inner
def first_order_gap(reg, bound, room):
    """B |grad F| + grad F . theta_hat: how much a linear model of F falls within the ball."""
    square, inward = 0.0, 0.0
    for i in range(len(room.x)):
        slope = room.gradient[i] + reg * room.x[i]
        square += slope * slope
        inward += slope * room.x[i]
    return max(bound * math.sqrt(square) + inward, 0.0)
