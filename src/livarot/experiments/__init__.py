"""Runs, sweeps, their store and their statistics, under one name: what a study of learners is written with."""

from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
