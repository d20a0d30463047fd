"""Optimistic planning over confidence ellipsoids: one engine on lanes, to which users can add rules of optimism."""

from livarot.planning.optimistic.plan import optimistic_plan

__all__ = ["optimistic_plan"]
