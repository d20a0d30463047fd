"""The multinomial logit bandit: one decision, several outcomes of known value, as an MNL MDP with two stages.

At stage 0 the only state is 0; arm a leads to outcome i, which is state 1 + i, with probability

    P(i|a) = exp(phi(i|a) . theta*) / sum_j exp(phi(j|a) . theta*).

At stage 1 outcome i pays its value v_i, whatever is done.  So V*_1(1 + i) = v_i, the regret of
an episode is that of the bandit, max_b E_b[v] - E_a[v], and theta* is learned from one transition per episode.

Two stages are needed (E25): with H = 1 nothing follows the decision, V*_2 = 0 and sigma_bar = 0, where the paper says
that sigma_bar^2 is the variance of the best arm's reward.  With H = 2 it is that variance, divided by H^3 = 8: the
paper's definition averages over stages (one half) and divides by H^2 (one quarter).  :func:`bandit_constants` computes
both sides of the remark; docs/bandit.md says what is true of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked, several
from livarot.core.arrays import FloatArray
from livarot.errors import bad, require_finite
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory
from livarot.theory.variance import sigma_bar_star

DECISION = 0  # the state in which an arm is chosen


@checked(n_outcomes=several)
def mnl_bandit(
    n_arms: int = 10,
    n_outcomes: int = 3,
    dim: int = 4,
    seed: int = 0,
    values: ArrayLike | None = None,
    *,
    param_bound: float = 3.0,
    kronecker: bool = False,
) -> MNLMDP:
    """A random bandit: unit vectors of uniform direction for every (arm, outcome), |theta*| = ``param_bound``.

    Outcome 0 has phi = 0 (the reference, or "no purchase").  ``values`` (n_outcomes,) in [0, 1] are i/(n_outcomes - 1)
    if None.  ``kronecker=True`` is the multinomial model of Zhang and Sugiyama: an arm is a unit vector x and outcome i
    has its own row of the matrix W, phi(i|a) = e_i (x) x_a, so that d is (n_outcomes - 1) ``dim``.

    >>> import livarot
    >>> mdp = mnl_bandit(n_arms=5, n_outcomes=2, dim=3)
    >>> mdp.problem.horizon, mdp.problem.n_states, mdp.problem.dim
    (2, 3, 3)
    >>> best = max(mdp.probabilities(0, 0, a) @ [0.0, 1.0] for a in range(5))
    >>> bool(abs(livarot.solve(mdp).value[0, 0] - best) < 1e-15)
    True
    """
    size = (n_outcomes - 1) * dim if kronecker else dim
    require_memory("n_arms", "the arms and their features", n_arms * n_outcomes * (4 * size + 16))
    worth = np.linspace(0.0, 1.0, n_outcomes) if values is None else require_finite("values", values)
    if worth.shape != (n_outcomes,):
        raise bad("values", f"has shape {worth.shape}, expected {(n_outcomes,)}", cure="give one value per outcome")
    outside = np.flatnonzero((worth < 0) | (worth > 1))
    if len(outside):
        index, count = int(outside[0]), len(outside)
        raise bad(
            "values", f"{worth[index]:.6g} is outside [0, 1]", index=index, count=count, cure="rescale the values"
        )
    rng = stream(seed, "mnl bandit")
    features = np.zeros((n_arms, n_outcomes, size))
    if kronecker:
        arms = _directions(rng, (n_arms, dim))
        for i in range(1, n_outcomes):
            features[:, i, (i - 1) * dim : i * dim] = arms
    else:
        features[:, 1:] = _directions(rng, (n_arms, n_outcomes - 1, dim))
    theta = param_bound * _directions(rng, (size,))
    n_states = 1 + n_outcomes
    ends = np.repeat(np.arange(1, n_states), n_arms)  # an outcome stays where it is
    reward = np.zeros((2, n_states, n_arms))
    reward[1, 1:] = worth[:, None]
    return MNLMDP.from_arrays(
        2,
        n_states,
        n_arms,
        outcomes=np.concatenate(([np.full(n_arms, n_outcomes)], np.ones((n_outcomes, n_arms), dtype=np.int64))),
        next_state=np.concatenate((np.tile(np.arange(1, n_states), n_arms), ends)),
        features=np.concatenate((features.reshape(-1, size), np.zeros((len(ends), size)))),
        reward=reward,
        theta=theta,
        stage_table=np.zeros(2, dtype=np.int32),
        param_bound=param_bound,
    )


def _directions(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    drawn = rng.standard_normal(shape)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True))


class BanditConstants(NamedTuple):
    """Both sides of the remark that sigma_bar^2 is 1/kappa_* in a bandit, at the best arm a*.

    With p = p(. | a*) and J = diag(p) - p p' (the derivative of the softmax):
    """

    variance: float  # Var[v] = v' J v of the best arm's reward
    sigma_bar_squared: float  # of the model with H = 2, under pi*
    slope: float  # the largest eigenvalue of J: for two outcomes 2 p (1 - p)
    curvature: float  # p_0 (1 - p_0) of the reference outcome: for two outcomes the derivative of the sigmoid
    horizon: int

    @property
    def normalised(self) -> float:
        """H^3 sigma_bar^2, what the remark should say in place of sigma_bar^2."""
        return self.horizon**3 * self.sigma_bar_squared


@checked
def bandit_constants(mdp: MNLMDP) -> BanditConstants:
    """The constants of a model made by :func:`mnl_bandit` (of its first state in general).

    For two outcomes of values 0 and 1 the constant of Faury and Abeille is 1/kappa_* = mu'(x_*' theta*) = p (1 - p),
    which is ``curvature`` and ``variance``:

    >>> found = bandit_constants(mnl_bandit(n_outcomes=2))
    >>> abs(found.variance - found.curvature) < 1e-15, abs(found.normalised - found.variance) < 1e-15
    (True, True)
    """
    solution = solve(mdp)
    arm = int(solution.policy[0, DECISION])
    p = mdp.probabilities(0, DECISION, arm)
    worth = solution.value[1, mdp.problem.next_states(0, DECISION, arm)]
    jacobian = np.diag(p) - np.outer(p, p)
    return BanditConstants(
        variance=float(worth @ jacobian @ worth),
        sigma_bar_squared=sigma_bar_star(mdp, solution=solution) ** 2,
        slope=float(np.linalg.eigvalsh(jacobian)[-1]),
        curvature=float(p[0] * (1.0 - p[0])),
        horizon=mdp.problem.horizon,
    )
