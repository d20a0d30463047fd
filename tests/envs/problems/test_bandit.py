"""The multinomial logit bandit, and what is true of "sigma_bar^2 is the inverse of kappa_*"."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs import bandit_constants, mnl_bandit
from livarot.theory.variance import sigma_bar_star


def expected_rewards(mdp, values):
    return np.array([mdp.probabilities(0, 0, a) @ values for a in range(mdp.problem.n_actions)])


@pytest.mark.parametrize("kronecker", [False, True])
@pytest.mark.parametrize("n_outcomes", [2, 3, 5])
def test_the_model(n_outcomes, kronecker):
    values = np.random.default_rng(n_outcomes).random(n_outcomes)
    mdp = mnl_bandit(7, n_outcomes, 3, seed=5, values=values, kronecker=kronecker)
    problem = mdp.problem
    assert problem.dim == (3 * (n_outcomes - 1) if kronecker else 3)
    assert (problem.horizon, problem.n_states, problem.n_actions) == (2, 1 + n_outcomes, 7)
    assert problem.shared_parameter and np.linalg.norm(mdp.theta) == pytest.approx(3.0, rel=1e-14)
    for a in range(7):
        phi = problem.features(0, 0, a)
        np.testing.assert_array_equal(phi[0], 0.0)
        np.testing.assert_allclose(np.linalg.norm(phi[1:], axis=1), 1.0, rtol=1e-14)
        np.testing.assert_array_equal(problem.next_states(0, 0, a), 1 + np.arange(n_outcomes))
    if kronecker:
        W = mdp.theta[0].reshape(n_outcomes - 1, 3)
        x = problem.features(0, 0, 2)[1, :3]
        np.testing.assert_allclose(problem.features(0, 0, 2) @ mdp.theta[0], [0.0, *(W @ x)], rtol=0, atol=1e-14)
    solution = livarot.solve(mdp)
    np.testing.assert_allclose(solution.value[1, 1:], values, rtol=0, atol=1e-15)
    np.testing.assert_allclose(solution.q[0, 0], expected_rewards(mdp, values), rtol=0, atol=1e-14)


def test_regret_is_the_bandit_s():
    mdp = mnl_bandit(5, 3, 3, seed=1)
    mean = expected_rewards(mdp, [0.0, 0.5, 1.0])
    result = livarot.run(mdp, livarot.agents.Uniform(), 3, seed=[0])
    np.testing.assert_allclose(result.regret, mean.max() - mean.mean(), rtol=0, atol=1e-14)
    for arm in range(5):
        policy = np.full((2, 4), arm)
        result = livarot.run(mdp, livarot.agents.Oracle(policy), 2, seed=[0])
        np.testing.assert_allclose(result.regret, mean.max() - mean[arm], rtol=0, atol=1e-14)


def test_one_transition_per_episode_teaches():
    """The second stage is certain: one OMD step per episode, and Gram matrices of one parameter."""
    mdp = mnl_bandit(5, 3, 3)
    assert (mdp.problem.rows.pair_block[:5] >= 0).all() and (mdp.problem.rows.pair_block[5:] < 0).all()


# ---------------------------------------------------------------- the remark on kappa_*
@pytest.mark.parametrize("seed", range(10))
def test_two_outcomes_the_remark_holds_up_to_the_cube_of_the_horizon(seed):
    """Values 0 and 1: Var = p (1 - p) = 1/kappa_* of Faury and Abeille, and sigma_bar^2 = 1/(8 kappa_*)."""
    mdp = mnl_bandit(8, 2, 3, seed=seed, param_bound=4.0)
    found = bandit_constants(mdp)
    arm = int(np.argmax(expected_rewards(mdp, [0.0, 1.0])))
    p = mdp.probabilities(0, 0, arm)[1]
    assert found.curvature == pytest.approx(p * (1 - p), rel=1e-14)
    assert found.variance == pytest.approx(found.curvature, rel=1e-12)
    assert found.normalised == pytest.approx(found.curvature, rel=1e-12)
    assert found.sigma_bar_squared == pytest.approx(found.curvature / 8, rel=1e-12)
    assert found.slope == pytest.approx(2 * p * (1 - p), rel=1e-12)
    # every episode begins in the same state, so that no policy changes sigma_bar_T
    run = livarot.run(mdp, livarot.agents.Uniform(), 20, seed=[0, 1])
    np.testing.assert_allclose(run.sigma_bar**2, found.sigma_bar_squared, rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_more_outcomes_the_variance_depends_on_the_values(seed):
    """H^3 sigma_bar^2 = Var[v] <= |v|^2 lambda_max(J): an equality only for special values."""
    rng = np.random.default_rng(seed)
    found = bandit_constants(mnl_bandit(8, 4, 3, seed=seed, values=rng.random(4)))
    assert found.normalised == pytest.approx(found.variance, rel=1e-12)
    for scale in (1.0, 0.5):
        values = scale * rng.random(4)
        mdp = mnl_bandit(8, 4, 3, seed=seed, values=values)
        own = bandit_constants(mdp)
        centred = values - values.mean()
        assert own.variance <= (centred @ centred) * own.slope * (1 + 1e-12)
        assert own.variance <= (np.ptp(values) / 2) ** 2 * (1 + 1e-12)


def test_more_outcomes_no_constant_of_the_kernel_alone_will_do():
    """The same kernel and two reward vectors with the same best arm: sigma_bar differs, kappa_* cannot."""
    values = np.array([0.0, 0.4, 0.5]), np.array([0.0, 0.05, 0.5])
    for seed in range(50):
        one, two = (mnl_bandit(4, 3, 3, seed=seed, values=v) for v in values)
        arms = [int(np.argmax(expected_rewards(m, v))) for m, v in zip((one, two), values, strict=True)]
        if arms[0] == arms[1]:
            break
    a, b = bandit_constants(one), bandit_constants(two)
    assert a.slope == b.slope and a.curvature == b.curvature
    assert abs(a.normalised - b.normalised) > 0.05 * max(a.normalised, b.normalised)


def test_one_stage_has_no_variance():
    """Reading E25: with H = 1, as printed, V*_2 = 0 and sigma_bar = 0."""
    bandit = mnl_bandit(4, 2, 3)
    flat = livarot.MNLMDP.from_function(
        1,
        3,
        4,
        features=lambda h, s, a: (bandit.problem.next_states(0, s, a), bandit.problem.features(0, s, a)),
        reward=np.random.default_rng(0).random((1, 3, 4)),
        theta=bandit.theta[0],
        param_bound=3.0,
    )
    assert sigma_bar_star(flat) == 0.0
    assert sigma_bar_star(bandit) > 0.1


def test_same_seed_same_model_and_refusals():
    one, same, other = (mnl_bandit(seed=s) for s in (1, 1, 2))
    assert one.theta.tobytes() == same.theta.tobytes() and one.problem.same_as(same.problem)
    assert not one.problem.same_as(other.problem)
    for settings, argument in (
        ({"n_arms": 0}, "n_arms"),
        ({"n_outcomes": 1}, "n_outcomes"),
        ({"dim": 0}, "dim"),
        ({"seed": -1}, "seed"),
        ({"values": [0.0, 1.0]}, "values"),
        ({"values": [0.0, 1.5, 1.0]}, "values"),
        ({"values": [0.0, float("nan"), 1.0]}, "values"),
        ({"param_bound": -1.0}, "param_bound"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            mnl_bandit(**settings)
        assert error.value.argument == argument
    with pytest.raises(livarot.LivarotError, match="must be MNLMDP"):
        bandit_constants("bandit")
    assert isinstance(envs.make("mnl-bandit", n_arms=3), livarot.MNLMDP)
