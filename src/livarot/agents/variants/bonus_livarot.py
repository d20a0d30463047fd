"""LIVAROT with an additive, variance-aware bonus: no burn-in and no inner optimisation at all.

    Q_h = min( r_h + p . V + beta |Cov_p(phi, V)|_{gram^-1} + span(V)/2 beta^2 curvature,  r_h + max_i V_i ),
    curvature = min( max_i |phi_i|^2_{gram^-1}, max_i |phi_i - mean|^2_{gram^-1} ),   p = p(theta_hat),

with LIVAROT's estimate and radius.  It is an upper bound of LIVAROT's maximum over the ellipsoid (certain), so it is
optimistic where that is, and its first term is at most beta sqrt(Var V) sqrt(E|phi - mean|^2): it keeps the variance.
The paper lists such a bonus as an open question.  No regret bound has been proved for it.

Deviation: see :class:`livarot.planning.optimistic.rules.VarianceBonus` for the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.online import LivarotSets
from livarot.core.arguments import checked
from livarot.planning.optimistic.rules import Rule, VarianceBonus


@checked
@dataclass(frozen=True)
class BonusLivarot(LivarotSets):
    """OMD with the variance-aware bonus; the default is tuned for practice, :meth:`theory` has LIVAROT's constants."""

    name: ClassVar[str] = "bonus-livarot"

    step_size: float = 3.0  # eta of the OMD step
    reg: float | None = 3.0  # lambda; None is the theory's 144 d
    beta_scale: float = 0.03  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta

    @classmethod
    def theory(cls) -> BonusLivarot:
        """The constants of LIVAROT's theorem: eta=1, lambda=144 d, the full radius."""
        return cls(step_size=1.0, reg=None, beta_scale=1.0)

    def optimism(self) -> Rule:
        return VarianceBonus()
