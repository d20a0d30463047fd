"""LIVAROT's burn-in (Algorithm `algo:exploration routine`): as printed, and by looking at the state.

Both end with a set Theta_h = {|theta - centre|_A <= beta0} around a regularised maximum likelihood estimate,

    A = I + (1/kappa) sum_t sum_{s'} phi phi' + (rho/kappa) sum_t phi~ phi~',

the last sum over the pseudo samples of the literal routine (phi phi' is the outer product).

Deviations.  One update of the design per episode and stage (E1).  Radius beta0, not its square root (E4).  The Hessian
and gradient are those of the stated objective (E10).  The minimiser is taken over the B-ball (E12).  kappa is the bound
U^2 exp(4B) unless given, rho = min_h max |phi|.  The printed lemma is false for pairs that are never reached (E3): the
pseudo samples of the literal routine carry no data, and its set guarantees nothing in unvisited directions.  Pairs with
one outcome have no leverage and add nothing to A: they tell nothing about theta (the printed sum includes them).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from livarot.confidence.radii import exploration_radius
from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.core.compiling.basics import new_floats
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.linalg import Blocks, whitener
from livarot.core.views import opened, view
from livarot.errors import bad
from livarot.estimation.mle import fit_mle, hessian_at
from livarot.estimation.omd import ParameterSet
from livarot.model.compiled import plan_model
from livarot.model.derived import derived
from livarot.model.episodes import check_shape
from livarot.model.problem import Problem
from livarot.model.terms.after import blank_policy, first_actions
from livarot.theory import constants


class Log(NamedTuple):
    """The exploration episodes: which pair was played and what came out."""

    pairs: IntArray  # (R, tau, H)
    choices: Int32Array  # (R, tau, H)


class Design(NamedTuple):
    """The literal routine's choices, which do not depend on data: computed once for all replicas."""

    action: Int32Array  # (tau, H)
    pair: IntArray  # (tau, H)
    choice: Int32Array  # (tau, H) which outcome of the pair
    weight: FloatArray  # (tau, H) |phi~| in the norm of the updated design's inverse


@dataclass(frozen=True)
class LiteralExploration:
    """As printed: whatever the state, it plays the action of the (s, a, s') of largest leverage (E2).

    Where that action does not exist, the first one that does is played.
    """

    def policy(self, problem: Problem, episode: int, n_explore: int, kappa: float, log: Log) -> Int32Array:
        action = literal_design(problem, n_explore, kappa).action[episode]
        everywhere = np.broadcast_to(action[:, None], (problem.horizon, problem.n_states))
        there = np.take_along_axis(problem.exists, everywhere[..., None], -1)[..., 0]
        return np.ascontiguousarray(np.where(there, everywhere, first_actions(problem)))[None]

    def pseudo_samples(
        self, problem: Problem, n_explore: int, kappa: float, stages: list[int]
    ) -> tuple[IntArray, Int32Array, FloatArray]:
        design = literal_design(problem, n_explore, kappa)
        return (
            design.pair[:, stages].reshape(-1),
            design.choice[:, stages].reshape(-1),
            design.weight[:, stages].reshape(-1),
        )


@dataclass(frozen=True)
class StateAwareExploration:
    """In each state, the action whose reachable features have most leverage, given the data."""

    def policy(self, problem: Problem, episode: int, n_explore: int, kappa: float, log: Log) -> Int32Array:
        replicas, seen = len(log.pairs), np.ascontiguousarray(log.pairs[:, :episode])
        check_shape("log.pairs", seen, (replicas, episode, problem.horizon))
        if seen.size and not 0 <= seen.min() <= seen.max() < problem.rows.n_pairs:
            raise bad("log.pairs", "has pairs of another problem", cure="use a state that was made for this problem")
        policy = blank_policy(problem, replicas)
        _state_aware(plan_model(problem), 1.0 / kappa, seen, problem.rows.pack_identity(), policy)
        return policy

    def pseudo_samples(
        self, problem: Problem, n_explore: int, kappa: float, stages: list[int]
    ) -> tuple[IntArray, Int32Array, FloatArray]:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0)


Exploration = LiteralExploration | StateAwareExploration


