"""Rewards in the names of a log: all forms give the same model, and a missing number never becomes 0."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot import infinite
from livarot.data import DataWarning, MNLTransition
from livarot.data.use.pays import Steps, is_table, meant, read_pay
from livarot.errors import LivarotError
from livarot.infinite import InfiniteMDP
from livarot.model.labels import Labels, ModelLabels
from tests.support.patients import LOG, REACHABLE

PAYS = {"well": 1.0, "ill": 0.25}


@pytest.fixture(scope="module")
def fit():
    return MNLTransition(features=["action:severity"], reachable=REACHABLE).fit(LOG)


@pytest.fixture(scope="module")
def no_waiting():
    """A log in which the ill are always treated."""
    log = LOG[~((LOG.state == "ill") & (LOG.action == "wait"))]
    with pytest.warns(DataWarning, match="inferred"):
        return MNLTransition(features=["action:severity"]).fit(log)


def pays(fit, given, *, horizon, name="reward"):
    """The expected rewards (S, A) of a model."""
    mdp = fit.to_mdp(**{name: given}, horizon=horizon, start="well", terminal="dead", discount=0.9)
    if isinstance(mdp, InfiniteMDP):
        return mdp.mean_reward
    return np.where(mdp.problem.available[0], livarot.solve(mdp).q[-1], 0.0)


@pytest.mark.parametrize("horizon", [1, None])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_every_form_of_a_reward_says_the_same(fit, horizon, sign):
    name = "reward" if sign > 0 else "cost"
    number = {"well": 120.0, "ill": -40.0}
    pairs = {(s, a): number[s] for s, a in REACHABLE}
    triples = {(s, a, to): number[s] for (s, a), nexts in REACHABLE.items() for to in nexts}
    table = pd.DataFrame([(*key, value) for key, value in triples.items()])
    table.columns = ["state", "action", "next_state", name]
    array = np.array([[np.nan] * 2, [-40.0] * 2, [120.0] * 2])  # dead, ill, well
    forms = [
        number, pairs, triples, table, pd.Series(pairs), table.groupby("state", as_index=False)[name].mean(),
        lambda s, a: number[s], lambda s, a, to: number[s], array, np.nan_to_num(array[:, 0]),
        np.repeat(array[:, :, None], 3, axis=2),
    ]  # fmt: skip
    expected = sign * np.nan_to_num(array)
    for form in forms:
        np.testing.assert_allclose(pays(fit, form, horizon=horizon, name=name), expected, rtol=0, atol=1e-11)


def test_a_reward_of_the_next_state_is_not_averaged_away(fit):
    mdp = fit.to_mdp(lambda s, a, to: -100.0 if to == "dead" else 0.0, 4, "ill", terminal="dead")
    assert mdp.problem.next_reward is not None
    endless = fit.to_mdp(lambda s, a, to: -100.0 if to == "dead" else 0.0, None, "ill", terminal="dead", discount=0.9)
    assert endless.problem.terms.outcome_reward is not None


@pytest.mark.parametrize("horizon", [3, None])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"well": 1.0}, r"^reward: 2 \(state, action\) have no number, such as \('ill', 'treat'\), \('ill', 'wait'\) "),
        ({"well": 1.0, ("ill", "wait"): 1.0}, r"^reward: 1 .* have no number, such as \('ill', 'treat'\)"),
        ({("ill", "wait", "well"): 1.0} | PAYS | {"ill": np.nan}, "^reward: "),
        ({("well", "wait", "dead"): 1.0} | PAYS, r"^reward: \('well', 'wait', 'dead'\) has a number, but does not"),
        ({("dead", "wait"): 1.0} | PAYS, r"^reward: \('dead', 'wait'\) has a number, but does not exist"),
        ({"dead": -5.0} | PAYS, r"^reward: 'dead' has a number, but does not exist .*terminal_reward"),
        ({"mars": 1.0} | PAYS, r"^reward: 'mars' .* is not a state, "),
        ({("ill", "operate"): 1.0} | PAYS, "^reward: .*'operate'"),
        ({"well": "much", "ill": 1.0}, "^reward: "),
        (lambda s, a: np.nan, "^reward: "),
        (np.full((3, 2), np.nan), "^reward: "),
        (np.zeros((4, 4)), r"^reward: has shape \(4, 4\), expected "),
        (pd.DataFrame({"state": ["ill", "ill"], "reward": [1.0, 2.0]}), "^reward: 'ill' is given twice"),
        (pd.DataFrame({"state": ["ill", "well"], "reward": [1.0, np.nan]}), "column 'reward': missing values"),
        (pd.DataFrame({"state": ["ill", "well"], "pay": [1.0, 2.0]}), "there is no column 'reward'"),
        (None, "^reward: is missing; give reward= or cost="),
        (object(), "^reward: is not an array of numbers"),
    ],
)
def test_rewards_that_are_refused(fit, given, message, horizon):
    with pytest.raises(LivarotError, match=message):
        fit.to_mdp(given, horizon, "well", terminal="dead", discount=0.9)


def test_a_sink_of_costs_is_the_worst_there_is(no_waiting):
    """With costs a state that pays nothing would be a place to flee to."""
    costs = {"well": 3.0, "ill": 7.0}
    for horizon in (4, None):
        terms = {"horizon": horizon, "start": "well", "terminal": "dead", "discount": 0.9}
        mdp = no_waiting.to_mdp(cost=costs, unseen="sink", **terms)
        found = livarot.solve(mdp)["ill"][0] if horizon else infinite.solve(mdp).policy["ill"]
        assert found == "treat"


@pytest.mark.parametrize(("sign", "worst"), [(1.0, -7.0), (-1.0, 9.0)])
def test_pairs_that_the_model_adds_have_the_worst_number(sign, worst):
    """Two states and a sink behind them: pairs without a number get the least reward, or the highest cost."""
    labels = ModelLabels(Labels(["a", "b"]), Labels(["go"]))
    state, after = np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2])
    paid = np.array([[True], [True], [False]])
    steps = Steps(labels, state, np.zeros(4, dtype=np.int64), after, paid)
    found = read_pay("pay", {"a": 9.0, "b": -7.0}, steps, None, sign)
    assert found[:, 0].tolist() == [9.0, -7.0, worst]
    by_row = read_pay("pay", {"a": 9.0, "b": 1.0, ("b", "go"): -7.0, ("a", "go", "b"): 2.0}, steps, None, sign)
    moves = zip(state.tolist(), after.tolist(), strict=True)
    assert [by_row(0, s, 0, to) for s, to in moves] == [9.0, 2.0, -7.0, worst]


def test_tables_and_their_paths_are_told_from_numbers():
    assert is_table("pay.csv") and is_table(pd.DataFrame({"state": ["a"]}))
    assert not any(is_table(x) for x in ({"a": 1.0}, [1.0], pd.Series([1.0]), np.ones(2), lambda s, a: 0.0, 3.0))


def test_the_label_that_was_meant():
    assert meant("start", Labels([1, 2, "x"]), "2") == 2 and meant("start", Labels([1, "1"]), "1") == "1"
    with pytest.raises(LivarotError, match=r"^start: '3' is not known"):
        meant("start", Labels([1, 2]), "3")
