"""The constructors of a stationary model: functions, long arrays and probabilities give the same model."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import livarot
from livarot.infinite import InfiniteMDP, policy_gain, solve
from livarot.infinite.build import stacked
from tests.support.stationary import with_features

P = np.array([[[0.9, 0.1, 0.0], [0.5, 0.3, 0.2]], [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0] * 3] * 2])
OWN = {"terminal": ["gone"], "discount": 0.9, "states": ["new", "worn", "gone"], "actions": ["rest", "work"]}
PAY = {("new", "rest"): 1.0, ("new", "work"): 20.0, ("worn", "rest"): -3.0}


def model(law=P, **terms):
    return InfiniteMDP.from_transitions(law, **({"reward": PAY} | OWN | terms))


def test_from_functions():
    mdp = InfiniteMDP.from_function(
        2,
        2,
        features=lambda s, a: ([0, 1], [[0.0], [3.0 if a else -3.0]]),
        reward=lambda s, a: float(s),
        theta=[0.25],
        offset=lambda s, a: [0.0, 0.5 * s],
        normalise=True,
    )
    assert mdp.theta == pytest.approx([0.75])
    p = 1 / (1 + np.exp(-0.75)), 1 / (1 + np.exp(-1.25))
    assert [mdp.probabilities(s, 1)[1] for s in range(2)] == pytest.approx(p, rel=1e-14)
    assert policy_gain(mdp, [1, 1]).gain[0] == pytest.approx(p[0] / (1 - p[1] + p[0]), rel=1e-13)


def test_long_arrays_say_the_same():
    """The logit of a pair is its offset: probabilities and values are those of the tables."""
    outcomes = (P > 0).sum(axis=2)
    to = np.nonzero(P)[2]
    mdp = InfiniteMDP.from_arrays(
        3, 2, outcomes=outcomes, next_state=to, features=np.zeros((len(to), 1)), offset=np.log(P[P > 0]), theta=[0.7],
        reward=PAY, **OWN,
    )  # fmt: skip
    np.testing.assert_allclose(mdp.table[:2], model().table[:2], atol=1e-15)
    np.testing.assert_allclose(mdp.table[0], P[0], atol=1e-15)
    np.testing.assert_allclose(solve(mdp).value, solve(model()).value, rtol=1e-12)
    with pytest.raises(livarot.LivarotError, match="outcomes"):
        InfiniteMDP.from_arrays(3, 2, outcomes=outcomes[:2], next_state=to, features=np.zeros((len(to), 1)), theta=[0])


def test_tables_of_every_layout():
    rng = np.random.default_rng(0)
    dense = rng.dirichlet(np.ones(4), (4, 3))
    flat = csr_array(dense.reshape(12, 4))
    for form in (dense, dense.tolist(), flat, coo_array(flat), [csr_array(dense[:, a]) for a in range(3)]):
        np.testing.assert_array_equal(stacked("transitions", form).toarray(), dense.reshape(12, 4))
    twice = coo_array(([0.25, 0.75, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(stacked("transitions", twice).toarray(), [[0.0, 1.0], [1.0, 0.0]])
    same = InfiniteMDP.from_transitions(flat, reward=0.0)
    np.testing.assert_allclose(same.table, dense, rtol=1e-14)
    flat.data[:] = 7.0  # a model keeps nothing of the caller's
    np.testing.assert_allclose(same.table, dense, rtol=1e-14)


def test_rewards_of_any_scale_are_scaled_for_the_stage_only():
    mdp = model()
    assert mdp.problem.reward.max() == 20.0 and mdp.problem.reward.min() == -3.0
    inside = mdp.stage.problem.reward[0]
    assert (inside.min(), inside.max()) == (0.0, 1.0) and inside[0, 0] == pytest.approx(4 / 23)


def test_other_terms_for_the_same_law():
    mdp = model(reward=PAY)
    doubled = mdp.with_terms(reward={pair: 2.0 * pay for pair, pay in PAY.items()})
    np.testing.assert_allclose(solve(doubled).value, 2.0 * solve(mdp).value, rtol=1e-12)
    assert doubled.problem.stage.states == mdp.problem.stage.states
    paid = mdp.with_terms(reward=PAY, terminal={"gone": 7.0})
    assert solve(paid).value[2] == pytest.approx(7.0)
    features = with_features(np.random.default_rng(3), normalise=True)
    assert features.with_terms(cost=1.0).theta.tolist() == features.theta.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: model(P * 0.5), r"^transitions: probabilities sum to 0.5, not 1, at \(s, a\) \(3 in all, .*\(0, 0\)"),
        (lambda: model(np.where(P == 0.3, -0.3, P)), r"^transitions: -0.3 is not a probability at .*\(0, 1\)"),
        (lambda: model(P[:2]), r"^transitions: has shape \(2, 2, 3\)"),
        (lambda: model([csr_array(P[:, 0]), csr_array(P[:2, 1])]), r"^transitions: has shape \(2, 3\) for action"),
        (lambda: model("much"), "^transitions: are not numbers"),
        (
            lambda: model(available=np.ones((3, 2), bool)),
            r"^available: .*worn.*work.* has none, the mask says otherwise",
        ),
        (lambda: model(rewards=PAY), "^rewards: is not an argument"),
        (
            lambda: model().with_terms(available=np.ones((3, 2), bool)),
            "^available: cannot be changed",
        ),
        (lambda: model().with_terms(terminal=["worn"]), "^terminal: cannot be changed"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(livarot.LivarotError, match=message):
        call()


def test_errors_of_functions_name_the_pair_without_a_stage():
    def features(s, a):
        return [0, 1], [[0.0], [np.nan if (s, a) == (1, 0) else 1.0]]

    with pytest.raises(livarot.LivarotError) as caught:
        InfiniteMDP.from_function(2, 2, features=features, theta=[0.5], reward=0.0)
    assert caught.value.argument == "features" and "(h, s, a)" not in str(caught.value)
