"""The algorithms, one file each, and their registry: one line per agent."""

from __future__ import annotations

from typing import Any

from livarot.agents.base import Agent, load_state, save_state
from livarot.agents.certainty_equivalent import CertaintyEquivalent
from livarot.agents.controls import Oracle, Uniform
from livarot.agents.exploration import LiteralExploration, StateAwareExploration
from livarot.agents.livarot import Livarot
from livarot.agents.ucrl_mnl_ol import UCRLMNLOL
from livarot.registry import Registry

registry: Registry[Agent[Any]] = Registry("agent")
registry.register("livarot", Livarot, "optimism by the joint maximum over OMD ellipsoids, with optional burn-in")
registry.register("ucrl-mnl-ol", UCRLMNLOL, "OMD with a second-order bonus (Li et al., third version)")
registry.register("certainty-equivalent", CertaintyEquivalent, "OMD estimate, no optimism")
registry.register("uniform", Uniform, "every action with the same probability")
registry.register("oracle", Oracle, "plays a given policy, normally the optimal one")

make = registry.make

__all__ = [
    "UCRLMNLOL",
    "Agent",
    "CertaintyEquivalent",
    "LiteralExploration",
    "Livarot",
    "Oracle",
    "StateAwareExploration",
    "Uniform",
    "load_state",
    "make",
    "registry",
    "save_state",
]
