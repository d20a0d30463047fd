"""Feature maps: what a row is, that one-hot stays sparse, that normalisation is undone, and long tables."""

import tracemalloc

import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array, issparse

import livarot
from livarot import envs
from livarot.agents import Livarot
from livarot.envs import Function, LogNominal, LongTable, Moves, NextState, OneHot, Transitions, from_tabular
from livarot.model.episodes import Episodes
from livarot.simulation.streams import AgentRandom


def transitions(P, shared=True):
    """The flat form of dense tables (tables, S, A, S)."""
    P = np.asarray(P, float)
    P = P[None] if P.ndim == 3 else P
    pair, nexts = np.nonzero(P.reshape(-1, P.shape[-1]))
    counts = np.bincount(pair, minlength=P.shape[0] * P.shape[1] * P.shape[2])
    return Transitions(P.shape[1], P.shape[2], counts, nexts, P[P > 0], shared)


def chain(S, A):
    """Every action stays with .5, and moves to the neighbours otherwise."""
    P = np.zeros((S, A, S))
    for s, a in np.ndindex(S, A):
        P[s, a, s] = 0.5
        for n in {s - 1, s + 1} & set(range(S)):
            P[s, a, n] = 0.5 / (1 if s in (0, S - 1) else 2)
    return P


def big(S, A, U, seed=0):
    rng = np.random.default_rng(seed)
    P = np.zeros((S, A, S))
    for s, a in np.ndindex(S, A):
        P[s, a, rng.choice(S, U, replace=False)] = rng.dirichlet(np.ones(U))
    return P


# ---------------------------------------------------------------- one-hot
def test_one_hot_by_hand():
    P = np.array([[[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]], [[0.4, 0.4, 0.2], [0.9, 0.0, 0.1]], [[0, 0, 1.0], [1.0, 0, 0]]])
    answer = OneHot().encode(transitions(P))
    assert issparse(answer.features) and answer.offset is None
    expected = np.zeros((11, 5))
    expected[[0, 2, 5, 6, 8], [0, 1, 2, 3, 4]] = 1  # the most likely state has none; the first of equals
    np.testing.assert_array_equal(answer.features.toarray(), expected)
    np.testing.assert_allclose(answer.theta, np.log([[0.4, 0.6, 1.0, 0.5, 1 / 9]]), rtol=0, atol=1e-15)


def test_one_hot_tables():
    P = np.stack([chain(4, 2), chain(4, 2)[:, ::-1], big(4, 2, 3)])
    shared, own = (OneHot().encode(transitions(P, shared)) for shared in (True, False))
    per_table = [(p > 0).sum() - 8 for p in P]
    assert shared.features.shape[1] == sum(per_table) and shared.theta.shape[0] == 1
    assert own.theta.shape[0] == 3 and own.features.shape[1] <= (P > 0).any(axis=0).sum()


def test_one_hot_without_chance_has_one_idle_coordinate():
    answer = OneHot().encode(transitions(np.eye(3)[:, None, :]))
    assert answer.features.shape == (3, 1) and answer.features.nnz == 0 and answer.theta.tolist() == [[0.0]]


