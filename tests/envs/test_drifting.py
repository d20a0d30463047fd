"""Drifting models: which piece an episode plays, |theta| <= B, the same drift for the same seed."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs import Drifting

RIVER = envs.river_swim(4, 6)


def test_pieces():
    drift = Drifting.abrupt(RIVER, every=10, n_pieces=3, seed=4)
    assert [drift.piece(t) for t in (0, 9, 10, 19, 20, 10**6)] == [0, 0, 1, 1, 2, 2]
    np.testing.assert_array_equal(drift.at(5).theta, RIVER.theta)
    np.testing.assert_array_equal(drift.at(12).theta, drift.thetas[1])
    assert drift.at(0).problem is drift.at(25).problem is RIVER.problem
    assert [(r.start, len(r)) for r, _ in drift.pieces(25)] == [(0, 10), (10, 10), (20, 5)]
    assert [len(r) for r, _ in drift.pieces(12)] == [10, 2]
    assert [m.theta.tobytes() for _, m in drift.pieces(25)] == [t.tobytes() for t in drift.thetas]


@pytest.mark.parametrize("name", [name for name in envs.registry if name not in envs.LARGE])
def test_any_environment_drifts_within_its_ball(name):
    mdp = envs.make(name)
    norms = np.linalg.norm(mdp.theta, axis=1)
    abrupt = Drifting.abrupt(mdp, 5, 4, angle=1.0, seed=3)
    slow = Drifting.rotation(mdp, 50, angle=2.0, every=10, seed=3)
    line = Drifting.interpolation(mdp, -mdp.theta, 50, every=10)
    for drift in (abrupt, slow, line):
        assert np.linalg.norm(drift.thetas, axis=2).max() <= mdp.problem.param_bound * (1 + 1e-12)
        assert drift.at(drift.boundaries[-1]).problem is mdp.problem
        assert (drift.path_length >= 0).all()
    if mdp.problem.dim > 1:
        np.testing.assert_allclose(np.linalg.norm(abrupt.thetas, axis=2), np.stack([norms] * 4), rtol=1e-12)
        cosine = (abrupt.thetas[1:] * abrupt.thetas[:-1]).sum(axis=2) / norms**2
        np.testing.assert_allclose(cosine, math.cos(1.0), rtol=1e-12)


def test_rotation_is_uniform_in_one_plane():
    slow = Drifting.rotation(RIVER, 100, angle=math.pi / 2, every=1, seed=1)
    assert slow.n_pieces == 100
    for piece in (0, 33, 99):
        cosine = (slow.thetas[piece] * RIVER.theta).sum(axis=1) / (RIVER.theta**2).sum(axis=1)
        np.testing.assert_allclose(cosine, math.cos(math.pi / 2 * piece / 99), rtol=0, atol=1e-12)
    for k in range(6):
        assert np.linalg.matrix_rank(slow.thetas[:, k], tol=1e-9) == 2
    steps = np.linalg.norm(np.diff(slow.thetas, axis=0), axis=2)
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), rtol=1e-9)
    np.testing.assert_allclose(slow.path_length, steps.sum(axis=0), rtol=1e-12)


def test_interpolation_is_a_line():
    end = np.zeros(RIVER.problem.dim)
    line = Drifting.interpolation(RIVER, end, 11)
    np.testing.assert_allclose(line.at(5).theta, RIVER.theta / 2, rtol=1e-14)
    np.testing.assert_array_equal(line.at(10).theta, 0.0)
    np.testing.assert_array_equal(line.at(99).theta, 0.0)
    np.testing.assert_allclose(line.path_length, np.linalg.norm(RIVER.theta, axis=1), rtol=1e-12)


def test_one_dimension_and_zero():
    flat = envs.deep_sea(4, features="slips")
    turned = Drifting.abrupt(flat, 2, 2, angle=1.0)
    np.testing.assert_allclose(turned.thetas[1], math.cos(1.0) * flat.theta, rtol=1e-14)
    still = livarot.MNLMDP(RIVER.problem, np.zeros_like(RIVER.theta))
    np.testing.assert_array_equal(Drifting.rotation(still, 5).thetas, 0.0)


def test_seeds():
    one, same, other = (Drifting.abrupt(RIVER, 5, 3, seed=s).thetas for s in (1, 1, 2))
    assert one.tobytes() == same.tobytes() and one.tobytes() != other.tobytes()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Drifting(RIVER.problem, RIVER.theta, [0]), "thetas"),
        (lambda: Drifting(RIVER.problem, RIVER.theta[None, :, :2], [0]), "thetas"),
        (lambda: Drifting(RIVER.problem, 3 * RIVER.theta[None], [0]), "thetas"),
        (lambda: Drifting(RIVER.problem, np.stack([RIVER.theta] * 2), [0]), "boundaries"),
        (lambda: Drifting(RIVER.problem, np.stack([RIVER.theta] * 2), [1, 2]), "boundaries"),
        (lambda: Drifting(RIVER.problem, np.stack([RIVER.theta] * 2), [0, 0]), "boundaries"),
        (lambda: Drifting.abrupt(RIVER, 0, 2), "every"),
        (lambda: Drifting.abrupt(RIVER, 2, 0), "n_pieces"),
        (lambda: Drifting.abrupt(RIVER, 2, 2, seed=-1), "seed"),
        (lambda: Drifting.abrupt(RIVER, 2, 2, angle=math.inf), "angle"),
        (lambda: Drifting.rotation(RIVER, 1), "n_episodes"),
        (lambda: Drifting.interpolation(RIVER, [1.0], 10), "theta"),
        (lambda: Drifting.interpolation(RIVER, 3 * RIVER.theta, 10), "thetas"),
        (lambda: Drifting.abrupt(RIVER, 2, 2).at(-1), "episode"),
    ],
)
def test_bad_input(make, argument):
    with pytest.raises(livarot.LivarotError) as caught:
        make()
    assert caught.value.argument == argument
