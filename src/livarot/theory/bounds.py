"""The regret bound of Theorem (regret bound), term by term, and the quantities it is made of.

Two readings:

``"printed"``  the theorem and the lemmas as they stand.
``"proof"``    what the steps of the proof give when their constants are carried through to the end (the default).

With L = log(1 + T), l = log(2/delta) and beta = sqrt(2/3 d log(TH/delta)) + 24 B sqrt(d) (Lemma (confidence set
learning phase) with the union over stages, E18), step 5 of the proof reads, for x^2 = Reg_T(MDP),

    x^2 <= b x + c,   b = 2 beta sqrt(2e d H L nu) + 2 sqrt2 e^2 beta sqrt(d L) H^{3/2},

and x^2 <= b^2 + 2c with b^2 <= 2 b_1^2 + 2 b_2^2 gives the seven terms below.  Where they differ from the print (E27):

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

(s is sigma_bar; the martingale term is part of c, hence twice.)  The print has no
24: its leading term is smaller than what was proved as long as L M < (24 + sqrt(2/3 log(TH/delta))/B)^2, that is up to
about T = 1e10.

The curvature term needs another argument than step 7, which bounds each stage by 20 kappa beta^2 d H^2 log(1 + T/(d
lambda)) and so their sum by H^3, not H^2 (E28).  But Gamma is linear in V*: along x = (phi_i . (theta - theta*))_i its
second derivative is E[(V - mean)(x - mean)^2] <= H Var(x) <= H max_i x_i^2, half of it is at most 2 H beta^2
max_i |phi_i|^2 in the inverse Gram norm, and the sum of the maxima over episodes is at most 2 kappa d log(1 + T/(d
lambda)).  So 4 kappa beta^2 d H log(1 + T/(d lambda)) is enough for a stage and H^2 for all of them.

The second term is of order sqrt(T) like the first: up to logarithms it is larger whenever sigma_bar < 1/(d sqrt H), so
that the claimed d H sqrt(T) for sigma_bar = O(1/H) needs d >= sqrt H (E27).

No reading is a guarantee: Lemma (constant diameter), on which both rest, is false for directions that are never visited
(E3).  What is computed is the bound given the lemma, as logarithms: tau is 1e23 already for the chain with H = 10.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from livarot.core.arguments import any_count, checked
from livarot.errors import bad
from livarot.model.problem import MNLMDP, Problem
from livarot.theory.constants import TheoryWarning, exponential, finite_or_none
from livarot.theory.lower import lower_bound as lower_bound
from livarot.theory.summary import Constants
from livarot.theory.variance import sigma_bar_limit

Reading = Literal["proof", "printed"]
LEADING = "variance"
TERMS = (
    LEADING,
    "martingale",
    "gap_variance",
    "value_error",
    "gap_square",
    "value_error_square",
    "curvature",
    "exploration",
)
ROOT2 = math.sqrt(2.0)
FARTHEST = 1e15  # log T beyond which nobody looks


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

    ``leading_from`` is the smallest T from which on the leading term is the largest of all (None if it never is,
    ``reason`` says why or what it had to overtake); ``vacuous`` if the bound exceeds the trivial T H; ``failed`` the
    conditions that do not hold.
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
        """Infinite where no float is large enough (``log_terms`` are not)."""
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
    of the model, which has to be known.  kappa is the upper end of its bracket.  A condition that fails is a
    :class:`TheoryWarning` and stands in ``Bound.failed``.

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
        return _log_terms(log_t, constants, failure_level, spread, nu, n_explore, reading)

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
    confidence = max(log_tau, 0.0) + math.log(horizon / failure_level)  # less than one episode is no burn-in
    union = 1 if reading == "printed" else horizon
    return Settings(
        reading=reading,
        log_tau=log_tau,
        reg_explore=math.sqrt(d * confidence) if reading == "printed" else d * confidence,
        log_exploration_radius=_log_exploration_radius(log_tau, constants, failure_level, reading),
        reg=144.0 * d,
        radius=_radius(math.log(n_episodes), d, bound, union, failure_level),
    )


def log_exploration_length(
    model: Constants | Problem | MNLMDP, n_episodes: int, *, failure_level: float = 0.05, reading: Reading = "proof"
) -> float:
    """log tau: that of Lemma (constant diameter), or the smallest one for which its proof works.

    The proof needs 4 beta^0 sqrt(kappa/rho) sqrt(d log(1 + tau/d)/tau) <= 1/(3 sqrt2).  The printed factor 4^5 makes it
    0.71, and T stands in the logarithms where tau > T is meant (E6).  Infinite for rho = 0.
    """
    constants = Constants.of(model)
    return _log_tau(math.log(n_episodes), constants, failure_level, reading)


def _log_tau(log_t: float, constants: Constants, failure_level: float, reading: Reading) -> float:
    d, horizon, bound = constants.dim, constants.horizon, constants.param_bound
    if constants.rho == 0.0:
        return math.inf
    ratio = constants.kappa.log_upper - math.log(constants.rho)
    if reading == "printed":
        return (
            5.0 * math.log(4.0)
            + 8.0 * ratio
            + 4.0 * math.log(1.0 + 3.0 * ROOT2)
            + 6.0 * math.log(d)
            + 2.0 * math.log(bound + 3.0)
            + math.log(log_t + math.log(horizon / failure_level))
            + 6.0 * math.log(_log1p_ratio(log_t, d))
        )
    return _log_tau_of_proof(constants, failure_level, ratio)


@lru_cache(maxsize=64)  # the same for all T, and asked for at a thousand of them
def _log_tau_of_proof(constants: Constants, failure_level: float, ratio: float) -> float:
    d = constants.dim

    def excess(log_tau: float) -> float:
        radius = _log_exploration_radius(log_tau, constants, failure_level, "proof")
        design = 0.5 * (ratio + math.log(d * _log1p_ratio(log_tau, d)) - log_tau)
        return math.log(4.0 * 3.0 * ROOT2) + radius + design

    return _last_crossing(lambda x: -excess(x))


def _log_exploration_radius(log_tau: float, constants: Constants, failure_level: float, reading: Reading) -> float:
    """log beta^0_{tau+1} of Eq. (def beta_t)."""
    d, horizon, bound = constants.dim, constants.horizon, constants.param_bound
    relax = 1.0 + (3.0 * ROOT2 if reading == "printed" else 6.0 * ROOT2 * bound)
    if math.isinf(log_tau) or constants.rho == 0.0:
        return math.inf
    ratio = constants.kappa.log_upper - math.log(constants.rho)
    next_ = float(np.logaddexp(log_tau, 0.0))
    noise = math.log(bound + 3.0) + 0.5 * math.log(d * (next_ + math.log(horizon / failure_level)))
    bias = 0.25 * float(np.logaddexp(log_tau, math.log(2.0))) + 1.5 * ratio + math.log(d * _log1p_ratio(next_, d))
    return math.log(relax) + float(np.logaddexp(noise, bias))


def _radius(log_t: float, dim: int, bound: float, union: int, failure_level: float) -> float:
    """beta_t with lambda = 144 d; ``union`` is 1 as printed and H where the union over stages is taken (E18)."""
    return math.sqrt(2.0 / 3.0 * dim * (log_t + math.log(union / failure_level))) + 24.0 * bound * math.sqrt(dim)


def _log1p_ratio(log_x: float, d: float) -> float:
    """log(1 + x/d)."""
    return float(np.logaddexp(0.0, log_x - math.log(d)))


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def _log_terms(
    log_t: float,
    constants: Constants,
    failure_level: float,
    spread: float,
    nu: float,
    n_explore: int | None,
    reading: Reading,
) -> dict[str, float]:
    """The logarithms of the eight terms at T = exp(log_t)."""
    d, bound, log_kappa = constants.dim, constants.param_bound, constants.kappa.log_upper
    h, sigma, gap = math.log(constants.horizon), _log(spread), _log(nu)
    growth = _log(_log1p_ratio(log_t, 1.0))  # log L
    level = _log(math.log(2.0 / failure_level))  # log l
    if reading == "printed":
        size, times = _log(bound) + math.log(d), _log(log_t - math.log(failure_level))  # B d, log(T/delta)
        burn_in = _log_tau(log_t, constants, failure_level, reading)
        burn_in += 6.0 * (_log(log_t) - _log(_log1p_ratio(log_t, d)))  # the theorem has log^6 T
        values = (
            math.log(4.0) + 0.5 * math.log(2.0 * math.e) + size + 2 * h + sigma + 0.5 * log_t + growth + 0.5 * times,
            1.5 * h + 0.5 * (math.log(2.0) + log_t + level),
            math.log(8.0) + 0.5 * (1.0 + gap + level) + size + 1.25 * h + 0.25 * log_t + growth + times,
            math.log(8.0) + 2.0 + size + 2.25 * h + 0.25 * log_t + 0.5 * (growth + times + level),
            math.log(32.0) + 1.0 + 2 * size + gap + h + growth + times,
            math.log(32.0) + 2.0 + 2 * size + 3 * h + 2 * growth + times,
            math.log(40.0) + log_kappa + 2 * size + 2 * h + growth + times,
        )
    else:
        beta = math.log(_radius(log_t, d, bound, constants.horizon, failure_level))
        root = beta + 0.5 * (math.log(d) + growth)  # log of beta sqrt(d L)
        burn_in = _log_tau(log_t, constants, failure_level, reading) if n_explore is None else 0.0
        slow = math.log(4.0) + 0.75 * math.log(2.0) + 0.25 * (log_t + level)
        design = _log(_log1p_ratio(log_t, 144.0 * d * d))
        values = (
            math.log(4.0) + 0.5 * math.log(2.0 * math.e) + root + 2 * h + sigma + 0.5 * log_t,
            math.log(2.0) + 1.5 * h + 0.5 * (math.log(2.0) + log_t + level),
            slow + 0.5 * (1.0 + gap) + root + 1.25 * h,
            slow + 2.0 + root + 2.25 * h,
            math.log(16.0) + 1.0 + 2 * root + h + gap,
            math.log(16.0) + 4.0 + 2 * root + 3 * h,
            math.log(40.0) + log_kappa + 2 * beta + math.log(d) + 2 * h + design,
        )
    explored = burn_in + h if n_explore is None else _log(n_explore) + h
    return dict(zip(TERMS, (*values, explored), strict=True))


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
    found = _last_crossing(lambda x: rest(x)[0])
    if math.isinf(found):
        return None, f"{rest(FARTHEST)[1]} is larger up to T = exp({FARTHEST:.0e})"
    before = rest(max(found - 1e-6 * max(found, 1.0), 0.0))
    return found, f"overtakes {before[1]} last" if before[0] < 0.0 else "leads from the first episode on"


def _last_crossing(margin: Callable[[float], float]) -> float:
    """The smallest x >= 0 with margin >= 0 from there on.

    The margins here are logarithms of powers of T over powers of log T: beyond x = 64 they increase, before it they are
    looked at on a grid.
    """
    high = 64.0
    while margin(high) < 0.0:
        high *= 2.0
        if high > FARTHEST:
            return math.inf
    low = high / 2.0 if high > 64.0 else None
    if low is None:
        grid = np.linspace(0.0, 64.0, 1281)
        below = [float(x) for x in grid if margin(float(x)) < 0.0]
        if not below:
            return 0.0
        low, high = below[-1], below[-1] + 0.05
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if margin(middle) < 0.0 else (low, middle)
    return high


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
        needed = _log_tau(log_t, constants, failure_level, reading)
        if _log(n_explore) < needed:
            size = f"{exponential(needed):.2g}" if needed < 700 else f"exp({needed:.4g})"
            found.append(f"n_explore = {n_explore}, the lemma asks for {size} episodes of exploration")
    return tuple(found)
