"""What several agents share: confidence sets, a state with all data, counts of updates, the constant kappa."""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import NamedTuple

from livarot.agents.base import BaseAgent, State, presets_of
from livarot.agents.exploration import kappa_of
from livarot.errors import LivarotError, bad
from livarot.estimation.history import History
from livarot.model.episodes import Estimate
from livarot.model.problem import Problem

logger = logging.getLogger(__name__)


class ConfidenceAgent(BaseAgent[State]):
    """An agent with sets {|theta - theta_hat|_gram <= beta}: beta is ``beta_scale`` times the radius of a theory."""

    failure_level: float  # delta
    beta_scale: float = 1.0  # multiplies the radius; 1 is the theory's

    def formula(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes, without ``beta_scale``."""
        raise NotImplementedError

    def radius(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes; ``formula`` checks the arguments."""
        return self.beta_scale * self.formula(problem, episode)

    def promised_coverage(self) -> float | None:
        """1 - delta for the settings of the preset ``theory``, whatever delta is, and for a larger radius.

        >>> from livarot.agents import Livarot
        >>> Livarot.theory(50).promised_coverage(), Livarot(step_size=1.0, reg=None, beta_scale=2.0).promised_coverage()
        (0.95, 0.95)
        >>> Livarot(reg=None, beta_scale=1.0).promised_coverage() is None  # another step size
        True
        """
        try:
            theory, settings = presets_of(type(self))["theory"](1), dataclasses.fields(self)  # type: ignore[arg-type]
        except (KeyError, LivarotError, TypeError, ValueError):  # no such preset, or another one in a user's subclass
            return None
        if type(theory) is not type(self) or self.beta_scale < theory.beta_scale:
            return None
        fixed = {setting.name for setting in settings} - set(self.beside_the_sets())
        same = all(getattr(self, name) == getattr(theory, name) for name in fixed)
        return 1.0 - self.failure_level if same else None

    def beside_the_sets(self) -> tuple[str, ...]:
        """Settings that may differ from the theory's without touching its sets (``beta_scale`` may only be larger)."""
        return "failure_level", "beta_scale", "rule", "bonus_constant"

    def log_radius(self, problem: Problem) -> None:
        """Log the radius of the first plan at debug level."""
        logger.debug("%s: the radius of the first plan is %.6g", self.name, self.radius(problem, 0))


class LikelihoodState(NamedTuple):
    """The estimate with its Gram matrix, all data, and the number of episodes."""

    estimate: Estimate
    history: History
    episode: int


def updates(problem: Problem, episodes: int) -> int:
    """Updates of a parameter in that many episodes: ``episodes`` H where the stages share it."""
    return episodes * (problem.horizon if problem.shared_parameter else 1)


def transitions(problem: Problem, episode: int) -> int:
    """Transitions per parameter after ``episode`` episodes and the coming one: (episode + 1) H where it is shared."""
    return updates(problem, episode + 1)


def lemma_index(n_updates: int, reg: float | None) -> int:
    """t of Lemma (confidence set learning phase): n updates lead from theta_hat_1 to theta_hat_{n+1}, so t = n + 1.

    The lemma is about the theory's lambda, ``reg`` None.  Any other ``reg`` comes without a promise, and its radius is
    scaled by a factor found in experiments: there t = n, the count with which those factors were tuned.
    """
    return n_updates + 1 if reg is None else n_updates


def outcomes(problem: Problem) -> int:
    """U, at least 2 so that its logarithm is positive."""
    return max(problem.max_reachable, 2)


def finite_kappa(problem: Problem, kappa: float | None) -> float:
    """The given kappa, or the bound U^2 exp(4B) (:func:`kappa_of`), refused where that overflows."""
    value = kappa_of(problem, kappa)
    if not math.isfinite(value):
        raise bad("kappa", f"U^2 exp(4B) overflows at B = {problem.param_bound:.4g}", cure="give kappa yourself")
    return value
