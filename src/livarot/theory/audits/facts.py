"""What an audit has to know about a run's problem, true model and agent, as plain JSON values.

A result carries these facts, so that a stored run can be audited without its model.  Where every seed has a model of
its own, each number of the true models is given by its smallest, largest and mean value over them.  The exact kappa is
not among the facts, for it can take seconds (:func:`livarot.theory.constants.kappa`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.file_layout import Entry, Layout, Misfit
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.model.terms.after import after
from livarot.planning.exact import checked_solution, solve_kernel
from livarot.planning.solution import PlainSolution, Solution
from livarot.theory.constants import has_zero_outcomes, log_kappa_bound, log_kappa_star, max_reachable, nu_max, rho
from livarot.theory.variance import sigma_bar_star

_SIZE, _POSITIVE = Entry(int, 1, 1e8), Entry(float, 0.0)
PROBLEM = {
    "horizon": _SIZE,
    "n_states": _SIZE,
    "n_actions": _SIZE,
    "dim": _SIZE,
    "n_parameters": _SIZE,
    "shared_parameter": Entry(bool),
    "param_bound": _POSITIVE,
    "max_reachable": _SIZE,
    "rho": Entry(float, 0.0, 1.0 + 1e-6),  # a feature's norm
    "log_kappa_bound": Entry(float),
    "has_zero_outcomes": Entry(bool),
    "n_models": _SIZE,
    "outcomes_pay": Entry(bool, optional=True),
}
TRUTH = ("optimum", "sigma_bar_star", "sigma_bar_worst", "log_kappa_star", "nu_max", "theta_norm")


def check_facts(facts: dict[str, Any], horizon: int) -> None:
    """Are these the facts of a run, as :func:`facts_of` makes them?  :class:`livarot.file_layout.Misfit` if not."""
    parts = {"problem": Entry(dict), "truth": Entry(dict), "agent": Entry(dict)}
    Layout(parts, {}).check_head(facts, {})
    problem, truth, agent = facts["problem"], facts["truth"], facts["agent"]
    Layout(PROBLEM, {}).check_head(problem, {})
    if problem["horizon"] != horizon or problem["n_parameters"] != (1 if problem["shared_parameter"] else horizon):
        raise Misfit(f"its facts are those of a problem with another horizon than {horizon}")
    Layout(dict.fromkeys(TRUTH, Entry(dict)), {}).check_head(truth, {})
    for name, values in truth.items():
        Layout(dict.fromkeys(("min", "mean", "max"), Entry(float)), {}).check_head(values, {})
        slack = 1e-9 * (1.0 + abs(values["min"]) + abs(values["max"]))
        if not values["min"] - slack <= values["mean"] <= values["max"] + slack:
            raise Misfit(f"its facts have a mean {name} outside its own range")
        if values["min"] < 0.0 and name != "log_kappa_star":
            raise Misfit(f"its facts have {name} = {values['min']}")
    least = max(math.log(4.0) if problem["max_reachable"] > 1 else 0.0, truth["log_kappa_star"]["max"])
    if problem["log_kappa_bound"] < least - 1e-6:
        raise Misfit("its facts have a bound on kappa that is below kappa")
    if truth["theta_norm"]["max"] > problem["param_bound"] * (1.0 + 1e-6):
        raise Misfit("its facts have a theta outside of the ball")
    for name, value in agent.items():
        if not (value is None or isinstance(value, bool | int | float | str)):
            raise Misfit(f"its facts have a setting {name!r} that is not a plain value")
    for name in ("failure_level", "promised_coverage"):
        if agent.get(name) is not None:
            Entry(float, 0.0, 1.0).check(name, agent[name])


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
        }
        | ({} if after(problem).idle else {"outcomes_pay": True}),
        "truth": {name: _range(np.array(values)) for name, values in truths.items()},
    }


def sigma_bar_worst(mdp: MNLMDP, *, solution: Solution | PlainSolution | None = None) -> float:
    """sqrt(sum_h max_s Var[V*_{h+1} | s, pi*]/H^3) over reachable states: no trajectory of this model has more.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, gap=0.05)
    >>> round(sigma_bar_worst(mdp), 4) == round(livarot.theory.hard_chain_sigma_bar(10, 0.15, never_falls=True), 4)
    True
    """
    problem = mdp.problem
    best = solve_kernel(problem, transition_kernel(mdp)) if solution is None else checked_solution(problem, solution)
    variance = np.where(mdp.problem.reachable[:-1], best.variance, 0.0)
    return math.sqrt(float(variance.max(axis=1).sum()) / mdp.problem.horizon**3)


class Described(Protocol):
    """An agent's report of its settings and promised coverage (:class:`livarot.agents.base.Declaration` has it)."""

    def facts(self) -> dict[str, Any]: ...


def facts_of(models: Sequence[MNLMDP], agent: Described) -> dict[str, Any]:
    """All facts of a run."""
    return problem_facts(models) | {"agent": agent.facts()}


def _range(x: FloatArray) -> dict[str, float]:
    return {"min": float(x.min()), "mean": float(x.mean()), "max": float(x.max())}
