"""What compiled code reads of a problem: its own arrays, and the largest sizes it has to make room for."""

import numpy as np
import pytest

from livarot import envs
from livarot.model.compiled import blocks_of, plan_model
from tests.support.models import random_model, to_mdp


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_room_for_the_largest_pair_and_block(kind):
    problem = to_mdp(random_model(np.random.default_rng(3), kind=kind, offsets=True)).problem
    model = plan_model(problem).fields
    pairs = [
        (h, s, a) for h in range(problem.horizon) for s in range(problem.n_states) for a in range(problem.n_actions)
    ]
    assert model.most_out == max(len(problem.next_states(*pair)) for pair in pairs)
    assert model.most_cols >= max((problem.features(*pair) != 0).any(axis=0).sum() for pair in pairs)
    assert model.most_size == max(np.diff(problem.rows.block_start))
    np.testing.assert_array_equal(model.reward, problem.reward)


def test_it_is_made_once_and_has_room_even_where_nothing_is_learned():
    problem = envs.deep_sea(3, slip=0.0).problem
    assert plan_model(problem) is plan_model(problem)
    assert (plan_model(problem).fields.most_cols, plan_model(problem).fields.most_size) == (1, 1)


def test_blocks_end_where_the_gram_matrix_does():
    problem = to_mdp(random_model(np.random.default_rng(4), kind="block")).problem
    blocks = blocks_of(problem).fields
    assert blocks.first[-1] == problem.dim and blocks.at[-1] == problem.gram_shape[-1]
    np.testing.assert_array_equal(np.diff(blocks.at), np.diff(blocks.first) ** 2)
