"""The cost of a level bounds the evidence, by quadrature, and its matrix every Hessian.

The compiled cost is compared with the twin in tests/estimation/test_level_set.py.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from tests.twins import core as ref
from tests.twins import level_set as twin
from tests.twins.agents import random_row


def random_data(rng, d, scale):
    data = []
    for _ in range(int(rng.integers(1, 5))):
        row = random_row(rng, d, int(rng.integers(2, 5)))
        data.append((row, rng.multinomial(int(scale * rng.integers(1, 20)), ref.softmax(row, rng.normal(size=d)))))
    return data


def best_of_grid(data, d, bound):
    grid = np.linspace(-bound, bound, 41)
    points = [[x] for x in grid] if d == 1 else [p for p in itertools.product(grid, grid) if np.hypot(*p) <= bound]
    return min((twin.loss(data, p), p) for p in points)


def evidence(data, d, bound):
    """-log of the mean of exp(-L) over the ball, by quadrature."""
    least, _ = best_of_grid(data, d, bound)
    if d == 1:
        whole = quad(lambda x: math.exp(least - twin.loss(data, [x])), -bound, bound, limit=200)[0] / (2 * bound)
    else:

        def edge(x):
            return math.sqrt(max(bound**2 - x**2, 0.0))

        def value(y, x):
            return math.exp(least - twin.loss(data, [x, y]))

        whole = dblquad(value, -bound, bound, lambda x: -edge(x), edge, epsabs=1e-6)[0] / (math.pi * bound**2)
    return least - math.log(whole)


@pytest.mark.parametrize(("d", "trials"), [(1, 12), (2, 3)])
def test_the_level_bounds_the_evidence(d, trials):
    """-log E_Q[exp(-L)] <= L(hat) + cost, for estimates inside, on the boundary, and anywhere else in the ball."""
    rng = np.random.default_rng(7)
    tightest = 9.0
    for trial in range(trials):
        data, bound = random_data(rng, d, 10 ** rng.uniform(0, 1.5 if d == 1 else 0.5)), 10 ** rng.uniform(-0.5, 0.7)
        hat = rng.normal(size=d)
        hat *= bound * (1.0 if trial % 3 == 0 else rng.random()) / np.linalg.norm(hat)
        hat = np.array(best_of_grid(data, d, bound)[1]) if trial % 3 == 1 else hat
        excess = evidence(data, d, bound) - twin.loss(data, hat)
        cost = twin.mixture_cost(data, hat, bound)
        assert excess <= cost + 1e-6
        assert excess <= twin.published_cost(data, d, bound) + 1e-6
        tightest = min(tightest, cost - excess)
    assert tightest < d


def test_the_matrix_is_above_every_hessian():
    rng = np.random.default_rng(8)
    closest = 1.0
    for _ in range(200):
        row = random_row(rng, 3, int(rng.integers(2, 6)))
        matrix = twin.above([(row, np.ones(1))], 3)
        difference = matrix - ref.hessian(row, rng.normal(size=3) * 10 ** rng.uniform(-2, 1))
        least = np.linalg.eigvalsh(difference)
        assert least[0] >= -1e-12
        closest = min(closest, np.linalg.norm(difference) / np.linalg.norm(matrix))
    assert closest < 0.2
