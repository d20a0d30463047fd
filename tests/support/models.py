"""From the slow twins' models to the library's, and random models that exercise every kind of storage.

A *model* is the dict of tests/twins/core.py: rows, theta, reward, start, dim, param_bound.
"""

import math

import numpy as np

import livarot
from livarot.estimation.omd import ParameterSet, whitened
from livarot.model.episodes import Estimate
from tests.twins import core as ref
from tests.twins.agents import random_matrix


def to_mdp(model, *, shared=False, param_bound=None, normalise=False):
    """The same model in the library; ``shared`` takes the first stage's theta for all of them."""
    rows = model["rows"]
    return livarot.MNLMDP.from_function(
        len(rows),
        len(rows[0]),
        len(rows[0][0]),
        features=lambda h, s, a: (rows[h][s][a][0], rows[h][s][a][1]),
        offset=lambda h, s, a: rows[h][s][a][2],
        reward=model["reward"],
        theta=model["theta"][0] if shared else model["theta"],
        start=model["start"],
        param_bound=param_bound,
        normalise=normalise,
    )


def rows_of(mdp):
    """The twins' ``rows[h][s][a]`` of a library model."""
    problem = mdp.problem

    def one(h, s, a):
        pair = problem.pair(h, s, a)
        shift = problem.rows.offset[problem.rows.row_start[pair] : problem.rows.row_start[pair + 1]]
        return [int(x) for x in problem.next_states(h, s, a)], problem.features(h, s, a), shift

    return [
        [[one(h, s, a) for a in range(problem.n_actions)] for s in range(problem.n_states)]
        for h in range(problem.horizon)
    ]


def to_model(mdp):
    """The twins' model of a library model (its own bound, not the tight one)."""
    theta = mdp.theta[mdp.problem.stage_parameter]
    model = ref.make_model(rows_of(mdp), theta, mdp.problem.reward, mdp.problem.start)
    return model | {"param_bound": mdp.problem.param_bound}


