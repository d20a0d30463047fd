"""What a proof costs: ``python -m benchmarks.sound [--json] [--part coverage] [--part regret] [--episodes 1000]``.

*coverage*: over 500 seeds, is theta* in the sets of all stages in all of 1000 episodes at once, for the three levels of
``SoundLivarot`` (promise: 95 %) and for its maximum over the set itself, for ``Livarot.theory()`` and for the default
``Livarot()``; the smallest share of the seeds over stages and episodes too; how often optimism was violated among the
seeds that were covered (it must be never); and how conservative a level is: beta over the 95 % quantile (over seeds) of
what it has to bound, the largest L(theta*) - L(theta_hat) over stages, at the end of the run.

*regret*: exact regret of the same agents after 1000, 10^4 and 10^5 episodes, with standard error, median and worst
seed, and the share of seeds that lock in (regret of the last fifth more than half of the uniform policy's).  20 seeds,
5 at 10^5 episodes.  The maximum over the set itself needs pairs with two outcomes: the chain and ``park``.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import livarot
from livarot import agents, envs
from livarot.estimation.level_set import LevelSettings, level_sets

DELTA = 0.05
Models = Callable[[Sequence[int]], Any]


def chains(bound: str | None, seeds: Sequence[int]) -> list[livarot.MNLMDP]:
    return [envs.hard_chain(10, gap=0.05, seed=seed, param_bound=bound) for seed in seeds]  # type: ignore[arg-type]


def same(name: str, settings: dict[str, Any], _seeds: Sequence[int]) -> livarot.MNLMDP:
    return envs.make(name, **settings)


PROBLEMS: dict[str, Models] = {
    "chain-10": partial(chains, None),
    "chain-10-tight": partial(chains, "tight"),  # |theta*| = B: on the boundary of the ball
    "maintenance": partial(same, "machine-maintenance", {}),
    "random": partial(same, "random", {}),
    "park": partial(same, "park-two-state", {}),
}
ITSELF, TWO_OUTCOMES = "sound-livarot (level set)", ("chain-10", "chain-10-tight", "park")
LEVELS = ("prequential", "mixture", "published")


def field(n_episodes: int) -> dict[str, Any]:
    sound = {f"sound-livarot ({level})": agents.SoundLivarot(failure_level=DELTA, level=level) for level in LEVELS}
    sound[ITSELF] = agents.SoundLivarot(failure_level=DELTA, optimism="level set")
    return sound | {"livarot (theory)": agents.Livarot.theory(n_episodes), "livarot": agents.Livarot()}


class Recorder(agents.BaseAgent[Any]):
    """Plays as another agent and keeps its last state."""

    def __init__(self, agent: Any) -> None:
        self.agent, self.name, self.last = agent, agent.name, None

    def init(self, problem: Any, n_replicas: int = 1) -> Any:
        return self.agent.init(problem, n_replicas)

    def plan(self, problem: Any, state: Any, rng: Any) -> Any:
        return self.agent.plan(problem, state, rng)

    def update(self, problem: Any, state: Any, episodes: Any) -> Any:
        self.last = self.agent.update(problem, state, episodes)
        return self.last


def excess(models: Any, agent: Any, state: Any) -> tuple[float, float]:
    """The mean level at the end, and the 95 % quantile over seeds of the largest L(theta*) - L(theta_hat)."""
    problem = models[0].problem if isinstance(models, list) else models.problem
    theta, history = state.estimate.theta, state.history
    truth = (
        np.stack([m.theta for m in models]) if isinstance(models, list) else np.tile(models.theta, (len(theta), 1, 1))
    )
    reg, surprise = agent._reg(problem), math.log(problem.n_parameters / agent.failure_level)
    settings = LevelSettings(problem.param_bound, reg, surprise, agent.level == "published")
    found = level_sets(problem, theta, history, settings, state.predicted if agent.level == "prequential" else None)
    true = level_sets(problem, truth, history, settings)
    return float(found.beta.mean()), float(np.quantile((true.loss - found.loss).max(axis=1), 0.95))


def coverage(problem: str, name: str, n_seeds: int, n_episodes: int) -> dict[str, Any]:
    seeds, agent = range(n_seeds), Recorder(field(n_episodes)[name])
    models = PROBLEMS[problem](seeds)
    result = livarot.run(models, agent, n_episodes, seed=seeds)
    every = np.asarray(result.covered.all(axis=1))
    stages = [float(result.stage_covered(k).mean(axis=0).min()) for k in range(result.n_parameters)]
    upper = np.asarray((result.optimism_gap + result.optimism_loss).min(axis=1))
    row: dict[str, Any] = {
        "part": "coverage",
        "env": problem,
        "agent": name,
        "n_seeds": n_seeds,
        "n_episodes": n_episodes,
    }
    row |= {
        "joint": float(every.mean()),
        "least_stage": min(stages),
        "not_optimistic_when_covered": int((upper[every] < -1e-9).sum()),
    }
    if name.startswith("sound"):
        row["beta"], row["excess_95"] = excess(models, agent.agent, agent.last)
    return row


def regret(problem: str, name: str, n_seeds: int, n_episodes: int) -> dict[str, Any]:
    seeds, agent = range(1000, 1000 + n_seeds), field(n_episodes)[name]
    models = PROBLEMS[problem](seeds)
    began = time.process_time()
    result = livarot.run(models, agent, n_episodes, seed=seeds)
    seconds = time.process_time() - began
    final, last = result.regret.sum(axis=1), result.regret[:, -n_episodes // 5 :].mean(axis=1)
    uniform = livarot.run(models, agents.Uniform(), 1, seed=seeds).regret[:, 0]
    return {
        "part": "regret", "env": problem, "agent": name, "n_seeds": n_seeds, "n_episodes": n_episodes,
        "mean": float(final.mean()), "se": float(final.std(ddof=1) / math.sqrt(n_seeds)),
        "median": float(np.median(final)), "worst": float(final.max()),
        "locked_in": float((last > 0.5 * uniform).mean()), "uniform": float(uniform.mean() * n_episodes),
        "covered": float(result.covered.all(axis=1).mean()),
        "episodes_per_cpu_second": n_seeds * n_episodes / seconds,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per line on stdout")
    parser.add_argument("--part", action="append", choices=["coverage", "regret"], help="both unless said")
    parser.add_argument("--only", default=",".join(PROBLEMS), help="problems, separated by commas")
    parser.add_argument("--agents", default=",".join(field(1)), help="agents, separated by commas")
    parser.add_argument("--seeds", type=int, default=500, help="of the coverage")
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 10_000, 100_000], help="of the regret")
    options = parser.parse_args()
    problems, names = options.only.split(","), options.agents.split(",")
    for part in options.part or ["coverage", "regret"]:
        lengths = [1000] if part == "coverage" else options.episodes
        for n_episodes in lengths:
            for problem in problems:
                for name in names:
                    if name == ITSELF and problem not in TWO_OUTCOMES:
                        continue
                    if part == "coverage":
                        row = coverage(problem, name, options.seeds, n_episodes)
                    else:
                        row = regret(problem, name, 5 if n_episodes >= 100_000 else 20, n_episodes)
                    shown = (
                        json.dumps(row)
                        if options.json
                        else "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values())
                    )
                    print(shown, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
