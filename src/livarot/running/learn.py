"""Learning in environments whose model is not at hand: one step at a time, in any Gymnasium environment.

An agent plans before an episode and learns after it.  :class:`Online` turns that into a pair of calls per step,
``act`` and ``observe``: it plans when stage 0 asks for an action and updates when the last stage, or the end of the
episode, has been observed.  :func:`learn` drives a Gymnasium environment with it.  What the learner has to know is a
:class:`livarot.Problem`: reachable sets, features, rewards, horizon and B.  It never sees probabilities.

**Episodes that end early.**  An episode of a Problem has exactly H transitions, an environment may say ``terminated``
after fewer.  The rest is then filled with the state that ended it, which has to be absorbing in the Problem: its only
outcome is itself.  Such a pair has no parameter block, so what is filled in teaches nothing (its rewards are those that
the Problem declares).  A state that is not absorbing in the Problem is refused.  ``truncated`` is a stop
from outside, not a transition: before the horizon it is refused too, since leaving such episodes out would bias the
estimates wherever the stop depends on what happened.

**Seeds.**  An environment of this package plays the episodes of :func:`livarot.run` with the same seed.  Any other one
is reset with a seed of its own per episode, drawn from the stream (seed, "foreign environment"): episode t does not
depend on the history, and learning that is continued equals learning in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.agents.base import Agent, part_of
from livarot.core.arrays import FloatArray, IntArray
from livarot.envs.gymnasium.env import MNLEnv
from livarot.errors import bad, require_callable, require_positive_int, shown
from livarot.model.building.validation import FeatureFunction
from livarot.model.episodes import Estimate, Plan
from livarot.model.problem import MNLMDP, Problem, require_problem
from livarot.model.shown import html_of, text_of
from livarot.model.terms.rewards import RewardLike
from livarot.planning.exact import solve
from livarot.running.stepwise import LearnState, Online, number_of
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory


@dataclass(frozen=True, eq=False, repr=False)
class LearnResult:
    """What :func:`learn` gives back; hand ``state`` to :func:`learn` to go on."""

    agent: str
    settings: str
    seed: int
    returns: FloatArray  # (T,) rewards of each episode, as the environment paid them
    lengths: IntArray  # (T,) steps before the environment ended the episode
    state: LearnState
    problem: Problem = field(repr=False)
    plan: Plan = field(repr=False)  # what the agent would play next: for most agents an optimistic plan

    def __repr__(self) -> str:
        return text_of(f"LearnResult({self.agent})", self._lines())

    def _repr_html_(self) -> str:
        return html_of(f"LearnResult({self.agent})", self._lines())

    def _lines(self) -> dict[str, str]:
        last = self.returns[-max(len(self.returns) // 10, 1) :]
        told = f"{len(self.returns)} episodes, {self.lengths.mean():.6g} steps and {self.returns.mean():.6g} on average"
        return {"returns": f"{told}, {last.mean():.6g} over the last {len(last)}", "settings": self.settings}

    @cached_property
    def model(self) -> MNLMDP | None:
        """The problem with the agent's estimate of theta, for agents that keep one."""
        estimate = part_of(self.state.agent, Estimate)
        if estimate is None:
            return None
        theta = estimate.theta[0]
        bound = max(self.problem.param_bound, float(np.linalg.norm(theta, axis=1).max()))
        return MNLMDP(replace(self.problem, param_bound=bound), theta)

    @cached_property
    def policy(self) -> NDArray[Any]:
        """The greedy policy (H, S) of :attr:`model`; the next plan's policy if the agent has no estimate."""
        return self.plan.policy[0] if self.model is None else solve(self.model).policy


