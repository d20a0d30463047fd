"""The policy of the best worst case over a fit's confidence set, with a lower confidence bound of what it is worth.

    theta* in C   =>   lower <= V^pi(theta*),      P(lower <= V^pi) >= P(theta* in C)

with lower the start value of the pessimistic recursion (:mod:`livarot.planning.pessimistic`) over the set C.  The
policy is chosen with the same data and needs no correction: the inequality holds for all policies at once.

``kind="wald"``           C is {theta : (theta - theta_hat)' Cov^-1 (theta - theta_hat) <= chi2_d(level)}, Cov the fit's
                          covariance (Hessian, sandwich, ...): the level holds in large samples.  With one parameter per
                          stage each of the K sets has level 1 - (1 - level)/K (union bound).  Where the differences of
                          features of the (state, action) span few directions, a smaller radius keeps the level
                          (:func:`livarot.data.fitting.inference.pairwise_radius`), and is taken.
``kind="finite-sample"``  holds for every sample size (:mod:`livarot.data.fitting.inference`); wider.

Both suppose that the model is right, and that rewards, start and reachable sets are known.  ``lower`` is conservative:
the worst case may differ from (h, s, a) to (h, s, a), and inner minima are bounded, not found.

Without an end the recursion is that of :mod:`livarot.infinite.planning.pessimistic`, for a discount below 1; ``lower``
means the same.  Average rewards are refused.

**Coverage coefficients** say how far a log covers a policy.  With d(s, a) = (1/H) sum_h P(s_h = s, a_h = a) under the
fit, or (1 - discount) sum_t discount^t P(s_t = s, a_t = a) without an end, and mu(s, a) the share of the logged steps:

    concentrability   max over (s, a) of d(s, a) / mu(s, a)                          infinite where nothing was logged
    information       max over x of  x' I_pi x / x' I_log x,   I_pi  = sum d(s, a) Var_{s,a}(phi),
                                                               I_log = Cov^-1 / n    per logged step

The second one knows that pairs share coefficients: it is finite where the fit is, and 1 if the policy meets what the
log met.  In every direction n logged steps tell at least as much as n/information steps of the policy would.  With one
parameter per stage it is the largest over the stages, where d and n are those of the stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from livarot import infinite
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.data.fitting.likelihood import derivatives
from livarot.data.fitting.sandwich import inverse
from livarot.data.reading.choices import Choices
from livarot.data.use.intervals import as_probabilities, start_value
from livarot.data.use.plans import confidence_ellipsoids, decided, expected_visits, observed_counts, stationary_set
from livarot.data.use.to_mdp import labels_of
from livarot.infinite.problem import InfiniteMDP
from livarot.infinite.solution import worth_at_start
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.optimistic.rules import ShiftedPower
from livarot.planning.pessimistic import pessimistic_plan

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


class Coverage(NamedTuple):
    """How far a log covers a policy; the head of :mod:`livarot.data.use.pessimism` has the formulas."""

    concentrability: float  # infinite where the policy takes a (state, action) that was never logged
    worst_pair: tuple[Any, Any]  # the (state, action) where that is
    information: float

    def __str__(self) -> str:
        state, action = self.worst_pair
        pair = f"{action!r} in {state!r}"
        if math.isinf(self.concentrability):
            ratio = f"never logged: {pair}"
        else:
            ratio = f"visits at most {self.concentrability:.3g} x the log's share, {pair}"
        return f"coverage: {ratio}; information at most {self.information:.3g} x the log's"


@dataclass(frozen=True, eq=False)
class PessimisticPolicy:
    """A policy, a lower confidence bound of its true value, and how far the log covers it."""

    policy: Int32Array  # (H, S), or (S,) without an end
    value: FloatArray  # (H + 1, S), or (S,), of the recursion
    lower: float  # <= the policy's true value with probability ``level``
    upper: float  # no policy has a worst case over the set (rectangular) that is better than this
    nominal: float  # the policy's value under the fit
    level: float
    kind: str  # of the confidence set
    coverage: Coverage

    def __str__(self) -> str:
        bound = f"lower {100 * self.level:g} % bound {self.lower:.4f} ({self.kind})"
        return f"{bound}, best worst case at most {self.upper:.4f}, under the fit {self.nominal:.4f}; {self.coverage}"


@checked
def plan_pessimistic(
    fit: MNLTransition,
    mdp: MNLMDP | InfiniteMDP,
    level: float = 0.95,
    *,
    kind: str = "wald",
    solver: ShiftedPower | None = None,
) -> PessimisticPolicy:
    """The policy of the largest worst value over ``fit.confidence_set(level, kind)``; ``mdp`` is ``fit.to_mdp(...)``.

    ``lower`` is a lower confidence bound of the policy's true value, of that level: for large samples if ``"wald"``,
    for all of them if ``"finite-sample"`` (what is supposed: :mod:`livarot.data.use.pessimism`).
    """
    policy: Any
    if isinstance(mdp, InfiniteMDP):
        own = infinite.solve_pessimistic(mdp, **stationary_set(fit, mdp, level, kind, pairwise=True), solver=solver)
        policy, value = own.policy, own.value
        nominal, lower, upper = (
            worth_at_start(mdp.problem, one) for one in (infinite.policy_value(mdp, policy), own.lower, own.upper)
        )
    else:
        sets, radius = confidence_ellipsoids(fit, mdp, level, kind, pairwise=True)
        plan = pessimistic_plan(mdp.problem, sets, radius, solver)
        policy, value = plan.policy[0], plan.value[0]
        nominal = start_value(mdp.problem, transition_kernel(mdp), as_probabilities(mdp.problem, policy))
        lower, upper = float(plan.lower[0]), float(plan.upper[0])
    covered = coverage_coefficients(fit, mdp, policy)
    return PessimisticPolicy(policy, value, lower, upper, nominal, level, kind, covered)


@checked
def coverage_coefficients(
    fit: MNLTransition, mdp: MNLMDP | InfiniteMDP, policy: NDArray[Any] | None = None
) -> Coverage:
    """How far the log of a fit covers a policy, (H, S) actions or (H, S, A) probabilities; None is the optimal one.

    Policies of a model without an end are (S,) or (S, A), and it needs a discount below 1.
    """
    visits, labels = expected_visits(fit, mdp, policy), labels_of(mdp)
    count = observed_counts(fit, mdp)
    share = np.where(decided(fit, mdp)[:, None], visits.sum(axis=0), 0.0) / len(visits)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(share > 0.0, share * count.sum() / count, 0.0)
    s, a = (int(i) for i in np.unravel_index(int(ratio.argmax()), ratio.shape))
    pair = labels.states[s], labels.actions[a]
    return Coverage(float(ratio[s, a]), pair, _information(fit, mdp, visits))


def _information(fit: MNLTransition, mdp: MNLMDP | InfiniteMDP, visits: FloatArray) -> float:
    """The largest ratio of a policy's information per step to the log's."""
    thetas, worst = np.atleast_2d(fit.theta_), 0.0
    for k, ((_, part), cov) in enumerate(zip(fit._groups(fit.choices_), fit._covariances(), strict=True)):
        own = visits if fit.homogeneous else visits[k : k + 1]
        steps = part.with_counts(_as_counts(part, own / len(own), by_stage=fit.homogeneous and _staged(mdp)))
        needed = derivatives(steps, thetas[k]).hessian
        free = np.diag(cov) > 0.0  # no step depends on the others
        needed, cov = needed[np.ix_(free, free)], cov[np.ix_(free, free)]
        known = inverse(cov, "covariance") / part.n_choices
        size = np.sqrt(np.diag(known))
        scaled = (needed / size / size[:, None], known / size / size[:, None])
        worst = max(worst, float(eigh(*scaled, eigvals_only=True)[-1]))
    return worst


def _staged(mdp: MNLMDP | InfiniteMDP) -> bool:
    """Does each stage have choice sets of its own?"""
    return isinstance(mdp, MNLMDP) and len(np.unique(mdp.problem.stage_table)) > 1


def _as_counts(part: Choices, visits: FloatArray, *, by_stage: bool) -> FloatArray:
    """Counts whose sums over choice sets are the visits; only these sums enter a Hessian."""
    state: Any = part.state
    action: Any = part.action
    count = np.zeros(part.n_rows)
    if by_stage:
        count[part.start[:-1]] = visits[part.stage, state, action]
        return count
    _, first = np.unique(state * visits.shape[2] + action, return_index=True)  # sets of one (state, action) are equal
    count[part.start[first]] = visits.sum(axis=0)[state[first], action[first]]
    return count
