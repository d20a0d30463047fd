"""Certainty equivalence: plan as if the estimate were the truth.  A control: learning without exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.online import MirrorDescent
from livarot.core.arguments import checked
from livarot.model.problem import Problem
from livarot.planning.optimistic.rules import PlugIn, Rule


@checked
@dataclass(frozen=True)
class CertaintyEquivalent(MirrorDescent):
    """The OMD estimate and no optimism."""

    name: ClassVar[str] = "certainty-equivalent"

    step_size: float = 20.0  # eta
    reg: float = 10.0  # lambda

    def optimism(self) -> Rule:
        return PlugIn()

    def formula(self, problem: Problem, episode: int) -> float:
        return 0.0
