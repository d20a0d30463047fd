"""The numbers of a report: bands, intervals, paired comparisons, slopes and audits of a store's runs.

A *panel* is an environment with a number of episodes; :mod:`livarot.report.scaling` has *families*, which differ in one
number.  With fewer than :data:`livarot.report.statistics.MIN_SEEDS` seeds there are estimates and no intervals.

Regrets and optimism are in the units of the environment's rewards; stored runs are normalised, for rewards in [0, 1].
Exact regret is never negative, so the lower ends of its intervals and bands are at least 0.  *Controls* do not learn:
the oracle is given the optimal policy, and the uniform policy uses no data.  They stand in the table, and in curves and
comparisons where they are asked for.  Page, figures and table print numbers by
:func:`told` and :func:`percent`, from the full numbers.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, product
from typing import Any, NamedTuple

import numpy as np

from livarot import agents
from livarot.agents.base import Promise, declared_by, promise_of
from livarot.core.arrays import FloatArray
from livarot.core.tolerances import ROUNDING
from livarot.errors import LivarotError
from livarot.report.read_runs import CURVES, POINTS, Reduced, Runs, horizon_of, kept_episodes
from livarot.report.resampling import MIN_SEEDS, Band
from livarot.report.scaling import RESAMPLES, Family, Scaling, scalings
from livarot.report.statistics import (
    Interval,
    Paired,
    band,
    bands,
    iqm,
    iqm_interval,
    mean_interval,
    probability_of_improvement,
    proportion_interval,
)
from livarot.sweeps.experiment.keys import Cell, built, unit_scales
from livarot.sweeps.experiment.names import Name, agent_names, environment_names

LEAST_POINTS = 12
POINTS_IN_ALL = 24_000  # over all cells, so that many cells do not make a larger page
MAX_PAIRS = 2000
PLAIN_DIGITS = 4  # of a number without an interval
SCALED = ("regret", "realised_regret", "optimism_gap")  # totals that are differences of values
LARGE, SMALL = 1e6, 1e-3  # beyond these, numbers are printed with powers of ten


class Curve(NamedTuple):
    """Mean over seeds, with both kinds of band, or none."""

    mean: FloatArray
    pointwise: Band | None
    simultaneous: Band | None


@dataclass(frozen=True, eq=False)
class CellSummary:
    """What a report says about a cell, the runs that differ in their seed only."""

    cell: Cell
    panel: int
    agent: int
    seeds: list[int]
    episodes: FloatArray = field(repr=False)  # of the curves, 1-based
    curves: dict[str, Curve] = field(repr=False)
    totals: dict[str, Interval | None]
    values: FloatArray = field(repr=False)  # regret of each seed
    scales: FloatArray | None = field(repr=False)  # of each seed: regret over the normalised one; None: unknown
    audit: dict[str, Any]

    @property
    def normalised(self) -> Interval | None:
        """Mean regret for rewards in [0, 1], where that is another number."""
        if self.scales is None or (self.scales == 1.0).all():
            return None
        return _not_below_zero(interval_or_mean(self.values / self.scales))


class Panel(NamedTuple):
    """An environment with a number of episodes; ``parts`` are those of its name."""

    name: str
    horizon: int | None
    episodes: int
    parts: Name


class Comparison(NamedTuple):
    """Two agents of a panel, by seeds and by pairs of runs; lower regret is better."""

    panel: int
    first: int
    second: int
    difference: Paired
    improvement: Interval


@dataclass(frozen=True, eq=False)
class Summary:
    """The whole report; agents, panels and families are referred to by their index."""

    runs: Runs = field(repr=False)
    agents: list[str]
    controls: frozenset[int]  # those of the agents that do not learn
    panels: list[Panel]
    families: list[Family]
    cells: list[CellSummary] = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    comparisons_left_out: int
    scaling: list[Scaling] = field(repr=False)
    with_controls: bool = False  # in curves and comparisons

    def of_panel(self, panel: int) -> list[CellSummary]:
        return [one for one in self.cells if one.panel == panel]


def summarise(runs: Runs, *, controls: bool = False) -> Summary:
    """Everything a report shows; the same runs give the same numbers.  ``controls`` shows those in curves too."""
    called = runs.cells, runs.experiments
    named, order = agent_names(*called)
    agents = {name: index for index, name in enumerate(order)}
    worlds = environment_names(*called)
    points = int(np.clip(POINTS_IN_ALL // max(1, len(runs.cells)), LEAST_POINTS, POINTS))
    places: dict[tuple[str, int], int] = {}
    panels: list[Panel] = []
    known: dict[str, float | None] = {}
    cells, idle = [], set()
    for key, cell in runs.cells.items():
        panel = places.setdefault((str(worlds[key]), cell.episodes), len(places))
        if panel == len(panels):
            panels.append(Panel(str(worlds[key]), horizon_of(cell), cell.episodes, worlds[key]))
        agent = agents[str(named[key])]
        scales = unit_scales(cell, [run.seed for run in runs.runs[key]], known)
        cells.append(_cell_summary(cell, panel, agent, in_units(runs.runs[key], scales), points, scales))
        if is_control(cell.agent, cell.agent_settings):
            idle.add(agent)
    cells.sort(key=lambda one: (one.panel, one.agent))
    pairs, left_out = _comparisons(cells, idle, len(panels))
    families, scaling = scalings(cells, runs)
    return Summary(runs, order, frozenset(idle), panels, families, cells, pairs, left_out, scaling, controls)


def in_units(runs: Sequence[Reduced], scales: FloatArray | None) -> Sequence[Reduced]:
    """Runs in the units of the environment's rewards; unchanged where these are in [0, 1], or not known here."""
    if scales is None or (scales == 1.0).all():
        return runs
    changed = []
    for run, scale in zip(runs, scales, strict=True):
        totals = {
            name: value * float(scale) if name in SCALED and value is not None else value
            for name, value in run.totals.items()
        }
        changed.append(replace(run, curves=run.curves * scale, totals=totals))
    return changed


