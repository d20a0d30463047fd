"""Planning with costs, discount, rewards of the next state, masks and terminal states, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest

import livarot
from livarot.estimation.omd import whitened
from livarot.model.tabular_view import laws_of
from livarot.planning.empirical import BonusCode, bonus_values, empty_values, optimistic_values, sampled_values
from tests.support.terms import random_case
from tests.twins import terms


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("discount", [0.0, 0.8, 1.0])
def test_solve_equals_the_recursion(seed, costs, discount):
    mdp, told = random_case(seed, costs=costs, discount=discount)
    value, q = terms.optimal(**told)
    found = livarot.solve(mdp)
    np.testing.assert_allclose(found.value, value, rtol=0, atol=1e-10)
    for (h, s, a), number in q.items():
        assert found.q[h, s, a] == pytest.approx(number, abs=1e-10)
    there = np.zeros(found.q.shape, dtype=bool)
    there[tuple(np.array(list(q)).T)] = True
    assert np.array_equal(mdp.problem.available, there)
    there[:, -1, 0] = True  # the terminal state's own row
    assert np.array_equal(np.isneginf(found.q), ~there)


@pytest.mark.parametrize("seed", range(3))
def test_solve_is_the_best_of_all_policies(seed):
    mdp, told = random_case(seed, horizon=2, n_states=3, n_actions=3)
    best = terms.best_policy_value(mdp.problem.start, **told)
    assert float(mdp.problem.start @ livarot.solve(mdp).value[0]) == pytest.approx(best, abs=1e-10)


SMALL = {"horizon": 2, "n_states": 3, "n_actions": 3}


@pytest.mark.parametrize("seed", range(3))
def test_a_robust_plan_is_the_best_of_all_policies(seed):
    mdp, told = random_case(seed, **SMALL)
    best = terms.best_policy_value(mdp.problem.start, **told, expect=terms.adversary(0.05))
    found = float(mdp.problem.start @ livarot.solve_robust(mdp, penalty=0.05).value[0])
    assert found == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("side", [max, min], ids=["optimistic", "pessimistic"])
def test_plans_over_a_set_are_the_best_of_all_policies(seed, side):
    """One feature, so that a grid is fine enough; rewards range over 70."""
    mdp, told = random_case(seed, dim=1, **SMALL)
    problem, radius = mdp.problem, 0.8
    grid = [np.linspace(t[0] - radius / 2.0, t[0] + radius / 2.0, 301).tolist() for t in mdp.theta]
    choices = {}
    for h, s, a in told["law"]:
        phi = problem.features(h, s, a)[:, 0].tolist()
        choices[h, s, a] = dict(zip(problem.next_states(h, s, a).tolist(), phi, strict=True))
    best = terms.best_policy_value(problem.start, **told, expect=terms.of_a_grid(choices, grid, side))
    gram = problem.rows.pack_identity(4.0)[None, None].repeat(problem.n_parameters, axis=1)
    estimate = whitened(problem, mdp.theta[None].copy(), gram)
    if side is max:
        plan = livarot.optimistic_plan(problem, estimate, radius).in_units(problem)
        assert plan.start_value[0] == pytest.approx(best, abs=2e-3) and plan.upper[0] >= best - 1e-9
    else:
        plan = livarot.pessimistic_plan(problem, estimate, radius)
        assert plan.upper[0] == pytest.approx(best, abs=2e-3) and plan.lower[0] <= best + 1e-9
        chosen = terms.of_policy(plan.policy[0].tolist(), **told, expect=terms.of_a_grid(choices, grid, min))
        assert plan.lower[0] <= problem.start @ chosen[0] + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_tabular_plans_are_the_best_of_all_policies(seed):
    """On counts in the place of the law: greedy L1 optimism, a given law, and no bonus."""
    mdp, told = random_case(seed, **SMALL)
    problem, laws, rng = mdp.problem, laws_of(mdp.problem, True), np.random.default_rng(seed)
    counts = rng.integers(1, 30, (1, len(laws.next_state)))
    law, widths = {}, {}
    for h, s, a in told["law"]:
        pair = int(laws.first_pair[h]) + s * problem.n_actions + a
        rows = slice(int(laws.row_start[pair]), int(laws.row_start[pair + 1]))
        n, total = rows.stop - rows.start, counts[0, rows].sum()
        law[h, s, a] = dict(zip(laws.next_state[rows].tolist(), (counts[0, rows] / total).tolist(), strict=True))
        widths[h, s, a] = 0.9 * np.sqrt(n / total) if n > 1 else 0.0
    counted = told | {"law": law}
    found = empty_values(problem, 1)
    optimistic_values(problem, laws, counts, np.array([0.9]), np.ones(1, dtype=bool), found)
    plain = sampled_values(problem, laws, counts.astype(np.float64))
    without = bonus_values(
        problem, laws, counts, BonusCode(0.0), *(np.zeros((1, 0, 0), np.int64), np.zeros((1, 0, 0, 0)))
    )
    for values, expect in ((found, terms.l1_ball(widths)), (plain, terms.mean), (without, terms.mean)):
        best = terms.best_policy_value(problem.start, **counted, expect=expect)
        assert problem.units.value(values.start_value[0], problem.horizon) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_evaluate_equals_the_recursion(seed):
    mdp, told = random_case(seed)
    policy = livarot.solve(mdp).policy
    expected = terms.of_policy(policy.tolist(), **told)
    np.testing.assert_allclose(livarot.evaluate(mdp, policy), expected, rtol=0, atol=1e-10)
    laws = np.eye(3)[policy]
    np.testing.assert_allclose(livarot.evaluate(mdp, laws), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_returns_add_up_and_average_to_the_value(seed):
    mdp, told = random_case(seed)
    policy = livarot.solve(mdp).policy
    episodes = livarot.simulate(mdp, policy, 400, seed=seed)
    found = mdp.problem.returns(episodes)
    rest = {name: told[name] for name in ("paid", "final", "over", "discount")}
    expected = [terms.episode_return(s, a, **rest) for s, a in zip(*map(np.ndarray.tolist, episodes[:2]), strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    spread = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - mdp.problem.start @ livarot.solve(mdp).value[0]) < 5 * spread


@pytest.mark.parametrize("seed", range(4))
def test_robust_plans_equal_the_recursion(seed):
    mdp, told = random_case(seed)
    eta = 0.05  # in one over the units of the rewards
    found = livarot.solve_robust(mdp, penalty=eta)
    expected, _ = terms.optimal(**told, expect=terms.adversary(eta))
    np.testing.assert_allclose(found.value, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(livarot.evaluate_robust(mdp, found.policy, penalty=eta), expected, rtol=0, atol=1e-9)
    assert np.isneginf(found.q[~mdp.problem.exists]).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_ball_is_the_value_under_its_own_worst_kernel(seed):
    mdp, _ = random_case(seed)
    found = livarot.solve_robust(mdp, radius=0.2)
    worst = livarot.solve_robust((mdp.problem, found.kernel), radius=0.0)
    np.testing.assert_allclose(found.value, worst.value, rtol=0, atol=1e-6)
    nominal = livarot.solve(mdp)
    assert (found.value <= nominal.value + 1e-9).all() and (found.value[0] < nominal.value[0] - 1e-6).any()


@pytest.mark.parametrize("seed", range(3))
def test_other_units_change_nothing_else(seed):
    """Rewards a + b r: the same policy, values b V + a (what a step is worth) per remaining step."""
    rng = np.random.default_rng(seed)
    reward = rng.random((3, 3, 2))

    def build(low, scale, discount):
        def features(h, s, a):
            return [0, 1, 2], [[0.1 * s], [0.5 * a], [-0.3]]

        paid = low + scale * reward
        return livarot.MNLMDP.from_function(3, 3, 2, features=features, reward=paid, theta=[0.7], discount=discount)

    for discount in (1.0, 0.6):
        plain, other = build(0.0, 1.0, discount), build(-300.0, 40.0, discount)
        one, two = livarot.solve(plain), livarot.solve(other)
        assert np.array_equal(one.policy, two.policy)
        worth = np.array([sum(discount**k for k in range(3 - h)) for h in range(4)])
        np.testing.assert_allclose(two.value, 40.0 * one.value - 300.0 * worth[:, None], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(two.variance, 1600.0 * one.variance, rtol=1e-9, atol=1e-9)
        penalty = livarot.solve_robust(plain, penalty=2.0), livarot.solve_robust(other, penalty=2.0 / 40.0)
        expected = 40.0 * penalty[0].value - 300.0 * worth[:, None]
        np.testing.assert_allclose(penalty[1].value, expected, rtol=1e-10, atol=1e-8)


def test_rewards_in_the_unit_interval_stay_as_they_are():
    plain, _ = random_case(1, plain=True)
    assert plain.problem.units == livarot.envs.hard_chain(3).problem.units
    assert plain.problem.next_reward is None and plain.problem.terminal is None
    assert not {"units", "next_reward", "terminal_reward"} & (plain.problem._header() | plain.problem._tensors()).keys()


def test_a_discount_alone_is_a_geometric_sum():
    mdp = livarot.MNLMDP.from_function(
        5, 1, 1, features=lambda h, s, a: ([0], [[0.0]]), reward=[[3.0]], theta=[0.0], discount=0.9, terminal_reward=7.0
    )
    for h in range(6):
        expected = sum(3.0 * 0.9**k for k in range(5 - h)) + 7.0 * 0.9 ** (5 - h)
        assert livarot.solve(mdp).value[h, 0] == pytest.approx(expected, rel=1e-14)


def test_a_terminal_state_is_worth_its_reward_at_every_stage():
    mdp, told = random_case(2, discount=0.7)
    np.testing.assert_allclose(livarot.solve(mdp).value[:, 3], told["final"][3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["policy", "laws"])
def test_policies_of_actions_that_do_not_exist_are_refused(kind):
    mdp, _ = random_case(0, per_stage=False)
    policy = livarot.solve(mdp).policy.copy()
    h, s, a = (int(i) for i in np.argwhere(~mdp.problem.exists[:, :3])[0])
    policy[h, s] = a
    with pytest.raises(livarot.LivarotError, match=r"action \d is not available at \(h, s\)") as caught:
        livarot.evaluate(mdp, policy if kind == "policy" else np.eye(3)[policy])
    assert caught.value.index == (h, s) and caught.value.count == 1


def test_a_policy_may_say_anything_in_a_terminal_state():
    mdp, _ = random_case(0)
    policy = livarot.solve(mdp).policy.copy()
    policy[:, 3] = 2
    assert np.array_equal(livarot.evaluate(mdp, policy), livarot.evaluate(mdp, livarot.solve(mdp).policy))
