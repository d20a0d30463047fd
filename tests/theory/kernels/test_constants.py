"""The passes over all pairs: the diameter of a confidence set against the twin."""

import math

import numpy as np
import pytest

import livarot
from livarot import MNLMDP
from livarot.theory import constants as con
from tests.support.models import random_estimate, random_model, to_mdp, to_model
from tests.twins import theory as twin

KINDS = ["dense", "block", "partial"]


def random_mdp(seed, bound=None, **sizes):
    model = random_model(np.random.default_rng(seed), offsets=True, **sizes)
    return to_mdp(model, param_bound=bound)


@pytest.mark.parametrize("kind", KINDS)
def test_diameter_against_the_twin(kind):
    rng = np.random.default_rng(3)
    mdp = random_mdp(3, H=3, S=4, A=2, d=4, U=3, kind=kind)
    model = to_model(mdp)
    estimate, dense = random_estimate(rng, mdp.problem)
    for h in range(3):
        ball = twin.diameter(model, np.eye(mdp.problem.dim), 0.7, h)
        assert con.diameter(0.7, mdp, h) == pytest.approx(ball, rel=1e-12)
        exact = twin.diameter(model, dense[0, h], 0.4, h)
        region = livarot.Ellipsoid(np.zeros(mdp.problem.dim), dense[0, h], 0.4)
        assert con.diameter(region, mdp, h) == pytest.approx(exact, rel=1e-10)
    whole = max(con.diameter(0.7, mdp, h) for h in range(3))
    assert con.diameter(0.7, mdp) == whole
    # a packed Gram matrix, as in a plan
    for h in range(3):
        exact = twin.diameter(model, dense[0, h], 0.4, h)
        assert con.diameter((estimate.gram[0, h], 0.4), mdp, h) == pytest.approx(exact, rel=1e-10)


def test_the_diameter_counts_pairs_with_one_outcome():
    """The widest feature is that of a certain transition, over coordinates of two blocks, in any form of the set."""
    wide = np.array([0.4, 0.5, 0.3, 0.6])
    blocks = ([2, 0], [1, 3])

    def features(h, s, a):
        return ([2], [wide]) if s == 2 else ([0, 1, 2], [*(0.2 * np.eye(4)[blocks[s]]), np.zeros(4)])

    mdp = MNLMDP.from_function(2, 3, 1, features=features, reward=np.zeros((3, 1)), theta=np.zeros(4))
    rows, matrix = mdp.problem.rows, np.zeros((4, 4))
    assert rows.n_blocks == 2
    matrix[np.ix_(blocks[0], blocks[0])] = [[2.0, 0.5], [0.5, 0.3]]
    matrix[np.ix_(blocks[1], blocks[1])] = [[0.05, 0.01], [0.01, 0.7]]
    for shape in (matrix, np.eye(4)):
        exact = 1.4 * math.sqrt(wide @ np.linalg.solve(shape, wide))
        assert exact > 1.4 * 0.2 * math.sqrt(np.linalg.inv(shape).diagonal().max())
        body = livarot.Ellipsoid(np.zeros(4), shape, 0.7)
        assert (body.support(wide) - body.support(-wide)) @ wide == pytest.approx(exact, rel=1e-12)
        for region in ((rows.pack(shape), 0.7), body):
            assert con.diameter(region, mdp, 1) == pytest.approx(exact, rel=1e-12)
    assert con.diameter(0.7, mdp, 1) == pytest.approx(1.4 * np.linalg.norm(wide), rel=1e-12)
