"""Naive twins of livarot.data, loop by loop, and data to try them on; nothing of the library is imported."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def probabilities(rows, offset, theta):
    logits = [o + sum(x * t for x, t in zip(row, theta, strict=True)) for row, o in zip(rows, offset, strict=True)]
    top = max(logits)
    weights = [math.exp(z - top) for z in logits]
    return [w / sum(weights) for w in weights]


def derivatives(start, features, count, offset, theta):
    """The log-likelihood, gradient and Hessian of its negative, and the sum of squared scores."""
    d = features.shape[1]
    value, gradient, hessian, scores = 0.0, np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    for begin, end in itertools.pairwise(start):
        rows = features[begin:end]
        p = probabilities(rows, offset[begin:end], theta)
        mean = sum(p[i] * rows[i] for i in range(len(rows)))
        for i in range(len(rows)):
            c = count[begin + i]
            off = rows[i] - mean
            if c:
                value += c * math.log(p[i])
                gradient -= c * off
                scores += c * np.outer(off, off)
            hessian += count[begin:end].sum() * p[i] * np.outer(off, off)
    return value, gradient, hessian, scores


def newton(start, features, count, offset, reg=0.0, steps=60):
    """Damped Newton steps, without a certificate."""
    theta = np.zeros(features.shape[1])
    for _ in range(steps):
        value, gradient, hessian, _ = derivatives(start, features, count, offset, theta)
        value = -value + reg / 2 * theta @ theta
        gradient = gradient + reg * theta
        step = np.linalg.solve(hessian + reg * np.eye(len(theta)), gradient)
        length = 1.0
        while length > 1e-8:
            trial = theta - length * step
            new = -derivatives(start, features, count, offset, trial)[0] + reg / 2 * trial @ trial
            if new <= value + 1e-12 * abs(value):
                break
            length /= 2
        theta = theta - length * step
        if np.abs(step).max() < 1e-13:
            break
    return theta


def separable(start, features, count):
    """Is there v with (phi_y - phi_i) v >= 0 for all, > 0 for one?  One linear programme over all constraints."""
    rows = []
    for begin, end in itertools.pairwise(start):
        for y in range(begin, end):
            if count[y] > 0:
                rows += [features[y] - features[i] for i in range(begin, end) if i != y]
    a = np.asarray(rows)
    found = linprog(-a.sum(axis=0), A_ub=-a, b_ub=np.zeros(len(a)), bounds=[(-1, 1)] * a.shape[1], method="highs")
    return -found.fun > 1e-6


def sample(seed, n=200, dim=3, sizes=(2, 6), scale=1.0, offset=False):
    """Ragged choices drawn from the model: start, features, count, offset, theta."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=dim) * scale
    size = rng.integers(sizes[0], sizes[1] + 1, size=n)
    start = np.concatenate(([0], np.cumsum(size)))
    features = rng.normal(size=(start[-1], dim))
    shift = rng.normal(size=start[-1]) if offset else np.zeros(start[-1])
    count = np.zeros(start[-1])
    for begin, end in itertools.pairwise(start):
        p = probabilities(features[begin:end], shift[begin:end], theta)
        count[begin + rng.choice(end - begin, p=p)] += 1.0
    return start, features, count, shift, theta
