"""The algorithms, one file each, and their registry."""

from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
