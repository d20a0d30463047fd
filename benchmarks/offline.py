"""Plans and evaluations from a log alone: ``python -m benchmarks.offline [--logs 500] [--only PART] ...``

``--only plans`` or ``--only evaluations`` does one of the two parts; ``--json``; ``--figure FILE`` draws the plans.

**Plans.**  A ward (synthetic): patients have one of five levels of health, eight treatments move them up or down a
level, six visits, pay = health.  A treatment's effect is one coefficient, drawn from N(0, 1) for every log; the fit has
all eight of them and a little ridge (.1: some treatments are hardly ever tried).  Three ways to collect a log:

uniform   all treatments equally often: good coverage
expert    the best treatment in 90 % of the visits, any of the others in the rest: poor coverage, of bad treatments
habit     treatment 0 in 90 % of the visits, whatever it is worth: poor coverage, of good treatments

and five plans from the same fit: nominal (the fit is the truth), pessimistic (``livarot.data.plan_pessimistic``, at
95 % and at 50 %), KL-robust (``livarot.data.plan_robust``, 95 %, 60 refits), optimistic
(``livarot.data.plan_optimistic``, 95 %).
Reported: what each claims (its own value), what its policy is truly worth (exactly evaluated), in which share of the
logs the claim is no larger than that, and the difference to the nominal policy, +- one standard error over logs.

**Evaluations.**  Logs of 300 patients, three treatments, four visits: the share of 95 % intervals of
``livarot.data.evaluate_policy`` that hold the true value, with known and with counted behaviour.  The log's policy
plays treatment 0 with probability .4 and the others with .3; the policies to be judged play the best treatment with
probability .5 ("near"), or .9 ("far": a few episodes carry most of the weight).
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import io
import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import livarot
from livarot.data import (
    DataWarning,
    MNLTransition,
    coverage_coefficients,
    evaluate_policy,
    plan_optimistic,
    plan_pessimistic,
    plan_robust,
    read_episodes,
)
from livarot.storage import write_atomic

LEVELS, RIDGE, REFITS = 5, 0.1, 60
SIZES = (20, 80, 320)
LOGS = ("uniform", "expert", "habit")
PLANS = ("nominal", "pessimistic", "pessimistic 50 %", "KL-robust", "optimistic")
DISTANCES = {"near": 0.5, "far": 0.9}
COLOUR = dict(zip(PLANS, ("#222222", "#0072B2", "#56B4E9", "#009E73", "#E69F00"), strict=True))
MARKER = dict(zip(PLANS, "osD^v", strict=True))


class Ward(NamedTuple):
    """The model without its parameter."""

    n_treatments: int
    horizon: int
    problem: livarot.Problem
    sets: dict[tuple[str, str], list[str]]

    @classmethod
    def of(cls, n_treatments: int, horizon: int) -> Ward:
        health, treatments = [str(k) for k in range(LEVELS)], [str(a) for a in range(n_treatments)]
        near = {s: [x for x in health if abs(int(x) - int(s)) <= 1] for s in health}
        sets = {(s, a): near[s] for s in health for a in treatments}
        once = pd.DataFrame([(*pair, x) for pair, own in sets.items() for x in own])
        once.columns = ["state", "action", "next_state"]
        fit = _model(sets, reg=1.0).fit(once)
        return cls(n_treatments, horizon, _to_mdp(fit, horizon, 1e3).problem, sets)

    def truth(self, rng: np.random.Generator) -> livarot.MNLMDP:
        return livarot.MNLMDP(self.problem, rng.normal(size=(1, self.n_treatments)) * self.problem.feature_scale)

    def log(self, truth: livarot.MNLMDP, behaviour: Any, n: int, seed: int) -> pd.DataFrame:
        """n patients, one row per visit."""
        played = livarot.simulate(truth, behaviour, n, seed=seed)
        who, visit = np.divmod(np.arange(n * self.horizon), self.horizon)
        state, action = played.states[:, :-1].ravel(), played.actions.ravel()
        columns = {"state": state, "action": action, "next_state": played.states[:, 1:].ravel()}
        texts = {name: codes.astype(str) for name, codes in columns.items()}
        known = {"probability": behaviour[visit, state, action], "reward": truth.problem.reward[visit, state, action]}
        return pd.DataFrame({"episode": who, "step": visit} | texts | known)

    def fitted(self, log: pd.DataFrame, reg: float) -> tuple[MNLTransition, livarot.MNLMDP]:
        fit = _model(self.sets, reg).fit(log)
        return fit, _to_mdp(fit, self.horizon, None)


def _model(sets: Any, reg: float) -> MNLTransition:
    health = pd.DataFrame({"state": [str(k) for k in range(LEVELS)], "level": np.arange(LEVELS, dtype=float)})
    return MNLTransition(features=["action:level"], reachable=sets, states=health, reg=reg)


def _to_mdp(fit: MNLTransition, horizon: int, bound: float | None) -> livarot.MNLMDP:
    pays = {str(k): k / (LEVELS - 1) for k in range(LEVELS)}
    return fit.to_mdp(pays, horizon, str(LEVELS // 2), param_bound=bound)


def mostly(actions: Any, share: float, shape: tuple[int, int, int]) -> Any:
    """The given actions (H, S) with probability ``share``, the others alike."""
    mixed = np.full(shape, (1.0 - share) / (shape[2] - 1))
    np.put_along_axis(mixed, np.broadcast_to(actions, shape[:2])[..., None].astype(np.int64), share, axis=2)
    return mixed


def behaviour_of(kind: str, truth: livarot.MNLMDP) -> Any:
    shape = truth.problem.reward.shape
    if kind == "uniform":
        return np.full(shape, 1.0 / shape[2])
    return mostly(livarot.solve(truth).policy if kind == "expert" else 0, 0.9, shape)


def worth(mdp: livarot.MNLMDP, policy: Any) -> float:
    return float(mdp.problem.start @ livarot.evaluate(mdp, policy)[0])


def all_plans(fit: MNLTransition, mdp: livarot.MNLMDP, seed: int) -> dict[str, tuple[Any, float]]:
    """Policy and claim of each plan."""
    start = mdp.problem.start
    nominal, worst, half = livarot.solve(mdp), plan_pessimistic(fit, mdp), plan_pessimistic(fit, mdp, 0.5)
    robust = plan_robust(fit, mdp, n_resamples=REFITS, seed=seed)
    hopeful = plan_optimistic(fit, mdp)
    assert hopeful.start_value is not None
    return {
        "nominal": (nominal.policy, float(start @ nominal.value[0])),
        "pessimistic": (worst.policy, worst.lower),
        "pessimistic 50 %": (half.policy, half.lower),
        "KL-robust": (robust.policy, float(start @ robust.value[0])),
        "optimistic": (hopeful.policy[0], float(hopeful.start_value[0])),
    }


def plan_study(n_logs: int, sizes: tuple[int, ...] = SIZES) -> dict[tuple[str, int], dict[str, Any]]:
    """For each kind and size of logs: claims and true values (logs, plans), and what bounds them."""
    ward, found = Ward.of(8, 6), {}
    for kind in LOGS:
        for n in sizes:
            cell: dict[str, list[Any]] = {name: [] for name in ("claim", "true", "best", "behaviour", "information")}
            for seed in range(n_logs):
                truth = ward.truth(np.random.default_rng(seed))
                behaviour = behaviour_of(kind, truth)
                fit, mdp = ward.fitted(ward.log(truth, behaviour, n, seed), RIDGE)
                plans = all_plans(fit, mdp, seed)
                cell["claim"].append([claim for _, claim in plans.values()])
                cell["true"].append([worth(truth, policy) for policy, _ in plans.values()])
                cell["best"].append(worth(truth, livarot.solve(truth).policy))
                cell["behaviour"].append(worth(truth, behaviour))
                cell["information"].append([coverage_coefficients(fit, mdp, plans[x][0])[2] for x in PLANS[:2]])
            found[kind, n] = {name: np.array(values) for name, values in cell.items()}
    return found


def _mean(values: Any) -> list[float]:
    return [float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))]


def plan_table(found: dict[tuple[str, int], dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for (kind, n), cell in found.items():
        for j, name in enumerate(PLANS):
            row = {"log": kind, "episodes": n, "plan": name, "true": _mean(cell["true"][:, j])}
            row["claim"] = _mean(cell["claim"][:, j])
            row["claim_holds"] = float((cell["claim"][:, j] <= cell["true"][:, j]).mean())
            row["more_than_nominal"] = _mean(cell["true"][:, j] - cell["true"][:, 0])
            row["optimum"], row["behaviour"] = float(cell["best"].mean()), float(cell["behaviour"].mean())
            row["information"] = float(np.median(cell["information"][:, j])) if j < 2 else None
            rows.append(row)
    return rows


def evaluation_study(n_logs: int, n_episodes: int = 300) -> list[dict[str, Any]]:
    """Which share of the intervals holds the true value; errors beside standard errors."""
    ward, found = Ward.of(3, 4), {}
    truth = ward.truth(np.random.default_rng(7))  # one truth, many logs
    shape, best = truth.problem.reward.shape, livarot.solve(truth).policy
    behaviour = mostly(0, 0.4, shape)
    for seed in range(n_logs):
        log = ward.log(truth, behaviour, n_episodes, seed)
        fit, mdp = ward.fitted(log, 0.0)
        for known, (distance, share) in product((True, False), DISTANCES.items()):
            policy = mostly(best, share, shape)
            result = evaluate_policy(
                read_episodes(log, mdp, probability="probability" if known else None), policy, fit, mdp
            )
            for name, one in result.estimates.items():
                value = worth(truth, behaviour if name == "behaviour" else policy)
                own = found.setdefault((distance, "known" if known else "counts", name), [])
                own.append(
                    (one.lower <= value <= one.upper, one.value - value, one.standard_error, result.effective[-1])
                )
    rows = []
    for (distance, made, name), values in found.items():
        inside, error, claimed, size = np.array(values, dtype=float).T
        row = {"policy": distance, "behaviour": made, "estimator": name, "covered": float(inside.mean())}
        row |= {"bias": _mean(error), "rms_error": float(np.sqrt((error**2).mean()))}
        rows.append(row | {"standard_error": float(claimed.mean()), "effective": float(np.median(size))})
    return rows


def draw(found: dict[tuple[str, int], dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    panels = figure.subplots(1, len(LOGS), sharey=True)
    sizes = sorted({n for _, n in found})
    for axes, kind in zip(panels, LOGS, strict=True):
        cells = [found[kind, n] for n in sizes]
        for j, name in enumerate(PLANS):
            means = np.array([_mean(cell["true"][:, j]) for cell in cells])
            beside = np.array(sizes) * 1.04 ** (j - len(PLANS) // 2)  # equal values stay visible
            style = {"color": COLOUR[name], "marker": MARKER[name], "ms": 5}
            axes.errorbar(beside, means[:, 0], yerr=means[:, 1], linewidth=1.0, label=f"{name}: true", **style)
            if name in ("nominal", "pessimistic"):
                claims = [cell["claim"][:, j].mean() for cell in cells]
                axes.plot(beside, claims, linestyle=":", mfc="none", label=f"{name}: claimed", **style)
        axes.axhline(float(cells[0]["best"].mean()), color="0.6", linewidth=1.0, label="optimum")
        axes.axhline(
            float(cells[0]["behaviour"].mean()), color="0.6", linewidth=1.0, linestyle="--", label="the log's policy"
        )
        axes.set(xscale="log", xlabel="logged episodes", title=f"{kind} log")
        axes.set_xticks(sizes, [str(n) for n in sizes])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("value, mean over logs")
    panels[-1].legend(
        title="bars: ± 1 standard error;\nplans stand side by side", title_fontsize=8, frameon=False, fontsize=8,
        loc="center left", bbox_to_anchor=(1.0, 0.5),
    )  # fmt: skip
    return figure


def report(plans: list[dict[str, Any]], evaluations: list[dict[str, Any]], n_logs: int) -> None:
    print(f"{n_logs} logs each; +- one standard error")
    if plans:
        report_plans(plans)
    if evaluations:
        print("intervals of 95 %: share that holds the true value, rms error, mean standard error")
    for row in evaluations:
        left = f"{row['policy']:<6}{row['behaviour']:<8}{row['estimator']:<24}{100 * row['covered']:6.1f} %"
        print(f"{left}{row['rms_error']:9.4f}{row['standard_error']:9.4f}  effective {row['effective']:.0f}")


def report_plans(plans: list[dict[str, Any]]) -> None:
    print(f"{'log':<9}{'episodes':>8}  {'plan':<18}{'claims':>8}{'true':>8}  holds   more than nominal  information")
    for row in plans:
        more = f"{row['more_than_nominal'][0]:+7.3f} +- {row['more_than_nominal'][1]:.3f}"
        told = "" if row["information"] is None else f"{row['information']:13.1f}"
        left = f"{row['log']:<9}{row['episodes']:>8}  {row['plan']:<18}{row['claim'][0]:8.3f}{row['true'][0]:8.3f}"
        print(f"{left}  {row['claim_holds']:.3f}  {more}{told}")
    print(f"optimum {plans[0]['optimum']:.3f}")
    worst = min(row["claim_holds"] for row in plans if row["plan"] == "pessimistic")
    print(f"pessimistic value <= true value of its policy: at least {100 * worst:.1f} % of the logs of each kind")
    for kind in LOGS[1:]:
        gains = [row["more_than_nominal"] for row in plans if (row["log"], row["plan"]) == (kind, "pessimistic")]
        verdict = "no worse" if all(mean > -2.0 * error for mean, error in gains) else "WORSE"
        print(f"{kind} logs: the pessimistic policy is {verdict} than the nominal one")


def main() -> None:
    parser = argparse.ArgumentParser(description="Plans and evaluations from a log alone.")
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--only", choices=("plans", "evaluations"), default=None)
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # that coverage is poor is the subject
        found = plan_study(options.logs) if options.only != "evaluations" else {}
        plans = plan_table(found)
        evaluations = evaluation_study(options.logs) if options.only != "plans" else []
    if options.json:
        print(json.dumps({"plans": plans, "evaluations": evaluations}, indent=1))
    else:
        report(plans, evaluations, options.logs)
    if options.figure is not None and found:
        buffer = io.BytesIO()
        draw(found).savefig(buffer, format="png", dpi=150)
        write_atomic(options.figure, buffer.getvalue())


if __name__ == "__main__":
    main()