def rho(problem: Problem) -> float:
    """min over stages of the largest feature norm, Eq. (definition rho) read as E43."""
    return constants.rho(problem, all_states=True)


def kappa_of(problem: Problem, kappa: float | None) -> float:
    """The given kappa, or the bound U^2 exp(4B); with offsets, the bound that allows for them."""
    return _kappa_bound(problem) if kappa is None else float(kappa)


@derived
def _kappa_bound(problem: Problem) -> float:
    return constants.kappa_bound(problem, all_states=True)


def explored_set(
    problem: Problem,
    rule: Exploration,
    log: Log,
    *,
    reg_explore: float,
    kappa: float,
    failure_level: float,
) -> tuple[ParameterSet, FloatArray]:
    """Theta_h of every replica and the data part of the Gram matrix at its centre (for a warm start)."""
    replicas, n_explore, horizon = log.pairs.shape
    parameters = problem.n_parameters
    low = rho(problem)
    center = np.zeros((replicas, parameters, problem.dim))
    shape = np.zeros((replicas, parameters, problem.rows.gram_size))
    hessian = np.zeros_like(shape)
    ridge = problem.rows.pack_identity(1.0)
    for k in range(parameters):
        stages = list(range(horizon)) if problem.shared_parameter else [k]
        pseudo_pair, pseudo_choice, pseudo_weight = rule.pseudo_samples(problem, n_explore, kappa, stages)
        for r in range(replicas):
            pairs = log.pairs[r][:, stages].reshape(-1)
            choices = log.choices[r][:, stages].reshape(-1)
            fit = fit_mle(
                problem,
                np.concatenate((pairs, pseudo_pair)),
                np.concatenate((choices, pseudo_choice)),
                np.concatenate((np.ones(len(pairs)), pseudo_weight)),
                reg=reg_explore + 1.0,
                bound=problem.param_bound,
            )
            center[r, k] = fit.theta
            data = np.zeros(problem.rows.gram_size)
            _outer_sum(plan_model(problem), pairs, data)
            shape[r, k] = ridge + data / kappa
            _outer_rows(plan_model(problem), pseudo_pair, pseudo_choice, low / kappa, shape[r, k])
            hessian[r, k] = hessian_at(problem, pairs, choices, fit.theta)
    radius = exploration_radius(n_explore, problem.dim, horizon, problem.param_bound, kappa, low, failure_level)
    return ParameterSet(problem.param_bound, center, shape, np.full(replicas, radius)), hessian


def literal_design(problem: Problem, n_explore: int, kappa: float) -> Design:
    """The sequence of (s~, a, s~') of the printed routine, kept with the problem."""
    designs = _designs(problem)
    if (n_explore, kappa) not in designs:
        designs[n_explore, kappa] = _literal_design(problem, n_explore, kappa)
    return designs[n_explore, kappa]


@derived
def _designs(problem: Problem) -> dict[tuple[int, float], Design]:
    """The designs computed so far, by ``n_explore`` and ``kappa``."""
    return {}


def _literal_design(problem: Problem, n_explore: int, kappa: float) -> Design:
    shape = (n_explore, problem.horizon)
    design = Design(
        np.zeros(shape, dtype=np.int32),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int32),
        np.zeros(shape),
    )
    done: dict[int, int] = {}
    for h in range(problem.horizon):
        table = int(problem.stage_table[h])
        if table in done:  # the same features give the same choices
            for part in design:
                part[:, h] = part[:, done[table]]
            continue
        done[table] = h
        own = Design(*(np.empty(n_explore, dtype=part.dtype) for part in design))
        _literal(plan_model(problem), table, rho(problem) / kappa, problem.rows.pack_identity(), *own)
        design.action[:, h], design.pair[:, h], design.choice[:, h], design.weight[:, h] = own
    return design


@inner
def leverage(graph, pair, i, whiten):
    """|phi_i|^2 in the norm of the inverse of a packed matrix given by its whitener."""
    block = graph.pair_block[pair]
    if block < 0:
        return 0.0
    at, n = graph.gram_start[block], graph.block_start[block + 1] - graph.block_start[block]
    m, cols, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair] + i * graph.col_count[pair]
    total = 0.0
    for k in range(n):
        part = 0.0
        for j in range(m):
            part += whiten[at + k * n + graph.cols[cols + j]] * graph.feat[feat + j]
        total += part * part
    return total


