"""LIVAROT with a learned prior: its plans and updates written out, what every agent must do, the guard of pooling."""

import numpy as np
import pytest

import livarot
from benchmarks import untried
from livarot import envs
from livarot.agents import AdaptiveLivarot, Livarot
from livarot.agents.variants.adaptive_livarot import GUESS, block_sizes
from livarot.errors import LivarotError
from livarot.estimation.prior_fit import fit_pool, fit_prior, learned_prior, pooled_prior, with_mean_unknown
from livarot.planning.optimistic.rules import JointMaximum
from tests.support import field
from tests.support.episodes import play_agent


def test_without_pooling_the_ridge_is_learned():
    mdp = field.ragged()
    log, end = play_agent(mdp, AdaptiveLivarot(), 60, seed=1)
    fits = [t for t in range(60) if log["states"][t + 1].next_fit != log["states"][t].next_fit]
    assert fits[:5] == [1, 2, 3, 4, 5] and fits[-1] - fits[-2] == 2  # after 1 + t//40 episodes
    before, last = log["states"][fits[-1]], log["states"][fits[-1] + 1]
    first = AdaptiveLivarot().first_ridge(mdp.problem)
    learned = learned_prior(mdp.problem, before.estimate, 4.0, 1.0 / first)
    np.testing.assert_array_equal(last.prior.precision, learned.precision)
    assert last.prior.precision[0, 0] != first
    assert end.pool.mean.shape == (1, 0)
    kept = play_agent(mdp, AdaptiveLivarot(learn_reg=False), 10, seed=1)[1]
    np.testing.assert_array_equal(kept.prior.precision[0], mdp.problem.rows.pack_identity())


def test_with_pooling_the_stages_share_a_mean():
    mdp = envs.hard_chain(4, gap=0.1)
    log, _ = play_agent(mdp, AdaptiveLivarot(pooling=True), 12, seed=1)
    before, after = log["states"][5], log["states"][6]
    pool = fit_pool(mdp.problem, after.estimate, before.pool, GUESS)
    np.testing.assert_allclose(after.pool.mean, pool.mean)
    used = pooled_prior(mdp.problem, before.pool, 1.0)  # that of the fit
    np.testing.assert_array_equal(after.prior.precision, used.precision)
    again = fit_prior(mdp.problem, before.estimate.theta, after.history, used)
    np.testing.assert_array_equal(after.estimate.gram, again.gram)
    plan = AdaptiveLivarot(pooling=True).plan(mdp.problem, after, None)
    wider = with_mean_unknown(mdp.problem, after.estimate, after.pool)
    np.testing.assert_allclose(plan.gram, wider.gram / (2 * 0.1 * 2), rtol=1e-12)
    apart = AdaptiveLivarot(beta_scale=0.3)
    plan = apart.plan(mdp.problem, apart.init(mdp.problem), None)
    np.testing.assert_allclose(plan.gram[0, 0], mdp.problem.rows.pack_identity(1 / (2 * 0.3 * 2)), rtol=1e-12)


@pytest.mark.parametrize(("horizon", "share"), [(4, 1.0), (10, 1.0), (25, 0.4)])
@pytest.mark.parametrize(("pooling", "scale"), [(False, 0.05), (True, 0.1)])
def test_many_stages_share_a_budget(horizon, share, pooling, scale):
    problem, default = envs.hard_chain(horizon, gap=0.5 / horizon).problem, AdaptiveLivarot(pooling=pooling)
    given = AdaptiveLivarot(pooling=pooling, beta_scale=scale * share)
    own, same = (agent.plan(problem, agent.init(problem), None).gram for agent in (default, given))
    np.testing.assert_allclose(own, same, rtol=1e-12)


def test_the_first_ridge_knows_the_ball():
    small, large = envs.make("park-two-state").problem, envs.hard_chain(10, gap=0.05).problem
    assert small.param_bound**2 < 6
    assert AdaptiveLivarot().first_ridge(small) == pytest.approx(6 / small.param_bound**2)
    assert AdaptiveLivarot().first_ridge(large) == 1.0
    assert AdaptiveLivarot(reg=9.0).first_ridge(small) == 9.0
    assert AdaptiveLivarot(learn_reg=False).first_ridge(small) == 1.0
    assert AdaptiveLivarot(pooling=True).first_ridge(large) == 1.0
    state = AdaptiveLivarot().init(small)
    np.testing.assert_allclose(state.prior.precision[0], small.rows.pack_identity(6 / small.param_bound**2))


def data_hessians(mdp, state):
    """The Hessian of each stage's log-likelihood at the estimate, without a prior: two outcomes in every pair seen."""
    problem, history, theta = mdp.problem, state.history, state.estimate.theta[0]
    total = np.zeros((problem.horizon, problem.dim, problem.dim))
    for h, s, a in np.ndindex(problem.horizon, problem.n_states, problem.n_actions):
        seen = history.pairs[0, h, : history.used[0, h]] == problem.pair(h, s, a)
        for counts in history.counts[0, h, : history.used[0, h]][seen]:
            phi, p = problem.features(h, s, a), problem.probabilities(theta, h, s, a)
            if len(phi) == 2:
                total[h] += counts.sum() * p[0] * p[1] * np.outer(phi[0] - phi[1], phi[0] - phi[1])
    return total


