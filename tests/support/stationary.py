"""Small random stationary models with everything: costs, missing actions, ends, rewards of the next state."""

import numpy as np

from livarot.infinite import InfiniteMDP


def random_table(rng, n=5, n_actions=3, *, ends=1, scale=1.0):
    """The twin's table (tests/twins/infinite.py), and the states where it ends with their rewards."""
    last = {int(s): float(rng.normal() * scale) for s in rng.choice(n, ends, replace=False)}
    table = []
    for _ in range(n):
        own = []
        for _ in range(n_actions):
            m = int(rng.integers(1, n + 1))
            to, p = rng.choice(n, m, replace=False), rng.dirichlet(np.ones(m))
            own.append([(int(t), float(q), float(rng.normal() * scale)) for t, q in zip(to, p, strict=True)])
        for a in np.flatnonzero(rng.random(n_actions) < 0.3)[: n_actions - 1]:
            own[a] = None
        table.append(own)
    return table, last


def dense(table):
    """Probabilities and rewards (S, A, S)."""
    n, n_actions = len(table), len(table[0])
    prob, pay = np.zeros((n, n_actions, n)), np.zeros((n, n_actions, n))
    for s in range(n):
        for a in range(n_actions):
            for to, p, r in table[s][a] or []:
                prob[s, a, to], pay[s, a, to] = p, r
    return prob, pay


def to_model(table, ends, **terms):
    prob, pay = dense(table)
    return InfiniteMDP.from_transitions(prob, reward=pay, terminal=ends, **terms)


def with_features(rng, n=6, n_actions=3, d=3, n_out=4, **terms):
    """A model whose law depends on a parameter, with next states in no order and rewards of the next state."""
    nexts = [[rng.choice(n, n_out, replace=False) for _ in range(n_actions)] for _ in range(n)]
    phi = rng.normal(size=(n, n_actions, n_out, d))
    phi /= np.linalg.norm(phi, axis=-1, keepdims=True)
    pay = rng.normal(size=(n, n_actions, n))
    theta = rng.normal(size=d)
    return InfiniteMDP.from_function(
        n,
        n_actions,
        features=lambda s, a: (nexts[s][a], phi[s, a]),
        theta=theta,
        param_bound=50.0,
        **({"reward": lambda s, a, to: pay[s, a, to]} | terms),
    )
