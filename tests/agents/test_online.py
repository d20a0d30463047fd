"""The family of OMD and ONS: one state, one update; an agent is its radius, its rule and its presets."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents
from livarot.agents.online import MirrorDescent, NewtonSteps
from livarot.confidence.radii import livarot_radius
from livarot.planning.optimistic.rules import VarianceBonus
from livarot.running.check_agent import small
from livarot.storage import save_tensors
from tests.support.models import same_bits

CHAIN = livarot.envs.hard_chain(4, gap=0.15)
FAMILY = MirrorDescent | NewtonSteps
ONLINE = [name for name in agents.registry if issubclass(agents.registry._entry(name).factory, FAMILY)]


@dataclass(frozen=True)
class Mine(MirrorDescent):
    """LIVAROT with a bonus, written again."""

    name: ClassVar[str] = "mine"

    step_size: float = 3.0  # eta
    reg: float = 3.0  # lambda
    beta_scale: float = 0.03  # multiplies the radius
    failure_level: float = 0.05  # delta

    @classmethod
    def theory(cls):
        return cls(step_size=1.0, beta_scale=1.0)

    def formula(self, problem, episode):
        return livarot_radius(episode, problem.dim, problem.horizon, problem.param_bound, self.reg, self.failure_level)

    def optimism(self):
        return VarianceBonus()


def test_the_family():
    assert len(ONLINE) == 11


def test_radius_rule_and_presets_are_an_agent():
    mine, theirs = (livarot.run(CHAIN, agent, 20, seed=range(3)) for agent in (Mine(), agents.BonusLivarot()))
    for name, column in theirs.columns.items():
        np.testing.assert_array_equal(mine.columns[name].filled(0.0), column.filled(0.0))
    assert Mine().promised_coverage() is None
    assert Mine.theory().promised_coverage() == 0.95
    livarot.check_agent(Mine(), env=CHAIN)


@pytest.mark.parametrize("name", ONLINE)
def test_states_in_files_keep_their_names(name, tmp_path):
    agent = agents.make(name)
    problem = small(agent.made_for or "river-swim").problem
    state = agent.init(problem, 2)
    estimate = state.estimate
    numbers = {f"estimate.{part}": getattr(estimate, part) for part in ("theta", "gram", "whiten")}
    header = {"agent": name, "settings": repr(agent), "problem": problem.fingerprint}
    path = tmp_path / "state"
    save_tensors(path, numbers | {"episode": np.asarray(7)}, kind="agent-state", header=header)
    assert same_bits(agents.load_state(path, agent, problem), state._replace(episode=7))


@pytest.mark.parametrize("agent", [agents.RRLMNL(kappa=None), agents.ONSUCRLMNL(kappa=None)], ids=["rrl", "ons"])
def test_a_kappa_that_is_not_a_number_is_refused_before_the_first_episode(agent):
    mdp = livarot.envs.hard_chain(4, gap=0.15, param_bound=1e3)
    with pytest.raises(LivarotError, match=r"kappa: .*overflows.*give kappa yourself"):
        agent.init(mdp.problem)
