"""The numbers of a report: bands, intervals, paired comparisons, slopes and audits of a store's runs.

A *panel* is an environment with a number of episodes; a *family* the panels that differ in the horizon only.  With
fewer than :data:`livarot.experiments.statistics.MIN_SEEDS` seeds there are estimates and no intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np

from livarot.core.ragged import FloatArray
from livarot.experiments.keys import Cell, canonical
from livarot.experiments.statistics import (
    MIN_SEEDS,
    Band,
    Interval,
    Paired,
    band,
    bands,
    iqm,
    iqm_interval,
    log_log_slope,
    mean_interval,
    probability_of_improvement,
    proportion_interval,
)
from livarot.report.runs import CURVES, POINTS, Reduced, Runs, agent_names, environment_names, horizon_of, kept_episodes

RESAMPLES = 1000
LEAST_POINTS = 12
POINTS_IN_ALL = 24_000  # over all cells, so that a store of many cells makes no larger page
MAX_PAIRS = 2000
NO_REGRET = 1e-9  # rounding


class Curve(NamedTuple):
    """Mean over seeds, with both kinds of band, or none."""

    mean: FloatArray
    pointwise: Band | None
    simultaneous: Band | None


@dataclass(frozen=True, eq=False)
class CellSummary:
    """What a report tells of the runs that differ in their seed only."""

    cell: Cell
    panel: int
    agent: int
    seeds: list[int]
    episodes: FloatArray = field(repr=False)  # of the curves, 1-based
    curves: dict[str, Curve] = field(repr=False)
    totals: dict[str, Interval | None]
    values: FloatArray = field(repr=False)  # regret of each seed
    audit: dict[str, Any]


class Panel(NamedTuple):
    """An environment with a number of episodes."""

    name: str
    horizon: int | None
    episodes: int
    family: int


class Comparison(NamedTuple):
    """Two agents of a panel, by seeds and by pairs of runs; lower regret is better."""

    panel: int
    first: int
    second: int
    difference: Paired
    improvement: Interval


class Scaling(NamedTuple):
    """An agent's regret over the horizons of a family at which it has any, and the slope on logarithmic axes."""

    family: int
    agent: int
    cells: list[int]
    slope: Interval | None


@dataclass(frozen=True, eq=False)
class Summary:
    """All of it; agents, panels and families are referred to by their places."""

    runs: Runs = field(repr=False)
    agents: list[str]
    panels: list[Panel]
    families: list[str]
    cells: list[CellSummary] = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    comparisons_left_out: int
    scaling: list[Scaling] = field(repr=False)

    def of_panel(self, panel: int) -> list[CellSummary]:
        return [one for one in self.cells if one.panel == panel]


