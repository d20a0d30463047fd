"""Every constant and bound of the paper as a function, and audits of runs."""

from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
