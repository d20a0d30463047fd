"""A fitted model as an MDP: its probabilities, pairs without data, features that do not make one."""

import numpy as np
import pytest

import livarot
from livarot.data import DataWarning, MNLTransition, labels_of
from livarot.errors import LivarotError
from tests.support.patients import LOG, REACHABLE, expanded


@pytest.fixture(scope="module")
def fit():
    return MNLTransition(features=["action:severity"], reachable=REACHABLE).fit(LOG)


def test_the_mdp_has_the_fitted_probabilities(fit):
    mdp = fit.to_mdp(reward={"well": 1.0, ("ill", "wait"): 0.5}, horizon=4, start={"well": 0.5, "ill": 0.5})
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
    dead = labels.states.index("dead")  # nothing was ever logged there: absorbing
    assert list(mdp.problem.next_states(0, dead, 0)) == [dead]
    ill, wait = labels.states.index("ill"), labels.actions.index("wait")
    assert mdp.problem.reward[0, ill, wait] == 0.5 and mdp.problem.reward[0, ill, 1 - wait] == 0.0
    assert mdp.problem.start[ill] == 0.5
    np.testing.assert_allclose(mdp.original_theta[0], fit.theta_, rtol=1e-12)
    assert np.isfinite(livarot.solve(mdp).value).all()
    scaled = fit.confidence_set(problem=mdp.problem)
    np.testing.assert_allclose(scaled.center, mdp.theta[0], rtol=1e-12)
    direction = np.array([1.0, 2.0])
    plain = fit.confidence_set()
    assert scaled.width(direction) == pytest.approx(plain.width(direction) * mdp.problem.feature_scale)


def test_unseen_pairs():
    log = LOG[~((LOG.state == "ill") & (LOG.action == "wait"))]
    with pytest.warns(DataWarning, match="inferred"):
        fit = MNLTransition(features=["action:severity"]).fit(log)
    with pytest.raises(LivarotError, match=r"1 \(state, action\) have no reachable set, such as \('ill', 'wait'\)"):
        fit.to_mdp(reward={"well": 1.0}, horizon=3, start="well")
    stay = fit.to_mdp(reward={"well": 1.0}, horizon=3, start="well", unseen="stay")
    ill, wait = fit.states_.index("ill"), fit.actions_.index("wait")
    assert list(stay.problem.next_states(0, ill, wait)) == [ill]
    sink = fit.to_mdp(reward=lambda s, a: float(s == "well"), horizon=3, start="well", unseen="sink")
    labels = labels_of(sink)
    assert labels.states[-1] == "(unseen)" and list(sink.problem.next_states(0, ill, wait)) == [len(labels.states) - 1]
    assert (sink.problem.reward[:, -1] == 0.0).all()
    assert fit.support().loc[("well", "treat"), "count"] == ((log.state == "well") & (log.action == "treat")).sum()


def test_stage_column_does_not_fix_the_horizon_of_a_shared_model():
    long = MNLTransition(features=["treat", "wait"], stage="t").fit(expanded(LOG))
    assert long.choices_.n_sets == 20
    assert long.to_mdp(reward={"well": 1.0}, horizon=9).problem.horizon == 9


def test_features_that_change_from_choice_to_choice_do_not_make_an_mdp():
    table = expanded(LOG.head(200)).assign(noise=lambda t: np.random.default_rng(0).normal(size=len(t)))
    fit = MNLTransition(features=["treat", "noise"]).fit(table)
    with pytest.raises(LivarotError, match="differ from choice to choice"):
        fit.to_mdp(reward={"well": 1.0}, horizon=3, start="well")
