"""The chain of a policy in sparse rows, and the rounding of a backup."""

import numpy as np

from livarot.infinite.planning.sparse import chain_of, rounding
from tests.support.infinite import sparse_model


def test_the_chain_of_a_policy_is_its_rows():
    rng = np.random.default_rng(9)
    mdp = sparse_model(20, rng)
    policy = rng.integers(0, 3, 20).astype(np.int32)
    chain = chain_of(mdp, policy, mdp.problem.reward)
    assert (chain.matrix.toarray() == mdp.table[np.arange(20), policy]).all()
    assert (chain.reward == mdp.problem.reward[np.arange(20), policy]).all()


def test_rounding_bounds_the_error_of_a_backup():
    """A backup in extended precision differs by less."""
    rng = np.random.default_rng(10)
    mdp = sparse_model(50, rng, n_out=20)
    v = rng.normal(size=50) * 1e6
    chain = chain_of(mdp, np.zeros(50, dtype=np.int32), mdp.problem.reward)
    exact = chain.reward.astype(np.longdouble) + chain.matrix.toarray().astype(np.longdouble) @ v.astype(np.longdouble)
    error = np.abs(exact - (chain.reward + chain.matrix @ v)).max()
    assert 0 < error < rounding(20, mdp.problem.reward.max(), v)