@pytest.mark.parametrize(("U", "d"), [(4, 240), (20, 1520)])
def test_one_hot_never_costs_d_squared(U, d):
    """S = 20, A = 4: Gram matrices, states of an agent, a plan and an update live in blocks of U - 1."""
    horizon, S, A = 5, 20, 4
    mdp = from_tabular(big(S, A, U), np.random.default_rng(1).random((S, A)), horizon, shared_parameter=False)
    problem, rows = mdp.problem, mdp.problem.rows
    assert problem.dim == d
    assert rows.n_blocks == S * A and np.diff(rows.block_start).max() == U - 1
    assert rows.gram_size == S * A * (U - 1) ** 2 <= d * d / 80
    assert rows.col_count.max() == U - 1
    assert rows.feat.size == S * A * U * (U - 1)  # and not rows * d

    agent = Livarot()
    state = agent.init(problem, 1)
    plan = agent.plan(problem, state, AgentRandom([0]))  # compiles, if need be, outside of the measurement
    episodes = livarot.simulate(mdp, plan.policy[0], 1, seed=2)
    agent.update(problem, state, Episodes(*episodes))
    tracemalloc.start()
    state = agent.init(problem, 1)
    plan = agent.plan(problem, state, AgentRandom([0]))
    after = agent.update(problem, state, Episodes(*episodes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    packed = 8 * horizon * rows.gram_size
    assert peak < 40 * packed + 200_000  # a few copies of packed matrices
    if d > 1000:
        assert peak < 8 * horizon * d * d / 2  # one dense Gram matrix per stage would be this, twice

    change = after.estimate.gram - state.estimate.gram  # (1, H, G)
    for h in range(horizon):
        pair = problem.pair(h, int(episodes.states[0, h]), int(episodes.actions[0, h]))
        touched = np.flatnonzero(change[0, h])
        block = rows.pair_block[pair]
        assert len(touched) > 0
        assert rows.gram_start[block] <= touched.min() and touched.max() < rows.gram_start[block + 1]
        moved = np.flatnonzero(after.estimate.theta[0, h] - state.estimate.theta[0, h])
        assert set(moved) <= set(rows.block_coords[rows.block_start[block] : rows.block_start[block + 1]])


# ---------------------------------------------------------------- moves
def test_moves_by_hand():
    answer = Moves().encode(transitions(chain(4, 2)))
    t = transitions(chain(4, 2))
    assert answer.features.shape == (t.n_rows, 8)  # four per action
    for row, (s, a, n) in enumerate(zip(t.state, t.action, t.next_state, strict=True)):
        column = {(0, 1): 2, (3, 2): 3}.get((s, n), 0 if n > s else 1)
        expected = np.zeros(8)
        if n != s:
            expected[4 * a + column] = 1
        np.testing.assert_array_equal(answer.features.toarray()[row], expected)


def test_moves_only_for_actions_with_chance():
    assert envs.river_swim(5, 3, features="moves").problem.dim == 4  # left is certain


def test_moves_refuse_jumps():
    with pytest.raises(livarot.LivarotError, match="neighbouring") as caught:
        from_tabular(big(6, 2, 4), np.zeros((6, 2)), 2, features="moves")
    s, _, n = caught.value.index
    assert abs(s - n) > 1


# ---------------------------------------------------------------- next states, functions, tilts
def test_next_state_features():
    P, X = big(5, 2, 3), np.arange(10.0).reshape(5, 2)
    t = transitions(P)
    np.testing.assert_array_equal(NextState().encode(t).features.toarray(), np.eye(5)[t.next_state])
    np.testing.assert_array_equal(NextState(X).encode(t).features.toarray(), X[t.next_state])
    each = NextState(X, per_action=True).encode(t).features.toarray()
    assert each.shape[1] == 4
    for row in range(t.n_rows):
        a = int(t.action[row])
        np.testing.assert_array_equal(each[row, 2 * a : 2 * a + 2], X[t.next_state[row]])
        assert not each[row, 2 - 2 * a : 4 - 2 * a].any()


def test_functions_and_their_normalisation():
    P = big(5, 2, 3)
    mdp = from_tabular(P, np.zeros((5, 2)), 2, features=LogNominal(lambda s, a, n: [3 * n, -4 * s]), theta=[0.1, 0.2])
    largest = max(np.hypot(3 * n, 4 * s) for s, a, n in zip(*np.nonzero(P), strict=True))
    assert mdp.problem.feature_scale == pytest.approx(largest, rel=1e-15)
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(mdp.original_theta[0], [0.1, 0.2], rtol=3e-16)
    assert mdp.problem.param_bound == pytest.approx(largest * np.hypot(0.1, 0.2), rel=1e-15)
    with pytest.raises(livarot.LivarotError, match="normalise=True"):
        from_tabular(P, np.zeros((5, 2)), 2, features=LogNominal(lambda s, a, n: 3 * n), theta=[0.1], normalise=False)


def test_a_tilt_may_be_a_map_and_sparse():
    P = big(5, 2, 3)
    theta = np.linspace(-1, 1, 5)
    mdp = from_tabular(P, np.zeros((5, 2)), 2, features=LogNominal(NextState()), theta=theta)
    learned = LogNominal(NextState(), learn_nominal=True)
    other = from_tabular(P, np.zeros((5, 2)), 2, features=learned, theta=[1.0, *theta])
    assert other.problem.dim == 6
    for s, a in np.ndindex(5, 2):
        reached = np.flatnonzero(P[s, a])
        exact = P[s, a, reached] * np.exp(theta[reached])
        np.testing.assert_allclose(mdp.probabilities(0, s, a), exact / exact.sum(), rtol=1e-13)
        np.testing.assert_allclose(other.probabilities(0, s, a), exact / exact.sum(), rtol=1e-12)


# ---------------------------------------------------------------- long tables
def long_table(P, X):
    s, a, n = np.nonzero(P)
    order = np.random.default_rng(0).permutation(len(s))
    return {"state": s[order], "action": a[order], "next_state": n[order], "x": X[s, a, n][order], "y": n[order] / 9}


@pytest.mark.parametrize("frame", [dict, pandas.DataFrame, polars.DataFrame])
def test_a_long_table_is_a_map(frame):
    P, X = big(5, 2, 3), np.random.default_rng(3).normal(size=(5, 2, 5))
    table = LongTable.from_columns(frame(long_table(P, X)), ["x", "y"])
    by_function = Function(lambda s, a, n: [X[s, a, n], n / 9])
    for features in (table, LongTable(table.state, table.action, table.next_state, csr_array(table.features))):
        one = from_tabular(P, np.zeros((5, 2)), 2, features=LogNominal(features), theta=[0.3, -0.5])
        other = from_tabular(P, np.zeros((5, 2)), 2, features=LogNominal(by_function), theta=[0.3, -0.5])
        for s, a in np.ndindex(5, 2):
            np.testing.assert_allclose(one.probabilities(0, s, a), other.probabilities(0, s, a), rtol=1e-14)


def test_a_long_table_with_the_terms_of_a_model():
    table = LongTable([0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 1, 2], [[0.0], [1.0], [0.5], [0.0]])
    mdp = table.mdp(
        2, 3, 2, cost={("a", "x", "a"): 3.0, ("a", "x", "b"): 5.0, ("a", "y", "b"): 9.0, ("b", "x", "end"): 2.0},
        theta=[0.0], discount=0.5, terminal=["end"], terminal_cost={"end": 8.0}, states=["a", "b", "end"],
        actions=["x", "y"], start="a",
    )  # fmt: skip
    assert mdp.problem.available[0].tolist() == [[True, True], [True, False], [False, False]]
    # b costs 2, and 8 a step later; the second action of a leads there, the first one does in half of all cases
    assert livarot.solve(mdp).cost[0].tolist() == pytest.approx([4.0 + 0.5 * (0.5 * 4.0 + 0.5 * 6.0), 6.0, 8.0])


def test_a_long_table_is_a_model():
    P, X = big(5, 2, 3), np.random.default_rng(3).normal(size=(2, 5, 2, 5))
    h, s, a, n = (np.concatenate(x) for x in zip(*[(np.full(30, h), *np.nonzero(P)) for h in (1, 0)], strict=True))
    columns = {"t": h, "from": s, "do": a, "to": n, "x": X[h, s, a, n], "shift": 0.1 * n}
    named = {"state": "from", "action": "do", "next_state": "to", "stage": "t"}
    table = LongTable.from_columns(columns, ["x"], **named)
    mdp = table.mdp(2, 5, 2, reward=np.zeros((5, 2)), theta=[0.7], offset=columns["shift"], normalise=True)
    for stage, state, action in np.ndindex(2, 5, 2):
        reached = mdp.problem.next_states(stage, state, action)
        z = 0.7 * X[stage, state, action, reached] + 0.1 * reached
        np.testing.assert_allclose(mdp.probabilities(stage, state, action), np.exp(z) / np.exp(z).sum(), rtol=1e-12)
    assert mdp.problem.rows.n_tables == 2


LINES = {"state": [0, 0, 1], "action": [0, 0, 0], "next_state": [0, 1, 1], "features": np.zeros((3, 1))}
KERNEL = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])


