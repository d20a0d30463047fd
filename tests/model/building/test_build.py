"""Models from functions and from arrays."""

import numpy as np
import pytest
from scipy import sparse

from livarot import MNLMDP
from tests.support.models import arrays_of, assert_same_problem, random_model, rows_of, to_mdp
from tests.twins import core as ref


def sizes_of(model):
    return len(model["rows"]), len(model["rows"][0]), len(model["rows"][0][0])


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_function_and_arrays_give_the_same_model(kind):
    model = random_model(np.random.default_rng(1), d=6, kind=kind, offsets=True)
    by_function = to_mdp(model)
    by_arrays = MNLMDP.from_arrays(*sizes_of(model), **arrays_of(model))
    assert_same_problem(by_function, by_arrays)
    given = rows_of(by_function)
    for h in range(3):
        for s in range(4):
            for a in range(2):
                nxt, phi, shift = model["rows"][h][s][a]
                assert given[h][s][a][0] == nxt
                np.testing.assert_array_equal(given[h][s][a][1], phi)
                np.testing.assert_array_equal(given[h][s][a][2], shift)
                p = ref.softmax(model["rows"][h][s][a], model["theta"][h])
                np.testing.assert_allclose(by_function.probabilities(h, s, a), p, rtol=1e-13)


def test_rewards_as_function_table_or_full_array():
    def features(h, s, a):
        return [s], [[0.0]]

    table = np.array([[0.1, 0.2], [0.3, 0.4]])
    common = {"features": features, "theta": [0.0]}
    full = MNLMDP.from_function(3, 2, 2, reward=np.stack([table] * 3), **common).problem.reward
    for reward in (table, lambda h, s, a: table[s, a], table.tolist()):
        np.testing.assert_array_equal(MNLMDP.from_function(3, 2, 2, reward=reward, **common).problem.reward, full)


def test_features_from_a_function_may_be_sparse():
    def dense(h, s, a):
        phi = np.zeros((2, 12))
        phi[:, 2 * s + 6 * a : 2 * s + 6 * a + 2] = [[0.5, 0.1], [0.0, 0.9]]
        return [s, (s + 1) % 3], phi

    common = {"reward": np.zeros((3, 2)), "theta": np.full(12, 0.1)}
    one = MNLMDP.from_function(2, 3, 2, features=dense, **common)
    other = MNLMDP.from_function(
        2, 3, 2, features=lambda h, s, a: (dense(h, s, a)[0], sparse.csr_array(dense(h, s, a)[1])), **common
    )
    assert_same_problem(one, other)
    assert one.problem.rows.n_blocks == 6