@pytest.mark.parametrize("pooling", [False, True])
def test_a_prior_that_fades(pooling):
    """The Hessian with the prior on effects counted (1 + t)^-f times, entry by entry; the first plan is as before."""
    mdp = envs.hard_chain(4, gap=0.1)
    problem, agent = mdp.problem, AdaptiveLivarot(prior_fade=0.5, pooling=pooling)
    _, state = play_agent(mdp, agent, 15, seed=1)
    effect, common = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])  # the bias is what no action touches
    precision = problem.rows.unpack(state.prior.precision)[0]
    np.testing.assert_allclose(precision, effect * precision[0, 0] + common * precision[1, 1])
    data = problem.rows.unpack(state.estimate.gram)[0] - precision  # the pool has moved on in the direction of the bias
    np.testing.assert_allclose(data_hessians(mdp, state)[:, 0], data[:, 0])
    faded = problem.rows.unpack(state.estimate.gram)[0] - (1 - 16**-0.5) * effect * precision[0, 0]
    scale = 2 * (0.1 if pooling else 0.05) * 2
    if pooling:  # then the mean is unknown, too
        moved = np.linalg.inv(faded)[:, :, 1] / state.pool.tau[0]
        extra = state.pool.spread[0, 0, 0] * np.einsum("ki,kj->kij", moved, moved)
        faded = np.linalg.inv(np.linalg.inv(faded) + extra)
    plan = agent.plan(problem, state, None)
    np.testing.assert_allclose(problem.rows.unpack(plan.gram)[0], faded / scale, rtol=1e-9)
    first, usual = (x.plan(problem, x.init(problem), None) for x in (agent, AdaptiveLivarot(pooling=pooling)))
    np.testing.assert_array_equal(first.gram, usual.gram)


def test_a_pooled_state_goes_on_with_a_heavier_ridge():
    """The prior that is taken away in part is the one that the Hessian has in it."""
    mdp = envs.hard_chain(4, gap=0.1)
    problem, heavy = mdp.problem, AdaptiveLivarot(pooling=True, reg=100.0, prior_fade=0.5)
    _, state = play_agent(mdp, AdaptiveLivarot(pooling=True), 5, seed=1)
    for t in range(3):
        plan = heavy.plan(problem, state, None)
        assert (np.linalg.eigvalsh(problem.rows.unpack(plan.gram)) > 0).all() and np.isfinite(plan.upper).all()
        state = heavy.update(problem, state, livarot.simulate(mdp, plan.policy[0], 1, seed=t))


def test_a_prior_that_fades_without_end():
    """However many episodes, and however fast: the sets stay finite."""
    mdp = field.ragged()
    _, state = play_agent(mdp, AdaptiveLivarot(), 5, seed=1)
    for fade in (1.0, 1e300):
        plan = AdaptiveLivarot(prior_fade=fade).plan(mdp.problem, state._replace(episode=10**9), None)
        assert np.isfinite(plan.gram).all() and np.isfinite(plan.upper).all()


def test_a_prior_that_fades_tries_what_looks_bad():
    """The README's repair crews, three of whom look half a logit worse than they are: seldom tried, or in the end."""
    mdp = untried.crews(0.5)
    usual, fading = (untried.regret(mdp, AdaptiveLivarot(prior_fade=fade)) for fade in (0.0, 0.5))
    assert usual > 500 > 50 > fading


def test_sizes_of_blocks():
    problem = envs.river_swim(4, 3).problem
    sizes = np.diff(problem.rows.block_start)
    assert block_sizes(problem).tolist() == [n for n in sizes for _ in range(n * n)]


def test_nothing_is_promised():
    assert AdaptiveLivarot().promised_coverage() is None
    assert AdaptiveLivarot(beta_scale=100.0).promised_coverage() is None


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(AdaptiveLivarot())
    field.assert_tiny(AdaptiveLivarot())
    field.assert_resumes(AdaptiveLivarot(), tmp_path)
    field.assert_resumes(AdaptiveLivarot(pooling=True), tmp_path, envs.hard_chain(4, gap=0.1))
    field.assert_resumes(AdaptiveLivarot(prior_fade=0.5), tmp_path)
    field.assert_pure(AdaptiveLivarot(), field.ragged())
    field.assert_pure(AdaptiveLivarot(prior_fade=0.5, pooling=True), envs.hard_chain(4, gap=0.1))
    field.assert_pure(AdaptiveLivarot(pooling=True), envs.hard_chain(4, gap=0.1))
    field.assert_learns(AdaptiveLivarot())
    field.assert_learns(AdaptiveLivarot(pooling=True, rule=JointMaximum()))


@pytest.mark.statistical
def test_both_are_better_than_the_default_on_the_chain():
    """60 seeds that nothing was chosen on."""
    seeds = range(5000, 5060)
    models = [envs.hard_chain(10, gap=0.05, seed=seed) for seed in seeds]
    pooled, apart, usual = (
        livarot.run(models, agent, 1000, seed=seeds).regret.sum(axis=1).mean()
        for agent in (AdaptiveLivarot(pooling=True), AdaptiveLivarot(), Livarot())
    )
    assert pooled < 0.95 * usual
    assert apart < usual


@pytest.mark.parametrize(("settings", "argument"), [({"reg": 0.0}, "reg"), ({"pooling": 1}, "pooling")])
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        AdaptiveLivarot(**settings)
    assert caught.value.argument == argument
