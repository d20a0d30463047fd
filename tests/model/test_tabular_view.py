"""The layout of tabular laws: every (stage, s, a) finds its own next states, and stages of one law share them."""

import numpy as np
import pytest

from livarot.model.tabular_view import laws_of
from tests.support.tabular import MODELS, follow_of, law_of


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_rows_are_the_next_states(mdp, known):
    problem, laws = mdp.problem, laws_of(mdp.problem, known)
    follow = follow_of(mdp, known)
    for h, s, a in np.ndindex(problem.horizon, problem.n_states, problem.n_actions):
        pair = laws.first_pair[h] + s * problem.n_actions + a
        rows = laws.next_state[laws.row_start[pair] : laws.row_start[pair + 1]]
        assert rows.tolist() == follow[h][s][a]
    assert laws.row_start[-1] == len(laws.next_state)
    assert laws_of(problem, known) is laws


@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_stages_share_a_law_exactly_when_they_should(mdp):
    law, first = law_of(mdp), laws_of(mdp.problem).first_pair
    for h, k in np.ndindex(len(law), len(law)):
        assert (law[h] == law[k]) == (first[h] == first[k])
    assert len(laws_of(mdp.problem).row_start) - 1 == len(set(law)) * mdp.problem.n_states * mdp.problem.n_actions


def test_nodes():
    problem = MODELS["stage-dependent"].problem
    known, any_state = laws_of(problem), laws_of(problem, False)
    assert np.array_equal(known.node_start, problem.nodes[0]) and np.array_equal(known.node_state, problem.nodes[1])
    assert np.diff(any_state.node_start).tolist() == [problem.n_states] * problem.horizon
    assert any_state.node_state.tolist() == list(range(problem.n_states)) * problem.horizon
