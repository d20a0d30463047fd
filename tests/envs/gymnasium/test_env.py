"""To Gymnasium: the environments obey its rules, and their episodes are the simulator's."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import livarot
from livarot.envs.gymnasium.env import MNLEnv, MNLVectorEnv, StageObservation
from livarot.gymnasium_ids import OWN_MODEL, env_id
from livarot.simulation.streams import stream

SEED = 11
NAMES = livarot.envs.registry.names()


@pytest.fixture(scope="module")
def mdp():
    """Ten stages, three outcomes, a random start: every draw of an episode matters."""
    rng = np.random.default_rng(3)

    def features(h, s, a):
        return [(s + k) % 5 for k in range(3)], table[s, a]

    table = rng.normal(size=(5, 3, 3, 2)) / 5
    return livarot.MNLMDP.from_function(
        10, 5, 3, features=features, reward=rng.random((5, 3)), theta=rng.normal(size=(10, 2)), start=np.full(5, 0.2)
    )


def play(env, policy, **reset):
    """One episode: states, actions and rewards."""
    state, info = env.reset(**reset)
    states, actions, rewards, ended = [state], [], [], False
    while not ended:
        actions.append(int(policy[info["stage"], state]))
        state, reward, ended, truncated, info = env.step(actions[-1])
        assert not truncated
        states.append(state)
        rewards.append(reward)
    return states, actions, rewards


@pytest.mark.parametrize("name", [name for name in NAMES if name not in livarot.envs.LARGE])
def test_check_env(name):
    check_env(gymnasium.make(env_id(name)).unwrapped)  # warnings are errors here


def test_check_env_of_a_model_of_ones_own(mdp):
    env = gymnasium.make(OWN_MODEL, mdp=mdp)
    check_env(env.unwrapped)
    assert env.unwrapped.mdp is mdp


@pytest.mark.parametrize("name", [name for name in NAMES if name not in livarot.envs.LARGE])
def test_the_same_episodes_as_the_simulator(name):
    env = gymnasium.make(env_id(name))
    model = env.unwrapped.mdp
    problem = model.problem
    size = (problem.horizon, problem.n_states)
    policy = np.random.default_rng(0).integers(problem.n_actions, size=size).astype(np.int32)
    expected = livarot.simulate(model, policy, 3, seed=SEED)
    for t in range(3):
        states, actions, rewards = play(env, policy, **({"seed": SEED} if t == 0 else {}))
        assert states == expected.states[t].tolist()
        assert actions == expected.actions[t].tolist()
        assert rewards == [float(problem.reward[h, states[h], actions[h]]) for h in range(problem.horizon)]


def test_a_random_start_and_any_episode(mdp):
    policy = livarot.solve(mdp).policy
    expected = livarot.simulate(mdp, policy, 40, seed=SEED)
    assert len(set(expected.states[:, 0].tolist())) == 5
    env = MNLEnv(mdp)
    env.reset(seed=SEED)
    found = [play(env, policy, options={"episode": t})[0] for t in (0, 39, 17, 16, 20)]
    assert found == expected.states[[0, 39, 17, 16, 20]].tolist()
    assert play(env, policy)[0] == expected.states[21].tolist()  # and the episode after it
    assert play(env, policy, seed=SEED)[0] == expected.states[0].tolist()
    assert play(env, policy, seed=SEED, options={"episode": 5})[0] == expected.states[5].tolist()


def test_without_a_seed_episodes_differ_and_can_be_repeated(mdp):
    policy = livarot.solve(mdp).policy
    env = MNLEnv(mdp)
    seen = [play(env, policy)[0] for _ in range(5)]
    assert len(set(map(tuple, seen))) > 1
    again = MNLEnv(mdp)
    assert play(again, policy, seed=env.np_random_seed)[0] == seen[0]
    one, two = MNLEnv(mdp), MNLEnv(mdp)  # a generator without a seed decides as well
    one.np_random, two.np_random = np.random.default_rng(1), np.random.default_rng(1)
    assert play(one, policy) == play(two, policy)


def test_what_an_environment_tells(mdp):
    env = MNLEnv(mdp)
    assert env.observation_space == gymnasium.spaces.Discrete(5)
    assert env.action_space == gymnasium.spaces.Discrete(3)
    _, info = env.reset(seed=0)
    assert info == {"stage": 0, "h": 0, "episode_index": 0}
    for h in range(1, 11):
        _, reward, terminated, truncated, info = env.step(0)
        assert info == {"stage": h, "h": h, "episode_index": 0}
        assert type(reward) is float
        assert (terminated, truncated) == (h == 10, False)
    assert env.reset()[1]["episode_index"] == 1


def test_stage_and_state_as_observation(mdp):
    env = StageObservation(gymnasium.make(OWN_MODEL, mdp=mdp))
    observation, _ = env.reset(seed=SEED)
    assert env.observation_space.contains(observation)
    expected = livarot.simulate(mdp, np.zeros((10, 5), dtype=np.int32), 1, seed=SEED).states[0]
    for h in range(11):
        assert observation.tolist() == [h, expected[h]]
        if h < 10:
            observation, *_ = env.step(0)
            assert env.observation_space.contains(observation)
    assert env.spec.additional_wrappers[-1].name == "StageObservation"
    with pytest.raises(livarot.LivarotError, match="does not know its stage"):
        StageObservation(gymnasium.make("FrozenLake-v1"))
    with pytest.raises(livarot.LivarotError, match="does not know its stage"):
        StageObservation(mdp)


class TestRendering:
    def test_text(self, mdp):
        env = MNLEnv(mdp, render_mode="ansi")
        assert env.render() is None
        state, _ = env.reset(seed=SEED)
        assert env.render().splitlines()[0] == f"stage 0/10  state {state}  return 0"
        following, reward, *_ = env.step(2)
        lines = env.render().splitlines()
        assert lines[0] == f"stage 1/10  state {following}  return {reward:.6g}"
        assert f"[{following}]" in lines[1]
        assert lines[2] == f"{state} -2-> {following}"
        for _ in range(9):
            env.step(0)
        assert env.render().splitlines()[2].startswith(".. ")
        assert env.render().count("-0->") == 6

    def test_pixels(self, mdp):
        env = MNLEnv(mdp, render_mode="rgb_array")
        env.reset(seed=SEED)
        first = env.render()
        assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
        env.step(1)
        second = env.render()
        assert second.shape == first.shape
        assert (second != first).any()  # the bar of stages moves, even if the state does not
        env.step(1)
        assert second is not env.render()

    def test_the_current_state_is_the_one_that_stands_out(self, mdp):
        from livarot.envs.gymnasium.render import CELL, CURRENT, MARGIN, pixels

        for state in range(5):
            frame = pixels(5, 10, [state], 0)
            corners = [tuple(frame[MARGIN + 2, MARGIN + 2 + s * CELL].tolist()) for s in range(5)]
            assert [s for s, colour in enumerate(corners) if colour == CURRENT] == [state]

    def test_digits_can_be_told_apart(self):
        from livarot.envs.gymnasium.render import CELL, MARGIN, pixels

        frame = pixels(12, 10, [11], 0)
        cells = [frame[MARGIN : MARGIN + CELL, MARGIN + s * CELL : MARGIN + (s + 1) * CELL] for s in range(10)]
        assert len({cell.tobytes() for cell in cells}) == 10

    @pytest.mark.parametrize("n_states", [1, 2, 30, 400, 401, 100_000])
    def test_any_number_of_states(self, n_states):
        from livarot.envs.gymnasium.render import pixels, text

        trail = [0, n_states - 1, n_states // 2]
        frame = pixels(n_states, 7, trail, 2)
        assert frame.shape[0] < 1400 and frame.shape[1] < 500
        assert pixels(n_states, 7, [0], 0).shape == frame.shape
        assert len(text(n_states, 7, trail, [0, 0], 0.0)) < 5000

    def test_lists_of_frames(self, mdp):
        env = gymnasium.make(OWN_MODEL, mdp=mdp, render_mode="rgb_array_list")
        env.reset(seed=0)
        env.step(0)
        assert len(env.render()) == 2

    def test_no_mode_no_picture(self, mdp):
        env = MNLEnv(mdp)
        env.reset(seed=0)
        assert env.render() is None


class TestVector:
    """The native vector environment is Gymnasium's own SyncVectorEnv of single ones, only faster."""

    @pytest.mark.parametrize("mode", list(AutoresetMode))
    @pytest.mark.parametrize("name", ["own", "river-swim"])
    def test_equals_the_synchronous_one(self, mdp, mode, name):
        model = mdp if name == "own" else livarot.envs.river_swim(4, 7)
        native = MNLVectorEnv(model, 4, autoreset_mode=mode)
        twin = SyncVectorEnv([lambda: MNLEnv(model)] * 4, autoreset_mode=mode)
        rng = np.random.default_rng(5)
        self.same(native.reset(seed=SEED), twin.reset(seed=SEED))
        for step in range(3 * model.problem.horizon + 2):
            actions = rng.integers(model.problem.n_actions, size=4)
            found = native.step(actions)
            self.same(found, twin.step(actions))
            if mode == AutoresetMode.DISABLED and found[2].any():
                for env in (native, twin):
                    env.reset(options={"reset_mask": found[2].copy()})
                assert step % model.problem.horizon == model.problem.horizon - 1
        native.close()
        twin.close()

    def same(self, found, expected):
        assert len(found) == len(expected)
        for one, two in zip(found, expected, strict=True):
            if isinstance(one, dict):
                assert one.keys() == two.keys()
                self.same(tuple(one[k] for k in sorted(one)), tuple(two[k] for k in sorted(two)))
            else:
                assert one.dtype == two.dtype and one.shape == two.shape
                assert np.array_equal(one, two)

    def test_lanes_at_different_stages(self, mdp):
        native = MNLVectorEnv(mdp, 3, autoreset_mode="Disabled")
        native.reset(seed=[4, 5, 6])
        for _ in range(4):
            native.step(np.zeros(3, dtype=np.int64))
        states, info = native.reset(options={"reset_mask": np.array([False, True, False])})
        assert info["stage"].tolist() == [0, 0, 0] and info["_stage"].tolist() == [False, True, False]
        assert native.step(np.zeros(3, dtype=np.int64))[4]["stage"].tolist() == [5, 1, 5]
        single = MNLEnv(mdp)
        single.reset(seed=5)
        assert single.reset()[0] == states[1]  # its second episode

    def test_made_by_gymnasium(self):
        envs = gymnasium.make_vec(
            "livarot/RiverSwim-v0", num_envs=3, vectorization_mode="vector_entry_point", n_states=4
        )
        assert isinstance(envs.unwrapped, MNLVectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert envs.unwrapped.mdp.problem.n_states == 4
        observations, _ = envs.reset(seed=0)
        assert envs.observation_space.contains(observations)
        assert envs.action_space.contains(envs.action_space.sample())
        same = gymnasium.make_vec("livarot/RiverSwim-v0", num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)
        assert same.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP

    def test_seeds(self, mdp):
        def episode(env, **reset):
            found = [env.reset(**reset)[0]]
            found += [env.step(np.zeros(env.num_envs, dtype=np.int64))[0] for _ in range(10)]
            return np.stack(found, axis=1)

        policy = np.zeros((10, 5), dtype=np.int32)
        expected = [livarot.simulate(mdp, policy, 2, seed=s).states for s in (7, 8, 9)]
        env = MNLVectorEnv(mdp, 3)
        assert np.array_equal(episode(env, seed=7), [e[0] for e in expected])
        assert np.array_equal(episode(env), [e[1] for e in expected])
        assert np.array_equal(episode(env, seed=[9, 8, 7]), [e[0] for e in expected[::-1]])
        assert np.array_equal(episode(env, seed=7, options={"episode": 1}), [e[1] for e in expected])
        assert len({tuple(row) for row in episode(MNLVectorEnv(mdp, 8))}) > 1  # unseeded ones are not copies

    @pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
    def test_frames(self, mdp, mode):
        native = MNLVectorEnv(mdp, 2, render_mode=mode)
        singles = [MNLEnv(mdp, render_mode=mode) for _ in range(2)]
        assert native.render() is None
        native.reset(seed=SEED)
        for lane, single in enumerate(singles):
            single.reset(seed=SEED + lane)
        for _ in range(3):
            native.step(np.array([1, 2]))
            for lane, single in enumerate(singles):
                single.step(1 + lane)
        for frame, single in zip(native.render(), singles, strict=True):
            assert np.array_equal(frame, single.render())

    def test_what_comes_back_is_the_callers(self, mdp):
        env = MNLVectorEnv(mdp, 2)
        first, info = env.reset(seed=0)
        kept = first.copy(), info["stage"].copy()
        env.step(np.zeros(2, dtype=np.int64))
        assert np.array_equal(first, kept[0]) and np.array_equal(info["stage"], kept[1])


class TestBadInput:
    @pytest.mark.parametrize("action", [3, -1, 1.0, None, "left", np.array([1, 2])])
    def test_actions(self, mdp, action):
        env = MNLEnv(mdp)
        env.reset(seed=0)
        with pytest.raises(livarot.LivarotError, match=r"action: .* is not an action; give 0\.\.2"):
            env.step(action)

    def test_stepping_out_of_turn(self, mdp):
        env = MNLEnv(mdp)
        with pytest.raises(livarot.LivarotError, match="reset"):
            env.step(0)
        env.reset(seed=0)
        for _ in range(10):
            env.step(0)
        with pytest.raises(livarot.LivarotError, match="the episode has ended"):
            env.step(0)

    def test_models(self, mdp):
        with pytest.raises(livarot.LivarotError, match="is not an MNLMDP"):
            MNLEnv(mdp.problem)
        with pytest.raises(livarot.LivarotError, match="takes no horizon"):
            MNLEnv(mdp, horizon=3)
        with pytest.raises(livarot.LivarotError, match="did you mean 'river-swim'"):
            MNLEnv("river-swin")
        with pytest.raises(livarot.LivarotError, match="did you mean 'n_states'"):
            gymnasium.make("livarot/RiverSwim-v0", n_state=4)
        with pytest.raises(livarot.LivarotError, match="render_mode"):
            MNLEnv(mdp, render_mode="hologram")

    @pytest.mark.parametrize("seed", [-1, 1.5, True, "a", b"x", {}, 1j, [[1], 2], np.array(1.0), float("nan")])
    def test_seeds(self, mdp, seed):
        for env in (MNLEnv(mdp), MNLVectorEnv(mdp, 2)):
            env.reset(seed=4)
            before = env.np_random.bit_generator.state
            with pytest.raises(livarot.LivarotError, match=r"^seed: "):
                env.reset(seed=seed)
            assert env.np_random.bit_generator.state == before

    def test_seeds_of_numpy_are_seeds(self, mdp):
        assert MNLEnv(mdp).reset(seed=np.int64(7)) == MNLEnv(mdp).reset(seed=7)
        one, two, three = (MNLVectorEnv(mdp, 2).reset(seed=seed)[0] for seed in (np.int64(7), 7, np.array([7, 8])))
        assert one.tolist() == two.tolist() == three.tolist()

    @pytest.mark.parametrize("options", [1, "episode", [1], np.arange(2), {"episode": 2**63}, {"episode": 2**70}])
    def test_options_change_nothing(self, mdp, options):
        for env in (MNLEnv(mdp), MNLVectorEnv(mdp, 2)):
            env.reset(seed=4)
            following = env.reset()[0]
            env.reset(seed=4)
            with pytest.raises(livarot.LivarotError, match=r"^(options|episode): "):
                env.reset(seed=9, options=options)
            assert np.array_equal(env.reset()[0], following)

    @pytest.mark.parametrize("episode", [-1, 1.5, True, "last"])
    def test_episodes(self, mdp, episode):
        with pytest.raises(livarot.LivarotError, match="episode: must be an integer >= 0"):
            MNLEnv(mdp).reset(seed=0, options={"episode": episode})

    def test_vector(self, mdp):
        env = MNLVectorEnv(mdp, 2)
        with pytest.raises(livarot.LivarotError, match="reset"):
            env.step(np.zeros(2, dtype=np.int64))
        with pytest.raises(livarot.LivarotError, match="3 seeds for 2"):
            env.reset(seed=[1, 2, 3])
        with pytest.raises(livarot.LivarotError, match="seed"):
            env.reset(seed=[1, -2])
        env.reset(seed=0)
        for actions in ([0], [[0, 1]], [0.5, 1.0], [0, 3], [-1, 0]):
            with pytest.raises(livarot.LivarotError, match="actions: "):
                env.step(np.array(actions))
        for mask in ([True], [False, False], [1, 0]):
            with pytest.raises(livarot.LivarotError, match="reset_mask"):
                env.reset(options={"reset_mask": np.array(mask)})
        with pytest.raises(livarot.LivarotError, match="autoreset_mode: 'never' is unknown"):
            MNLVectorEnv(mdp, 2, autoreset_mode="never")
        with pytest.raises(livarot.LivarotError, match="num_envs"):
            MNLVectorEnv(mdp, 0)
        off = MNLVectorEnv(mdp, 2, autoreset_mode="Disabled")
        off.reset(seed=0)
        for _ in range(10):
            off.step(np.zeros(2, dtype=np.int64))
        with pytest.raises(livarot.LivarotError, match="an episode has ended"):
            off.step(np.zeros(2, dtype=np.int64))


def test_no_global_randomness(mdp):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    env = MNLEnv(mdp)
    env.reset()
    env.step(0)
    MNLVectorEnv(mdp, 2).reset()
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.statistical
def test_frequencies_are_the_kernel(mdp):
    """Chi-square of the first transition, 3 outcomes: 2 degrees of freedom, 99.9 % quantile 13.8."""
    env = MNLEnv(mdp)
    env.reset(seed=int(stream(0, "test").integers(1000)))
    counts, total = np.zeros(5), 0
    for _ in range(20_000):
        state, _ = env.reset()
        if state == 2:
            counts[env.step(1)[0]] += 1
            total += 1
    expected = total * mdp.probabilities(0, 2, 1)
    found = counts[mdp.problem.next_states(0, 2, 1)]
    assert found.sum() == total
    assert ((found - expected) ** 2 / expected).sum() < 13.8
