"""Optimistic plans of every rule: against plans made pair by pair, with their certificates, reproducible to the bit."""

import math

import numpy as np
import pytest

import livarot
from livarot import FrankWolfe, JointMaximum, PlugIn, SecondOrderBonus, ShiftedPower, VarianceBonus
from livarot.planning.optimistic import optimistic_plan
from tests.support.models import random_estimate, random_model, replica, rows_of, same_bits, to_mdp, to_model
from tests.twins import agents as twin
from tests.twins import core as ref

KINDS = ["dense", "block", "partial"]
RULES = [PlugIn(), JointMaximum(), VarianceBonus(), SecondOrderBonus(), SecondOrderBonus(0.5)]


def names(rule):
    return type(rule).__name__


# ---------------------------------------------------------------- plans, pair by pair
def variance_value(row, values, region):
    """f + beta |Cov(phi, V)| + span beta^2 min(max|phi_i|^2, max|phi_i - mean|^2) / 2, at most max V."""
    center, matrix, radius = region
    mean = np.array(ref.softmax(row, center)) @ row[1]
    first = radius * ref.dual_norm(ref.value_gradient(row, center, values), matrix)
    curve = min(max(ref.dual_norm(f, matrix) for f in row[1]), max(ref.dual_norm(f - mean, matrix) for f in row[1]))
    bound = ref.expected_value(row, center, values) + first + np.ptp(values) * (radius * curve) ** 2 / 2
    return min(bound, max(values))


def rule_value(rule, row, values, region, reward, horizon):
    """Q of one pair.  A pair with one outcome has nothing to be optimistic about."""
    plain = ref.expected_value(row, region[0], values)
    if isinstance(rule, SecondOrderBonus):
        extra = 0.0
        if len(values) > 1:
            first = twin.li_bonus(row, region, horizon)
            second = 2.5 * horizon * region[2] ** 2 * max(ref.dual_norm(f, region[1]) ** 2 for f in row[1])
            extra = first + (rule.constant / 2.5 - 1) * second
        return min(max(reward + plain + extra, 0.0), float(horizon))
    if len(values) == 1 or isinstance(rule, PlugIn):
        return reward + plain
    if isinstance(rule, VarianceBonus):
        return reward + variance_value(row, values, region)
    return reward + twin.inner_max(row, values, region)[0]


def upper_value(row, values, region):
    """The certified bound of one pair: exact for two outcomes, else the smaller of the two relaxations."""
    if len(values) == 1:
        return values[0]
    if len(values) == 2:
        return twin.inner_max_two(row, values, region)[0]
    return min(twin.box_bound(row, values, region), variance_value(row, values, region))


def naive_plan(mdp, theta, gram, radius, value_of):
    """(policy, value) of one replica by the twin's recursion; theta (K, d), gram (K, d, d)."""
    model, which = to_model(mdp), mdp.problem.stage_parameter
    sets = [(theta[k], gram[k], radius) for k in which]
    reward = model["reward"]
    return twin.optimistic_plan(model, lambda h, s, a, row, v: value_of(row, v, sets[h], reward[h][s][a]))


def check_against_naive(mdp, rule, rng, radius, tolerance):
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem)
    plan = optimistic_plan(problem, estimate, radius, rule)
    policy, value = naive_plan(
        mdp, estimate.theta[0], dense[0], radius,
        lambda row, v, region, r: rule_value(rule, row, v, region, r, problem.horizon),
    )  # fmt: skip
    reach = problem.reachable[:-1]
    np.testing.assert_allclose(plan.value[0, :-1][reach], value[:-1][reach], rtol=0, atol=tolerance)
    np.testing.assert_array_equal(plan.policy[0][reach], policy[reach])
    assert not plan.value[0, -1].any()
    assert not plan.value[0, :-1][~reach].any()
    assert plan.start_value[0] == pytest.approx(problem.start @ plan.value[0, 0], abs=1e-14)
    return plan, estimate, dense


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES, ids=names)
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_plan_against_the_naive_one(rule, kind, shared):
    rng = np.random.default_rng(50 + KINDS.index(kind))
    model = random_model(rng, H=3, S=6, A=2, d=4, U=6, kind=kind, offsets=True, one_table=kind == "block")
    mdp = to_mdp(model, shared=shared)
    assert set(mdp.problem.rows.outcomes.tolist()) >= {1, 2, 3}
    brute = isinstance(rule, JointMaximum)
    plan, estimate, dense = check_against_naive(mdp, rule, rng, 0.25, 1e-7 if brute else 1e-12)
    if brute:
        assert plan.inner_gap[0] <= 1e-8
        _, upper = naive_plan(
            mdp, estimate.theta[0], dense[0], 0.25, lambda row, v, region, r: r + upper_value(row, v, region)
        )
        assert plan.upper[0] == pytest.approx(mdp.problem.start @ upper[0], abs=1e-11)
    assert (plan.upper is None) == isinstance(rule, PlugIn | SecondOrderBonus)
    assert (plan.inner_gap is None) == (not brute)
    if isinstance(rule, PlugIn):
        assert plan.center is plan.gram is plan.radius is None
    else:
        assert same_bits((plan.center, plan.gram, plan.radius), (estimate.theta, estimate.gram, np.array([0.25])))


