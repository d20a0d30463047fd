"""A fitted model as an MDP: its probabilities, available actions and rewards, in the names of the log."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot import infinite
from livarot.data import DataWarning, MNLTransition, labels_of
from livarot.errors import LivarotError
from livarot.infinite import InfiniteMDP
from tests.support.patients import LOG, REACHABLE, expanded

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


def test_the_mdp_has_the_fitted_probabilities(fit):
    pays = {"well": 1.0, ("ill", "wait"): 0.5, ("ill", "treat"): 0.0}
    mdp = fit.to_mdp(pays, horizon=4, start={"well": 0.5, "ill": 0.5}, terminal="dead")
    labels = labels_of(mdp)
    for (s, a), nexts in REACHABLE.items():
        i, j = labels.states.index(s), labels.actions.index(a)
        found = dict(
            zip(labels.states.decode(mdp.problem.next_states(0, i, j)), mdp.probabilities(0, i, j), strict=True)
        )
        p = fit.predict_proba({"state": [s], "action": [a]})[0]
        assert set(found) == set(nexts)
        for s2 in nexts:
            assert found[s2] == pytest.approx(p[labels.states.index(s2)], rel=1e-12)
    ill, wait = labels.states.index("ill"), labels.actions.index("wait")
    assert mdp.problem.reward[0, ill, wait] == 0.5 and mdp.problem.reward[0, ill, 1 - wait] == 0.0
    assert mdp.problem.start[ill] == 0.5 and mdp.problem.terminal[labels.states.index("dead")]
    np.testing.assert_allclose(mdp.original_theta[0], fit.theta_, rtol=1e-12)
    assert np.isfinite(livarot.solve(mdp).value).all()
    scaled = fit.confidence_set(problem=mdp.problem)
    np.testing.assert_allclose(scaled.center, mdp.theta[0], rtol=1e-12)
    direction = np.array([1.0, 2.0])
    plain = fit.confidence_set()
    assert scaled.width(direction) == pytest.approx(plain.width(direction) * mdp.problem.feature_scale)


# ---------------------------------------------------------------- what can be done


def test_what_was_never_seen_is_never_recommended(no_waiting):
    """Waiting with the ill would pay best, if it existed: neither plan takes it."""
    ill, wait = no_waiting.states_.index("ill"), no_waiting.actions_.index("wait")
    terms = {"reward": {"well": 1.0, ("ill", "treat"): -50.0}, "start": "well", "terminal": "dead", "discount": 0.9}
    mdp = no_waiting.to_mdp(**terms, horizon=5)
    assert not mdp.problem.available[:, ill, wait].any()
    assert livarot.solve(mdp)["ill"] == ("treat",) * 5
    assert (livarot.solve(mdp).q[:, ill, wait] == -np.inf).all()
    assert (livarot.solve_robust(mdp, radius=0.1).policy[:, ill] != wait).all()
    assert infinite.solve(no_waiting.to_mdp(**terms)).policy["ill"] == "treat"
    free = {("ill", "wait"): 0.0}
    with pytest.raises(LivarotError, match=r"^reward: \('ill', 'wait'\) has a number, but does not exist"):
        no_waiting.to_mdp(**terms | {"reward": terms["reward"] | free}, horizon=5)
    stays = no_waiting.to_mdp(**terms | {"reward": terms["reward"] | free}, horizon=5, unseen="stay")
    assert livarot.solve(stays)["ill"][0] == "wait"  # only if the user says so


def test_what_the_user_says_about_unseen_pairs(no_waiting):
    with pytest.raises(LivarotError, match=r"1 \(state, action\) have no reachable set, such as \('ill', 'wait'\)"):
        no_waiting.to_mdp(PAYS, 3, "well", terminal="dead", unseen="error")
    stay = no_waiting.to_mdp(PAYS | {"dead": 0.0}, 3, "well", unseen="stay")
    ill, wait, dead = (
        no_waiting.states_.index("ill"),
        no_waiting.actions_.index("wait"),
        no_waiting.states_.index("dead"),
    )
    assert list(stay.problem.next_states(0, ill, wait)) == [ill] and list(stay.problem.next_states(0, dead, 0)) == [
        dead
    ]
    sink = no_waiting.to_mdp(lambda s, a: float(s == "well"), 3, "well", unseen="sink", terminal="dead")
    labels = labels_of(sink)
    assert labels.states[-1] == "(unseen)" and list(sink.problem.next_states(0, ill, wait)) == [len(labels.states) - 1]
    assert (sink.problem.reward[:, -1] == 0.0).all()
    with pytest.raises(LivarotError, match="unseen: 'maybe' is not known"):
        no_waiting.to_mdp(PAYS, 3, "well", unseen="maybe")


def test_states_without_actions_have_to_be_declared_terminal(fit):
    for horizon in (3, None):
        with pytest.raises(LivarotError, match=r"^terminal: no action is known in 1 states: 'dead' .*terminal="):
            fit.to_mdp(PAYS, horizon, "well", discount=0.9)
    assert list(labels_of(fit.to_mdp(PAYS, 3, "well", terminal="dead")).states) == ["dead", "ill", "well"]


def test_which_actions_are_available(fit, no_waiting):
    only = {"ill": ["treat"], "well": ["wait", "treat"]}
    for horizon in (3, None):
        mdp = fit.to_mdp(PAYS, horizon, "well", terminal="dead", available=only, discount=0.9)
        assert int(np.sum(mdp.problem.available)) == 3 * (horizon or 1)
    stages = np.ones((3, 3, 2), dtype=bool)
    stages[1, fit.states_.index("ill"), fit.actions_.index("wait")] = False
    mdp = fit.to_mdp(PAYS, 3, "well", terminal="dead", available=stages)
    assert mdp.problem.available.sum(axis=(1, 2)).tolist() == [4, 3, 4]
    with pytest.raises(LivarotError, match=r"^available: \('ill', 'wait'\) was never seen"):
        no_waiting.to_mdp(PAYS, 3, "well", terminal="dead", available={"ill": ["wait"], "well": ["wait"]})
    with pytest.raises(LivarotError, match=r"^terminal: no action is known in 1 states: 'ill'"):
        fit.to_mdp(PAYS, 3, "well", terminal="dead", available={"well": ["wait"]})
    with pytest.raises(LivarotError, match=r"^available: 'operate' .* is not a name of the model"):
        fit.to_mdp(PAYS, 3, "well", terminal="dead", available={"ill": ["operate"]})


def test_states_need_no_data_at_stages_where_they_are_never_reached():
    """All begin well: nothing is logged of the ill at the first stage, and nothing has to be."""
    log = LOG[~((LOG.t == 0) & (LOG.state == "ill"))]
    fit = MNLTransition(features=["treat", "wait"], stage="t", homogeneous=False).fit(expanded(log))
    mdp = fit.to_mdp(PAYS, terminal="dead")
    assert mdp.problem.horizon == 5 and np.isfinite(livarot.solve(mdp).value).all()
    with pytest.raises(LivarotError, match="no action is known in 'ill' at stage 0"):
        fit.to_mdp(PAYS, start="ill", terminal="dead")


# ---------------------------------------------------------------- what is paid


def test_costs_and_rewards_are_one_or_the_other(fit):
    with pytest.raises(LivarotError, match="both given"):
        fit.to_mdp(PAYS, 3, "well", cost=PAYS, terminal="dead")


def test_the_end_in_the_user_s_units(fit):
    terms = {"cost": {"well": 10.0, "ill": 500.0}, "start": "well", "discount": 0.9}
    one = fit.to_mdp(**terms, horizon=3, terminal={"dead": 9000.0})
    two = fit.to_mdp(**terms, horizon=3, terminal=["dead"], terminal_cost={"dead": 9000.0})
    table = pd.DataFrame({"state": ["dead"], "cost": [9000.0]})
    three = fit.to_mdp(**terms, horizon=3, terminal="dead", terminal_cost=table)
    assert [livarot.solve(m).value[0, 0] for m in (one, two, three)] == [-9000.0] * 3
    endless = fit.to_mdp(**terms, terminal={"dead": 9000.0})
    assert infinite.solve(endless).value[0] == -9000.0
    assert infinite.solve(fit.to_mdp(**terms, terminal="dead", terminal_reward={"dead": -9000.0})).value[0] == -9000.0
    scrap = fit.to_mdp(**terms, horizon=3, terminal="dead", terminal_reward={"well": 70.0})
    assert livarot.solve(scrap).value[3].tolist() == [0.0, 0.0, 70.0]
    with pytest.raises(LivarotError, match=r"^terminal_reward: state 'well' has one, but without a horizon"):
        fit.to_mdp(**terms, terminal="dead", terminal_reward={"well": 70.0})
    with pytest.raises(LivarotError, match=r"^terminal: has numbers, and so has"):
        fit.to_mdp(**terms, horizon=3, terminal={"dead": 1.0}, terminal_cost={"dead": 1.0})
    for wrong in ("mars", ["mars"], {"mars": 1.0}):
        with pytest.raises(LivarotError, match=r"^terminal: 'mars'"):
            fit.to_mdp(**terms, horizon=3, terminal=wrong)


# ---------------------------------------------------------------- stages, discounts, starts


def test_without_a_horizon_there_is_no_end(fit):
    mdp = fit.to_mdp(PAYS, discount=0.95, terminal="dead")
    assert isinstance(mdp, InfiniteMDP) and mdp.discount == 0.95
    met = LOG.state.value_counts(normalize=True)
    assert dict(zip(labels_of(mdp).states, mdp.problem.start, strict=True)) == pytest.approx(
        {"dead": 0.0, "ill": met["ill"], "well": met["well"]}
    )
    long = fit.to_mdp(PAYS, 2000, "well", discount=0.95, terminal="dead")
    np.testing.assert_allclose(livarot.solve(long).value[0], infinite.solve(mdp).value, rtol=1e-12)
    assert fit.to_mdp(PAYS, terminal="dead", start="ill").problem.start.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("horizon", [3, None])
@pytest.mark.parametrize("discount", [-0.1, 1.1, np.nan])
def test_discounts_outside_are_refused(fit, discount, horizon):
    with pytest.raises(LivarotError, match=r"^discount: "):
        fit.to_mdp(PAYS, horizon, "well", discount=discount, terminal="dead")


def test_no_discount_and_no_end_needs_one_average(fit):
    """Two states where it ends, with different rewards: there is no single average reward."""
    mdp = fit.to_mdp(PAYS, start="well", terminal="dead")
    assert mdp.discount is None and fit.to_mdp(PAYS, 3, "well", terminal="dead", discount=0.0).problem.discount == 0.0
    with pytest.raises(LivarotError):
        infinite.solve(fit.to_mdp(PAYS, start="well", terminal=["dead", "well"], discount=1.0))


def test_stage_column_does_not_fix_the_horizon_of_a_shared_model():
    long = MNLTransition(features=["treat", "wait"], stage="t").fit(expanded(LOG))
    assert long.choices_.n_sets == 20
    assert long.to_mdp(PAYS, horizon=9, terminal="dead").problem.horizon == 9


def test_features_that_change_from_choice_to_choice_do_not_make_an_mdp():
    table = expanded(LOG.head(200)).assign(noise=lambda t: np.random.default_rng(0).normal(size=len(t)))
    fit = MNLTransition(features=["treat", "noise"]).fit(table)
    with pytest.raises(LivarotError, match="differ from choice to choice"):
        fit.to_mdp(PAYS, horizon=3, start="well", terminal="dead")