def is_control(agent: str, settings: Mapping[str, Any]) -> bool:
    """Is the agent a control?  One that wraps another agent counts as that agent."""
    inner = settings.get("agent")
    control = agent in agents.registry and not declared_by(agents.registry._entry(agent).factory).learns
    return control or (isinstance(inner, dict) and is_control(str(inner.get("name")), inner))


def _cell_summary(
    cell: Cell, panel: int, agent: int, runs: Sequence[Reduced], points: int, scales: FloatArray | None
) -> CellSummary:
    stored = kept_episodes(cell.episodes)
    kept = kept_episodes(len(stored), points)
    curves = {}
    for index, name in enumerate(CURVES):
        found = np.stack([run.curves[index] for run in runs])[:, kept]
        if not np.isnan(found).any():
            curves[name] = _curve(found, never_negative=name == "regret")
    values = np.array([run.totals["regret"] for run in runs], dtype=np.float64)
    realised = np.array([run.totals["realised_regret"] for run in runs], dtype=np.float64)
    totals: dict[str, Interval | None] = {
        "regret": _not_below_zero(interval_or_mean(values)),
        "iqm": _not_below_zero(iqm_interval(values, n_resamples=RESAMPLES))
        if len(values) >= MIN_SEEDS
        else _alone(float(iqm(values))),
        "realised_regret": interval_or_mean(realised),
    }
    seeds = [run.seed for run in runs]
    return CellSummary(
        cell,
        panel,
        agent,
        seeds,
        np.asarray(stored[kept] + 1, dtype=np.float64),
        curves,
        totals,
        values,
        scales,
        _audit(cell, runs),
    )


def interval_or_mean(values: FloatArray) -> Interval:
    """The mean with its interval; with too few seeds the interval is (-inf, inf)."""
    return mean_interval(values, n_resamples=RESAMPLES) if len(values) >= MIN_SEEDS else _alone(float(values.mean()))


def _alone(value: float) -> Interval:
    return Interval(value, -np.inf, np.inf)


def _not_below_zero(found: Interval) -> Interval:
    return found._replace(low=max(found.low, min(found.estimate, 0.0))) if math.isfinite(found.low) else found


