"""Step by step in Gymnasium environments: the same as `livarot.run` in our own, sound in foreign ones."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import livarot
from livarot.envs.gymnasium.env import MNLEnv, StageObservation
from livarot.running.learn import learn
from livarot.running.stepwise import LearnState, Online
from tests.support.corridor import KNOWN, Corridor, corridor_features
from tests.support.episodes import equal


@pytest.fixture(scope="module")
def mdp():
    """Six stages, three outcomes, a random start."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(4, 2, 3, 2)) / 5
    return livarot.MNLMDP.from_function(
        6,
        4,
        2,
        features=lambda h, s, a: ([(s + k) % 4 for k in range(3)], table[s, a]),
        reward=rng.random((4, 2)),
        theta=rng.normal(size=(6, 2)),
        start=[0.1, 0.2, 0.3, 0.4],
    )


class Recorder(gymnasium.Wrapper):
    """Keeps what happened."""

    def __init__(self, env):
        super().__init__(env)
        self.states, self.actions = [], []

    def reset(self, **kwargs):
        state, info = self.env.reset(**kwargs)
        self.states.append([state])
        self.actions.append([])
        return state, info

    def step(self, action):
        answer = self.env.step(action)
        self.states[-1].append(answer[0])
        self.actions[-1].append(action)
        return answer


class Dice(livarot.agents.Uniform):
    """Draws a deterministic policy per episode, from the agent's own randomness."""

    name = "dice"

    def plan(self, problem, state, rng):
        size = (problem.horizon, problem.n_states)
        return livarot.Plan((rng.uniform(size) * problem.n_actions).astype(np.int32))


def agents(mdp):
    made = {name: livarot.agents.make(name) for name in livarot.agents.registry if name != "oracle"}
    made["oracle"] = livarot.agents.Oracle(livarot.solve(mdp).policy)
    made["its own luck"] = Dice()
    made["a burn-in"] = livarot.agents.Livarot(n_explore=7)
    made["the paper's"] = livarot.agents.Livarot(n_explore=5, step_size=20.0, reg=10.0, printed_radius=True)
    return made


NO_PARAMETER = ("uniform", "oracle", "its own luck", "psrl", "rlsvi", "ucbvi", "ucrl2")  # they estimate no theta
ELSEWHERE = ("oful-mlogb", "ofu-mnl-pp")  # for bandits only


@pytest.mark.parametrize(
    "name", [*(n for n in livarot.agents.registry if n not in ELSEWHERE), "its own luck", "a burn-in", "the paper's"]
)
@pytest.mark.parametrize("seed", [0, 12345])
def test_the_same_as_run(mdp, name, seed):
    """States, actions and returns, episode by episode, to the last bit."""
    agent, n_episodes = agents(mdp)[name], 25
    played = []

    def update(problem, state, episodes):
        played.append(episodes)
        return agent.update(problem, state, episodes)

    watched = SimpleNamespace(name=agent.name, init=agent.init, plan=agent.plan, update=update)
    expected = livarot.run(mdp, watched, n_episodes, seed=seed)
    env = Recorder(MNLEnv(mdp))
    result = livarot.learn(env, agent, n_episodes=n_episodes, seed=seed)
    assert env.states == [episode.states[0].tolist() for episode in played]
    assert env.actions == [episode.actions[0].tolist() for episode in played]
    optimum = livarot.solve(mdp).value[0][[states[0] for states in env.states]]
    assert optimum - result.returns == pytest.approx(expected.realised_regret[0], abs=1e-12)
    assert (result.lengths == 6).all()
    assert result.state.episode == n_episodes
    assert result.policy.shape[:2] == (6, 4)
    assert result.plan.policy.shape[1:3] == (6, 4)
    assert (result.model is None) == (name in NO_PARAMETER)


@pytest.mark.parametrize(
    "agent", [livarot.agents.Livarot(), livarot.agents.Livarot(n_explore=4), livarot.agents.Uniform(), Dice()]
)
def test_going_on_is_as_good_as_never_stopping(mdp, agent):
    for make, known in ((Corridor, KNOWN), (lambda: MNLEnv(mdp), {})):
        whole = learn(make(), agent, n_episodes=30, seed=4, **known)
        first = learn(make(), agent, n_episodes=11, seed=4, **known)
        rest = learn(make(), agent, n_episodes=19, seed=4, state=first.state, **known)
        assert np.array_equal(whole.returns, np.concatenate((first.returns, rest.returns)))
        assert np.array_equal(whole.lengths, np.concatenate((first.lengths, rest.lengths)))
        assert equal(whole.state, rest.state)
        assert equal(whole.plan.policy, rest.plan.policy)


