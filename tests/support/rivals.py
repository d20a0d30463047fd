"""Pairs of which one is best by a little, and plans with and without leaving pairs out."""

import numpy as np

import livarot
from livarot.estimation.omd import whitened
from livarot.planning.optimistic import optimistic_plan
from tests.support.engines import engine


def known(value):
    """A pair with one outcome, worth that much."""
    return [value], np.zeros((1, 1)), [0.0], 0.0


def rivals(pairs, radius):
    """Plans, by both loops, of a problem whose state 0 has ``pairs`` (values, features, offset, reward) as actions."""
    dim = max(np.shape(features)[1] for _, features, _, _ in pairs)
    starts = np.cumsum([1, *(len(values) for values, _, _, _ in pairs)])
    reward = np.zeros((2, starts[-1], len(pairs)))
    for a, (values, _, _, gain) in enumerate(pairs):
        reward[0, 0, a] = gain
        reward[1, starts[a] : starts[a + 1]] = np.reshape(values, (-1, 1))

    def rows(h, s, a):
        if s > 0:
            return [s], np.zeros((1, dim))
        phi = np.asarray(pairs[a][1])
        return np.arange(starts[a], starts[a + 1]), np.pad(phi, ((0, 0), (dim - phi.shape[1], 0)))

    problem = livarot.MNLMDP.from_function(
        2, int(starts[-1]), len(pairs), features=rows, reward=reward, theta=np.zeros(dim), param_bound=1.0,
        offset=lambda h, s, a: pairs[a][2] if s == 0 else [0.0],
    ).problem  # fmt: skip
    guess = whitened(problem, np.zeros((1, 1, dim)), problem.rows.pack(np.eye(dim)[None, None]))
    return both(problem, guess, radius, None)


def both(problem, guess, radius, rule):
    with engine("pairs"):
        general = optimistic_plan(problem, guess, radius, rule)
    with engine("screened"):
        screened = optimistic_plan(problem, guess, radius, rule)
    assert (general.engine, screened.engine) == ("pairs", "screened")
    return general, screened


def model(seed=0, n_states=14, n_actions=5, dim=4, dependent=True, dense=False, start=None, horizon=6):
    """Reachable sets of 1 to n_states outcomes, dependent features in some pairs, none in others, an offset."""
    rng = np.random.default_rng(seed)
    table = {}
    for s in range(n_states):
        for a in range(n_actions):
            count = int(rng.integers(1, n_states + 1)) if a else int(rng.integers(1, 4))
            nexts = rng.choice(n_states, size=count, replace=False)
            phi = rng.standard_normal((count, dim)) / (3.0 * np.sqrt(dim))
            if dependent and a % 2:
                phi = phi[:, :2] @ rng.standard_normal((2, dim)) / 3.0  # rank 2
            if a == 2 and not dense:
                phi[:, 1:] = 0.0
            if a == 4:
                phi[:] = 0.0
            table[s, a] = nexts, phi / max(1.0, np.linalg.norm(phi, axis=1).max()), rng.standard_normal(count)
    reward = rng.random((horizon, n_states, n_actions))
    return livarot.MNLMDP.from_function(
        horizon,
        n_states,
        n_actions,
        features=lambda h, s, a: table[s, a][:2],
        offset=lambda h, s, a: table[s, a][2],
        reward=reward,
        theta=rng.standard_normal(dim),
        start=np.full(n_states, 1.0 / n_states) if start is None else start,
    )


def estimate(problem, seed=0, replicas=2, scale=1.0):
    """Random centres, Gram matrices of mixed scales."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((replicas, 1, problem.dim, problem.dim))
    gram = scale * (root @ root.swapaxes(2, 3) + 0.1 * np.eye(problem.dim))
    theta = rng.standard_normal((replicas, 1, problem.dim))
    return whitened(problem, theta, problem.rows.pack(gram))
