"""Are the promises kept?  A run is compared with everything the theory says about it.

:func:`audit` reads a result and the facts it carries (:mod:`livarot.theory.audits.facts`), so a stored run is enough.

``coverage``   theta* in the confidence sets: share of (seed, episode), of seeds that never miss, per stage, and per
               stage and tenth of the run.  The theory promises all sets at all times with probability 1 - delta.
``optimism``   the plan's value >= V*: share and worst shortfall; the same for the upper value (of certified maxima),
               which is >= V* whenever theta* is covered.
``inner``      first-order gap of the inner maxima, and what the certificate leaves open (upper - plan).
``sigma_bar``  of each seed's trajectory, against 1/2, the sharp limit of any trajectory, and, under pi* only,
               1/(2 sqrt H), its sharp limit and the exact value.
``regret``     against the upper bound, term by term, the lower bound and the published rates.

A verdict is ``holds``, ``fails`` or ``-`` where nothing is promised: the theory's sets need its radius (beta_scale 1 or
more and the theory's lambda); a run with a smaller radius is measured all the same.  Statistical verdicts allow three
standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.tolerances import ROUNDING
from livarot.errors import bad
from livarot.model.problem import MNLMDP
from livarot.theory.audits.facts import problem_facts
from livarot.theory.audits.lines import FAILS, HOLDS, NOTHING, Audit, Line, Lines, shown
from livarot.theory.audits.promises import constants_from, promises
from livarot.theory.variance import sigma_bar_limit, sigma_bar_star_limit

BLOCKS = 10  # parts of the run in the table of coverage per episode and stage
ERRORS = 3.0  # standard errors that a statistical verdict allows


class Result(Protocol):
    """What an audit reads of a result; :class:`livarot.running.result.RunResult` has all of it."""

    @property
    def agent(self) -> str: ...
    @property
    def settings(self) -> str: ...
    @property
    def horizon(self) -> int: ...
    @property
    def n_episodes(self) -> int: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def facts(self) -> dict[str, Any]: ...
    @property
    def regret(self) -> FloatArray: ...
    @property
    def sigma_bar(self) -> FloatArray: ...
    @property
    def optimism_gap(self) -> np.ma.MaskedArray[Any, Any]: ...
    @property
    def optimism_loss(self) -> np.ma.MaskedArray[Any, Any]: ...
    @property
    def inner_gap(self) -> np.ma.MaskedArray[Any, Any]: ...
    @property
    def covered(self) -> np.ma.MaskedArray[Any, Any]: ...
    def stage_covered(self, parameter: int) -> np.ma.MaskedArray[Any, Any]: ...


@checked
def audit(result: Result, mdp: MNLMDP | Iterable[MNLMDP] | None = None) -> Audit:
    """Compare a run with what the theory promises for it.

    The facts in ``result`` suffice.  ``mdp``, the model of the run or one per seed, replaces them, and adds the exact
    kappa (or its proved bracket), which tightens the upper bound; a result without facts needs it for the sections
    ``sigma_bar`` and ``regret``.

    >>> import livarot
    >>> run = livarot.run(livarot.envs.hard_chain(4), livarot.agents.Livarot.theory(50), 50, seed=range(4))
    >>> found = audit(run)
    >>> found.coverage["episodes"], found.optimism["share"], len(found.failures)
    (1.0, 1.0, 0)
    """
    if not hasattr(result, "stage_covered") or not isinstance(getattr(result, "facts", None), Mapping):
        raise bad(
            "result", f"{type(result).__name__} is not the result of a run", cure="pass what livarot.run returned"
        )
    result = getattr(result, "normalised", result)  # bounds are for rewards in [0, 1]
    models = _models(mdp)
    facts = dict(result.facts)
    if models:
        own = problem_facts(models)
        _check_same(facts, own)
        facts |= own
    delta = facts.get("agent", {}).get("failure_level")
    bounds = _bounds(result, facts, models) if _full(facts) else None
    sections: dict[str, dict[str, Any]] = {}
    lines: list[Line] = []
    for name, part in (
        ("coverage", _coverage(result, delta, _claimed(facts))),
        ("optimism", _optimism(result)),
        ("inner", _inner(result)),
        ("sigma_bar", _sigma_bar(result, facts)),
        ("regret", _regret(result, bounds, facts)),
    ):
        sections[name], new = part
        lines += [Line(name, *line) for line in new]
    n_seeds, n_episodes = result.regret.shape
    return Audit(result.agent, result.settings, n_seeds, n_episodes, facts, **sections, lines=tuple(lines))


def _coverage(result: Result, delta: float | None, claimed: bool) -> tuple[dict[str, Any], Lines]:
    inside = result.covered
    valid = ~np.ma.getmaskarray(inside)
    if not valid.any():
        return {"episodes": None, "seeds_always": None, "failure_level": delta}, [
            ("sets that hold theta*", "no confidence sets")
        ]
    hit = inside.filled(True)
    always = float(hit.all(axis=1).mean())
    n_seeds = len(hit)
    shares, never, blocks = _stages(result, valid)
    found: dict[str, Any] = {
        "episodes": float(hit[valid].mean()),
        "seeds_always": always,
        "failure_level": delta,
        "claimed": claimed,
        "first_miss": _first_miss(hit),
        "per_stage": shares,
        "per_stage_always": never,
        "per_block_and_stage": blocks,
        "standard_error": None if delta is None else math.sqrt(delta * (1.0 - delta) / n_seeds),
    }
    verdict = NOTHING
    if delta is not None and claimed:
        allowed = delta + ERRORS * found["standard_error"]
        found["allowed_misses"] = allowed
        verdict = HOLDS if 1.0 - always <= allowed else FAILS
    lines: Lines = [
        ("sets", _kind(result.facts)),
        ("theta* in all sets, share of episodes", f"{found['episodes']:.4g}"),
        ("seeds that never miss", f"{always:.4g}", _promise(result.facts, delta), verdict),
    ]
    if shares is not None and never is not None:
        worst = int(np.argmin(shares))
        lines.append((f"worst stage ({worst}), share of episodes", f"{shares[worst]:.4g}"))
        worst = int(np.argmin(never))
        lines.append((f"worst stage ({worst}), seeds that never miss", f"{never[worst]:.4g}"))
    if not claimed:
        lines.append(("radius", _radius_note(result.facts)))
    return found, lines


def _stages(
    result: Result, valid: np.ndarray[Any, Any]
) -> tuple[list[float] | None, list[float] | None, list[list[float | None]] | None]:
    """Per stage: share of episodes, share of seeds that never miss, shares in each block of episodes."""
    if np.ma.getmaskarray(result.stage_covered(0)).all():
        return None, None, None
    cuts = [result.n_episodes * b // BLOCKS for b in range(BLOCKS + 1)]
    share, never = [], []
    blocks: list[list[float | None]] = [[] for _ in range(BLOCKS)]
    for parameter in range(result.n_parameters):
        hit = result.stage_covered(parameter).filled(True)
        share.append(float(hit[valid].mean()))
        never.append(float(hit.all(axis=1).mean()))
        for b, (first, last) in enumerate(pairwise(cuts)):
            here = valid[:, first:last]
            blocks[b].append(float(hit[:, first:last][here].mean()) if here.any() else None)
    return share, never, blocks


def _first_miss(hit: np.ndarray[Any, Any]) -> int | None:
    """The earliest episode (0-based) of any seed in which theta* is outside."""
    missed = ~hit.all(axis=0)
    return int(np.argmax(missed)) if missed.any() else None


def _optimism(result: Result) -> tuple[dict[str, Any], Lines]:
    gap = result.optimism_gap
    names = ("share", "worst_shortfall", "certified_share", "certified_worst_shortfall", "certified_share_when_covered")
    found: dict[str, Any] = dict.fromkeys(names)
    if gap.count() == 0:
        return found, [("plans that believe >= V*", "no plan values")]
    found["share"], found["worst_shortfall"] = _shortfall(gap)
    lines: Lines = [
        ("plan's value >= V*, share of episodes", f"{found['share']:.4g}"),
        ("worst shortfall of the plan", f"{found['worst_shortfall']:.3g}"),
    ]
    upper = gap + result.optimism_loss
    if upper.count():
        found["certified_share"], found["certified_worst_shortfall"] = _shortfall(upper)
        lines.append(("upper value (certified maxima) >= V*, share of episodes", f"{found['certified_share']:.4g}"))
        inside = result.covered
        both = ~np.ma.getmaskarray(upper) & ~np.ma.getmaskarray(inside) & inside.filled(False)
        if both.any():
            when = float(np.mean(np.ma.getdata(upper)[both] >= -ROUNDING * (1.0 + result.horizon)))
            found["certified_share_when_covered"] = when
            lines.append(("the same where theta* is covered", f"{when:.4g}", "1", HOLDS if when == 1.0 else FAILS))
    return found, lines


def _shortfall(gap: np.ma.MaskedArray[Any, Any]) -> tuple[float, float]:
    numbers = gap.compressed()
    return float(np.mean(numbers >= -ROUNDING)), float(max(-numbers.min(), 0.0))


def _inner(result: Result) -> tuple[dict[str, Any], Lines]:
    gap, loss = result.inner_gap, result.optimism_loss
    found = {"gap_mean": _mean(gap), "gap_max": _max(gap), "open_mean": _mean(loss), "open_max": _max(loss)}
    if found["gap_max"] is None:
        return found, [("first-order gap", "no inner maxima")]
    lines: Lines = [("first-order gap, largest, of the value range", f"{found['gap_max']:.2g}")]
    if found["open_max"] is not None:
        lines.append(("certificate minus plan, mean (largest)", f"{found['open_mean']:.3g} ({found['open_max']:.3g})"))
    return found, lines


def _mean(x: np.ma.MaskedArray[Any, Any]) -> float | None:
    return float(x.compressed().mean()) if x.count() else None


def _max(x: np.ma.MaskedArray[Any, Any]) -> float | None:
    return float(x.compressed().max()) if x.count() else None


def _sigma_bar(result: Result, facts: Mapping[str, Any]) -> tuple[dict[str, Any], Lines]:
    sigma = result.sigma_bar
    limit, star_limit = sigma_bar_limit(result.horizon), sigma_bar_star_limit(result.horizon)
    if facts.get("problem", {}).get("outcomes_pay"):  # then the last step is uncertain too
        horizon = float(result.horizon)
        limit, star_limit = math.sqrt((horizon + 1) * (2 * horizon + 1) / 24) / horizon, 0.5 / math.sqrt(horizon)
    star = facts["truth"]["sigma_bar_star"] if _full(facts) else None
    found: dict[str, Any] = {
        "mean": float(sigma.mean()),
        "min": float(sigma.min()),
        "max": float(sigma.max()),
        "half": 0.5,
        "limit": limit,
        "optimal_bound": 0.5 / math.sqrt(result.horizon),
        "optimal_limit": star_limit,
        "star": star,
    }
    lines: Lines = [
        ("of the trajectories, mean", f"{found['mean']:.4g}"),
        _at_most("largest over seeds", found["max"], 0.5),
        _at_most("largest over seeds, sharp limit", found["max"], limit),
    ]
    if star is not None:
        worst = facts["truth"]["sigma_bar_worst"]["max"]
        found["worst"] = worst
        lines.append(_at_most("largest over seeds, worst trajectory of the model", found["max"], worst))
        lines.append(_at_most("under pi*, exact", star["max"], found["optimal_bound"]))
        lines.append(_at_most("under pi*, sharp limit", star["max"], star_limit))
    return found, lines


def _regret(result: Result, bounds: dict[str, Any] | None, facts: Mapping[str, Any]) -> tuple[dict[str, Any], Lines]:
    final = result.regret.sum(axis=1)
    found: dict[str, Any] = {
        "mean": float(final.mean()),
        "standard_error": float(final.std(ddof=1) / math.sqrt(len(final))) if len(final) > 1 else None,
        "min": float(final.min()),
        "max": float(final.max()),
        "trivial": float(result.horizon * result.n_episodes),
        "bounds": bounds,
    }
    spread = "" if found["standard_error"] is None else f" +- {found['standard_error']:.2g}"
    lines: Lines = [
        ("after the last episode, mean", f"{found['mean']:.4g}{spread}"),
        _at_most("largest over seeds, H T", found["max"], found["trivial"]),
    ]
    if bounds is None:
        lines.append(("upper and lower bounds", "the result carries no facts", "pass mdp="))
        return found, lines
    promised = _claimed(facts) and facts["agent"].get("n_explore", 0) is None  # None: the burn-in of the theorem
    upper, least = bounds["upper"], bounds["upper_least"]
    lines.append(
        (
            "largest over seeds, the theorem",
            f"{found['max']:.4g}",
            f"<= {shown(upper, bounds['log_upper'])}{' (says nothing)' if bounds['vacuous'] else ''}",
            NOTHING if not promised else _verdict(least is None or found["max"] <= least),
        )
    )
    lines += [
        (f"  term {name}", "", shown(value, bounds["log_terms"][name])) for name, value in bounds["terms"].items()
    ]
    lines.append(("largest over seeds, without its burn-in", f"{found['max']:.4g}", f"<= {_as_run(bounds)}"))
    lines.append(("mean; lower bound of the worst problem", f"{found['mean']:.4g}", f"{bounds['lower']:.4g}"))
    for row in bounds["rates"]:
        rate = row["rate"]
        share = "-" if not rate else f"{found['mean'] / rate:.3g}"
        lines.append((f"mean over the rate of {row['name']}", share, "" if rate is None else f"{rate:.4g}"))
    lines += [("condition that fails", condition) for condition in bounds["failed"]]
    return found, lines


def _bounds(result: Result, facts: Mapping[str, Any], models: list[MNLMDP]) -> dict[str, Any]:
    """The promises at the mean sigma_bar^2 of the seeds, and the upper bound at the smallest, which holds for all."""
    constants = constants_from(facts, models[0].problem if models else None)
    agent = facts.get("agent", {})
    given: dict[str, Any] = {"failure_level": agent.get("failure_level"), "n_explore": agent.get("n_explore")}
    middle = math.sqrt(float(np.mean(result.sigma_bar**2)))
    found = promises(constants, result.n_episodes, sigma_bar=middle, **given)
    least = promises(constants, result.n_episodes, sigma_bar=float(result.sigma_bar.min()), **given)
    return found | {"upper_least": least["upper"], "kappa": constants.kappa.to_json()}


def _as_run(bounds: Mapping[str, Any]) -> str:
    return shown(bounds["upper_as_run"], bounds["log_upper_as_run"])


def _at_most(quantity: str, value: float, bound: float) -> tuple[str, ...]:
    return quantity, f"{value:.4g}", f"<= {bound:.4g}", _verdict(value <= bound + ROUNDING * (1.0 + bound))


def _verdict(kept: bool) -> str:
    return HOLDS if kept else FAILS


def _claimed(facts: Mapping[str, Any]) -> bool:
    """Are the agent's sets promised to hold theta* (``promised_coverage`` of its facts)?"""
    return facts.get("agent", {}).get("promised_coverage") is not None