def test_going_on_from_a_file(tmp_path):
    agent = livarot.agents.Livarot()
    first = learn(Corridor(), agent, n_episodes=11, **KNOWN)
    livarot.save_state(tmp_path / "state", agent, first.state.agent)
    loaded = LearnState(livarot.load_state(tmp_path / "state", agent, first.problem), first.state.episode)
    rest = learn(Corridor(), agent, n_episodes=9, state=loaded, **KNOWN)
    assert np.array_equal(rest.returns, learn(Corridor(), agent, n_episodes=20, **KNOWN).returns[11:])


def test_seeds_decide():
    found = [learn(Corridor(), livarot.agents.Uniform(), n_episodes=40, seed=s, **KNOWN).lengths for s in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_it_learns():
    """100 episodes in the corridor: the learned policy is that of the truth, and better than chance."""
    truth = livarot.MNLMDP(
        learn(Corridor(), livarot.agents.Uniform(), n_episodes=1, **KNOWN).problem, [[np.log(3 / 7)]]
    )
    best = float(livarot.solve(truth).value[0] @ truth.problem.start)
    result = learn(Corridor(), livarot.agents.Livarot(), n_episodes=100, **KNOWN)
    found = float(livarot.evaluate(truth, result.policy)[0] @ truth.problem.start)
    assert found == pytest.approx(best, abs=1e-12)
    assert result.model.theta[0, 0] == pytest.approx(np.log(3 / 7), abs=0.35)
    chance = learn(Corridor(), livarot.agents.Uniform(), n_episodes=100, **KNOWN)
    assert result.returns.mean() > chance.returns.mean() + 0.2


def test_spaces_that_do_not_begin_at_zero():
    plain = learn(Corridor(), livarot.agents.Livarot(), n_episodes=20, **KNOWN)
    shifted = learn(Corridor(lowest=3), livarot.agents.Livarot(), n_episodes=20, **KNOWN)
    assert np.array_equal(plain.returns, shifted.returns)
    assert equal(plain.state, shifted.state)


def test_observations_that_have_to_be_encoded(mdp):
    plain = learn(Corridor(), livarot.agents.Livarot(), n_episodes=20, **KNOWN)
    encoded = learn(
        Corridor(box=True),
        livarot.agents.Livarot(),
        n_episodes=20,
        encode=lambda x: round(5 * float(x[0])),
        n_states=5,
        **KNOWN,
    )
    assert np.array_equal(plain.returns, encoded.returns)
    wrapped = learn(StageObservation(MNLEnv(mdp)), livarot.agents.Uniform(), n_episodes=3, encode=lambda x: int(x[1]))
    assert np.array_equal(wrapped.returns, learn(MNLEnv(mdp), livarot.agents.Uniform(), n_episodes=3).returns)


def test_one_state_for_all_ends():
    """The last cell sometimes ends the episode: state 5 stands for the end, and cell 4 is a cell like the others."""

    def features(h, s, a):
        if s == 5:
            return [5], [[0.0]]
        states, phi = corridor_features(h, min(s, 3), a)
        return [5 if x == 4 else x for x in states], phi

    reward = np.zeros((8, 6, 2))
    reward[-1, 5] = 1.0
    known = {**KNOWN, "features": features, "reward": reward, "start": 0, "terminal_states": ()}
    known["start"] = np.array([0.5, 0.5, 0, 0, 0, 0])
    split = learn(Corridor(), livarot.agents.Livarot(), n_episodes=20, n_states=6, end_state=5, **known)
    assert np.array_equal(split.returns, learn(Corridor(), livarot.agents.Livarot(), n_episodes=20, **KNOWN).returns)


def test_a_problem_from_a_table():
    """FrozenLake by its own problem: the ends are absorbing there."""
    env = gymnasium.make("FrozenLake-v1")
    problem = livarot.envs.from_gymnasium(env, 20).problem
    result = learn(env, livarot.agents.CertaintyEquivalent(), n_episodes=30, problem=problem)
    assert result.lengths.min() < 20
    assert set(result.returns) <= {0.0, 1.0}
    assert result.problem is problem


def test_progress():
    calls = []
    learn(Corridor(), livarot.agents.Uniform(), n_episodes=5, progress=calls.append, **KNOWN)
    assert calls == [1] * 5


class TestOnline:
    def test_acting_again_is_the_same_action(self, mdp):
        online = Online(livarot.agents.Uniform(), mdp.problem, seed=3)
        assert len({online.act(0, 0) for _ in range(20)}) == 1
        actions = []
        for _ in range(20):
            for h in range(6):
                actions.append(online.act(0 if h == 0 else h % 4, h))
                online.observe(h % 4, actions[-1], 0.0, (h + 1) % 4, h)
        assert set(actions) == {0, 1}
        assert online.episode == 20

    def test_other_actions_than_its_own(self, mdp):
        """An agent also learns from actions that it did not choose."""
        states = []
        for advised in (True, False):
            online = Online(livarot.agents.Livarot(), mdp.problem)
            for h in range(6):
                if advised:
                    online.act(h % 4, h)
                online.observe(h % 4, 1, 0.0, (h + 1) % 4, h)
            states.append(online.state)
        assert equal(*states)

    def test_discard(self, mdp):
        online = Online(livarot.agents.Livarot(), mdp.problem)
        before = online.state
        online.observe(0, 1, 0.0, 1, 0)
        assert online.stage == 1
        online.discard()
        assert online.stage == 0 and equal(online.state, before)
        online.act(3, 0)

    def test_old_states_are_left_alone(self, mdp):
        online = Online(livarot.agents.Livarot(), mdp.problem)
        kept, copies = [], []
        for _ in range(3):
            kept.append(online.state)
            copies.append([np.array(x) for x in online.state.agent.estimate])
            for h in range(6):
                online.observe(h % 4, 1, 0.0, (h + 1) % 4, h)
        for state, copy in zip(kept, copies, strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(state.agent.estimate, copy, strict=True))

    @pytest.mark.parametrize(
        ("call", "match"),
        [
            (lambda o: o.act(0, 1), "stage: 1 in episode 0, where stage 0 comes next"),
            (lambda o: o.observe(0, 0, 0.0, 0, 2), "stage: 2 in episode 0"),
            (lambda o: o.act(4, 0), r"state: 4 at stage 0 is not in 0\.\.3"),
            (lambda o: o.act(1.0, 0), r"state: 1\.0 at stage 0"),
            (lambda o: o.observe(0, 2, 0.0, 0, 0), r"action: 2 stage 0, state 0 \(episode 0\) is not in 0\.\.1"),
            (lambda o: o.observe(0, 0, 0.0, 9, 0), r"next_state: 9 stage 0, state 0, action 0 \(episode 0\) is not in"),
            (lambda o: o.observe(0, 0, float("nan"), 0, 0), "reward: nan after stage 0, state 0, action 0"),
            (
                lambda o: o.observe(0, 1, 0.0, 3, 0),
                r"next_state: 3 cannot follow stage 0, state 0, action 1 \(episode 0\), whose reachable set is "
                r"\{0, 1, 2\}; add it to the next states that features\(h, s, a\) lists",
            ),
            (
                lambda o: o.observe(0, 1, 0.0, 2, 0, terminated=True),
                "terminated: state 2 ended the episode after stage 0, state 0, action 1 .*terminal_states",
            ),
            (
                lambda o: (o.observe(0, 1, 0.0, 2, 0), o.act(1, 1)),
                "state: 1 at stage 1, where the last transition led to 2",
            ),
        ],
    )
    def test_bad_calls(self, mdp, call, match):
        online = Online(livarot.agents.Livarot(), mdp.problem)
        before = online.state
        with pytest.raises(livarot.LivarotError, match=match):
            call(online)
        assert online.state is before

    def test_a_start_that_was_not_declared(self):
        online = Online(livarot.agents.Livarot(), livarot.envs.river_swim(4, 3).problem)
        with pytest.raises(livarot.LivarotError, match="state: 2 cannot be the first state"):
            online.act(2, 0)

    @pytest.mark.parametrize("seed", [-1, 1.5, None])
    def test_seeds(self, mdp, seed):
        with pytest.raises(livarot.LivarotError, match="seed"):
            Online(livarot.agents.Livarot(), mdp.problem, seed)


class TestBadInput:
    def refuse(self, match, env=None, **changes):
        with pytest.raises(livarot.LivarotError, match=match):
            learn(env or Corridor(), livarot.agents.Uniform(), **{"n_episodes": 30, **KNOWN, **changes})

    def test_spaces(self):
        self.refuse(r"env: has the observation space Box.*encode=", Corridor(box=True))
        self.refuse("n_states: is missing", Corridor(box=True), encode=lambda x: 0)
        pendulum = gymnasium.make("Pendulum-v1")
        self.refuse("env: has the action space Box.*not Discrete; wrap it", pendulum)
        self.refuse("env: SyncVectorEnv is not a gymnasium.Env", gymnasium.vector.SyncVectorEnv([Corridor]))

    def test_a_next_state_that_was_not_declared(self):
        def forgetful(h, s, a):
            states, phi = corridor_features(h, s, a)
            return ([states[0]], [phi[0]]) if s == 2 else (states, phi)

        self.refuse(
            r"next_state: . cannot follow stage \d, state 2, action . \(episode \d+\).*add it", features=forgetful
        )

    def test_ends_that_were_not_declared(self):
        self.refuse("terminated: state 4 ended the episode.*terminal_states", terminal_states=())
        self.refuse("terminal_states: 5 in the list is not in", terminal_states=[5])
        self.refuse("terminal_states: are all states", terminal_states=range(5))
        self.refuse("end_state: 5 of the problem is not in", end_state=5)

    def test_time_limits(self):
        self.refuse(r"env: was truncated after stage 2 of episode 0, the horizon is 8", Corridor(stop=3, ends=False))
        limited = gymnasium.make("FrozenLake-v1", max_episode_steps=5)
        problem = livarot.envs.from_gymnasium(limited, 8).problem
        with pytest.raises(livarot.LivarotError, match="horizon: is 8, the environment stops after 5 steps"):
            learn(limited, livarot.agents.Uniform(), n_episodes=1, problem=problem)
        fits = gymnasium.make("FrozenLake-v1", max_episode_steps=8)  # truncated with the last stage
        assert learn(fits, livarot.agents.Uniform(), n_episodes=5, problem=problem).lengths.max() <= 8

    @pytest.mark.parametrize("name", ["features", "reward", "param_bound", "horizon"])
    def test_what_is_missing(self, name):
        self.refuse(f"{name}: is missing", **{name: None})

    def test_what_is_said_twice(self, mdp):
        with pytest.raises(livarot.LivarotError, match="problem: is known already, and so is its horizon"):
            learn(MNLEnv(mdp), livarot.agents.Uniform(), n_episodes=1, horizon=6)
        with pytest.raises(livarot.LivarotError, match="problem: has 4 states and 2 actions, the environment 5 and 2"):
            learn(Corridor(), livarot.agents.Uniform(), n_episodes=1, problem=mdp.problem)

    def test_numbers(self):
        self.refuse("n_episodes", n_episodes=0)
        self.refuse("seed", seed=-1)
        self.refuse("features: features", features=lambda h, s, a: None)
        self.refuse("state: 0 cannot be the first state|state: 1 cannot be", start=3)
        self.refuse("state: -7 at stage 0", encode=lambda x: -7, n_states=5)


def test_no_global_randomness():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    learn(Corridor(), livarot.agents.Livarot(), n_episodes=2, **KNOWN)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_it_is_shown_in_a_few_lines(mdp):
    env = gymnasium.make("livarot/MNL-v0", mdp=mdp)
    found = livarot.learn(env, livarot.agents.Livarot(), n_episodes=20)
    title, returns, settings = repr(found).splitlines()
    assert title == "LearnResult(livarot)" and "Livarot(" in settings and "LearnResult(livarot)" in found._repr_html_()
    assert f"20 episodes, {found.lengths.mean():.6g} steps and {found.returns.mean():.6g} on average" in returns
