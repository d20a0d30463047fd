"""Maximum likelihood with a Gaussian prior per replica, and empirical Bayes estimates of that prior.

    theta_k = argmin  L_k(theta) + 1/2 |theta - mean|_P^2,        C_k = (Hessian of that)^-1,     k = 1..K parameters

L_k is the negative log-likelihood of the transitions of parameter k, kept as counts
(:mod:`livarot.estimation.history`).

**The learned ridge**: mean = 0 and P = NN'/v_1 + (I - NN')/v_2, with N an orthonormal basis (dimension q) of the
directions of theta that no contrast between actions touches (the *nuisance*), v_1 the variance of an entry of N'theta
and v_2 that of an entry of the rest, common to all parameters of a replica, by one step of EM from the Laplace
approximation, with a first guess v_0 that counts as w parameters:

    v_1 = (w q v_0 + sum_k |N'theta_k|^2 + tr N'C_k N) / ((w + K) q),          v_2 likewise with I - NN' and d - q.

What an action does is mostly smaller than what all actions have in common, and one variance for both would learn from
the larger one that effects are large.

**Pooling**: the nuisance is shrunk towards a mean common to all parameters: P = (I - NN')/v_0 + NN'/tau, mean = N mu,

    V    = (mean_reg I + sum_k N'(P - P C_k P) N)^-1        the covariance of mu
    mu  += 1/2 V (sum_k N'P (theta_k - N mu) - mean_reg mu)                         (undamped it may overshoot)
    tau  = (w' tau_0 q + sum_k |N'(theta_k - N mu)|^2) / (w' q + sum_k (q - tr N'C_k N/tau)).

The last line is MacKay's update: it counts directions as far as data determine them, so tau moves quickly from a guess
with little weight (w' = 1), and stages that differ are noticed: tau grows, and pooling fades.  With EM's update and
w' = 4, tau_0 = .01 it takes longer, and regret is larger where stages differ.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.linalg import Blocks, add, copy, dot, factor, product, solve_packed
from livarot.core.views import opened, part, view
from livarot.estimation.history import History, check_history
from livarot.estimation.mle import _Data, _Point, derivatives
from livarot.estimation.omd import whitened
from livarot.estimation.seen import learn_model
from livarot.model.derived import derived
from livarot.model.episodes import Estimate, check_shape
from livarot.model.problem import Problem

SPAN = 1e-10  # eigenvalues below this are 0
MOST_DIM = 256  # coordinates for which what no action touches is looked for


class Prior(NamedTuple):
    """The Gaussian prior of every replica."""

    precision: FloatArray  # (R, G) packed
    mean: FloatArray  # (R, d)


def fit_prior(
    problem: Problem, theta: FloatArray, history: History, prior: Prior, tol: float = 1e-8, max_iter: int = 50
) -> Estimate:
    """The estimates, started at ``theta`` (R, K, d), which is not changed; ``gram`` is the Hessian, prior included."""
    check_history(problem, history, len(theta))
    check_shape("theta", theta, (len(theta), *problem.theta_shape))
    check_shape("precision", prior.precision, (len(theta), problem.rows.gram_size))
    check_shape("mean", prior.mean, (len(theta), problem.dim))
    theta, gram = theta.copy(), np.empty((*theta.shape[:2], problem.rows.gram_size))
    _fit_prior(learn_model(problem), tuple(history), tuple(prior), float(tol), int(max_iter), theta, gram)
    return whitened(problem, theta, gram)


def learned_prior(problem: Problem, estimate: Estimate, weight: float, first: float) -> Prior:
    """The learned ridge of every replica, one step of EM."""
    (replicas, count, d), rows, basis = estimate.theta.shape, problem.rows, nuisance(problem)
    q, zeros = basis.shape[1], np.zeros((replicas, d))

    def precision(n: int, found: FloatArray) -> FloatArray:
        return np.asarray((weight + count) * n / (weight * n * first + found))[:, None]

    total = (estimate.theta**2).sum(axis=(1, 2)) + (estimate.whiten**2).sum(axis=(1, 2))  # tr C = |W|^2
    if not 0 < q < d:
        return Prior(precision(d, total) * rows.pack_identity(), zeros)
    inside = rows.unpack(estimate.whiten) @ basis
    common = ((estimate.theta @ basis) ** 2).sum(axis=(1, 2)) + (inside**2).sum(axis=(1, 2, 3))
    own, other = precision(q, common), precision(d - q, total - common)
    return Prior(other * rows.pack_identity() + (own - other) * rows.pack(basis @ basis.T), zeros)


class Pool(NamedTuple):
    """What the parameters of a replica have in common."""

    mean: FloatArray  # (R, q) mu
    spread: FloatArray  # (R, q, q) V
    tau: FloatArray  # (R,)


class PoolGuess(NamedTuple):
    """What is assumed before there are data."""

    tau: float  # tau_0
    weight: float  # w'
    mean_reg: float  # 1 / the variance of mu


def first_pool(problem: Problem, n_replicas: int, guess: PoolGuess) -> Pool:
    """Nothing seen yet."""
    q = nuisance(problem).shape[1]
    spread = np.tile(np.eye(q) / guess.mean_reg, (n_replicas, 1, 1))
    return Pool(np.zeros((n_replicas, q)), spread, np.full(n_replicas, guess.tau))


def fit_pool(problem: Problem, estimate: Estimate, pool: Pool, guess: PoolGuess) -> Pool:
    """One step towards the mean and the variance that the estimates speak for."""
    basis, count = nuisance(problem), problem.n_parameters
    inner = problem.rows.unpack(estimate.whiten) @ basis
    covariance = np.einsum("rkiq,rkip->rkqp", inner, inner)  # N'C_k N
    tau, along, q = pool.tau[:, None], estimate.theta @ basis, basis.shape[1]
    curve = (guess.mean_reg + count / tau[:, :, None]) * np.eye(q) - covariance.sum(axis=1) / tau[:, :, None] ** 2
    spread = np.linalg.inv(curve)
    slope = (along - pool.mean[:, None, :]).sum(axis=1) / tau - guess.mean_reg * pool.mean
    mean = pool.mean + 0.5 * np.einsum("rpq,rq->rp", spread, slope)
    known = np.maximum(count * q - np.trace(covariance, axis1=2, axis2=3).sum(axis=1) / pool.tau, 0.0)
    away = ((along - mean[:, None, :]) ** 2).sum(axis=(1, 2))
    return Pool(mean, spread, (guess.weight * guess.tau * q + away) / (guess.weight * q + known))


def pooled_prior(problem: Problem, pool: Pool, reg: float) -> Prior:
    """P = reg (I - NN') + NN'/tau and N mu."""
    basis = nuisance(problem)
    shape = problem.rows.pack(basis @ basis.T)
    own = 1.0 / pool.tau[:, None]
    return Prior(reg * problem.rows.pack_identity() + (own - reg) * shape, pool.mean @ basis.T)


def with_mean_unknown(problem: Problem, estimate: Estimate, pool: Pool) -> Estimate:
    """The same estimate with the uncertainty of mu in its Gram matrix, (C + C P N V N'P C)^-1 block by block."""
    basis, rows = nuisance(problem), problem.rows
    whiten = rows.unpack(estimate.whiten)
    covariance = np.einsum("rkji,rkjl->rkil", whiten, whiten)
    moved = covariance @ basis / pool.tau[:, None, None, None]
    total = rows.unpack(rows.pack(covariance + np.einsum("rkiq,rqp,rkjp->rkij", moved, pool.spread, moved)))
    return whitened(problem, estimate.theta, rows.pack(np.asarray(np.linalg.inv(total), dtype=np.float64)))


def with_prior_faded(problem: Problem, estimate: Estimate, prior: Prior, weight: float) -> Estimate:
    """The same estimate with the prior on what actions do counted ``weight`` <= 1 times in its Gram matrix.

    gram = (Hessian of L) + P - (1 - weight) M P M, M = I - NN': where there are data this changes little; in a
    direction without any, the standard deviation is that of the prior over sqrt(weight).
    """
    basis, rows = nuisance(problem), problem.rows
    effects = prior.precision
    if basis.shape[1] > 0:
        rest = np.eye(problem.dim) - basis @ basis.T
        effects = rows.pack(rest @ rows.unpack(effects) @ rest)
    return whitened(problem, estimate.theta, estimate.gram - (1.0 - weight) * effects[:, None, :])


@derived
def nuisance(problem: Problem) -> FloatArray:
    """An orthonormal basis (d, q) of the directions that features touch and no contrast between actions does.

    Rows are centred in each pair; a contrast is the difference of the centred row of a next state from its average over
    the actions.  Beyond ``MOST_DIM`` coordinates nothing is pooled.
    """
    d = problem.dim
    if d > MOST_DIM:
        return np.zeros((d, 0))
    touched, contrasts = np.zeros((d, d)), np.zeros((d, d))
    for h in {int(table): h for h, table in enumerate(problem.stage_table)}.values():
        for s in range(problem.n_states):
            by_state: dict[int, list[FloatArray]] = {}
            for a in range(problem.n_actions):
                phi = problem.features(h, s, a)
                if len(phi) == 0:  # the action does not exist
                    continue
                centred = phi - phi.mean(axis=0)
                touched += centred.T @ centred
                for row, n in zip(centred, problem.next_states(h, s, a), strict=True):
                    by_state.setdefault(int(n), []).append(row)
            for found in by_state.values():
                away = np.array(found) - np.mean(found, axis=0)
                contrasts += away.T @ away
    inside, effects = _span(touched), _span(contrasts)
    return _span(_outside(inside @ inside.T, effects))


def _outside(matrix: FloatArray, basis: FloatArray) -> FloatArray:
    """A matrix between two projections on the complement of a basis."""
    rest = np.eye(len(matrix)) - basis @ basis.T
    return rest @ matrix @ rest


def _span(matrix: FloatArray) -> FloatArray:
    """An orthonormal basis (d, rank) of the range of a positive semidefinite matrix of order one."""
    sizes, basis = np.linalg.eigh(matrix)
    return np.asarray(basis[:, sizes > SPAN * max(float(sizes.max(initial=0.0)), 1.0)])


@jit
def _fit_prior(bundle, history, prior, tol, max_iter, theta, gram):
    """Newton's method for every (replica, parameter)."""
    model, d, size = opened(bundle), theta.shape[2], gram.shape[2]
    (pairs, counts, used), (precision, mean) = history, prior
    memory = np.empty((7, d)), np.empty((1, size)), np.empty((5, model.longest)), np.empty(model.longest**2)
    blocks = Blocks(model.graph.block_start, model.graph.gram_start)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            data = _Data(part(view(pairs)[r, k], 0, used[r, k]), view(counts[r, k]), 0.0)
            own = view(precision)[r], view(mean)[r], view(theta)[r, k], view(gram)[r, k]
            newton_prior(model.graph, blocks, data, own, (tol, max_iter), memory)


@inner
def newton_prior(graph, blocks, data, own, limits, memory):
    """Improve one parameter by damped Newton steps."""
    (precision, mean, theta, hessian), order, (tol, max_iter) = own, graph.block_coords, limits
    rows, low, local = view(memory[0]), view(memory[1])[0], view(memory[2])
    point = _Point(rows[0], rows[1], hessian, local[0], local[1], local[2], local[3], local[4], view(memory[3]))
    step, start, away, image = rows[2], rows[3], rows[4], rows[5]
    for i in range(len(theta)):
        point.x[i] = theta[order[i]]
    current = penalised(graph, blocks, data, (precision, mean), point, away, image)
    for _ in range(max_iter):
        factor(blocks, point.hessian, low)
        for i in range(len(step)):
            step[i] = -point.gradient[i]
        solve_packed(blocks, low, step)
        slope = dot(step, point.gradient)
        if not math.sqrt(max(-slope, 0.0)) > tol:
            break
        copy(point.x, start)
        length = 1.0
        for _ in range(60):
            add(start, length, step, point.x)
            value = penalised(graph, blocks, data, (precision, mean), point, away, image)
            if value <= current + 1e-4 * length * slope or -slope <= 1e-13 * (1.0 + abs(current)):
                break
            length *= 0.5
        current = value
    for i in range(len(theta)):
        theta[order[i]] = point.x[i]


@inner
def penalised(graph, blocks, data, prior, point, away, image):
    """The objective; its gradient and packed Hessian into ``point``."""
    precision, mean = prior
    total = derivatives(graph, blocks, data, point)
    for i in range(len(away)):
        away[i] = point.x[i] - mean[graph.block_coords[i]]
    product(blocks, precision, away, image)
    for i in range(len(away)):
        point.gradient[i] += image[i]
    for i in range(len(point.hessian)):
        point.hessian[i] += precision[i]
    return total + 0.5 * dot(away, image)
