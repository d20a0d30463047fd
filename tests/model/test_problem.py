"""Building a model: the same model by every constructor, its storage, its files."""

import copy

import numpy as np
import pytest
from scipy import sparse

import livarot
from livarot import MNLMDP, LivarotError, Problem
from livarot.model.probabilities import transition_kernel
from tests.support.models import random_model, rows_of, to_mdp
from tests.twins import core as ref

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


def sizes_of(model):
    return len(model["rows"]), len(model["rows"][0]), len(model["rows"][0][0])


def assert_same_problem(one, other):
    assert one.problem.same_as(other.problem)
    for name in (*FIELDS, *BLOCKS):
        np.testing.assert_array_equal(getattr(one.problem.rows, name), getattr(other.problem.rows, name), err_msg=name)
    np.testing.assert_array_equal(one.theta, other.theta)


# ---------------------------------------------------------------- construction
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_function_and_arrays_give_the_same_model(kind):
    model = random_model(np.random.default_rng(1), d=6, kind=kind, offsets=True)
    by_function = to_mdp(model)
    by_arrays = MNLMDP.from_arrays(*sizes_of(model), **arrays_of(model))
    assert_same_problem(by_function, by_arrays)
    given = rows_of(by_function)
    for h in range(3):
        for s in range(4):
            for a in range(2):
                nxt, phi, shift = model["rows"][h][s][a]
                assert given[h][s][a][0] == nxt
                np.testing.assert_array_equal(given[h][s][a][1], phi)
                np.testing.assert_array_equal(given[h][s][a][2], shift)
                p = ref.softmax(model["rows"][h][s][a], model["theta"][h])
                np.testing.assert_allclose(by_function.probabilities(h, s, a), p, rtol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
@pytest.mark.parametrize("shared", [False, True])
def test_transition_kernel_against_the_twin(kind, shared):
    model = random_model(np.random.default_rng(2), H=3, d=6, kind=kind, offsets=True, scale=3.0)
    mdp = to_mdp(model, shared=shared)
    kernel, problem = transition_kernel(mdp), mdp.problem
    for h in range(3):
        theta = model["theta"][0 if shared else h]
        for s in range(4):
            for a in range(2):
                pair = problem.pair(h, s, a)
                first, last = problem.rows.row_start[pair : pair + 2]
                p = kernel.prob[kernel.base[h] + first : kernel.base[h] + last]
                np.testing.assert_allclose(p, ref.softmax(model["rows"][h][s][a], theta), rtol=1e-13)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_laws_for_those_who_write_agents_in_numpy(kind, shared):
    model = random_model(np.random.default_rng(6), H=3, d=6, kind=kind, offsets=True, scale=3.0)
    mdp = to_mdp(model, shared=shared)
    kernel, problem = transition_kernel(mdp), mdp.problem
    for h, s, a in np.ndindex(3, 4, 2):
        pair = problem.pair(h, s, a)
        first, last = problem.rows.row_start[pair : pair + 2]
        p = problem.probabilities(mdp.theta, h, s, a)
        np.testing.assert_allclose(p, kernel.prob[kernel.base[h] + first : kernel.base[h] + last], rtol=1e-13)
        own = mdp.theta[0 if shared else h]
        np.testing.assert_array_equal(problem.probabilities(own, h, s, a), p)
        np.testing.assert_array_equal(mdp.probabilities(h, s, a), p)
        z = problem.offset(h, s, a) + problem.features(h, s, a) @ own
        np.testing.assert_allclose(np.exp(z - z.max()) / np.exp(z - z.max()).sum(), p, rtol=1e-13)
        assert len(p) == len(problem.next_states(h, s, a))
    before = problem.offset(0, 0, 0)
    problem.offset(0, 0, 0)[:] = 7.0  # a copy: the problem stays as it is
    np.testing.assert_array_equal(problem.offset(0, 0, 0), before)


def test_laws_of_bad_arguments():
    problem = livarot.envs.river_swim(4, 6).problem
    zero = np.zeros(problem.theta_shape)
    d = problem.dim
    for theta, message in (
        (np.zeros((2, d)), rf"^theta: has shape \(2, {d}\); give the stage's own parameter or all: \({d},\) or"),
        (np.full(d, np.nan), "^theta: NaN"),
        ("theta", "^theta: "),
    ):
        with pytest.raises(LivarotError, match=message):
            problem.probabilities(theta, 0, 0, 0)
    with pytest.raises(LivarotError, match=r"^stage: 6 is out of range"):
        problem.probabilities(zero, 6, 0, 0)
    with pytest.raises(LivarotError, match=r"^action: 2 is out of range"):
        problem.offset(0, 0, 2)


@pytest.mark.parametrize("alike", [True, False])
def test_the_laws_of_many_pairs_are_those_of_each(alike):
    """Large models take pairs of one shape side by side: the same probabilities, pair by pair, to the last bit."""
    rng = np.random.default_rng(5)
    S, A = 1201, 5
    outcomes = np.full(S * A, 4) if alike else np.repeat(rng.integers(1, 7, S), A)
    starts = np.concatenate(([0], np.cumsum(outcomes)))
    nexts = np.concatenate([rng.choice(S, n, replace=False) for n in outcomes])
    phi = rng.uniform(-1.0, 1.0, (len(nexts), 3)) / 2.0
    phi[rng.random(len(nexts)) < 0.3, 1] = 0.0
    theta, offset = rng.normal(size=3) * 5.0, rng.normal(size=len(nexts))
    common = {"theta": theta, "reward": np.zeros((S, A)), "param_bound": 50.0}
    mdp = MNLMDP.from_arrays(1, S, A, outcomes=outcomes, next_state=nexts, features=phi, offset=offset, **common)
    found = transition_kernel(mdp).prob
    assert len(found) > 16_384
    for pair in rng.integers(0, S * A, 300):
        rows = slice(starts[pair], starts[pair + 1])
        z = offset[rows] + phi[rows] @ theta
        p = np.exp(z - z.max())
        np.testing.assert_allclose(found[rows], p / p.sum(), rtol=1e-13)
    part = 100 * A  # the first states alone are few enough to be computed pair by pair
    few = np.concatenate([np.arange(n) for n in outcomes[:part]])
    arrays = {"features": phi[: starts[part]], "offset": offset[: starts[part]], "next_state": few}
    small = MNLMDP.from_arrays(1, 100, A, outcomes=outcomes[:part], **arrays, **common | {"reward": np.zeros((100, A))})
    np.testing.assert_array_equal(transition_kernel(small).prob, found[: starts[part]])


def test_a_copied_model_stays_a_model_of_its_own():
    """What a problem keeps for compiled code are addresses: a copy has its own, and outlives the original."""
    mdp = livarot.envs.river_swim(6, 20)
    before = livarot.solve(mdp)
    other = copy.deepcopy(mdp)
    other.problem.rows.feat[:] = 0.0
    assert (transition_kernel(other).prob != transition_kernel(mdp).prob).any()
    for mine, again in zip(before, livarot.solve(mdp), strict=True):
        np.testing.assert_array_equal(mine, again)


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


def test_one_theta_for_all_stages():
    model = random_model(np.random.default_rng(5))
    mdp = to_mdp(model, shared=True)
    assert mdp.problem.shared_parameter
    assert mdp.problem.n_parameters == 1
    assert mdp.theta.shape == (1, 3)
    assert mdp.problem.stage_parameter.tolist() == [0, 0, 0]
    assert to_mdp(model).problem.stage_parameter.tolist() == [0, 1, 2]


def test_rewards_as_function_table_or_full_array():
    def features(h, s, a):
        return [s], [[0.0]]

    table = np.array([[0.1, 0.2], [0.3, 0.4]])
    common = {"features": features, "theta": [0.0]}
    full = MNLMDP.from_function(3, 2, 2, reward=np.stack([table] * 3), **common).problem.reward
    for reward in (table, lambda h, s, a: table[s, a], table.tolist()):
        np.testing.assert_array_equal(MNLMDP.from_function(3, 2, 2, reward=reward, **common).problem.reward, full)


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


def test_features_from_a_function_may_be_sparse():
    def dense(h, s, a):
        phi = np.zeros((2, 12))
        phi[:, 2 * s + 6 * a : 2 * s + 6 * a + 2] = [[0.5, 0.1], [0.0, 0.9]]
        return [s, (s + 1) % 3], phi

    common = {"reward": np.zeros((3, 2)), "theta": np.full(12, 0.1)}
    one = MNLMDP.from_function(2, 3, 2, features=dense, **common)
    other = MNLMDP.from_function(
        2, 3, 2, features=lambda h, s, a: (dense(h, s, a)[0], sparse.csr_array(dense(h, s, a)[1])), **common
    )
    assert_same_problem(one, other)
    assert one.problem.rows.n_blocks == 6


def test_next_state_features_form_one_block_of_which_pairs_touch_a_part():
    mdp = to_mdp(random_model(np.random.default_rng(7), S=6, kind="partial", one_table=True))
    rows = mdp.problem.rows
    assert rows.n_blocks == 1
    used = rows.col_count[rows.pair_block >= 0]
    assert used.min() < 6
    for pair in range(rows.n_pairs):
        assert np.array_equal(np.sort(rows.columns(pair)), np.flatnonzero(rows.features(pair).any(axis=0)))


# ---------------------------------------------------------------- what the learner knows
def test_unreachable_states_are_skipped():
    mdp = livarot.envs.hard_chain(4, gap=0.1)
    reach = mdp.problem.reachable
    assert [np.flatnonzero(x).tolist() for x in reach] == [[0], [1, 5], [2, 5], [3, 5], [4, 5]]
    start, state = mdp.problem.nodes
    assert start.tolist() == [0, 1, 3, 5, 7]
    assert state.tolist() == [0, 1, 5, 2, 5, 3, 5]


def test_reachable_states_follow_the_start_distribution():
    def features(h, s, a):
        return [min(s + 1, 4)], [[0.0]]

    common = {"features": features, "reward": np.zeros((5, 1)), "theta": [0.0]}
    mdp = MNLMDP.from_function(2, 5, 1, start=[0.5, 0.0, 0.5, 0.0, 0.0], **common)
    assert [np.flatnonzero(x).tolist() for x in mdp.problem.reachable] == [[0, 2], [1, 3], [2, 4]]
    np.testing.assert_array_equal(
        MNLMDP.from_function(2, 5, 1, start=3, **common).problem.start, [0.0, 0.0, 0.0, 1.0, 0.0]
    )


def test_a_problem_does_not_hold_theta():
    mdp = to_mdp(random_model(np.random.default_rng(8)))
    assert isinstance(mdp.problem, Problem)
    assert not hasattr(mdp.problem, "theta")
    stored = mdp.problem._tensors()
    assert "theta" not in stored
    for name, array in stored.items():
        assert not any(np.array_equal(array, t) for t in (mdp.theta, *mdp.theta)), name


@pytest.mark.parametrize("scale", [7.3, 0.021])
@pytest.mark.parametrize("shared", [False, True])
def test_normalising_is_undone_exactly(scale, shared):
    """Features of any size: probabilities and theta in the given units are those of the plain model."""
    model = random_model(np.random.default_rng(9), offsets=True)
    big = [[[(n, scale * f, o) for n, f, o in state] for state in stage] for stage in model["rows"]]
    mdp = to_mdp(model | {"rows": big}, shared=shared, normalise=True)
    largest = max(np.linalg.norm(f, axis=1).max() for stage in big for state in stage for _, f, _ in state)
    assert mdp.problem.feature_scale == pytest.approx(largest, rel=1e-15)
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-14)
    theta = model["theta"][:1] if shared else model["theta"]
    np.testing.assert_allclose(mdp.original_theta, theta, rtol=1e-15)
    np.testing.assert_allclose(mdp.problem.original_theta(mdp.theta), theta, rtol=1e-15)
    bound = np.linalg.norm(theta, axis=1).max() * largest
    assert mdp.problem.param_bound == pytest.approx(bound, rel=1e-15)
    for h in range(3):
        for s in range(4):
            for a in range(2):
                exact = ref.softmax(big[h][s][a], theta[0 if shared else h])
                np.testing.assert_allclose(mdp.probabilities(h, s, a), exact, rtol=0, atol=1e-14)


