"""Nominal models from dense and sparse tables."""

import numpy as np
from scipy.sparse import csr_array

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
