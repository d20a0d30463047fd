"""The combination lock: it opens with its combination, and greed fails."""

import math

import pytest

import livarot
from livarot import envs


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize(
    ("H", "A", "d", "clarity", "hardness"), [(8, 10, 4, 6.0, 2.0), (3, 4, 2, 3.0, 0.0), (2, 2, 1, 1.0, 5.0)]
)
def test_the_lock_opens_with_its_combination(H, A, d, clarity, hardness):
    mdp = envs.combination_lock(H, A, d, clarity, hardness, seed=5)
    solution = livarot.solve(mdp)
    assert solution.value[0, 0] == pytest.approx(sigmoid(clarity - hardness) ** (H - 1), rel=1e-12)
    x = [mdp.problem.features(0, 0, a)[0] for a in range(A)]
    for h in range(H - 1):
        best = max(range(A), key=lambda a: x[a] @ mdp.theta[h])
        assert mdp.probabilities(h, 0, solution.policy[h, 0])[0] == pytest.approx(mdp.probabilities(h, 0, best)[0])
        for a in range(A):
            assert mdp.probabilities(h, 0, a)[0] == pytest.approx(sigmoid(x[a] @ mdp.theta[h] - hardness), rel=1e-12)
    assert mdp.problem.same_as(envs.combination_lock(H, A, d, clarity, hardness, seed=6).problem)


def test_greed_fails_at_the_lock():
    seeds = range(6)
    models = [envs.combination_lock(6, seed=seed) for seed in seeds]
    greedy = livarot.run(models, livarot.agents.CertaintyEquivalent(), 600, seed=seeds).regret[:, -100:].mean()
    sound = livarot.run(models, livarot.agents.SoundLivarot(), 600, seed=seeds).regret[:, -100:].mean()
    assert sound < 0.5 * greedy
