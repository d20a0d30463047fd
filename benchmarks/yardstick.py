"""Compiles ``yardstick.cpp`` and its headers on first use and calls it through ctypes.

The shared object lives in ``.cache`` beside this file (or in $LIVAROT_YARDSTICK_CACHE) under a name made of
the source, the flags, the compiler and the processor's features, so it is rebuilt when one of them changes.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Flat

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]

SOURCE = Path(__file__).with_name("yardstick.cpp")
FLAGS = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
)

_SCALARS = ("horizon", "n_states", "n_actions", "dim", "n_pairs", "n_blocks", "shared")
_ARRAYS = (  # name, dtype: the order of struct Problem
    ("reward", np.float64),
    ("start", np.float64),
    ("stage_table", np.int32),
    ("row_start", np.int64),
    ("next_state", np.int32),
    ("offset", np.float64),
    ("pair_block", np.int32),
    ("feat_start", np.int64),
    ("feat", np.float64),
    ("block_start", np.int64),
    ("block_coords", np.int32),
    ("gram_start", np.int64),
    ("node_start", np.int64),
    ("node_state", np.int32),
)
_ROWS = (*(name for name, _ in _ARRAYS[2:]), "col_start", "col_count", "cols")
_COUNTERS = ("solves", "evaluations", "wide", "projections", "updates")


class _Problem(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in _SCALARS),
        ("param_bound", ctypes.c_double),
        *((name, ctypes.c_void_p) for name, _ in _ARRAYS),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("step_size", "reg", "tolerance")),
        *((name, ctypes.c_int64) for name in ("frank_wolfe", "max_iterations", "extra_starts", "certificate", "judge")),
    ]


class _Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("solves", "evaluations", "wide", "projections", "updates")]


@dataclass(frozen=True)
class Stats:
    """solves, evaluations: inner problems with more than two outcomes and their softmax evaluations after the
    first; wide: those given extra starts; projections out of updates OMD steps were cut by the ball."""

    solves: int
    evaluations: int
    wide: int
    projections: int
    updates: int


@dataclass(frozen=True)
class CppRun:
    realised: Floats  # (R, T) return of the episode
    regret: Floats | None  # (R, T) V* - V^pi at the start (judge)
    covered: NDArray[np.bool_] | None  # (R, T) |theta* - theta|_gram <= beta at every stage (judge)
    believed: Floats  # (R, T) optimistic value of the start
    upper: Floats | None  # (R, T) certified upper bound of it (certificate)
    inner_gap: Floats  # (R, T) largest first-order gap / range of the next values
    policies: Ints32 | None  # (R, T, H, S)
    theta: Floats  # (R, K, d)
    gram: Floats  # (R, K, G) packed
    stats: Stats


@dataclass(frozen=True)
class CppPlan:
    value: Floats  # (H+1, S), zero at states that cannot be reached
    upper: Floats | None
    policy: Ints32  # (H, S)
    inner_gap: float
    stats: Stats


@functools.cache
def library() -> ctypes.CDLL:
    sources = [
        SOURCE.read_bytes(),
        *(path.read_bytes() for path in sorted(SOURCE.parent.glob("yardstick_*.hpp"))),
    ]
    compiler = os.environ.get("CXX", "g++")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    cpu = Path("/proc/cpuinfo")
    features = [line for line in cpu.read_bytes().splitlines() if line.startswith(b"flags")][:1] if cpu.exists() else []
    key = hashlib.sha256(b"\0".join([*sources, version, *features, " ".join(FLAGS).encode()])).hexdigest()
    folder = Path(os.environ.get("LIVAROT_YARDSTICK_CACHE", SOURCE.parent / ".cache"))
    target = folder / f"yardstick-{key[:16]}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        partial = target.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(partial)], check=True)
        partial.replace(target)
    built = ctypes.CDLL(str(target))
    built.plan_once.restype = ctypes.c_double
    built.run_seeds.restype = None
    return built


def from_problem(problem: Any) -> Flat:
    """The arrays of a ``livarot.Problem``, which has the same names."""
    node_start, node_state = problem.nodes
    names = [name for name in _ROWS if name not in ("stage_table", "node_start", "node_state")]
    return Flat(
        horizon=int(problem.horizon),
        n_states=int(problem.n_states),
        n_actions=int(problem.n_actions),
        dim=int(problem.dim),
        reward=problem.reward,
        start=problem.start,
        param_bound=float(problem.param_bound),
        shared_parameter=bool(problem.shared_parameter),
        stage_table=problem.stage_table,
        node_start=node_start,
        node_state=node_state,
        **{name: getattr(problem.rows, name) for name in names},
    )


def check_layout(flat: Flat) -> None:
    """Every pair must use the whole of its block, in order: features are read as (U, block size)."""
    active = np.flatnonzero(flat.pair_block >= 0)
    sizes = np.diff(flat.block_start)[flat.pair_block[active]]
    if np.any(flat.col_count[active] != sizes):
        raise ValueError("a pair does not use every coordinate of its block")
    first = np.cumsum(sizes) - sizes
    within = np.arange(sizes.sum()) - np.repeat(first, sizes)
    starts = np.repeat(flat.col_start[active], sizes)
    if np.any(flat.cols[starts + within] != within):
        raise ValueError("the coordinates of a pair are not in the order of its block")


class _Call:
    """Keeps the contiguous arrays alive for the duration of a call."""

    def __init__(self, flat: Flat, **options: float) -> None:
        check_layout(flat)
        self.kept = [np.ascontiguousarray(getattr(flat, name), dtype) for name, dtype in _ARRAYS]
        self.problem = _Problem(
            flat.horizon,
            flat.n_states,
            flat.n_actions,
            flat.dim,
            flat.row_start.size - 1,
            flat.block_start.size - 1,
            int(flat.shared_parameter),
            flat.param_bound,
            *(array.ctypes.data for array in self.kept),
        )
        self.options = _Options(
            options.get("step_size", 0.0),
            options.get("reg", 1.0),
            options["tolerance"],
            int(options["frank_wolfe"]),
            int(options["max_iterations"]),
            int(options["extra_starts"]),
            int(options["certificate"]),
            int(options.get("judge", 0)),
        )
        self.stats = _Stats()

    def head(self) -> tuple[Any, Any]:
        return ctypes.byref(self.problem), ctypes.byref(self.options)

    def counts(self) -> Stats:
        return Stats(*(int(getattr(self.stats, name)) for name in _COUNTERS))


def _pointer(array: NDArray[Any] | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def run_cpp(
    flat: Flat,
    theta_star: Floats,
    uniforms: Floats,
    radii: Floats,
    *,
    step_size: float,
    reg: float,
    frank_wolfe: int = 0,
    certificate: bool = False,
    judge: bool = False,
    extra_starts: int = 3,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    keep_policies: bool = False,
) -> CppRun:
    """theta_star (R, K, d), uniforms (R, T, H+1), radii (T,). frank_wolfe > 0 replaces the solver."""
    n_seeds, n_episodes = uniforms.shape[:2]
    n_parameters = 1 if flat.shared_parameter else flat.horizon
    star = np.ascontiguousarray(theta_star, np.float64)
    draws = np.ascontiguousarray(uniforms, np.float64)
    betas = np.ascontiguousarray(radii, np.float64)
    if star.shape != (n_seeds, n_parameters, flat.dim):
        raise ValueError(f"theta_star has shape {star.shape}, not {(n_seeds, n_parameters, flat.dim)}")
    if draws.shape[2] != flat.horizon + 1 or betas.shape != (n_episodes,):
        raise ValueError("uniforms must be (R, T, H+1) and radii (T,)")
    call = _Call(
        flat,
        step_size=step_size,
        reg=reg,
        tolerance=tolerance,
        frank_wolfe=frank_wolfe,
        max_iterations=max_iterations,
        extra_starts=extra_starts,
        certificate=certificate,
        judge=judge,
    )
    realised, regret, believed, upper, inner_gap = (np.zeros((n_seeds, n_episodes)) for _ in range(5))
    covered = np.zeros((n_seeds, n_episodes), np.uint8)
    shape = (n_seeds, n_episodes, flat.horizon, flat.n_states)
    policies = np.zeros(shape, np.int32) if keep_policies else None
    theta = np.zeros((n_seeds, n_parameters, flat.dim))
    gram = np.zeros((n_seeds, n_parameters, int(flat.gram_start[-1])))
    library().run_seeds(
        *call.head(),
        ctypes.c_int64(n_seeds),
        ctypes.c_int64(n_episodes),
        *(
            _pointer(a)
            for a in (
                star,
                draws,
                betas,
                realised,
                regret,
                believed,
                upper,
                inner_gap,
                covered,
                policies,
                theta,
                gram,
            )
        ),
        ctypes.byref(call.stats),
    )
    return CppRun(
        realised=realised,
        regret=regret if judge else None,
        covered=covered.astype(bool) if judge else None,
        believed=believed,
        upper=upper if certificate else None,
        inner_gap=inner_gap,
        policies=policies,
        theta=theta,
        gram=gram,
        stats=call.counts(),
    )


def plan_once(
    flat: Flat,
    theta: Floats,
    gram: Floats,
    radius: float,
    *,
    frank_wolfe: int = 0,
    certificate: bool = False,
    extra_starts: int = 3,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
) -> CppPlan:
    """One planning pass: theta (K, d), gram (K, G) packed."""
    call = _Call(
        flat,
        tolerance=tolerance,
        frank_wolfe=frank_wolfe,
        max_iterations=max_iterations,
        extra_starts=extra_starts,
        certificate=certificate,
    )
    center = np.ascontiguousarray(theta, np.float64)
    packed = np.ascontiguousarray(gram, np.float64)
    value, upper = (np.zeros((flat.horizon + 1, flat.n_states)) for _ in range(2))
    policy = np.zeros((flat.horizon, flat.n_states), np.int32)
    gap = library().plan_once(
        *call.head(),
        _pointer(center),
        _pointer(packed),
        ctypes.c_double(radius),
        _pointer(value),
        _pointer(upper),
        _pointer(policy),
        ctypes.byref(call.stats),
    )
    return CppPlan(value, upper if certificate else None, policy, float(gap), call.counts())


def run_workload(workload: Any, **options: Any) -> CppRun:
    """``run_cpp`` with a workload's own settings."""
    return run_cpp(
        workload.flat,
        workload.theta_star,
        workload.uniforms(),
        workload.radii(),
        step_size=workload.step_size,
        reg=workload.reg,
        **options,
    )
