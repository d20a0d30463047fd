"""Whether theta* lies in the confidence sets of a plan: at their edge, parameter by parameter, without numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

import livarot
from livarot.agents import Livarot
from livarot.running.coverage import square_distance
from tests.support.episodes import judged
from tests.support.models import random_estimate, random_model, to_mdp
from tests.support.runs import RAGGED, RIVER
from tests.twins import core as ref


def planned(mdp, center, gram, radius):
    policy = np.zeros((1, mdp.problem.horizon, mdp.problem.n_states), np.int32)
    return judged([mdp], livarot.Plan(policy, center=center, gram=gram, radius=np.asarray(radius)), len(radius))


def test_coverage_is_seen_to_fail():
    """With radius 0 theta* is not covered; with a huge radius it is."""
    narrow, wide = (livarot.run(RIVER, Livarot(beta_scale=b, reg=1.0), 5) for b in (1e-9, 10.0))
    assert not narrow.covered.any()
    assert wide.covered.all()


@pytest.mark.parametrize("size", [0.1, 5.0])
def test_coverage_at_the_edge_of_the_set(size):
    """|theta* - center|_gram <= radius for the parameter that is farthest away, to nine digits."""
    rng = np.random.default_rng(3)
    for mdp in (RIVER, RAGGED):
        estimate, dense = random_estimate(rng, mdp.problem, 4)
        center = mdp.theta[None] + size * rng.normal(size=estimate.theta.shape)
        away = [
            max(ref.norm_in(mdp.theta[k] - center[r, k], dense[r, k]) for k in range(len(mdp.theta))) for r in range(4)
        ]
        radius = np.array(away) * (1 + np.array([1e-9, -1e-9, 1.0, -0.5]))
        record, _ = planned(mdp, center, estimate.gram, radius)
        assert record.covered.tolist() == [[1.0, 0.0, 1.0, 0.0]]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_bit_for_each_parameter(d):
    """34 parameters in two words; blocks of two coordinates have a way of their own."""
    rng = np.random.default_rng(d)
    mdp = to_mdp(random_model(rng, H=34, S=3, A=2, d=d, U=3))
    estimate, dense = random_estimate(rng, mdp.problem, 2)
    center = mdp.theta[None] + rng.normal(size=estimate.theta.shape)
    away = np.array([[ref.norm_in(mdp.theta[k] - center[r, k], dense[r, k]) for k in range(34)] for r in range(2)])
    record, fine = planned(mdp, center, estimate.gram, np.median(away, axis=1))
    inside = (record.bits[0][:, np.arange(34) // 32] >> (np.arange(34) % 32)) & 1
    expected = away <= np.median(away, axis=1)[:, None]
    np.testing.assert_array_equal(inside, expected)
    assert fine and expected.any(axis=1).all() and record.covered.tolist() == [[0.0, 0.0]]


def test_a_distance_that_is_not_a_number_is_not_inside():
    """Distances that overflow are doubtful, whatever the radius; finite ones are not."""
    rng = np.random.default_rng(0)
    estimate, _ = random_estimate(rng, RIVER.problem, 1)
    near, far = (RIVER.theta[None] + size for size in (1e3, 1e200))
    record, fine = planned(RIVER, near, estimate.gram, [1e-3])
    assert fine and record.covered.tolist() == [[0.0]]
    record, fine = planned(RIVER, far, estimate.gram, [1e3])
    assert not fine and record.covered.tolist() == [[0.0]]


@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (5, 2, 1, 4)])
def test_the_distance_is_that_of_the_dense_metric(sizes):
    """Blocks of any size, their coordinates in any order, and numbers of other parameters before them."""
    rng = np.random.default_rng(len(sizes))
    d, grams = sum(sizes), []
    coords, dense = rng.permutation(d), np.zeros((d, d))
    start, gram_start = np.cumsum([0, *sizes]), np.cumsum([0, *(n * n for n in sizes)])
    for n, first in zip(sizes, start, strict=False):
        root, own = rng.normal(size=(n, n)), coords[first : first + n]
        grams.append((root @ root.T).reshape(-1))
        dense[np.ix_(own, own)] = root @ root.T
    truth = SimpleNamespace(block_start=start, gram_start=gram_start, block_coords=coords)
    target, middle = rng.normal(size=7 + d), rng.normal(size=4 + d)
    metric = np.concatenate([np.full(3, np.nan), *grams])
    found = square_distance.py_func(truth, target, 7, middle, 4, metric, 3, np.empty(d))
    x = target[7:] - middle[4:]
    assert found == pytest.approx(x @ dense @ x, rel=1e-12)
