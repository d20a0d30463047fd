"""From Gymnasium: the model's optimal values are those of the environment, by an independent recursion."""

import gymnasium
import numpy as np
import pytest

import livarot
from livarot.envs import from_gymnasium
from livarot.envs.gymnasium.env import MNLEnv
from tests.twins.gymnasium import alive, value_iteration


class Table(gymnasium.Env):
    """An environment that is nothing but its table."""

    def __init__(self, table, start=None, **more):
        self.P = table
        if start is not None:
            self.initial_state_distrib = np.asarray(start)
        for name, value in more.items():
            setattr(self, name, value)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 1, {}


def compare(env, horizon, **options):
    mdp = from_gymnasium(env, horizon, **options)
    table = env.unwrapped.P
    start = np.asarray(env.unwrapped.initial_state_distrib)
    expected = np.array(value_iteration(table, horizon))
    found = mdp.original_value(livarot.solve(mdp).value)
    states = sorted(alive(table, np.flatnonzero(start).tolist()))
    # rescaled values pass through numbers as large as scale * H
    slack = 1e-12 * max(1.0, horizon * mdp.reward_scale.scale)
    assert np.abs(found[:, states] - expected[:, states]).max() <= slack
    assert np.abs(mdp.problem.start[: len(start)] - start).max() < 1e-15
    return mdp, float(start @ expected[0])


@pytest.mark.parametrize("horizon", [20, 100])
@pytest.mark.parametrize("slippery", [True, False])
def test_frozen_lake(horizon, slippery):
    mdp, value = compare(gymnasium.make("FrozenLake-v1", is_slippery=slippery), horizon)
    assert mdp.problem.n_states == 16
    assert mdp.reward_scale == (0.0, 1.0)  # nothing to undo
    if slippery:
        assert value == pytest.approx({20: 0.199132700834863, 100: 0.744190287829267}[horizon], abs=1e-12)
    else:
        assert value == 1.0


def test_frozen_lake_is_what_gymnasium_plays():
    """The kernel row by row: duplicates added up, holes absorbing, the goal paid when it is entered."""
    mdp = from_gymnasium(gymnasium.make("FrozenLake-v1"))
    assert mdp.problem.horizon == 100  # its time limit
    assert mdp.problem.next_states(0, 0, 0).tolist() == [0, 4]
    assert mdp.probabilities(0, 0, 0) == pytest.approx([2 / 3, 1 / 3], abs=1e-12)
    assert mdp.problem.next_states(0, 14, 1).tolist() == [13, 14, 15]
    assert mdp.problem.reward[0, 14] == pytest.approx([0.0, 1 / 3, 1 / 3, 1 / 3], abs=1e-15)
    for hole in (5, 7, 11, 12, 15):
        for action in range(4):
            assert mdp.problem.next_states(0, hole, action).tolist() == [hole]
    assert not mdp.problem.reward[:, [5, 7, 11, 12, 15]].any()


def test_cliff_walking():
    mdp, value = compare(gymnasium.make("CliffWalking-v1"), 30, rescale=True)
    assert value == -13.0
    assert mdp.problem.n_states == 48
    assert mdp.problem.next_states(0, 47, 0).tolist() == [47]  # the table itself walks on from the goal
    assert compare(gymnasium.make("CliffWalking-v1", is_slippery=True), 40, rescale=True)[1] < -13.0


def test_taxi():
    mdp, value = compare(gymnasium.make("Taxi-v4"), 25, rescale=True)
    assert mdp.problem.n_states == 500
    assert value == pytest.approx(7.93, abs=0.005)
    assert mdp.reward_scale == (-10.0, 30.0)


