"""Gymnasium's own wrappers around our environments; Stable-Baselines3 where it is installed."""

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector

import livarot
from livarot.envs.gymnasium.env import MNLEnv, MNLVectorEnv, StageObservation
from livarot.gymnasium_ids import env_id

NAMES = livarot.envs.registry.names()
SMALL = [name for name in NAMES if name not in livarot.envs.LARGE]
HORIZON = 7


@pytest.fixture(scope="module")
def mdp():
    return livarot.envs.river_swim(4, HORIZON)


def episode(env, **reset):
    """Rewards of an episode of random actions, how it ended and the last info."""
    env.action_space.seed(3)
    env.reset(**reset)
    rewards, terminated, truncated, info = [], False, False, {}
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        rewards.append(reward)
    return rewards, terminated, truncated, info


@pytest.mark.parametrize("name", SMALL)
def test_episode_statistics(name):
    env = wrappers.RecordEpisodeStatistics(gymnasium.make(env_id(name)))
    for number in range(2):
        rewards, *_, info = episode(env, **({"seed": 5} if number == 0 else {}))
        assert info["episode"]["l"] == len(rewards) == env.unwrapped.mdp.problem.horizon
        assert info["episode"]["r"] == pytest.approx(sum(rewards), abs=1e-6)
        assert info["episode_index"] == number and info["stage"] == len(rewards)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_episode_statistics_of_many(name, native, mode):
    model = livarot.envs.make(name)
    inner = (
        MNLVectorEnv(model, 3, autoreset_mode=mode)
        if native
        else SyncVectorEnv([lambda: MNLEnv(model)] * 3, autoreset_mode=mode)
    )
    env = vector.RecordEpisodeStatistics(inner)
    env.action_space.seed(3)
    env.reset(seed=5)
    total = np.zeros(3)
    for step in range(1, 2 * model.problem.horizon + 1):
        _, rewards, ended, _, info = env.step(env.action_space.sample())
        total += rewards
        assert ("episode" in info) == ended.any()
        if step == model.problem.horizon:
            assert ended.all() and info["episode"]["l"].tolist() == [step] * 3
            assert info["episode"]["r"] == pytest.approx(total, abs=1e-6)
            last = info["final_info"] if mode == AutoresetMode.SAME_STEP else info
            assert last["episode_index"].tolist() == [0, 0, 0]
    assert info["episode_index"].tolist() == ([2, 2, 2] if mode == AutoresetMode.SAME_STEP else [1, 1, 1])
    env.close()


def test_a_time_limit_truncates(mdp):
    cut = wrappers.RecordEpisodeStatistics(wrappers.TimeLimit(MNLEnv(mdp), 3))
    rewards, terminated, truncated, info = episode(cut, seed=0)
    assert (len(rewards), terminated, truncated, info["episode"]["l"]) == (3, False, True, 3)
    whole = wrappers.TimeLimit(MNLEnv(mdp), HORIZON + 1)
    rewards, terminated, truncated, _ = episode(whole, seed=0)
    assert (len(rewards), terminated, truncated) == (HORIZON, True, False)


WRAPPERS = {
    "autoreset": wrappers.Autoreset,
    "clipped rewards": lambda env: wrappers.ClipReward(env, 0, 0.5),
    "delayed": lambda env: wrappers.DelayObservation(env, 1),
    "flat": wrappers.FlattenObservation,
    "flat stage and state": lambda env: wrappers.FlattenObservation(StageObservation(env)),
    "normalised rewards": wrappers.NormalizeReward,
    "order": wrappers.OrderEnforcing,
    "passive checks": wrappers.PassiveEnvChecker,
    "stacked": lambda env: wrappers.FrameStackObservation(env, 2),
    "sticky": lambda env: wrappers.StickyAction(env, 0.5),
    "time": lambda env: wrappers.TimeAwareObservation(wrappers.TimeLimit(env, 2 * HORIZON), flatten=False),
    "transformed rewards": lambda env: wrappers.TransformReward(env, lambda reward: 2 * reward),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_other_wrappers(mdp, name):
    env = wrappers.RecordEpisodeStatistics(WRAPPERS[name](MNLEnv(mdp)))
    first, _ = env.reset(seed=0)
    assert env.observation_space.contains(first)
    rewards, terminated, truncated, info = episode(env)
    assert (len(rewards), terminated, truncated, info["episode"]["l"]) == (HORIZON, True, False, HORIZON)
    assert info["stage"] == HORIZON


def test_wrappers_of_many(mdp):
    env = vector.DictInfoToList(vector.NormalizeReward(vector.RecordEpisodeStatistics(MNLVectorEnv(mdp, 2))))
    env.reset(seed=0)
    for _ in range(HORIZON):
        *_, ended, _, infos = env.step(np.ones(2, dtype=np.int64))
    assert ended.all() and [info["episode_index"] for info in infos] == [0, 0]
    assert [info["episode"]["l"] for info in infos] == [HORIZON] * 2


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "DQN"])
@pytest.mark.parametrize("name", NAMES)
def test_stable_baselines(name, algorithm):
    """``pip install 'livarot[test-sb3]'``; its Monitor keeps its own numbers under ``info["episode"]``."""
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env

    try:
        env = gymnasium.make(env_id(name))
    except livarot.LivarotError as error:
        pytest.skip(str(error))
    check_env(env.unwrapped)
    short = {"PPO": {"n_steps": 64, "batch_size": 32}, "A2C": {}, "DQN": {"learning_starts": 50}}[algorithm]
    learner = getattr(sb3, algorithm)("MlpPolicy", env, seed=0, device="cpu", **short)
    learner.learn(320)
    assert learner.num_timesteps >= 320
    finished = [kept["l"] for kept in learner.ep_info_buffer]
    horizon = env.unwrapped.mdp.problem.horizon
    assert finished == [horizon] * min(100, learner.num_timesteps // horizon)
    state, _ = env.reset(seed=0)
    assert env.action_space.contains(int(learner.predict(state)[0]))


def test_maskable_ppo_plays_only_actions_that_exist():
    """sb3-contrib asks ``action_masks()``; the environment refuses every other action, so that no run would end."""
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.env_checker import check_env

    def features(_stage, state, action):  # up exists below the top, rest everywhere, down above the bottom
        after = state + action - 1
        return ([after, state], [[1.0], [0.0]]) if action != 1 and 0 <= after < 4 else ([state], [[0.0]])

    def exists(state, action):
        return 0 <= state + action - 1 < 4

    model = livarot.MNLMDP.from_function(
        horizon=8,
        n_states=4,
        n_actions=3,
        features=lambda h, s, a: features(h, s, a) if exists(s, a) else None,
        reward=lambda _h, s, _a: float(s),
        theta=[3.0],
    )
    env = MNLEnv(model)
    assert not model.problem.all_exist
    with pytest.raises(livarot.LivarotError, match="action"):
        check_env(env)  # it samples without a mask, and is told so
    learner = contrib.MaskablePPO("MlpPolicy", env, seed=0, device="cpu", n_steps=256, batch_size=64)
    learner.learn(4096)
    assert [kept["l"] for kept in learner.ep_info_buffer] == [8] * 100
    state, _ = env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        masks = env.action_masks()
        assert list(masks) == [exists(int(state), action) for action in range(3)]
        state, reward, ended, _, _ = env.step(int(learner.predict(state, action_masks=masks, deterministic=True)[0]))
        total += reward
    assert total > 8 * 1.5  # a walk at random earns less: it climbs
