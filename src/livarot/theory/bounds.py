"""The regret bound of Theorem (regret bound), term by term, and the quantities it is made of.

Two readings:

``"printed"``  the theorem and the lemmas as they stand.
``"proof"``    what the steps of the proof give when their constants are carried through to the end (the default).

With L = log(1 + T), l = log(2/delta) and beta = sqrt(2/3 d log(TH/delta)) + 24 B sqrt(d) (Lemma (confidence set
learning phase) with the union over stages, E18), step 5 of the proof reads, for x^2 = Reg_T(MDP),

    x^2 <= b x + c,   b = 2 beta sqrt(2e d H L nu) + 2 sqrt2 e^2 beta sqrt(d L) H^{3/2},

and x^2 <= b^2 + 2c with b^2 <= 2 b_1^2 + 2 b_2^2 gives the first seven terms below.  The printed terms differ (E27):

====================  ====================================  ======================================================
term                  printed, with M = log(T/delta)        proof
====================  ====================================  ======================================================
variance (leading)    4 sqrt(2e) B d H^2 s sqrt(T M) L      4 sqrt(2e) beta sqrt(d L) H^2 s sqrt(T)
martingale            H^{3/2} sqrt(2 T l)                   2 H^{3/2} sqrt(2 T l)
gap_variance          8 sqrt(e nu l) B d H^{5/4} T^{1/4} L M  4 2^{3/4} beta sqrt(e nu d L) H^{5/4} (T l)^{1/4}
value_error           8 e^2 B d H^{9/4} T^{1/4} sqrt(L M l)  4 2^{3/4} e^2 beta sqrt(d L) H^{9/4} (T l)^{1/4}
gap_square            32 e B^2 nu d^2 H L M                 16 e beta^2 nu d H L
value_error_square    32 e^2 B^2 d^2 H^3 L^2 M              16 e^4 beta^2 d H^3 L
curvature             40 kappa B^2 d^2 H^2 L M              40 kappa beta^2 d H^2 log(1 + T/(144 d^2))
exploration           tau H, with log^6 T                   tau H
====================  ====================================  ======================================================

(s is sigma_bar; the martingale term is part of c, hence the factor 2.)  The printed terms lack the 24 of beta: the
leading one is smaller than what was proved as long as L M < (24 + sqrt(2/3 log(TH/delta))/B)^2, that is up to about
T = 1e10.

The curvature term needs an argument other than step 7, which bounds each stage by 20 kappa beta^2 d H^2 log(1 + T/(d
lambda)) and so their sum by H^3, not H^2 (E28).  But Gamma is linear in V*: along x = (phi_i . (theta - theta*))_i its
second derivative is E[(V - mean)(x - mean)^2] <= H Var(x) <= H max_i x_i^2, half of it is at most 2 H beta^2
max_i |phi_i|^2 in the inverse Gram norm, and the sum of the maxima over episodes is at most 2 kappa d log(1 + T/(d
lambda)).  So 4 kappa beta^2 d H log(1 + T/(d lambda)) is enough for a stage and H^2 for all of them.

The second term is of order sqrt(T) like the first: up to logarithms it is larger whenever sigma_bar < 1/(d sqrt H), so
that the claimed d H sqrt(T) for sigma_bar = O(1/H) needs d >= sqrt H (E27).

Neither reading is a guarantee: Lemma (constant diameter), on which both rest, is false for directions that are never
visited (E3).  What is computed is the bound given the lemma, as logarithms: tau is 1e23 already for the chain with
H = 10.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livarot.core.arguments import any_count, checked
from livarot.errors import bad
from livarot.model.problem import MNLMDP, Problem
from livarot.theory.all_constants import Constants
from livarot.theory.bound_terms import (
    FARTHEST,
    LEADING,
    TERMS,
    Reading,
    last_crossing,
    log_length,
    log_of,
    log_radius_of,
    log_terms_of,
    radius_of,
)
from livarot.theory.constants import TheoryWarning, exponential, finite_or_none
from livarot.theory.lower import lower_bound as lower_bound
from livarot.theory.variance import sigma_bar_limit


@dataclass(frozen=True)
class Settings:
    """The hyper-parameters the theorem sets: tau, lambda_0, beta^0, lambda and beta_T."""

    reading: Reading
    log_tau: float  # length of the burn-in
    reg_explore: float  # lambda_0
    log_exploration_radius: float  # beta^0_{tau+1}: |theta - centre|_A <= beta^0 (E4)
    reg: float  # lambda
    radius: float  # beta_T

    @property
    def tau(self) -> float:
        return exponential(self.log_tau)

    @property
    def exploration_radius(self) -> float:
        return exponential(self.log_exploration_radius)

    def to_json(self) -> dict[str, Any]:
        return {
            "reading": self.reading,
            "tau": finite_or_none(self.tau),
            "log_tau": self.log_tau,
            "lambda_0": self.reg_explore,
            "beta_0": finite_or_none(self.exploration_radius),
            "log_beta_0": self.log_exploration_radius,
            "lambda": self.reg,
            "beta_T": self.radius,
        }


@dataclass(frozen=True)
class Bound:
    """The bound of Reg_T, with probability 1 - 5 failure_level; ``terms`` sum to ``total``.

    ``leading_from`` is the smallest T from which on the leading term is the largest of all, None if it never is;
    ``reason`` says why, or which term it overtakes last.  ``vacuous`` is true if the bound exceeds the trivial T H;
    ``failed`` lists the conditions that do not hold.
    """

    n_episodes: int
    horizon: int
    failure_level: float
    sigma_bar: float
    reading: Reading
    log_terms: dict[str, float]
    log_leading_from: float | None
    reason: str
    failed: tuple[str, ...] = field(default=())

    @property
    def terms(self) -> dict[str, float]:
        """Infinite where no float is large enough; ``log_terms`` do not overflow."""
        return {name: exponential(value) for name, value in self.log_terms.items()}

    @property
    def log_total(self) -> float:
        return float(np.logaddexp.reduce(list(self.log_terms.values())))

    @property
    def total(self) -> float:
        return exponential(self.log_total)

    @property
    def dominant(self) -> str:
        return max(self.log_terms, key=lambda name: self.log_terms[name])

    @property
    def vacuous(self) -> bool:
        return self.log_total >= math.log(self.n_episodes) + math.log(self.horizon)

    @property
    def leading_from(self) -> float | None:
        """Episodes, a whole number up to rounding of the logarithm; infinite where no float is large enough."""
        if self.log_leading_from is None:
            return None
        found = exponential(self.log_leading_from)
        return found if found > 2.0**52 else float(math.ceil(found * (1.0 - 1e-12)))

    @property
    def sigma_bar_needed(self) -> float:
        """sigma_bar at which, for this T, the leading term equals the martingale one: 1/(d sqrt H) up to logarithms."""
        ratio = self.log_terms["martingale"] - self.log_terms[LEADING]
        return self.sigma_bar * exponential(ratio) if self.sigma_bar > 0.0 else math.inf

    def to_json(self) -> dict[str, Any]:
        """Plain values; a number that no float holds is None beside its logarithm."""

        def plain(number: float) -> float | None:
            return number if math.isfinite(number) else None

        return {
            "reading": self.reading,
            "n_episodes": self.n_episodes,
            "failure_level": self.failure_level,
            "sigma_bar": self.sigma_bar,
            "terms": {name: plain(value) for name, value in self.terms.items()},
            "log_terms": {name: plain(value) for name, value in self.log_terms.items()},
            "upper": plain(self.total),
            "log_upper": plain(self.log_total),
            "dominant": self.dominant,
            "leading_from": finite_or_none(self.leading_from),
            "log_leading_from": self.log_leading_from,
            "reason": self.reason,
            "vacuous": self.vacuous,
            "failed": list(self.failed),
        }


@checked(n_episodes=any_count)
def regret_bound(
    model: Constants | Problem | MNLMDP,
    n_episodes: int,
    *,
    failure_level: float = 0.05,
    n_explore: int | None = None,
    sigma_bar: float | None = None,
    nu_max: float | None = None,
    reading: Reading = "proof",
) -> Bound:
    """The upper bound of Theorem (regret bound) for LIVAROT, term by term.

    ``n_explore`` None is the lemma's tau.  ``sigma_bar`` is sigma_bar_T along the learner's trajectory; None is the
    largest possible one, :func:`livarot.theory.variance.sigma_bar_limit`, which holds for every trajectory (the value
    under the optimal policy, ``Constants.sigma_bar_star``, may be smaller than the learner's).  ``nu_max`` None is that
    of the model, which has to be known.  kappa is the upper end of its bracket.  A condition that fails is warned about
    (:class:`TheoryWarning`) and listed in ``Bound.failed``.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, param_bound="tight")
    >>> bound = regret_bound(mdp, 1000, sigma_bar=0.11)
    >>> f"{bound.total:.2e}", bound.dominant, f"{bound.terms['variance']:.2e}", f"{bound.leading_from:.1e}"
    ('3.11e+32', 'exploration', '9.59e+05', '4.6e+54')
    """
    constants = Constants.of(model)
    spread = sigma_bar_limit(constants.horizon) if sigma_bar is None else sigma_bar
    nu = constants.nu_max if nu_max is None else nu_max
    if nu is None:
        raise bad("nu_max", "is not known without theta*", cure="pass an MNLMDP, or a number as nu_max")

    def at(log_t: float) -> dict[str, float]:
        return log_terms_of(log_t, constants, failure_level, spread, nu, n_explore, reading)

    log_t = math.log(n_episodes)
    failed = _failed(constants, log_t, failure_level, n_explore, spread, reading)
    for condition in failed:
        warnings.warn(f"regret_bound: {condition}", TheoryWarning, stacklevel=3)
    from_, reason = _leading_from(at)
    return Bound(n_episodes, constants.horizon, failure_level, spread, reading, at(log_t), from_, reason, failed)


@checked(n_episodes=any_count)
def theory_settings(
    model: Constants | Problem | MNLMDP, n_episodes: int, *, failure_level: float = 0.05, reading: Reading = "proof"
) -> Settings:
    """tau, lambda_0, beta^0, lambda and beta_T of the theorem, in either reading (E4 to E6, E11, E18).

    ``"printed"``: tau of the lemma, lambda_0 = sqrt(d log(tau H/delta)), the factor 1 + 3 sqrt2 in beta^0, and beta_T
    without the union over stages.  ``"proof"``: the smallest tau for which the lemma's chain of inequalities gives a
    diameter of 1/(3 sqrt2), lambda_0 = d log(tau H/delta), the factor 1 + 6 sqrt2 B (|theta* - estimate| is at most 2B,
    not 1), and beta_T with log(TH/delta).

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, param_bound="tight")
    >>> f"{theory_settings(mdp, 1000, reading='printed').tau:.1e}", f"{theory_settings(mdp, 1000).tau:.1e}"
    ('2.6e+23', '3.1e+31')
    """
    constants = Constants.of(model)
    d, horizon, bound = constants.dim, constants.horizon, constants.param_bound
    log_tau = log_exploration_length(constants, n_episodes, failure_level=failure_level, reading=reading)
    confidence = max(log_tau, 0.0) + math.log(horizon / failure_level)  # less than one episode counts as one
    union = 1 if reading == "printed" else horizon
    return Settings(
        reading=reading,
        log_tau=log_tau,
        reg_explore=math.sqrt(d * confidence) if reading == "printed" else d * confidence,
        log_exploration_radius=log_radius_of(log_tau, constants, failure_level, reading),
        reg=144.0 * d,
        radius=radius_of(math.log(n_episodes), d, bound, union, failure_level),
    )


def log_exploration_length(
    model: Constants | Problem | MNLMDP, n_episodes: int, *, failure_level: float = 0.05, reading: Reading = "proof"
) -> float:
    """log tau: that of Lemma (constant diameter), or the smallest one for which its proof works.

    The proof needs 4 beta^0 sqrt(kappa/rho) sqrt(d log(1 + tau/d)/tau) <= 1/(3 sqrt2).  The printed factor 4^5 makes it
    0.71, and the logarithms have T where the proof has tau > T (E6).  Infinite for rho = 0.
    """
    constants = Constants.of(model)
    return log_length(math.log(n_episodes), constants, failure_level, reading)


def _leading_from(at: Callable[[float], dict[str, float]]) -> tuple[float | None, str]:
    """log of the smallest T from which on the leading term is the largest, and what it has to overtake last."""

    def rest(log_t: float) -> tuple[float, str]:
        terms = at(log_t)
        largest = max((name for name in TERMS if name != LEADING), key=lambda name: terms[name])
        return terms[LEADING] - terms[largest], largest

    if at(1.0)[LEADING] == -math.inf:
        return None, "the leading term is 0: sigma_bar, or in the printed form B, is 0"
    if at(1.0)["exploration"] == math.inf:
        return None, "rho = 0: the exploration term is infinite"
    found = last_crossing(lambda x: rest(x)[0])
    if math.isinf(found):
        return None, f"{rest(FARTHEST)[1]} is larger up to T = exp({FARTHEST:.0e})"
    before = rest(max(found - 1e-6 * max(found, 1.0), 0.0))
    return found, f"overtakes {before[1]} last" if before[0] < 0.0 else "leads from the first episode on"


def _failed(
    constants: Constants, log_t: float, failure_level: float, n_explore: int | None, spread: float, reading: Reading
) -> tuple[str, ...]:
    found = []
    if 5.0 * failure_level >= 1.0:
        found.append(
            f"holds with probability 1 - 5 failure_level, and failure_level = {failure_level} is not below 0.2"
        )
    if reading == "printed" and constants.param_bound < 1.0:
        found.append(f"B = {constants.param_bound:.3g}, the paper assumes B >= 1")
    if constants.rho == 0.0:
        found.append("rho = 0: some stage has nothing to learn, the paper assumes rho > 0")
    if not constants.zero_outcomes:
        found.append("a pair has no outcome with phi = 0, which the bound of Hessians by kappa needs (E9)")
    if spread > sigma_bar_limit(constants.horizon) * (1.0 + 1e-9):
        found.append(
            f"sigma_bar = {spread:.3g} is more than any trajectory has, {sigma_bar_limit(constants.horizon):.3g}"
        )
    if n_explore is not None and constants.rho > 0.0:
        needed = log_length(log_t, constants, failure_level, reading)
        if log_of(n_explore) < needed:
            size = f"{exponential(needed):.2g}" if needed < 700 else f"exp({needed:.4g})"
            found.append(f"n_explore = {n_explore}, the lemma asks for {size} episodes of exploration")
    return tuple(found)