def test_taxi_in_the_rain():
    mdp, _ = compare(gymnasium.make("Taxi-v4", is_rainy=True), 15, rescale=True)
    assert mdp.problem.max_reachable > 1


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_with_ends_of_every_kind(seed):
    """Duplicates, impossible outcomes, states that end an episode sometimes, always or never."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    may_end = rng.random(n_states) < 0.5
    table = {}
    for s in range(n_states):
        table[s] = {}
        for a in range(n_actions):
            count = int(rng.integers(1, 5))
            weights = rng.dirichlet(np.ones(count))
            if count > 1 and rng.random() < 0.3:
                weights = np.append(weights[:-2], [weights[-2:].sum(), 0.0])
            targets = rng.integers(n_states, size=count)
            table[s][a] = [
                (float(p), int(t), float(rng.integers(-3, 4)), bool(may_end[t] and rng.random() < 0.7))
                for p, t in zip(weights, targets, strict=True)
            ]
    start = rng.dirichlet(np.ones(n_states)) * (rng.random(n_states) < 0.7)
    start = start / start.sum() if start.sum() > 0 else np.eye(n_states)[0]
    compare(Table(table, start), 7, rescale=True)


def test_a_state_that_only_sometimes_ends_the_episode():
    table = {
        0: {0: [(0.5, 1, 1.0, True), (0.5, 1, 0.0, False)], 1: [(1.0, 0, 0.25, False)]},
        1: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 0.0, True)]},
    }
    mdp, _ = compare(Table(table, [1.0, 0.0]), 6)
    assert mdp.problem.n_states == 3  # the end is a state of its own
    assert mdp.problem.next_states(0, 0, 0).tolist() == [1, 2]
    assert mdp.problem.next_states(0, 2, 1).tolist() == [2]


@pytest.mark.parametrize("features", ["one-hot", "next-state"])
@pytest.mark.parametrize("shared", [True, False])
def test_features_are_passed_on(features, shared):
    table = {s: {a: [(0.5, 0, 0.0, False), (0.5, 1, 1.0, False)] for a in range(2)} for s in range(2)}
    mdp = from_gymnasium(Table(table, [0.5, 0.5]), 4, features=features, shared_parameter=shared)
    assert mdp.problem.shared_parameter is shared
    assert mdp.problem.dim == (4 if features == "one-hot" else 2)
    assert livarot.solve(mdp).value[0] == pytest.approx([2.0, 2.0], abs=1e-12)


def test_arrays():
    rng = np.random.default_rng(0)
    P, R = rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2))
    mdp = from_gymnasium(Table(P, [0.0, 1.0, 0.0], R=R), 5)
    expected = livarot.envs.from_tabular(P, R, 5, 1)
    assert np.array_equal(livarot.solve(mdp).value, livarot.solve(expected).value)
    assert mdp.problem.start.tolist() == [0.0, 1.0, 0.0]


def test_the_start():
    table = {s: {0: [(1.0, s, 0.0, False)]} for s in range(3)}
    assert from_gymnasium(Table(table), 2).problem.start.tolist() == [0.0, 1.0, 0.0]  # what reset() says
    assert from_gymnasium(Table(table, [0.5, 0.0, 0.5]), 2).problem.start.tolist() == [0.5, 0.0, 0.5]
    assert from_gymnasium(Table(table), 2, start=2).problem.start.tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(livarot.LivarotError, match="start"):
        from_gymnasium(Table(table), 2, start=7)


def test_rewards_of_any_scale_and_the_terms_of_a_model():
    cliff = gymnasium.make("CliffWalking-v1")
    mdp, normalised = from_gymnasium(cliff, 20), from_gymnasium(cliff, 20, rescale=True)
    value = livarot.solve(mdp).value
    np.testing.assert_allclose(value, normalised.original_value(livarot.solve(normalised).value), rtol=0, atol=1e-11)
    assert value[0] @ mdp.problem.start == pytest.approx(-13.0)
    short = livarot.solve(from_gymnasium(cliff, 20, discount=0.5)).value
    assert short[0] @ mdp.problem.start == pytest.approx(-2.0 * (1.0 - 0.5**13))


def test_terms_are_about_the_states_of_the_environment():
    """The additional state has every action, and is worth nothing at the end."""
    table = {0: {a: [(0.5, 0, 0.0, True), (0.5, 1, 1.0, False)] for a in range(2)}}
    table[1] = {a: [(1.0, 0, float(a), False)] for a in range(2)}
    env = Table(table, [0.5, 0.5])
    mdp = from_gymnasium(env, 3, available={0: [1], 1: [0]}, terminal_reward=[4.0, 8.0])
    assert mdp.problem.n_states == 3
    assert mdp.problem.available[0].tolist() == [[False, True], [True, False], [True, True]]
    # 1 -> 0 pays 0; 0 ends with 1/2, else 1 and a step to 1
    assert livarot.solve(mdp).value[0] == pytest.approx([0.5 * (1.0 + 0.5 * (1.0 + 8.0)), 0.5 * (1.0 + 4.0), 0.0])
    masked = from_gymnasium(env, 3, available=np.array([[False, True], [True, False]]))
    assert masked.problem.available[:, :2].tolist() == mdp.problem.available[:, :2].tolist()


def outcome(*entries):
    return {0: {0: [entries]}}


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (outcome(1.0, 5, 0.0, False), r"next state 5 is out of range \(first at index \(0, 0\)\); states are"),
        (outcome(1.0, 0.5, 0.0, False), "next state 0.5 is out of range"),
        (outcome(1.0, 0, 0.0), "has an outcome"),
        (outcome(-1.0, 0, 0.0, False), "is not a probability"),
        (outcome(float("nan"), 0, 0.0, False), "is not a probability"),
        (outcome(0.5, 0, 0.0, False), "sums to 0.5, not 1"),
        (outcome(1.0, 0, float("inf"), False), "NaN or infinite"),
        ({0: {0: []}}, "empty reachable set"),
        ({1: {0: []}}, "has no such state"),
        ({0: {0: [(1.0, 0, 0.0, False)]}, 1: {1: [(1.0, 0, 0.0, False)]}}, r"has actions \[1\]"),
    ],
)
def test_bad_tables(table, match):
    with pytest.raises(livarot.LivarotError, match=match):
        from_gymnasium(Table(table, [1.0] + [0.0] * (len(table) - 1)), 3)


def test_environments_that_expose_nothing():
    with pytest.raises(livarot.LivarotError, match=r"CartPoleEnv does not expose P; let livarot\.learn step it"):
        from_gymnasium(gymnasium.make("CartPole-v1"), 10)
    with pytest.raises(livarot.LivarotError, match=r"take env\.unwrapped\.mdp"):
        from_gymnasium(MNLEnv("river-swim"), 10)
    with pytest.raises(livarot.LivarotError, match="has an array P but no R"):
        from_gymnasium(Table(np.ones((1, 1, 1)), [1.0]), 10)
    with pytest.raises(livarot.LivarotError, match="horizon: is missing"):
        from_gymnasium(gymnasium.make("CliffWalking-v1"), rescale=True)


@pytest.mark.statistical
def test_the_optimal_policy_earns_its_value_on_the_real_lake():
    """3,000 episodes: standard error below 0.0092; four of them."""
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=100)
    mdp = from_gymnasium(env)
    solution = livarot.solve(mdp)
    total = 0.0
    for episode in range(3000):
        state, _ = env.reset(seed=episode)
        for h in range(100):
            state, reward, terminated, _, _ = env.step(int(solution.policy[h, state]))
            total += reward
            if terminated:
                break
    assert abs(total / 3000 - solution.value[0, 0]) < 4 * 0.0092
