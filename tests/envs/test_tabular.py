"""From tables to models: the same kernel, the same values, rewards back in their own units, and what is refused."""

import re

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

import livarot
from livarot import envs
from livarot.envs import Function, LogNominal, NextState, RewardScale, TabularMDP, from_tabular
from tests.twins import envs as ref

GOOD = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
REWARD = np.zeros((2, 2))


def random_table(rng, S, A, U, H=None):
    shape = (S, A) if H is None else (H, S, A)
    P = np.zeros((*shape, S))
    for index in np.ndindex(*shape):
        reached = rng.choice(S, rng.integers(1, U + 1), replace=False)
        P[(*index, reached)] = rng.dirichlet(np.ones(len(reached)))
    return P


def kernel_of(mdp):
    problem = mdp.problem
    P = np.zeros((problem.horizon, problem.n_states, problem.n_actions, problem.n_states))
    for h, s, a in np.ndindex(*P.shape[:3]):
        P[h, s, a, problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
    return P


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("by_stage", [False, True])
def test_the_model_is_the_table(shared, by_stage):
    rng, H = np.random.default_rng(3), 4
    P = random_table(rng, 5, 3, 4, H if by_stage else None)
    R, start = rng.random((5, 3)), rng.dirichlet(np.ones(5))
    mdp = from_tabular(P, R, H, start, shared_parameter=shared)
    table = P if by_stage else np.stack([P] * H)
    np.testing.assert_allclose(kernel_of(mdp), table, rtol=0, atol=1e-15)
    value, _ = ref.solve_table(table, R, H)
    np.testing.assert_allclose(livarot.solve(mdp).value, value, rtol=0, atol=1e-13)
    assert mdp.problem.shared_parameter is shared and len(mdp.theta) == (1 if shared else H)
    assert mdp.problem.rows.n_tables == (H if by_stage else 1)
    assert mdp.problem.rows.norms().max() == 1.0
    extra = (P > 0).sum() - P[..., 0].size  # every outcome but one of each pair
    union = ((P > 0).any(axis=0) if by_stage else P > 0).sum()
    assert mdp.problem.dim == extra if shared or not by_stage else mdp.problem.dim <= union
    assert mdp.reward_scale == RewardScale(0.0, 1.0)


def test_equal_stages_share_a_table():
    rng = np.random.default_rng(0)
    one, other = random_table(rng, 4, 2, 3), random_table(rng, 4, 2, 3)
    mdp = from_tabular(np.stack([one, other, one, other]), np.zeros((4, 2)), 4)
    assert mdp.problem.rows.n_tables == 2 and mdp.problem.stage_table.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array, csr_matrix, "per action", "lists"])
def test_every_form_of_p_is_the_same_model(form):
    P = random_table(np.random.default_rng(1), 6, 3, 4)
    dense = from_tabular(P, np.full((6, 3), 0.5), 3)
    if form == "per action":
        given = [csr_array(P[:, a]) for a in range(3)]
    elif form == "lists":
        given = P.tolist()
    else:
        given = form(P.reshape(18, 6))
    other = from_tabular(given, np.full((6, 3), 0.5), 3)
    assert other.problem.same_as(dense.problem) and other.theta.tobytes() == dense.theta.tobytes()


def test_a_sparse_table_is_not_changed_and_its_zeros_are_not_transitions():
    P = csr_array(([1.0, 0.0, 0.25, 0.75], ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2))
    mdp = from_tabular(P, np.zeros((2, 1)), 2)
    assert P.nnz == 4 and P.data.tolist() == [1.0, 0.0, 0.25, 0.75]
    assert mdp.problem.rows.outcomes.tolist() == [1, 2]


def test_rewards_of_every_shape():
    rng, H = np.random.default_rng(5), 3
    P = random_table(rng, 4, 2, 3)
    by_next = rng.uniform(-3.0, 5.0, (4, 2, 4))
    expected = (P * by_next).sum(axis=-1)
    exact, _ = ref.solve_table(P, expected, H)
    forms = [by_next, np.stack([by_next] * H), csr_array(by_next.reshape(8, 4)), expected, np.stack([expected] * H)]
    forms += [lambda h, s, a, to: by_next[s, a, to], {(s, a): expected[s, a] for s in range(4) for a in range(2)}]
    for R in forms:
        np.testing.assert_allclose(livarot.solve(from_tabular(P, R, H)).value, exact, rtol=0, atol=1e-14)
        costs = livarot.solve(from_tabular(P, None, H, cost=R)).value
        worst, _ = ref.solve_table(P, -expected, H)
        np.testing.assert_allclose(costs, worst, rtol=0, atol=1e-14)
    by_stage = np.stack([P, P[::-1], P])
    varied = np.stack([(kernel * by_next).sum(axis=-1) for kernel in by_stage])
    found = livarot.solve(from_tabular(by_stage, by_next, H)).value
    np.testing.assert_allclose(found, livarot.solve(from_tabular(by_stage, varied, H)).value, rtol=0, atol=1e-14)
    cube = rng.random((3, 3, 3))
    with pytest.raises(livarot.LivarotError, match="reads both"):
        from_tabular(np.full((3, 3, 3), 1 / 3), cube, 3)
    both = livarot.solve(from_tabular(np.full((3, 3, 3), 1 / 3), np.stack([cube] * 3), 3)).value
    flat, _ = ref.solve_table(np.full((3, 3, 3), 1 / 3), cube.mean(axis=-1), 3)
    np.testing.assert_allclose(both, flat, rtol=1e-14)