@pytest.mark.parametrize("radius", [0.0, 1e-3, 1.0, 3.0])
@pytest.mark.parametrize("rule", RULES, ids=names)
def test_plan_of_two_outcomes_at_any_radius(rule, radius):
    """Everything is in closed form, so it is exact at every radius."""
    rng = np.random.default_rng(7)
    model = random_model(rng, H=4, S=4, A=3, d=3, U=2, offsets=True)
    plan, _, _ = check_against_naive(to_mdp(model), rule, rng, radius, 1e-12)
    if isinstance(rule, JointMaximum):
        assert same_bits(plan.upper, plan.start_value)
        assert plan.inner_gap[0] == 0.0


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_plan_skips_states_that_cannot_be_reached(rule):
    rng = np.random.default_rng(8)
    model = random_model(rng, H=4, S=8, A=2, d=3, U=2, offsets=True)
    model["start"] = np.eye(8)[2]
    mdp = to_mdp(model)
    assert not mdp.problem.reachable[:-1].all()
    check_against_naive(mdp, rule, rng, 0.5, 1e-12)


@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize("rule", RULES, ids=names)
def test_plan_of_a_large_group_of_equal_shape(rule, outcomes):
    """More than 64 pairs of one shape: several batches of one replica, the whitener shared by a batch."""
    rng = np.random.default_rng(9)
    model = random_model(rng, H=3, S=20, A=4, d=2 if outcomes == 3 else 5, U=outcomes, ragged=False)
    mdp = to_mdp(model)
    brute = isinstance(rule, JointMaximum) and outcomes == 3
    plan, estimate, dense = check_against_naive(mdp, rule, rng, 0.4, 1e-7 if brute else 1e-11)
    assert plan.value[0, 0].min() > 0
    if isinstance(rule, JointMaximum):
        _, upper = naive_plan(
            mdp, estimate.theta[0], dense[0], 0.4, lambda row, v, region, r: r + upper_value(row, v, region)
        )
        assert plan.upper[0] == pytest.approx(mdp.problem.start @ upper[0], abs=1e-11)
        assert (plan.upper[0] > plan.start_value[0]) == (outcomes == 3)


def test_rules_at_radius_zero_are_the_plug_in():
    rng = np.random.default_rng(10)
    mdp = to_mdp(random_model(rng, S=5, U=4))
    estimate, _ = random_estimate(rng, mdp.problem)
    plain = optimistic_plan(mdp.problem, estimate, 0.0, PlugIn())
    for rule in RULES[1:3]:
        plan = optimistic_plan(mdp.problem, estimate, 0.0, rule)
        np.testing.assert_allclose(plan.value, plain.value, rtol=0, atol=1e-13)
        assert plan.upper[0] == pytest.approx(plan.start_value[0], abs=1e-12)
    # and the plug-in at the truth is the optimum
    truth = estimate._replace(theta=mdp.theta[None])
    best = livarot.solve(mdp).value
    np.testing.assert_allclose(optimistic_plan(mdp.problem, truth, 0.0, PlugIn()).value[0], best, rtol=0, atol=1e-12)


def test_ties_go_to_the_first_action():
    mdp = livarot.envs.hard_chain(5, gap=0.1, dim=3)
    estimate, _ = random_estimate(np.random.default_rng(11), mdp.problem)
    for rule in (PlugIn(), JointMaximum(), VarianceBonus()):
        plan = optimistic_plan(mdp.problem, estimate, 0.3, rule)
        assert plan.policy[0, 4].tolist() == [0] * 7  # all actions of the last stage tie
        assert plan.policy[0, :, 6].tolist() == [0] * 5  # and those of absorbing states


def test_the_second_order_bonus_is_clipped_everywhere():
    """V <= H also where an outcome is certain and a reward of 5/1000 is added to H."""
    mdp = livarot.envs.river_swim(4, 6)
    rng = np.random.default_rng(12)
    plan, _, _ = check_against_naive(mdp, SecondOrderBonus(), rng, 50.0, 1e-12)
    assert plan.value.max() <= 6.0


