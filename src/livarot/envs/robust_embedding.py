"""KL-robust MDPs as MNL MDPs (the paper's section on KL-constrained robust MDPs, with readings E36 to E39).

If V_{h+1} = const + alpha_{h+1} . psi, a worst-case kernel p0 exp(-eta V_{h+1}) is multinomial logistic (certain):

    phi(s'|s, a) = (log p0(s'|s, a) / L, psi(s') / N),     theta_h = (L, -eta N alpha_{h+1}),

with L = log(1/min p0) and N = max |psi|; then all features are divided by their largest norm, at most sqrt 2, and
theta is multiplied by it.  B is max |theta_h|, computed.

Deviations.  The paper asks for |log p0| <= 1 and orthonormal psi with |psi| <= 1, which leaves U <= 2 and d <= 2 (E38):
L and N replace both.  A constant eta is the *penalised* adversary, not the ball (E39): in the ball eta depends on
(h, s, a) and goes into the features, psi(s') eta_h(s, a) / (N max eta_h), so that they depend on the stage (E21).
V is the optimal value of the MNL MDP itself, V_h = max_a r + E_p V_{h+1}, as the paper has it:
:func:`livarot.planning.robust.plan.solve_robust` with ``count_penalty=False``, or with a radius.

:func:`kl_robust` draws a nominal MDP in which V is in the span of psi *exactly*, at all stages and for every eta.
States have d levels; from level c, abstract action b leads to level c' with nominal probability P0(c'|c, b); how that
mass is split among the states of a level, and which of the state's actions is b, is drawn for each state.  V_h, eta_h
and the worst case depend on the level only (KL tilts by V alone), and psi(s), the level in R^{d-1} (level 0 is the
origin: a constant has no effect on a softmax), is turned by a random rotation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked, several
from livarot.core.arrays import FloatArray, IntArray
from livarot.errors import bad, require_finite, require_positive_int
from livarot.model.probabilities import Kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.planning.robust.kl import one_of
from livarot.planning.robust.nominal import Nominal, as_nominal, nominal_model
from livarot.planning.robust.plan import RobustSolution, solve_robust
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory

SPAN_SLACK = 1e-10  # how far V may be from the span of psi, relative to 1 + max|V|


@checked(dim=several, n_reachable=several)
def kl_robust(
    n_states: int = 20,
    n_actions: int = 4,
    n_reachable: int = 5,
    dim: int = 4,
    horizon: int = 10,
    robustness: float | None = None,
    seed: int = 0,
    *,
    radius: float | None = None,
    mixing: float = 0.5,
    param_bound: float | None = None,
) -> MNLMDP:
    """A random KL-robust MDP: ``robustness`` eta (None is 1) everywhere, or a KL ball of ``radius``.

    ``dim`` d is also the number of levels; the rewards of level c lie in 0.9 c/(d-1) + [0, 0.1].  The nominal
    probability of leaving a level is between ``mixing``/2 and ``mixing``.  The ``n_reachable`` next states lie on the
    state's own level and those next to it, where these have enough states.

    >>> import livarot
    >>> for eta in (0.0, 1.0, 10.0):
    ...     best = livarot.solve(kl_robust(robustness=eta))
    ...     print(round(float(best.value[0, 10]), 3), round(float(best.variance[0, 10]), 4))
    7.056 0.9417
    4.381 0.4803
    1.829 0.0041
    """
    model, psi = random_nominal(n_states, n_actions, n_reachable, dim, horizon, seed, mixing=mixing)
    if robustness is None and radius is None:
        robustness = 1.0
    if robustness is not None and radius is not None:
        cure = "give one: a constant eta, or the radius of a KL ball"
        raise bad("robustness", "robustness and radius are both given", cure=cure)
    return mnl_embedding(model, radius=radius, penalty=robustness, psi=psi, param_bound=param_bound)


def mnl_embedding(
    nominal: MNLMDP | tuple[Problem, Kernel],
    *,
    radius: ArrayLike | None = None,
    penalty: ArrayLike | None = None,
    psi: ArrayLike | None = None,
    param_bound: float | None = None,
) -> MNLMDP:
    """The worst-case MDP of a nominal model as an MNL MDP with one parameter per stage.

    ``psi`` (S, d - 1) must have every V_{h+1} in its span, up to a constant; None is the canonical basis, which always
    has, with d = S + 1.  The model's optimal values and kernel are those of ``solve_robust(.., count_penalty=False)``.
    Units, discount, actions that exist, terminal states and names are those of the nominal model.

    >>> import livarot
    >>> river = livarot.envs.river_swim(6, 20)
    >>> round(float(livarot.solve(mnl_embedding(river, radius=0.01)).value[0, 0]), 4)
    1.9712
    """
    one_of(radius, penalty)
    model = as_nominal(nominal)
    problem = model.problem
    if problem.next_reward is not None:
        told = "its rewards depend on the next state and the action, which no psi of the next state represents"
        raise bad("nominal", told, cure="give rewards r(s, a)")
    robust = solve_robust(model, radius=radius, penalty=penalty, count_penalty=False)
    horizon, n_states, n_actions = problem.reward.shape
    endless = np.argwhere(np.isinf(robust.dual))
    if len(endless):
        raise bad(
            "radius",
            "the worst case has all mass on the minimisers, which no finite parameter gives, at (h, s, a)",
            index=tuple(int(i) for i in endless[0]),
            count=len(endless),
            cure="take a radius below log(1/p0(argmin V)) everywhere",
        )
    basis, alpha = _span(robust.value[1:], psi)
    slope = robust.dual.reshape(horizon, -1).max(axis=1)  # eta_h
    same = bool((robust.dual == robust.dual[0, 0, 0]).all())
    outcomes, next_state, log_p, ratios, stage_table = _stages(model, robust, slope, same)
    # log p0 in [-1, 0], |psi| <= 1
    depth = max(float(-log_p.min()), 0.0) or 1.0
    features = _features(log_p / depth, next_state, ratios, basis)
    theta = np.column_stack((np.full(horizon, depth), -problem.discount * slope[:, None] * alpha))
    made = MNLMDP.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=outcomes,
        next_state=next_state,
        features=features,
        reward=problem.reward,
        theta=theta,
        start=problem.start,
        stage_table=stage_table,
        param_bound=param_bound,
        normalise=True,
    )
    kept = ("states", "actions", "stages", "discount", "terminal_reward", "terminal", "units")
    terms = {name: getattr(problem, name) for name in kept}
    return replace(made, problem=replace(made.problem, **terms))


def random_nominal(
    n_states: int, n_actions: int, n_reachable: int, dim: int, horizon: int, seed: int, *, mixing: float = 0.5
) -> tuple[Nominal, FloatArray]:
    """The nominal MDP of :func:`kl_robust`, and psi (S, d - 1)."""
    from scipy.sparse import csr_array

    require_positive_int("n_states", n_states, minimum=dim)
    if n_reachable > n_states:
        raise bad("n_reachable", f"is {n_reachable}, there are {n_states} states", cure="take at most n_states")
    pairs = n_states * n_actions
    require_memory("n_states", "the nominal model", pairs * (6 * horizon + n_reachable * (2 * dim + horizon + 60)))
    rng = stream(seed, "kl robust")
    level = np.arange(n_states) * dim // n_states
    members = [np.flatnonzero(level == c) for c in range(dim)]
    pay = 0.9 * np.arange(dim)[:, None] / (dim - 1) + 0.1 * rng.random((dim, n_actions))
    masses = [[_level_masses(rng, members, c, n_reachable, mixing) for _ in range(n_actions)] for c in range(dim)]
    reward = np.empty((n_states, n_actions))
    columns, entries = [], []
    for s in range(n_states):
        for a, b in enumerate(rng.permutation(n_actions)):
            reward[s, a] = pay[level[s], b]
            nexts, p = _split(rng, members, masses[level[s]][b], n_reachable)
            columns.append(nexts)
            entries.append(p)
    owner = np.repeat(np.arange(pairs), n_reachable)
    shape = (pairs, n_states)
    table = csr_array((np.concatenate(entries), (owner, np.concatenate(columns))), shape=shape)
    turn = np.linalg.qr(rng.standard_normal((dim - 1, dim - 1)))[0]
    psi = np.vstack((np.zeros(dim - 1), turn))[level]
    return nominal_model(table, reward, horizon, start=n_states // 2), psi


def _level_masses(
    rng: np.random.Generator, members: list[IntArray], c: int, n_reachable: int, mixing: float
) -> FloatArray:
    """P0(c'|c, b) of one abstract action, on levels around c: enough for n_reachable states, and no more than that."""
    dim = len(members)
    reach = 1
    while sum(len(members[j]) for j in range(max(c - reach, 0), min(c + reach + 1, dim))) < n_reachable:
        reach += 1
    others = np.array([j for j in range(max(c - reach, 0), min(c + reach + 1, dim)) if j != c])
    if len(others) >= n_reachable:
        others = rng.permutation(others)[: n_reachable - 1]
    leave = mixing * rng.uniform(0.5, 1.0)
    weights = rng.uniform(0.3, 1.0, size=len(others))
    masses = np.zeros(dim)
    masses[others] = leave * weights / weights.sum()
    masses[c] = 1.0 - leave
    return masses


def _split(
    rng: np.random.Generator, members: list[IntArray], masses: FloatArray, n_reachable: int
) -> tuple[IntArray, FloatArray]:
    """Next states of one (s, a), at least one on each level that has mass, and the mass split among them."""
    levels = np.flatnonzero(masses)
    sure = [int(rng.choice(members[c])) for c in levels]
    rest = np.setdiff1d(np.concatenate([members[c] for c in levels]), sure)
    nexts = np.sort(np.concatenate((sure, rng.permutation(rest)[: n_reachable - len(sure)])).astype(np.int64))
    weights = rng.uniform(0.5, 1.5, size=n_reachable)
    p = np.empty(n_reachable)
    for c in levels:
        mine = np.isin(nexts, members[c])
        p[mine] = masses[c] * weights[mine] / weights[mine].sum()
    return nexts, p


def _span(values: FloatArray, psi: ArrayLike | None) -> tuple[FloatArray | None, FloatArray]:
    """psi over its largest norm (None: the canonical basis), and alpha (H, d - 1): values = const + alpha . psi."""
    n_states = values.shape[1]
    if psi is None:
        return None, values - values.min(axis=1, keepdims=True)
    basis = require_finite("psi", psi)
    if basis.ndim != 2 or len(basis) != n_states or basis.shape[1] == 0:
        raise bad("psi", f"has shape {basis.shape}", cure=f"give ({n_states}, d - 1)")
    basis = basis / (float(np.linalg.norm(basis, axis=1).max()) or 1.0)
    design = np.column_stack((np.ones(n_states), basis))
    found = np.linalg.lstsq(design, values.T, rcond=None)[0]  # (d, H)
    miss = np.abs(design @ found - values.T).max(axis=0)
    wrong = np.flatnonzero(miss > SPAN_SLACK * (1.0 + np.abs(values).max()))
    if len(wrong):
        raise bad(
            "psi",
            f"V_{{h+1}} is {miss[wrong[0]]:.3g} away from its span at stage h",
            index=int(wrong[0]),
            count=len(wrong),
            cure="leave psi out: the canonical basis always works",
        )
    return basis, np.asarray(found[1:].T, dtype=np.float64)


def _stages(model: Nominal, robust: RobustSolution, slope: FloatArray, same: bool) -> tuple[Any, ...]:
    """Flat arrays of all distinct stages: outcomes, next states, log p0, eta_h(s, a)/eta_h; and the stage table."""
    problem, kernel = model
    rows, n_pairs = problem.rows, problem.n_states * problem.n_actions
    known: dict[tuple[int, ...], int] = {}
    stage_table = np.zeros(problem.horizon, dtype=np.int32)
    outcomes, nexts, logs, ratios = [], [], [], []
    for h in range(problem.horizon):
        table = int(problem.stage_table[h])
        key = (table, int(kernel.base[h])) if same else (h,)
        if key not in known:
            known[key] = len(known)
            starts = rows.row_start[table * n_pairs : (table + 1) * n_pairs + 1]
            p0 = kernel.prob[kernel.base[h] + starts[0] : kernel.base[h] + starts[-1]]
            zero = np.flatnonzero(p0 <= 0.0)
            if len(zero):
                pair = int(np.searchsorted(starts - starts[0], zero[0], side="right")) - 1
                index = (h, pair // problem.n_actions, pair % problem.n_actions)
                cure = "leave next states of probability 0 out"
                raise bad(
                    "nominal", "probability 0 has no logarithm at (h, s, a)", index=index, count=len(zero), cure=cure
                )
            outcomes.append(np.diff(starts))
            nexts.append(rows.next_state[starts[0] : starts[-1]])
            logs.append(np.log(p0))
            ratio = robust.dual[h].reshape(-1) / (slope[h] if slope[h] > 0.0 else 1.0)
            ratios.append(np.repeat(ratio, np.diff(starts)))
        stage_table[h] = known[key]
    joined = (np.concatenate(part) for part in (outcomes, nexts, logs, ratios))
    return (*joined, stage_table)


def _features(logs: FloatArray, next_state: IntArray, ratios: FloatArray, basis: FloatArray | None) -> Any:
    """(log p0 / L, ratio psi), dense, or sparse in the canonical basis."""
    if basis is not None:
        return np.column_stack((logs, ratios[:, None] * basis[next_state]))
    from scipy.sparse import csr_array

    n_rows = len(logs)
    row = np.tile(np.arange(n_rows), 2)
    column = np.concatenate((np.zeros(n_rows, dtype=np.int64), 1 + next_state.astype(np.int64)))
    return csr_array((np.concatenate((logs, ratios)), (row, column)))
