"""Steps that planners share: known laws, the first action within the tie tolerance, the mean at the start."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from livarot.core.compiling.jit import jit
from livarot.core.tolerances import TIE
from livarot.core.views import Bundle, opened, view
from livarot.planning.steps import greedy, known_law, mean_at_start


class Graph(NamedTuple):
    row_start: Any
    next_state: Any
    offset: Any


@jit
def law_of(graph, pair, follow):
    return known_law(opened(graph), pair, view(follow))


@jit
def greedy_of(q):
    return greedy(view(q))


@jit
def start_of(node_start, node_state, start, value):
    return mean_at_start(view(node_start), view(node_state), view(start), view(value))


def test_known_laws_come_from_offsets_alone():
    offset = np.array([5.0, 0.0, np.log(3.0), 1000.0, 0.0])
    graph = Bundle(Graph(np.array([0, 1, 3, 5]), np.array([2, 0, 1, 1, 0], dtype=np.int32), offset))
    follow = np.array([1.0, 5.0, 7.0])
    assert law_of(graph, 0, follow) == 7.0  # one outcome, whatever its offset
    assert law_of(graph, 1, follow) == pytest.approx(0.25 * 1.0 + 0.75 * 5.0, rel=1e-15)
    assert law_of(graph, 2, follow) == 5.0  # no overflow


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_first_of_tied_actions(scale):
    near = scale - 0.5 * TIE * (1.0 + scale)
    far = scale - 2.0 * TIE * (1.0 + scale)
    assert greedy_of(np.array([0.0, near, scale, near])) == (scale, 1)
    assert greedy_of(np.array([far, scale])) == (scale, 1)
    assert greedy_of(np.array([-scale])) == (-scale, 0)


def test_only_states_where_an_episode_may_begin_count():
    nodes = np.array([0, 2, 3]), np.array([1, 2, 0], dtype=np.int32)
    assert start_of(*nodes, np.array([np.nan, 0.25, 0.75]), np.array([np.nan, 4.0, 8.0])) == 7.0
