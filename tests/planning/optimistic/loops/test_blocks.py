"""Blocks of pairs: each pair with its rows, once; stages share what they can."""

import numpy as np

from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.loops.blocks import pair_blocks
from livarot.planning.optimistic.rules import FrankWolfe, JointMaximum
from tests.support.engines import engine
from tests.support.rivals import estimate, model


def test_blocks_hold_each_pair_with_its_rows():
    problem = model(5, dim=6).problem
    blocks = pair_blocks(problem).fields
    pairs = np.concatenate([blocks.plain, blocks.pair.ravel()])
    assert sorted(set(pairs.tolist())) == list(range(problem.n_states * problem.n_actions))
    for b, (n_out, m, _, row, feat, _) in enumerate(blocks.shape):
        for lane, pair in enumerate(blocks.pair[b]):
            state, action = divmod(int(pair), problem.n_actions)
            dense = problem.features(0, state, action)[:, problem.rows.columns(pair)]
            assert np.array_equal(blocks.feature[feat : feat + n_out * m, lane].reshape(n_out, m), dense)
            assert np.array_equal(blocks.next_state[row : row + n_out, lane], problem.next_states(0, state, action))


def test_stages_that_reach_almost_the_same_states_share_their_blocks():
    """State 29 cannot be the first one: its pairs are in the shared list, but do not count at stage 0."""
    start = np.append(np.full(29, 1 / 29), 0.0)
    problem = model(6, n_states=30, horizon=2, start=start).problem  # state 29 has the largest gap
    assert problem.reachable.sum(axis=1).tolist() == [29, 30, 30]
    assert pair_blocks(problem).fields.stage_list.tolist() == [0, 0]
    guess, slow = estimate(problem), JointMaximum(FrankWolfe(n_iter=3, n_starts=0))
    plans = []
    for way in ("pairs", "replicas"):  # these visit only the states that can be reached
        with engine(way):
            plans.append(optimistic_plan(problem, guess, 0.8, slow))
    assert np.array_equal(plans[0].inner_gap, plans[1].inner_gap)
    assert np.array_equal(plans[0].value, plans[1].value)
    few = model(6, n_states=30, horizon=2, start=0).problem
    assert pair_blocks(few).fields.stage_list.tolist() == [0, 1]
