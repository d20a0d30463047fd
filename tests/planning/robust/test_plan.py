"""Robust planning: 50 digits, twins, duality, propositions on 12,000 random MDPs, the paper's own bound."""

import doctest
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import livarot
from livarot.errors import LivarotError
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.planning.exact import solve_kernel
from livarot.planning.robust.kl import worst_case
from livarot.planning.robust.nominal import nominal_model
from livarot.planning.robust.plan import evaluate_robust, solve_robust
from tests.support.models import random_model, rows_of, to_mdp
from tests.twins import robust as ref


# ---------------------------------------------------------------- backward induction, against the twin
def plain_rows(mdp):
    problem = mdp.problem
    return [
        [
            [([int(x) for x in rows_of(mdp)[h][s][a][0]], mdp.probabilities(h, s, a)) for a in range(problem.n_actions)]
            for s in range(problem.n_states)
        ]
        for h in range(problem.horizon)
    ]


LEVELS = [
    {"radius": 0.02},
    {"radius": 0.4},
    {"radius": 9.0},
    {"penalty": 0.3},
    {"penalty": 5.0},
    {"penalty": 2.0, "count_penalty": False},
]


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("one_table", [False, True])
def test_solve_and_evaluate_against_the_twin(level, one_table):
    rng = np.random.default_rng(7)
    model = random_model(rng, H=3, S=5, A=2, d=3, U=4, offsets=True, scale=2.0, one_table=one_table)
    mdp = to_mdp(model, shared=one_table)
    rows, reward = plain_rows(mdp), mdp.problem.reward
    found, exact = solve_robust(mdp, **level), ref.solve(rows, reward, **level)
    np.testing.assert_allclose(found.value, exact["value"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.q, exact["q"], rtol=0, atol=1e-11)
    assert found.gap <= 1e-12
    assert found.policy.dtype == np.int32
    np.testing.assert_array_equal(found.policy, found.q.argmax(axis=2))
    start, variance = mdp.problem.rows.row_start, np.empty((3, 5))
    for h, s, a in np.ndindex(3, 5, 2):
        pair = mdp.problem.pair(h, s, a)
        worst = found.kernel.prob[found.kernel.base[h] + start[pair] : found.kernel.base[h] + start[pair + 1]]
        np.testing.assert_allclose(worst, exact["kernel"][h][s][a], rtol=0, atol=1e-9)
        if a == found.policy[h, s]:
            v = found.value[h + 1, mdp.problem.next_states(h, s, a)]
            variance[h, s] = worst @ (v - worst @ v) ** 2
    np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-12)
    sure, mixed = rng.integers(2, size=(3, 5)), rng.dirichlet(np.ones(2), size=(3, 5))
    for policy in (sure, mixed, found.policy):
        twin = ref.solve(rows, reward, policy=policy, **level)["value"]
        np.testing.assert_allclose(evaluate_robust(mdp, policy, **level), twin, rtol=0, atol=1e-11)
    assert (evaluate_robust(mdp, sure, **level) <= found.value + 1e-12).all() or not level.get("count_penalty", True)


def test_levels_per_pair_and_per_stage():
    rng = np.random.default_rng(3)
    mdp = to_mdp(random_model(rng, H=3, S=5, A=2, U=4, scale=2.0))
    rows, reward = plain_rows(mdp), mdp.problem.reward
    for name in ("radius", "penalty"):
        full = rng.random((3, 5, 2)) * (rng.random((3, 5, 2)) < 0.7)
        found, exact = solve_robust(mdp, **{name: full}), ref.solve(rows, reward, **{name: full})
        np.testing.assert_allclose(found.value, exact["value"], rtol=0, atol=1e-11)
        table = np.tile(full[0], (3, 1, 1))
        one, other = solve_robust(mdp, **{name: full[0]}), solve_robust(mdp, **{name: table})
        np.testing.assert_array_equal(one.value, other.value)
        number, same = solve_robust(mdp, **{name: 0.2}), solve_robust(mdp, **{name: np.full((5, 2), 0.2)})
        np.testing.assert_array_equal(number.q, same.q)