# ---------------------------------------------------------------- certificates
@pytest.mark.parametrize("kind", KINDS)
def test_the_certified_bound_holds_whenever_the_truth_is_inside(kind):
    """About 200 models over the three kinds: upper >= V* and >= what the plan believes; so do bonuses."""
    rng = np.random.default_rng(20 + KINDS.index(kind))
    wide = 0
    for k in range(67):
        H, S = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        model = random_model(
            rng, H=H, S=S, A=int(rng.integers(1, 4)), d=int(rng.integers(1, 5)), U=6,
            kind=kind, offsets=bool(k % 2), scale=10.0 ** rng.uniform(-1, 1),
        )  # fmt: skip
        mdp = to_mdp(model, shared=k % 3 == 0, param_bound=20.0)
        problem = mdp.problem
        estimate, dense = random_estimate(rng, problem, spread=1.0)
        size = 10.0 ** rng.uniform(-2, 0.3)
        estimate = estimate._replace(theta=mdp.theta[None] + size * rng.normal(size=estimate.theta.shape))
        needed = max(ref.norm_in(mdp.theta[j] - estimate.theta[0, j], dense[0, j]) for j in range(len(mdp.theta)))
        radius = needed * (1 + 1e-12) * (1.0 if k % 2 else 1.5)
        optimum = float(problem.start @ livarot.solve(mdp).value[0])
        for rule in (JointMaximum(), JointMaximum(FrankWolfe(5, n_starts=0)), VarianceBonus()):
            plan = optimistic_plan(problem, estimate, radius, rule)
            assert plan.upper[0] >= optimum - 1e-12
            assert plan.upper[0] >= plan.start_value[0] - 1e-12
            assert plan.upper[0] <= H + 1e-12
        assert optimistic_plan(problem, estimate, radius, SecondOrderBonus()).start_value[0] >= optimum - 1e-12
        wide += radius > 1.0
    assert 10 < wide < 60


def test_the_certified_bound_of_very_wide_sets():
    """Logits that may move by thousands: the outcome that matters is far below the largest possible logit."""

    def features(h, s, a):
        return ([0, 1, 2], [[0.0], [1.0], [-0.1]]) if s == 0 else ([s], [[0.0]])

    reward = np.zeros((2, 3, 1))
    reward[1, 2] = 1.0
    mdp = livarot.MNLMDP.from_function(
        2, 3, 1, features=features, reward=reward, theta=[0.0], param_bound=5.0,
        offset=lambda h, s, a: [0.0, -50.0, -100.0] if s == 0 else [0.0],
    )  # fmt: skip
    estimate = livarot.agents.Livarot(reg=1.0).init(mdp.problem).estimate
    for radius in (10.0, 1e3, 4e3, 1e5):
        plan = optimistic_plan(mdp.problem, estimate, radius)
        assert plan.upper[0] >= plan.start_value[0]
        truth = max(float(livarot.core.mnl.softmax([0.0, -50 + x, -100 - 0.1 * x])[2]) for x in (-radius, radius))
        assert plan.upper[0] >= truth - 1e-12


@pytest.mark.parametrize("solver", [FrankWolfe(), FrankWolfe(n_iter=30, n_starts=0), ShiftedPower(max_iter=2)])
def test_other_solvers_stay_below_the_bound(solver):
    rng = np.random.default_rng(21)
    mdp = to_mdp(random_model(rng, S=6, A=3, d=3, U=6))
    estimate, _ = random_estimate(rng, mdp.problem, 3)
    plan = optimistic_plan(mdp.problem, estimate, 2.0, JointMaximum(solver))
    sharp = optimistic_plan(mdp.problem, estimate, 2.0)
    assert np.all(plan.start_value <= plan.upper)
    assert np.all(plan.start_value <= sharp.start_value + 1e-9)
    assert np.all(plan.inner_gap > sharp.inner_gap)
    assert np.all(sharp.inner_gap <= 1e-8)


# ---------------------------------------------------------------- bit for bit
@pytest.mark.parametrize("rule", [*RULES, JointMaximum(FrankWolfe(7))], ids=names)
@pytest.mark.parametrize(
    "shape",
    [
        {"S": 6, "A": 2, "d": 4, "U": 6, "kind": "dense"},
        {"S": 6, "A": 2, "d": 6, "U": 4, "kind": "block"},
        {"S": 6, "A": 3, "d": 6, "U": 4, "kind": "partial"},
        {"S": 24, "A": 6, "d": 3, "U": 3, "kind": "dense"},  # groups of more than 32 pairs
    ],
    ids=["dense", "block", "partial", "large"],
)
def test_replicas_together_are_each_alone(rule, shape):
    """Radii from narrow to wide side by side: neighbours in a batch must not matter."""
    rng = np.random.default_rng(30)
    mdp = to_mdp(random_model(rng, H=3, offsets=True, one_table=True, **shape))
    count = 9
    estimate, _ = random_estimate(rng, mdp.problem, count)
    radius = 10.0 ** rng.uniform(-3, 1, size=count)
    together = optimistic_plan(mdp.problem, estimate, radius, rule)
    for r in range(count):
        alone = optimistic_plan(mdp.problem, replica(estimate, r), radius[r : r + 1], rule)
        mine = tuple(None if part is None else part[r : r + 1] for part in together[:-1])
        assert same_bits(tuple(alone)[:-1], mine), f"replica {r}"
    order = rng.permutation(count)
    shuffled = optimistic_plan(
        mdp.problem,
        type(estimate)(*(np.ascontiguousarray(part[order]) for part in estimate)),
        radius[order],
        rule,
    )
    assert same_bits(shuffled.value, together.value[order])


