"""Every estimator against its loops, with episodes of different lengths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livarot
from livarot.data import read_episodes
from livarot.data.evaluation.behaviour import behaviour_of
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
from tests.twins import evaluation as twin


def random_log(seed, n=25, horizon=4, n_states=3, n_actions=3):
    """Episodes of random lengths as the twins' lists and as a table, with a policy (H, S, A)."""
    rng = np.random.default_rng(seed)
    episodes, rows = [], []
    for i in range(n):
        steps = []
        for t in range(int(rng.integers(1, horizon + 1)) if i else horizon):
            one = (
                int(rng.integers(n_states)),
                int(rng.integers(n_actions)),
                float(rng.normal()),
                rng.uniform(0.1, 1.0),
            )
            steps.append(one)
            rows.append((i, t, *one))
        episodes.append(steps)
    rows += [(n + k, 0, k % n_states, k % n_actions, 0.0, 0.5) for k in range(9)]  # every label occurs
    episodes += [[(k % n_states, k % n_actions, 0.0, 0.5)] for k in range(9)]
    columns = dict(zip(("episode", "step", "state", "action", "reward", "b"), zip(*rows, strict=True), strict=True))
    policy = rng.dirichlet(np.ones(n_actions) * 0.7, size=(horizon, n_states))
    return episodes, {k: np.array(v) for k, v in columns.items()}, policy


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


@pytest.mark.parametrize("kind", ["counts", "stage counts"])
def test_frequencies_against_loops(kind):
    episodes, table, _ = random_log(3)
    log = read_episodes(table)
    made = behaviour_of(log, kind)
    b = twin.frequencies(episodes, kind == "stage counts")
    for i, e in enumerate(episodes):
        expected = [b(t, s, a) for t, (s, a, *_) in enumerate(e)]
        np.testing.assert_allclose(made.probability[i, : len(e)], expected, rtol=1e-14)
        assert (made.probability[i, len(e) :] == 1.0).all()
    assert np.abs(made.scores.sum(axis=0)).max() < 1e-9  # the scores of a maximum of the likelihood add up to 0
    assert behaviour_of(log, "logit").scores.sum(axis=0) == pytest.approx(0.0, abs=2e-2)  # a weak ridge
    with pytest.raises(livarot.LivarotError, match="behaviour: 'guess' is not known"):
        behaviour_of(log, "guess")


def test_the_logit_of_a_saturated_state():
    """One step: a logit in the state alone is the table of frequencies."""
    _, table, _ = random_log(5, n=300, horizon=1)
    log = read_episodes(table)
    np.testing.assert_allclose(
        behaviour_of(log, "logit").probability, behaviour_of(log, "counts").probability, rtol=0, atol=2e-3
    )


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
