"""Published regret rates for MNL mixture MDPs, for a table that compares them.

These are rates, not bounds: constants and logarithms are dropped, so a ratio of two methods says only how it changes
with d, H, T, kappa or sigma_bar.  T counts episodes, H stages; kappa >= 1 is the large one (other papers
write 1/kappa).  ``tag`` says how sure the formula is: certain (read in a primary source) or likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from livarot.core.arguments import any_count, checked
from livarot.model.problem import MNLMDP, Problem
from livarot.theory.all_constants import Constants
from livarot.theory.constants import exponential, finite_or_none
from livarot.theory.variance import sigma_bar_limit


@dataclass(frozen=True)
class Sizes:
    """What a rate depends on; kappa as a logarithm."""

    d: int
    H: int
    T: int
    log_kappa: float
    log_kappa_star: float
    sigma_bar: float
    B: float

    def power(self, d: float = 0.0, h: float = 0.0, t: float = 0.0, kappa: float = 0.0) -> float:
        """d^. H^. T^. kappa^., infinite where no float is large enough."""
        logarithm = d * math.log(self.d) + h * math.log(self.H) + t * math.log(self.T) + kappa * self.log_kappa
        return exponential(logarithm)


@dataclass(frozen=True)
class Rate:
    """One row of the comparison."""

    name: str
    kind: str  # "upper" or "lower"
    formula: str
    function: Callable[[Sizes], float]
    cost: str  # per episode
    source: str
    tag: str
    note: str = ""

    def to_json(self, sizes: Sizes) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "formula": self.formula,
            "rate": finite_or_none(self.function(sizes)),
            "cost": self.cost,
            "source": self.source,
            "tag": self.tag,
            "note": self.note,
        }


def _kappa_free(s: Sizes) -> float:
    return s.power(d=1, h=2, t=0.5) + s.power(d=2, h=2, kappa=1)


RATES = (
    Rate(
        "UCRL-MNL",
        "upper",
        "kappa d H^2 sqrt(T)",
        lambda s: s.power(d=1, h=2, t=0.5, kappa=1),
        "grows with the episode (maximum likelihood on all data)",
        "Hwang and Oh 2023",
        "certain",
        "one parameter for all stages",
    ),
    Rate(
        "UCRL-MNL-OL",
        "upper",
        "d H^2 sqrt(T) + kappa d^2 H^2",
        _kappa_free,
        "constant",
        "Li, Zhang, Zhao and Zhou 2024, third version",
        "certain",
        "called UCRL-MNL-LL in the conference version, whose own -OL has kappa in front",
    ),
    Rate(
        "UCRL-MNL-OL (conference)",
        "upper",
        "kappa d H^2 sqrt(T)",
        lambda s: s.power(d=1, h=2, t=0.5, kappa=1),
        "constant",
        "Li, Zhang, Zhao and Zhou 2024, conference version",
        "likely",
        "online Newton step",
    ),
    Rate(
        "RRL-MNL",
        "upper",
        "kappa d^{3/2} H^2 sqrt(T)",
        lambda s: s.power(d=1.5, h=2, t=0.5, kappa=1),
        "constant",
        "Cho, Hwang, Lee and Oh 2024",
        "certain",
        "needs kappa",
    ),
    Rate(
        "ORRL-MNL",
        "upper",
        "d^{3/2} H^2 sqrt(T) + kappa d^2 H^2",
        lambda s: s.power(d=1.5, h=2, t=0.5) + s.power(d=2, h=2, kappa=1),
        "constant",
        "Cho, Hwang, Lee and Oh 2024",
        "certain",
    ),
    Rate(
        "UCRL-MNL+",
        "upper",
        "d H^2 sqrt(T) + kappa d^2 H^2",
        _kappa_free,
        "constant",
        "Cho, Hwang, Lee and Oh 2024",
        "certain",
    ),
    Rate(
        "LIVAROT, as claimed",
        "upper",
        "B d H^2 sigma_bar sqrt(T)",
        lambda s: s.B * s.sigma_bar * s.power(d=1, h=2, t=0.5),
        "constant, with a non-concave maximum per pair",
        "Boudart, Gaillard and Rudi 2026",
        "certain",
        "drops the term H^{3/2} sqrt(T), which is not of lower order (E27)",
    ),
    Rate(
        "LIVAROT, both sqrt(T) terms",
        "upper",
        "B d H^2 sigma_bar sqrt(T) + H^{3/2} sqrt(T)",
        lambda s: s.B * s.sigma_bar * s.power(d=1, h=2, t=0.5) + s.power(h=1.5, t=0.5),
        "constant, with a non-concave maximum per pair",
        "Boudart, Gaillard and Rudi 2026",
        "certain",
        "rests on a lemma that is false as stated (E3)",
    ),
    Rate(
        "lower bound (Li et al.)",
        "lower",
        "d H sqrt(T/kappa_star)",
        lambda s: s.power(d=1, h=1, t=0.5) * math.exp(-0.5 * s.log_kappa_star),
        "",
        "Li, Zhang, Zhao and Zhou 2024",
        "likely",
        "by reduction to logistic bandits",
    ),
    Rate(
        "lower bound (Park et al.)",
        "lower",
        "d H^{3/2} sqrt(T)",
        lambda s: s.power(d=1, h=1.5, t=0.5),
        "",
        "Park, Kwon and Lee 2025",
        "certain",
        "no factor B, unlike in the paper's table (E42)",
    ),
)


@checked(n_episodes=any_count)
def compare(
    model: Constants | Problem | MNLMDP, n_episodes: int, *, sigma_bar: float | None = None
) -> list[dict[str, Any]]:
    """The table of published rates at a model's constants, one dict per row.

    ``sigma_bar`` None is the value under the optimal policy if theta* is known, else the largest possible one.  kappa
    is the upper end of its bracket; without theta* it also stands for kappa_star, which it bounds.

    >>> import livarot
    >>> rows = compare(livarot.envs.hard_chain(10, param_bound="tight"), 1000)
    >>> [(row["name"], round(row["rate"])) for row in rows if row["name"] in ("UCRL-MNL-OL", "LIVAROT, as claimed")]
    [('UCRL-MNL-OL', 10862), ('LIVAROT, as claimed', 1515)]
    """
    constants = Constants.of(model)
    spread = constants.sigma_bar_star if sigma_bar is None else sigma_bar
    sizes = Sizes(
        d=constants.dim,
        H=constants.horizon,
        T=n_episodes,
        log_kappa=constants.kappa.log_upper,
        log_kappa_star=constants.kappa.log_upper if constants.log_kappa_star is None else constants.log_kappa_star,
        sigma_bar=sigma_bar_limit(constants.horizon) if spread is None else spread,
        B=constants.param_bound,
    )
    return [rate.to_json(sizes) for rate in RATES]
