"""From logged data to a model: tables in, a transition model with standard errors and confidence sets out."""

from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
