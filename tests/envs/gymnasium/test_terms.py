"""Gymnasium environments of models with masks, terminal states and rewards of any scale."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import livarot
from livarot.envs import MNLEnv, MNLVectorEnv
from tests.support.terms import random_case


def masked_case(seed=0, **settings):
    mdp, told = random_case(seed, **settings)
    return mdp, told


@pytest.mark.filterwarnings("ignore")
def test_the_checker_of_gymnasium_passes():
    mdp, _ = masked_case(n_actions=2, per_stage=False)
    check_env(MNLEnv(livarot.envs.river_swim(4, 6)), skip_render_check=True)
    env = MNLEnv(mdp)
    _, info = env.reset(seed=0)
    assert info["action_mask"].dtype == np.int8 and info["action_mask"].shape == (2,)
    assert env.action_space.sample(mask=info["action_mask"]) in np.flatnonzero(info["action_mask"])


class Sampling(gymnasium.ActionWrapper):
    """Turns an action that does not exist into one that does, as a masked learner would."""

    def action(self, action):
        mask = self.env.unwrapped.action_masks()
        return action if mask[action] else int(np.flatnonzero(mask)[0])


@pytest.mark.filterwarnings("ignore")
def test_the_checker_passes_on_a_masked_model():
    mdp, _ = masked_case()
    check_env(Sampling(MNLEnv(mdp)), skip_render_check=True)


@pytest.mark.parametrize("costs", [False, True])
def test_episodes_follow_the_masks_and_earn_what_the_model_says(costs):
    mdp, told = masked_case(1, costs=costs)
    problem, env, rng = mdp.problem, MNLEnv(mdp), np.random.default_rng(0)
    ended_early = 0
    for episode in range(40):
        state, info = env.reset(seed=3 if episode == 0 else None)
        total, faded, h, over, states, actions = 0.0, 1.0, 0, False, [state], []
        while not over:
            assert np.array_equal(info["action_mask"], problem.exists[h, state])
            assert np.array_equal(env.action_masks(), problem.exists[h, state])
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
            state, reward, over, truncated, info = env.step(action)
            total, faded, h = total + faded * reward, faded * told["discount"], h + 1
            states.append(state)
            actions.append(action)
            assert not truncated
        ended_early += h < problem.horizon
        assert h == problem.horizon or state in told["over"]
        if states[0] in told["over"]:
            expected = told["final"][states[0]]
        else:
            expected, weight = 0.0, 1.0
            for k, action in enumerate(actions):
                expected += weight * told["paid"][k, states[k], action, states[k + 1]]
                weight *= told["discount"]
            expected += weight * told["final"][states[-1]]
        assert total == pytest.approx(expected, abs=1e-9)
    assert ended_early > 0


def test_actions_that_do_not_exist_are_refused():
    mdp, _ = masked_case()
    env = MNLEnv(mdp)
    for episode in range(50):
        env.reset(seed=episode)
        missing = np.flatnonzero(~env.action_masks())
        if len(missing):
            with pytest.raises(livarot.LivarotError, match="does not exist in state"):
                env.step(int(missing[0]))
            return
    raise AssertionError("no state without an action")


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_the_vector_environment_agrees(mode):
    mdp, _ = masked_case(2)
    vector, rng = MNLVectorEnv(mdp, 3, autoreset_mode=mode), np.random.default_rng(1)
    single = [MNLEnv(mdp) for _ in range(3)]
    states, infos = vector.reset(seed=5)
    own = [env.reset(seed=5 + i) for i, env in enumerate(single)]
    assert states.tolist() == [state for state, _ in own]
    for _ in range(12):
        assert infos["action_mask"].dtype == np.int8
        assert np.array_equal(vector.action_masks(), infos["action_mask"])
        actions = np.array([int(rng.choice(np.flatnonzero(row))) for row in infos["action_mask"]])
        ended = [env.stage == mdp.problem.horizon for env in single]
        states, rewards, terminated, _, infos = vector.step(actions)
        for i, env in enumerate(single):
            if ended[i] and mode == "NextStep":
                state, reward, over = env.reset()[0], 0.0, False
            else:
                state, reward, over, _, _ = env.step(int(actions[i]))
                if over and mode == "SameStep":
                    state = env.reset()[0]
            assert (states[i], terminated[i]) == (state, over) and rewards[i] == reward
    _, infos = vector.reset(seed=next(s for s in range(50) if not vector.reset(seed=s)[1]["action_mask"].all()))
    with pytest.raises(livarot.LivarotError, match="does not exist in its state"):
        vector.step(infos["action_mask"].argmin(axis=1))


def test_plain_models_have_no_mask():
    env = MNLEnv(livarot.envs.river_swim(4, 6))
    assert "action_mask" not in env.reset(seed=0)[1] and env.action_masks().all()


def test_learning_step_by_step_equals_a_run():
    """The same seed gives the same episodes: what they earn is V* minus the realised regret, without a discount."""
    mdp, _ = masked_case(3, costs=True, discount=1.0)
    agent = livarot.agents.Livarot()
    learned = livarot.learn(MNLEnv(mdp), agent, n_episodes=20, seed=4)
    run = livarot.run(mdp, agent, 20, seed=4)
    online = livarot.Online(agent, mdp.problem, 4)
    first = [MNLEnv(mdp).reset(seed=4, options={"episode": t})[0] for t in range(20)]
    best = livarot.solve(mdp).value[0, first]
    np.testing.assert_allclose(learned.returns, best - run.realised_regret[0], rtol=0, atol=1e-9)
    assert learned.lengths.min() < mdp.problem.horizon and online.episode == 0
