"""From library models and episodes to the tabular twins' lists and dicts."""

import numpy as np

import livarot
from tests.support.models import random_model, to_mdp

RNG = np.random.default_rng(7)
MODELS = {
    "stage-dependent": to_mdp(random_model(RNG, H=4, S=5, A=3, d=3, U=4, offsets=True)),
    "one table, own parameters": to_mdp(random_model(RNG, H=4, S=5, A=2, d=3, U=4, one_table=True)),
    "homogeneous": to_mdp(random_model(RNG, H=5, S=4, A=2, d=3, U=3, one_table=True), shared=True),
    "shared, several tables": to_mdp(random_model(RNG, H=3, S=4, A=2, d=3, U=3), shared=True),
}


def follow_of(mdp, known=True):
    p = mdp.problem
    return [
        [
            [p.next_states(h, s, a).tolist() if known else list(range(p.n_states)) for a in range(p.n_actions)]
            for s in range(p.n_states)
        ]
        for h in range(p.horizon)
    ]


def law_of(mdp):
    """Stages have one law if they share table and parameter."""
    p = mdp.problem
    pairs = [(int(t), int(k)) for t, k in zip(p.stage_table, p.stage_parameter, strict=True)]
    return [sorted(set(pairs)).index(x) for x in pairs]


def episodes_of(mdp, n, seed=0):
    """n episodes of the uniform policy, one per row."""
    p = mdp.problem
    uniform = np.full((p.horizon, p.n_states, p.n_actions), 1 / p.n_actions)
    return livarot.simulate(mdp, uniform, n, seed=seed)


def one(episodes, i):
    """Episode i as a batch of one replica."""
    return livarot.Episodes(*(np.ascontiguousarray(x[i : i + 1]) for x in episodes))


def as_lists(episodes):
    return [(s.tolist(), a.tolist()) for s, a in zip(episodes.states, episodes.actions, strict=True)]


def dense_counts(mdp, laws, counts):
    """A row of library counts as the twins' dict, laws numbered as in :func:`law_of`."""
    p, law, found = mdp.problem, law_of(mdp), {}
    for h, s, a in np.ndindex(p.horizon, p.n_states, p.n_actions):
        pair = laws.first_pair[h] + s * p.n_actions + a
        for row in range(laws.row_start[pair], laws.row_start[pair + 1]):
            found[law[h], s, a, int(laws.next_state[row])] = counts[row]
    return found


def planned(mdp, known):
    """Where the library plans: the states that the start can reach, or all."""
    return mdp.problem.reachable[:-1] if known else np.ones_like(mdp.problem.reachable[:-1])


def assert_same_plan(mdp, plan, twin, known=True, r=0, atol=1e-12):
    value, _, policy = twin
    where = planned(mdp, known)
    np.testing.assert_allclose(plan.value[r, :-1][where], np.array(value)[:-1][where], rtol=0, atol=atol)
    np.testing.assert_array_equal(plan.policy[r][where], np.array(policy)[where])
    np.testing.assert_allclose(plan.start_value[r], mdp.problem.start @ np.array(value[0]), rtol=0, atol=atol)