def learn(
    env: gymnasium.Env[Any, Any],
    agent: Agent[Any],
    *,
    n_episodes: int,
    features: FeatureFunction | None = None,
    reward: RewardLike | None = None,
    horizon: int | None = None,
    param_bound: float | None = None,
    shared_parameter: bool = True,
    start: int | ArrayLike | None = None,
    terminal_states: Iterable[int] = (),
    end_state: int | None = None,
    n_states: int | None = None,
    encode: Callable[[Any], int] | None = None,
    normalise: bool = False,
    problem: Problem | None = None,
    seed: int = 0,
    state: LearnState | None = None,
    progress: Callable[[int], None] | None = None,
) -> LearnResult:
    """Let an agent learn in a Gymnasium environment for ``n_episodes`` episodes.

    The agent knows ``problem``; or one that is built from ``features(h, s, a) -> (next_states, phi)``, ``reward`` (H,
    S, A), (S, A) or a function of (h, s, a), ``horizon``, ``param_bound`` and ``shared_parameter`` as in
    :meth:`livarot.Problem.from_function`; or, for an environment of this package, the problem of its model.

    Parameters
    ----------
    horizon : None is the environment's time limit.
    start : where episodes begin, a state or a distribution; None is anywhere.
    terminal_states : states that end an episode: absorbing, whatever ``features`` says of them.  They pay what
        ``reward`` says: a point at the last stage in the goal is a reward for having reached it.
    end_state : counts as the next state of every transition that ends the episode; for environments in which the same
        state sometimes ends it and sometimes not.
    encode, n_states : function from an observation to its state number, and how many states there are; for spaces
        other than Discrete.
    seed : of the agent and of the environment.
    state : ``LearnResult.state`` of an earlier call with the same arguments, to go on where it ended.
    progress : called with 1 after each episode.

    >>> import livarot
    >>> env = MNLEnv("river-swim", n_states=4, horizon=12)  # or gymnasium.make("livarot/RiverSwim-v0", ..)
    >>> result = learn(env, livarot.agents.Livarot(), n_episodes=20)
    >>> result.returns.shape, result.state.episode, result.policy.shape
    ((20,), 20, (12, 4))
    """
    require_positive_int("n_episodes", n_episodes)
    require_memory("n_episodes", "the returns of all episodes", 2 * n_episodes)
    require_callable(progress=progress, encode=encode)
    if not isinstance(terminal_states, Iterable):
        raise bad("terminal_states", f"{shown(terminal_states)} is not a list of states")
    ends = tuple(terminal_states)
    declared = _Declared(features, reward, horizon, param_bound, start, ends or None, shared_parameter, normalise)
    problem = _known(env, problem, declared, encode, n_states)
    if end_state is not None:
        number_of("end_state", end_state, problem.n_states, "of the problem".format)
    limit = getattr(env.spec, "max_episode_steps", None)
    if limit is not None and limit < problem.horizon:
        cure = f"make it with max_episode_steps={problem.horizon}, or learn with horizon={limit}"
        raise bad("horizon", f"is {problem.horizon}, the environment stops after {limit} steps", cure=cure)
    online = Online(agent, problem, seed, state=state)
    read = encode if encode is not None else _Shifted(getattr(env.observation_space, "start", 0))
    returns, lengths = np.zeros(n_episodes), np.zeros(n_episodes, dtype=np.int64)
    for t in range(n_episodes):
        returns[t], lengths[t] = _episode(env, online, read, end_state, first=t == 0)
        if progress is not None:
            progress(1)
    return LearnResult(
        agent=agent.name,
        settings=repr(agent),
        seed=online.seed,
        returns=returns,
        lengths=lengths,
        state=online.state,
        problem=problem,
        plan=online.plan(),
    )


def _episode(
    env: gymnasium.Env[Any, Any], online: Online, read: Callable[[Any], int], end_state: int | None, *, first: bool
) -> tuple[float, int]:
    """One episode: the rewards it paid and its steps."""
    if not isinstance(env.unwrapped, MNLEnv):
        luck = stream(online.seed, "foreign environment", online.episode)
        observation, _ = env.reset(seed=int(luck.integers(2**31)))
    elif first:
        observation, _ = env.reset(seed=online.seed, options={"episode": online.episode})
    else:
        observation, _ = env.reset()
    lowest = int(getattr(env.action_space, "start", 0))
    episode, earned, state = online.episode, 0.0, read(observation)
    for h in range(online.problem.horizon):
        action = online.act(state, h)
        observation, paid, terminated, truncated, _ = env.step(action + lowest)
        following = end_state if terminated and end_state is not None else read(observation)
        if truncated and not terminated and h + 1 < online.problem.horizon:
            raise bad(
                "env",
                f"was truncated after stage {h} of episode {episode}, the horizon is {online.problem.horizon}",
                cure=f"learn with a horizon that it allows (at most {h + 1} here), or lift its limit",
            )
        online.observe(state, action, float(paid), following, h, terminated=bool(terminated))
        earned += float(paid)
        state = following
        if terminated:
            break
    return earned, h + 1


class _Shifted:
    """The state number of a Discrete observation, whose space may begin elsewhere than at 0."""

    def __init__(self, lowest: int) -> None:
        self.lowest = int(lowest)

    def __call__(self, observation: Any) -> int:
        return int(observation) - self.lowest


