"""Maximum likelihood of choices, beside its peers: ``python -m benchmarks.estimation [--json] [--quick]``.

One data set, 100 000 choices x 10 alternatives x 20 features, standard normal, theta fixed by the seed.  All sides get
the same array, start from theta = 0, and end with coefficients and standard errors; one thread, in turn, in one
process.  CPU seconds; best of ROUNDS for ours and NumPy, once for the peers (they take long).

ours         ``Choices.from_arrays`` (checks included) and ``MNLTransition().fit``
ours_table   ``MNLTransition(features=...).fit(DataFrame)``, grouping by choice id and checks included
ours_formula the same with ``formula="~ x0 + x1 + ..."``, formulaic's parser included
numpy        a plain Newton method on the padded array (below), until the same decrement
xlogit       ``MultinomialLogit().fit`` 0.2.7, its defaults
statsmodels  ``ConditionalLogit(...).fit()``, its defaults, on a tenth of the data (compared with ours on that tenth)

Memory: peak resident memory of a fresh process that imports, draws the data in place and fits, less what it had after
the imports; so the data themselves (160 MB) are included.  The same for 10^6 choices x 10 x 8 features.

Checked in the same run: log-likelihoods agree to 1e-6 relative, coefficients and standard errors to 1e-5; those of
statsmodels to 1e-3, since its BFGS stops early and takes no tolerance (with its Newton method they agree to 1e-5:
tests/data/fitting/test_peers.py).  A target that is missed is printed as UNMET; a failed check makes the exit status 1.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.measure import Row, interleaved
from benchmarks.processes import resident, settle
from livarot.core.arrays import FloatArray, IntArray
from livarot.data import Choices, MNLTransition

ROUNDS = 3
LOGLIK_MOST, COEFFICIENT_MOST = 1e-6, 1e-5
XLOGIT_LEAST, NUMPY_LEAST = 10.0, 1.0  # times faster
MEMORY_MOST, BIG_SECONDS_MOST, BIG_MEMORY_MOST = 300.0, 30.0, 2048.0  # MB, s, MB


class Fitted(NamedTuple):
    theta: FloatArray
    errors: FloatArray
    log_likelihood: float


def draw(n: int, size: int, dim: int, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """Features (n, size, dim) and the alternatives chosen, drawn without temporary arrays of their size."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=dim) / np.sqrt(dim)
    features = np.empty((n, size, dim))
    chosen = np.empty(n, dtype=np.int64)
    for begin in range(0, n, 10_000):
        part = features[begin : begin + 10_000]
        rng.standard_normal(out=part)
        chosen[begin : begin + len(part)] = (part @ theta + rng.gumbel(size=part.shape[:2])).argmax(axis=1)
    return features, chosen


def ours(features: FloatArray, chosen: IntArray) -> Fitted:
    return _fitted(MNLTransition().fit(Choices.from_arrays(features, chosen=chosen)))


def ours_table(table: pd.DataFrame, columns: list[str]) -> Fitted:
    return _fitted(MNLTransition(features=columns).fit(table))


def ours_formula(table: pd.DataFrame, columns: list[str]) -> Fitted:
    return _fitted(MNLTransition(formula="~ " + " + ".join(columns)).fit(table))


def _fitted(fit: MNLTransition) -> Fitted:
    return Fitted(fit.theta_, np.sqrt(np.diag(fit.covariance_)), fit.log_likelihood_)


def numpy_newton(features: FloatArray, chosen: IntArray, tol: float = 1e-8) -> Fitted:
    """What a researcher writes in ten minutes: softmax, centred features, Newton, on whole arrays."""
    n, size, dim = features.shape
    theta = np.zeros(dim)
    taken = features[np.arange(n), chosen]
    while True:
        z = features @ theta
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        mean = np.einsum("nj,njd->nd", p, features)
        centred = (features - mean[:, None, :]).reshape(n * size, dim)
        hessian = (centred * p.reshape(-1, 1)).T @ centred
        gradient = (mean - taken).sum(axis=0)
        step = np.linalg.solve(hessian, gradient)
        if np.sqrt(gradient @ step) <= tol:
            total = float(np.log(p[np.arange(n), chosen]).sum())
            return Fitted(theta, np.sqrt(np.diag(np.linalg.inv(hessian))), total)
        theta = theta - step


def xlogit(features: FloatArray, chosen: IntArray) -> Fitted:
    from xlogit import MultinomialLogit  # type: ignore[import-untyped]

    n, size, dim = features.shape
    flags = np.arange(size) == chosen[:, None]
    model = MultinomialLogit()
    model.fit(
        X=features.reshape(n * size, dim),
        y=flags.reshape(-1),
        varnames=[f"x{j}" for j in range(dim)],
        ids=np.repeat(np.arange(n), size),
        alts=np.tile(np.arange(size), n),
        verbose=0,
    )
    return Fitted(np.asarray(model.coeff_), np.asarray(model.stderr), float(model.loglikelihood))


def statsmodels(features: FloatArray, chosen: IntArray) -> Fitted:
    from statsmodels.discrete.conditional_models import ConditionalLogit  # type: ignore[import-untyped]

    n, size, dim = features.shape
    flags = (np.arange(size) == chosen[:, None]).reshape(-1).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConditionalLogit(flags, features.reshape(n * size, dim), groups=np.repeat(np.arange(n), size))
        found = model.fit(disp=0)
    return Fitted(np.asarray(found.params), np.asarray(found.bse), float(found.llf))


