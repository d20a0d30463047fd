"""The check of agents finds what is broken, and passes what is not."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import livarot
from livarot.model.episodes import Plan
from livarot.running.check_agent import agent_checks, check_agent, small


def broken(agent, rule, env):
    return dict(agent_checks(agent, env=env))[rule]


class Count(NamedTuple):
    seen: np.ndarray
    episode: int


@dataclass(frozen=True)
class Good:
    """Plays action 0."""

    name: ClassVar[str] = "good"

    shift: float = 0.0  # without effect

    def init(self, problem, n_replicas=1):
        return Count(np.zeros((n_replicas, 2)), 0)

    def plan(self, problem, state, rng):
        return Plan(np.zeros((len(state.seen), problem.horizon, problem.n_states), dtype=np.int32))

    def update(self, problem, state, episodes):
        return Count(state.seen + 1.0, state.episode + 1)


@dataclass(frozen=True)
class WithoutComment(Good):
    """A field that nobody explains."""

    mystery: float = 1.0


@dataclass
class Mutable:
    """Not frozen."""

    name: ClassVar[str] = "mutable"


@dataclass(frozen=True, repr=False)
class Silent(Good):
    """Its repr does not show its settings."""

    def __repr__(self):
        return "Silent()"


class WritesState(Good):
    """Counts in place."""

    def update(self, problem, state, episodes):
        state.seen[:] += 1.0
        return Count(state.seen, state.episode + 1)


class WritesReward(Good):
    """Spoils the problem."""

    def plan(self, problem, state, rng):
        problem.reward[0, 0, 0] = 0.5 - problem.reward[0, 0, 0]
        return super().plan(problem, state, rng)


class Remembers(Good):
    """Keeps something outside of its state."""

    calls: ClassVar[list] = []

    def plan(self, problem, state, rng):
        self.calls.append(1)
        plan = super().plan(problem, state, rng)
        plan.policy[:] = len(self.calls).bit_count() % 2  # no period
        return plan


class LooksAtNeighbours(Good):
    """What a replica plays depends on how many there are."""

    def plan(self, problem, state, rng):
        plan = super().plan(problem, state, rng)
        plan.policy[:] = len(state.seen) > 1
        return plan


class ForgetsTheFile(Good):
    """Part of what it knows is not in the state that is saved."""

    def plan(self, problem, state, rng):
        plan = super().plan(problem, state, rng)
        plan.policy[:] = state.episode % 4 >= 2
        return plan

    def update(self, problem, state, episodes):
        class Count2(Count):
            episode = state.episode + 1

        return Count2(state.seen + 1.0, 0)


class WrongShape(Good):
    """One policy without the replica axis."""

    def plan(self, problem, state, rng):
        return Plan(np.zeros((problem.horizon, problem.n_states), dtype=np.int64))


class NotFinite(Good):
    """Believes in NaN."""

    def plan(self, problem, state, rng):
        return super().plan(problem, state, rng)._replace(start_value=np.full(len(state.seen), np.nan))


@dataclass(frozen=True, eq=False)
class Cheats(Good):
    """It was given the model."""

    model: object = dataclasses.field(default=None, repr=False)  # which no agent may have


class Grows(Good):
    """Keeps every episode."""

    def update(self, problem, state, episodes):
        return Count(np.concatenate((state.seen, state.seen[:, :1]), axis=1), state.episode + 1)


class SaysSo(Grows):
    """Keeps every episode, and says so."""

    cost_grows = True


class Slow(Good):
    """The cost of an episode grows with its number."""

    def plan(self, problem, state, rng):
        for _ in range(3 * state.episode**2):  # well above the noise of a busy machine
            np.zeros(5)
        return super().plan(problem, state, rng)


BROKEN = [
    (WithoutComment(), "settings", "mystery"),
    (Mutable(), "settings", "frozen"),
    (Silent(), "settings", "repr"),
    (WritesState(), "purity", "changes its arguments|another state"),
    (WritesReward(), "purity", "changes its arguments|differently"),
    (Remembers(), "determinism", "two equal runs"),
    (Remembers(), "purity", "second time"),
    (LooksAtNeighbours(), "grouping", "alone"),
    (WrongShape(), "shapes", "policy"),
    (NotFinite(), "shapes", "finite"),
    (Cheats(model=small("river-swim")), "truth", "model holds a"),
    (Grows(), "cost", "state grows"),
    (Slow(), "cost", "times those"),
]


@pytest.mark.parametrize(("agent", "rule", "words"), BROKEN, ids=lambda x: getattr(x, "__class__", x).__name__)
def test_a_broken_rule_is_found(agent, rule, words):
    mdp = livarot.envs.river_swim(4, 3)  # a fresh one: some of these agents spoil it
    with pytest.raises(livarot.LivarotError, match=f"breaks the rule '{rule}'.*({words})"):
        broken(agent, rule, mdp)()


def test_a_state_that_does_not_survive_a_file():
    with pytest.raises(livarot.LivarotError, match="breaks the rule 'resume'"):
        broken(ForgetsTheFile(), "resume", livarot.envs.river_swim(4, 3))()


def test_good_agents_pass():
    mdp = livarot.envs.river_swim(4, 3)
    check_agent(Good(), env=mdp)
    broken(SaysSo(), "cost", mdp)()