def test_rewards_of_the_next_state_stay_with_it():
    """A learner does not know P, so an average under P would tell it something."""
    P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    options = {"features": LogNominal(lambda s, a, n: float(n)), "theta": [1.0]}
    mdp = from_tabular(P, [[[0.3, 0.4]], [[0.1, 0.9]]], 2, **options)
    assert mdp.problem.reward[0].reshape(-1) == pytest.approx([0.3, 0.9])
    assert mdp.problem.next_reward == pytest.approx([0.0, 0.1, 0.0])


# ---------------------------------------------------------------- the terms of a model
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("features", ["one-hot", LogNominal(lambda s, a, n: [float(n)])])
def test_discount_mask_terminal_and_costs(features, shared):
    rng, H, S, A, gamma = np.random.default_rng(11), 3, 4, 3, 0.8
    P, cost = random_table(rng, S, A, 3), rng.uniform(-5.0, 50.0, (S, A, S))
    mask = rng.random((H, S, A)) < 0.7
    mask[..., 0] = True
    final = rng.uniform(-9.0, 9.0, S)
    P[~mask.any(axis=0)] = 0.0  # what never exists need not be a distribution
    P[3] = 0.0
    value = np.tile(-final, (H + 1, 1))
    for h in range(H - 1, -1, -1):
        q = (P * (gamma * value[h + 1] - cost)).sum(axis=-1)
        value[h, :3] = np.where(mask[h], q, -np.inf).max(axis=1)[:3]
    terms = {"cost": cost, "terminal_cost": final, "discount": gamma, "available": mask, "terminal": ["end"]}
    mdp = from_tabular(
        P, horizon=H, start="a", features=features, shared_parameter=shared, states=["a", "b", "c", "end"], **terms
    )
    found = livarot.solve(mdp)
    np.testing.assert_allclose(found.value, value, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(mdp.problem.available, mask & (np.arange(S) < 3)[:, None])
    assert found.cost[0, 0] == pytest.approx(-value[0, 0])


def test_a_pair_that_exists_needs_next_states():
    P = GOOD.copy()
    P[1, 1] = 0.0
    assert from_tabular(P, REWARD, 2, available={0: [0, 1], 1: [0]}).problem.rows.outcomes.tolist() == [2, 2, 1, 0]
    with pytest.raises(livarot.LivarotError, match=r"empty reachable set.*left out of available=") as caught:
        from_tabular(P, REWARD, 2)
    assert caught.value.index == (1, 1) and caught.value.count == 1


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"discount": 1.5}, "discount: must be"),
        ({"available": {0: [0]}}, "available: a state has no action"),
        ({"available": [[0], [2]]}, "available: 2 (int) is not among 0..1"),
        ({"terminal": [5]}, "terminal: 5 (int) is not among 0..1"),
        ({"cost": REWARD}, "cost: reward and cost are both given"),
        ({"R": None}, "reward: is missing"),
        ({"R": None, "cost": {(0, 0): 1.0}}, "cost: is missing or not a number for (0, 1)"),
        ({"states": ["a", "a"]}, "states: 'a' occurs twice"),
        ({"rescale": True, "discount": 0.5}, "rescale: has no meaning with"),
        ({"horizon": None}, "horizon: is missing; without an end use livarot.infinite"),
    ],
)
def test_bad_terms(terms, said):
    with pytest.raises(livarot.LivarotError, match=re.escape(said)):
        from_tabular(**({"P": GOOD, "R": REWARD, "horizon": 2} | terms))


