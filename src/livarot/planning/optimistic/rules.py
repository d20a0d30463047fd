"""How a plan is optimistic: rules and solvers, chosen by passing an object.

A rule turns the confidence ellipsoid of a stage into Q_h(s, a) = r_h(s, a) + (optimistic expectation of V_{h+1}).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from livarot.core.arguments import checked
from livarot.errors import bad, require_non_negative
from livarot.planning.optimistic import ascent
from livarot.planning.optimistic import bonuses as bounds
from livarot.planning.optimistic.rule import LaneRule, rule


class Ascent(NamedTuple):
    """Settings of a solver."""

    n_iter: int
    tol: float
    n_starts: int
    wide: float


class Constant(NamedTuple):
    """Settings of a bonus."""

    constant: float


JOINT: LaneRule = rule(ascent.joint_maximum, bound=bounds.upper_bound, measured=True, exact_for_two=True, screened=True)
PAPER: LaneRule = rule(ascent.paper_maximum, bound=bounds.upper_bound, measured=True, exact_for_two=True)
# it is its own certified bound, and is screened by bounds of its own
VARIANCE: LaneRule = replace(rule(bounds.variance_bound), bounded=True, screened=True)
SECOND_ORDER: LaneRule = rule(bounds.second_order_bonus, clip="every Q", idle_at_zero=False)
SECOND_ORDER_V: LaneRule = rule(bounds.second_order_bonus, clip="V", idle_at_zero=False)
MAX_NORM: LaneRule = rule(bounds.max_norm_bonus, clip="every Q", idle_at_zero=False)
CENTRE: LaneRule = replace(rule(bounds.plug_in, set_matters=False), optimistic=False)


@checked(tol=require_non_negative)
@dataclass(frozen=True)
class ShiftedPower:
    """Projected gradient with Barzilai-Borwein curvature, to a certified first-order gap."""

    tol: float = 5e-9  # first-order gap relative to the stage's value range: the miss stays below 1e-8
    max_iter: int = 1000  # iterations of one start; few need more than 100
    n_starts: int = 3  # most extra starts, each from the best point on chords of the ellipsoid, ...
    wide: float = 1.0  # ... where it moves a logit by more than this

    def settings(self) -> Ascent:
        return Ascent(self.max_iter, self.tol, self.n_starts, self.wide)


@checked(tol=require_non_negative)
@dataclass(frozen=True)
class FrankWolfe:
    """The paper's solver: steps 2/(k+2) from the centre (and from the top-valued outcomes, n_starts of them)."""

    n_iter: int = 50  # the paper does not say (reading E34)
    n_starts: int = 4  # extra starts; the paper's own is the centre alone
    tol: float = 0.0  # stop early when the gap is this small, relative to the stage's value range

    def settings(self) -> Ascent:
        return Ascent(self.n_iter, self.tol, self.n_starts, -1.0)


Solver = ShiftedPower | FrankWolfe


class _Settled:
    """The :class:`LaneRule` made from a rule's fields is kept with the rule, but not with its copies."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name != "made"}


@checked
@dataclass(frozen=True)
class JointMaximum(_Settled):
    """Eq. (definition optimistic reward): max over the ellipsoid; exact for two outcomes, certified otherwise.

    Q_h = r_h + max { E_theta[V_{h+1}] : |theta - theta_hat|_gram <= beta }
    """

    solver: Solver = field(default_factory=ShiftedPower)

    @cached_property
    def made(self) -> LaneRule:
        return replace(JOINT if isinstance(self.solver, ShiftedPower) else PAPER, settings=self.solver.settings())


@dataclass(frozen=True)
class VarianceBonus:
    """The closed-form variance-aware upper bound; no inner optimisation at all.

        Q_h = r_h + p . V_{h+1} + beta |Cov_p(phi, V_{h+1})|_{gram^-1} + span(V_{h+1})/2 beta^2 curvature

    Deviation: its last term uses max|phi_i - mean|^2 / 2 in place of max|phi_i - phi_j|^2 / 8, which is valid, up to
    four times looser there, and linear in U.
    """

    @property
    def made(self) -> LaneRule:
        return VARIANCE


@checked
@dataclass(frozen=True)
class SecondOrderBonus(_Settled):
    """H beta sum p|phi - mean|_{gram^-1} + constant H beta^2 max|phi|^2_{gram^-1}.

        Q_h = r_h + p . V_{h+1} + b,
        b   = H beta sum_i p_i |phi_i - mean|_{gram^-1} + constant H beta^2 max_i |phi_i|^2_{gram^-1}

    Li et al. have the constant 5/2 (likely) and clip every Q to [0, H].  Cho et al. have 3 and V = min(max_a Q, H)
    (certain): V is the same, but actions whose Q exceeds H stay ranked by it, whereas clipped ones tie and the first
    is played.

    Deviation: a pair with one outcome gets no bonus, since nothing about it is unknown.
    """

    constant: float = 2.5  # 5/2 likely; Cho et al. prove the same with 3, and 1/2 suffices by |f''| <= span Var
    clip_value: bool = False  # clip V (Cho et al.) instead of every Q (Li et al.)

    @cached_property
    def made(self) -> LaneRule:
        return replace(SECOND_ORDER_V if self.clip_value else SECOND_ORDER, settings=Constant(self.constant))


@checked
@dataclass(frozen=True)
class MaxNormBonus(_Settled):
    """constant H beta max_i |phi_i|_{gram^-1}, every Q clipped to [0, H]: Hwang and Oh (certain), and Li's ONS agent.

        Q_h = clip_[0,H]( r_h + p . V_{h+1} + constant H beta max_i |phi_i|_{gram^-1} )

    Deviation: a pair with one outcome gets no bonus, since nothing about it is unknown.
    """

    constant: float = 2.0

    @cached_property
    def made(self) -> LaneRule:
        return replace(MAX_NORM, settings=Constant(self.constant))


@dataclass(frozen=True)
class PlugIn:
    """No optimism: the expectation under the estimate itself.

    Q_h = r_h + p(theta_hat) . V_{h+1}
    """

    @property
    def made(self) -> LaneRule:
        return CENTRE


Rule = JointMaximum | VarianceBonus | SecondOrderBonus | MaxNormBonus | PlugIn | LaneRule


def check_rule(rule: object) -> None:
    """Refuse what is not a rule of optimism."""
    if not isinstance(rule, Rule):
        cure = "pass JointMaximum(), VarianceBonus(), ... or a function made a rule by livarot.rule"
        raise bad("rule", f"{rule!r} is not a rule of optimism", cure=cure)
