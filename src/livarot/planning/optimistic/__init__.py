"""Optimistic planning over confidence ellipsoids: one engine on lanes, open to rules of optimism."""

from livarot.planning.optimistic.plan import optimistic_plan

__all__ = ["optimistic_plan"]