def _curve(found: FloatArray, *, never_negative: bool) -> Curve:
    if len(found) < MIN_SEEDS:
        return Curve(found.mean(axis=0), None, None)
    near, whole = bands(found, n_resamples=RESAMPLES)
    if never_negative:
        near, whole = (one._replace(low=np.maximum(one.low, np.minimum(one.center, 0.0))) for one in (near, whole))
    return Curve(near.center, near, whole)


def promised(cell: Cell) -> Promise | None:
    """What is promised about the sets of a cell's agent; None: nothing, or the agent is not known here.

    >>> str(promised(Cell.of("hard-chain", {}, "livarot", {"failure_level": 0.1}, 50, "theory")))
    '90 %, by its theory'
    >>> str(promised(Cell.of("hard-chain", {}, "sound-livarot", {}, 50)))
    '95 %, sound'
    >>> promised(Cell.of("hard-chain", {}, "livarot", {}, 50)) is None
    True
    """
    try:
        made = agents.make(cell.agent, **{name: built(value) for name, value in cell.agent_settings.items()})
    except (LivarotError, TypeError):  # the oracle among them, which needs a policy
        return None
    return promise_of(made)


def contradicted(audit: Mapping[str, Any]) -> bool:
    """Is the share of runs that were always covered below the promise, even at the upper end of its interval?"""
    always, promised = audit["always_covered"], audit["promised"]
    return always is not None and promised is not None and always.high < promised.level


def _audit(cell: Cell, runs: Sequence[Reduced]) -> dict[str, Any]:
    """Coverage of theta* and optimism over runs; None where the agent claims neither."""

    def all_of(name: str) -> FloatArray | None:
        found = [run.totals[name] for run in runs]
        return None if any(value is None for value in found) else np.array(found, dtype=np.float64)

    covered, always = all_of("covered"), all_of("always_covered")
    optimistic, gap, inner = all_of("optimistic"), all_of("optimism_gap"), all_of("inner_gap")
    sigma = all_of("sigma_bar")
    return {
        "sigma_bar": None if sigma is None else float(sigma.mean()),
        "covered": None if covered is None else float(covered.mean()),
        "always_covered": None if always is None else proportion_interval(int(always.sum()), len(always)),
        "stages_always": None if always is None else _stages(cell, runs, covered),
        "promised": None if always is None else promised(cell),
        "optimistic": None if optimistic is None else float(optimistic.mean()),
        "least_optimism": None if gap is None else float(gap.min()),
        "inner_gap": None if inner is None else float(inner.max()),
    }


def _stages(cell: Cell, runs: Sequence[Reduced], covered: FloatArray | None) -> FloatArray | None:
    """Per confidence set (stage), the share of runs in which it never missed theta*; None where it was not recorded."""
    found = [run.inside for run in runs]
    count = max((len(one) for one in found if one is not None), default=0)
    if covered is not None and covered.max() == 0.0:  # no episode tells how many sets there are
        with contextlib.suppress(LivarotError, TypeError):
            count = max(count, cell.model(runs[0].seed).problem.n_parameters)
    if count == 0 or any(one is None for one in found):
        return None
    table = np.zeros((len(found), count))
    for row, one in zip(table, found, strict=True):
        row[: len(one)] = one  # type: ignore[arg-type]
    return np.asarray(table.mean(axis=0))


