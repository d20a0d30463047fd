"""Episodes: the twin's draws number for number, and frequencies that are those of the model."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import livarot
from livarot.model.probabilities import transition_kernel
from livarot.simulation.rollout import World, draw_row, draw_start, play
from livarot.simulation.streams import action_uniforms, environment_uniforms
from tests.support.models import random_model, same_bits, to_mdp
from tests.twins import agents as twin
from tests.twins import core as ref

KINDS = ["dense", "block", "partial"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [False, True])
def test_episodes_are_those_of_the_twin(kind, shared):
    rng = np.random.default_rng(KINDS.index(kind))
    model = random_model(rng, H=6, S=5, A=3, d=4, U=4, kind=kind, offsets=True, scale=2.0)
    if shared:
        model["theta"] = np.stack([model["theta"][0]] * 6)
    mdp = to_mdp(model, shared=shared)
    policy = rng.integers(3, size=(6, 5))
    episodes = livarot.simulate(mdp, policy, 50, seed=11)
    uniforms = environment_uniforms(11, 0, 50, 6)
    for t in range(50):
        states, actions, choices = twin.play(model, policy, uniforms[t])
        assert episodes.states[t].tolist() == states
        assert episodes.actions[t].tolist() == actions
        assert episodes.choices[t].tolist() == choices


def test_every_transition_can_happen_and_choices_name_it():
    rng = np.random.default_rng(5)
    mdp = to_mdp(random_model(rng, H=5, S=6, A=2, d=3, U=5))
    episodes = livarot.simulate(mdp, rng.dirichlet(np.ones(2), size=(5, 6)), 100, seed=1)
    for t, h in np.ndindex(100, 5):
        s, a = episodes.states[t, h], episodes.actions[t, h]
        assert mdp.problem.next_states(h, s, a)[episodes.choices[t, h]] == episodes.states[t, h + 1]
    again = livarot.Episodes.from_states(mdp.problem, episodes.states, episodes.actions)
    assert same_bits(tuple(again), tuple(episodes))


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies_are_those_of_the_model(kind):
    """Chi-square of the state distribution of each stage against the forward equation, 20000 episodes."""
    rng = np.random.default_rng(20 + KINDS.index(kind))
    model = random_model(rng, H=4, S=5, A=2, d=4, U=4, kind=kind, offsets=True, scale=2.0)
    mdp, n = to_mdp(model), 20000
    for policy in (rng.integers(2, size=(4, 5)), rng.dirichlet(np.ones(2), size=(4, 5))):
        episodes = livarot.simulate(mdp, policy, n, seed=3)
        mass = ref.state_distribution(model["rows"], model["theta"], policy, model["start"])
        for h in range(5):
            counts = np.bincount(episodes.states[:, h], minlength=5)
            possible = mass[h] > 0
            assert not counts[~possible].any()
            if possible.sum() > 1:
                expected = n * mass[h, possible] / mass[h, possible].sum()
                assert stats.chisquare(counts[possible], expected).pvalue > 1e-4
        if np.ndim(policy) == 3:  # actions drawn with the policy's probabilities, given the state
            for s in range(5):
                here = episodes.states[:, 1] == s
                if here.sum() > 50:
                    counts = np.bincount(episodes.actions[here, 1], minlength=2)
                    assert stats.chisquare(counts, here.sum() * policy[1, s]).pvalue > 1e-4


def test_returns_average_to_the_value():
    mdp = livarot.envs.river_swim(4, 12)
    best, n = livarot.solve(mdp), 20000
    episodes = livarot.simulate(mdp, best.policy, n, seed=4)
    stage = np.arange(12)
    returns = mdp.problem.reward[stage, episodes.states[:, :-1], episodes.actions].sum(axis=1)
    assert abs(returns.mean() - best.value[0, 0]) < 4 * returns.std() / np.sqrt(n)


@pytest.mark.parametrize("start", [[0.0, 0.3, 0.0, 0.7], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0]])
def test_start_distributions(start):
    def features(h, s, a):
        return [s], [[0.0]]

    mdp = livarot.MNLMDP.from_function(1, 4, 1, features=features, reward=np.zeros((4, 1)), theta=[0.0], start=start)
    states = livarot.simulate(mdp, np.zeros((1, 4), int), 5000, seed=5).states[:, 0]
    counts, possible = np.bincount(states, minlength=4), np.array(start) > 0
    assert not counts[~possible].any()
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], 5000 * np.array(start)[possible]).pvalue > 1e-3
    u = environment_uniforms(5, 0, 5000, 1)[:, 0]
    assert states.tolist() == [twin.draw(start, x) for x in u]


def test_draws_at_the_edges():
    start = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    assert [draw_start(start, u) for u in (0.0, 0.4999, 0.5, 0.9999, 1.0)] == [1, 1, 3, 3, 3]
    prob = np.array([9.0, 0.25, 0.0, 0.75, 9.0])
    assert [draw_row(prob, 1, 3, u) for u in (0.0, 0.2499, 0.25, 0.9999, 1.0)] == [1, 1, 3, 3, 3]
    short = np.array([0.5, 0.5 - 1e-9])
    assert draw_row(short, 0, 1, 1.0 - 1e-12) == 1


def test_longer_simulations_begin_with_the_shorter_ones():
    mdp = livarot.envs.river_swim(5, 7)
    policy = np.full((7, 5, 2), 0.5)
    long, short = (livarot.simulate(mdp, policy, n, seed=6) for n in (60, 25))
    assert same_bits(tuple(x[:25] for x in long), tuple(short))
    other = livarot.simulate(mdp, policy, 25, seed=7)
    assert not np.array_equal(other.states, short.states)


def test_one_model_or_policy_for_all_rows_or_one_each():
    rng = np.random.default_rng(7)
    model = random_model(rng, H=3, S=4, A=2)
    mdps = [to_mdp(model | {"theta": sign * model["theta"]}) for sign in (1, -1, 0.5)]
    kernels = [transition_kernel(m) for m in mdps]
    prob, base = np.stack([k.prob for k in kernels]), kernels[0].base
    policies = rng.integers(2, size=(3, 3, 4)).astype(np.int32)
    env = np.concatenate([environment_uniforms(s, 0, 1, 3) for s in range(3)])
    act = np.concatenate([action_uniforms(s, 0, 1, 3) for s in range(3)])
    problem = mdps[0].problem
    each = play(problem, prob, base, policies, env, act)
    mixed = play(problem, prob, base, np.eye(2)[policies], env, act)
    assert same_bits(tuple(mixed), tuple(each))
    for r in range(3):
        one = play(problem, prob[r : r + 1], base, policies[r : r + 1], env[r : r + 1], act[r : r + 1])
        assert same_bits(tuple(one), tuple(x[r : r + 1] for x in each))
    same_policy = play(problem, prob, base, policies[:1], env, act)
    assert same_bits(tuple(same_policy), tuple(play(problem, prob, base, np.stack([policies[0]] * 3), env, act)))
    same_model = play(problem, prob[:1], base, policies, env, act)
    assert same_bits(tuple(same_model), tuple(play(problem, np.stack([prob[0]] * 3), base, policies, env, act)))


@pytest.mark.parametrize("shared", [False, True])
def test_the_world_of_reachable_states_has_the_probabilities_of_all(shared):
    """Few states of a chain's stage can be reached; with one kernel for all stages all rows are kept."""
    mdp = livarot.envs.hard_chain(6)
    if shared:
        theta = mdp.theta[:1]
        mdp = livarot.MNLMDP(dataclasses.replace(mdp.problem, shared_parameter=True), theta)
    problem, kernel = mdp.problem, transition_kernel(mdp)
    twice = [kernel.prob, 1.0 - kernel.prob]
    whole, some = World.of(problem, np.stack(twice), kernel.base), World.of_reachable(problem, twice, kernel.base)
    assert (some.prob.size < whole.prob.size) == (not shared)
    starts = problem.rows.row_start
    for h, s in np.argwhere(problem.reachable[:-1]):
        pair = (problem.stage_table[h] * problem.n_states + s) * problem.n_actions
        rows = np.arange(starts[pair], starts[pair + problem.n_actions])
        np.testing.assert_array_equal(some.prob[:, some.base[h, s] + rows], whole.prob[:, whole.base[h, s] + rows])
