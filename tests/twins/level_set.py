"""Likelihood-ratio sets written out with dense matrices: data are [(row, counts (U,))]."""

import math

import numpy as np

from tests.twins import core as ref


def loss(data, theta):
    return math.fsum(n * ref.loss(row, theta, i) for row, counts in data for i, n in enumerate(counts) if n > 0)


def gradient(data, theta):
    total = np.zeros(len(theta))
    for row, counts in data:
        for i, n in enumerate(counts):
            total += n * ref.gradient(row, theta, i)
    return total


def above(data, d):
    """A: at least the Hessian, wherever it is taken."""
    total = np.zeros((d, d))
    for row, counts in data:
        phi = np.asarray(row[1], dtype=float)
        away = phi - phi.mean(axis=0)
        total += sum(counts) * 0.5 * away.T @ away
    return total


def plain_width(row):
    """The two largest distances from the average."""
    phi = np.asarray(row[1], dtype=float)
    return float(np.sort(np.linalg.norm(phi - phi.mean(axis=0), axis=1))[-2:].sum())


def white_width(row, gram):
    phi = np.asarray(row[1], dtype=float)
    away = phi - phi.mean(axis=0)
    return float(np.sort([math.sqrt(x @ np.linalg.solve(gram, x)) for x in away])[-2:].sum())


def mixture_cost(data, hat, bound, finest=12):
    """The least of the bounds on KL(P | Q) + E_P[L] - L(hat) up to the first that is larger than the one before."""
    d = len(hat)
    matrix, slope, best = above(data, d), gradient(data, hat), math.inf
    for share in [0.0, *(2.0**-j for j in range(finest, -1, -1))]:
        margin = 1 - (1 - share) * min(np.linalg.norm(hat) / bound, 1.0)
        if margin <= 1e-9:
            continue
        m = np.eye(d) / margin**2 + bound**2 / (d + 2) * matrix
        cost = -share * slope @ hat + 0.5 * share**2 * hat @ matrix @ hat
        cost += 0.5 * np.linalg.slogdet(m)[1] + 0.5 * np.trace(bound**2 / (d + 2) * matrix @ np.linalg.inv(m))
        if cost > best:
            break
        best = cost
    return best


def published_cost(data, d, bound):
    lipschitz = sum(sum(counts) * plain_width(row) for row, counts in data)
    return d * math.log(max(math.e, 2 * math.e * bound * lipschitz / d))


def concordance(s):
    return 0.5 - s / 6 if s < 1e-4 else (math.exp(-s) + s - 1) / s**2


def radius(data, hat, beta, bound, reg):
    slope = gradient(data, hat) + reg * hat
    gap = max(bound * np.linalg.norm(slope) + slope @ hat, 0.0)
    return math.sqrt(2 * (beta + gap) + reg * max(bound**2 - hat @ hat, 0.0))


def gram(data, hat, size, bound, reg, rounds=5):
    """The Gram matrix after some rounds of bounds on the spans; ``size`` is the radius."""
    spans = [(bound + np.linalg.norm(hat)) * plain_width(row) for row, _ in data]
    for _ in range(rounds):
        matrix = reg * np.eye(len(hat))
        for (row, counts), s in zip(data, spans, strict=True):
            matrix += 2 * concordance(s) * sum(counts) * ref.hessian(row, hat)
        spans = [min(s, size * white_width(row, matrix)) for (row, _), s in zip(data, spans, strict=True)]
    return matrix