@pytest.mark.parametrize("name", ["radius", "penalty"])
def test_zero_is_the_nominal_solution_bit_for_bit(name):
    mdp = to_mdp(random_model(np.random.default_rng(5), H=4, S=6, A=3, U=4, scale=2.0))
    plain = livarot.solve(mdp)
    for zero in (0.0, 0, np.zeros((6, 3)), np.zeros((4, 6, 3))):
        found = solve_robust(mdp, **{name: zero})
        for part in ("value", "q", "policy", "variance"):
            np.testing.assert_array_equal(getattr(found, part), getattr(plain, part))
        nominal = transition_kernel(mdp)
        np.testing.assert_array_equal(
            found.kernel.prob[found.kernel.base[2] :][:5], nominal.prob[nominal.base[2] :][:5]
        )
    level = np.zeros((4, 6, 3))
    level[3] = 1e-3  # V is 0 after the last stage: no adversary can do anything there
    np.testing.assert_allclose(solve_robust(mdp, **{name: level}).value, plain.value, rtol=0, atol=1e-14)
    policy = np.random.default_rng(1).integers(3, size=(4, 6))
    exact = livarot.evaluate(mdp, policy)
    np.testing.assert_allclose(evaluate_robust(mdp, policy, **{name: 0.0}), exact, rtol=0, atol=1e-13)


def test_the_ball_is_the_optimum_of_its_worst_case_kernel():
    """A saddle point: the policy is optimal in the worst-case MDP, and that kernel is worst for the policy."""
    mdp = livarot.envs.river_swim(6, 20)
    for radius in (1e-4, 0.01, 0.1, 1.0):
        found = solve_robust(mdp, radius=radius)
        plain = solve_kernel(mdp.problem, found.kernel)
        np.testing.assert_allclose(plain.value, found.value, rtol=0, atol=1e-12)
        np.testing.assert_allclose(evaluate_robust(mdp, found.policy, radius=radius), found.value, rtol=0, atol=1e-12)


def test_neighbours_and_order_do_not_matter():
    """A pair's answer is the same, bit for bit, whatever stands in the other lanes."""
    rng = np.random.default_rng(11)
    mdp = to_mdp(random_model(rng, H=2, S=50, A=2, U=6, scale=2.0))
    level = rng.random((50, 2))
    whole = solve_robust(mdp, radius=level)
    policy = rng.integers(2, size=(2, 50))
    value = evaluate_robust(mdp, policy, radius=level)  # other pairs side by side
    np.testing.assert_array_equal(value[1], whole.q[1][np.arange(50), policy[1]])


# ---------------------------------------------------------------- nominal models


def refused(call, *parts):
    with pytest.raises(LivarotError) as caught:
        call()
    for text in parts:
        assert text in str(caught.value), str(caught.value)


