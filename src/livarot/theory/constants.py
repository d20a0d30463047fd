"""The problem-dependent constants of the paper: U, rho, kappa, nu_max, gaps and diameters.

U is ``max_reachable``, rho ``rho``; kappa comes in three forms (``kappa_bound`` the cheap bound, ``kappa`` exact or a
proved bracket, ``kappa_star`` at the true parameter); nu_max is ``nu_max``, the Q*-gaps ``gaps``, diam ``diameter``.
With p_theta(s') short for p_theta(s'|s, a) and ranges over the pairs (h, s, a) left out, except for a stage's maximum,

    rho         = min_h max over (s, a, s') of |phi_h(s'|s, a)|
    1/kappa     = min over |theta| <= B, s' != s'' of p_theta(s') p_theta(s'')
    1/kappa*    = min over s' != s'' of p_{theta*}(s') p_{theta*}(s'')
    gap_h(s, a) = V*_h(s) - Q*_h(s, a)
    nu_max      = max_{h,s} 2 max_{a,a'} |Var_a(V*_{h+1}) - Var_{a'}(V*_{h+1})| / gap_h(s)
    diam_h      = max over (s, a, s') of 2 radius |phi_h(s'|s, a)|_{matrix^-1}

where gap_h(s) is between the best and the second best action, rho looks at pairs with several outcomes, and diam_h
belongs to the ellipsoid of that matrix and radius.  Most need only what a learner knows; those that need theta* take an
:class:`MNLMDP`.

All of them are over the pairs (h, s, a) that the start can reach; ``all_states=True`` takes every state, as the paper
writes it.  A state that is never visited changes neither a trajectory nor the regret, but the printed burn-in draws
pseudo samples from all of S, and its constants are those of all states.

A constant may be far too large for a float (kappa = U^2 e^{4B}).  So kappa is kept as a logarithm, and a number that
does not fit is infinite only where its logarithm stands beside it.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.core.ellipsoid import Ellipsoid
from livarot.core.linalg import whiten_all
from livarot.core.tolerances import TIE
from livarot.errors import bad, require_finite, require_non_negative
from livarot.model.compiled import blocks_of
from livarot.model.derived import derived
from livarot.model.probabilities import kernel_layout, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.shown import compact
from livarot.model.terms.after import outcome_kinds, worths
from livarot.planning.exact import checked_solution, solve_kernel
from livarot.planning.solution import PlainSolution, Solution
from livarot.theory.curvature import log_kappa
from livarot.theory.kernels.constants import largest_leverage, nu_of, rarest_at, rarest_two

LARGEST = math.log(np.finfo(np.float64).max)


class TheoryWarning(UserWarning):
    """A bound or constant was asked for outside the conditions under which the paper states it."""


def exponential(logarithm: float) -> float:
    """e^x, infinite where no float is large enough."""
    return math.exp(logarithm) if logarithm <= LARGEST else math.inf


@checked
@dataclass(frozen=True)
class Bracket:
    """A number >= 1 between two proved bounds, kept as logarithms; ``exact`` when they agree to 1e-8 relative."""

    log_lower: float
    log_upper: float

    @property
    def lower(self) -> float:
        return exponential(self.log_lower)

    @property
    def upper(self) -> float:
        return exponential(self.log_upper)

    @property
    def exact(self) -> bool:
        return self.log_upper - self.log_lower <= 1e-8

    def to_json(self) -> dict[str, Any]:
        """Plain values; a number that no float holds is None beside its logarithm."""
        return {
            "lower": finite_or_none(self.lower),
            "upper": finite_or_none(self.upper),
            "log_lower": self.log_lower,
            "log_upper": self.log_upper,
            "exact": self.exact,
        }


@compact
class Gaps(NamedTuple):
    """V*_h(s) - Q*_h(s, a), and the smallest of those that are not ties, over reachable states; None if all tie."""

    gap: FloatArray  # (H, S, A)
    smallest: float | None


def finite_or_none(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def problem_of(model: Problem | MNLMDP) -> Problem:
    if isinstance(model, MNLMDP):
        return model.problem
    if isinstance(model, Problem):
        return model
    raise bad("model", f"must be a Problem or an MNLMDP, got {type(model).__name__}")


def visited_pairs(problem: Problem, *, all_states: bool = False) -> IntArray:
    """The pairs (table, s, a) that some stage can reach, or all that some stage uses, and that exist."""
    used = np.zeros((problem.rows.n_tables, problem.n_states), dtype=np.bool_)
    for h, table in enumerate(problem.stage_table):
        used[table] |= True if all_states else problem.reachable[h]
    return np.flatnonzero(np.repeat(used.reshape(-1), problem.n_actions) & (problem.rows.outcomes > 0))


@checked
def max_reachable(model: Problem | MNLMDP, *, all_states: bool = False) -> int:
    """U, the largest number of next states of a pair.

    >>> import livarot
    >>> max_reachable(livarot.envs.river_swim(6, 20))
    3
    """
    problem = problem_of(model)
    return int(problem.rows.outcomes[visited_pairs(problem, all_states=all_states)].max())


@checked
def rho(model: Problem | MNLMDP, *, all_states: bool = False) -> float:
    """min over stages of the largest feature norm of a pair with several outcomes, Eq. (definition rho) read as E43.

    The proof needs it as a lower bound of what the burn-in's design chooses, which is never a pair with one outcome;
    kappa does not look at those either.  0 if some stage has nothing to learn; the paper assumes rho > 0.

    >>> import livarot
    >>> round(rho(livarot.envs.hard_chain(5)), 12)
    1.0
    """
    problem = problem_of(model)
    norms = np.where(np.repeat(problem.rows.pair_block >= 0, problem.rows.outcomes), problem.rows.norms(), 0.0)
    starts = problem.rows.row_start[:: problem.n_actions]  # first row of each (table, s)
    largest = np.maximum.reduceat(norms, starts[:-1]).reshape(problem.rows.n_tables, problem.n_states)
    here = problem.reachable[:-1] | all_states
    return float(np.where(here, largest[problem.stage_table], 0.0).max(axis=1).min())


@checked
def log_kappa_bound(model: Problem | MNLMDP, *, all_states: bool = False) -> float:
    """The logarithm of :func:`kappa_bound`."""
    problem = problem_of(model)
    pairs = visited_pairs(problem, all_states=all_states)
    if not problem.rows.offset.any():
        return 4.0 * problem.param_bound + 2.0 * math.log(int(problem.rows.outcomes[pairs].max()))
    rows = problem.rows
    return float(4.0 * problem.param_bound + rarest_two(rows.row_start, rows.offset, pairs))


@checked
def kappa_bound(model: Problem | MNLMDP, *, all_states: bool = False) -> float:
    """e^{4B} / min q_i q_j over i != j, with q = softmax(offset): the cheap bound kappa <= U^2 e^{4B} without offsets.

    |phi . theta| <= B changes no logit by more than B, so p_i >= e^{-2B} q_i.  Without offsets q_i >= 1/U, which is
    Claim 1 of Li et al.; with offsets U^2 e^{4B} is wrong (offsets 0 and 9 with B = 0 have kappa = 8105, not 4), and
    this is what holds.  A pair with one outcome counts as q_i q_j = 1.  Infinite where no float is large enough:
    :func:`log_kappa_bound` is not.  O(rows).

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(5, param_bound="tight")
    >>> round(kappa_bound(mdp), 1), round(4 * math.exp(4 * mdp.problem.param_bound), 1)
    (1093.3, 1093.3)
    """
    return exponential(log_kappa_bound(model, all_states=all_states))


@checked
def kappa(
    model: Problem | MNLMDP, *, all_states: bool = False, max_nodes: int = 20_000, tolerance: float = 1e-9
) -> Bracket:
    """1 / min over |theta| <= B, pairs and s' != s'' of p(s') p(s''): Eq. (definition kappa) read as E9.

    Exact for two outcomes, and for features on a line (d = 1); up to ``tolerance`` on the logarithm for three outcomes,
    whatever d is; otherwise a proved bracket (see :mod:`livarot.theory.curvature` for how, and what it costs).
    ``max_nodes`` bounds the work.  A pair with one outcome has no s' != s'' and does not count: kappa of a model that
    has no others is 1 (the paper assumes kappa > 1).  The result is kept with the problem.

    >>> import livarot
    >>> found = kappa(livarot.envs.hard_chain(10, param_bound="tight"))
    >>> found.exact, round(found.upper, 2)
    (True, 11.34)
    """
    problem = problem_of(model)
    found, asked = _brackets(problem), (all_states, max_nodes, tolerance)
    if asked not in found:
        pairs = visited_pairs(problem, all_states=all_states)
        found[asked] = Bracket(*log_kappa(problem.rows.graph, pairs, problem.param_bound, max_nodes, tolerance))
    return found[asked]


@derived
def _brackets(problem: Problem) -> dict[tuple[bool, int, float], Bracket]:
    """The brackets of kappa computed so far, by the arguments of :func:`kappa`."""
    return {}


@checked
def log_kappa_star(mdp: MNLMDP, *, all_states: bool = False) -> float:
    """The logarithm of :func:`kappa_star`."""
    problem = _model(mdp).problem
    layout, worst = kernel_layout(problem), 0.0
    for table, parameter, _ in layout.jobs:
        used = (problem.stage_table == table) & (problem.stage_parameter == parameter)
        here = problem.reachable[:-1][used].any(axis=0) | all_states
        worst = max(worst, rarest_at(problem.rows.graph, int(table), here, problem.n_actions, mdp.theta[parameter]))
    return float(worst)


@checked
def kappa_star(mdp: MNLMDP, *, all_states: bool = False) -> float:
    """1 / min over pairs and s' != s'' of p(s') p(s'') at theta*: how curved the model is where it matters.

    At most :func:`kappa`.  O(rows d).

    >>> import livarot
    >>> round(kappa_star(livarot.envs.hard_chain(10, param_bound="tight")), 2)
    11.29
    """
    return exponential(log_kappa_star(mdp, all_states=all_states))


@checked
def gaps(mdp: MNLMDP) -> Gaps:
    """V* - Q*, and the smallest positive gap of a reachable state; within 1e-9 (1 + |Q|) of the best is a tie.

    >>> import livarot
    >>> round(gaps(livarot.envs.hard_chain(10)).smallest, 4)
    0.0035
    """
    solution = solve_kernel(_model(mdp).problem, transition_kernel(mdp))
    gap = solution.value[:-1, :, None] - solution.q
    open_ = gap > TIE * (1.0 + np.abs(solution.value[:-1, :, None]))
    open_ &= mdp.problem.reachable[:-1, :, None] & np.isfinite(gap)  # infinite: the action does not exist
    return Gaps(gap, float(gap[open_].min()) if open_.any() else None)


@checked
def nu_max(mdp: MNLMDP, *, all_states: bool = False, solution: Solution | PlainSolution | None = None) -> float:
    """max over (h, s) of 2 max_{a, a'} |Var_a - Var_a'| / (best Q* - second best Q*), Var of V*_{h+1}; 0 if all tie.

    Ties are those of pi*, 1e-9 (1 + |Q|), so it is finite.  Half of it would do for the inequality of step 5 of the
    proof, Var_a <= Var_{pi*} + nu (V* - Q*(a)).  O(rows H).

    >>> import livarot
    >>> round(nu_max(livarot.envs.hard_chain(5, gap=0.1)), 3)
    2.901
    """
    problem = _model(mdp).problem
    kernel = transition_kernel(mdp)
    best = solve_kernel(problem, kernel) if solution is None else checked_solution(problem, solution)
    here = problem.reachable[:-1] | all_states
    starts, kind, table = problem.rows.row_start, outcome_kinds(problem), problem.stage_table
    follow = worths(problem, best.value)
    return float(nu_of(starts, kind, table, kernel.prob, kernel.base, here, follow, best.value, best.q))


@checked(region=require_non_negative)
def diameter(
    region: float | Ellipsoid | tuple[FloatArray, float],
    model: Problem | MNLMDP,
    stage: int | None = None,
    *,
    all_states: bool = False,
) -> float:
    """diam_h = max over features of max_{theta, theta'} |(theta - theta') . phi| = 2 radius max |phi|_{matrix^-1}.

    ``region`` is the radius of a Euclidean ball, an :class:`Ellipsoid`, or (packed Gram matrix, radius) as in a plan.
    ``stage`` None is the largest over stages.  Pairs with one outcome count too: the maximum is over all features.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(5)
    >>> round(diameter(0.25, mdp), 12), round(diameter(livarot.Ellipsoid.ball(2, 0.25), mdp), 12)
    (0.5, 0.5)
    """
    problem = problem_of(model)
    stages = range(problem.horizon) if stage is None else [_stage(problem, stage)]
    reach = problem.reachable[:-1] | all_states
    here = np.zeros((problem.rows.n_tables, problem.n_states), dtype=np.bool_)
    for h in stages:
        here[problem.stage_table[h]] |= reach[h]
    pairs = np.flatnonzero(np.repeat(here.reshape(-1), problem.n_actions))
    if isinstance(region, int | float | np.integer | np.floating):
        radius = require_non_negative("region", region)
        rows = problem.rows
        inside = np.zeros(rows.n_pairs, dtype=np.bool_)
        inside[pairs] = True
        return 2.0 * radius * float(rows.norms()[np.repeat(inside, rows.outcomes)].max(initial=0.0))
    if isinstance(region, Ellipsoid):
        if region.dim != problem.dim:
            raise bad("region", f"has dimension {region.dim}, the features have {problem.dim}")
        whiten = np.linalg.inv(np.linalg.cholesky(region.matrix))
        return 2.0 * region.radius * _largest_image(problem, pairs, whiten)
    if len(region) != 2:
        raise bad("region", f"has {len(region)} parts", cure="give a packed Gram matrix and a radius")
    gram, radius = require_finite("region", region[0]), region[1]
    if np.shape(gram) != (problem.rows.gram_size,):
        raise bad("region", f"has a packed matrix of shape {np.shape(gram)}, expected {(problem.rows.gram_size,)}")
    require_non_negative("region", radius)
    packed = np.ascontiguousarray(gram).reshape(1, 1, -1)
    whiten, sizes = np.empty_like(packed), np.diff(problem.rows.block_start)
    whiten_all(blocks_of(problem), packed, whiten)
    place = np.argsort(problem.rows.block_coords)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return 2.0 * radius * math.sqrt(float(largest_leverage(problem.rows.graph, pairs, whiten[0, 0], place, owner)))


@checked
def has_zero_outcomes(model: Problem | MNLMDP) -> bool:
    """Does every informative pair have an outcome with phi = 0?  The bound on Hessians by kappa needs it (E9)."""
    rows = problem_of(model).rows
    some = rows.outcomes > 0  # pairs that exist
    least = np.minimum.reduceat(rows.norms(), rows.row_start[:-1][some])
    return bool((least[rows.pair_block[some] >= 0] == 0.0).all())


def _model(mdp: MNLMDP) -> MNLMDP:
    if not isinstance(mdp, MNLMDP):
        raise bad("mdp", f"must be an MNLMDP, got {type(mdp).__name__}", cure="the true parameter is needed")
    return mdp


def _stage(problem: Problem, stage: int) -> int:
    if stage >= problem.horizon:
        raise bad("stage", f"is {stage}, stages are 0..{problem.horizon - 1}")
    return stage


def _largest_image(problem: Problem, pairs: IntArray, whiten: FloatArray) -> float:
    """max |W phi| over the rows of some pairs, for a dense whitener."""
    largest = 0.0
    for pair in pairs:
        columns = problem.rows.columns(int(pair))
        local = problem.rows.features(int(pair))[:, columns]
        largest = max(largest, float(np.linalg.norm(local @ whiten[:, columns].T, axis=1).max(initial=0.0)))
    return largest
