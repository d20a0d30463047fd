"""MNL MDPs without an end: average and discounted reward, exact planning, and UCMNLK (see docs/infinite.md)."""

from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
