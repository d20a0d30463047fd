"""What is asked of an agent: those of the package declare it, those of users are given the usual answers."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import livarot
from livarot import Plan, agents
from livarot.agents.base import BaseAgent, declared, part_of, presets_of
from livarot.model.episodes import Estimate
from livarot.running.check_agent import agent_checks, check_agent, small

SOURCE = Path(livarot.__file__).parent
BOUNDARY = {"agents/base.py", "model/episodes.py", "running/check_agent.py"}  # where any object may be handed in
RIVER = livarot.envs.river_swim(4, 3)


class Seen(NamedTuple):
    seen: np.ndarray


@dataclass(frozen=True)
class Plain:
    """A user's agent with a name and three methods: it plays action 0."""

    name: ClassVar[str] = "plain"

    shift: float = 0.5  # without effect

    def init(self, problem, n_replicas=1):
        return Seen(np.zeros((n_replicas, 1)))

    def plan(self, problem, state, rng):
        return Plan(np.zeros((len(state.seen), problem.horizon, problem.n_states), dtype=np.int32))

    def update(self, problem, state, episodes):
        return state


class Growing(Plain):
    """It keeps every episode and declares it."""

    cost_grows = True

    def update(self, problem, state, episodes):
        return Seen(np.concatenate((state.seen, state.seen[:, :1]), axis=1))


@dataclass(frozen=True, eq=False)
class PerSeed(Plain):
    """It plays another action for each seed."""

    actions: tuple = (0, 1, 0)  # one per seed

    def select(self, replicas):
        return PerSeed(actions=self.actions[replicas])

    def plan(self, problem, state, rng):
        actions = np.array(self.actions, dtype=np.int32)[:, None, None]
        return Plan(np.tile(actions, (1, problem.horizon, problem.n_states)))


def test_callers_do_not_probe_agents():
    """Neither by the name of an attribute nor by the agent's own name."""
    words = re.compile(r"(getattr|hasattr)\((type\()?(\w+\.)*agent\b|agent(\.name)? == \"|name == \"(oracle|rare)")
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if words.search(path.read_text("utf-8"))}
    assert found == BOUNDARY


@pytest.mark.parametrize("name", agents.registry.names())
def test_agents_of_the_package_declare_everything(name):
    agent = agents.Oracle(livarot.solve(RIVER).policy) if name == "oracle" else agents.make(name)
    assert isinstance(agent, BaseAgent) and declared(agent) is agent
    assert agent.learns == (name not in ("uniform", "oracle"))
    assert agent.plays_given_policy == (name == "oracle")


def test_the_usual_answers():
    answers = declared(Plain())
    assert (answers.made_for, answers.cost_grows, answers.burn_in, answers.learns) == (None, False, 0, True)
    assert answers.select(slice(0, 1)) == Plain()
    assert answers.facts() == {"promised_coverage": None, "shift": 0.5}
    assert livarot.run(RIVER, Plain(), 3).facts["agent"] == {"promised_coverage": None, "shift": 0.5}
    check_agent(Plain(), env=RIVER)


def test_a_user_s_agent_of_several_seeds_is_split_between_threads():
    wide = livarot.envs.random_mdp(60, 5, 12, 6, seed=0)  # large enough for a second thread
    whole, split = (livarot.run(wide, PerSeed(), 3, seed=range(3), workers=workers) for workers in (1, 3))
    np.testing.assert_array_equal(whole.regret, split.regret)


@pytest.mark.parametrize(
    ("agent", "rule"),
    [(agents.RareSwitching(Growing()), "cost"), (agents.RareSwitching(agents.OFUMNLPP()), "shapes")],
    ids=["its cost grows", "made for bandits"],
)
def test_a_wrapper_answers_for_the_agent_within(agent, rule):
    env = RIVER if rule == "cost" else None
    dict(agent_checks(agent, env=env))[rule]()


def test_a_wrapper_s_burn_in_and_replicas():
    policies = np.stack([livarot.solve(small("river-swim")).policy] * 2)
    wrapped = agents.RareSwitching(agents.Oracle(policies))
    assert wrapped.select(slice(0, 1)).agent.policy.shape[0] == 1
    assert agents.RareSwitching(agents.Livarot(n_explore=7)).burn_in == 7
    alone = agents.RareSwitching()
    assert alone.select(slice(0, 1)) is alone


def test_presets_are_told_the_number_of_episodes():
    assert list(presets_of(agents.Livarot)) == ["paper", "theory", "single-phase"]
    assert presets_of(agents.Livarot)["theory"](70).n_episodes == 70
    assert presets_of(agents.UCRLMNL)["paper"](70) == agents.UCRLMNL.paper()
    assert presets_of(Plain) == {}


def test_parts_of_a_state_are_found_by_their_type():
    state = agents.Livarot().init(RIVER.problem)
    assert part_of(state, Estimate) is state.estimate
    assert part_of(agents.Uniform().init(RIVER.problem), Estimate) is None
