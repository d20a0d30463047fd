"""The field side by side, tuned with equal budgets: ``python -m benchmarks.agents --store FILE [--only chain-5] ...``.

Exact regret after T = 1000 episodes on the problems below.  For every agent and problem

*default*  the default settings, on the held-out seeds 1000..1199
*tune*     40 points, the same budget for everyone: a coarse grid of at most 24 points over wide ranges, then a pattern
           search from its best point: each number in turn a step of the grid up and down (beyond the grid where the
           best is at its edge) from the best point so far, half the step where all these points are known.  All 40 are
           tried on seeds 0..9, the best twelve of them on 0..29, the best five of these on 0..99 (successive halving)
*tuned*    the best of these five on the held-out seeds; ``edge`` names settings whose best value is the smallest or
           largest of all that were tried: then the search ended before its budget was enough

with mean, standard error, median, worst seed and the lock-in rate: the share of seeds that lose more than half of the
uniform policy's regret in the last fifth of the episodes.  There is a column for the oracle that lacks only the signs,
on the chain, with a bias that differs between stages (which it knows) and without, and on ``park``
(``livarot.theory.sign_oracle``, ``candidate_oracle``).  ``park`` has the published signs, all +1, and ``park-signs``
new ones for each seed.  ICU-Sepsis is too large to be tuned, or for 200 seeds: default settings on the seeds
1000..1019, and new plans after 1, 2, 3, 4, 6, 8, 11, ... patients for every agent, as in ``livarot sepsis``.

Every result is one line of FILE, written when it is there: the same command goes on where it was interrupted, and
several may share a file if they have different problems or agents.  ``--table`` prints FILE as two Markdown tables
(means, and what a mean hides), ``--json`` as the list that ``benchmarks.agents_figure`` draws, both of the problems and
agents that are named.  RiverSwim with known
reachable sets is historical (the plan at theta = 0 is optimal) and not among the problems.
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
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import livarot
from livarot import agents, envs
from livarot.core.arrays import FloatArray
from livarot.model.probabilities import transition_kernel
from livarot.planning.optimistic.rules import JointMaximum, VarianceBonus
from livarot.studies.sepsis.experiment import replan_times, survival, treat
from livarot.theory import candidate_oracle, sign_oracle

N_EPISODES = 1000
HELD_OUT = range(1000, 1200)
BUDGET = 40
ROUNDS = (range(10), range(10, 30), range(30, 100))  # seeds
KEPT = (12, 5)  # points that are tried in the second and third round
Models = Callable[[Sequence[int]], Any]


def chains(horizon: int, dim: int, jitter: float, seeds: Sequence[int]) -> list[livarot.MNLMDP]:
    """One sign vector per seed, gap 0.5/H."""
    gap = 0.5 / horizon
    return [envs.jittered_chain(horizon, dim=dim, gap=gap, seed=seed, bias_jitter=jitter) for seed in seeds]


def same(name: str, settings: dict[str, Any], _seeds: Sequence[int]) -> livarot.MNLMDP:
    return envs.make(name, **settings)


def fresh(name: str, settings: dict[str, Any], seeds: Sequence[int]) -> list[livarot.MNLMDP]:
    """A model of its own for each seed."""
    return [envs.make(name, seed=seed, **settings) for seed in seeds]


CHAINS = {"chain-5": (5, 2), "chain-10": (10, 2), "chain-20": (20, 2), "chain-30": (30, 2)}
CHAINS |= {"chain-5-d4": (5, 4), "chain-10-d4": (10, 4), "chain-20-d4": (20, 4)}
PROBLEMS: dict[str, Models] = {name: partial(chains, *size, 0.0) for name, size in CHAINS.items()}
JITTERED = {"jitter-.5": 0.5, "jitter-1": 1.0}
PROBLEMS |= {name: partial(chains, 10, 2, jitter) for name, jitter in JITTERED.items()}
PROBLEMS |= {
    "kl-robust": partial(same, "kl-robust", {"n_states": 12, "horizon": 8}),
    "park": partial(same, "park-two-state", {}),
    "park-signs": partial(fresh, "park-two-state", {}),
    "maintenance": partial(same, "machine-maintenance", {}),
    "six-arms": partial(same, "six-arms", {}),
    "small-sigma": partial(same, "random", {"horizon": 8, "gap": 0.05, "sigma_bar": 0.005}),
    "random": partial(same, "random", {}),
    "river-unknown": partial(same, "river-swim-unknown", {}),
    "lock": partial(fresh, "combination-lock", {}),
    "sparse": partial(fresh, "sparse", {}),
    "sepsis-d4": partial(same, "icu-sepsis", {}),
    "sepsis-d5": partial(same, "icu-sepsis", {"learn_nominal": True}),
}
HOSPITALS = ("sepsis-d4", "sepsis-d5")
FEW_HELD_OUT = range(1000, 1020)


def powers(first: float, last: float, step: float = 0.5) -> list[float]:
    """Exponents of ten; as a set of choices for a setting, it may be left at both ends."""
    return [float(x) for x in np.arange(first, last + step / 2, step)]


OMD = {"step_size": powers(0.0, 1.0), "reg": powers(-0.5, 0.5, 1.0), "beta_scale": powers(-3.0, 0.0, 1.0)}
RIVAL = OMD | {"beta_scale": powers(-4.5, -1.5, 1.0)}
MLE = {"reg": powers(-1.0, 1.0), "beta_scale": powers(-4.0, 0.0, 1.0)}
MLE_WIDE = {"reg": powers(-1.0, 1.0, 1.0), "beta_scale": powers(-6.0, 0.0, 1.0)}
ONE = powers(-4.0, 1.0, 0.25)
RULES = {"rule": [VarianceBonus(), JointMaximum()]}  # not a number: every choice is in the coarse grid
ADAPTIVE = RULES | {"beta_scale": powers(-3.0, 0.0), "reg": [0.0]}
Choices = dict[str, list[Any]]
FIELD: dict[str, tuple[Any, Choices]] = {  # the default, and the coarse grid of at most 24 points
    "livarot": (agents.Livarot(), OMD),
    "adaptive-livarot": (agents.AdaptiveLivarot(), ADAPTIVE),
    "adaptive-livarot-pooled": (agents.AdaptiveLivarot(pooling=True), ADAPTIVE),
    "bonus-livarot": (agents.BonusLivarot(), OMD),
    "thompson-livarot": (agents.ThompsonLivarot(), OMD),
    "sound-livarot": (agents.SoundLivarot(), {}),
    "livarot-paper": (agents.Livarot.paper(), {"beta_scale": ONE}),
    "ucrl-mnl-ol": (agents.UCRLMNLOL(), RIVAL),
    "ucrl-mnl-ll": (agents.UCRLMNLLL(), MLE),
    "ucrl-mnl-plus": (agents.UCRLMNLPlus(), RIVAL),
    "ucrl-mnl": (agents.UCRLMNL(), MLE_WIDE),
    "ons-ucrl-mnl": (agents.ONSUCRLMNL(), MLE_WIDE),
    "rrl-mnl": (agents.RRLMNL(), MLE_WIDE),
    "orrl-mnl": (agents.ORRLMNL(), RIVAL),
    "rlsvi": (agents.RLSVI(), {"noise_scale": powers(-3.0, 0.5), "rest_scale": powers(-2.0, 0.0, 1.0)}),
    "ucbvi-any": (agents.UCBVI(known_support=False), {"bonus_scale": ONE}),
    "psrl-any": (agents.PSRL(alpha0=None, known_support=False), {"alpha0": powers(-2.0, 1.0, 0.125)}),
    "ucbvi": (agents.UCBVI(), {"bonus_scale": ONE}),
    "psrl": (agents.PSRL(), {"alpha0": powers(-2.0, 1.0, 0.125)}),
    "ucrl2": (agents.UCRL2(), {"width_scale": ONE}),
    "certainty-equivalent": (agents.CertaintyEquivalent(), {"step_size": powers(-0.5, 1.5), "reg": powers(-1.5, 0.5)}),
    "uniform": (agents.Uniform(), {}),
}


ONLY = {"adaptive-livarot-pooled": {*CHAINS, "jitter-.5", "jitter-1"}}  # elsewhere there is nothing to pool


class Store:
    """One JSON object per line; an entry is known by its ``key``."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row

    def of(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The entry of a key, made and written if there is none yet."""
        if key not in self.rows:
            self.rows[key] = {"key": key} | make()
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(self.rows[key]) + "\n")
        return self.rows[key]


Point = tuple[Any, ...]  # an exponent of ten, or a choice, for every setting


def settings_of(grid: Choices, point: Point) -> dict[str, Any]:
    """The numbers have three digits."""
    pairs = zip(grid, point, strict=True)
    return {name: float(f"{10.0**x:.3g}") if isinstance(x, float) else x for name, x in pairs}


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: x if isinstance(x, float) else type(x).__name__ for name, x in settings.items()}


def treated(mdp: livarot.MNLMDP, agent: Any, seeds: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """In a hospital: the regret (seeds, patients), with few plans, and that of the uniform policy (seeds,)."""
    kernel, times, problem = transition_kernel(mdp), replan_times(N_EPISODES), mdp.problem
    even = np.full((problem.horizon, problem.n_states, problem.n_actions), 1.0 / problem.n_actions)
    optimum = float(problem.start @ livarot.solve(mdp).value[0])
    # one after the other: a plan has millions of numbers
    alive = np.concatenate([treat(mdp, kernel, agent, [seed], times, lambda _: None)[0] for seed in seeds])
    regret = np.repeat(optimum - alive[:, :-1], np.diff(times), axis=1)
    return regret, np.full(len(seeds), optimum - survival(mdp, even))


def played(problem: str, agent: Any, seeds: Sequence[int]) -> dict[str, Any]:
    """Regret over seeds, with what a mean hides."""
    models = PROBLEMS[problem](seeds)
    begin = time.process_time()
    if problem in HOSPITALS:
        seeds = FEW_HELD_OUT
        regret, uniform = treated(models, agent, seeds)
        seconds = time.process_time() - begin
    else:
        regret = livarot.run(models, agent, N_EPISODES, seed=seeds).regret
        seconds = time.process_time() - begin
        uniform = livarot.run(models, agents.Uniform(), 1, seed=seeds).regret[:, 0]
    final, last = regret.sum(axis=1), regret[:, -N_EPISODES // 5 :].mean(axis=1)
    draws = np.random.default_rng(1).choice(final, (4000, len(final))).mean(axis=1)
    return {
        "mean": float(final.mean()),
        "se": float(final.std(ddof=1) / np.sqrt(len(final))),
        "band": [float(x) for x in np.quantile(draws, (0.025, 0.975))],
        "median": float(np.median(final)),
        "worst": float(final.max()),
        "locked_in": float((last > 0.5 * uniform).mean()),
        "n_seeds": len(final),
        "episodes_per_cpu_second": len(final) * N_EPISODES / seconds,
    }


def search(grid: Choices, score: Callable[[Point], float]) -> list[Point]:
    """The coarse grid and the pattern search from its best point: BUDGET points, the best first."""
    found = {point: score(point) for point in product(*grid.values())}
    numbers = [i for i, choices in enumerate(grid.values()) if isinstance(choices[0], float)]
    steps = {
        i: choices[1] - choices[0] if len(choices) > 1 else 0.5
        for i, choices in enumerate(grid.values())
        if i in numbers
    }
    while len(found) < BUDGET:
        best = min(found, key=lambda point: found[point])
        near = [(*best[:i], best[i] + sign * steps[i], *best[i + 1 :]) for i in numbers for sign in (-1, 1)]
        new = next((point for point in near if point not in found), None)
        if new is None:
            steps = {i: step / 2 for i, step in steps.items()}
        else:
            found[new] = score(new)
    return sorted(found, key=lambda point: found[point])


def tuned(store: Store, problem: str, name: str) -> dict[str, Any]:
    """The best point that the budget finds, and its regret on the held-out seeds."""
    base, grid = FIELD[name]
    if (found := store.rows.get(f"{problem}/{name}/tuned")) is not None:
        return found

    def tried(point: Point, last: int) -> float:
        """The mean over the seeds of all rounds up to one."""
        settings, sums = settings_of(grid, point), 0.0
        for seeds in ROUNDS[: last + 1]:
            key = f"{problem}/{name}/{json.dumps(shown(settings))}/{seeds[0]}-{seeds[-1]}"
            sums += len(seeds) * store.of(key, partial(tried_once, problem, replace(base, **settings), seeds))["mean"]
        return sums / (ROUNDS[last].stop)

    points = left = search(grid, lambda point: tried(point, 0))
    for last, kept in enumerate(KEPT, 1):
        left = sorted(left[:kept], key=lambda point: tried(point, last))
    best = left[0]
    ends = [(min(column), max(column)) if isinstance(column[0], float) else () for column in zip(*points, strict=True)]
    edge = [name for name, x, end in zip(grid, best, ends, strict=True) if x in end]

    def judged() -> dict[str, Any]:
        settings = settings_of(grid, best)
        return played(problem, replace(base, **settings), HELD_OUT) | {"settings": shown(settings), "edge": edge}

    return store.of(f"{problem}/{name}/tuned", judged)


def tried_once(problem: str, agent: Any, seeds: Sequence[int]) -> dict[str, Any]:
    result = livarot.run(PROBLEMS[problem](seeds), agent, N_EPISODES, seed=seeds)
    return {"mean": float(result.regret.sum(axis=1).mean())}


def oracle_of(store: Store, problem: str) -> None:
    """The regret of the oracle that lacks only the signs, where there are signs."""
    if problem in CHAINS:
        horizon, dim = CHAINS[problem]
        found = partial(sign_oracle, horizon, N_EPISODES, 0.5 / horizon, dim, n_runs=4000 if dim == 2 else 1000)
    elif problem in JITTERED:
        found = partial(sign_oracle, 10, N_EPISODES, 0.05, bias_jitter=JITTERED[problem], n_runs=4000)
    elif problem in ("park", "park-signs"):
        found = partial(candidate_oracle, parks(), N_EPISODES, n_runs=4000)
    else:
        return

    def made() -> dict[str, Any]:
        oracle = found()
        return {"mean": oracle.mean, "se": oracle.se, "worst": float(oracle.regret.max())}

    store.of(f"{problem}/sign-oracle", made)


def parks() -> list[livarot.MNLMDP]:
    """The two-state problem with each vector of signs."""
    mdp = envs.make("park-two-state")
    signs = [np.append(x, 1.0) for x in product((-1.0, 1.0), repeat=mdp.problem.dim - 1)]
    return [livarot.MNLMDP(mdp.problem, np.abs(mdp.theta) * x) for x in signs]


def rows_of(store: Store, problems: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """What is there, one row per problem and agent, for the table and the figure."""
    rows = []
    for problem in problems:
        for name in names:
            default = store.rows.get(f"{problem}/{name}/default")
            best = store.rows.get(f"{problem}/{name}/tuned", default)
            if default is None or best is None:
                continue
            row = {"env": problem, "agent": name, "tuned": f"{problem}/{name}/tuned" in store.rows}
            row["oracle_mean"] = store.rows.get(f"{problem}/sign-oracle", {}).get("mean")
            row |= {f"default_{key}": value for key, value in default.items() if key != "key"}
            row |= {f"regret_{key}": value for key, value in best.items() if key != "key"}
            rows.append(row)
    return rows


def number(mean: float, se: float) -> str:
    """A mean with its standard error; neither is shown where it is only rounding."""
    return ("0" if mean < 1e-9 else f"{mean:.3g}") + (f"±{se:.2g}" if se > 1e-9 * (1.0 + mean) else "")


def mean_cell(row: dict[str, Any]) -> str:
    """Default, and tuned after a bar; * where the best point was the smallest or largest that was tried."""
    text = number(row["default_mean"], row["default_se"])
    if not row["tuned"]:
        return text
    return f"{text} / {number(row['regret_mean'], row['regret_se'])}" + ("\\*" if row["regret_edge"] else "")


def tail_cell(row: dict[str, Any]) -> str:
    """Median, worst seed and lock-in rate, default and tuned."""
    kinds = ("default", "regret") if row["tuned"] else ("default",)
    texts = []
    for kind in kinds:
        median, worst, locked = (row[f"{kind}_{name}"] for name in ("median", "worst", "locked_in"))
        texts.append(f"{median:.3g}, {worst:.3g}, {100 * locked:.0f} %")
    return " / ".join(texts)


def table(store: Store, rows: list[dict[str, Any]], cell: Callable[[dict[str, Any]], str]) -> str:
    """Markdown, a line per problem and a column per agent."""
    names = [name for name in FIELD if any(row["agent"] == name for row in rows)]
    by = {(row["env"], row["agent"]): row for row in rows}
    lines = ["| problem | sign oracle | " + " | ".join(names) + " |", "|---|---:|" + "---:|" * len(names)]
    for problem in PROBLEMS:
        if not any(row["env"] == problem for row in rows):
            continue
        oracle = store.rows.get(f"{problem}/sign-oracle")
        cells = [problem, "–" if oracle is None else f"{oracle['mean']:.3g}±{oracle['se']:.2g}"]
        cells += ["–" if (problem, name) not in by else cell(by[problem, name]) for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", type=Path, required=True, help="the file of results, which grows")
    parser.add_argument("--only", default=",".join(PROBLEMS), help="problems, separated by commas")
    parser.add_argument("--agents", default=",".join(FIELD), help="agents, separated by commas")
    parser.add_argument("--no-tuning", action="store_true", help="default settings only")
    parser.add_argument("--table", action="store_true", help="print what is there as Markdown, and compute nothing")
    parser.add_argument("--json", action="store_true", help="print what is there as JSON, and compute nothing")
    options = parser.parse_args()
    store, problems, names = Store(options.store), options.only.split(","), options.agents.split(",")
    unknown = [x for x in problems if x not in PROBLEMS] + [x for x in names if x not in FIELD]
    if unknown:
        parser.error(f"no {unknown[0]!r}; problems: {', '.join(PROBLEMS)}; agents: {', '.join(FIELD)}")
    if options.table or options.json:
        rows = rows_of(store, problems, names)
        tables = table(store, rows, mean_cell) + "\n\n" + table(store, rows, tail_cell)
        print(tables if options.table else json.dumps(rows, indent=1))
        return 0
    for problem in problems:
        oracle_of(store, problem)
        for name in names:
            if problem not in ONLY.get(name, PROBLEMS):
                continue
            found = store.of(f"{problem}/{name}/default", partial(played, problem, FIELD[name][0], HELD_OUT))
            if FIELD[name][1] and not options.no_tuning and problem not in HOSPITALS:
                found = tuned(store, problem, name)
            print(f"{problem:14} {name:24} {found['mean']:9.4g} ± {found['se']:.2g}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
