"""What every registered environment promises.  A new entry of the registry is tested by this file without a change."""

import functools

import numpy as np
import pytest
from scipy.stats import chi2

import livarot
from livarot import envs
from livarot.model.probabilities import transition_kernel
from tests.support.models import same_bits
from tests.twins import envs as ref

NAMES = [name for name in envs.registry if name not in envs.LARGE]
TINY = {  # options for which all policies can be tried
    "hard-chain": {"horizon": 4},
    "hard-chain-fixed": {"horizon": 4},
    "hard-chain-jitter": {"horizon": 4},
    "river-swim-unknown": {"n_states": 3, "horizon": 4},
    "combination-lock": {"horizon": 3, "n_actions": 3, "dim": 2},
    "sparse": {"n_states": 3, "n_actions": 2, "n_reachable": 2, "dim": 4, "n_active": 2, "horizon": 3},
    "river-swim": {"n_states": 4, "horizon": 4},
    "river-swim-park": {"n_states": 4, "horizon": 4},
    "river-swim-vtr": {"n_states": 4, "horizon": 4},
    "river-swim-strehl": {"n_states": 4, "horizon": 3},
    "six-arms": {"horizon": 1},
    "deep-sea": {"size": 4},
    "park-two-state": {"horizon": 3, "dim": 3},
    "random": {"n_states": 3, "n_actions": 2, "n_reachable": 2, "horizon": 3},
    "machine-maintenance": {"horizon": 2},
    "kl-robust": {"n_states": 4, "n_actions": 2, "n_reachable": 2, "dim": 2, "horizon": 2},
    "mnl-bandit": {"n_arms": 3, "n_outcomes": 3},
}
MOST_POLICIES = 5000


@functools.cache
def made(name):
    return envs.make(name)


@functools.cache
def dense(name):
    """P (H, S, A, S) of an environment, from its public probabilities."""
    return dense_kernel(made(name))


