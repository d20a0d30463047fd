"""How a plan is optimistic: rules and solvers, chosen by passing an object.

A rule turns the confidence ellipsoid of a stage into Q_h(s, a) = r_h(s, a) + (optimistic expectation of V_{h+1}).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from livarot.core.arguments import checked
from livarot.errors import bad, require_non_negative
from livarot.planning.lanes import FRANK_WOLFE, SHIFTED_POWER

PLUG_IN, JOINT_MAXIMUM, VARIANCE_BONUS, SECOND_ORDER_BONUS, MAX_NORM_BONUS = 0, 1, 2, 3, 4
NO_CLIP, CLIP_Q, CLIP_V = 0, 1, 2  # nothing; every Q to [0, H]; V = max_a Q to at most H


class RuleCode(NamedTuple):
    """A rule as the numbers a compiled loop wants."""

    rule: int
    solver: int = SHIFTED_POWER
    n_iter: int = 0
    tol: float = 0.0
    n_starts: int = 0
    wide: float = 0.0
    constant: float = 0.0
    clip: int = NO_CLIP


@checked(tol=require_non_negative)
@dataclass(frozen=True)
class ShiftedPower:
    """Projected gradient with Barzilai-Borwein curvature, to a certified first-order gap."""

    tol: float = 5e-9  # first-order gap relative to the stage's value range: the miss stays below 1e-8
    max_iter: int = 1000  # iterations of one start; few need more than 100
    n_starts: int = 3  # extra starts at most, each from the best point on chords of the ellipsoid, ...
    wide: float = 1.0  # ... where it moves a logit by more than this

    def code(self, rule: int) -> RuleCode:
        return RuleCode(rule, SHIFTED_POWER, self.max_iter, self.tol, self.n_starts, self.wide)


@checked(tol=require_non_negative)
@dataclass(frozen=True)
class FrankWolfe:
    """The paper's solver: steps 2/(k+2) from the centre (and from the top-valued outcomes, n_starts of them)."""

    n_iter: int = 50  # the paper does not say (reading E34)
    n_starts: int = 4  # extra starts; the paper's own is the centre alone
    tol: float = 0.0  # stop early when the gap is this small, relative to the stage's value range

    def code(self, rule: int) -> RuleCode:
        return RuleCode(rule, FRANK_WOLFE, self.n_iter, self.tol, self.n_starts, -1.0)


Solver = ShiftedPower | FrankWolfe


@checked
@dataclass(frozen=True)
class JointMaximum:
    """Eq. (definition optimistic reward): max over the ellipsoid; exact for two outcomes, certified otherwise."""

    solver: Solver = field(default_factory=ShiftedPower)

    @cached_property
    def _code(self) -> RuleCode:
        return self.solver.code(JOINT_MAXIMUM)

    def code(self) -> RuleCode:
        return self._code


@dataclass(frozen=True)
class VarianceBonus:
    """The closed-form variance-aware upper bound; no inner optimisation at all.

    Deviation: its last term uses max|phi_i - mean|^2 / 2 in place of max|phi_i - phi_j|^2 / 8, which is valid, up to
    four times looser there, and linear in U.
    """

    def code(self) -> RuleCode:
        return RuleCode(VARIANCE_BONUS)


@checked
@dataclass(frozen=True)
class SecondOrderBonus:
    """H beta sum p|phi - mean|_{gram^-1} + constant H beta^2 max|phi|^2_{gram^-1}.

    Li et al. have the constant 5/2 (likely) and clip every Q to [0, H].  Cho et al. have 3 and V = min(max_a Q, H)
    (certain): V is the same, but actions whose Q exceeds H stay ranked by it, whereas clipped ones tie and the first
    is played.

    Deviation: a pair with one outcome gets no bonus, since nothing about it is unknown.
    """

    constant: float = 2.5  # 5/2 likely; Cho et al. prove the same with 3, and 1/2 suffices by |f''| <= span Var
    clip_value: bool = False  # clip V (Cho et al.) instead of every Q (Li et al.)

    def code(self) -> RuleCode:
        return RuleCode(SECOND_ORDER_BONUS, constant=self.constant, clip=CLIP_V if self.clip_value else CLIP_Q)


@checked
@dataclass(frozen=True)
class MaxNormBonus:
    """constant H beta max_i |phi_i|_{gram^-1}, every Q clipped to [0, H]: Hwang and Oh (certain), and Li's ONS agent.

    Deviation: a pair with one outcome gets no bonus, since nothing about it is unknown.
    """

    constant: float = 2.0

    def code(self) -> RuleCode:
        return RuleCode(MAX_NORM_BONUS, constant=self.constant, clip=CLIP_Q)


@dataclass(frozen=True)
class PlugIn:
    """No optimism: the expectation under the estimate itself."""

    def code(self) -> RuleCode:
        return RuleCode(PLUG_IN)


Rule = JointMaximum | VarianceBonus | SecondOrderBonus | MaxNormBonus | PlugIn


def check_rule(rule: object) -> None:
    """Refuse what is no rule of optimism."""
    if not isinstance(rule, JointMaximum | VarianceBonus | SecondOrderBonus | MaxNormBonus | PlugIn):
        raise bad("rule", f"{rule!r} is no rule of optimism", cure="pass JointMaximum(), VarianceBonus(), ...")
