"""Nominal models from dense and sparse tables."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from livarot.envs import from_tabular
from livarot.errors import LivarotError
from livarot.model.probabilities import Kernel
from livarot.planning.robust.nominal import nominal_model
from livarot.planning.robust.plan import solve_robust
from tests.twins import robust as ref


def test_nominal_models_from_dense_and_sparse_tables():
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.full(4, 0.5), size=(4, 2))
    table[0, 1] = [0.0, 0.25, 0.75, 0.0]
    reward = rng.random((4, 2))
    dense = solve_robust(nominal_model(table, reward, 5), radius=0.1)
    flat = csr_array(table.reshape(8, 4))
    for other in (flat, [flat] * 5, np.tile(table, (5, 1, 1, 1))):
        np.testing.assert_array_equal(solve_robust(nominal_model(other, reward, 5), radius=0.1).value, dense.value)
    rows = [[[(list(np.flatnonzero(table[s, a])), table[s, a][table[s, a] > 0]) for a in (0, 1)] for s in range(4)]] * 5
    exact = ref.solve(rows, np.tile(reward, (5, 1, 1)), radius=0.1)
    np.testing.assert_allclose(dense.value, exact["value"], rtol=0, atol=1e-11)
    # probability 0 in a kernel does not make a next state either
    problem, kernel = nominal_model(np.full((2, 1, 2), 0.5), [[0.0], [1.0]], 3)
    sure = Kernel(np.array([1.0, 0.0, 0.0, 1.0]), kernel.base)
    np.testing.assert_allclose(solve_robust((problem, sure), radius=5.0).value[0], [0.0, 3.0], atol=1e-15)
    np.testing.assert_allclose(solve_robust((problem, sure), penalty=5.0).value[0], [0.0, 3.0], atol=1e-15)


def test_the_terms_of_a_model():
    """Costs of the next state, discount, mask, terminal states: the same as in an MNL model of the same table."""
    rng, H, S, A = np.random.default_rng(3), 3, 4, 3
    table, cost = rng.dirichlet(np.ones(S), size=(H, S, A)), rng.uniform(-5.0, 50.0, (S, A, S))
    mask = rng.random((H, S, A)) < 0.7
    mask[..., 1] = True
    table[~mask] = np.nan  # what does not exist is not read
    table[:, 2] = 0.0
    terms = {"cost": cost, "terminal_cost": {"d": 7.0}, "discount": 0.9, "available": mask, "terminal": "c"}
    names = {"states": list("abcd"), "actions": ["x", "y", "z"]}
    model = nominal_model(table, horizon=H, start="b", **terms, **names)
    other = from_tabular(np.nan_to_num(table), horizon=H, start="b", **terms, **names)
    for level in ({"radius": 0.0}, {"radius": 0.2}, {"penalty": 0.05}):
        found, expected = solve_robust(model, **level), solve_robust(other, **level)
        np.testing.assert_allclose(found.value, expected.value, rtol=0, atol=1e-9)
        assert np.array_equal(found.policy, expected.policy)
    np.testing.assert_allclose(found.value[:, 2], 0.0, atol=1e-12)
    assert model.problem.start.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_what_is_refused():
    table = np.full((2, 2, 2), 0.5)
    table[1, 1] = 0.0
    with pytest.raises(LivarotError, match=r"sum to 0, not 1.*left out of available=") as caught:
        nominal_model(table, np.zeros((2, 2)), 3)
    assert caught.value.index == (0, 1, 1) and caught.value.count == 1
    assert nominal_model(table, np.zeros((2, 2)), 3, available=[[0, 1], [0]]).problem.rows.n_rows == 6
    with pytest.raises(LivarotError, match="horizon: is missing; without an end"):
        nominal_model(table, np.zeros((2, 2)))
    with pytest.raises(LivarotError, match="reward: is missing"):
        nominal_model(table, horizon=3, terminal=[1])
    with pytest.raises(LivarotError, match=r"discount: must be .*1\.5"):
        nominal_model(table, np.zeros((2, 2)), 3, terminal=[1], discount=1.5)
