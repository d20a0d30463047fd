"""Regret against a setting: cells that differ in one number only, and the exponent of that number.

An *axis* is a number that a run is made with: a setting of the environment (``horizon``, ``dim``, ``n_states``,
``gap``, ...), the number of ``episodes``, or a setting of the agent (``agent.beta_scale``, ``agent.rule.n_iter``).
Cells that agree in all else are a *line*, lines of one environment a *family*.  An environment or agent that is given
the number of episodes of its runs (``"$episodes"``) is the same one for runs of all lengths.  Numbers that are not
positive have no place on a logarithmic axis and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livarot.core.tolerances import ROUNDING
from livarot.report.resampling import MIN_SEEDS
from livarot.report.statistics import Interval, log_log_slope
from livarot.sweeps.experiment.keys import Cell, canonical
from livarot.sweeps.experiment.names import Name, agent_names, environment_names, flat_settings, left_out, of_any_length

if TYPE_CHECKING:
    from livarot.report.read_runs import Runs
    from livarot.report.summary import CellSummary

EPISODES, AGENT = "episodes", "agent."
FIRST = ("horizon", EPISODES, "dim", "n_states", "n_actions")  # the others follow in alphabetical order, agents' last
AXIS_NAMES = {"horizon": "horizon H", EPISODES: "episodes T", "dim": "dimension d", "n_states": "states S"}
NOT_A_SIZE = ("seed", AGENT + "seed")
MAX_LINES = 2000
RESAMPLES = 1000  # for every interval of a report


class Family(NamedTuple):
    """What the members have in common: the environment's name without the axis, and T (None: T is the axis)."""

    axis: str
    name: Name
    episodes: int | None


class Scaling(NamedTuple):
    """An agent's regret along an axis where it has any, and the slope on logarithmic axes.

    ``agent`` is the agent's index; along a setting of agents, that of the member with the smallest one.
    """

    family: int
    agent: int
    name: str
    cells: list[int]
    sizes: list[float]
    slope: Interval | None


def coordinates(cell: Cell) -> dict[str, float]:
    """The positive numbers that a cell is made with, by the name of their axis.

    >>> cell = Cell.of("hard-chain", {"horizon": 5, "gap": 0.1}, "uniform", {}, 100)
    >>> [(name, size) for name, size in coordinates(cell).items() if name in ("horizon", "gap", "episodes")]
    [('gap', 0.1), ('horizon', 5.0), ('episodes', 100.0)]
    """
    found: dict[str, Any] = flat_settings(cell.environment_settings) | {EPISODES: cell.episodes}
    own = flat_settings(of_any_length(cell.agent_settings, cell.episodes))
    found |= {AGENT + name: value for name, value in own.items()}
    return {
        name: float(value)
        for name, value in found.items()
        if type(value) in (int, float) and value > 0 and name not in NOT_A_SIZE
    }


def axis_order(axis: str) -> tuple[int, str]:
    """Where an axis stands among the others."""
    return (FIRST.index(axis) if axis in FIRST else len(FIRST) + axis.startswith(AGENT), axis)


def axis_name(axis: str) -> str:
    return AXIS_NAMES.get(axis, axis)


def scalings(cells: Sequence[CellSummary], runs: Runs) -> tuple[list[Family], list[Scaling]]:
    """All lines of at least two sizes, by axis and family; at most :data:`MAX_LINES` of them."""
    places = [coordinates(one.cell) for one in cells]
    families: list[Family] = []
    lines: list[Scaling] = []
    for axis in sorted({name for place in places for name in place}, key=axis_order):
        here = [k for k, place in enumerate(places) if axis in place and cells[k].values.mean() > ROUNDING]
        if len({places[k][axis] for k in here}) < 2:
            continue
        groups = [found for found in _groups(cells, here, axis) if len({places[k][axis] for k in found}) > 1]
        if not groups:
            continue
        worlds, learners = _names(runs, axis)
        known: dict[str, int] = {}
        for members in groups[: MAX_LINES - len(lines)]:
            members.sort(key=lambda k: places[k][axis])
            cell = cells[members[0]].cell
            episodes = None if axis == EPISODES else cell.episodes
            family = known.setdefault(canonical([*_environment(cell, axis), episodes]), len(families))
            if family == len(families):
                families.append(Family(axis, worlds[cell.key], episodes))
            sizes = [places[k][axis] for k in members]
            chosen = [cells[k] for k in members]
            slope = _slope(sizes, chosen)
            lines.append(Scaling(family, chosen[0].agent, str(learners[cell.key]), members, sizes, slope))
    return families, lines


def _groups(cells: Sequence[CellSummary], here: Sequence[int], axis: str) -> Iterator[list[int]]:
    """Cells that differ in the axis only, in the order of the cells.

    With T as the axis, environments whose ``n_episodes`` is a fixed number come together by it; the others by being
    given the number of episodes of their runs.
    """
    own = [group for group in _grouped(cells, here, axis, tied=False).values() if len(group) > 1]
    yield from own
    if axis == EPISODES:
        taken = {k for group in own for k in group}
        tied = _grouped(cells, here, axis, tied=True).values()
        yield from ([k for k in group if k not in taken] for group in tied)


def _grouped(cells: Sequence[CellSummary], here: Sequence[int], axis: str, *, tied: bool) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for k in here:
        cell = cells[k].cell
        world = _environment(cell, axis, tied=tied)
        agent = left_out(of_any_length(cell.agent_settings, cell.episodes), axis.removeprefix(AGENT))
        settings = agent if axis.startswith(AGENT) else of_any_length(cell.agent_settings, cell.episodes)
        length = None if axis == EPISODES else cell.episodes
        found.setdefault(canonical([*world, cell.agent, settings, length]), []).append(k)
    return found


def _environment(cell: Cell, axis: str, *, tied: bool = True) -> tuple[str, dict[str, Any]]:
    """The environment without the axis."""
    settings = cell.environment_settings
    if axis == EPISODES:
        return cell.environment, of_any_length(settings, cell.episodes) if tied else settings
    return cell.environment, settings if axis.startswith(AGENT) else left_out(settings, axis)


def _names(runs: Runs, axis: str) -> tuple[Mapping[str, Name], Mapping[str, Name]]:
    """Names of environments and agents without the axis, by the keys of cells."""
    called = runs.cells, runs.experiments
    world = None if axis.startswith(AGENT) else "n_episodes" if axis == EPISODES else axis
    agent = axis.removeprefix(AGENT) if axis.startswith(AGENT) else None
    return environment_names(*called, world), agent_names(*called, agent)[0]


def _slope(sizes: Sequence[float], chosen: Sequence[CellSummary]) -> Interval | None:
    """None with too few seeds or many seeds without regret; cells with the same seeds are resampled together."""
    if any(len(one.seeds) < MIN_SEEDS or (one.values <= ROUNDING).mean() > 0.5 for one in chosen):
        return None
    if all(one.seeds == chosen[0].seeds for one in chosen):
        values = np.stack([one.values for one in chosen], axis=1)
        return log_log_slope(sizes, values, n_resamples=RESAMPLES)
    return log_log_slope(sizes, [one.values for one in chosen], paired=False, n_resamples=RESAMPLES)
