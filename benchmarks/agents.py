"""The field side by side: ``python -m benchmarks.agents [--json] [--quick] [--only chain-5] [--agents livarot]``.

Exact regret after T = 1000 episodes of every agent on the problems below, seeds 300..319 (300..304 with ``--quick``,
which tunes nothing), with its default settings and with settings tuned for the problem.  Every agent has the same
budget: the best of at most 12 points of a grid on seeds 1000..1004, by ``livarot.tune``.  Bands are 95 % bootstrap
intervals of the mean over seeds.

Speed is episodes per CPU second of the default settings, all seeds together as replicas in one thread, kernels warm,
and also of one seed alone.  All agents know the rewards, and the reachable sets too; only the tabular ``*-any`` treat
every next state as possible, as public libraries do.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import joblib
import numpy as np

import livarot
from livarot import agents, envs

N_EPISODES = 1000
TUNING = range(1000, 1005)
FIRST_SEED = 300  # of the evaluation; smaller seeds were used while defaults were chosen
Models = Callable[[Sequence[int]], Any]


def chains(horizon: int, seeds: Sequence[int]) -> list[livarot.MNLMDP]:
    """One sign vector per seed, gap 0.5/H."""
    return [envs.hard_chain(horizon, gap=0.5 / horizon, seed=seed) for seed in seeds]


def same(name: str, settings: dict[str, Any], _seeds: Sequence[int]) -> livarot.MNLMDP:
    return envs.make(name, **settings)


PROBLEMS: dict[str, Models] = {f"chain-{horizon}": partial(chains, horizon) for horizon in (5, 10, 20)}
PROBLEMS |= {
    f"river-{features}-{'shared' if shared else 'stages'}": partial(
        same, "river-swim", {"features": features, "shared_parameter": shared}
    )
    for features in ("one-hot", "moves")
    for shared in (True, False)
}
PROBLEMS |= {
    "six-arms": partial(same, "six-arms", {}),
    "kl-robust": partial(same, "kl-robust", {"n_states": 12, "horizon": 8}),
    "small-sigma": partial(same, "random", {"horizon": 8, "gap": 0.05, "sigma_bar": 0.005}),
}

OMD = {"step_size": [1.0, 3.0], "reg": [1.0, 3.0], "beta_scale": [0.01, 0.05, 0.2]}
RIVAL = {"step_size": [1.0, 10.0], "reg": [1.0, 10.0], "beta_scale": [0.005, 0.02, 0.08]}
MLE = {"reg": [0.3, 1.0, 3.0]}
SCALES = [3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
FIELD: dict[str, tuple[Any, dict[str, list[Any]]]] = {  # the default, and the grid of at most 12 points
    "livarot": (agents.Livarot(), OMD),
    "bonus-livarot": (agents.BonusLivarot(), OMD),
    "thompson-livarot": (agents.ThompsonLivarot(), OMD),
    "livarot-paper": (agents.Livarot.paper(), {"beta_scale": SCALES}),
    "ucrl-mnl-ol": (agents.UCRLMNLOL(), RIVAL),
    "ucrl-mnl-plus": (agents.UCRLMNLPlus(), RIVAL | {"beta_scale": [1e-4, 3e-4, 1e-3]}),
    "ucrl-mnl-ll": (agents.UCRLMNLLL(), MLE | {"beta_scale": [0.005, 0.02, 0.05, 0.2]}),
    "ucrl-mnl": (agents.UCRLMNL(), MLE | {"beta_scale": [3e-4, 1e-3, 3e-3, 1e-2]}),
    "ons-ucrl-mnl": (agents.ONSUCRLMNL(), MLE | {"beta_scale": [1e-4, 3e-4, 1e-3, 3e-3]}),
    "rrl-mnl": (agents.RRLMNL(), MLE | {"beta_scale": [1e-5, 3e-5, 1e-4, 3e-4]}),
    "orrl-mnl": (agents.ORRLMNL(), RIVAL | {"beta_scale": [3e-5, 1e-4, 3e-4]}),
    "ucbvi": (agents.UCBVI(), {"bonus_scale": SCALES}),
    "ucbvi-any": (agents.UCBVI(known_support=False), {"bonus_scale": SCALES}),
    "psrl": (agents.PSRL(), {"alpha0": [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0]}),
    "psrl-any": (agents.PSRL(alpha0=None, known_support=False), {"alpha0": [0.05, 0.1, 0.2, 0.5, 1.0, None]}),
    "rlsvi": (agents.RLSVI(), {"noise_scale": [0.01, 0.03, 0.1, 0.3], "rest_scale": [0.0, 0.1, 1.0]}),
    "ucrl2": (agents.UCRL2(), {"width_scale": SCALES}),
    "certainty-equivalent": (
        agents.CertaintyEquivalent(),
        {"step_size": [0.3, 1.0, 3.0, 10.0], "reg": [0.3, 1.0, 3.0]},
    ),
    "uniform": (agents.Uniform(), {}),
}


def bootstrap(values: Any, n_draws: int = 4000) -> tuple[float, float]:
    """95 % percentile interval of the mean."""
    draws = np.random.default_rng(1).choice(values, (n_draws, len(values))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def judged(prefix: str, result: livarot.RunResult) -> dict[str, Any]:
    final = np.asarray(result.cumulative_regret[:, -1])
    return {
        f"{prefix}_mean": float(final.mean()),
        f"{prefix}_se": float(final.std(ddof=1) / np.sqrt(len(final))),
        f"{prefix}_band": bootstrap(final),
        f"{prefix}_median": float(np.median(final)),
        f"{prefix}_worst": float(final.max()),
    }


def cell(problem: str, name: str, n_seeds: int, tuned: bool) -> dict[str, Any]:
    """One agent on one problem."""
    agent, grid = FIELD[name]
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    models = PROBLEMS[problem](seeds)
    one = models[0] if isinstance(models, list) else models
    livarot.run(one, agent, 3)  # kernels, once
    begin = time.process_time()
    default = livarot.run(models, agent, N_EPISODES, seed=seeds)
    seconds = time.process_time() - begin
    begin = time.process_time()
    livarot.run(one, agent, N_EPISODES // 5)
    alone = time.process_time() - begin
    row = {"env": problem, "agent": name} | judged("default", default)
    settings: dict[str, Any] = {}
    if tuned and grid:
        found = livarot.tune(PROBLEMS[problem](TUNING), agent, grid, N_EPISODES, TUNING)
        settings = found.to_dict()["best"]
        best = livarot.run(models, found.best, N_EPISODES, seed=seeds)
        row |= judged("regret", best)
    else:
        row |= judged("regret", default)
    return row | {
        "settings": settings,
        "n_seeds": n_seeds,
        "n_episodes": N_EPISODES,
        "episodes_per_cpu_second": n_seeds * N_EPISODES / seconds,
        "episodes_per_cpu_second_one_seed": N_EPISODES // 5 / alone,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: mean ± s.e. with tuned settings / with the defaults; the best default of each problem in bold."""
    problems = [name for name in PROBLEMS if any(row["env"] == name for row in rows)]
    by = {(row["env"], row["agent"]): row for row in rows}
    names = [name for name in FIELD if any(row["agent"] == name for row in rows)]
    learners = [name for name in names if name != "uniform"]
    best = {
        env: min((by[env, name]["default_mean"], name) for name in learners if (env, name) in by)[1]
        for env in problems
        if any((env, name) in by for name in learners)
    }
    lines = [
        "| agent | " + " | ".join(problems) + " | episodes/s |",
        "|---|" + "---:|" * (len(problems) + 1),
    ]
    for name in names:
        cells, speeds = [], []
        for env in problems:
            row = by.get((env, name))
            if row is None:
                cells.append("–")
                continue
            own = f"{row['default_mean']:.3g}±{row['default_se']:.2g}"
            cells.append(
                f"{row['regret_mean']:.3g}±{row['regret_se']:.2g} / {f'**{own}**' if best.get(env) == name else own}"
            )
            speeds.append(row["episodes_per_cpu_second"])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {min(speeds):.2g} to {max(speeds):.2g} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="a list of objects on stdout; the table goes to stderr")
    parser.add_argument("--quick", action="store_true", help="5 seeds and no tuning")
    parser.add_argument("--only", default=",".join(PROBLEMS), help="problems, separated by commas")
    parser.add_argument("--agents", default=",".join(FIELD), help="agents, separated by commas")
    parser.add_argument("--workers", type=int, default=1, help="processes over cells")
    options = parser.parse_args()
    chosen = [(p, a) for p in options.only.split(",") for a in options.agents.split(",")]
    unknown = [x for p, a in chosen for x in (p, a) if x not in PROBLEMS and x not in FIELD]
    if unknown:
        parser.error(f"no {unknown[0]!r}; problems: {', '.join(PROBLEMS)}; agents: {', '.join(FIELD)}")
    seeds = 5 if options.quick else 20
    work = (joblib.delayed(cell)(p, a, seeds, not options.quick) for p, a in chosen)
    rows: list[dict[str, Any]] = []
    for row in joblib.Parallel(n_jobs=options.workers, return_as="generator")(work):
        rows.append(row)
        print(
            f"{row['env']:22} {row['agent']:20} {row['regret_mean']:9.1f} default {row['default_mean']:9.1f} "
            f"{row['episodes_per_cpu_second']:10.0f}/s",
            file=sys.stderr,
            flush=True,
        )
    print(table(rows), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