def test_bad_input():
    mdp = livarot.envs.river_swim(3, 4)
    refused(lambda: solve_robust(mdp), "radius", "both missing", "exactly one")
    refused(lambda: solve_robust(mdp, radius=0.1, penalty=1.0), "radius", "both given", "exactly one")
    refused(lambda: solve_robust(mdp, radius=-0.1), "radius: -0.1 is negative", "nominal model")
    refused(lambda: solve_robust(mdp, penalty=-1), "penalty: -1 is negative", "penalties >= 0")
    level = np.full((4, 3, 2), 0.1)
    level[2, 1, 0] = level[3, 0, 1] = -1.0
    refused(lambda: solve_robust(mdp, radius=level), "radius", "(2 in all, first at index (2, 1, 0))")
    level[2, 1, 0] = math.nan
    refused(lambda: solve_robust(mdp, penalty=level), "penalty: NaN or infinite (1 in all, first at index (2, 1, 0))")
    refused(lambda: solve_robust(mdp, radius=math.inf), "radius: NaN or infinite")
    refused(lambda: solve_robust(mdp, radius=np.ones(3)), "radius: has shape (3,)", "(3, 2) or (4, 3, 2)")
    refused(lambda: evaluate_robust(mdp, np.zeros((4, 3), int)), "both missing")
    refused(lambda: evaluate_robust(mdp, np.zeros((4, 2), int), radius=0.1), "policy")
    refused(lambda: solve_robust(np.ones((2, 2)), radius=0.1), "nominal: is a ndarray", "nominal_model")
    table = np.full((3, 2, 3), 1 / 3)
    table[1, 1] = [0.5, 0.5, 0.1]
    refused(lambda: nominal_model(table, np.zeros((3, 2)), 4), "transitions", "sum to 1.1", "(0, 1, 1)", "by its sum")
    table[1, 1] = [1.5, -0.5, 0.0]
    refused(lambda: nominal_model(table, np.zeros((3, 2)), 4), "negative", "1 in all, first at index (0, 1, 1)", ">= 0")
    table[1, 1] = [math.nan, 1.0, math.inf]
    refused(lambda: nominal_model(table, np.zeros((3, 2)), 4), "NaN or infinite", "2 in all, first at index (0, 1, 1)")
    refused(lambda: nominal_model(table[:2], np.zeros((3, 2)), 4), "transitions: has shape (2, 2, 3)")
    refused(lambda: nominal_model([csr_array(np.eye(3))] * 2, np.zeros((3, 1)), 4), "has 2 stages, the horizon is 4")
    refused(lambda: nominal_model(csr_array((6, 3)), np.zeros((3, 2)), 4), "sum to 0", "6 in all")
    problem, kernel = mdp.problem, transition_kernel(mdp)
    wrong = kernel.prob.copy()
    wrong[kernel.base[2] + 1] += 0.01
    refused(lambda: solve_robust((problem, Kernel(wrong, kernel.base)), radius=0.1), "nominal", "index (2, 0, 1)")
    refused(lambda: solve_robust((problem, Kernel(kernel.prob[:-9], kernel.base)), radius=0.1), "nominal", "stage")
    refused(lambda: worst_case([1.0, 2.0], [0.5, 0.6], radius=0.1), "nominal", "sums to 1.1")
    refused(lambda: worst_case([1.0, 2.0], [1.5, -0.5], radius=0.1), "nominal", "negative", "index 1")
    refused(lambda: worst_case([1.0], [0.5, 0.5], radius=0.1), "nominal", "one length")
    refused(lambda: worst_case([1.0, 2.0], [0.5, 0.5], radius=-1.0), "radius")


