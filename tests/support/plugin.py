"""A plugin in files of its own, which tests edit and import again."""

import importlib
import sys

from livarot import agents, envs
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment

PLUGIN = """
from dataclasses import dataclass
from typing import Any, ClassVar
import numpy
from livarot import agents, envs
from livarot.agents.controls import Uniform
from helper_of_a_test import chosen

@dataclass(frozen=True)
class Fixed(Uniform):
    name: ClassVar[str] = "fixed-of-a-test"

    def plan(self, problem: Any, state: Any, rng: Any) -> Any:
        policy = numpy.zeros_like(state.policy)
        policy[..., chosen()] = 1.0
        return super().plan(problem, state, rng)._replace(policy=policy)

def chain(horizon: int = 3) -> Any:
    return envs.make("hard-chain", horizon=horizon, gap=0.1)

agents.registry.register("fixed-of-a-test", Fixed, "always the same action")
envs.registry.register("chain-of-a-test", chain, "a chain")
"""
HELPER = "def chosen():\n    return 0\n"
MODULES = ("plugin_of_a_test", "helper_of_a_test")


def experiment(agent="fixed-of-a-test", world="chain-of-a-test", seeds=4, **settings):
    world = EnvironmentSpec(name=world, settings={"horizon": 3})
    return Experiment(environments=[world], agents=[AgentSpec(name=agent, settings=settings)], episodes=12, seeds=seeds)


class Plugin:
    """Files of a plugin, imported again as a new process would."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        self.known = {registry: dict(registry._entries) for registry in (agents.registry, envs.registry)}
        self.write("plugin_of_a_test.py", PLUGIN)
        self.write("helper_of_a_test.py", HELPER)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def edit(self, name, old, new):
        path = self.folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def load(self):
        """Import as in a new process, which knows nothing of the plugin yet."""
        for registry, entries in self.known.items():
            self.monkeypatch.setattr(registry, "_entries", dict(entries))
        for name in MODULES:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        importlib.import_module("plugin_of_a_test")

    def sweep(self, store, asked=None, **options):
        self.load()
        return sweep(asked or experiment(), store, **({"backend": "sequential"} | options))
