"""Simulation: frequencies, ends, streams; the entries that choose the criterion."""

import numpy as np
import pytest

import livarot
from livarot.infinite import (
    UCMNLK,
    FixedPolicy,
    evaluate,
    policy_gain,
    policy_value,
    run_infinite,
    simulate,
    solve,
)
from tests.support.stationary import random_table, to_model, with_features


def test_returns_are_the_value():
    """4000 paths with ends and rewards of the next state: within four standard errors, for both kinds of policy."""
    table, ends = random_table(np.random.default_rng(7))
    mdp = to_model(table, ends, discount=0.8, start=next(s for s in range(5) if s not in ends))
    best = solve(mdp).policy
    mixed = mdp.problem.available / np.maximum(mdp.problem.available.sum(axis=1, keepdims=True), 1)
    for policy in (best, mixed):
        returns = simulate(mdp, policy, 80, 4000, seed=1).returns(0.8)
        exact = float(mdp.problem.start @ evaluate(mdp, policy))
        assert abs(returns.mean() - exact) < 4 * returns.std() / np.sqrt(4000)


def test_ends_and_actions_that_exist():
    table, ends = random_table(np.random.default_rng(8), ends=2)
    mdp = to_model(table, ends)
    mixed = mdp.problem.available / np.maximum(mdp.problem.available.sum(axis=1, keepdims=True), 1)
    paths = simulate(mdp, mixed, 50, 200, seed=2)
    over = mdp.problem.terms.terminal[paths.states[:, :-1]]
    assert ((paths.actions == -1) == over).all() and over.any()
    assert mdp.problem.available[paths.states[:, :-1][~over], paths.actions[~over]].all()
    assert (paths.states[:, 1:][over] == paths.states[:, :-1][over]).all()
    paid = np.zeros_like(paths.rewards)
    for path, states in enumerate(paths.states):
        arrived = [t for t in range(50) if states[t] in ends and (t == 0 or states[t - 1] not in ends)]
        for t in arrived:
            paid[path, t] = ends[int(states[t])]
    assert (paths.rewards[over] == paid[over]).all()


def test_one_seed_decides_and_longer_paths_begin_with_shorter_ones():
    mdp = with_features(np.random.default_rng(0))
    mixed = np.full((6, 3), 1 / 3)
    long, short = simulate(mdp, mixed, 40, 7, seed=4), simulate(mdp, mixed, 13, 7, seed=4)
    assert (long.states[:, :14] == short.states).all() and (long.rewards[:, :13] == short.rewards).all()
    assert (simulate(mdp, mixed, 40, 7, seed=5).states != long.states).any()


def test_the_criterion_is_the_model_s_unless_another_is_given():
    mdp = with_features(np.random.default_rng(1))
    policy = np.zeros(6, dtype=int)
    assert (evaluate(mdp, policy).gain == policy_gain(mdp, policy).gain).all()
    assert (evaluate(mdp, policy, 0.5) == policy_value(mdp, policy, 0.5)).all()
    kept = mdp.with_terms(discount=0.7)
    assert (evaluate(kept, policy) == policy_value(mdp, policy, 0.7)).all()
    assert (evaluate(kept, policy, 1.0).gain == policy_gain(mdp, policy).gain).all()


def test_learners_respect_missing_actions_and_ends():
    table, ends = random_table(np.random.default_rng(3))
    mdp = to_model(table, ends, start=next(s for s in range(5) if s not in ends))
    result = run_infinite(mdp, UCMNLK(discount=0.9), 40, seed=range(4), discount=0.9)
    assert np.abs(result.regret).max() < 1e-6  # the law is known: its first plan is optimal
    fixed = FixedPolicy(np.asarray(solve(mdp, 0.9).policy))
    assert np.abs(run_infinite(mdp, fixed, 10, discount=0.9).regret).max() < 1e-9
    missing = np.where(mdp.problem.terms.terminal, 0, mdp.problem.available.argmin(axis=1))
    if (~mdp.problem.available[np.arange(5), missing] & ~mdp.problem.terms.terminal).any():
        with pytest.raises(livarot.LivarotError, match="does not exist"):
            run_infinite(mdp, FixedPolicy(missing), 3, discount=0.9)


def test_a_learner_in_any_units():
    """Rewards times 2^20: the same plans, and 2^20 times the regret."""
    one = with_features(np.random.default_rng(5), reward=np.linspace(0.0, 1.0, 18).reshape(6, 3))
    many = one.with_terms(reward=2.0**20 * one.problem.reward)
    runs = [run_infinite(mdp, UCMNLK(discount=0.9), 60, seed=range(3), discount=0.9) for mdp in (one, many)]
    assert (runs[0].states == runs[1].states).all()
    np.testing.assert_allclose(runs[1].regret, 2.0**20 * runs[0].regret, rtol=0, atol=1e-3)
    assert (runs[1].reward == 2.0**20 * runs[0].reward).all()


def test_unsorted_next_states():
    """scipy sorts matrices in place; the model's rows must stay as they are."""
    rng = np.random.default_rng(6)
    mdp = with_features(rng)
    before = mdp.prob.copy(), mdp.problem.rows.next_state.copy()
    mixed = rng.dirichlet(np.ones(3), 6)
    for gamma in (0.9, 1.0):
        for policy in (np.ones(6, dtype=int), mixed):
            weights = np.eye(3)[policy] if policy.ndim == 1 else policy
            move, pay = np.einsum("sa,sat->st", weights, mdp.table), (weights * mdp.mean_reward).sum(axis=1)
            found = evaluate(mdp, policy, gamma)
            if gamma < 1.0:
                np.testing.assert_allclose(found, np.linalg.solve(np.eye(6) - gamma * move, pay), rtol=1e-10)
            else:
                np.testing.assert_allclose(found.gain + found.bias, pay + move @ found.bias, rtol=0, atol=1e-12)
    solve(mdp, 0.9)
    assert (mdp.prob == before[0]).all() and (mdp.problem.rows.next_state == before[1]).all()