def test_normalising_what_is_normal_changes_nothing():
    model = random_model(np.random.default_rng(10))
    model["rows"][0][0][0] = ([0], np.array([[1.0, 0.0, 0.0]]), np.zeros(1))
    assert_same_problem(to_mdp(model), to_mdp(model, normalise=True))
    zero = MNLMDP.from_function(
        1, 1, 1, features=lambda h, s, a: ([0], [[0.0]]), reward=[[0.5]], theta=[1.0], normalise=True
    )
    assert zero.problem.feature_scale == 1.0


def test_the_smallest_model():
    mdp = MNLMDP.from_function(1, 1, 1, features=lambda h, s, a: ([0], [0.5]), reward=[[0.25]], theta=[0.3])
    best = livarot.solve(mdp)
    assert best.value.tolist() == [[0.25], [0.0]]
    assert best.variance.tolist() == [[0.0]]
    for agent in (livarot.agents.Livarot(), livarot.agents.UCRLMNLOL(), livarot.agents.Uniform()):
        result = livarot.run(mdp, agent, 3)
        assert result.regret.tolist() == [[0.0, 0.0, 0.0]]
        assert result.realised_regret.tolist() == [[0.0, 0.0, 0.0]]
    assert livarot.simulate(mdp, best.policy, 2).states.tolist() == [[0, 0], [0, 0]]