def _sizes(env: gymnasium.Env[Any, Any], encode: Any, n_states: int | None) -> tuple[int, int]:
    """States and actions of an environment."""
    if not isinstance(env.action_space, gymnasium.spaces.Discrete):
        cure = "wrap it, so that its actions are numbered"
        raise bad("env", f"has the action space {env.action_space}, not Discrete", cure=cure)
    discrete = isinstance(env.observation_space, gymnasium.spaces.Discrete)
    if not discrete and encode is None:
        raise bad(
            "env",
            f"has the observation space {env.observation_space}, not Discrete",
            cure="give encode=, a function from an observation to a state number, and n_states=",
        )
    if n_states is None:
        if encode is not None:
            raise bad("n_states", "is missing", cure="say how many state numbers encode= has")
        n_states = int(env.observation_space.n)  # type: ignore[attr-defined]
    return require_positive_int("n_states", n_states), int(env.action_space.n)


def _horizon(env: gymnasium.Env[Any, Any], horizon: int | None) -> int:
    if horizon is None:
        horizon = getattr(env.spec, "max_episode_steps", None)
    if horizon is None:
        raise bad("horizon", "is missing, and the environment has no time limit", cure="pass horizon=")
    return require_positive_int("horizon", horizon)


class _Declared(NamedTuple):
    """What the user says about an environment; None where nothing is said."""

    features: FeatureFunction | None
    reward: RewardLike | None
    horizon: int | None
    param_bound: float | None
    start: int | ArrayLike | None
    terminal_states: tuple[int, ...] | None
    shared_parameter: bool
    normalise: bool


def _known(
    env: gymnasium.Env[Any, Any], problem: Problem | None, declared: _Declared, encode: Any, n_states: int | None
) -> Problem:
    """What the learner knows: the given problem, the environment's own, or the one that the user declares."""
    if problem is not None:
        require_problem(problem)
    if not isinstance(env, gymnasium.Env):
        cure = "give a single environment, not a vector one"
        raise bad("env", f"{type(env).__name__} is not a gymnasium.Env", cure=cure)
    base = env.unwrapped
    if problem is None and declared.features is None and isinstance(base, MNLEnv):
        problem = base.mdp.problem
    if problem is None:
        return _problem(*_sizes(env, encode, n_states), _horizon(env, declared.horizon), declared)
    _check_problem(env, problem, encode, declared)
    return problem


def _check_problem(env: gymnasium.Env[Any, Any], problem: Problem, encode: Any, declared: _Declared) -> None:
    surplus = [name for name, value in declared._asdict().items() if value is not None and not isinstance(value, bool)]
    if surplus:
        raise bad("problem", f"is known already, and so is its {', '.join(surplus)}", cure="give one or the other")
    found, n_actions = _sizes(env, encode, problem.n_states if encode is not None else None)
    if found > problem.n_states or n_actions != problem.n_actions:
        sizes = f"{problem.n_states} states and {problem.n_actions} actions, the environment {found} and {n_actions}"
        raise bad("problem", f"has {sizes}", cure="describe this environment")


def _problem(n_states: int, n_actions: int, horizon: int, declared: _Declared) -> Problem:
    """The problem that the user declares, with absorbing terminal states."""
    features, reward, param_bound = declared.features, declared.reward, declared.param_bound
    for name, value in (("features", features), ("reward", reward), ("param_bound", param_bound)):
        if value is None:
            cure = "the learner has to know features, reward and param_bound; or give problem="
            raise bad(name, "is missing", cure=cure)
    assert features is not None and reward is not None and param_bound is not None  # noqa: S101, PT018 (just checked)
    known = features
    listed = declared.terminal_states or ()
    ends = sorted({number_of("terminal_states", s, n_states, "in the list".format) for s in listed})

    def with_ends(h: int, s: int, a: int) -> tuple[Any, Any] | None:
        return ([s], np.zeros((1, width))) if s in ends else known(h, s, a)

    going = next((s for s in range(n_states) if s not in ends), None)
    if going is None:
        raise bad("terminal_states", "are all states", cure="leave out those in which the episode goes on")
    width = _width(known, going) if ends else 0
    return Problem.from_function(
        horizon,
        n_states,
        n_actions,
        features=with_ends if ends else known,
        reward=reward,
        start=np.full(n_states, 1.0 / n_states) if declared.start is None else declared.start,
        param_bound=param_bound,
        shared_parameter=declared.shared_parameter,
        normalise=declared.normalise,
    )


def _width(features: FeatureFunction, state: int) -> int:
    """d, as the user's function returns it in some state."""
    answer: Any = features(0, state, 0)
    try:
        return int(np.shape(answer[1])[-1])
    except (TypeError, IndexError, ValueError) as error:
        raise bad("features", "features(h, s, a) must return (next_states, phi)", index=(0, state, 0)) from error