def random_model(rng, H=3, S=4, A=2, d=3, U=4, kind="dense", offsets=False, one_table=False, scale=1.0, ragged=True):
    """A random ragged model.

    kind: "dense" features; "block" each (s, a) in one of several groups of coordinates that never meet;
    "partial" a one-hot of the next state (d = S): one big block of which a pair touches a few columns.
    ``one_table``: features that do not depend on the stage; ``ragged=False``: U outcomes everywhere.
    """
    rows = []
    d = S if kind == "partial" else d
    for h in range(H):
        if one_table and h > 0:
            rows.append(rows[0])
            continue
        stage = [[None] * A for _ in range(S)]
        for s in range(S):
            for a in range(A):
                n = int(rng.integers(1, min(U, S) + 1)) if ragged else U
                nxt = sorted(int(x) for x in rng.choice(S, n, replace=False))
                phi = np.zeros((n, d))
                if kind == "dense":
                    phi = rng.normal(size=(n, d))
                elif kind == "partial":
                    phi[np.arange(n), nxt] = rng.uniform(0.3, 1.0, size=n)
                else:
                    first = (s * A + a) % max(d // 2, 1) * 2
                    phi[:, first : first + 2] = rng.normal(size=(n, min(2, d - first)))
                phi /= np.maximum(1, np.linalg.norm(phi, axis=1))[:, None]
                stage[s][a] = (nxt, phi, 0.7 * rng.normal(size=n) if offsets else np.zeros(n))
        rows.append(stage)
    theta = rng.normal(size=(H, d))
    theta *= scale / np.linalg.norm(theta, axis=1)[:, None]
    return ref.make_model(rows, theta, rng.random((H, S, A)), rng.dirichlet(np.ones(S)))


def random_estimate(rng, problem, n_replicas=1, spread=0.5):
    """theta in the B-ball with random Gram matrices: an :class:`Estimate`, and the dense Gram matrices."""
    shape = (n_replicas, problem.n_parameters)
    theta = rng.normal(size=(*shape, problem.dim))
    lengths = np.linalg.norm(theta, axis=-1, keepdims=True)
    theta *= rng.random((*shape, 1)) * problem.param_bound / np.maximum(lengths, 1e-300)
    root = rng.normal(size=(*shape, problem.dim, problem.dim))
    dense = root @ root.swapaxes(-1, -2) / problem.dim + 10.0 ** rng.uniform(-spread, spread) * np.eye(problem.dim)
    packed = np.ascontiguousarray(problem.rows.pack(dense))
    return whitened(problem, theta, packed), problem.rows.unpack(packed)


def replica(estimate, r):
    """One replica of an estimate, alone."""
    return Estimate(*(np.ascontiguousarray(part[r : r + 1]) for part in estimate))


def same_bits(one, other):
    """Are two nested tuples of arrays equal, bit for bit?"""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same_bits(a, b) for a, b in zip(one, other, strict=True))
    if one is None or other is None:
        return one is other
    return np.shape(one) == np.shape(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()


def five_point(f, x, step=1e-3):
    """Derivatives of f along each coordinate, error O(step^4)."""
    out = []
    for j in range(len(x)):
        e = step * np.eye(len(x))[j]
        out.append((f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * step))
    return np.array(out)


def table_of(mdp, h=0):
    """P[s, a, s'] of stage h as a dense table."""
    problem = mdp.problem
    P = np.zeros((problem.n_states, problem.n_actions, problem.n_states))
    for s, a in np.ndindex(*P.shape[:2]):
        P[s, a, problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
    return P


def same_rows(one, other, atol=1e-14):
    """Are two models' ``rows[h][s][a]`` the same successors, features and offsets?"""
    for stage, twin_stage in zip(one, other, strict=True):
        for state, twin_state in zip(stage, twin_stage, strict=True):
            for (nxt, phi, shift), (twin_nxt, twin_phi, twin_shift) in zip(state, twin_state, strict=True):
                assert list(nxt) == list(twin_nxt)
                np.testing.assert_allclose(phi, twin_phi, rtol=0, atol=atol)
                np.testing.assert_array_equal(shift, twin_shift)


FIELDS = (
    "row_start",
    "next_state",
    "offset",
    "pair_block",
    "col_start",
    "col_count",
    "cols",
    "feat_start",
    "feat",
)


BLOCKS = ("block_start", "block_coords", "gram_start")


def arrays_of(model, one_table=False):
    """The long arrays of a twin model, for from_arrays."""
    triples = [row for stage in model["rows"][: 1 if one_table else None] for state in stage for row in state]
    return {
        "outcomes": [len(row[0]) for row in triples],
        "next_state": np.concatenate([row[0] for row in triples]),
        "features": np.concatenate([row[1] for row in triples]),
        "offset": np.concatenate([row[2] for row in triples]),
        "reward": model["reward"],
        "theta": model["theta"],
        "start": model["start"],
    }


def assert_same_problem(one, other):
    assert one.problem.same_as(other.problem)
    for name in (*FIELDS, *BLOCKS):
        np.testing.assert_array_equal(getattr(one.problem.rows, name), getattr(other.problem.rows, name), err_msg=name)
    np.testing.assert_array_equal(one.theta, other.theta)


def random_set(rng, problem, count, bound, radius, offset):
    """Ellipsoids around points at distance ``offset`` from the origin, intersected with the ball."""
    shape = (count, problem.n_parameters)
    matrices = np.array([[random_matrix(rng, problem.dim, 0.5) for _ in range(shape[1])] for _ in range(count)])
    packed = np.ascontiguousarray(problem.rows.pack(matrices))
    center = rng.normal(size=(*shape, problem.dim))
    center *= offset / np.linalg.norm(center, axis=-1, keepdims=True)
    within = ParameterSet(bound, center, packed, np.full(count, radius))
    dense = problem.rows.unpack(packed)
    both = math.isfinite(bound)

    def regions(r, k):
        own = [(center[r, k], dense[r, k], radius)]
        return [*own, ref.ball(problem.dim, bound)] if both else own

    return within, regions
