"""Learning to treat in a hospital whose patients respond differently; not medical advice.

LIVAROT knows the nominal model and treats one patient after the other.  Each patient is an episode; after each one the
estimate is updated, and a new plan is made when the number of patients has grown by a factor sqrt(2) (a plan passes
over 30 million outcomes, an update over a few thousand).  The report has the exact probability of survival under the
current policy, in the true hospital, against

``optimum``   the best policy of the true hospital,
``nominal``   the best policy of the nominal model, played in the true hospital,
``robust``    the policies that are best against the worst kernel within a KL distance of the nominal one, played there,
``random``    each of the 25 treatments with the same probability.

LIVAROT learns twice: with log p0 known (d = 4), and with its coefficient learned too (d = 5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from livarot.agents import Agent, Livarot
from livarot.core.arrays import FloatArray, IntArray
from livarot.envs.problems.sepsis import N_ACTIONS, WEIGHTS, icu_sepsis
from livarot.errors import require_positive_int
from livarot.model.episodes import PlanCheck
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.exact import evaluate, solve
from livarot.planning.optimistic.loops.blocks import pair_blocks
from livarot.planning.optimistic.rules import check_rule
from livarot.planning.robust.plan import solve_robust
from livarot.simulation.rollout import play
from livarot.simulation.streams import AgentRandom, Draws
from livarot.studies.runner import Count, Runner
from livarot.system.threads import Progress

N_SEEDS, N_PATIENTS = 8, 1000
QUICK_SEEDS, QUICK_PATIENTS = 2, 128
RADII = (0.003, 0.01, 0.03, 0.1, 0.3)
GROWTH = math.sqrt(2.0)


class Curve(NamedTuple):
    """What was learned with d features."""

    dim: int
    patients: IntArray  # (n,) treated before each plan
    survival: FloatArray  # (seeds, n) of the policy planned then, exact
    belief: FloatArray  # (seeds, n) what the plan believed
    theta: FloatArray  # (seeds, d) the last estimate, in the units of the weights

    def lost(self, optimum: float) -> FloatArray:
        """Expected deaths that the optimal policy would have avoided, per seed, over all patients treated."""
        blocks = np.diff(self.patients)
        return np.asarray((optimum - self.survival[:, :-1]) @ blocks)


@dataclass(frozen=True)
class SepsisStudy:
    """Everything that is reported, deterministic given the seeds."""

    seeds: tuple[int, ...]
    n_patients: int
    horizon: int
    weights: tuple[float, ...]
    agent: str
    optimum: float
    nominal: float
    random: float
    robust: tuple[tuple[float, float], ...]  # (radius, survival)
    curves: tuple[Curve, ...]

    def summary(self) -> dict[str, Any]:
        """All numbers as plain data."""
        return {
            "note": "a demonstration on a public simulator; no medical advice",
            "seeds": list(self.seeds),
            "n_patients": self.n_patients,
            "horizon": self.horizon,
            "weights": list(self.weights),
            "agent": self.agent,
            "survival": {"optimum": self.optimum, "nominal": self.nominal, "random": self.random},
            "robust": [{"radius": radius, "survival": value} for radius, value in self.robust],
            "learned": [
                {
                    "dim": curve.dim,
                    "patients": curve.patients.tolist(),
                    "survival": curve.survival.tolist(),
                    "belief": curve.belief.tolist(),
                    "estimate": curve.theta.tolist(),
                    "lost": curve.lost(self.optimum).tolist(),
                }
                for curve in self.curves
            ],
        }


def replan_times(n_patients: int) -> IntArray:
    """Numbers of patients treated at which a plan is made: every one up to 3, then growing by sqrt(2), and the last.

    >>> replan_times(64).tolist()
    [0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64]
    """
    count = 1 + math.ceil(math.log(n_patients) / math.log(GROWTH)) if n_patients > 1 else 1
    times = {0, 1, 2, 3} | {round(GROWTH**k) for k in range(count + 1)} | {n_patients}
    return np.array(sorted(t for t in times if t <= n_patients), dtype=np.int64)


def sepsis_study(
    n_seeds: int = N_SEEDS,
    n_patients: int = N_PATIENTS,
    *,
    horizon: int = 20,
    agent: Livarot | None = None,
    first_seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> SepsisStudy:
    """Run it: seeds ``first_seed``, ``first_seed + 1``, ...; ``workers`` threads, which do not change the result."""
    require_positive_int("n_seeds", n_seeds)
    require_positive_int("n_patients", n_patients)
    require_positive_int("first_seed", first_seed, minimum=0)
    learner = Livarot() if agent is None else agent
    check_rule(learner.rule)
    seeds = tuple(range(first_seed, first_seed + n_seeds))
    times = replan_times(n_patients)
    runner = Runner(2 * n_seeds * len(times), workers, progress)  # plans
    hospital = icu_sepsis(horizon)
    optimum, nominal, random, robust = reference_lines(hospital)
    known = _learn(hospital, learner, seeds, times, runner)
    hospital = icu_sepsis(horizon, learn_nominal=True)
    curves = (known, _learn(hospital, learner, seeds, times, runner))
    return SepsisStudy(
        seeds=seeds,
        n_patients=n_patients,
        horizon=horizon,
        weights=WEIGHTS,
        agent=repr(learner),
        optimum=optimum,
        nominal=nominal,
        random=random,
        robust=robust,
        curves=curves,
    )


def survival(mdp: MNLMDP, policy: Any) -> float:
    """The exact probability of survival under a policy."""
    return float(mdp.problem.start @ evaluate(mdp, policy)[0])


def reference_lines(mdp: MNLMDP) -> tuple[float, float, float, tuple[tuple[float, float], ...]]:
    """Survival in the hospital of the optimum, the nominal optimum, random treatment and the robust policies."""
    problem = mdp.problem
    nominal = MNLMDP(problem, np.zeros_like(mdp.theta))  # the offset carries log p0
    even = np.full((problem.horizon, problem.n_states, N_ACTIONS), 1.0 / N_ACTIONS)
    robust = ((radius, survival(mdp, solve_robust(nominal, radius=radius).policy)) for radius in RADII)
    optimum = float(problem.start @ solve(mdp).value[0])
    return optimum, survival(mdp, solve(nominal).policy), survival(mdp, even), tuple(robust)


def _learn(mdp: MNLMDP, agent: Agent[Any], seeds: Sequence[int], times: IntArray, runner: Runner) -> Curve:
    n_parts = min(runner.workers, len(seeds))
    cuts = [len(seeds) * w // n_parts for w in range(n_parts + 1)]
    kernel = transition_kernel(mdp)
    pair_blocks(mdp.problem), mdp.problem.nodes  # made once, before the threads share them

    def work(part: tuple[int, int], count: Count) -> tuple[FloatArray, FloatArray, FloatArray]:
        alive, belief, state = treat(mdp, kernel, agent, seeds[slice(*part)], times, count)
        return alive, belief, state.estimate.theta[:, 0]

    found = runner.all(work, list(pairwise(cuts)))
    alive, belief, theta = (np.concatenate([part[k] for part in found]) for k in range(3))
    return Curve(mdp.problem.dim, times, alive, belief, mdp.problem.original_theta(theta))


def treat(
    mdp: MNLMDP, kernel: Kernel, agent: Agent[Any], seeds: Sequence[int], times: IntArray, count: Count
) -> tuple[FloatArray, FloatArray, Any]:
    """Any agent, with a new plan at each of ``times``: survival and belief (seeds, plans), and its last state."""
    problem, last = mdp.problem, int(times[-1])
    luck = Draws.of_environment(seeds, problem.horizon).block(0, last)
    actions = Draws.of_actions(seeds, problem.horizon).block(0, last)  # for policies that draw them
    rng, check = AgentRandom(seeds), PlanCheck(problem, len(seeds), agent.name)
    state = agent.init(problem, len(seeds))
    alive, belief = np.empty((len(seeds), len(times))), np.empty((len(seeds), len(times)))
    for k, (first, end) in enumerate(pairwise([*times.tolist(), last])):
        rng.start(first)
        plan = check(agent.plan(problem, state, rng), first)
        belief[:, k] = np.nan if plan.start_value is None else plan.start_value
        alive[:, k] = [survival(mdp, policy) for policy in plan.policy]
        for patient in range(first, end):
            episodes = play(problem, kernel.prob[None], kernel.base, plan.policy, luck[patient], actions[patient])
            state = agent.update(problem, state, episodes)
            count(0)
        count(len(seeds))
    return alive, belief, state
