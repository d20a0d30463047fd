"""The policy that made a log: frequencies against loops, a logit, and scores that add up to 0."""

import numpy as np
import pytest

import livarot
from livarot.data import read_episodes
from livarot.data.evaluation.behaviour import behaviour_of
from tests.support.offline_logs import random_log
from tests.twins import evaluation as twin


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


def test_known_probabilities_are_kept():
    _, table, _ = random_log(1)
    made = behaviour_of(read_episodes(table, probability="b"), "counts")
    assert made.kind == "known" and made.scores is None
    assert made.visits.sum() == len(table["b"]) and made.logged[0].sum() == len(table["b"])
