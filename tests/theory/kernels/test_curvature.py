"""The bounds of the compiled search for kappa hold on caps and on the ball."""

import math

import numpy as np
import pytest

from livarot.theory import constants as con
from livarot.theory import curvature as cur
from livarot.theory.kernels.curvature import cap_bound, chord_of, look_at_pairs, refine
from tests.support.models import random_model, to_mdp


def random_mdp(seed, bound=None, **sizes):
    model = random_model(np.random.default_rng(seed), offsets=True, **sizes)
    return to_mdp(model, param_bound=bound)


def f_ij(offset, y, theta, i, j):
    z = offset + y @ theta
    return 2 * math.log(np.exp(z - z.max()).sum()) + 2 * z.max() - z[i] - z[j]


@pytest.mark.parametrize("bound", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("dims", [2, 3, 5])
def test_the_bounds_on_caps_hold_and_close(dims, bound):
    """Both relaxations, at random points of random caps; on a small cap the bound is close to the value."""
    rng = np.random.default_rng(dims)
    for _ in range(40):
        n = int(rng.integers(3, 8))
        y, offset = rng.normal(size=(n, dims)) / 2, rng.normal(size=n)
        diameter = max(np.linalg.norm(a - b) for a in y for b in y)
        i, j = rng.choice(n, 2, replace=False)
        cap = cur._faces(dims)[int(rng.integers(2 * dims))]
        for depth in range(40):
            unit, chord = cap.cone()
            value, high = cap_bound(offset, y, diameter, i, j, bound, unit, chord)
            assert f_ij(offset, y, bound * unit, i, j) <= value + 1e-12
            for _ in range(4):
                point = np.insert(rng.uniform(cap.low, cap.high), cap.axis, cap.sign)
                assert f_ij(offset, y, bound * point / np.linalg.norm(point), i, j) <= high + 1e-11
            if depth < 39:
                cap = cap.halves()[int(rng.integers(2))]
        assert high <= f_ij(offset, y, bound * unit, i, j) + 20 * bound * chord + 1e-12


@pytest.mark.parametrize("bound", [0.1, 1.0, 7.0])
def test_the_bounds_on_the_ball_hold(bound):
    """Chords, the first look and the box, at random points of the ball and where they are largest."""
    rng = np.random.default_rng(0)
    for d, U in ((3, 4), (9, 8), (20, 6)):
        mdp = random_mdp(d, bound=bound, H=1, S=8, A=1, d=d, U=U, ragged=False, scale=0.1)
        graph, pairs = mdp.problem.rows.graph, con.visited_pairs(mdp.problem)
        low, high = np.empty(len(pairs)), np.empty(len(pairs))
        look_at_pairs(graph, pairs, bound, low, high)
        roots, limits = np.empty((1000, 3), dtype=np.int64), np.empty(1000)
        count, best, _ = refine(graph, pairs, high, bound, 0.0, roots, limits)
        for pair in pairs:
            phi, row = mdp.problem.rows.features(int(pair)), graph.row_start[pair]
            offset = graph.offset[row : row + U]
            for i in range(U):
                for j in range(i):
                    middle = (phi[i] + phi[j]) / 2
                    box = np.exp(offset - (offset[i] + offset[j]) / 2 + bound * np.linalg.norm(phi - middle, axis=1))
                    found = [limits[k] for k in range(count) if tuple(roots[k]) == (pair, i, j)]
                    assert found == [] or found[0] == pytest.approx(2 * math.log(box.sum()), abs=1e-6)
                    assert found or 2 * math.log(box.sum()) <= best + 1e-6
                    chord = chord_of(offset, phi, i, j, bound)
                    directions = [phi[k] - middle for k in range(U)] + [rng.normal(size=d) for _ in range(3)]
                    for x in directions:
                        theta = bound * x / max(np.linalg.norm(x), 1e-300)
                        value = f_ij(offset, phi, theta, i, j)
                        assert value <= min(chord, 2 * math.log(box.sum()), high[int(pair)]) + 1e-11
                        assert value <= best + 1e-11 or found
