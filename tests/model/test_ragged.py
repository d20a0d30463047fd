"""How features are stored: tables that stages share, small blocks of sparse features."""

import numpy as np
import pytest
from scipy import sparse

import livarot
from livarot import MNLMDP
from tests.support.models import arrays_of, assert_same_problem, random_model, to_mdp
from tests.twins import core as ref


def test_features_that_do_not_depend_on_the_stage_are_stored_once():
    model = random_model(np.random.default_rng(3), H=5, one_table=True)
    mdp = to_mdp(model)
    assert mdp.problem.rows.n_tables == 1
    assert mdp.problem.stage_table.tolist() == [0] * 5
    arrays = arrays_of(model, one_table=True)
    assert_same_problem(mdp, MNLMDP.from_arrays(5, 4, 2, stage_table=np.zeros(5), **arrays))
    assert_same_problem(mdp, MNLMDP.from_arrays(5, 4, 2, **arrays))


def test_stages_may_share_some_tables():
    rng = np.random.default_rng(4)
    model = random_model(rng, H=4)
    model["rows"][2] = model["rows"][0]
    mdp = to_mdp(model)
    assert mdp.problem.stage_table.tolist() == [0, 1, 0, 2]
    np.testing.assert_allclose(
        livarot.solve(mdp).value,
        ref.solve(model["rows"], model["theta"], model["reward"])["value"],
        atol=1e-12,
    )


@pytest.mark.parametrize("layout", ["csr_array", "coo_array", "csc_matrix", "lil_array"])
def test_sparse_features_give_small_blocks(layout):
    """One-hot features of (s, a, s'): a block per pair, so a Gram matrix costs sum U^2 and not d^2."""
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 4, size=(5, 2))
    nexts = np.concatenate([np.sort(rng.choice(5, n, replace=False)) for n in counts.reshape(-1)])
    dense = np.eye(len(nexts))
    common = {
        "outcomes": counts,
        "next_state": nexts,
        "reward": np.zeros((5, 2)),
        "theta": np.zeros(len(nexts)),
    }
    one = MNLMDP.from_arrays(2, 5, 2, features=getattr(sparse, layout)(dense), **common)
    other = MNLMDP.from_arrays(2, 5, 2, features=dense, **common)
    assert_same_problem(one, other)
    rows = one.problem.rows
    informative = counts.reshape(-1) >= 2
    assert rows.gram_size == int((counts.reshape(-1)[informative] ** 2).sum() + counts.reshape(-1)[~informative].sum())
    assert np.array_equal(rows.pair_block >= 0, informative)
    assert np.diff(rows.block_start).max() == 3
    matrix = rng.normal(size=(len(nexts), len(nexts)))
    packed = rows.pack(matrix)
    unpacked = rows.unpack(packed)
    np.testing.assert_array_equal(rows.pack(unpacked), packed)
    for pair in np.flatnonzero(informative):
        coords = np.arange(rows.row_start[pair], rows.row_start[pair + 1])
        np.testing.assert_array_equal(unpacked[np.ix_(coords, coords)], matrix[np.ix_(coords, coords)])
    np.testing.assert_array_equal(rows.unpack(rows.pack_identity(3.0)), 3.0 * np.eye(len(nexts)))


def test_repeated_entries_of_a_sparse_matrix_are_added():
    features = sparse.coo_array((np.array([0.3, 0.4]), (np.array([1, 1]), np.array([0, 0]))), shape=(3, 1))
    mdp = MNLMDP.from_arrays(
        1,
        2,
        1,
        outcomes=[2, 1],
        next_state=[0, 1, 1],
        features=features,
        reward=np.zeros((2, 1)),
        theta=[1.0],
    )
    np.testing.assert_allclose(mdp.problem.features(0, 0, 0), [[0.0], [0.7]])


def test_next_state_features_form_one_block_of_which_pairs_touch_a_part():
    mdp = to_mdp(random_model(np.random.default_rng(7), S=6, kind="partial", one_table=True))
    rows = mdp.problem.rows
    assert rows.n_blocks == 1
    used = rows.col_count[rows.pair_block >= 0]
    assert used.min() < 6
    for pair in range(rows.n_pairs):
        assert np.array_equal(np.sort(rows.columns(pair)), np.flatnonzero(rows.features(pair).any(axis=0)))