# ---------------------------------------------------------------- rescaled rewards
@pytest.mark.parametrize(("low", "high"), [(-100.0, 20.0), (3.0, 4.0), (-1e6, 1e-3), (0.0, 5.0)])
def test_rescaled_rewards_come_back(low, high):
    rng, H = np.random.default_rng(2), 5
    P, R = random_table(rng, 5, 3, 3), rng.uniform(low, high, (5, 3))
    mdp = from_tabular(P, R, H, rescale=True)
    assert mdp.problem.reward.min() == 0.0 and mdp.problem.reward.max() == 1.0
    exact, q = ref.solve_table(P, R, H)
    size = max(abs(low), abs(high)) * H
    np.testing.assert_allclose(mdp.original_value(livarot.solve(mdp).value), exact, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(mdp.reward_scale.reward(mdp.problem.reward[0]), R, rtol=0, atol=1e-15 * size)
    np.testing.assert_array_equal(livarot.solve(mdp).policy, q.argmax(axis=-1))
    uniform = np.full((H, 5, 3), 1 / 3)
    value = livarot.solve(mdp).value[0] - livarot.evaluate(mdp, uniform)[0]
    own = np.zeros(5)
    for _ in range(H):
        own = (R + P @ own).mean(axis=1)
    np.testing.assert_allclose(mdp.reward_scale.regret(value), exact[0] - own, rtol=0, atol=1e-13 * size)


def test_rewards_in_the_unit_interval_are_left_alone():
    assert from_tabular(np.ones((1, 2, 1)), [[0.25, 0.5]], 2, rescale=True).reward_scale == RewardScale()
    constant = from_tabular(np.ones((1, 2, 1)), [[7.0, 7.0]], 2, rescale=True)
    np.testing.assert_allclose(constant.original_value(livarot.solve(constant).value)[:, 0], [14.0, 7.0, 0.0])


def test_the_scale_is_saved(tmp_path):
    mdp = from_tabular(np.ones((1, 2, 1)), [[-2.0, 6.0]], 2, rescale=True)
    mdp.save(tmp_path / "m")
    assert TabularMDP.load(tmp_path / "m").reward_scale == RewardScale(-2.0, 8.0)
    envs.hard_chain(4).save(tmp_path / "plain")
    assert TabularMDP.load(tmp_path / "plain").reward_scale == RewardScale()
    with pytest.raises(livarot.LivarotError, match="stage first"):
        mdp.original_value(np.zeros((2, 1)))


# ---------------------------------------------------------------- feature maps and parameters
def test_a_tilted_kernel():
    rng = np.random.default_rng(7)
    P, w = random_table(rng, 5, 2, 4), np.array([2.0, -1.0])

    def x(s, a, n):
        return [a * n / 5, float(n > s)]

    for learn in (False, True):
        theta = [1.0, *w] if learn else w
        mdp = from_tabular(P, np.zeros((5, 2)), 3, features=LogNominal(x, learn_nominal=learn), theta=theta)
        assert mdp.problem.dim == 2 + learn and mdp.theta.shape == (1, 2 + learn)
        for s, a in np.ndindex(5, 2):
            reached = np.flatnonzero(P[s, a])
            exact = ref.softmax_table(np.log(P[s, a, reached]), [x(s, a, n) for n in reached], w)
            np.testing.assert_allclose(mdp.probabilities(1, s, a), exact, rtol=1e-12)
        np.testing.assert_allclose(mdp.original_theta[0], theta, rtol=4e-16)
        assert mdp.problem.rows.norms().max() <= 1 + 1e-15
        nominal = from_tabular(P, np.zeros((5, 2)), 3, features=LogNominal(x, learn_nominal=learn), param_bound=9.0)
        np.testing.assert_allclose(kernel_of(nominal)[0], P, rtol=0, atol=1e-14)


def test_one_theta_per_stage_can_be_given():
    P = random_table(np.random.default_rng(1), 4, 2, 3)
    thetas = np.arange(6.0).reshape(3, 2) / 10
    options = {"features": LogNominal(lambda s, a, n: [n / 4, a]), "shared_parameter": False}
    mdp = from_tabular(P, np.zeros((4, 2)), 3, theta=thetas, **options)
    np.testing.assert_allclose(mdp.original_theta, thetas, rtol=1e-15, atol=1e-16)
    tiled = from_tabular(P, np.zeros((4, 2)), 3, theta=thetas[1], **options)
    np.testing.assert_allclose(tiled.original_theta, np.stack([thetas[1]] * 3), rtol=1e-15)
    with pytest.raises(livarot.LivarotError, match="theta"):
        from_tabular(P, np.zeros((4, 2)), 3, theta=thetas[:2], **options)


@pytest.mark.parametrize("shared", [False, True])
def test_a_map_that_represents_the_kernel_is_fitted(shared):
    rng = np.random.default_rng(4)
    weights, H = rng.normal(size=(2, 6)), 3
    reached = random_table(rng, 6, 2, 5) > 0
    stages = [reached * np.exp(weights[0 if shared else h % 2]) for h in range(H)]
    P = np.stack([p / p.sum(axis=-1, keepdims=True) for p in stages])
    mdp = from_tabular(P, np.zeros((6, 2)), H, features="next-state", shared_parameter=shared)
    np.testing.assert_allclose(kernel_of(mdp), P, rtol=0, atol=1e-13)
    assert mdp.problem.dim == 6 and len(mdp.theta) == (1 if shared else H)


def test_a_map_that_cannot_represent_the_kernel_is_refused():
    P = random_table(np.random.default_rng(0), 5, 2, 4)
    for features in ("next-state", NextState(np.ones((5, 1))), Function(lambda s, a, n: 1.0)):
        with pytest.raises(livarot.LivarotError, match="cannot represent P") as caught:
            from_tabular(P, np.zeros((5, 2)), 3, features=features)
        assert caught.value.argument == "features" and caught.value.count > 0
        s, a, n = caught.value.index
        assert P[s, a, n] > 0


# ---------------------------------------------------------------- bad input


def changed(index, value):
    P = GOOD.copy()
    P[index] = value
    return P


TWICE = coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))