@inner
def add_outer(graph, pair, i, scale, gram):
    """gram += scale phi phi' of one outcome."""
    block = graph.pair_block[pair]
    if block < 0:
        return
    at, n = graph.gram_start[block], graph.block_start[block + 1] - graph.block_start[block]
    m, cols, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair] + i * graph.col_count[pair]
    for j in range(m):
        for k in range(m):
            entry = at + graph.cols[cols + j] * n + graph.cols[cols + k]
            gram[entry] += scale * graph.feat[feat + j] * graph.feat[feat + k]


@inner
def add_outcomes(graph, pair, scale, gram):
    """gram += scale sum of phi phi' over the outcomes of a pair."""
    for i in range(graph.row_start[pair + 1] - graph.row_start[pair]):
        add_outer(graph, pair, i, scale, gram)


@inner
def whitened_gram(graph, gram, whiten, low):
    whitener(Blocks(graph.block_start, graph.gram_start), gram, whiten, low)


@inner
def most_to_learn(graph, first, last, whiten):
    """The first pair and outcome of largest leverage, up to 1e-12."""
    best, pair_best, i_best = -1.0, first, 0
    for pair in range(first, last):
        for i in range(graph.row_start[pair + 1] - graph.row_start[pair]):
            score = leverage(graph, pair, i, whiten)
            if score > best + 1e-12 * abs(best):
                best, pair_best, i_best = score, pair, i
    return pair_best, i_best


@jit
def _outer_sum(model, pairs, gram):
    """gram += sum over pairs and their outcomes of phi phi'."""
    graph = opened(model).graph
    for index in range(len(pairs)):
        add_outcomes(graph, pairs[index], 1.0, view(gram))


@jit
def _outer_rows(model, pairs, choices, scale, gram):
    """gram += scale * sum of phi phi' over single outcomes."""
    graph = opened(model).graph
    for index in range(len(pairs)):
        add_outer(graph, pairs[index], choices[index], scale, view(gram))


@jit
def _literal(model, table, step, identity, action, pair_out, choice, weight):
    """argmax over (s, a, s') of |phi|^2 in the inverse design; first maximiser up to 1e-12."""
    seen = opened(model)
    graph, n_actions = seen.graph, seen.reward.shape[2]
    per_table = seen.reward.shape[1] * n_actions
    gram, whiten, low = identity.copy(), new_floats(len(identity)), new_floats(len(identity))
    for t in range(len(action)):
        whitened_gram(graph, view(gram), view(whiten), view(low))
        pair, i = most_to_learn(graph, table * per_table, (table + 1) * per_table, view(whiten))
        action[t], pair_out[t], choice[t] = pair % n_actions, pair, i
        add_outer(graph, pair, i, step, view(gram))
        whitened_gram(graph, view(gram), view(whiten), view(low))
        weight[t] = math.sqrt(leverage(graph, pair, i, view(whiten)))


@jit
def _state_aware(model, step, pairs, identity, policy):
    """In each state the action of the first outcome of largest leverage, given the pairs (R, T, H) that were seen."""
    seen = opened(model)
    graph, (horizon, n_states, n_actions) = seen.graph, seen.reward.shape
    gram, whiten, low = new_floats(len(identity)), new_floats(len(identity)), new_floats(len(identity))
    for r in range(len(policy)):
        for h in range(horizon):
            for i in range(len(identity)):  # an assignment of arrays would compile numba's message about shapes
                gram[i] = identity[i]
            for other in range(horizon):
                if seen.stage_parameter[other] == seen.stage_parameter[h]:
                    for t in range(pairs.shape[1]):
                        add_outcomes(graph, pairs[r, t, other], step, view(gram))
            whitened_gram(graph, view(gram), view(whiten), view(low))
            for node in range(seen.node_start[h], seen.node_start[h + 1]):
                first = (seen.stage_table[h] * n_states + seen.node_state[node]) * n_actions
                pair, _ = most_to_learn(graph, first, first + n_actions, view(whiten))
                policy[r, h, seen.node_state[node]] = pair - first
