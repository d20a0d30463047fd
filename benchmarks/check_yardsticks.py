"""Do the two yardsticks agree? ``python -m benchmarks.check_yardsticks``; exit status 1 on a mismatch.

trajectories   the plain NumPy run and the C++ run, on shared uniforms: policies at reachable states, returns,
               exact values, parameters and Gram matrices
shifted power  the default solver's run against Frank-Wolfe's, at the paper's radius
inner          one-stage problems in two dimensions against a fine grid of the ellipsoid: no value above the
               certified bound, and how many of the solver's maxima are not global
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks import workloads
from benchmarks.naive import NaiveResult, run_naive, softmax
from benchmarks.workloads import Workload, dense_gram
from benchmarks.yardstick import CppRun, plan_once, run_workload

Bools = NDArray[np.bool_]
THETA, GRAM, VALUE = 1e-12, 1e-12, 1e-12  # largest differences allowed


def live_nodes(workload: Workload) -> Bools:
    """(H, S): can the state be reached at the stage?"""
    flat = workload.flat
    out = np.zeros((flat.horizon, flat.n_states), dtype=bool)
    for h in range(flat.horizon):
        out[h, flat.node_state[flat.node_start[h] : flat.node_start[h + 1]]] = True
    return out


def run_slow(workload: Workload) -> list[NaiveResult]:
    uniforms = workload.uniforms()
    return [
        run_naive(
            workload.problem,
            workload.theta_star[r],
            uniforms[r],
            step_size=workload.step_size,
            reg=workload.reg,
            radius_fn=workload.radius,
            param_bound=workload.problem.param_bound,
            n_episodes=workload.n_episodes,
            evaluate_policies=True,
        )
        for r in range(workload.n_seeds)
    ]


def compare(name: str, workload: Workload, slow: list[NaiveResult], fast: CppRun, strict: bool) -> bool:
    """Print one row; strict also compares the believed values."""
    assert fast.policies is not None
    assert fast.regret is not None
    assert fast.upper is not None
    nodes = live_nodes(workload)
    policies = returns = projected = 0
    theta = gram = value = believed = 0.0
    for r, one in enumerate(slow):
        assert one.value is not None
        policies += int(np.sum((one.policies != fast.policies[r]) & nodes))
        returns += int(np.sum(np.abs(one.realised - fast.realised[r]) > 1e-9))
        theta = max(theta, float(np.abs(one.theta - fast.theta[r]).max()))
        blocks = np.stack([dense_gram(workload.flat, packed) for packed in fast.gram[r]])
        gram = max(gram, float(np.abs(one.gram - blocks).max()))
        value = max(value, float(np.ptp(one.value + fast.regret[r])))  # V*, the same in every episode
        believed = max(believed, float(np.abs(one.optimistic - fast.believed[r]).max()))
        projected += one.projected
    certified = bool(np.all(fast.upper >= fast.believed - 1e-9))
    good = policies == 0 and returns == 0 and theta <= THETA and gram <= GRAM and value <= VALUE and certified
    good = good and projected == fast.stats.projections and (believed <= VALUE or not strict)
    verdict = "ok" if good else "MISMATCH"
    print(
        f"{name:<22} {policies:>8} {returns:>7} {theta:>9.1e} {gram:>9.1e} {value:>9.1e} {believed:>9.1e}"
        f" {projected / max(fast.stats.updates, 1):>6.0%} {fast.inner_gap.max():>9.1e} {verdict:>9}"
    )
    return good


def trajectories() -> bool:
    chain = workloads.hard_chain(5, n_seeds=2).short(n_episodes=30)
    dense = workloads.small_dense(n_episodes=30, n_seeds=2)
    cases = [
        ("A, H=5", chain),
        ("A, H=8, tight ball", tighten(workloads.hard_chain(8, n_seeds=1).short(n_episodes=10), 0.2)),
        ("A, H=4, d=3", workloads.hard_chain(4, n_seeds=1, dim=3).short(n_episodes=20)),
        ("B small", dense),
        ("B small, wide radius", workloads.small_dense(n_episodes=20, n_seeds=1, beta_scale=0.3)),
        ("B small, two tables", workloads.small_dense(n_episodes=20, n_seeds=1, n_tables=2)),
        ("B small, one theta", workloads.small_dense(n_episodes=20, n_seeds=1, shared_parameter=True)),
        ("B small, offsets", with_offsets(dense.short(n_episodes=15, n_seeds=1))),
        ("ragged", ragged(n_episodes=20, n_seeds=2)),
        ("D, S=5", workloads.river_swim(5, n_episodes=20, n_seeds=2)),
        ("D, S=5, tight ball", tighten(workloads.river_swim(5, n_episodes=20, n_seeds=1), 0.1)),
    ]
    print("differences between the NumPy and the C++ run (counts, then largest absolute values)")
    print(
        f"{'case':<22} {'policies':>8} {'returns':>7} {'theta':>9} {'gram':>9} {'V*':>9} {'believed':>9}"
        f" {'cut':>6} {'inner gap':>9}"
    )
    good = True
    for name, workload in cases:
        slow = run_slow(workload)
        fast = run_workload(workload, frank_wolfe=30, judge=True, certificate=True, keep_policies=True)
        good &= compare(name, workload, slow, fast, strict=True)
        if workload is chain or workload is dense:
            fast = run_workload(workload, judge=True, certificate=True, keep_policies=True)
            good &= compare(f"{name}, shifted power", workload, slow, fast, strict=False)
    return good


def tighten(workload: Workload, factor: float) -> Workload:
    """A ball that cuts most steps, the radius being kept."""
    bound = workload.problem.param_bound * factor
    problem = replace(workload.problem, param_bound=bound)
    return replace(workload, problem=problem, beta_scale=workload.beta_scale / factor)


def with_offsets(workload: Workload) -> Workload:
    offset = np.random.default_rng(5).standard_normal(workload.problem.offset.size)
    return replace(workload, problem=replace(workload.problem, offset=offset))


def ragged(n_episodes: int, n_seeds: int) -> Workload:
    """One to six outcomes per pair, a fifth of the pairs with all features zero, two start states."""
    base = workloads.small_dense(n_episodes=n_episodes, n_seeds=n_seeds)
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 7, base.problem.row_start.size - 1)
    phi = rng.standard_normal((counts.sum(), base.problem.dim))
    phi /= np.linalg.norm(phi, axis=1).max()
    phi[np.repeat(rng.random(counts.size) < 0.2, counts)] = 0.0
    next_state = np.concatenate([rng.permutation(base.problem.n_states)[:n] for n in counts])
    start = np.zeros(base.problem.n_states)
    start[:2] = 0.25, 0.75
    problem = replace(
        base.problem,
        start=start,
        row_start=np.concatenate([[0], np.cumsum(counts)]),
        next_state=next_state.astype(np.int32),
        offset=0.5 * rng.standard_normal(counts.sum()),
        phi=phi,
    )
    return replace(base, problem=problem)


def shifted_power() -> bool:
    """The real B, 25 episodes of two seeds: same episodes as Frank-Wolfe with 30 iterations."""
    workload = workloads.dense_medium(n_episodes=25, n_seeds=2)
    plain = run_workload(workload, frank_wolfe=30)
    power = run_workload(workload)
    different = int(np.sum(plain.realised != power.realised))
    below = float((plain.believed - power.believed).max() / workload.problem.horizon)
    cut = power.stats.projections / power.stats.updates
    print(
        f"\nB, shifted power against Frank-Wolfe: {different} of {plain.realised.size} episodes differ,"
        f" believed value lower by at most {below:.1e} of H, {cut:.0%} of steps cut,"
        f" {power.stats.evaluations / power.stats.solves:.2f} evaluations per problem,"
        f" gap {power.inner_gap.max():.1e}"
    )
    return different == 0 and below <= 1e-9


def inner() -> bool:
    """H=2, A=1: value[0, s] - r is one inner maximum. The grid has 720 angles and 40 radii."""
    good = True
    titles = ("half-width", "problems", "above bound", "bad maxima", "worst", "bound ratio")
    print("\n" + " ".join(f"{title:>11}" for title in titles))
    angles = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
    disc = np.linspace(0.025, 1.0, 40)[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for scale in (0.1, 1.0, 4.0, 10.0):
        case = workloads.random_dense(
            "inner",
            n_states=600,
            n_actions=1,
            n_next=5,
            dim=2,
            horizon=2,
            n_episodes=1,
            n_seeds=1,
            theta_norm=1.0,
        )
        start = np.full(600, 1.0 / 600)
        case = replace(case, problem=replace(case.problem, start=start))
        problem = case.problem
        rng = np.random.default_rng(11)
        theta = rng.standard_normal((2, 2)) / 2.0
        half = rng.standard_normal((2, 2))
        gram = half @ half.T + 0.5 * np.eye(2)
        whiten = np.linalg.inv(np.linalg.cholesky(gram))
        widest = np.linalg.norm(problem.phi @ whiten.T, axis=1).max()
        radius = scale / widest
        plan = plan_once(case.flat, theta, np.stack([gram.ravel()] * 2), radius, certificate=True)
        assert plan.upper is not None
        found = plan.value[0] - problem.reward[0, :, 0]
        bound = plan.upper[0] - problem.reward[0, :, 0]
        following = problem.reward[1, :, 0]
        points = theta[0] + radius * disc.reshape(-1, 2) @ whiten
        best, centre = np.empty(600), np.empty(600)
        for s in range(600):
            states, _, phi = problem.pair(0, s, 0)
            logits = points @ phi.T
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            best[s] = (weights @ following[states] / weights.sum(axis=1)).max()
            centre[s] = softmax(phi @ theta[0]) @ following[states]
        spread = np.ptp(following)
        above = int(np.sum(np.maximum(best, found) > bound + 1e-12))
        missing = (best - found) / spread
        bad = float(np.mean(missing > 1e-3))
        ratio = float(np.median((bound - centre) / (np.maximum(best, found) - centre)))
        print(f"{scale:>11} {600:>11} {above:>11} {bad:>11.2%} {missing.max():>11.1e} {ratio:>11.2f}")
        good &= above == 0 and bad <= 0.01 and (scale > 1.0 or bad == 0.0) and plan.inner_gap <= 1.1e-8
    return good


def main() -> int:
    results = [trajectories(), shifted_power(), inner()]
    print("\nall agree" if all(results) else "\nMISMATCH")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