# ---------------------------------------------------------------- propositions on 12,000 random MDPs
def many_mdps(rng, n_mdps, S, A, horizon):
    """Independent small MDPs side by side in one model; ragged supports, probabilities from even to extreme."""
    blocks = n_mdps * S * A
    size = rng.integers(1, S + 1, size=blocks)
    order = rng.random((blocks, S)).argsort(axis=1)
    keep = np.arange(S) < size[:, None]
    weights = rng.gamma(10.0 ** rng.uniform(-1, 1, size=(blocks, 1)), size=(blocks, S)) + 1e-12
    weights = np.where(keep, weights, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    mdp = np.repeat(np.arange(n_mdps), S * A)
    row = np.repeat(np.arange(blocks), size)
    table = csr_array((weights[keep], (row, (mdp[:, None] * S + order)[keep])), shape=(blocks, n_mdps * S))
    reward = rng.random((n_mdps * S, A)) * (rng.random((n_mdps * S, A)) < 0.7)
    least = np.where(keep, weights, 1.0).min(axis=1).reshape(n_mdps * S, A)
    return nominal_model(table, reward, horizon), least


def per_mdp(levels, S, A):
    return np.repeat(levels, S)[:, None] * np.ones(A)


def stage_rows(model, kernel, h):
    """Probabilities of all rows of a stage, and the first row of each pair (one table)."""
    starts = model.problem.rows.row_start
    return kernel.prob[kernel.base[h] : kernel.base[h] + starts[-1]], starts[:-1]


def worst_state(problem):
    """Backward induction against an adversary who picks the next state."""
    value = np.zeros((problem.horizon + 1, problem.n_states))
    for h in reversed(range(problem.horizon)):
        low = np.minimum.reduceat(value[h + 1][problem.rows.next_state], problem.rows.row_start[:-1])
        value[h] = (problem.reward[h] + low.reshape(problem.n_states, -1)).max(axis=1)
    return value


@pytest.mark.parametrize(("n_mdps", "S", "A", "horizon"), [(4000, 3, 2, 2), (4000, 4, 2, 5), (4000, 5, 3, 10)])
def test_propositions(n_mdps, S, A, horizon):
    rng = np.random.default_rng(horizon)
    model, least = many_mdps(rng, n_mdps, S, A, horizon)
    problem = model.problem
    nominal, bottom = solve_kernel(*model).value, worst_state(problem)
    slack = 1e-9
    small = 10.0 ** rng.uniform(-8, 1, size=n_mdps)
    large = small * 10.0 ** rng.uniform(0, 1, size=n_mdps)
    # a ball: between the worst next state and the nominal value, and smaller for a larger radius
    ball = solve_robust(model, radius=per_mdp(small, S, A))
    wider = solve_robust(model, radius=per_mdp(large, S, A))
    assert (ball.value <= nominal + slack).all() and (wider.value <= ball.value + slack).all()
    assert (wider.value >= bottom - slack).all()
    assert ball.gap <= 1e-12 and wider.gap <= 1e-12
    # a penalty: the same, with and without its cost
    eta = 10.0 ** rng.uniform(-4, 3, size=n_mdps)
    more = eta * 10.0 ** rng.uniform(0, 1, size=n_mdps)
    soft = solve_robust(model, penalty=per_mdp(eta, S, A))
    sharp = solve_robust(model, penalty=per_mdp(more, S, A))
    tilted = solve_robust(model, penalty=per_mdp(eta, S, A), count_penalty=False)
    assert (soft.value <= nominal + slack).all() and (sharp.value <= soft.value + slack).all()
    assert (sharp.value >= bottom - slack).all()
    assert (tilted.value <= nominal + slack).all() and (tilted.value >= bottom - slack).all()
    # weak duality, stage after stage: the ball is at least the penalised value minus what the divergence may cost
    price = np.repeat(small / eta, S) * np.arange(horizon, -1, -1)[:, None]
    assert (ball.value >= soft.value - price - slack).all()
    # both ends of the range of levels
    near = solve_robust(model, radius=1e-24)  # Pinsker: at most sqrt(eps/2) times the range, H stages of it
    np.testing.assert_allclose(near.value, nominal, rtol=0, atol=1e-9)
    np.testing.assert_allclose(solve_robust(model, penalty=1e-12).value, nominal, rtol=0, atol=1e-9)
    np.testing.assert_allclose(solve_robust(model, radius=1e3).value, bottom, rtol=0, atol=1e-12)
    np.testing.assert_allclose(solve_robust(model, penalty=1e12).value, bottom, rtol=0, atol=1e-9)
    # the variance under a tilt eta, with log(1/min p0) in place of log U (E37), and by Popoviciu
    for found in (soft, tilted, sharp):
        slope = per_mdp(more if found is sharp else eta, S, A)
        for h in range(horizon):
            worst, starts = stage_rows(model, found.kernel, h)
            follow = found.value[h + 1][problem.rows.next_state]
            np.testing.assert_allclose(np.add.reduceat(worst, starts), 1.0, rtol=0, atol=1e-13)
            first = np.repeat(np.add.reduceat(worst * follow, starts), problem.rows.outcomes)
            variance = np.add.reduceat(worst * (follow - first) ** 2, starts).reshape(slope.shape)
            depth = np.log(1.0 / least)
            assert (variance <= (depth**2 + 2 * depth + 2) / slope**2 + slack).all()
            high = np.maximum.reduceat(follow, starts) - np.minimum.reduceat(follow, starts)
            assert (variance <= (high**2 / 4).reshape(slope.shape) + slack).all()
            chosen = variance[np.arange(len(variance)), found.policy[h]]
            np.testing.assert_allclose(found.variance[h], chosen, rtol=0, atol=1e-11)
    # the ball's kernel is inside it and gives the value; without its cost a tilt is the ball of its own radius
    radii = np.empty((horizon, n_mdps * S, A))
    for found, is_ball in ((ball, True), (tilted, False)):
        for h in range(horizon):
            worst, starts = stage_rows(model, found.kernel, h)
            p0, _ = stage_rows(model, model.kernel, h)
            ratio = np.where(worst > 0, worst, 1.0) / np.where(worst > 0, p0, 1.0)
            kl = np.maximum(np.add.reduceat(worst * np.log(ratio), starts), 0.0).reshape(n_mdps * S, A)
            radii[h] = kl
            if is_ball:
                assert (kl <= per_mdp(small, S, A) * (1 + 1e-9) + 1e-13).all()
        plain = solve_kernel(problem, found.kernel)
        np.testing.assert_allclose(plain.value, found.value, rtol=0, atol=1e-11)
    again = solve_robust(model, radius=radii)
    np.testing.assert_allclose(again.value, tilted.value, rtol=0, atol=1e-6)  # KL from p0 carries 1e-16 / its root


# ---------------------------------------------------------------- the paper's proposition
def test_the_printed_variance_bound_is_false():
    """p0(argmin V) = exp(-eta H), H = 10, eta = 2: the variance is 25, the printed bound 0.97 (E37)."""
    H, eta, U = 10, 2.0, 2
    table = np.zeros((3, 1, 3))
    table[0, 0] = [0.0, math.exp(-eta * H), -math.expm1(-eta * H)]  # to a state that pays nothing, or 1 at each stage
    table[1, 0, 1] = table[2, 0, 2] = 1.0
    model = nominal_model(table, [[0.0], [0.0], [1.0]], H + 1)
    for count in (True, False):
        found = solve_robust(model, penalty=eta, count_penalty=count)
        worst, _ = stage_rows(model, found.kernel, 0)
        np.testing.assert_allclose(worst[:2], 0.5, rtol=0, atol=1e-8)
        assert found.variance[0, 0] == pytest.approx(25.0, abs=1e-6)
        printed = (math.log(U) ** 2 + 2 * math.log(U) + 2) / eta**2
        assert printed == pytest.approx(0.967, abs=1e-3)
        assert found.variance[0, 0] > 25 * printed
        depth = eta * H
        assert found.variance[0, 0] <= (depth**2 + 2 * depth + 2) / eta**2


def test_leaving_the_penalty_out_is_not_monotone():
    """A next state that gets worse can raise E_p V when the divergence is not paid for; when it is, it never does."""
    p0 = [0.5, 0.5]
    better, worse = worst_case([0.0, 5.0], p0, penalty=1.0), worst_case([0.0, 3.0], p0, penalty=1.0)
    assert worse.value < better.value
    mean = [found.probabilities @ np.array(v) for found, v in ((better, [0.0, 5.0]), (worse, [0.0, 3.0]))]
    assert mean[0] == pytest.approx(5 * math.exp(-5) / (1 + math.exp(-5)), abs=1e-15)
    assert mean[1] > 4 * mean[0]
    # and so the value of a whole MDP can rise with eta: at 12 the adversary takes the middle state's prize away,
    # which makes that state so poor that he no longer cares to keep the start from it
    table = np.zeros((4, 1, 4))
    table[0, 0, 1:3] = 0.5
    table[2, 0, [1, 3]] = [math.exp(-10.0), -math.expm1(-10.0)]
    table[1, 0, 1] = table[3, 0, 3] = 1.0
    reward = np.zeros((3, 4, 1))
    reward[1, 2], reward[2, 3] = 0.1, 1.0
    model = nominal_model(table, reward, 3)
    tilted = [solve_robust(model, penalty=eta, count_penalty=False).value[0, 0] for eta in (9.0, 12.0)]
    soft = [solve_robust(model, penalty=eta).value[0, 0] for eta in (9.0, 12.0)]
    assert tilted[1] > 20 * tilted[0] and soft[1] < soft[0]


WITHOUT_COMPILER = """
import json, livarot, numpy as np
from livarot.model.probabilities import transition_kernel
from livarot.model.tabular_view import laws_of
from livarot.estimation.omd import initial_estimate
from livarot.planning.robust.plan import evaluate_robust, solve_robust
from livarot.planning.sampling import LargestNormSampling, OutcomeSampling, sampled_plan
from livarot.planning.robust.kl import worst_case
from livarot.planning import empirical as tabular
models = livarot.envs.hard_chain(3), livarot.envs.river_swim(4, 3)
found = [solve_robust(mdp, radius=r).value.tolist() for mdp in models for r in (0.0, 1e-8, 0.1, 50.0)]
found += [solve_robust(mdp, penalty=2.0).value.tolist() for mdp in models]
found += [solve_robust(mdp, radius=0.1).kernel.prob.tolist() for mdp in models]
found += [worst_case(v, [0.5, 0.3, 0.2], radius=0.2).value for v in ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])]
rng = np.random.default_rng(0)
for mdp in models:
    problem, best = mdp.problem, livarot.solve(mdp)
    even = np.full(problem.reward.shape, 1.0 / problem.n_actions)
    found += [array.tolist() for array in (transition_kernel(mdp).prob, *best)]
    found += [livarot.evaluate(mdp, policy).tolist() for policy in (best.policy, even)]
    found += [evaluate_robust(mdp, policy, radius=0.1).tolist() for policy in (best.policy, even)]
    estimate, normals = initial_estimate(problem, 2, 1.0), rng.normal(size=(2, problem.horizon, 3, problem.dim))
    for rule in (LargestNormSampling(), OutcomeSampling()):
        found.append(sampled_plan(problem, estimate, 0.3, rule, normals).value.tolist())
    for known in (True, False):
        laws = laws_of(problem, known)
        counts, shape = rng.integers(0, 4, (2, len(laws.next_state))), (2, *problem.reward.shape)
        code, q = tabular.BonusCode(1.0, 1.0, 1.0, 1.0, 1.0, 1.0), np.full(shape, 9.0)
        found.append(tabular.bonus_values(problem, laws, counts, code, rng.integers(0, 3, shape[:3]), q).value.tolist())
        found.append(q.tolist())
        found.append(tabular.noisy_values(problem, laws, counts, rng.normal(size=shape), 0.5, 0.1).value.tolist())
        found.append(tabular.sampled_values(problem, laws, rng.random(counts.shape)).value.tolist())
        values = tabular.empty_values(problem, 2)
        tabular.optimistic_values(problem, laws, counts, np.full(2, 0.7), np.ones(2, dtype=bool), values)
        found.append(values.value.tolist())
bandit = livarot.envs.mnl_bandit()
for agent in (livarot.agents.OFULMLogB(), livarot.agents.OFUMNLPP()):
    found.append(agent.plan(bandit.problem, agent.init(bandit.problem, 2), None).value.tolist())
print(json.dumps(found))
"""


def test_plans_are_the_same_without_the_compiler():
    """NUMBA_DISABLE_JIT=1 is for stepping through: lanes that have nothing to solve divide by zero there, silently."""
    found = []
    for disabled in ("0", "1"):
        env = os.environ | {"NUMBA_DISABLE_JIT": disabled}
        command = [sys.executable, "-W", "error::RuntimeWarning", "-c", WITHOUT_COMPILER]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-12, atol=1e-12)


def test_the_examples_of_the_document():
    path = Path(__file__).parents[3] / "docs" / "robust.md"
    found = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 8 and found.failed == 0
