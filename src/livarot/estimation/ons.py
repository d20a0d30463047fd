"""The online Newton step (ONS): a curvature that is assumed, kappa_small/2 per outcome, instead of the Hessian.

With g the gradient of a transition's loss at theta_t (Cho et al. 2024, certain; Li et al. NeurIPS 2024, likely),

    Sigma_{t+1} = Sigma_t + (kappa_small/2) sum_{s'} phi phi'
    theta_{t+1} = argmin over |theta| <= B of <g, theta> + |theta - theta_t|^2_{Sigma_{t+1}} / 2,

that is theta_t - Sigma_{t+1}^-1 g, projected on the B-ball in the norm of Sigma_{t+1}.  kappa_small = 1/kappa must be
a lower bound of p p' over the ball; the inequality behind it, Hessian >= kappa_small sum phi phi', needs one reachable
state with phi = 0 in every pair (reading E9), which is not checked here.  O(U d^2 + d^3) per stage and episode.

Deviation: a pair with one outcome adds nothing to Sigma, since it says nothing about theta.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from livarot.core.jit import jit
from livarot.core.linalg import cholesky, invert_lower, solve_cholesky
from livarot.core.plan import Episodes, Estimate, check_episodes, check_estimate, check_shape
from livarot.core.pool import fresh_copy
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray
from livarot.estimation.mle import sample_probabilities
from livarot.estimation.omd import SLACK, ball, project_parameter


def ons_update(problem: Problem, estimate: Estimate, episodes: Episodes, information: float, bound: float) -> Estimate:
    """One step per stage with the transitions of one episode per replica, in stage order; ``information`` is
    kappa_small/2, what phi phi' of one outcome is taken to be worth."""
    check_estimate(problem, estimate)
    episodes = check_episodes(problem, episodes)
    check_shape("estimate.theta", estimate.theta, (len(episodes.states), *problem.theta_shape))
    new = Estimate(*(fresh_copy(part) for part in estimate))
    _steps(
        problem.rows.graph,
        problem.stage_table,
        problem.stage_parameter,
        problem.n_states,
        problem.n_actions,
        problem.max_reachable,
        *episodes,
        float(information),
        ball(problem, float(bound), len(episodes.states)),
        *new,
    )
    return new


def add_design(problem: Problem, gram: FloatArray, whiten: FloatArray, episodes: Episodes) -> None:
    """gram += sum over the outcomes of every transition of phi phi', in place; ``whiten`` follows."""
    episodes = check_episodes(problem, episodes)
    check_shape("gram", gram, (len(episodes.states), *problem.gram_shape))
    check_shape("whiten", whiten, gram.shape)
    _design(
        problem.rows.graph,
        problem.stage_table,
        problem.stage_parameter,
        problem.n_states,
        problem.n_actions,
        episodes.states,
        episodes.actions,
        gram,
        whiten,
    )


def project_on_ball(problem: Problem, theta: FloatArray, gram: FloatArray, bound: float) -> FloatArray:
    """theta (R, K, d) projected on |theta| <= bound in the norm of its Gram matrix (R, K, G)."""
    out = theta.copy()
    _project(problem.rows.graph, gram, ball(problem, float(bound), len(theta)), out)
    return out


@jit
def add_outcomes(graph, pair, scale, gram):
    """gram (packed) += scale * sum_i phi_i phi_i' over the outcomes of a pair."""
    block, m = graph.pair_block[pair], graph.col_count[pair]
    first, size = graph.gram_start[block], graph.block_start[block + 1] - graph.block_start[block]
    col, feat = graph.col_start[pair], graph.feat_start[pair]
    for j in range(m):
        for k in range(m):
            total = 0.0
            for i in range(graph.row_start[pair + 1] - graph.row_start[pair]):
                total += graph.feat[feat + i * m + j] * graph.feat[feat + i * m + k]
            gram[first + graph.cols[col + j] * size + graph.cols[col + k]] += scale * total


@jit
def _steps(
    graph, stage_table, stage_parameter, n_states, n_actions, most_out,
    states, actions, choices, information, within, theta, gram, whiten,
):  # fmt: skip
    replicas, horizon = actions.shape
    d, size = theta.shape[2], gram.shape[2]
    p, local, step, low = np.empty(most_out), np.empty(d), np.empty(d), np.empty(size)
    scratch, unused = np.empty(10 * d + 5 * size), np.empty((0, 0))
    limit = within.bound * within.bound * (1.0 + SLACK)
    for r in range(replicas):
        for h in range(horizon):
            pair = (stage_table[h] * n_states + states[r, h]) * n_actions + actions[r, h]
            block = graph.pair_block[pair]
            if block < 0:
                continue
            k = stage_parameter[h]
            own, sigma = theta[r, k], gram[r, k]
            m, col, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair]
            base, at = graph.block_start[block], graph.gram_start[block]
            n = graph.block_start[block + 1] - base
            n_out = sample_probabilities(graph, pair, own, local, p)
            step[:n] = 0.0
            for j in range(m):
                for i in range(n_out):
                    step[graph.cols[col + j]] += p[i] * graph.feat[feat + i * m + j]
                step[graph.cols[col + j]] -= graph.feat[feat + choices[r, h] * m + j]
            add_outcomes(graph, pair, information, sigma)
            cholesky(sigma, at, n, low, 0)
            solve_cholesky(low, 0, n, step, 0)
            invert_lower(low, 0, n, whiten[r, k], at)
            length = 0.0
            for i in range(n):
                own[graph.block_coords[base + i]] -= step[i]
            for i in range(d):
                length += own[i] * own[i]
            if length > limit:
                project_parameter(graph, -1, unused, 0, 0, sigma, within, r, k, own, scratch)


@jit
def _design(graph, stage_table, stage_parameter, n_states, n_actions, states, actions, gram, whiten):
    low = np.empty(gram.shape[2])
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            pair = (stage_table[h] * n_states + states[r, h]) * n_actions + actions[r, h]
            block = graph.pair_block[pair]
            if block >= 0:
                k, at = stage_parameter[h], graph.gram_start[block]
                n = graph.block_start[block + 1] - graph.block_start[block]
                add_outcomes(graph, pair, 1.0, gram[r, k])
                cholesky(gram[r, k], at, n, low, 0)
                invert_lower(low, 0, n, whiten[r, k], at)


@jit
def _project(graph, gram, within, theta):
    d, size = theta.shape[2], gram.shape[2]
    scratch, unused = np.empty(10 * d + 5 * size), np.empty((0, 0))
    limit = within.bound * within.bound * (1.0 + SLACK)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            own = theta[r, k]
            length = 0.0
            for i in range(d):
                length += own[i] * own[i]
            if length > limit:
                project_parameter(graph, -1, unused, 0, 0, gram[r, k], within, r, k, own, scratch)
