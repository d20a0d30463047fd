"""Kernels on lanes and on floats, for test_lanes.py; run as a script, the module prints their results."""

import json
import sys
from typing import Any, NamedTuple

import numpy as np

from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import (
    W,
    absolute,
    all_of,
    any_of,
    count_of,
    exp,
    lane,
    lanes,
    maximum,
    minimum,
    number_in,
    put,
    sqrt,
    take,
    where,
    with_number,
)
from livarot.core.views import Bundle, flat, matrix, opened, part, view


@inner
def softmax(z, p):
    top = z[0]
    for i in range(1, len(z)):
        top = maximum(top, z[i])
    total = 0.0  # becomes a lane where z holds lanes
    for i in range(len(z)):
        p[i] = exp(z[i] - top)
        total += p[i]
    for i in range(len(z)):
        p[i] /= total


@jit
def softmax_lanes(z, p):
    softmax(lanes(z), lanes(p))


@jit
def softmax_floats(z, p):
    softmax(view(z), view(p))


@inner
def _root(x, out):
    """Newton's square root, until no lane changes any more."""
    y, moving = maximum(x, 1.0), x >= 0.0
    steps = 0
    while any_of(moving):
        new = where(moving, 0.5 * (y + x / y), y)
        moving = moving & (absolute(new - y) > 1e-15 * y)
        y = new
        steps += 1
    out[0] = y
    out[1] = minimum(sqrt(x), 1e300)
    out[2] = where(x > 1.0, -x, 2.0) - lane(1.0) * 0.5
    out[3] = with_number(y, 3, number_in(y, 0))
    big = x > 1.0
    return steps, count_of(big), all_of(big | ~big), any_of(big & ~big)


@jit
def root(x, out):
    seen = lanes(x)
    return _root(seen[0], lanes(out))


@jit
def gather(numbers, places, out):
    seen, at, to = view(numbers), view(places), view(out)
    put(to, at, 1, 2.0 * take(seen, at, 0))
    put(to, at, 2, 7.0)


class Model(NamedTuple):
    table: Any
    numbers: Any
    whole: Any
    size: int


@inner
def _sums(model, out):
    seen = matrix(flat(model.table), 0, len(model.table), model.size)
    for i in range(len(seen)):
        row, total = seen[i], 0.0
        for k in range(len(row)):
            total += row[k] * model.numbers[model.whole[k]]
        out[i] = total
    out[len(seen)] = part(model.numbers, 1, 2)[1]


@jit
def bundled(bundle, out):
    _sums(opened(bundle), view(out))


def results():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(6, W)) * 10.0 ** rng.integers(-2, 3, size=(6, W))
    p, one = np.zeros((6, W)), np.zeros((6, W))
    softmax_lanes(z, p)
    for k in range(W):
        column = np.zeros(6)
        softmax_floats(np.ascontiguousarray(z[:, k]), column)
        one[:, k] = column
    x, out = np.array([[5.0, 1.0, 2.0, 1e-300, 1e300, 3.0, 0.25, 144.0]]), np.zeros((4, W))
    counts = root(x, out)
    moved = np.zeros(24)
    gather(np.arange(24.0), np.array([0, 3, 6, 9, 12, 15, 18, 20]), moved)
    sums = np.zeros(3)
    bundled(Bundle(Model(rng.normal(size=(2, 3)), rng.normal(size=4), np.array([3, 0, 1], dtype=np.int32), 3)), sums)
    return {"p": p, "one": one, "out": out, "moved": moved, "sums": sums}, [int(c) for c in counts]


if __name__ == "__main__":
    arrays, told = results()
    kept = {name: [[float(x).hex() for x in np.ravel(array)], list(array.shape)] for name, array in arrays.items()}
    sys.stdout.write(json.dumps([kept, told]))
