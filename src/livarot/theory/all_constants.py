"""All constants of a problem in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from livarot.core.arguments import checked
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.planning.exact import solve_kernel
from livarot.theory.constants import (
    Bracket,
    exponential,
    finite_or_none,
    has_zero_outcomes,
    kappa,
    log_kappa_bound,
    log_kappa_star,
    max_reachable,
    nu_max,
    problem_of,
    rho,
)
from livarot.theory.variance import sigma_bar_star


@checked
@dataclass(frozen=True)
class Constants:
    """What the theorem asks of a problem; the last three need theta* and are None for what a learner knows.

    kappa's bound and value at theta* are kept as logarithms, which do not overflow.
    """

    dim: int  # d
    horizon: int  # H
    param_bound: float  # B
    max_reachable: int  # U
    rho: float
    kappa: Bracket
    log_kappa_bound: float
    zero_outcomes: bool  # an outcome with phi = 0 in every informative pair (E9)
    log_kappa_star: float | None = None
    sigma_bar_star: float | None = None
    nu_max: float | None = None

    @classmethod
    @checked
    def of(cls, model: Problem | MNLMDP | Constants, *, all_states: bool = False, max_nodes: int = 20_000) -> Constants:
        """The constants of a model; one backward induction, and :func:`kappa` is the expensive part.

        >>> import livarot
        >>> found = Constants.of(livarot.envs.hard_chain(10, param_bound="tight"))
        >>> found.max_reachable, round(found.kappa.upper, 2), round(found.kappa_star, 2), round(found.kappa_bound)
        (2, 11.34, 11.29, 29095)
        >>> round(found.sigma_bar_star, 4), round(found.nu_max, 3)
        (0.1078, 9.738)
        """
        if isinstance(model, Constants):
            return model
        problem = problem_of(model)
        known = cls(
            dim=problem.dim,
            horizon=problem.horizon,
            param_bound=problem.param_bound,
            max_reachable=max_reachable(problem, all_states=all_states),
            rho=rho(problem, all_states=all_states),
            kappa=kappa(problem, all_states=all_states, max_nodes=max_nodes),
            log_kappa_bound=log_kappa_bound(problem, all_states=all_states),
            zero_outcomes=has_zero_outcomes(problem),
        )
        if not isinstance(model, MNLMDP):
            return known
        solution = solve_kernel(problem, transition_kernel(model))
        return replace(
            known,
            log_kappa_star=log_kappa_star(model, all_states=all_states),
            sigma_bar_star=sigma_bar_star(model, solution=solution),
            nu_max=nu_max(model, all_states=all_states, solution=solution),
        )

    @property
    def kappa_bound(self) -> float:
        """Infinite where no float is large enough; ``log_kappa_bound`` is not."""
        return exponential(self.log_kappa_bound)

    @property
    def kappa_star(self) -> float | None:
        return None if self.log_kappa_star is None else exponential(self.log_kappa_star)

    def to_json(self) -> dict[str, Any]:
        """Plain values under the paper's letters; what no float holds, or is not known, is None."""
        return {
            "d": self.dim,
            "H": self.horizon,
            "B": self.param_bound,
            "U": self.max_reachable,
            "rho": self.rho,
            "kappa": self.kappa.to_json(),
            "kappa_bound": finite_or_none(self.kappa_bound),
            "log_kappa_bound": self.log_kappa_bound,
            "kappa_star": finite_or_none(self.kappa_star),
            "log_kappa_star": self.log_kappa_star,
            "sigma_bar_star": self.sigma_bar_star,
            "nu_max": self.nu_max,
            "zero_outcomes": self.zero_outcomes,
        }
