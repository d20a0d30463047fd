"""Plans that take the uncertainty of a fit into account, optimistic or robust, and the data that they rest on.

Pessimistic plans over the same sets are in :mod:`livarot.data.use.pessimism`.

Optimistic: the largest value over the confidence ellipsoid of theta (:func:`livarot.optimistic_plan`).  Use it to
decide what to try next, not what to do.

Robust: the best worst case when each transition may lie anywhere within a KL ball around the fitted one.  The radius of
every (state, action) comes from the data.  The truth P is in the balls if KL(P | P_hat) <= radius everywhere; the
bootstrap puts P_hat in the place of P and a refit P_b in the place of P_hat, so the radius is a quantile over refits of

    K_b(s, a) = KL(P_hat(.|s, a) | P_b(.|s, a)).

``simultaneous`` (the default) widens the quantiles q(s, a) of level ``level`` by the ``level``-quantile over refits of
max over (s, a) of KL/q: then all balls hold the truth together with about that probability, and the robust value of the
plan is a lower confidence bound on its true value (large samples, a model that is right; tested by simulation).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from livarot import infinite
from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray
from livarot.core.ellipsoid import Ellipsoid
from livarot.data.fitting.bootstrap import bootstrap, check_own, kernels
from livarot.data.fitting.inference import pairwise_radius
from livarot.data.fitting.sandwich import inverse
from livarot.data.use.intervals import as_probabilities, value_and_gradient
from livarot.data.use.to_mdp import labels_of
from livarot.errors import bad
from livarot.estimation.omd import whitened
from livarot.infinite.planning.sparse import chain_of, discounted_system, solve_system
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.model.episodes import Estimate, Plan
from livarot.model.probabilities import Kernel, kernel_layout, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.planning.exact import solve
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import Rule
from livarot.planning.robust.plan import solve_robust

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

OFF_BLOCK = 1e-8  # relative size of an entry that a block-diagonal matrix may have outside of its blocks


@checked
def plan_optimistic(
    fit: MNLTransition, mdp: MNLMDP | InfiniteMDP, level: float = 0.95, *, kind: str = "wald", rule: Rule | None = None
) -> Any:
    """The policy of the largest value over ``fit.confidence_set(level, kind)``, a :class:`livarot.Plan`.

    ``policy[0]`` is its table (H, S); ``start_value[0]`` the largest value found and ``upper[0]`` a certified bound:
    the optimal value is below it whenever the true parameters lie in their sets.  All are in the user's units.  Without
    an end it is what :func:`livarot.infinite.solve_optimistic` gives for the same set.
    """
    if isinstance(mdp, InfiniteMDP):
        return infinite.solve_optimistic(mdp, **stationary_set(fit, mdp, level, kind), rule=rule)
    plan: Plan = optimistic_plan(mdp.problem, *confidence_ellipsoids(fit, mdp, level, kind), rule)
    return plan.in_units(mdp.problem)


def stationary_set(
    fit: MNLTransition, mdp: InfiniteMDP, level: float, kind: str, *, pairwise: bool = False
) -> dict[str, Any]:
    """:func:`confidence_ellipsoids` as :mod:`livarot.infinite` takes them: a covariance and a radius."""
    check_own(fit, mdp.stage)
    own = fit.confidence_set(level, kind, problem=mdp.stage.problem)
    assert isinstance(own, Ellipsoid)  # noqa: S101 (there is one parameter)
    small = pairwise_radius(mdp.stage.problem, [own], level) if pairwise and kind == "wald" else own.radius
    return {"covariance": inverse(own.matrix, "confidence set"), "radius": min(small, own.radius)}


def confidence_ellipsoids(
    fit: MNLTransition, mdp: MNLMDP, level: float, kind: str, *, pairwise: bool = False
) -> tuple[Estimate, float]:
    """``fit.confidence_set(level, kind)`` as an :class:`Estimate` of one replica and its radius.

    ``pairwise`` Wald sets are smaller: bounds of all (state, action) hold over them, and nothing else is promised.
    """
    check_own(fit, mdp)
    found = fit.confidence_set(level, kind, problem=mdp.problem)
    sets = [found] if isinstance(found, Ellipsoid) else found
    radius = max(own.radius for own in sets)
    if radius == 0.0:
        raise bad("level", "the confidence set is a point")
    if pairwise and kind == "wald":
        small = pairwise_radius(mdp.problem, sets, level)
        if small < min(own.radius for own in sets):
            radius, sets = small, [Ellipsoid(own.center, own.matrix, small) for own in sets]
    # one radius for all stages: |theta - c|_A <= r_k is |theta - c|_{A (r/r_k)^2} <= r
    dense = np.stack([own.matrix * (radius / own.radius) ** 2 for own in sets])
    center = np.stack([own.center for own in sets])
    return estimate(mdp.problem, center, dense), radius


def estimate(problem: Problem, theta: FloatArray, gram: FloatArray) -> Estimate:
    """theta (K, d) and dense Gram matrices (K, d, d) as an :class:`Estimate` of one replica.

    Refused where the matrices link coordinates that the problem keeps apart: then they belong to other features.
    """
    packed = problem.rows.pack(gram)
    lost = np.abs(gram - problem.rows.unpack(packed)).max(initial=0.0)
    if lost > OFF_BLOCK * np.abs(gram).max(initial=0.0):
        problem_text = "links coefficients that never meet in a (state, action) of the problem"
        raise bad("fit", problem_text, cure="pass a problem with the features of the fit, in their order")
    return whitened(problem, np.ascontiguousarray(theta[None]), np.ascontiguousarray(packed[None]))


@checked
def robust_radius(
    fit: MNLTransition,
    mdp: MNLMDP | InfiniteMDP,
    level: float = 0.95,
    *,
    n_resamples: int = 200,
    seed: int = 0,
    resample: str = "auto",
    simultaneous: bool = True,
    cluster: Any = None,
) -> FloatArray:
    """Radii of KL balls, (S, A), or (H, S, A) where stages differ: see the head of this module.

    ``resample`` and ``cluster`` are those of :func:`livarot.data.bootstrap`: a fit with clusters resamples them.
    """
    model = mdp.stage if isinstance(mdp, InfiniteMDP) else mdp
    check_own(fit, model)
    if n_resamples * (1.0 - level) < 1.0:
        need = math.ceil(1.0 / (1.0 - level))
        raise bad("n_resamples", f"{n_resamples} refits have no {level:g} quantile", cure=f"use at least {need}")
    problem = model.problem
    draws = bootstrap(fit, n_resamples, seed, resample=resample, cluster=cluster)
    nominal = transition_kernel(model)
    far = np.stack([_divergence(problem, nominal, own) for own in kernels(problem, draws.theta)])
    radius = np.quantile(far, level, axis=0, method="higher")
    if simultaneous:
        wide = radius > 0.0
        ratio = np.divide(far, radius, out=np.zeros_like(far), where=wide).max(axis=(1, 2), initial=0.0)
        radius = radius * max(float(np.quantile(ratio, level, method="higher")), 1.0)
    jobs = [(int(table), int(own)) for table, own, _ in kernel_layout(problem).jobs]
    shape = (problem.n_states, problem.n_actions)
    if len(jobs) == 1:
        return np.asarray(radius.reshape(shape))
    stages = zip(problem.stage_table, problem.stage_parameter, strict=True)
    return np.stack([radius[jobs.index((int(t), int(k)))].reshape(shape) for t, k in stages])


def _divergence(problem: Problem, nominal: Kernel, other: Kernel) -> FloatArray:
    """KL(nominal | other) of every pair of every (table, parameter), (jobs, S A); 0 where there is no action."""
    terms = nominal.prob * (np.log(nominal.prob) - np.log(other.prob))
    per_table, row_start = problem.n_states * problem.n_actions, problem.rows.row_start
    found = []
    for table, _, base in kernel_layout(problem).jobs:
        starts = row_start[table * per_table : (table + 1) * per_table + 1]
        some, own = np.diff(starts) > 0, np.zeros(per_table)
        own[some] = np.add.reduceat(terms[base + starts[0] : base + starts[-1]], (starts[:-1] - starts[0])[some])
        found.append(own)
    return np.asarray(np.maximum(np.stack(found), 0.0))


@checked
def plan_robust(
    fit: MNLTransition,
    mdp: MNLMDP | InfiniteMDP,
    radius: ArrayLike | None = None,
    *,
    level: float = 0.95,
    **settings: Any,
) -> Any:
    """The best worst case: radius None takes :func:`robust_radius` (``level`` and ``settings`` are its arguments).

    Gives a :class:`livarot.RobustSolution`: ``value[0]`` is then, at the start, a lower confidence bound on the true
    value of ``policy``.  Without an end it is that of :func:`livarot.infinite.solve_robust`, with ``value`` (S,).
    """
    if radius is not None and settings:
        raise bad("settings", f"{sorted(settings)} choose a radius, and one is given", cure="leave radius out")
    check_own(fit, mdp.stage if isinstance(mdp, InfiniteMDP) else mdp)
    radii = robust_radius(fit, mdp, level, **settings) if radius is None else radius
    if isinstance(mdp, InfiniteMDP):
        return infinite.solve_robust(mdp, radius=radii)
    return solve_robust(mdp, radius=radii)


@checked
def support_check(
    fit: MNLTransition, mdp: MNLMDP | InfiniteMDP, policy: NDArray[Any] | None = None, *, min_count: float = 1.0
) -> pd.DataFrame:
    """Where a policy goes without data: the (state, action) it takes that were observed fewer than ``min_count`` times.

    Columns: ``count`` observations, ``visits`` expected in an episode under the fit, ``first_stage`` that takes it;
    index of labels (state, action), most visited first.  ``attrs["share"]`` is the share of all steps that these are:
    0 means that the policy rests on data everywhere.  The probabilities of such pairs come from coefficients that
    *other* pairs determined, or from ``unseen=``.  Without an end visits are discounted, (1 - discount) sum discount^t,
    so that they add up to 1, and there is no ``first_stage``.
    """
    visits = expected_visits(fit, mdp, policy)
    labels, count, total = labels_of(mdp), observed_counts(fit, mdp), visits.sum(axis=0)
    rows = [(int(s), int(a)) for s, a in np.argwhere((total > 0.0) & (count < min_count) & decided(fit, mdp)[:, None])]
    frame = pd.DataFrame(
        {
            "state": labels.states.decode([s for s, _ in rows]),
            "action": labels.actions.decode([a for _, a in rows]),
            "count": [float(count[pair]) for pair in rows],
            "visits": [float(total[pair]) for pair in rows],
            "first_stage": [int(np.argmax(visits[:, s, a] > 0.0)) for s, a in rows],
        }
    )
    frame = frame.sort_values("visits", ascending=False, kind="stable").set_index(["state", "action"])
    frame.attrs["share"] = float(frame["visits"].sum() / len(visits))
    return frame.drop(columns="first_stage") if isinstance(mdp, InfiniteMDP) else frame


def decided(fit: MNLTransition, mdp: MNLMDP | InfiniteMDP) -> BoolArray:
    """Where there is something to decide, (S,): the states that were logged and are not terminal, and the sink."""
    terminal = mdp.problem.terms.terminal if isinstance(mdp, InfiniteMDP) else mdp.problem.terminal
    found = np.zeros(mdp.problem.n_states, dtype=np.bool_)
    found[fit.choices_.state] = True
    found[len(fit.states_) :] = True  # the sink of unseen="sink" is reached by what was never logged
    return found if terminal is None else np.asarray(found & ~terminal)


def expected_visits(fit: MNLTransition, mdp: MNLMDP | InfiniteMDP, policy: NDArray[Any] | None) -> FloatArray:
    """P(s_h = s, a_h = a) of a policy under the fit, (H, S, A); without an end discounted ones, (1, S, A)."""
    if isinstance(mdp, InfiniteMDP):
        check_own(fit, mdp.stage)
        return discounted_visits(mdp, policy)[None]
    check_own(fit, mdp)
    table = as_probabilities(mdp.problem, solve(mdp).policy if policy is None else policy)
    return value_and_gradient(mdp.problem, transition_kernel(mdp), table)[2]


def discounted_visits(mdp: InfiniteMDP, policy: NDArray[Any] | None) -> FloatArray:
    """(1 - discount) sum_t discount^t P(s_t = s, a_t = a) of a policy, (S, A); None is the optimal one."""
    gamma = mdp.discount
    if gamma is None or gamma == 1.0:
        raise bad("mdp", "has no discount", cure="give to_mdp(discount=...) below 1")
    problem = mdp.problem
    table = check_stationary(problem, infinite.solve(mdp).policy if policy is None else policy)
    system = csr_array(discounted_system(chain_of(mdp, table, mdp.scaled_pay(gamma)), gamma).T)
    visits = (1.0 - gamma) * solve_system(system, problem.start, np.zeros(problem.n_states), 1e-13)
    share = table if table.ndim == 2 else np.eye(problem.n_actions)[table]
    return np.asarray(np.maximum(visits, 0.0)[:, None] * share)


def observed_counts(fit: MNLTransition, mdp: MNLMDP | InfiniteMDP) -> FloatArray:
    """How often each (state, action) of a model was observed, all stages together, (S, A)."""
    choices = fit.choices_
    if choices.state is None or choices.action is None:
        raise bad("data", "has no state and action columns", cure="name them: state=..., action=...")
    count = np.zeros((mdp.problem.n_states, mdp.problem.n_actions))
    np.add.at(count, (choices.state, choices.action), choices.weight)
    return count
