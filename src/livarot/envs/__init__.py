"""Generators of MNL MDPs and their registry: one line per environment."""

from __future__ import annotations

from livarot.core.problem import MNLMDP
from livarot.envs.hard import hard_chain
from livarot.envs.riverswim import river_swim
from livarot.registry import Registry

registry: Registry[MNLMDP] = Registry("environment")
registry.register("hard-chain", hard_chain, "the chain of the lower bound, gap tuned to T or fixed")
registry.register("river-swim", river_swim, "RiverSwim (Osband/Cho), one-hot or shared move features")

make = registry.make

__all__ = ["hard_chain", "make", "registry", "river_swim"]
