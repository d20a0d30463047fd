"""Generators of MNL MDPs and their registry (``livarot list envs``)."""

from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