def _comparisons(cells: Sequence[CellSummary], controls: set[int], n_panels: int) -> tuple[list[Comparison], int]:
    """Pairs of agents of a panel up to a limit, and how many are left out: see :func:`_pairs` for their order."""
    wanted: list[tuple[int, int, CellSummary, CellSummary]] = []
    total = 0
    groups: list[list[CellSummary]] = [[] for _ in range(n_panels)]
    for one in cells:
        groups[one.panel].append(one)
    for panel, group in enumerate(groups):
        total += len(group) * (len(group) - 1) // 2
        pairs = islice(_pairs(group, controls), MAX_PAIRS)
        wanted += [(rank, panel, one, other) for rank, (one, other) in enumerate(pairs)]
    enough = [entry for entry in wanted if len(set(entry[2].seeds) & set(entry[3].seeds)) >= MIN_SEEDS]
    enough = sorted(enough, key=lambda entry: entry[:2])[:MAX_PAIRS]
    places = {(panel, one.agent, other.agent): rank for rank, panel, one, other in enough}
    # pairs with the same seeds go through the bootstrap together, as the columns of one table
    groups_by_seeds: dict[tuple[int, ...], list[tuple[CellSummary, CellSummary, FloatArray]]] = {}
    for _, _, one, other in enough:
        shared, here_first, here_second = np.intersect1d(one.seeds, other.seeds, return_indices=True)
        away = one.values[here_first] - other.values[here_second]
        groups_by_seeds.setdefault(tuple(shared.tolist()), []).append((one, other, away))
    found = []
    for shared_seeds, members in groups_by_seeds.items():
        center, low, high = band(np.stack([away for _, _, away in members], axis=1), n_resamples=RESAMPLES)
        for column, (one, other, _) in enumerate(members):
            difference = Paired(float(center[column]), float(low[column]), float(high[column]), len(shared_seeds))
            better = probability_of_improvement(one.values, other.values)
            found.append(Comparison(one.panel, one.agent, other.agent, difference, better))
    found.sort(key=lambda one: (one.panel, places[one.panel, one.first, one.second]))
    return found, total - len(found)


def _pairs(group: Sequence[CellSummary], controls: set[int]) -> Iterator[tuple[CellSummary, CellSummary]]:
    """The best learner against the others, then the other learners; then learners against controls, and controls."""
    here = sorted(group, key=lambda one: (one.values.mean(), one.agent))
    learners = [one for one in here if one.agent not in controls]
    idle = [one for one in here if one.agent in controls]
    yield from combinations(learners, 2)
    yield from product(learners, idle)
    yield from combinations(idle, 2)


def best_learners(summary: Summary, cells: Sequence[CellSummary]) -> set[int]:
    """The agents with the least mean regret among at least two that learn."""
    means = {one.agent: float(one.values.mean()) for one in cells if one.agent not in summary.controls}
    least = min(means.values(), default=0.0)
    return {agent for agent, mean in means.items() if mean <= least + ROUNDING} if len(means) > 1 else set()


# -------------------------------------------------------------------- numbers as text
def told(values: Iterable[float] | None, zero: float = ROUNDING) -> list[str]:
    """A number, or an estimate with the ends of its interval, as text: the only rounding of printed numbers.

    An interval gets two digits of half its width, a number alone four digits; an interval without ends is left out.
    A number of at most ``zero`` in size is a rounding error and becomes 0.

    >>> told((35.5442, 22.2178, 56.579)), told((0.6740001, 0.674, 0.674)), told([128.04])
    (['36', '22', '57'], ['0.6740', '0.6740', '0.6740'], ['128.0'])
    >>> told((2.5e7, 2.1e7, 3.0e7)), told((3.0, -math.inf, math.inf))
    (['2.50e7', '2.10e7', '3.00e7'], ['3.000'])
    """
    found = [] if values is None else [0.0 if abs(x) <= zero else x for x in values if math.isfinite(x)]
    found = found[:1] if len(found) == 2 else found
    largest = max((abs(x) for x in found), default=0.0)
    if largest == 0.0:
        return ["0" for _ in found]
    power = math.floor(math.log10(largest))
    width = (found[2] - found[1]) / 2.0 if len(found) == 3 else 0.0
    decimals = PLAIN_DIGITS - 1 - power
    if width > ROUNDING * largest:
        decimals = 1 - math.floor(math.log10(width))
    if SMALL <= largest < LARGE:
        return [_fixed(x, decimals) for x in found]
    return [f"{_fixed(x / 10.0**power, decimals + power)}e{power}" if x else "0" for x in found]


def _fixed(value: float, decimals: int) -> str:
    """With this many decimals; without a sign if only zeros are left."""
    text = f"{round(value, decimals):.{max(decimals, 0)}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def percent(values: Iterable[float] | None) -> list[str]:
    """Shares in percent, with one decimal.

    >>> percent([0.95]), percent((0.875, 0.529, 0.978))
    (['95.0'], ['87.5', '52.9', '97.8'])
    """
    return [] if values is None else [f"{100.0 * x:.1f}" for x in values if math.isfinite(x)]
