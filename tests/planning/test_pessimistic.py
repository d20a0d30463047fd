"""Pessimistic plans: against plans made pair by pair, and as lower bounds for every model of the confidence sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livarot
from livarot import pessimistic_plan
from livarot.model.episodes import Estimate
from tests.support.models import random_estimate, random_model, replica, same_bits, to_mdp, to_model
from tests.twins import agents as twin
from tests.twins import core as ref

KINDS = ["dense", "block", "partial"]


def worst_plan(mdp, theta, gram, radius):
    """(policy, value) of one replica by the twin's recursion, with minima found by search."""
    model, which = to_model(mdp), mdp.problem.stage_parameter
    sets, reward = [(theta[k], gram[k], radius) for k in which], model["reward"]

    def q_value(h, s, a, row, values):
        return reward[h][s][a] - twin.inner_max(row, [-v for v in values], sets[h])[0]

    return twin.optimistic_plan(model, q_value)


def values_over_a_grid(mdp, policy, sets, points):
    """V^pi at the start for every point of the unit ball, at all stages alike, by the twin's evaluation."""
    model = to_model(mdp)
    found = []
    for point in points:
        theta = [c + np.linalg.solve(np.linalg.cholesky(m).T, point) * r for c, m, r in sets]
        value = ref.evaluate(model["rows"], theta, model["reward"], policy)
        found.append(float(np.dot(model["start"], value[0])))
    return np.array(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_between_bound_and_search(kind, shared):
    rng = np.random.default_rng(70 + KINDS.index(kind))
    model = random_model(rng, H=3, S=5, A=2, d=4, U=5, kind=kind, offsets=True, one_table=kind == "block")
    mdp = to_mdp(model, shared=shared)
    estimate, dense = random_estimate(rng, mdp.problem)
    plan = pessimistic_plan(mdp.problem, estimate, 0.25)
    _, value = worst_plan(mdp, estimate.theta[0], dense[0], 0.25)
    start = mdp.problem.start @ value[0]
    reach = mdp.problem.reachable[:-1]
    assert (plan.value[0, :-1][reach] <= value[:-1][reach] + 1e-12).all()
    assert plan.lower[0] <= start <= plan.upper[0] + 1e-12
    assert plan.upper[0] == pytest.approx(start, abs=1e-7)  # the solver missed nothing here
    assert 0.0 < plan.loss[0] < 0.1
    assert not plan.value[0, -1].any() and not plan.value[0, :-1][~reach].any()
    assert same_bits((plan.center, plan.gram, plan.radius), (estimate.theta, estimate.gram, np.array([0.25])))


@pytest.mark.parametrize("radius", [0.0, 1e-3, 1.0, 3.0])
def test_two_outcomes_are_exact_at_any_radius(radius):
    rng = np.random.default_rng(7)
    mdp = to_mdp(random_model(rng, H=4, S=4, A=3, d=3, U=2, offsets=True))
    estimate, dense = random_estimate(rng, mdp.problem)
    plan = pessimistic_plan(mdp.problem, estimate, radius)
    policy, value = worst_plan(mdp, estimate.theta[0], dense[0], radius)
    reach = mdp.problem.reachable[:-1]
    np.testing.assert_allclose(plan.value[0, :-1][reach], value[:-1][reach], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(plan.policy[0][reach], policy[reach])
    assert 0.0 <= plan.loss[0] < 1e-7


def test_at_radius_zero_it_is_the_nominal_plan():
    rng = np.random.default_rng(10)
    mdp = to_mdp(random_model(rng, S=5, U=4))
    estimate, _ = random_estimate(rng, mdp.problem)
    estimate = estimate._replace(theta=np.ascontiguousarray(mdp.theta[None]))
    plan = pessimistic_plan(mdp.problem, estimate, 0.0)
    best = livarot.solve(mdp).value
    reach = mdp.problem.reachable[:-1]
    np.testing.assert_allclose(plan.value[0, :-1][reach], best[:-1][reach], rtol=0, atol=1e-12)
    smaller = pessimistic_plan(mdp.problem, estimate, 0.5).lower[0]
    assert pessimistic_plan(mdp.problem, estimate, 2.0).lower[0] < smaller < plan.lower[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.floats(-2.0, 2.0))
def test_no_model_of_the_sets_is_worth_less(seed, kind, size):
    """A fine grid of the set at all stages alike, and points of their own at every stage."""
    rng = np.random.default_rng(seed)
    model = random_model(
        rng, H=3, S=4, A=2, d=2, U=4, kind=kind, offsets=seed % 2 == 0, scale=10.0 ** rng.uniform(-1, 1)
    )
    mdp = to_mdp(model, shared=seed % 3 == 0, param_bound=1e3)
    problem, radius = mdp.problem, 10.0**size
    estimate, dense = random_estimate(rng, problem, spread=1.0)
    plan = pessimistic_plan(problem, estimate, radius)
    assert plan.lower[0] <= plan.upper[0]
    assert plan.value.min() >= 0.0
    sets = [(estimate.theta[0, k], dense[0, k], radius) for k in problem.stage_parameter]
    points = rng.normal(size=(60, problem.dim))
    points /= np.maximum(np.linalg.norm(points, axis=1), 1e-300)[:, None]
    points[::3] *= rng.random((20, 1))
    assert values_over_a_grid(mdp, plan.policy[0], sets, points).min() >= plan.lower[0]
    for _ in range(20):
        own = points[rng.integers(len(points), size=problem.n_parameters)][problem.stage_parameter]
        theta = [c + np.linalg.solve(np.linalg.cholesky(m).T, x) * r for (c, m, r), x in zip(sets, own, strict=True)]
        twin_model = to_model(mdp)
        value = ref.evaluate(twin_model["rows"], theta, twin_model["reward"], plan.policy[0])
        assert float(problem.start @ value[0]) >= plan.lower[0]


@pytest.mark.parametrize("radius", [1e-12, 1e-3, 1e3, 1e12])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_extreme_sets(radius, scale):
    """Between the smallest value of all and the value at the centre, always finite."""
    rng = np.random.default_rng(3)
    mdp = to_mdp(random_model(rng, H=4, S=5, A=3, d=3, U=5, offsets=True))
    estimate, dense = random_estimate(rng, mdp.problem)
    packed = np.ascontiguousarray(mdp.problem.rows.pack(dense * scale))
    estimate = Estimate(estimate.theta, packed, estimate.whiten / np.sqrt(scale))
    plan = pessimistic_plan(mdp.problem, estimate, radius)
    centre = livarot.evaluate(livarot.MNLMDP(mdp.problem, estimate.theta[0]), plan.policy[0])
    lowest = mdp.problem.reward.min(axis=(1, 2)).sum()
    assert (
        lowest - 1e-7
        <= plan.lower[0]
        <= plan.upper[0]
        <= livarot.solve(livarot.MNLMDP(mdp.problem, estimate.theta[0])).value[0] @ mdp.problem.start + 1e-12
    )
    assert plan.lower[0] <= centre[0] @ mdp.problem.start
    if radius / np.sqrt(scale) > 1e4:  # all mass may go to the worst next state
        assert plan.loss[0] < 1e-6


def test_wide_sets_lose_little():
    """Where the relaxations are far from the minimum, the bound at the stationary point is nearly exact."""
    rng = np.random.default_rng(5)
    losses = []
    for _ in range(20):
        mdp = to_mdp(random_model(rng, H=4, S=8, A=3, d=4, U=5, ragged=False))
        estimate, _ = random_estimate(rng, mdp.problem)
        plan = pessimistic_plan(mdp.problem, estimate, 30.0)
        losses.append(plan.loss[0] / plan.upper[0])
    assert np.median(losses) < 1e-3


def test_replicas_side_by_side_change_no_bit():
    rng = np.random.default_rng(4)
    mdp = to_mdp(random_model(rng, H=3, S=5, A=2, d=3, U=4))
    estimate, _ = random_estimate(rng, mdp.problem, n_replicas=9)
    radii = np.linspace(0.1, 2.0, 9)
    together = pessimistic_plan(mdp.problem, estimate, radii)
    for r in range(9):
        alone = pessimistic_plan(mdp.problem, replica(estimate, r), float(radii[r]))
        assert same_bits((alone.policy[0], alone.lower[0]), (together.policy[r], together.lower[r]))


def test_what_is_refused():
    mdp = livarot.envs.river_swim(4, 8)
    state = livarot.agents.Livarot().init(mdp.problem)
    with pytest.raises(livarot.LivarotError, match="radius"):
        pessimistic_plan(mdp.problem, state.estimate, -1.0)
    with pytest.raises(livarot.LivarotError, match="solver"):
        pessimistic_plan(mdp.problem, state.estimate, 1.0, livarot.FrankWolfe())
    with pytest.raises(livarot.LivarotError, match="problem"):
        pessimistic_plan(mdp, state.estimate, 1.0)
    few = pessimistic_plan(mdp.problem, state.estimate, 1.0, livarot.ShiftedPower(max_iter=1, n_starts=0))
    assert few.lower[0] <= pessimistic_plan(mdp.problem, state.estimate, 1.0).upper[0]


@pytest.mark.parametrize("given_as", ["reward", "cost"])
def test_discount_terminal_rewards_and_any_scale(given_as):
    """The bound is in the units that were given, and holds for every parameter of the set."""
    rng = np.random.default_rng(8)
    pays = {given_as: rng.normal(size=(4, 2)) * 50.0, f"terminal_{given_as}": rng.normal(size=4) * 20.0}
    mdp = livarot.MNLMDP.from_function(
        3, 4, 2,
        features=lambda h, s, a: ([0, 1, 2 + (s + a) % 2], np.eye(3)[[0, 1, 2]] if s else np.eye(3)[[2, 1, a]]),
        theta=rng.normal(size=3), discount=0.9, param_bound=50.0, **pays,
    )  # fmt: skip
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem)
    plan = pessimistic_plan(problem, estimate, 0.4)
    root = np.linalg.cholesky(dense[0, 0]).T
    for _ in range(200):
        step = rng.normal(size=3)
        theta = estimate.theta[0, 0] + 0.4 * np.linalg.solve(root, step / np.linalg.norm(step))
        value = livarot.evaluate(livarot.MNLMDP(problem, theta[None]), plan.policy[0])
        assert value[0] @ problem.start >= plan.lower[0]
    centre = livarot.solve(livarot.MNLMDP(problem, estimate.theta[0]))
    assert plan.lower[0] < plan.upper[0] < centre.value[0] @ problem.start
    assert plan.value[0, -1] == pytest.approx(centre.value[-1])
    exact = pessimistic_plan(problem, estimate, 0.0)
    seen = problem.reachable[0]
    np.testing.assert_allclose(exact.value[0, 0][seen], centre.value[0][seen], rtol=1e-9)
