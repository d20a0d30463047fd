"""The user's own terms: every form of rewards, costs, actions and ends says the same, and bad ones are refused."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import livarot
from livarot.infinite import InfiniteMDP, solve, solve_average, solve_discounted
from tests.support.stationary import dense, random_table, to_model, with_features
from tests.twins import infinite as twin

STATES, ACTIONS = ["new", ("worn", 1), "gone"], ["rest", "work"]
P = np.array([[[0.9, 0.1, 0.0], [0.5, 0.3, 0.2]], [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0] * 3] * 2])
PAIRS = [("new", "rest"), ("new", "work"), (("worn", 1), "rest")]
PAY = dict(zip(PAIRS, [1.0, 20.0, -3.0], strict=True))
OWN = {"terminal": ["gone"], "discount": 0.9, "states": STATES, "actions": ACTIONS}


def model(**terms):
    return InfiniteMDP.from_transitions(P, **(OWN | terms))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [1.0, 1e9, 1e-9])
def test_the_best_of_all_policies(seed, scale):
    """Missing actions, ends and r(s, a, s') of any scale: brute force over the policies."""
    rng = np.random.default_rng(seed)
    table, ends = random_table(rng, n=4, scale=scale)
    for gamma in (0.0, 0.5, 0.95):
        found = solve_discounted(to_model(table, ends), gamma)
        expected = twin.best_of_all(table, ends, gamma)
        np.testing.assert_allclose(found.value, expected, rtol=0, atol=1e-9 * scale)
        assert (found.lower <= expected + 1e-12 * scale).all() and (expected <= found.upper + 1e-12 * scale).all()
        policy = [None if a < 0 else int(a) for a in found.policy]
        np.testing.assert_allclose(twin.chain_value(table, policy, ends, gamma), expected, rtol=0, atol=1e-9 * scale)
        assert [a is None for a in policy] == [s in ends for s in range(4)]


def test_every_form_of_rewards_says_the_same():
    full = np.array([[1.0, 20.0], [-3.0, 0.0], [0.0, 0.0]])
    three = np.broadcast_to(full[:, :, None], (3, 2, 3))
    forms = [
        full,
        np.where(full == 0.0, np.nan, full),
        lambda s, a: full[s, a],
        lambda s, a, to: full[s, a],
        PAY,
        {("new", "rest"): 1.0, ("new", "work"): 20.0, ("worn", 1): -3.0},
        {(*pair, to): pay for pair, pay in PAY.items() for to in STATES if P[ids(pair)][STATES.index(to)] > 0},
        three,
        csr_array(three.reshape(6, 3)),
        [csr_array(three[:, a]) for a in range(2)],
        [1.0, 1.0, 20.0, 20.0, 20.0, -3.0],
    ]
    expected = solve(model(reward=PAY)).value
    for form in forms:
        np.testing.assert_allclose(solve(model(reward=form)).value, expected, rtol=1e-12)
    costs = model(cost={pair: -pay for pair, pay in PAY.items()})
    np.testing.assert_array_equal(solve(costs).value, expected)
    assert costs.problem.terms.costs and "-20 to 3 a step" in repr(costs)
    np.testing.assert_array_equal(solve(model(reward=2.0)).value[2], 0.0)


def ids(pair):
    return STATES.index(pair[0]), ACTIONS.index(pair[1])


def test_a_reward_of_the_next_state_stays_with_it():
    """Under another parameter the same model pays something else: nothing was averaged."""
    mdp = with_features(np.random.default_rng(0))
    own = mdp.problem.terms.outcome_reward
    assert own.shape == (mdp.problem.rows.n_rows,) and (mdp.problem.reward == 0.0).all()
    other = InfiniteMDP(livarot.MNLMDP(mdp.stage.problem, -mdp.stage.theta), mdp.terms)
    assert np.abs(other.mean_reward - mdp.mean_reward).max() > 0.1
    pair = mdp.problem.rows.row_start[:2]
    assert mdp.mean_reward[0, 0] == pytest.approx(mdp.probabilities(0, 0) @ own[pair[0] : pair[1]], abs=1e-14)


def test_every_form_of_actions_says_the_same():
    law = np.where(P.sum(axis=2, keepdims=True) > 0, P, 1 / 3)
    mask = np.array([[True, True], [True, False], [False, False]])
    ragged = {"new": ["rest", "work"], ("worn", 1): ["rest"]}
    for available in (mask, mask.tolist(), [["rest", "work"], ["rest"], []], ragged, lambda s, a: bool(mask[s, a])):
        mdp = InfiniteMDP.from_transitions(law, **(OWN | {"available": available, "reward": PAY}))
        np.testing.assert_array_equal(mdp.problem.available, mask)
        np.testing.assert_allclose(solve(mdp).value, solve(model(reward=PAY)).value, rtol=1e-12)
    calls = []

    def features(s, a):
        calls.append((s, a))
        return [0, 1, 2], np.eye(3)

    InfiniteMDP.from_function(3, 2, features=features, theta=[0.0, 0.0, 0.0], reward=0.0, **OWN, available=mask)
    assert calls == [(0, 0), (0, 1), (1, 0)]


def test_every_form_of_ends_says_the_same():
    for terminal in (["gone"], [False, False, True], np.array([False, False, True]), {"gone": 0.0}):
        np.testing.assert_array_equal(model(reward=PAY, terminal=terminal).problem.terms.terminal, [False, False, True])
    paid = solve(model(reward=PAY, terminal={"gone": 1e4}))
    assert (
        paid.value[2] == pytest.approx(1e4, rel=1e-12) and paid.policy["new"] == "work" and paid.policy["gone"] is None
    )
    charged = solve(model(cost={k: -v for k, v in PAY.items()}, terminal={"gone": 1e4}))
    assert charged.value[2] == pytest.approx(-1e4, rel=1e-12)


def test_the_discount_is_kept_and_overridden():
    mdp = model(reward=PAY)
    assert mdp.discount == 0.9 and solve(mdp).discount == 0.9 and solve(mdp, 0.5).discount == 0.5
    cycle = InfiniteMDP.from_transitions([[[0.0, 1.0]], [[1.0, 0.0]]], reward=[[0.0], [4e6]])
    assert solve(cycle).gain == pytest.approx(2e6, rel=1e-12) and solve(cycle, 1.0).gain == solve(cycle).gain
    assert solve(cycle.with_terms(discount=0.5)).discount == 0.5
    with pytest.raises(livarot.LivarotError, match="known to lie"):
        solve_average(InfiniteMDP.from_transitions(np.eye(2)[:, None], reward=[0.0, 1e6]), max_iter=1000)


@pytest.mark.parametrize("gamma", [0.0, 1.0 - 1e-12])
@pytest.mark.parametrize("pay", [1e9, -1e9, 1e-9, 0.0])
def test_one_state_and_extreme_discounts(gamma, pay):
    found = solve_discounted(InfiniteMDP.from_transitions([[[1.0]]], reward=pay), gamma)
    exact = pay / (1.0 - gamma)
    assert found.lower[0] <= exact + 1e-15 * abs(exact) and exact - 1e-15 * abs(exact) <= found.upper[0]
    assert found.value[0] == pytest.approx(exact, rel=1e-9, abs=1e-300)
    assert found.lower[0] <= found.value[0] <= found.upper[0]


def refused(call, argument, *, index=None, count=None, match=None):
    with pytest.raises(livarot.LivarotError, match=match) as error:
        call()
    assert error.value.argument == argument
    assert index is None or error.value.index == index
    assert count is None or error.value.count == count


def test_bad_terms_are_refused():
    refused(lambda: model(), "reward", match="both missing")
    refused(lambda: model(reward=PAY, cost=PAY), "reward", match="both given")
    refused(lambda: model(reward=PAY, discount=1.1), "discount")
    refused(lambda: model(reward=PAY, discount=-0.1), "discount")
    refused(lambda: model(reward=PAY, terminal=[]), "available", index=(2,), count=1, match="'gone' has no action")
    refused(lambda: model(reward=PAY, terminal=["lost"]), "terminal", match="'lost'")
    refused(lambda: model(reward={**PAY, (("worn", 1), "work"): 1.0}), "reward", index=(1, 1), match="does not exist")
    refused(lambda: model(reward=[[1.0, 2.0], [1.0, 5.0], [0, 0]]), "reward", index=(1, 1), count=1)
    refused(lambda: model(reward=dict(list(PAY.items())[:1])), "reward", index=(0, 1), count=2, match="missing for")
    refused(lambda: model(reward=[[np.nan, 2.0], [1.0, 0.0], [0, 0]]), "reward", index=(0, 0), count=1)
    refused(lambda: model(cost=lambda s, a: np.nan), "cost", count=3)
    refused(lambda: model(reward={("new", "jump"): 1.0}), "reward", match="'jump'")
    refused(lambda: model(reward={("new", "rest", "gone"): 1.0}), "reward", match="cannot follow")
    refused(lambda: model(reward=np.zeros((2, 2))), "reward", match="shape")
    refused(lambda: model(reward=1e200), "reward", match="too large")
    refused(lambda: model(reward=PAY, states=["a", "a", "b"]), "states", index=(1,), count=1)
    refused(lambda: model(reward=PAY, actions=["a"]), "actions", match="1 labels")
    refused(lambda: model(reward=PAY, available=np.ones((3, 2), dtype=bool)), "available", index=(1, 1), count=1)
    refused(lambda: model(reward=PAY, rewards=PAY), "rewards", match="not an argument")
    refused(lambda: InfiniteMDP.from_transitions(0.5 * P, **OWN, reward=PAY), "transitions", index=(0, 0), count=3)
    refused(lambda: InfiniteMDP.from_transitions(-P, **OWN, reward=PAY), "transitions", index=(0, 0))
    refused(lambda: InfiniteMDP.from_transitions(np.ones((2, 3)), reward=0.0), "transitions", match="shape")
    refused(lambda: solve(model(reward=PAY), 1.5), "discount")
    refused(lambda: solve_discounted(InfiniteMDP.from_transitions([[[1.0]]], reward=0.0)), "discount", match="has none")
    mdp = model(reward=PAY)
    refused(lambda: livarot.infinite.evaluate(mdp, [0, 1, -1]), "policy", index=(1,), match="does not exist")
    refused(lambda: livarot.infinite.evaluate(mdp, np.full((3, 2), 0.5)), "policy", index=(1,))


def test_nothing_is_given_to_a_pair_that_does_not_exist():
    table, ends = random_table(np.random.default_rng(11), n=6)
    mdp = to_model(table, ends)
    prob, _ = dense(table)
    exists = prob.sum(axis=2) > 0
    exists[list(ends)] = False
    np.testing.assert_array_equal(mdp.problem.available, exists)
    q = solve_discounted(mdp, 0.9).q
    assert (np.isfinite(q) == exists).all()
