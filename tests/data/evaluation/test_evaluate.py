"""Off-policy evaluation as a whole: agreement, overlap, warnings, and intervals that cover."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import DataWarning, evaluate_policy, policy_table, read_episodes, value_interval, write_policy
from livarot.model.terms.units import Units
from tests.support.offline_logs import PAYS, behaviour, fitted, make_log, target, to_mdp, truth
from tests.twins import evaluation as twin

NAMES = ["behaviour", "model", "importance sampling", "per-decision", "weighted per-decision", "doubly robust"]


def worth(mdp, policy):
    return float(mdp.problem.start @ livarot.evaluate(mdp, policy)[0])


@pytest.fixture(scope="module")
def case():
    log = make_log(truth(), behaviour(), 250, 1, noise=0.2)
    fit = fitted(log)
    return log, fit, to_mdp(fit)


def test_all_estimators_beside_each_other(case):
    log, fit, mdp = case
    episodes = read_episodes(log, mdp, probability="probability")
    found = evaluate_policy(episodes, target(), fit, mdp)
    frame = found.to_frame()
    assert list(frame.index) == NAMES and list(frame.columns) == ["value", "standard_error", "lower", "upper"]
    value = worth(truth(), target())
    assert all(abs(row.value - value) < 4.0 * row.standard_error for row in frame.iloc[1:].itertuples())
    assert found["doubly robust"].standard_error < found["per-decision"].standard_error
    assert found["model"].standard_error < found["doubly robust"].standard_error
    assert found["behaviour"].value == pytest.approx(log.groupby("episode").reward.sum().mean())
    assert found.effective.shape == (4,) and (np.diff(found.effective) < 0.0).all()
    assert found.behaviour == "known" and len(found.no_overlap) == 0


def test_the_behaviour_itself_has_weights_of_one(case):
    log, _, mdp = case
    found = evaluate_policy(read_episodes(log, mdp, probability="probability"), behaviour(), mdp=mdp)
    mean = found["behaviour"].value
    assert all(found[name].value == pytest.approx(mean, rel=1e-12) for name in NAMES[2:5])
    assert found.effective == pytest.approx(len(log) / 4)


def test_the_model_with_first_states_of_the_log(case):
    log, fit, mdp = case
    start = log[log.step == 0].state.value_counts(normalize=True).to_dict()
    own = fit.to_mdp(PAYS, 4, start)
    plain = value_interval(fit, own, target())
    found = evaluate_policy(log, target(), fit, mdp)["model"]
    assert found.value == pytest.approx(plain.value, rel=1e-12)
    spread = livarot.evaluate(mdp, target())[0]
    share = own.problem.start
    extra = share @ (spread - share @ spread) ** 2 / 249
    assert found.standard_error == pytest.approx(np.sqrt(plain.standard_error**2 + extra), rel=1e-12)
    drawn = evaluate_policy(log, target(), fit, mdp, kind="bootstrap", n_resamples=300)["model"]
    assert drawn.standard_error == pytest.approx(found.standard_error, rel=0.15)
    assert drawn.lower < found.value < drawn.upper


def test_cross_fitting(case):
    log, fit, mdp = case
    plain = evaluate_policy(log, target(), fit, mdp)["doubly robust"]
    folded = evaluate_policy(log, target(), fit, mdp, cross_fit=5, seed=3)["doubly robust"]
    assert folded.value != plain.value and folded.value == pytest.approx(plain.value, abs=plain.standard_error)
    assert evaluate_policy(log, target(), fit, mdp, cross_fit=5, seed=3)["doubly robust"] == folded
    # written out for one fold: the Q of its episodes comes from a fit to the others
    from livarot.simulation.streams import stream

    fold = stream(3, "folds").permutation(250) % 5
    values = np.empty(250)
    lists = _lists(log)
    b = twin.frequencies(lists)
    for k in range(5):
        other = to_mdp(fitted(log[fold[log.episode.to_numpy()] != k]))
        v = livarot.evaluate(other, target())
        q = lambda t, s, a, v=v, other=other: (  # noqa: E731
            other.problem.reward[t, s, a] + other.probabilities(t, s, a) @ v[t + 1][other.problem.next_states(t, s, a)]
        )
        for i in np.flatnonzero(fold == k):
            steps = [(s, a, r, b(t, s, a)) for t, (s, a, r, _) in enumerate(lists[i])]
            play = lambda t, s, a: target()[t, s, a]  # noqa: E731
            values[i] = twin.doubly_robust([steps], play, lambda t, s, v=v: v[t, s], q)[0]
    assert folded.value == pytest.approx(values.mean(), rel=1e-9)
    with pytest.raises(livarot.LivarotError, match="the fit was made from other rows"):
        evaluate_policy(log[log.episode < 200], target(), fit, mdp, cross_fit=5)
    with pytest.raises(livarot.LivarotError, match="cross_fit: 1 folds"):
        evaluate_policy(log, target(), fit, mdp, cross_fit=1)
    with pytest.raises(livarot.LivarotError, match="cross_fit: needs a fit"):
        evaluate_policy(log, target(), mdp=mdp, cross_fit=2)


def _lists(log):
    codes = log.assign(s=log.state.map({"new": 0, "used": 1, "worn": 2}), a=log.action.map({"mend": 0, "run": 1}))
    return [list(zip(e.s, e.a, e.reward, e.probability, strict=True)) for _, e in codes.groupby("episode")]


def test_without_overlap_it_warns():
    """Nobody ever ran a worn machine: the first pair is named, and how many there are."""
    never = behaviour()
    never[:, 2] = [1.0, 0.0]
    log = make_log(truth(), never, 1500, 0)
    runs = np.ones((4, 3), dtype=np.int32)
    with pytest.warns(DataWarning, match="no overlap: the policy takes 'run' in 'worn'") as caught:
        found = evaluate_policy(log, runs, mdp=truth(), behaviour="counts")
    assert found.no_overlap.index.tolist() == [("worn", "run")]
    assert "1 (state, action) in all" in str(caught[0].message)
    assert found.no_overlap.first_step.tolist() == [1]
    first = log.assign(ran=log.action == "run").sort_values(["episode", "step"])
    first["before"] = first.groupby("episode").ran.transform(lambda x: x.shift(fill_value=True).cumprod().astype(bool))
    assert found.no_overlap.steps.tolist() == [int(((first.state == "worn") & first.before).sum())]
    assert "no overlap: 1 (state, action), such as 'run' in 'worn'" in repr(found)


def test_few_effective_episodes_are_told():
    log = make_log(truth(), behaviour(), 40, 0)
    with pytest.warns(DataWarning, match="the effective sample size falls to"):
        evaluate_policy(log, target(sure=1.0), mdp=truth())


def test_where_no_episode_follows_the_policy():
    """Nothing is better than an interval [0, 0]."""
    log = make_log(truth(), behaviour(), 60, 0)
    fit = fitted(log)
    table = np.zeros((4, 3), dtype=np.int32)
    table[2] = 1  # mend, mend, run, mend
    kept = log[~((log.step == 2) & (log.action == "run")).groupby(log.episode).transform("any")]
    with pytest.warns(DataWarning, match="from step 2 on no logged episode follows the policy") as caught:
        found = evaluate_policy(kept, table, fit, to_mdp(fit))
    assert len(caught) == 1  # running was logged at other steps: there is overlap by state
    assert list(found.estimates) == ["behaviour", "model"]
    with pytest.warns(DataWarning) as caught:
        by_step = evaluate_policy(kept, table, fit, to_mdp(fit), behaviour="stage counts")
    assert any("no overlap" in str(one.message) for one in caught) and by_step.no_overlap.first_step.tolist()[0] == 2


def test_a_policy_from_a_table(case, tmp_path):
    log, fit, mdp = case
    best = livarot.solve(mdp).policy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        expected = evaluate_policy(log, best, fit, mdp).to_frame()
        table = policy_table(mdp, best)
        pd.testing.assert_frame_equal(evaluate_policy(log, table, fit, mdp).to_frame(), expected)
        write_policy(tmp_path / "policy.csv", table)
        pd.testing.assert_frame_equal(evaluate_policy(log, tmp_path / "policy.csv", fit, mdp).to_frame(), expected)
        mixed = evaluate_policy(log, policy_table(mdp, target()), fit, mdp).to_frame()
        pd.testing.assert_frame_equal(mixed, evaluate_policy(log, target(), fit, mdp).to_frame())
        whole = pd.DataFrame([(h, s, "run") for h in range(4) for s in ("new", "used", "worn")])
        whole.columns = ["stage", "state", "action"]
        alone = evaluate_policy(log, whole)  # no model: labels of the log
        assert alone["per-decision"] == evaluate_policy(log, np.ones((4, 3), dtype=int))["per-decision"]


def test_what_is_refused(case):
    log, fit, mdp = case
    table = policy_table(mdp, livarot.solve(mdp).policy)

    def refused(match, *arguments, **more):
        with pytest.raises(livarot.LivarotError, match=match):
            evaluate_policy(*arguments, **more)

    refused("mdp: is not given", log, target(), fit)
    refused("kind: 'exact'", log, target(), kind="exact")
    refused("policy: has shape", log, np.zeros((4, 2), dtype=int))
    refused("policy: action 7 is out of range", log, np.full((4, 3), 7))
    refused("policy: probabilities do not add up", log, np.full((4, 3, 2), 0.7))
    refused("log: an episode has 4 steps, the policy 2", log, np.zeros((2, 3), dtype=int))
    refused(
        "log: has 1 episode", log[log.episode == 0], np.zeros((4, len(set(log[log.episode == 0].state))), dtype=int)
    )
    refused("policy: no action for", log, table.iloc[1:], fit, mdp)
    refused("have probability 2 together", log, pd.concat([table, table.iloc[:1]]), fit, mdp)
    refused("'stage': is beyond", log, table.assign(stage=9), fit, mdp)
    refused("'state': .*not known, such as 'lost'", log, table.assign(state="lost"), fit, mdp)
    other = to_mdp(fitted(log), 5)
    loud = read_episodes(log.assign(state=log.state.str.upper()).drop(columns="next_state"))
    refused("log: was read with other labels", loud, np.zeros((5, 3), dtype=int), mdp=other)


def test_discounted_costs_of_any_scale(case):
    """The same log in other units, with a discount: every estimate follows, the model as its evaluation says."""
    log, fit, mdp = case
    problem = replace(mdp.problem, discount=0.9, units=Units(low=-30.0, scale=50.0, discount=0.9))
    dear = livarot.MNLMDP(problem, mdp.theta)
    table = log.assign(reward=50.0 * log.reward - 30.0)
    faded = table.assign(reward=table.reward * 0.9**table.step)
    found = evaluate_policy(table, target(), fit, dear)
    by_hand = evaluate_policy(faded, target())
    for name in ("behaviour", "importance sampling", "per-decision", "weighted per-decision"):
        assert found[name] == pytest.approx(by_hand[name], rel=1e-12)
    first = log[log.step == 0].state.value_counts(normalize=True).reindex(["new", "used", "worn"], fill_value=0.0)
    assert found["model"].value == pytest.approx(first.to_numpy() @ livarot.evaluate(dear, target())[0], rel=1e-12)
    assert found["doubly robust"].value == pytest.approx(found["model"].value, abs=4.0 * found["doubly robust"][1])
    v = livarot.evaluate(dear, target())
    r = problem.units.reward(problem.reward)
    q = lambda t, s, a: r[t, s, a] + 0.9 * dear.probabilities(t, s, a) @ v[t + 1][problem.next_states(t, s, a)]  # noqa: E731
    b = twin.frequencies(_lists(log))
    values = []
    for steps in _lists(table):  # the recursion with a discount: V + rho (r + 0.9 next - Q)
        after = 0.0
        for t in reversed(range(4)):
            s, a, gain, _ = steps[t]
            after = v[t, s] + target()[t, s, a] / b(t, s, a) * (gain + 0.9 * after - q(t, s, a))
        values.append(after)
    assert found["doubly robust"].value == pytest.approx(np.mean(values), rel=1e-10)
    known = evaluate_policy(read_episodes(log.drop(columns="reward"), dear), target(), fit, dear)
    assert known["behaviour"].value == pytest.approx(
        np.mean([sum(0.9**t * r[t, s, a] for t, (s, a, *_) in enumerate(e)) for e in _lists(log)]), rel=1e-12
    )
    ended = livarot.MNLMDP(replace(mdp.problem, terminal_reward=np.ones(3)), mdp.theta)
    with pytest.raises(livarot.LivarotError, match="rewards depend on the next state"):
        read_episodes(log, ended, reward=None)


def test_states_without_advice():
    log = make_log(truth(), behaviour(), 100, 1)
    fit = fitted(log)
    only_new = fit.to_mdp(PAYS, 4, "new")  # the log begins in 'used' as well
    with pytest.warns(DataWarning, match="logged steps are in states that the model's start cannot reach"):
        evaluate_policy(log, target(), mdp=only_new)


def covered(n_logs, n_episodes, **settings):
    """Shares of intervals that hold the true value, by estimator, for known and for counted behaviour."""
    mdp, policy, made = truth(), target(), behaviour()
    values = dict.fromkeys(NAMES, worth(mdp, policy)) | {"behaviour": worth(mdp, made)}
    hits = {(known, name): [] for known in (True, False) for name in NAMES}
    for seed in range(n_logs):
        log = make_log(mdp, made, n_episodes, seed, noise=0.2)
        fit = fitted(log)
        own = to_mdp(fit)
        for known in (True, False):
            episodes = read_episodes(log, own, probability="probability" if known else None)
            for name, one in evaluate_policy(episodes, policy, fit, own, **settings).estimates.items():
                hits[known, name].append(one.lower <= values[name] <= one.upper)
    return {key: float(np.mean(own)) for key, own in hits.items()}


def test_intervals_cover():
    """A small sample: of 60 intervals of 95 % fewer than 50 hold the truth with probability 1e-4."""
    assert min(covered(60, 150).values()) >= 50 / 60


@pytest.mark.statistical
def test_intervals_cover_as_often_as_they_say():
    """500 logs of 300 episodes: 93 to 97 % (standard error 1 %)."""
    found = covered(500, 300)
    assert min(found.values()) >= 0.93 and max(found.values()) <= 0.97, found
