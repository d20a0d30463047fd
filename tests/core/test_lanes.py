"""Lanes, views and inner functions: right numbers, the same bits with and without the compiler, faults detected."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, exp, lanes, take
from livarot.core.views import view
from tests.core import lane_kernels

ROOT = Path(__file__).parents[2]


@jit
def exponentials(x, out):
    seen, to = lanes(x), lanes(out)
    for i in range(len(seen)):
        to[i] = exp(seen[i])


@jit
def beyond(numbers, places):
    return take(view(numbers), view(places), 0) > 0.0


def in_a_process(code, **environment):
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths} | environment, capture_output=True, text=True, timeout=250
    )


def test_kernels_give_what_numpy_gives():
    found, (steps, count, every, none) = lane_kernels.results()
    rng = np.random.default_rng(5)
    z = rng.normal(size=(6, W)) * 10.0 ** rng.integers(-2, 3, size=(6, W))
    expected = np.exp(z - z.max(axis=0))
    np.testing.assert_allclose(found["p"], expected / expected.sum(axis=0), rtol=1e-14, atol=1e-300)
    x = np.array([5.0, 1.0, 2.0, 1e-300, 1e300, 3.0, 0.25, 144.0])
    np.testing.assert_allclose(found["out"][0][[1, 2, 5, 6, 7]], np.sqrt(x[[1, 2, 5, 6, 7]]), rtol=1e-14)
    np.testing.assert_array_equal(found["out"][1], np.minimum(np.sqrt(x), 1e300))
    np.testing.assert_array_equal(found["out"][2], np.where(x > 1, -x, 2.0) - 0.5)
    assert found["out"][3][3] == found["out"][0][0] and found["out"][3][4] == found["out"][0][4]
    assert steps > 5 and (count, every, none) == (5, 1, 0)
    places = np.array([0, 3, 6, 9, 12, 15, 18, 20])
    moved = np.zeros(24)
    moved[places + 1], moved[places + 2] = 2.0 * places, 7.0
    np.testing.assert_array_equal(found["moved"], moved)


def test_a_lane_is_computed_as_a_float_is():
    """The same function on floats gives the same bits, whatever its neighbours are."""
    found, _ = lane_kernels.results()
    np.testing.assert_array_equal(found["p"], found["one"])


def test_the_same_bits_without_the_compiler():
    code = "import runpy; runpy.run_module('tests.core.lane_kernels', run_name='__main__')"
    done = in_a_process(code, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    kept, counts = json.loads(done.stdout)
    found, here = lane_kernels.results()
    assert counts == here
    for name, (numbers, shape) in kept.items():
        plain = np.array([float.fromhex(x) for x in numbers]).reshape(shape)
        np.testing.assert_array_equal(found[name], plain, err_msg=name)


def test_the_exponential_is_accurate():
    rng = np.random.default_rng(1)
    x = -np.concatenate((rng.uniform(0, 700, 4000), 10.0 ** rng.uniform(-20, 2.8, 4000))).reshape(-1, W)
    out = np.zeros_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=5e-16)


def test_an_index_outside_is_seen_when_bounds_are_checked(tmp_path):
    code = (
        "import numpy as np; from tests.core.test_lanes import beyond\n"
        "try:\n    beyond(np.zeros(3), np.arange(8))\nexcept IndexError:\n    print('seen')"
    )
    done = in_a_process(code, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert "seen" in done.stdout, done.stderr