@pytest.mark.parametrize(
    ("change", "argument", "index", "count"),
    [
        ({"next_state": [0, 2, 1]}, "next_state", (1,), 1),
        ({"next_state": [0, 0, 1]}, "next_state", (1,), 1),  # listed twice
        ({"state": [0, -1, 1]}, "state", (1,), 1),
        ({"action": [0, 0, 1]}, "action", (2,), 1),
        ({"action": [0, 0]}, "action", None, None),
        ({"state": [0, 0.5, 1]}, "state", (1,), 1),
        ({"features": np.zeros((2, 1))}, "features", None, None),
        ({"features": np.zeros(3)}, "features", None, None),
        ({"features": [[0.0], [np.inf], [0.0]]}, "features", (1, 0), 1),
        ({"stage": [0, 0, 2]}, "stage", (2,), 1),
        ({"state": [0, 0, 0], "next_state": [0, 1, 1]}, "next_state", (2,), 1),
        (
            {"state": [0, 0], "action": [0, 0], "next_state": [0, 1], "features": np.zeros((2, 1))},
            "available",  # a state without any action
            (0, 1),
            2,
        ),
    ],
)
def test_bad_lines(change, argument, index, count):
    with pytest.raises(livarot.LivarotError) as caught:
        LongTable(**(LINES | change)).mdp(2, 2, 1, reward=np.zeros((2, 1)), theta=[0.0])
    assert (caught.value.argument, caught.value.index, caught.value.count) == (argument, index, count)


@pytest.mark.parametrize(
    ("features", "argument", "index"),
    [
        (LongTable([0, 1], [0, 0], [0, 1], np.zeros((2, 1))), "features", (0, 0, 1)),
        (LongTable([0, 0, 1], [0, 0, 0], [0, 1, 1], np.zeros((3, 1)), stage=[0, 0, 0]), "stage", None),
        (NextState(np.zeros((3, 1))), "attributes", None),
        (NextState([[0.0], [np.nan]]), "attributes", (1, 0)),
        (Function(lambda s, a, n: np.zeros(1 + n)), "features", (0, 0, 1)),
        (Function(lambda s, a, n: np.zeros((1, 1))), "features", (0, 0, 0)),
        (Function(lambda s, a, n: np.nan if s else 0.0), "features", (1, 0, 1)),
        (LogNominal(LogNominal(NextState())), "features", None),
    ],
)
def test_bad_maps(features, argument, index):
    with pytest.raises(livarot.LivarotError) as caught:
        from_tabular(KERNEL, np.zeros((2, 1)), 2, features=features)
    assert (caught.value.argument, caught.value.index) == (argument, index)


def test_bad_columns():
    with pytest.raises(livarot.LivarotError, match="no column 'z'"):
        LongTable.from_columns({"state": [0], "action": [0], "next_state": [0]}, ["z"])
    with pytest.raises(livarot.LivarotError, match="no feature column"):
        LongTable.from_columns({"state": [0], "action": [0], "next_state": [0]}, [])
