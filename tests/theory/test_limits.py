"""The sign oracle run by run, and the rate of log T against Lai and Robbins and against random alternatives."""

import itertools
import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs.problems import hard
from livarot.errors import LivarotError
from livarot.simulation.streams import stream
from livarot.theory import chain_log_rate, limits, sign_oracle
from livarot.theory.limits import least_visits


def twin(H, T, gap, d, seed, rule, jitter=0.0):
    """One run of the oracle, loop by loop, judged by the library's planner."""
    n, bias = d - 1, [0.0] * H
    mdp = envs.hard_chain(H, dim=d, gap=gap, seed=seed)
    if jitter:
        drawn = stream(seed, "sign oracle bias").normal(0.0, jitter, (1, H))[0]
        bias = [max(-3 * jitter, min(3 * jitter, float(e))) for e in drawn]
    vectors = list(itertools.product((-1, 1), repeat=n))
    p_best = 1 / H + n * gap
    tilt = math.log((1 - 1 / H) * p_best / (1 / H * (1 - p_best))) / n

    def good(x, a, h):
        return 1 / (1 + (H - 1) * math.exp(bias[h] - tilt * sum(i * j for i, j in zip(x, a, strict=True))))

    draws = stream(seed, "sign oracle")
    truth = draws.integers(len(vectors), size=(1, H))[0]
    scale = 1 / abs(mdp.problem.features(0, 0, 0)[0, 0])
    theta = mdp.theta.copy()
    theta[:, :n] = tilt * scale * np.array([vectors[i] for i in truth])
    theta[:, n] *= 1 + np.array(bias) / math.log(H - 1)
    mdp = livarot.MNLMDP(mdp.problem, theta)
    weight = np.ones((H, len(vectors))) / len(vectors)
    actions, total = [0] * H, 0.0
    optimum = livarot.solve(mdp).value[0, 0]
    for _ in range(T):
        policy = np.zeros((H, H + 2), dtype=int)
        for h in range(H):
            policy[h, h] = actions[h]
        total += optimum - livarot.evaluate(mdp, policy)[0, 0]
        u = draws.random((1, H))[0]
        for h in range(H):
            p = [good(x, vectors[actions[h]], h) for x in vectors]
            falls = u[h] < p[truth[h]]
            weight[h] *= p if falls else 1 - np.array(p)
            weight[h] /= weight[h].sum()
            worth = (
                weight[h]
                if rule == "most probable"
                else [sum(w * good(x, a, h) for w, x in zip(weight[h], vectors, strict=True)) for a in vectors]
            )
            actions[h] = next(i for i in range(len(vectors)) if worth[i] >= max(worth) * (1 - 1e-9))
            if falls:
                break
    return total


@pytest.mark.parametrize("rule", ["most probable", "myopic"])
@pytest.mark.parametrize(("H", "d", "gap"), [(4, 2, 0.1), (5, 3, 0.05), (3, 4, 0.1)])
def test_as_the_twin(H, d, gap, rule):
    for seed in (0, 1):
        found = sign_oracle(H, 40, gap, d, n_runs=1, seed=seed, rule=rule)
        assert found.regret[0] == pytest.approx(twin(H, 40, gap, d, seed, rule), abs=1e-9)
        assert found.curve[-1] == pytest.approx(found.mean, abs=1e-12)


@pytest.mark.parametrize(("H", "d", "rule"), [(5, 2, "most probable"), (4, 3, "most probable"), (4, 3, "myopic")])
def test_as_the_twin_where_stages_differ(H, d, rule):
    for seed in (0, 1):
        found = sign_oracle(H, 40, 0.05, d, bias_jitter=0.7, n_runs=1, seed=seed, rule=rule)
        assert found.regret[0] == pytest.approx(twin(H, 40, 0.05, d, seed, rule, 0.7), abs=1e-9)


def test_the_biases_are_those_of_the_environment():
    """Cut at as many standard deviations, and the logit of going on is log(H-1) + e_h - bD x_h . a in both."""
    assert limits.MOST_JITTER == hard.MOST_JITTER
    mdp, plain = envs.jittered_chain(6, bias_jitter=0.8, seed=3), envs.hard_chain(6, gap=0.05, seed=3)
    for h in range(6):
        (on, off), (plain_on, plain_off) = (model.probabilities(h, h, 0) for model in (mdp, plain))
        e = math.log(5) * (mdp.theta[h, 1] / plain.theta[h, 1] - 1)
        assert math.log(on / off) == pytest.approx(math.log(plain_on / plain_off) + e)


def test_both_rules_agree_for_one_sign():
    one, other = (sign_oracle(6, 60, 0.08, n_runs=30, rule=rule) for rule in ("most probable", "myopic"))
    np.testing.assert_allclose(one.regret, other.regret, atol=1e-12)


@pytest.mark.statistical
def test_known_values():
    """1000 runs of the myopic rule at d = 2, T = 1000, gap .5/H, of an independent program."""
    for H, mean, se in ((5, 15.2, 0.4), (10, 78.6, 1.4)):
        found = sign_oracle(H, 1000, 0.5 / H)
        assert abs(found.mean - mean) < 4 * math.hypot(se, found.se)


def kl(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def test_one_sign_is_lai_and_robbins():
    H, gap = 10, 0.05
    mdp = envs.hard_chain(H, gap=gap)
    q, total = livarot.solve(mdp).q, 0.0
    for h in range(H - 1):
        p = sorted(mdp.probabilities(h, h, a)[1] for a in (0, 1))
        total += abs(q[h, h, 0] - q[h, h, 1]) / kl(*p)
    assert chain_log_rate(H, gap) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("d", [3, 4])
def test_no_alternative_escapes(d):
    """Alternatives with any effects u, one of them <= 0, without the symmetry that the program assumes."""
    n, H, gap = d - 1, 10, 0.05
    rng = np.random.default_rng(0)
    p_best = 1 / H + n * gap
    tilt = math.log((1 - 1 / H) * p_best / (1 / H * (1 - p_best))) / n
    good = np.array([1 / (1 + (H - 1) * math.exp(-tilt * (n - 2 * m))) for m in range(n + 1)])
    cost, eta = least_visits(good, n)
    assert (eta >= 0).all()
    assert cost == pytest.approx(sum(math.comb(n, m) * eta[m - 1] * (good[0] - good[m]) for m in range(1, d)))
    top, least = math.log(good[0] / (1 - good[0])), math.inf
    for _ in range(3000):
        u = tilt * (1 + rng.normal(size=n) * 10 ** rng.uniform(-2, 0.3))
        u[rng.integers(n)] = min(0.0, tilt * rng.normal()) if rng.random() < 0.3 else 0.0
        learned = 0.0
        for wrong in itertools.product((0, 1), repeat=n):
            if m := sum(wrong):
                learned += eta[m - 1] * kl(good[m], 1 / (1 + math.exp(-(top - 2 * np.dot(wrong, u)))))
        least = min(least, learned)
    assert least >= 1 - 1e-6
    assert least < 1.1
    assert cost <= n * (good[0] - good[1]) / kl(good[1], good[0]) + 1e-9  # wrong in one sign at a time is one way


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"dim": 5}, "dim"),
        ({"gap": 0.9}, "gap"),
        ({"bias_jitter": 11.0}, "bias_jitter"),
        ({"bias_jitter": -1.0}, "bias_jitter"),
    ],
)
def test_bad_arguments(arguments, named):
    with pytest.raises(LivarotError) as caught:
        sign_oracle(**{"horizon": 5, "n_episodes": 10, "gap": 0.1} | arguments)
    assert caught.value.argument == named