def test_two_outcomes_in_the_smallest_space():
    mdp = MNLMDP.from_function(
        1, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0], [1.0]]), reward=[[0.0], [1.0]], theta=[np.log(3.0)]
    )
    np.testing.assert_allclose(mdp.probabilities(0, 0, 0), [0.25, 0.75], rtol=1e-15)
    assert livarot.run(mdp, livarot.agents.Livarot(), 2).regret.tolist() == [[0.0, 0.0]]


# ---------------------------------------------------------------- files
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_a_model_comes_back_from_its_file_bit_for_bit(tmp_path, kind):
    model = random_model(np.random.default_rng(11), d=6, kind=kind, offsets=True)
    mdp = to_mdp(model, shared=kind == "partial", param_bound=9.0, normalise=kind == "dense")
    path = tmp_path / "model.safetensors"
    mdp.save(path)
    again = MNLMDP.load(path)
    assert_same_problem(mdp, again)
    assert again.problem._header() == mdp.problem._header()
    for name, array in mdp.problem._tensors().items():
        assert again.problem._tensors()[name].tobytes() == array.tobytes(), name
    other = tmp_path / "again.safetensors"
    again.save(other)
    assert other.read_bytes() == path.read_bytes()
    np.testing.assert_array_equal(livarot.solve(again).q, livarot.solve(mdp).q)


def test_a_damaged_file_is_refused(tmp_path):
    mdp = livarot.envs.river_swim(4, 3)
    path = tmp_path / "model.safetensors"
    mdp.save(path)
    whole = path.read_bytes()
    for damage in (whole[:-8], whole[:100], b"", whole[:-1] + bytes([whole[-1] ^ 1]), b"x" * len(whole)):
        path.write_bytes(damage)
        with pytest.raises(LivarotError) as caught:
            MNLMDP.load(path)
        assert caught.value.argument == "path"
    result = tmp_path / "run.safetensors"
    livarot.run(mdp, livarot.agents.Uniform(), 2).save(result)
    with pytest.raises(LivarotError, match="not 'mnlmdp'"):
        MNLMDP.load(result)
    with pytest.raises(LivarotError):
        MNLMDP.load(tmp_path / "absent.safetensors")
