"""docs/adding_an_agent.md is true: its code is run as it stands, and its agent keeps the contract."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import livarot
from livarot.registry import Registry
from livarot.running import check_agent as contract
from tests.support.episodes import play_agent

TEXT = (Path(__file__).parents[2] / "docs" / "adding_an_agent.md").read_text(encoding="utf-8")
FILE, ONLINE, LINE, USE, RULE, CONTRACT = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The page's code: its agents and, in the same module, their use."""
    path = tmp_path_factory.mktemp("page") / "epsilon_greedy_of_the_page.py"
    path.write_text(f"{FILE}\n\n{ONLINE}\n\n{USE}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made  # where dataclasses look for it
    spec.loader.exec_module(made)
    yield made
    del sys.modules[path.stem]


def test_the_page_runs_and_its_line_registers(module):
    registry = Registry("agent")
    exec(LINE, {"add": registry.register_later, "agents": module})  # noqa: S102
    assert registry.names() == ("epsilon-greedy",)
    assert registry.make("epsilon-greedy", epsilon=0.5).epsilon == 0.5


def test_the_rule_of_the_page_runs(tmp_path):
    """In a file, as a user has it: numba needs the source of a function."""
    path = tmp_path / "rule_of_the_page.py"
    path.write_text(RULE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.steep.settings.factor == 1.0


RULES = [rule for rule, _ in contract.agent_checks(livarot.agents.Uniform())]


@pytest.mark.parametrize("agent", ["EpsilonGreedy", "NarrowLivarot"])
@pytest.mark.parametrize("rule", RULES)
def test_the_agents_keep_the_contract(module, agent, rule):
    dict(contract.agent_checks(getattr(module, agent)()))[rule]()
    assert "check_agent(EpsilonGreedy())" in CONTRACT


def test_the_table_has_every_rule():
    assert re.findall(r"^\| (\w+) \|", TEXT, re.MULTILINE)[1:] == RULES
    for rule in RULES:
        assert f"\n{rule}" in contract.__doc__


def test_the_mixture(module):
    agent = module.EpsilonGreedy(epsilon=0.8)
    mdp = livarot.envs.river_swim(4, 3)
    log, _ = play_agent(mdp, agent, 5)
    for t in range(5):
        share = 0.8 / np.sqrt(t + 1)
        np.testing.assert_allclose(log["plans"][t].policy.max(axis=-1), 1 - share / 2, rtol=1e-12)
        np.testing.assert_allclose(log["plans"][t].policy.min(axis=-1), share / 2, rtol=1e-12)
