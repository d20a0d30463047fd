"""Tables of episodes, as arrays: any order of rows, ends of different lengths, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import read_episodes
from tests.support.offline_logs import STATES, behaviour, fitted, make_log, to_mdp, truth


@pytest.fixture(scope="module")
def log():
    return make_log(truth(), behaviour(), 30, 0)


def refused(table, match, **names):
    with pytest.raises(livarot.LivarotError, match=match):
        read_episodes(table, **names)


def test_the_order_of_rows_does_not_matter(log):
    read = read_episodes(log, probability="probability")
    mixed = log.sample(frac=1.0, random_state=1)
    again = read_episodes(mixed.reset_index(drop=True), probability="probability")
    order = list(dict.fromkeys(mixed.episode))
    for name in ("state", "action", "reward", "probability"):
        assert np.array_equal(getattr(read, name)[order], getattr(again, name))
    assert read.state.shape == (30, 4) and read.live.all() and len(read) == 30
    assert read.total == pytest.approx(log.groupby("episode").reward.sum().to_numpy())
    assert np.array_equal(log.state.to_numpy()[read.row], read.labels.states.decode(read.state))
    assert repr(read).startswith("30 episodes of at most 4 steps, mean reward") and "behaviour known" in repr(read)


def test_episodes_that_end_early(log):
    short = log[~((log.episode == 3) & (log.step >= 2))]
    read = read_episodes(short)
    assert read.length[3] == 2 and read.live[3].tolist() == [True, True, False, False]
    assert read.reward[3, 2:].tolist() == [0.0, 0.0] and read.row[3, 2:].tolist() == [-1, -1]


def test_labels_and_rewards_of_a_model(log):
    fit = fitted(log)
    mdp = to_mdp(fit)
    given = read_episodes(log, mdp)
    known = read_episodes(log.drop(columns="reward"), mdp)
    assert known.reward == pytest.approx(given.reward)
    assert read_episodes(log, mdp, reward=None).reward == pytest.approx(given.reward)
    assert list(given.labels.states) == STATES
    later = log.assign(step=log.step + 7)  # whole numbers may begin anywhere, at the same step
    assert np.array_equal(read_episodes(later, mdp).state, given.state)
    dates = log.assign(step=pd.Timestamp("2020-01-01") + pd.to_timedelta(log.step * 30, unit="D"))
    assert np.array_equal(read_episodes(dates, mdp).state, given.state)
    assert np.array_equal(read_episodes(log.assign(step=log.step * 0.5), mdp).state, given.state)
    wider = to_mdp(fit, 3)
    with pytest.raises(livarot.LivarotError, match="an episode has 4 steps, the model 3"):
        read_episodes(log, wider, reward=None)


def test_what_is_refused(log):
    refused(log.drop(columns="step"), "no column 'step'")
    refused(log.drop(columns="reward"), "no column 'reward'")
    refused(log, "not given, and there is no model", reward=None)
    refused(log.iloc[:0], "no rows")
    refused(pd.concat([log, log.iloc[[5]]], ignore_index=True), r"'step': a step occurs twice.*index 120|index 5")
    refused(log.drop(index=9), r"'step': a step before this one is missing")
    refused(log.assign(next_state="new"), "'next_state': is not the state of the next step")
    refused(
        log.assign(probability=log.probability - 1.0), r"'probability': is not in \(0, 1\]", probability="probability"
    )
    refused(log.assign(reward=np.nan), "'reward': missing values")
    refused(log.assign(state=None), "'state': missing values")
    with pytest.raises(livarot.LivarotError, match="label that is not known, such as 'lost'"):
        read_episodes(log.assign(state="lost").drop(columns="next_state"), to_mdp(fitted(log)))
