"""How well an estimate predicted the episodes that followed it: the losses of the prequential confidence sets."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.core.compiling.jit import jit
from livarot.core.law import logits
from livarot.core.views import matrix, opened, part, view
from livarot.estimation.seen import learn_model, pair_of
from livarot.model.episodes import Episodes, check_episodes, check_shape, typed
from livarot.model.problem import Problem


def predicted_losses(problem: Problem, theta: FloatArray, episodes: Episodes, predicted: FloatArray) -> FloatArray:
    """``predicted`` (R, K) plus -log p_hat of the episodes' transitions, p_hat at theta (R, K, d) from before them."""
    episodes = typed(episodes)
    check_shape("theta", theta, (len(episodes.states), *problem.theta_shape))
    check_shape("predicted", predicted, theta.shape[:2])
    new = predicted.copy()
    if not _predict(learn_model(problem), theta, *episodes, new):
        check_episodes(problem, episodes)
    return new


@jit
def _predict(bundle, theta, states, actions, choices, predicted):
    """Add the losses of one episode per replica; False if there is a transition that the problem does not have."""
    model = opened(bundle)
    if actions.shape[1] != len(model.stage_table):
        return False
    graph, memory = model.graph, np.empty((2, model.longest))
    local, room = view(memory)[0], view(memory)[1]
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            pair = pair_of(model, h, states[r, h], actions[r, h], choices[r, h])
            if pair < 0:
                return False
            block, m = graph.pair_block[pair], graph.col_count[pair]
            if block >= 0:
                k, begin = model.stage_parameter[h], graph.row_start[pair]
                u, first = graph.row_start[pair + 1] - begin, graph.block_start[block]
                for j in range(m):
                    local[j] = theta[r, k, graph.block_coords[first + graph.cols[graph.col_start[pair] + j]]]
                z = part(room, 0, u)
                logits(part(graph.offset, begin, u), matrix(graph.feat, graph.feat_start[pair], u, m), local, z)
                top, total = z[0], 0.0
                for i in range(1, u):
                    top = max(top, z[i])
                for i in range(u):
                    total += math.exp(z[i] - top)
                predicted[r, k] += top + math.log(total) - z[choices[r, h]]
    return True
