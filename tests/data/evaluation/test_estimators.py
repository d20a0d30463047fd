"""Every estimator against its loops, with episodes of different lengths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livarot
from livarot.data import read_episodes
from livarot.data.evaluation.estimators import (
    doubly_robust,
    effective_sizes,
    interval,
    per_decision,
    ratios,
    trajectory_wise,
    values_in,
    weighted_per_decision,
)
from livarot.model.probabilities import transition_kernel
from tests.support.models import random_model, to_mdp
from tests.support.offline_logs import random_log
from tests.twins import evaluation as twin


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_against_loops(seed):
    episodes, table, policy = random_log(seed)
    log = read_episodes(table, probability="b")
    weight = ratios(log, policy, log.probability)
    play = lambda t, s, a: policy[t, s, a]  # noqa: E731
    np.testing.assert_allclose(trajectory_wise(log, weight), twin.importance_sampling(episodes, play), rtol=1e-12)
    np.testing.assert_allclose(per_decision(log, weight), twin.per_decision(episodes, play), rtol=1e-12, atol=1e-14)
    value, influence = twin.weighted_per_decision(episodes, play)
    found = weighted_per_decision(log, weight)
    assert found.mean() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found - found.mean(), influence, rtol=1e-9, atol=1e-12)
    rng = np.random.default_rng(seed)
    v, q = rng.normal(size=(5, 3)), rng.normal(size=(4, 3, 3))
    expected = twin.doubly_robust(episodes, play, lambda t, s: v[t, s], lambda t, s, a: q[t, s, a])
    np.testing.assert_allclose(doubly_robust(log, weight, v, q), expected, rtol=1e-10, atol=1e-12)
    last = [twin.weights(e, play)[-1] for e in episodes]
    assert effective_sizes(weight)[-1] == pytest.approx(twin.effective_size(last), rel=1e-12)
    plain = interval(found, 0.9)
    assert plain.standard_error == pytest.approx(twin.standard_error(list(found)), rel=1e-12)
    assert plain.lower < plain.value < plain.upper


def test_values_in_a_model():
    rng = np.random.default_rng(2)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=3, U=4, offsets=True))
    policy = rng.dirichlet(np.ones(2), size=(3, 4))
    value, q = values_in(mdp.problem, transition_kernel(mdp), policy)
    assert value == pytest.approx(livarot.evaluate(mdp, policy))
    for h, s, a in np.ndindex(3, 4, 2):
        after = mdp.probabilities(h, s, a) @ value[h + 1][mdp.problem.next_states(h, s, a)]
        assert q[h, s, a] == pytest.approx(mdp.problem.reward[h, s, a] + after, abs=1e-13)


def test_scores_take_away_what_they_explain():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 3))
    noise = rng.normal(size=200)
    found = interval(scores @ [5.0, -3.0, 1.0] + noise, 0.95, scores)
    assert 0.8 < found.standard_error * np.sqrt(200) < 1.2
    assert interval(noise, 0.95, rng.normal(size=(200, 150))).standard_error == interval(noise, 0.95).standard_error


def test_an_episode_is_judged_by_a_regression_without_it():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 3))
    scores = np.column_stack((scores - scores.mean(axis=0), np.zeros(40)))  # as those of a maximum: they add up to 0
    scores[:, 3] = scores[:, 0] - scores[:, 1]  # and one of them says nothing new
    x = 2.0 + scores @ [1.0, 2.0, 0.0, 0.0] + rng.standard_t(3, size=40)
    columns, total = np.column_stack((np.ones(40), scores)), 0.0
    for i in range(40):
        others = np.arange(40) != i
        total += (x[i] - columns[i] @ np.linalg.lstsq(columns[others], x[others])[0]) ** 2
    found = interval(x, 0.95, scores)
    assert found.standard_error == pytest.approx(np.sqrt(total) / 40, rel=1e-10)
    assert found.value == x.mean() and found.upper - found.value == pytest.approx(
        2.028 * found.standard_error, rel=1e-3
    )


def test_one_episode_with_all_the_weight():
    table = random_log(3)[1]
    log = read_episodes(table, probability="b")
    weight = np.zeros_like(log.reward)
    weight[2] = 1.0
    found = weighted_per_decision(log, weight)
    assert found == pytest.approx(np.full(len(log), log.reward[2].sum()))