def compare(row: Row, name: str, mine: Fitted, theirs: Fitted, most: float = COEFFICIENT_MOST) -> None:
    scale = abs(mine.log_likelihood)
    row.check(f"{name} log-likelihood", abs(mine.log_likelihood - theirs.log_likelihood) / scale, LOGLIK_MOST)
    row.check(f"{name} coefficients", np.abs(mine.theta - theirs.theta), most)
    row.check(f"{name} errors", np.abs(mine.errors - theirs.errors), most)


def once(call: Callable[[], Fitted]) -> tuple[Fitted, float]:
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def measure(n: int, size: int, dim: int, rounds: int) -> Row:
    row = Row("fit")
    features, chosen = draw(n, size, dim)
    columns = [f"x{j}" for j in range(dim)]
    table = pd.DataFrame(features.reshape(n * size, dim), columns=columns)
    table["choice"] = np.repeat(np.arange(n), size)
    table["chosen"] = (np.arange(size) == chosen[:, None]).reshape(-1)
    sides: dict[str, Callable[[], Any]] = {
        "ours": partial(ours, features, chosen),
        "ours_table": partial(ours_table, table, columns),
        "ours_formula": partial(ours_formula, table, columns),
        "numpy": partial(numpy_newton, features, chosen),
    }
    mine = ours(features, chosen)  # also warms the kernels
    compare(row, "table", mine, ours_table(table, columns))
    compare(row, "formula", mine, ours_formula(table, columns))
    compare(row, "numpy", mine, numpy_newton(features, chosen))
    seconds = interleaved(sides, rounds)
    del table
    theirs, seconds["xlogit"] = once(partial(xlogit, features, chosen))
    compare(row, "xlogit", mine, theirs)
    tenth = features[: n // 10], chosen[: n // 10]
    theirs, seconds["statsmodels_tenth"] = once(partial(statsmodels, *tenth))
    compare(row, "statsmodels", ours(*tenth), theirs, 1e-3)
    for name, value in seconds.items():
        row.set(f"{name}_cpu_s", value)
    row.set("xlogit/ours", seconds["xlogit"] / seconds["ours"], least=XLOGIT_LEAST)
    row.set("xlogit/ours_table", seconds["xlogit"] / seconds["ours_table"], least=XLOGIT_LEAST)
    row.set("xlogit/ours_formula", seconds["xlogit"] / seconds["ours_formula"], least=XLOGIT_LEAST)
    row.set("numpy/ours", seconds["numpy"] / seconds["ours"], least=NUMPY_LEAST)
    row.set("numpy/ours_table", seconds["numpy"] / seconds["ours_table"], least=NUMPY_LEAST)
    row.set("numpy/ours_formula", seconds["numpy"] / seconds["ours_formula"], least=NUMPY_LEAST)
    row.remarks.append(f"{n} choices x {size} x {dim}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if find_spec("choice_learn") is None:
        row.remarks.append("choice-learn is not installed: left out")
    return row


def fresh_process(kind: str, n: int, size: int, dim: int) -> dict[str, float]:
    """Seconds and peak memory of one fit, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.estimation", "--alone", kind, *map(str, (n, size, dim))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def alone(kind: str, n: int, size: int, dim: int) -> dict[str, float]:
    ours(*draw(50, 3, 2))  # kernels are loaded: part of the imports
    before = settle()
    features, chosen = draw(n, size, dim)
    columns = [f"x{j}" for j in range(dim)]
    if kind == "table":
        flat = features.reshape(n * size, dim)
        table = pd.DataFrame(flat, columns=columns, copy=False)
        table["choice"] = np.repeat(np.arange(n), size)
        table["chosen"] = (np.arange(size) == chosen[:, None]).reshape(-1)
    wall, cpu = time.perf_counter(), time.process_time()
    _ = ours_table(table, columns) if kind == "table" else ours(features, chosen)
    found = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return found | {"peak_mb": (resident("VmHWM") - before) / 2**20}


def memory(n: int, size: int, dim: int) -> Row:
    row = Row("memory")
    row.set("data_mb", n * size * dim * 8 / 2**20)
    for kind in ("arrays", "table"):
        row.set(f"{kind}_peak_mb", fresh_process(kind, n, size, dim)["peak_mb"], most=MEMORY_MOST)
    return row


def large(n: int, size: int, dim: int) -> Row:
    row = Row("large")
    row.set("data_mb", n * size * dim * 8 / 2**20)
    for kind in ("arrays", "table"):
        found = fresh_process(kind, n, size, dim)
        row.set(f"{kind}_wall_s", found["wall_s"], most=BIG_SECONDS_MOST)
        row.set(f"{kind}_cpu_s", found["cpu_s"])
        row.set(f"{kind}_peak_mb", found["peak_mb"], most=BIG_MEMORY_MOST)
    row.remarks.append(f"{n} choices x {size} x {dim}")
    return row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--alone", nargs=4, metavar=("KIND", "N", "J", "D"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.alone:
        print(json.dumps(alone(options.alone[0], *map(int, options.alone[1:]))))
        return 0
    share = 10 if options.quick else 1
    rows = [
        measure(100_000 // share, 10, 20, 2 if options.quick else ROUNDS),
        memory(100_000 // share, 10, 20),
        large(1_000_000 // share, 10, 8),
    ]
    for row in rows:
        print("\n".join(row.lines()), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps({row.name: row.as_json() for row in rows}, indent=2))
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
