"""What an audit has to know of a run's problem, its truth and its agent, as plain JSON values.

A result carries these facts, so that a stored run can be audited without its model.  Where every seed has a model of
its own, a truth is given by its smallest and largest value and its mean over the models; the exact kappa is not among
the facts, for it can take seconds (:func:`livarot.theory.constants.kappa`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from livarot.core.kernel import transition_kernel
from livarot.core.problem import MNLMDP
from livarot.core.ragged import FloatArray
from livarot.errors import bad
from livarot.planning.backward import Solution, solve, solve_kernel
from livarot.theory.constants import has_zero_outcomes, log_kappa_bound, log_kappa_star, max_reachable, nu_max, rho
from livarot.theory.variance import sigma_bar_star


def problem_facts(models: Sequence[MNLMDP]) -> dict[str, Any]:
    """``problem``: what a learner knows; ``truth``: V*, sigma_bar under pi*, kappa at theta*, nu_max, |theta*|.

    >>> import livarot
    >>> facts = problem_facts([livarot.envs.hard_chain(5)])
    >>> facts["problem"]["max_reachable"], round(facts["truth"]["optimum"]["mean"], 4)
    (2, 1.6548)
    """
    if not models:
        raise bad("models", "is empty", cure="give at least one model")
    problem = models[0].problem
    names = ("optimum", "sigma_bar_star", "sigma_bar_worst", "log_kappa_star", "nu_max")
    truths: dict[str, list[float]] = {name: [] for name in names}
    for mdp in models:
        solution = solve_kernel(mdp.problem, transition_kernel(mdp))
        truths["optimum"].append(float(problem.start @ solution.value[0]))
        truths["sigma_bar_star"].append(sigma_bar_star(mdp, solution=solution))
        truths["sigma_bar_worst"].append(sigma_bar_worst(mdp, solution=solution))
        truths["log_kappa_star"].append(log_kappa_star(mdp))
        truths["nu_max"].append(nu_max(mdp, solution=solution))
    truths["theta_norm"] = [float(np.linalg.norm(mdp.theta, axis=1).max()) for mdp in models]
    return {
        "problem": {
            "horizon": problem.horizon,
            "n_states": problem.n_states,
            "n_actions": problem.n_actions,
            "dim": problem.dim,
            "n_parameters": problem.n_parameters,
            "shared_parameter": problem.shared_parameter,
            "param_bound": float(problem.param_bound),
            "max_reachable": max_reachable(problem),
            "rho": rho(problem),
            "log_kappa_bound": log_kappa_bound(problem),
            "has_zero_outcomes": has_zero_outcomes(problem),
            "n_models": len(models),
        },
        "truth": {name: _range(np.array(values)) for name, values in truths.items()},
    }


def sigma_bar_worst(mdp: MNLMDP, *, solution: Solution | None = None) -> float:
    """sqrt(sum_h max_s Var[V*_{h+1} | s, pi*]/H^3) over reachable states: no trajectory of this model has more.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, gap=0.05)
    >>> round(sigma_bar_worst(mdp), 4) == round(livarot.theory.hard_chain_sigma_bar(10, 0.15, never_falls=True), 4)
    True
    """
    best = solve(mdp) if solution is None else solution
    variance = np.where(mdp.problem.reachable[:-1], best.variance, 0.0)
    return math.sqrt(float(variance.max(axis=1).sum()) / mdp.problem.horizon**3)


def agent_facts(agent: object) -> dict[str, Any]:
    """The hyper-parameters of an agent that are numbers, text, truth values or None."""
    found: dict[str, Any] = {}
    if dataclasses.is_dataclass(agent):
        for part in dataclasses.fields(agent):
            value = getattr(agent, part.name)
            plain = value is None or isinstance(value, bool | int | str)
            if plain or (isinstance(value, float) and math.isfinite(value)):
                found[part.name] = value
    return found


def facts_of(models: Sequence[MNLMDP], agent: object) -> dict[str, Any]:
    """All facts of a run."""
    return problem_facts(models) | {"agent": agent_facts(agent)}


def _range(x: FloatArray) -> dict[str, float]:
    return {"min": float(x.min()), "mean": float(x.mean()), "max": float(x.max())}
