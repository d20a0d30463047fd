"""Masked entries, text and ragged lists: refused by the name of the argument, wherever an array is taken."""

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, envs
from livarot.estimation.mle import fit_mle
from tests.support.refusals import A, H, S, altered, arrays, base, refusal

MDP = envs.river_swim(3, 2)


def hidden(values, place):
    """The same numbers, one of them under a mask."""
    found = np.ma.masked_array(np.array(values, dtype=float), mask=False)
    found[place] = np.ma.masked
    return found


def weighted(weights):
    return fit_mle(MDP.problem, np.array([1, 1]), np.array([0, 1]), weights=weights, reg=1.0)


BALL = livarot.Ellipsoid.ball(2, 1.0)
TAKERS = {
    "center": (lambda x: livarot.Ellipsoid(x, np.eye(2), 1.0), [0.0, 0.0], 1),
    "matrix": (lambda x: livarot.Ellipsoid([0.0, 0.0], x, 1.0), np.eye(2), (0, 1)),
    "direction": (BALL.support, [1.0, 0.0], 1),
    "x": (lambda x: BALL.project(x, np.eye(2)), [3.0, 4.0], 0),
    "features": (lambda x: livarot.inner_max(x, [1.0, 0.0], BALL), [[1.0, 0.0], [0.0, 0.0]], (1, 1)),
    "values": (lambda x: livarot.inner_max([[1.0, 0.0], [0.0, 0.0]], x, BALL), [1.0, 0.0], 1),
    "offset": (lambda x: livarot.inner_max(np.eye(2), [1.0, 0.0], BALL, offset=x), [0.0, 0.0], 0),
    "theta": (lambda x: MNLMDP.from_arrays(H, S, A, **(arrays() | {"theta": x})), [0.3, 0.4], 0),
    "start": (lambda x: MNLMDP.from_function(H, S, A, **(base() | {"start": x})), [0.25, 0.25, 0.5], 2),
    "weights": (weighted, [1.0, 1.0], 1),
}


@pytest.mark.parametrize("argument", TAKERS)
def test_the_number_under_a_mask_is_not_data(argument):
    take, values, place = TAKERS[argument]
    take(np.ma.masked_array(values, mask=False))
    assert refusal(lambda: take(hidden(values, place))).argument == argument
    assert refusal(lambda: take("text")).argument == argument
    assert refusal(lambda: take([[1.0], [2.0, 3.0]])).argument == argument


@pytest.mark.parametrize("what", ["features", "offset"])
@pytest.mark.parametrize("wrong", ["masked", "text"])
def test_functions_of_the_pair_too(what, wrong):
    phi = hidden(np.eye(2), (1, 0)) if wrong == "masked" else "text"
    shift = hidden([0.0, 0.0], 1) if wrong == "masked" else "text"
    if what == "features":
        change = {"features": altered(([0, 1], phi), (1, 2, 0))}
    else:
        change = {"offset": lambda h, s, a: shift if (h, s, a) == (1, 2, 0) else [0.0, 0.0]}
    error = refusal(lambda: MNLMDP.from_function(H, S, A, **(base() | change)))
    assert error.argument == what
    if (what, wrong) != ("offset", "masked"):
        assert error.index == (1, 2, 0)
