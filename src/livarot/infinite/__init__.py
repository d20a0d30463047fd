"""MNL MDPs without an end: average and discounted reward, exact planning, and UCMNLK (see docs/infinite.md)."""

from __future__ import annotations

from livarot.infinite.average import AverageSolution, Gain, diameter, policy_gain, solve_average
from livarot.infinite.discounted import DiscountedSolution, policy_value, solve_discounted
from livarot.infinite.problem import InfiniteMDP, InfiniteProblem
from livarot.infinite.run import InfiniteResult, run_infinite
from livarot.infinite.ucmnlk import UCMNLK, FixedPolicy, InfiniteAgent, InfinitePlan, Steps

__all__ = [
    "UCMNLK",
    "AverageSolution",
    "DiscountedSolution",
    "FixedPolicy",
    "Gain",
    "InfiniteAgent",
    "InfiniteMDP",
    "InfinitePlan",
    "InfiniteProblem",
    "InfiniteResult",
    "Steps",
    "diameter",
    "policy_gain",
    "policy_value",
    "run_infinite",
    "solve_average",
    "solve_discounted",
]