def dense_kernel(mdp):
    problem = mdp.problem
    P = np.zeros((problem.horizon, problem.n_states, problem.n_actions, problem.n_states))
    for h, s, a in np.ndindex(*P.shape[:3]):
        P[h, s, a, problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
    return P


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_distributions(name):
    mdp = made(name)
    P = dense(name)
    np.testing.assert_allclose(P.sum(axis=-1), 1.0, rtol=0, atol=1e-13)
    assert (P >= 0).all()
    kernel, rows = transition_kernel(mdp), mdp.problem.rows
    for h in range(mdp.problem.horizon):  # the compiled kernel is the public one
        pair = mdp.problem.pair(h, 0, 0)
        own = kernel.prob[kernel.base[h] + rows.row_start[pair] : kernel.base[h] + rows.row_start[pair + 1]]
        np.testing.assert_allclose(own, mdp.probabilities(h, 0, 0), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_theory_asks_for(name):
    problem = made(name).problem
    assert problem.rows.norms().max() <= 1 + 1e-12
    assert np.linalg.norm(made(name).theta, axis=1).max() <= problem.param_bound * (1 + 1e-12)
    assert problem.reward.min() >= 0 and problem.reward.max() <= 1
    assert problem.start.sum() == pytest.approx(1, abs=1e-12) and (problem.start >= 0).all()
    assert problem.dim < 500 and problem.n_states < 500  # defaults are small
    assert problem.max_reachable >= 2  # there is something to learn


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_that_of_the_table(name):
    mdp = made(name)
    solution = livarot.solve(mdp)
    value, q = ref.solve_table(dense(name), mdp.problem.reward, mdp.problem.horizon)
    np.testing.assert_allclose(solution.value, value, rtol=0, atol=1e-11)
    np.testing.assert_allclose(solution.q, q, rtol=0, atol=1e-11)
    assert 0 < mdp.problem.start @ value[0] <= mdp.problem.horizon


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_the_best_of_all_policies(name):
    if name not in TINY:
        pytest.skip("no options for which all policies can be tried")
    mdp = envs.make(name, **TINY[name])
    P = dense_kernel(mdp)
    assert ref.number_of_policies(P, mdp.problem.reward, mdp.problem.start) <= MOST_POLICIES
    best = ref.best_of_all_policies(P, mdp.problem.reward, mdp.problem.start)
    assert mdp.problem.start @ livarot.solve(mdp).value[0] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_rollouts_have_the_frequencies_of_the_kernel(name):
    """Chi-square over all (stage, s, a) and the start, cells with 5 expected visits at least; level 1e-4 each."""
    mdp = made(name)
    problem, n = mdp.problem, 4000
    uniform = np.full((problem.horizon, problem.n_states, problem.n_actions), 1 / problem.n_actions)
    episodes = livarot.simulate(mdp, uniform, n, seed=11)
    counts = np.zeros(dense(name).shape)
    stages = np.broadcast_to(np.arange(problem.horizon), episodes.actions.shape)
    np.add.at(counts, (stages, episodes.states[:, :-1], episodes.actions, episodes.states[:, 1:]), 1)
    expected = counts.sum(axis=-1, keepdims=True) * dense(name)
    assert counts[dense(name) == 0].sum() == 0
    tests = [(counts.reshape(-1, problem.n_states), expected.reshape(-1, problem.n_states))]
    first = np.bincount(episodes.states[:, 0], minlength=problem.n_states)
    tests.append((first[None], n * problem.start[None]))
    tests.append(
        (episode_actions(episodes, problem), np.full((problem.horizon, problem.n_actions), n / problem.n_actions))
    )
    for seen, hoped in tests:
        statistic, freedom = chi_square(seen, hoped)
        assert freedom == 0 or chi2.sf(statistic, freedom) > 1e-4


def episode_actions(episodes, problem):
    return np.stack([np.bincount(column, minlength=problem.n_actions) for column in episodes.actions.T])


def chi_square(seen, expected):
    statistic, freedom = 0.0, 0
    for row, hoped in zip(seen, expected, strict=True):
        large = hoped >= 5
        cells = [(row[large], hoped[large]), (row[~large].sum(keepdims=True), hoped[~large].sum(keepdims=True))]
        x = np.concatenate([a for a, _ in cells])
        m = np.concatenate([b for _, b in cells])
        keep = m >= 5  # what stays too small even together is left out
        if keep.sum() >= 2:
            statistic += float(((x[keep] - m[keep]) ** 2 / m[keep]).sum())
            freedom += int(keep.sum()) - 1
    return statistic, freedom


def test_the_chi_square_test_can_fail():
    expected = np.full((1, 4), 250.0)
    statistic, freedom = chi_square(np.array([[320.0, 230.0, 225.0, 225.0]]), expected)
    assert freedom == 3 and chi2.sf(statistic, freedom) < 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded(name, tmp_path):
    mdp = made(name)
    mdp.save(tmp_path / "model")
    for kind in (livarot.MNLMDP, type(mdp)):
        again = kind.load(tmp_path / "model")
        assert again.problem.same_as(mdp.problem)
        assert again.theta.tobytes() == mdp.theta.tobytes()
        assert same_bits(tuple(livarot.solve(again)), tuple(livarot.solve(mdp)))
    assert getattr(type(mdp).load(tmp_path / "model"), "reward_scale", None) == getattr(mdp, "reward_scale", None)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_arguments_give_the_same_model(name):
    again = envs.make(name)
    assert again.problem.same_as(made(name).problem) and again.theta.tobytes() == made(name).theta.tobytes()


@pytest.mark.parametrize(
    "name", ["hard-chain", "hard-chain-jitter", "combination-lock", "sparse", "random", "park-two-state", "mnl-bandit"]
)
def test_the_seed_matters(name):
    one, same, *others = (envs.make(name, seed=seed) for seed in (3, 3, 4, 5, 6, 7))
    assert one.problem.same_as(same.problem) and one.theta.tobytes() == same.theta.tobytes()
    assert not all(one.problem.same_as(x.problem) and np.array_equal(one.theta, x.theta) for x in others)


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_plays_it(name):
    result = livarot.run(made(name), livarot.agents.Livarot(), 3, seed=[0, 1])
    assert np.isfinite(np.asarray(result.regret)).all() and (np.asarray(result.regret) > -1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_summaries_are_one_line(name):
    assert 0 < len(envs.registry.summary(name)) <= 80
