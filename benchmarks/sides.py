"""The three sides of a comparison on one workload: the library, the C++ yardstick, the plain NumPy code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import livarot
from benchmarks.measure import Row
from benchmarks.naive import naive_inner, run_naive
from benchmarks.workloads import Dense, Workload, dense_gram, flatten
from benchmarks.yardstick import CppRun, plan_once, run_cpp
from livarot.simulation.streams import environment_uniforms

Floats = NDArray[np.float64]
ITERATIONS = 30  # Frank-Wolfe, naive side
DEFAULT = livarot.ShiftedPower()
CPP: dict[str, Any] = {  # the same work as the library's: its tolerance, its starts, judge and certificate
    "tolerance": DEFAULT.tol,
    "max_iterations": DEFAULT.max_iter,
    "extra_starts": DEFAULT.n_starts,
    "certificate": True,
    "judge": True,
}


def make_problem(dense: Dense) -> livarot.Problem:
    return livarot.Problem.from_arrays(
        dense.horizon,
        dense.n_states,
        dense.n_actions,
        outcomes=np.diff(dense.row_start),
        next_state=dense.next_state,
        features=dense.phi,
        reward=dense.reward,
        param_bound=dense.param_bound,
        start=dense.start,
        stage_table=dense.stage_table,
        offset=dense.offset,
        shared_parameter=dense.shared_parameter,
    )


@dataclass(frozen=True)
class Library:
    """One workload as livarot sees it."""

    workload: Workload
    problem: livarot.Problem
    models: list[livarot.MNLMDP]
    agent: livarot.agents.Livarot

    @classmethod
    def of(cls, workload: Workload, frank_wolfe: bool = False) -> Library:
        problem = make_problem(workload.problem)
        solver = livarot.FrankWolfe(n_iter=ITERATIONS, n_starts=0) if frank_wolfe else DEFAULT
        agent = livarot.agents.Livarot(
            n_explore=0,
            printed_radius=True,
            beta_scale=workload.beta_scale,
            step_size=workload.step_size,
            reg=workload.reg,
            failure_level=workload.failure_level,
            rule=livarot.JointMaximum(solver),
        )
        return cls(workload, problem, [livarot.MNLMDP(problem, theta) for theta in workload.theta_star], agent)

    def run(self, workers: int = 1) -> livarot.RunResult:
        """The whole of ``livarot.run``; what the library keeps with a problem is thrown away first."""
        self.problem.derived.clear()
        seeds = range(self.workload.n_seeds)
        return livarot.run(self.models, self.agent, self.workload.n_episodes, seeds, workers=workers)

    def cpp(self, frank_wolfe: bool = False) -> Callable[[], CppRun]:
        """The C++ run on the library's own uniforms, drawn beforehand."""
        w = self.workload
        return partial(
            run_cpp,
            w.flat,
            w.theta_star,
            uniforms(w),
            w.radii(),
            step_size=w.step_size,
            reg=w.reg,
            frank_wolfe=ITERATIONS if frank_wolfe else 0,
            **CPP,
        )


def uniforms(w: Workload) -> Floats:
    return np.stack([environment_uniforms(r, 0, w.n_episodes, w.problem.horizon) for r in range(w.n_seeds)])


def compare_runs(row: Row, ours: livarot.RunResult, theirs: CppRun) -> None:
    """Exact regret, realised return and coverage of every episode of every seed."""
    assert theirs.regret is not None
    assert theirs.covered is not None
    optimum = ours.realised_regret + theirs.realised  # V* at the start: one number per seed
    row.check("regret_difference", np.abs(ours.regret - theirs.regret), 1e-9)
    row.check("return_difference", np.ptp(optimum, axis=1), 1e-9)
    row.check("coverage_differs", np.sum(ours.covered.filled(False) != theirs.covered), 0)


def compare_naive(row: Row, label: str, workload: Workload, frank_wolfe: bool, believed: bool) -> None:
    """The plain NumPy run against the library's, same uniforms: values of the policies played, and returns.

    ``believed``: the plans' own values too, which depend on all estimates so far; they agree to rounding where both
    sides use the same solver, or one that is exact (two outcomes).
    """
    ours = Library.of(workload, frank_wolfe).run()
    draws = uniforms(workload)
    for r in range(workload.n_seeds):
        slow = run_naive(
            workload.problem,
            workload.theta_star[r],
            draws[r],
            step_size=workload.step_size,
            reg=workload.reg,
            radius_fn=workload.radius,
            param_bound=workload.problem.param_bound,
            n_episodes=workload.n_episodes,
            fw_iterations=ITERATIONS,
            evaluate_policies=True,
        )
        assert slow.value is not None
        spans = [np.ptp(ours.regret[r] + slow.value), np.ptp(ours.realised_regret[r] + slow.realised)]
        if believed:
            spans.append(np.ptp(slow.optimistic - np.asarray(ours.optimism_gap[r])))
        row.check(f"twin_{label}", np.array(spans), 1e-9)


class NaiveSample:
    """Inner problems of one planning pass with the values, centres and Gram matrices of a run's end.

    ``size`` None is every (h, s, a), in order; otherwise that many, drawn uniformly.
    """

    def __init__(self, workload: Workload, theta: Floats, gram: Floats, radius: float, size: int | None) -> None:
        problem = workload.problem
        everywhere = replace(problem, start=np.full(problem.n_states, 1.0 / problem.n_states))
        value = plan_once(flatten(everywhere), theta, gram, radius).value
        shape = (problem.horizon, problem.n_states, problem.n_actions)
        if size is None:
            chosen = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
        else:
            chosen = np.random.default_rng(9).integers(0, shape, (size, 3))
        self.count, self.full, self.radius = len(chosen), int(np.prod(shape)), radius
        self.stages = problem.horizon
        own = [0 if problem.shared_parameter else h for h in range(problem.horizon)]
        dense = {k: dense_gram(workload.flat, gram[k]) for k in {own[h] for h in chosen[:, 0]}}
        inverse = {k: np.asarray(np.linalg.inv(matrix), np.float64) for k, matrix in dense.items()}
        self.problems: list[tuple[Floats, Floats, Floats, Floats, Floats, Floats]] = []
        for h, s, a in chosen.tolist():
            following, offset, phi = problem.pair(h, s, a)
            k = own[h]
            self.problems.append((phi, value[h + 1, following], theta[k], dense[k], inverse[k], offset))

    def solve(self, iterations: int = ITERATIONS) -> None:
        """A linear system with the dense Gram matrix per Frank-Wolfe step."""
        for phi, values, theta, gram, _, offset in self.problems:
            naive_inner(phi, values, theta, gram, self.radius, iterations, offset=offset)

    def solve_inverted(self) -> None:
        """One inverse of the dense Gram matrix per problem."""
        for phi, values, theta, gram, _, offset in self.problems:
            inverse = np.asarray(np.linalg.inv(gram), np.float64)
            naive_inner(phi, values, theta, gram, self.radius, ITERATIONS, offset=offset, gram_inverse=inverse)

    def solve_hoisted(self) -> None:
        """Inverses made beforehand."""
        for phi, values, theta, gram, inverse, offset in self.problems:
            naive_inner(phi, values, theta, gram, self.radius, ITERATIONS, offset=offset, gram_inverse=inverse)

    def plan_seconds(self, sample: float) -> float:
        """Seconds of a planning pass over all (h, s, a), from those of the sample."""
        return sample / self.count * self.full

    def hoisted_seconds(self, inverted: float, hoisted: float) -> float:
        """The same with one inverse per stage."""
        return self.plan_seconds(hoisted) + max(inverted - hoisted, 0.0) / self.count * self.stages
