"""Small pieces that several agents use: what counts as data, the constant kappa, a line in the log."""

from __future__ import annotations

import logging
import math

from livarot.agents.exploration import kappa_of
from livarot.errors import bad
from livarot.model.problem import Problem


def updates(problem: Problem, episodes: int) -> int:
    """Updates of a parameter in that many episodes: ``episodes`` H where the stages share it."""
    return episodes * (problem.horizon if problem.shared_parameter else 1)


def transitions(problem: Problem, episode: int) -> int:
    """Transitions per parameter after ``episode`` episodes and the coming one: (episode + 1) H where it is shared."""
    return updates(problem, episode + 1)


def lemma_index(n_updates: int, reg: float | None) -> int:
    """t of Lemma (confidence set learning phase): n updates lead from theta_hat_1 to theta_hat_{n+1}, so t = n + 1.

    The lemma is about the theory's lambda, ``reg`` None.  A ``reg`` of one's own comes without a promise and with a
    radius that is scaled by experience: there t = n, the count with which those scales were tuned.
    """
    return n_updates + 1 if reg is None else n_updates


def outcomes(problem: Problem) -> int:
    """U, at least 2 so that its logarithm is positive."""
    return max(problem.max_reachable, 2)


def finite_kappa(problem: Problem, kappa: float | None) -> float:
    """The given kappa, or the bound U^2 exp(4B) (:func:`kappa_of`), refused where that is no number any more."""
    value = kappa_of(problem, kappa)
    if not math.isfinite(value):
        raise bad("kappa", f"U^2 exp(4B) overflows at B = {problem.param_bound:.4g}", cure="give kappa yourself")
    return value


def log_radius(logger: logging.Logger, name: str, theory: float, used: float) -> None:
    """Say at debug level what the formula gives for the first episode and what is used."""
    logger.debug("%s: the radius of the first plan is %.6g by its formula, %.6g as scaled", name, theory, used)