def _kind(facts: Mapping[str, Any]) -> str:
    """What is known of the sets: "sound" only where the proof is ours and tested."""
    if not _claimed(facts):
        return "nothing is promised about them"
    return "sound" if facts["agent"].get("sound") else "promised by a published theory"


def _promise(facts: Mapping[str, Any], delta: float | None) -> str:
    """The share that is promised."""
    return f">= {1.0 - delta:g}" if delta is not None and _claimed(facts) else "nothing"


def _radius_note(facts: Mapping[str, Any]) -> str:
    agent = facts.get("agent", {})
    if not isinstance(agent.get("beta_scale"), int | float):
        return "nothing promised"
    step = f", eta {agent['step_size']}" if "step_size" in agent else ""
    return f"x {agent['beta_scale']:g}{step}, lambda {agent.get('reg')}: nothing promised"


def _full(facts: Mapping[str, Any]) -> bool:
    return "problem" in facts and "truth" in facts


def _models(mdp: MNLMDP | Iterable[MNLMDP] | None) -> list[MNLMDP]:
    if mdp is None:
        return []
    models = [mdp] if isinstance(mdp, MNLMDP) else list(mdp)
    for index, model in enumerate(models):
        if not isinstance(model, MNLMDP):
            raise bad("mdp", f"{type(model).__name__} is not an MNLMDP", index=index, cure="pass the model of the run")
    if not models:
        raise bad("mdp", "is empty", cure="pass the model of the run, or None")
    return models


def _check_same(stored: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """The model handed over must be the one of the run, as far as the facts can tell."""
    if not _full(stored):
        return
    for part in ("problem", "truth"):
        for name, value in stored[part].items():
            other = own[part].get(name)
            if name != "n_models" and other is not None and not _close(value, other):
                raise bad("mdp", f"its {name} is {other}, the run's is {value}", cure="pass the model of this run")


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping):
        return all(_close(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return bool(a == b)
