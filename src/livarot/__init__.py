"""livarot: Markov decision processes whose next state is a multinomial-logistic choice.

Model an MNL MDP, plan in it, learn in it with LIVAROT and its rivals, and judge the learning exactly.
Names are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from livarot.gymnasium_ids import register_when_imported

__version__ = "0.1.0"

if TYPE_CHECKING:
    from livarot import agents, data, envs, infinite, lanes, theory
    from livarot.agents.base import load_state, save_state
    from livarot.core.ellipsoid import Ellipsoid
    from livarot.core.plan import Episodes, Plan
    from livarot.core.problem import MNLMDP, Problem
    from livarot.data.model import MNLTransition
    from livarot.errors import LivarotError
    from livarot.experiments.check_agent import check_agent
    from livarot.experiments.learn import LearnResult, LearnState, Online, learn
    from livarot.experiments.result import RunResult
    from livarot.experiments.run import run
    from livarot.experiments.tune import TuneResult, tune
    from livarot.planning.backward import Solution, evaluate, solve
    from livarot.planning.nominal import nominal_model
    from livarot.planning.optimistic import optimistic_plan
    from livarot.planning.optimistic.inner import InnerMax, inner_max
    from livarot.planning.optimistic.rule import rule
    from livarot.planning.optimistic.rules import (
        FrankWolfe,
        JointMaximum,
        MaxNormBonus,
        PlugIn,
        SecondOrderBonus,
        ShiftedPower,
        VarianceBonus,
    )
    from livarot.planning.robust import RobustSolution, evaluate_robust, solve_robust
    from livarot.planning.softmin import worst_case
    from livarot.simulation.rollout import simulate

_HOME = {
    "MNLMDP": "core.problem",
    "MNLTransition": "data.model",
    "Problem": "core.problem",
    "Ellipsoid": "core.ellipsoid",
    "Episodes": "core.plan",
    "Plan": "core.plan",
    "LivarotError": "errors",
    "check_agent": "experiments.check_agent",
    "LearnResult": "experiments.learn",
    "LearnState": "experiments.learn",
    "Online": "experiments.learn",
    "learn": "experiments.learn",
    "RunResult": "experiments.result",
    "run": "experiments.run",
    "TuneResult": "experiments.tune",
    "tune": "experiments.tune",
    "Solution": "planning.backward",
    "evaluate": "planning.backward",
    "solve": "planning.backward",
    "RobustSolution": "planning.robust",
    "evaluate_robust": "planning.robust",
    "solve_robust": "planning.robust",
    "nominal_model": "planning.nominal",
    "worst_case": "planning.softmin",
    "InnerMax": "planning.optimistic.inner",
    "inner_max": "planning.optimistic.inner",
    "optimistic_plan": "planning.optimistic",
    "rule": "planning.optimistic.rule",
    "FrankWolfe": "planning.optimistic.rules",
    "JointMaximum": "planning.optimistic.rules",
    "MaxNormBonus": "planning.optimistic.rules",
    "PlugIn": "planning.optimistic.rules",
    "SecondOrderBonus": "planning.optimistic.rules",
    "ShiftedPower": "planning.optimistic.rules",
    "VarianceBonus": "planning.optimistic.rules",
    "simulate": "simulation.rollout",
    "load_state": "agents.base",
    "save_state": "agents.base",
}
_MODULES = ("agents", "data", "envs", "infinite", "lanes", "theory")

__all__ = [
    "MNLMDP",
    "Ellipsoid",
    "Episodes",
    "FrankWolfe",
    "InnerMax",
    "JointMaximum",
    "LearnResult",
    "LearnState",
    "LivarotError",
    "MNLTransition",
    "MaxNormBonus",
    "Online",
    "Plan",
    "PlugIn",
    "Problem",
    "RobustSolution",
    "RunResult",
    "SecondOrderBonus",
    "ShiftedPower",
    "Solution",
    "TuneResult",
    "VarianceBonus",
    "agents",
    "check_agent",
    "data",
    "envs",
    "evaluate",
    "evaluate_robust",
    "infinite",
    "inner_max",
    "lanes",
    "learn",
    "load_state",
    "nominal_model",
    "optimistic_plan",
    "rule",
    "run",
    "save_state",
    "simulate",
    "solve",
    "solve_robust",
    "theory",
    "tune",
    "worst_case",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
register_when_imported()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"livarot.{name}")
    if name in _HOME:
        found = getattr(importlib.import_module(f"livarot.{_HOME[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'livarot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