@pytest.mark.parametrize(
    ("P", "options", "argument", "index", "count"),
    [
        (changed((0, 1), [0.5, 0.4]), {}, "P", (0, 1), 1),
        (changed((1,), 0.0), {}, "P", (1, 0), 2),  # an empty reachable set
        (np.stack([GOOD, changed((1, 1), [0.6, 0.5])]), {"horizon": 2}, "P", (1, 1, 1), 1),
        (changed((0, 0), [1.2, -0.2]), {}, "P", (0, 0, 1), 1),
        (changed((0, 0, 0), np.nan), {}, "P", (0, 0, 0), 1),
        (changed((0, 0, 0), np.inf), {}, "P", (0, 0, 0), 1),
        (csr_array([[1.0, 0.0], [0.7, 0.2]]), {}, "P", (1, 0), 1),
        (csr_array([[1.0, 0.0], [1.2, -0.2]]), {}, "P", (1, 0, 1), 1),
        (csr_array([[1.0, 0.0], [np.nan, 1.0]]), {}, "P", None, 1),
        (TWICE, {}, "P", (0, 0), 1),
        ([csr_array(np.eye(2)), TWICE], {}, "P", (1, 0, 0), 1),
        (csr_array(np.ones((3, 2)) / 2), {}, "P", None, None),
        (csr_array(np.ones((1, 2)) / 2), {}, "P", None, None),
        ([csr_array(np.eye(2)), csr_array(np.eye(3))], {}, "P", None, None),
        (GOOD[0], {}, "P", None, None),
        (GOOD[:, :, :1], {}, "P", None, None),
        (np.zeros((0, 2, 0)), {}, "P", None, None),
        (np.stack([GOOD] * 3), {"horizon": 2}, "P", None, None),
        ([["a"]], {}, "P", None, None),
        (GOOD, {"R": np.zeros((3, 2))}, "R", None, None),
        (GOOD, {"R": np.full((2, 2), np.nan)}, "R", (0, 0), 4),
        (GOOD, {"R": csr_array(np.zeros((6, 2)))}, "R", None, None),
        (GOOD, {"start": 2}, "start", None, None),
        (GOOD, {"start": [0.5, 0.6]}, "start", None, None),
        (GOOD, {"start": [1.5, -0.5]}, "start", None, None),
        (GOOD, {"start": [1.0]}, "start", None, None),
        (GOOD, {"horizon": 0}, "horizon", None, None),
        (GOOD, {"features": "onehot"}, "features", None, None),
        (GOOD, {"features": 3}, "features", None, None),
        (GOOD, {"theta": [np.nan, 0.0, 0.0]}, "theta", (0,), 1),
        (GOOD, {"theta": [0.0]}, "theta", None, None),
        (GOOD, {"param_bound": 0.1}, "theta", (0,), 1),
        (GOOD, {"param_bound": -1.0}, "param_bound", None, None),
    ],
)
def test_bad_input(P, options, argument, index, count):
    arguments = {"R": REWARD, "horizon": 2} | options
    if not isinstance(P, np.ndarray) and "R" not in options:
        arguments["R"] = np.zeros((2, 2 if isinstance(P, list) else 1))
    with pytest.raises(livarot.LivarotError) as caught:
        from_tabular(P, **arguments)
    assert (caught.value.argument, caught.value.index, caught.value.count) == (argument, index, count)
    assert "\n" not in str(caught.value)


def test_it_is_shown_in_a_few_lines():
    """Not theta, but the map of its rewards if there is one."""
    P = [[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
    plain, mapped = (from_tabular(P, [[0, -1], [2, 0]], horizon=3, rescale=rescale) for rescale in (False, True))
    assert repr(plain).startswith("TabularMDP\n  sizes")
    assert "array" not in repr(plain) and "times these" not in repr(plain)
    assert "rewards -1 + 3 times these" in repr(mapped) and "-1 + 3 times" in mapped._repr_html_()
    assert len(repr(livarot.envs.make("river-swim")).splitlines()) <= 12
