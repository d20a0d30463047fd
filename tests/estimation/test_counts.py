"""Visits are those of the twins' dict, whatever the layout, and the old counts are not changed."""

import numpy as np
import pytest

from livarot.estimation.counts import count_episodes, count_states, initial_counts, pair_visits
from livarot.model.tabular_view import laws_of
from tests.support.tabular import MODELS, as_lists, dense_counts, episodes_of, follow_of, law_of, one
from tests.twins import tabular as ref


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_counts_are_the_twins(mdp, known):
    laws, episodes = laws_of(mdp.problem, known), episodes_of(mdp, 30)
    counts = initial_counts(laws, 1)
    for i in range(30):
        before = counts.copy()
        new = count_episodes(laws, counts, one(episodes, i))
        assert np.array_equal(counts, before) and new.sum() == before.sum() + mdp.problem.horizon
        counts = new
    twin = ref.count(follow_of(mdp, known), law_of(mdp), as_lists(episodes))
    found = dense_counts(mdp, laws, counts[0])
    assert {key: int(n) for key, n in found.items() if n} == twin
    follow = follow_of(mdp, known)
    visits = pair_visits(laws, counts)[0]
    for h, s, a in np.ndindex(*mdp.problem.reward.shape):
        pair = laws.first_pair[h] + s * mdp.problem.n_actions + a
        assert visits[pair] == ref.visits(follow, law_of(mdp), twin, h, s, a)


def test_replicas_count_for_themselves():
    mdp = MODELS["homogeneous"]
    laws, episodes = laws_of(mdp.problem), episodes_of(mdp, 4)
    together = count_episodes(laws, initial_counts(laws, 4), episodes)
    for r in range(4):
        assert np.array_equal(together[r], count_episodes(laws, initial_counts(laws, 1), one(episodes, r))[0])


def test_states_at_stages():
    mdp = MODELS["stage-dependent"]
    episodes, shape = episodes_of(mdp, 3), (3, mdp.problem.horizon, mdp.problem.n_states)
    visits = count_states(count_states(np.zeros(shape, dtype=np.int64), episodes), episodes)
    for r, h, s in np.ndindex(*shape):
        assert visits[r, h, s] == 2 * (episodes.states[r, h] == s)