def test_many_replicas_over_several_batches():
    rng = np.random.default_rng(31)
    mdp = to_mdp(random_model(rng, H=2, S=3, A=2, d=2, U=3))
    estimate, _ = random_estimate(rng, mdp.problem, 150)
    together = optimistic_plan(mdp.problem, estimate, 1.5)
    for r in (0, 63, 64, 127, 128, 149):
        alone = optimistic_plan(mdp.problem, replica(estimate, r), 1.5)
        assert same_bits((alone.value[0], alone.upper[0], alone.inner_gap[0]),
                         (together.value[r], together.upper[r], together.inner_gap[r]))  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=names)
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_actions_does_not_matter(rule, kind):
    """Other neighbours in a batch, the same numbers."""
    rng = np.random.default_rng(32)
    model = random_model(rng, H=3, S=6, A=3, d=4, U=5, kind=kind, offsets=True)
    turned = model | {
        "rows": [[state[::-1] for state in stage] for stage in model["rows"]],
        "reward": model["reward"][:, :, ::-1],
    }
    one, other = to_mdp(model), to_mdp(turned)
    estimate, _ = random_estimate(rng, one.problem, 5)
    radius = 0.03 if isinstance(rule, SecondOrderBonus) else 0.8  # no ties at the clip
    first, second = (optimistic_plan(m.problem, estimate, radius, rule) for m in (one, other))
    assert same_bits(first.value, second.value)
    assert same_bits(first.upper, second.upper)
    np.testing.assert_array_equal(first.policy, np.where(one.problem.reachable[:-1], 2 - second.policy, 0))


def test_a_plan_leaves_its_inputs_alone_and_is_repeatable():
    rng = np.random.default_rng(33)
    mdp = to_mdp(random_model(rng))
    estimate, _ = random_estimate(rng, mdp.problem, 4)
    before = tuple(part.copy() for part in estimate)
    first = optimistic_plan(mdp.problem, estimate, 0.5)
    assert same_bits(tuple(estimate), before)
    assert same_bits(tuple(first), tuple(optimistic_plan(mdp.problem, estimate, np.full(4, 0.5))))
    assert first.policy.dtype == np.int32
    assert first.policy.shape == (4, 3, 4)
    assert first.value.shape == (4, 4, 4)


def test_offsets_enter_pairs_that_theta_does_not_touch():
    """With zero features and offsets the law of the outcomes is known, whatever the radius."""

    def features(h, s, a):
        return [0, 1, 2], np.zeros((3, 2)) if s == 0 else [[0.0, 0.1], [0.5, 0.0], [0.0, 0.0]]

    offset = [0.0, math.log(2.0), math.log(5.0)]
    mdp = livarot.MNLMDP.from_function(
        2,
        3,
        1,
        features=features,
        reward=[[0.0], [0.5], [1.0]],
        theta=[0.1, 0.2],
        offset=lambda h, s, a: offset,
    )
    estimate, _ = random_estimate(np.random.default_rng(34), mdp.problem)
    for rule in RULES[:3]:
        plan = optimistic_plan(mdp.problem, estimate, 5.0, rule)
        assert plan.value[0, 0, 0] == pytest.approx((2 * 0.5 + 5) / 8, abs=1e-12)
    assert rows_of(mdp)[0][0][0][2].tolist() == offset


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_pairs_of_one_shape_that_use_all_and_part_of_their_blocks(rule):
    """Two outcomes and one column each: half of a block of two, and a block of its own, side by side."""

    def features(h, s, a):
        if a == 1:
            return ([0, s], [[0, 0, 1], [0, 0, 0]]) if s else ([0], [[0, 0, 0]])
        return ([s + 1, s], [[1, s / 3, 0], [0, 0, 0]]) if s < 3 else ([3], [[0, 0, 0]])

    reward = np.random.default_rng(3).random((4, 4, 2))
    mdp = livarot.MNLMDP.from_function(
        4, 4, 2, features=features, reward=reward, theta=[-1.0, 2.0, 1.0], normalise=True, start=np.full(4, 0.25)
    )
    assert sorted(np.diff(mdp.problem.rows.graph.block_start)) == [1, 2]
    check_against_naive(mdp, rule, np.random.default_rng(8), 0.7, 1e-7)
