"""Discounted planning for the worst model of a confidence set: pessimistic value iteration with a certified bound.

For theta in C = {theta : |theta - theta_hat|_{Sigma^-1} <= beta}, and x(s') = r(s, a, s') + gamma V(s'),

    Q(s, a) = r(s, a) + min over C of E_theta x,      V = max_a Q,

each pair by itself (*rectangular*).  This is :mod:`livarot.infinite.planning.optimistic` with the rule of
:mod:`livarot.planning.pessimistic`, whose value is a certified lower bound of the minimum and whose bound is a value at
some point of the set, so never below the minimum.  Write B_pi and M for the backups that these two make, T_theta,pi for
that of a policy in one model and W for the exact one; B_pi v <= T_theta,pi v for all theta in C, and W v <= M v.
T_theta,pi and W are monotone, and adding c to v adds gamma c: contractions.  Hence, for any v whatsoever,

    V^pi_theta  >=  v + min_s (B_pi v - v)/(1 - gamma)      for every theta in C      ``lower``
    max over pi of the worst value  <=  v + max_s (M v - v)/(1 - gamma)               ``upper``

(T v >= v + c gives T^k v >= v + c (1 + .. + gamma^(k-1)), and T^k v tends to V^pi_theta).  So one backup of the last v
proves both, whether or not the rounds before it converged: bounds of minima need not be monotone in v, minima are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.infinite.planning.discounted import Work, accuracy_of, fixed_point
from livarot.infinite.planning.optimistic import MORE, Optimist, first_upper, radius_of, replace_bound, whitener
from livarot.infinite.problem import InfiniteMDP
from livarot.infinite.solution import Policy, Stationary
from livarot.infinite.terms import stored_discount
from livarot.planning.optimistic.rules import ShiftedPower
from livarot.planning.pessimistic import worst_rule


@dataclass(frozen=True, eq=False, repr=False)
class PessimisticDiscounted(Stationary):
    """``lower`` <= V^policy_theta for every theta of the set; no policy has a worst value above ``upper``."""

    value: FloatArray  # (S,) of the recursion on lower bounds
    policy: Policy  # (S,), -1 in terminal states
    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    radius: float
    n_iter: int
    discount: float
    method: str
    mdp: InfiniteMDP = field(repr=False)

    def _proof(self) -> str:
        given = float((self.upper - self.lower).max())
        return f"worth at least `lower` in every model of the set, at most {given:.3g} below the best; {self.method}"


@checked(discount=stored_discount)
def solve_pessimistic(
    mdp: InfiniteMDP,
    covariance: ArrayLike,
    discount: float | None = None,
    *,
    level: float = 0.95,
    radius: float | None = None,
    solver: ShiftedPower | None = None,
    tol: float | None = None,
) -> PessimisticDiscounted:
    """The policy of the best worst value over the set around ``mdp.theta``, with a lower bound that is proved.

    ``covariance``, ``level`` and ``radius`` say what the set is, as in :func:`solve_optimistic`; ``solver`` looks for
    the inner minima.  Average rewards have no such plan here: a discount below 1 is needed.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP, policy_value
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> found = solve_pessimistic(mdp, 0.01 * np.eye(mdp.problem.dim), 0.9)
    >>> bool((found.lower <= policy_value(mdp, found.policy, 0.9)).all()), bool((found.lower <= found.upper).all())
    (True, True)
    """
    gamma = mdp.discount if discount is None else discount
    if gamma is None or gamma == 1.0:
        told = "is not below 1: the worst case of an average reward is not planned for"
        raise bad("discount", told, cure="give a discount below 1, here or to the model")
    beta, work = radius_of(mdp, level, radius), Work()
    worst = Optimist(mdp, gamma, whitener(mdp, covariance), beta, worst_rule(solver))
    found_minima, width, unit = replace_bound(worst), max(accuracy_of(mdp, tol), 1e-9), mdp.problem.terms.unit
    above = fixed_point(found_minima, gamma, width, MORE, work, np.zeros(mdp.problem.n_states))
    found = fixed_point(worst, gamma, width, MORE, work, above.value)
    upper = np.minimum(above.upper, first_upper(found_minima, found.value))
    parts = unit * found.value, Policy.of(mdp.problem, found.policy), unit * found.lower, unit * upper
    told = f"pessimistic value iteration, {work}"
    return PessimisticDiscounted(*parts, beta, above.n_iter + found.n_iter, gamma, told, mdp)
