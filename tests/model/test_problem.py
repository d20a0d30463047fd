"""Building a model: the same model by every constructor, its storage, its files."""

import copy

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, LivarotError, Problem
from livarot.model.probabilities import transition_kernel
from tests.support.models import assert_same_problem, random_model, to_mdp
from tests.twins import core as ref

# ---------------------------------------------------------------- construction


def test_a_copied_model_stays_a_model_of_its_own():
    """What a problem keeps for compiled code are addresses: a copy has its own, and outlives the original."""
    mdp = livarot.envs.river_swim(6, 20)
    before = livarot.solve(mdp)
    other = copy.deepcopy(mdp)
    other.problem.rows.feat[:] = 0.0
    assert (transition_kernel(other).prob != transition_kernel(mdp).prob).any()
    for mine, again in zip(before, livarot.solve(mdp), strict=True):
        np.testing.assert_array_equal(mine, again)


def test_one_theta_for_all_stages():
    model = random_model(np.random.default_rng(5))
    mdp = to_mdp(model, shared=True)
    assert mdp.problem.shared_parameter
    assert mdp.problem.n_parameters == 1
    assert mdp.theta.shape == (1, 3)
    assert mdp.problem.stage_parameter.tolist() == [0, 0, 0]
    assert to_mdp(model).problem.stage_parameter.tolist() == [0, 1, 2]


# ---------------------------------------------------------------- what the learner knows
def test_unreachable_states_are_skipped():
    mdp = livarot.envs.hard_chain(4, gap=0.1)
    reach = mdp.problem.reachable
    assert [np.flatnonzero(x).tolist() for x in reach] == [[0], [1, 5], [2, 5], [3, 5], [4, 5]]
    start, state = mdp.problem.nodes
    assert start.tolist() == [0, 1, 3, 5, 7]
    assert state.tolist() == [0, 1, 5, 2, 5, 3, 5]


def test_reachable_states_follow_the_start_distribution():
    def features(h, s, a):
        return [min(s + 1, 4)], [[0.0]]

    common = {"features": features, "reward": np.zeros((5, 1)), "theta": [0.0]}
    mdp = MNLMDP.from_function(2, 5, 1, start=[0.5, 0.0, 0.5, 0.0, 0.0], **common)
    assert [np.flatnonzero(x).tolist() for x in mdp.problem.reachable] == [[0, 2], [1, 3], [2, 4]]
    np.testing.assert_array_equal(
        MNLMDP.from_function(2, 5, 1, start=3, **common).problem.start, [0.0, 0.0, 0.0, 1.0, 0.0]
    )


def test_a_problem_does_not_hold_theta():
    mdp = to_mdp(random_model(np.random.default_rng(8)))
    assert isinstance(mdp.problem, Problem)
    assert not hasattr(mdp.problem, "theta")
    stored = mdp.problem._tensors()
    assert "theta" not in stored
    for name, array in stored.items():
        assert not any(np.array_equal(array, t) for t in (mdp.theta, *mdp.theta)), name


@pytest.mark.parametrize("scale", [7.3, 0.021])
@pytest.mark.parametrize("shared", [False, True])
def test_normalising_is_undone_exactly(scale, shared):
    """Features of any size: probabilities and theta in the given units are those of the plain model."""
    model = random_model(np.random.default_rng(9), offsets=True)
    big = [[[(n, scale * f, o) for n, f, o in state] for state in stage] for stage in model["rows"]]
    mdp = to_mdp(model | {"rows": big}, shared=shared, normalise=True)
    largest = max(np.linalg.norm(f, axis=1).max() for stage in big for state in stage for _, f, _ in state)
    assert mdp.problem.feature_scale == pytest.approx(largest, rel=1e-15)
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-14)
    theta = model["theta"][:1] if shared else model["theta"]
    np.testing.assert_allclose(mdp.original_theta, theta, rtol=1e-15)
    np.testing.assert_allclose(mdp.problem.original_theta(mdp.theta), theta, rtol=1e-15)
    bound = np.linalg.norm(theta, axis=1).max() * largest
    assert mdp.problem.param_bound == pytest.approx(bound, rel=1e-15)
    for h in range(3):
        for s in range(4):
            for a in range(2):
                exact = ref.softmax(big[h][s][a], theta[0 if shared else h])
                np.testing.assert_allclose(mdp.probabilities(h, s, a), exact, rtol=0, atol=1e-14)


def test_normalising_what_is_normal_changes_nothing():
    model = random_model(np.random.default_rng(10))
    model["rows"][0][0][0] = ([0], np.array([[1.0, 0.0, 0.0]]), np.zeros(1))
    assert_same_problem(to_mdp(model), to_mdp(model, normalise=True))
    zero = MNLMDP.from_function(
        1, 1, 1, features=lambda h, s, a: ([0], [[0.0]]), reward=[[0.5]], theta=[1.0], normalise=True
    )
    assert zero.problem.feature_scale == 1.0


def test_the_smallest_model():
    mdp = MNLMDP.from_function(1, 1, 1, features=lambda h, s, a: ([0], [0.5]), reward=[[0.25]], theta=[0.3])
    best = livarot.solve(mdp)
    assert best.value.tolist() == [[0.25], [0.0]]
    assert best.variance.tolist() == [[0.0]]
    for agent in (livarot.agents.Livarot(), livarot.agents.UCRLMNLOL(), livarot.agents.Uniform()):
        result = livarot.run(mdp, agent, 3)
        assert result.regret.tolist() == [[0.0, 0.0, 0.0]]
        assert result.realised_regret.tolist() == [[0.0, 0.0, 0.0]]
    assert livarot.simulate(mdp, best.policy, 2).states.tolist() == [[0, 0], [0, 0]]


def test_two_outcomes_in_the_smallest_space():
    mdp = MNLMDP.from_function(
        1, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0], [1.0]]), reward=[[0.0], [1.0]], theta=[np.log(3.0)]
    )
    np.testing.assert_allclose(mdp.probabilities(0, 0, 0), [0.25, 0.75], rtol=1e-15)
    assert livarot.run(mdp, livarot.agents.Livarot(), 2).regret.tolist() == [[0.0, 0.0]]


def test_an_action_that_does_not_exist_has_no_probabilities():
    def features(h, s, a):
        return None if s == a == 1 else ([0, 1], [[0.0], [1.0]])

    mdp = MNLMDP.from_function(2, 2, 2, features=features, reward=[[0.5, 0.5], [0.5, 0.0]], theta=[0.3])
    assert mdp.probabilities(0, 0, 1).sum() == pytest.approx(1.0)
    with pytest.raises(LivarotError, match="action: 1 does not exist in state 1 at stage 0; `available`"):
        mdp.probabilities(0, 1, 1)