def summarise(runs: Runs) -> Summary:
    """Everything a report shows; the same runs give the same numbers."""
    named, worlds = agent_names(runs), environment_names(runs)
    agents = {name: index for index, name in enumerate(dict.fromkeys(named.values()))}
    points = int(np.clip(POINTS_IN_ALL // max(1, len(runs.cells)), LEAST_POINTS, POINTS))
    places: dict[tuple[str, int], int] = {}
    panels: list[Panel] = []
    families: dict[str, int] = {}
    family_names: list[str] = []
    cells = []
    for key, cell in runs.cells.items():
        family = families.setdefault(_family(cell), len(families))
        if family == len(family_names):
            family_names.append(cell.environment)
        panel = places.setdefault((worlds[key], cell.episodes), len(places))
        if panel == len(panels):
            panels.append(Panel(worlds[key], horizon_of(cell), cell.episodes, family))
        cells.append(_cell_summary(cell, panel, agents[named[key]], runs.runs[key], points))
    pairs, left_out = _comparisons(cells, len(panels))
    return Summary(runs, list(agents), panels, family_names, cells, pairs, left_out, _scaling(cells, panels))


def _family(cell: Cell) -> str:
    rest = {name: value for name, value in cell.environment_settings.items() if name != "horizon"}
    return canonical([cell.environment, rest, cell.episodes])


def _cell_summary(cell: Cell, panel: int, agent: int, runs: Sequence[Reduced], points: int) -> CellSummary:
    stored = kept_episodes(cell.episodes)
    kept = kept_episodes(len(stored), points)
    curves = {}
    for index, name in enumerate(CURVES):
        found = np.stack([run.curves[index] for run in runs])[:, kept]
        if not np.isnan(found).any():
            curves[name] = _curve(found)
    values = np.array([run.totals["regret"] for run in runs], dtype=np.float64)
    realised = np.array([run.totals["realised_regret"] for run in runs], dtype=np.float64)
    totals: dict[str, Interval | None] = {
        "regret": interval_or_mean(values),
        "iqm": iqm_interval(values, n_resamples=RESAMPLES) if len(values) >= MIN_SEEDS else _alone(float(iqm(values))),
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
        _audit(cell, runs),
    )


def interval_or_mean(values: FloatArray) -> Interval:
    """The mean with its interval; with too few seeds the interval is (-inf, inf)."""
    return mean_interval(values, n_resamples=RESAMPLES) if len(values) >= MIN_SEEDS else _alone(float(values.mean()))


def _alone(value: float) -> Interval:
    return Interval(value, -np.inf, np.inf)


def _curve(found: FloatArray) -> Curve:
    if len(found) < MIN_SEEDS:
        return Curve(found.mean(axis=0), None, None)
    near, whole = bands(found, n_resamples=RESAMPLES)
    return Curve(near.center, near, whole)


def _audit(cell: Cell, runs: Sequence[Reduced]) -> dict[str, Any]:
    """Coverage of theta* and optimism over runs; None where the agent claims neither."""

    def all_of(name: str) -> FloatArray | None:
        found = [run.totals[name] for run in runs]
        return None if any(value is None for value in found) else np.array(found, dtype=np.float64)

    covered, always = all_of("covered"), all_of("always_covered")
    optimistic, gap, inner = all_of("optimistic"), all_of("optimism_gap"), all_of("inner_gap")
    sigma = all_of("sigma_bar")
    delta = cell.agent_settings.get("delta")
    return {
        "sigma_bar": None if sigma is None else float(sigma.mean()),
        "covered": None if covered is None else float(covered.mean()),
        "always_covered": None if always is None else proportion_interval(int(always.sum()), len(always)),
        "promised": 1.0 - delta if isinstance(delta, float) and 0.0 < delta < 1.0 else None,
        "optimistic": None if optimistic is None else float(optimistic.mean()),
        "least_optimism": None if gap is None else float(gap.min()),
        "inner_gap": None if inner is None else float(inner.max()),
    }


def _comparisons(cells: Sequence[CellSummary], n_panels: int) -> tuple[list[Comparison], int]:
    """All pairs of agents of a panel, the panel's best against the others first, up to a limit."""
    wanted: list[tuple[int, CellSummary, CellSummary]] = []
    groups: list[list[CellSummary]] = [[] for _ in range(n_panels)]
    for one in cells:
        groups[one.panel].append(one)
    for group in groups:
        here = sorted(group, key=lambda one: (one.values.mean(), one.agent))
        wanted += [(rank, one, other) for rank, (one, other) in enumerate(islice(combinations(here, 2), MAX_PAIRS))]
    enough = [(rank, one, other) for rank, one, other in wanted if len(set(one.seeds) & set(other.seeds)) >= MIN_SEEDS]
    enough.sort(key=lambda entry: (entry[0], entry[1].panel))
    # pairs with the same seeds go through the bootstrap together, as the columns of one table
    groups_by_seeds: dict[tuple[int, ...], list[tuple[CellSummary, CellSummary, FloatArray]]] = {}
    for _, one, other in enough[:MAX_PAIRS]:
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
    found.sort(key=lambda one: (one.panel, one.difference.estimate, one.first, one.second))
    return found, len(wanted) - len(found)


def _scaling(cells: Sequence[CellSummary], panels: Sequence[Panel]) -> list[Scaling]:
    groups: dict[tuple[int, int], list[int]] = {}
    for index, one in enumerate(cells):
        if panels[one.panel].horizon is not None and one.values.mean() > NO_REGRET:
            groups.setdefault((panels[one.panel].family, one.agent), []).append(index)
    found = []
    for (family, agent), members in sorted(groups.items()):
        members.sort(key=lambda index: panels[cells[index].panel].horizon or 0)
        if len(members) >= 2:
            chosen = [cells[index] for index in members]
            found.append(Scaling(family, agent, members, _slope(chosen, panels)))
    return found


def _slope(chosen: Sequence[CellSummary], panels: Sequence[Panel]) -> Interval | None:
    """None with too few seeds or many seeds without regret; seeds that are the same everywhere go together."""
    if any(len(one.seeds) < MIN_SEEDS or (one.values <= NO_REGRET).mean() > 0.5 for one in chosen):
        return None
    sizes = [float(panels[one.panel].horizon or 0) for one in chosen]
    if all(one.seeds == chosen[0].seeds for one in chosen):
        values = np.stack([one.values for one in chosen], axis=1)
        return log_log_slope(sizes, values, n_resamples=RESAMPLES)
    return log_log_slope(sizes, [one.values for one in chosen], paired=False, n_resamples=RESAMPLES)
