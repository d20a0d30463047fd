"""Exact planning: against the twins, all policies, and the closed forms of the hard chain."""

import math

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, agents, envs
from tests.support.episodes import judged
from tests.support.models import random_model, to_mdp, to_model
from tests.twins import core as ref

KINDS = ["dense", "block", "partial"]


# ---------------------------------------------------------------- solve
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_solve_against_the_twin(kind, seed):
    model = random_model(np.random.default_rng(seed), H=5, S=6, A=3, d=6, U=5, kind=kind, offsets=True, scale=3.0)
    found = livarot.solve(to_mdp(model))
    exact = ref.solve(model["rows"], model["theta"], model["reward"])
    np.testing.assert_allclose(found.value, exact["value"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.q, exact["q"], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.policy, exact["policy"])
    np.testing.assert_allclose(found.variance, exact["variance"], rtol=0, atol=1e-12)
    assert found.policy.dtype == np.int32


@pytest.mark.parametrize("seed", range(3))
def test_solve_is_the_best_of_all_policies(seed):
    rng = np.random.default_rng(seed)
    for H, S in ((3, 2), (2, 4)):
        model = random_model(rng, H=H, S=S, A=2, d=2, U=3, offsets=True, scale=2.0)
        best = ref.brute_force_solve(model["rows"], model["theta"], model["reward"])
        np.testing.assert_allclose(livarot.solve(to_mdp(model)).value[0], best, rtol=0, atol=1e-12)


def test_states_that_the_start_cannot_reach_are_solved_too():
    mdp = envs.hard_chain(5, gap=0.1)
    model = to_model(mdp)
    exact = ref.solve(model["rows"], model["theta"], model["reward"])
    np.testing.assert_allclose(livarot.solve(mdp).value, exact["value"], atol=1e-12)
    assert livarot.solve(mdp).value[0, 4] > 0  # not reachable at stage 0


def tied(values, reward=0.0, wide=0):
    """Action a leads to one state for sure; action ``wide`` to the ends around it, with probability 1/2 each."""

    def features(h, s, a):
        if h == 0 and s == 0 and a == wide:
            return [1, 3], [[0.0], [0.0]]
        return ([2], [[0.0]]) if h == 0 and s == 0 else ([s], [[0.0]])

    pay = np.zeros((2, 4, len(values)))
    pay[1, 1:] = np.array([0.0, 0.5, 1.0])[:, None]
    pay[0, 0] = values
    return MNLMDP.from_function(2, 4, len(values), features=features, reward=pay, theta=[0.0])


@pytest.mark.parametrize(
    ("rewards", "wide", "policy"),
    [
        ([0.0, 0.0, 0.0], 0, 0),
        ([0.0, 0.0, 0.0], 2, 2),  # equal Q: the larger variance
        ([0.0, 2e-10, 0.0], 2, 2),  # within 1e-9 (1 + |Q|)
        ([0.0, 2e-9, 0.0], 2, 1),  # not within it
        ([0.0, 0.0, 1e-3], 0, 2),
        ([0.0, 0.0], 5, 0),  # equal variances: the first
    ],
)
def test_ties_go_to_the_larger_variance_then_to_the_first(rewards, wide, policy):
    mdp = tied(rewards, wide=wide)
    best = livarot.solve(mdp)
    assert best.policy[0, 0] == policy
    assert best.variance[0, 0] == pytest.approx(0.25 if policy == wide else 0.0)
    assert best.value[0, 0] == pytest.approx(0.5 + max(rewards), abs=1e-15)


# ---------------------------------------------------------------- evaluate
@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_against_the_twin(kind):
    rng = np.random.default_rng(5)
    model = random_model(rng, H=4, S=5, A=3, d=6, U=4, kind=kind, offsets=True, scale=2.0)
    mdp, twin = to_mdp(model), (model["rows"], model["theta"], model["reward"])
    for _ in range(3):
        sure = rng.integers(3, size=(4, 5))
        np.testing.assert_allclose(livarot.evaluate(mdp, sure), ref.evaluate(*twin, sure), rtol=0, atol=1e-12)
        mixed = rng.dirichlet(np.ones(3), size=(4, 5))
        np.testing.assert_allclose(livarot.evaluate(mdp, mixed), ref.evaluate(*twin, mixed), rtol=0, atol=1e-12)
        one_hot = np.eye(3)[sure]
        np.testing.assert_allclose(livarot.evaluate(mdp, one_hot), livarot.evaluate(mdp, sure), rtol=0, atol=1e-13)
    best = livarot.solve(mdp)
    np.testing.assert_allclose(livarot.evaluate(mdp, best.policy), best.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_judge_evaluates_like_evaluate(kind):
    rng = np.random.default_rng(6)
    model = random_model(rng, H=4, S=5, A=3, d=6, U=4, kind=kind)
    mdps = [to_mdp(model | {"theta": t}, param_bound=9.0) for t in (model["theta"], -model["theta"])]
    sure, mixed = rng.integers(3, size=(2, 4, 5)).astype(np.int32), rng.dirichlet(np.ones(3), size=(2, 4, 5))
    for policy in (sure, mixed):
        regret = judged(mdps, livarot.Plan(policy), 2)[0].regret[0]
        for r in range(2):
            start = mdps[r].problem.start
            exact = start @ (livarot.solve(mdps[r]).value[0] - livarot.evaluate(mdps[r], policy[r])[0])
            assert regret[r] == pytest.approx(exact, abs=1e-12)


def test_policies_of_any_integer_type():
    mdp = envs.river_swim(4, 5)
    policy = livarot.solve(mdp).policy
    for kind in (np.int8, np.int64, np.uint16):
        np.testing.assert_array_equal(livarot.evaluate(mdp, policy.astype(kind)), livarot.evaluate(mdp, policy))


# ---------------------------------------------------------------- the hard chain in closed form
# H: p*, p worst, bD, B, kappa, V1*, gap of the worst and of the uniform policy (d = 2, T = 1000).  kappa is
# 1 / min p p' at theta*; over the whole ball |theta| <= B it is 21.9 and 32.7 for H = 20 and 30
# (tests/theory/test_constants.py).
TABLE = {
    3: (0.336561, 0.330121, 0.01449, 0.709, 4.5, 0.8964, 0.0150, 0.0075),
    5: (0.202500, 0.197523, 0.01555, 1.403, 6.3, 1.6548, 0.0327, 0.0163),
    10: (0.101768, 0.098260, 0.01949, 2.223, 11.3, 3.5332, 0.0926, 0.0461),
    20: (0.051250, 0.048779, 0.02601, 2.987, 21.55, 7.3009, 0.2611, 0.1296),
    30: (0.034354, 0.032342, 0.03122, 3.424, 31.95, 11.0904, 0.4783, 0.2370),
}


@pytest.mark.parametrize("H", TABLE)
def test_the_table_of_the_hard_chain(H):
    p_best, p_worst, bar, bound, kappa, value, gap_worst, gap_uniform = TABLE[H]
    mdp = envs.hard_chain(H, n_episodes=1000, param_bound="tight")
    best = livarot.solve(mdp)
    found = [mdp.probabilities(0, 0, a)[1] for a in range(2)]
    assert max(found) == pytest.approx(p_best, abs=1e-6)
    assert min(found) == pytest.approx(p_worst, abs=1e-6)
    assert mdp.problem.param_bound == pytest.approx(bound, abs=1e-3)
    logit = [math.log(p / (1 - p)) for p in found]
    assert (max(logit) - min(logit)) / 2 == pytest.approx(bar, abs=1e-5)
    rows = [mdp.probabilities(h, h, a) for h in range(H) for a in range(2)]
    assert 1 / min(p[0] * p[1] for p in rows) == pytest.approx(kappa, abs=0.05)
    assert kappa == pytest.approx(1 / (p_worst * (1 - p_worst)), abs=0.05)
    assert best.value[0, 0] == pytest.approx(value, abs=1e-4)
    worst = livarot.evaluate(mdp, 1 - best.policy)[0, 0]
    # at the last stage all actions tie, so the complement of pi* is the worst policy
    assert best.value[0, 0] - worst == pytest.approx(gap_worst, abs=1e-4)
    uniform = livarot.evaluate(mdp, np.full((H, H + 2, 2), 0.5))[0, 0]
    assert best.value[0, 0] - uniform == pytest.approx(gap_uniform, abs=1e-4)
    run = livarot.run(mdp, agents.Uniform(), 2)
    np.testing.assert_allclose(run.regret, best.value[0, 0] - uniform, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("H", "d", "gap"), [(3, 2, None), (6, 2, 0.2), (5, 3, 0.1), (8, 4, None), (2, 2, 0.1)])
def test_closed_forms_of_the_hard_chain(H, d, gap):
    T = 500
    mdp = envs.hard_chain(H, n_episodes=T, dim=d, gap=gap, seed=3)
    best = livarot.solve(mdp)
    step = 1 / (4 * math.sqrt(2 * H * T)) if gap is None else gap
    p = 1 / H + (d - 1) * step
    fail = 1 - p
    for h in range(H):  # stages from 0: H - h remain
        left = H - h
        assert best.value[h, H + 1] == pytest.approx(left, abs=1e-12)
        assert best.value[h, H] == 0.0
        exact = left - (1 - fail**left) / p  # V at s_h: what the good state would pay minus DeltaV
        assert best.value[h, h] == pytest.approx(exact, abs=1e-12)
        gain = (1 - fail ** (left - 1)) / p
        assert best.value[h + 1, H + 1] - best.value[h + 1, h + 1] == pytest.approx(gain, abs=1e-12)
        spread = fail * (1 - fail ** (left - 1)) ** 2 / p
        assert best.variance[h, h] == pytest.approx(spread, abs=1e-12)
        sure = mdp.probabilities(h, h, best.policy[h, h])
        assert h == H - 1 or sure[1] == pytest.approx(p, abs=1e-12)
    signs = np.sign(mdp.theta[:, : d - 1])
    for h in range(H - 1):  # the best action is the sign vector
        bits = (signs[h] > 0).astype(int)
        assert best.policy[h, h] == int("".join(map(str, bits)), 2)
        tilt = math.log((1 - 1 / H) * p / ((1 / H) * (1 - p))) / (d - 1)
        for a in range(2 ** (d - 1)):
            match = signs[h] @ [1 if c == "1" else -1 for c in f"{a:0{d - 1}b}"]
            p_a = 1 / (1 + (H - 1) * math.exp(-tilt * match))
            assert mdp.probabilities(h, h, a)[1] == pytest.approx(p_a, abs=1e-12)


def test_the_last_stage_of_the_chain_ties():
    mdp = envs.hard_chain(6, gap=0.1, dim=3)
    best = livarot.solve(mdp)
    assert np.ptp(best.q[5, 5]) == 0.0
    assert best.policy[5].tolist() == [0] * 8


@pytest.mark.parametrize(("size", "value"), [((4, 12), 2.6627), ((6, 20), 3.3973), ((8, 24), 2.6226)])
def test_river_swim_values(size, value):
    assert livarot.solve(envs.river_swim(*size)).value[0, 0] == pytest.approx(value, abs=5e-5)


def test_a_model_of_the_library_and_of_the_twin_have_the_same_optimum():
    for mdp in (envs.hard_chain(6, gap=0.1), envs.river_swim(5, 8), envs.river_swim(4, 6, features="moves")):
        model = to_model(mdp)
        exact = ref.solve(model["rows"], model["theta"], model["reward"])
        np.testing.assert_allclose(livarot.solve(mdp).value, exact["value"], rtol=0, atol=1e-12)
