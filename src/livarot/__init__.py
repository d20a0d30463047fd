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
    from livarot.data.estimator import MNLTransition
    from livarot.errors import LivarotError
    from livarot.model.episodes import Episodes, Plan
    from livarot.model.problem import MNLMDP, Problem
    from livarot.planning.exact import Solution, evaluate, solve
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
    from livarot.planning.robust.kl import worst_case
    from livarot.planning.robust.nominal import nominal_model
    from livarot.planning.robust.plan import RobustSolution, evaluate_robust, solve_robust
    from livarot.running.check_agent import check_agent
    from livarot.running.learn import LearnResult, learn
    from livarot.running.online import LearnState, Online
    from livarot.running.result import RunResult
    from livarot.running.run import run
    from livarot.running.tune import TuneResult, tune
    from livarot.simulation.rollout import simulate

_HOME = {
    "MNLMDP": "model.problem",
    "MNLTransition": "data.estimator",
    "Problem": "model.problem",
    "Ellipsoid": "core.ellipsoid",
    "Episodes": "model.episodes",
    "Plan": "model.episodes",
    "LivarotError": "errors",
    "check_agent": "running.check_agent",
    "LearnResult": "running.learn",
    "LearnState": "running.online",
    "Online": "running.online",
    "learn": "running.learn",
    "RunResult": "running.result",
    "run": "running.run",
    "TuneResult": "running.tune",
    "tune": "running.tune",
    "Solution": "planning.exact",
    "evaluate": "planning.exact",
    "solve": "planning.exact",
    "RobustSolution": "planning.robust.plan",
    "evaluate_robust": "planning.robust.plan",
    "solve_robust": "planning.robust.plan",
    "nominal_model": "planning.robust.nominal",
    "worst_case": "planning.robust.kl",
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
