"""``livarot.tune``: a small grid of settings, judged by exact regret on seeds that no evaluation uses.

The protocol of a fair comparison: every agent has the same budget of settings, is tuned on separate seeds, and is then
evaluated once, with the chosen settings, on other seeds.  So the tuning seeds must be disjoint from ``reserved``, the
seeds of the evaluation: 0..999 unless said otherwise, and tuning uses 1000..1004.

Deterministic: the points are those of the product of the grid, the first key varying slowest; every point sees the same
seeds, hence the same random numbers of the environment.  **Ties**: the first point of the grid whose mean is within
1e-9 (1 + |best|) of the best.
"""

from __future__ import annotations

import difflib
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from livarot.agents.base import Agent
from livarot.core.arrays import FloatArray
from livarot.core.tolerances import TIE
from livarot.errors import Interrupted, LivarotError, bad, require_callable, require_positive_int, shown
from livarot.extras import extras_explained
from livarot.model.episodes import require_agent
from livarot.model.problem import MNLMDP
from livarot.model.shown import html_of, text_of
from livarot.running.result import RunResult
from livarot.running.run import run
from livarot.system.progress import counted
from livarot.system.threads import Progress, Tally

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)
TUNING_SEEDS = range(1000, 1005)
RESERVED = range(1000)  # the seeds of evaluations, which are usually small numbers
METRICS = ("regret", "realised_regret")

Metric = Callable[[RunResult], Any]


@dataclass(frozen=True, eq=False, repr=False)
class TuneResult:
    """Every point of the grid with its scores, in grid order; smaller is better."""

    agent: str
    metric: str
    n_episodes: int
    seeds: tuple[int, ...]
    points: tuple[dict[str, Any], ...]
    agents: tuple[Agent[Any], ...] = field(repr=False)
    scores: FloatArray = field(repr=False)  # (points, seeds)

    def __repr__(self) -> str:
        return text_of(f"TuneResult({self.agent})", self._lines())

    def _repr_html_(self) -> str:
        return html_of(f"TuneResult({self.agent})", self._lines())

    def _lines(self) -> dict[str, str]:
        sizes = f"{len(self.points)} points, {len(self.seeds)} seeds of {self.n_episodes} episodes"
        lines = {"metric": f"{self.metric}, smaller is better", "grid": sizes, "best": repr(self.best)}
        for rank, i in enumerate(np.argsort(self.mean, kind="stable")[:6].tolist(), start=1):
            settings = ", ".join(f"{name}={_plain(value)}" for name, value in self.points[i].items())
            lines[f"{rank}."] = f"{self.mean[i]:.6g} +- {self.se[i]:.2g}  {settings}"
        return lines

    @property
    def mean(self) -> FloatArray:
        """Mean over seeds, (points,)."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def se(self) -> FloatArray:
        """Standard error of the mean over seeds, (points,); 0 for a single seed, where it cannot be estimated."""
        n_seeds = self.scores.shape[1]
        if n_seeds == 1:
            return np.zeros(len(self.scores))
        return np.asarray(self.scores.std(axis=1, ddof=1) / math.sqrt(n_seeds))

    @property
    def best_index(self) -> int:
        """The first point within 1e-9 (1 + |best|) of the least mean."""
        least = float(self.mean.min())
        return int(np.flatnonzero(self.mean <= least + TIE * (1.0 + abs(least)))[0])

    @property
    def best(self) -> Agent[Any]:
        """The agent with the best settings."""
        return self.agents[self.best_index]

    @property
    def best_settings(self) -> dict[str, Any]:
        return dict(self.points[self.best_index])

    @property
    def table(self) -> pd.DataFrame:
        """One row per point, in grid order: its settings, ``mean``, ``se``, ``worst`` seed, and ``best``."""
        with extras_explained():
            import pandas as pd

        frame = pd.DataFrame([dict(point) for point in self.points])
        frame["mean"], frame["se"], frame["worst"] = self.mean, self.se, self.scores.max(axis=1)
        frame["best"] = np.arange(len(self.points)) == self.best_index
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, ready for JSON; settings that are objects are written as their ``repr``."""
        return {
            "agent": self.agent,
            "metric": self.metric,
            "n_episodes": self.n_episodes,
            "seeds": list(self.seeds),
            "best": {name: _plain(value) for name, value in self.best_settings.items()},
            "best_agent": repr(self.best),
            "points": [
                {name: _plain(value) for name, value in point.items()}
                | {"mean": float(m), "se": float(e), "scores": [float(x) for x in row]}
                for point, m, e, row in zip(self.points, self.mean, self.se, self.scores, strict=True)
            ],
        }


def tune(
    mdp: MNLMDP | Sequence[MNLMDP],
    agent: Agent[Any] | type[Agent[Any]],
    grid: Mapping[str, Sequence[Any]],
    n_episodes: int,
    seeds: Iterable[int] = TUNING_SEEDS,
    *,
    workers: int = 1,
    budget: int = 12,
    metric: str | Metric = "regret",
    reserved: Iterable[int] = RESERVED,
    progress: Progress | bool | None = None,
) -> TuneResult:
    """Try every combination of ``grid`` (name of a field -> values) and find the one of least mean ``metric``.

    ``agent`` is an agent, whose other settings are kept, or a class, whose defaults are taken.  ``metric`` is "regret"
    (exact, after ``n_episodes``), "realised_regret", or a function of a :class:`RunResult` that gives one number per
    seed.  At most ``budget`` points: the comparison of agents gives each 12.  ``progress`` is None, True or
    False for a bar as in :func:`livarot.run`, or a function: ``progress(done, total)`` counts replica-episodes, and
    what it raises ends the search.  Ctrl-C raises :class:`livarot.Interrupted`; its ``result`` has the finished points.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(5, gap=0.1)
    >>> found = tune(mdp, livarot.agents.Livarot, {"beta_scale": [0.01, 1.0]}, 50)
    >>> found.best_settings
    {'beta_scale': 0.01}
    """
    require_positive_int("n_episodes", n_episodes)
    require_positive_int("budget", budget)
    own = None if progress is None or isinstance(progress, bool) else progress
    require_callable(progress=own)
    numbers = _check_seeds(seeds, reserved)
    base = _instance(agent)
    names = _check_grid(base, grid, budget)
    label, score = _metric(metric)
    points = [dict(zip(names, values, strict=True)) for values in product(*(grid[name] for name in names))]
    agents = [_with(base, point, index) for index, point in enumerate(points)]  # all of them, before any work
    total = n_episodes * len(numbers) * len(points)
    scores = np.empty((len(points), len(numbers)))

    def upto(done: int) -> TuneResult:
        made = (tuple(points[:done]), tuple(agents[:done]), scores[:done])
        return TuneResult(base.name, label, n_episodes, tuple(numbers), *made)

    wanted = Tally(total, own).add if own else progress if isinstance(progress, bool) else None
    with counted(wanted, total, "episodes") as count:
        for index, candidate in enumerate(agents):
            try:
                result = run(mdp, candidate, n_episodes, seed=numbers, workers=workers, progress=count or False)
                scores[index] = _scores(score, result, len(numbers), index)
            except KeyboardInterrupt as stop:
                if index == 0:
                    raise
                said = f"stopped after {index} of {len(points)} points, which are in .result"
                raise Interrupted(said, upto(index)) from stop
            logger.info("%s, point %d of %d: %.6g", base.name, index + 1, len(points), scores[index].mean())
    return upto(len(points))


def _instance(agent: Agent[Any] | type[Agent[Any]]) -> Agent[Any]:
    if not is_dataclass(agent):
        raise bad(
            "agent", f"{agent!r} is not an agent", cure="give an agent or its class, such as livarot.agents.Livarot"
        )
    if not isinstance(agent, type):
        require_agent(agent)
        return agent
    try:
        return _instance(agent())
    except TypeError as error:
        cure = "give an agent that has them: only the fields of the grid are replaced"
        raise bad("agent", f"{agent.__name__} needs settings ({error})", cure=cure) from error


def _check_grid(base: Agent[Any], grid: Mapping[str, Sequence[Any]], budget: int) -> list[str]:
    if not isinstance(grid, Mapping) or not grid:
        raise bad("grid", "is empty", cure='give fields and their values, such as {"beta_scale": [0.01, 0.1]}')
    known = [f.name for f in fields(base) if f.init]  # type: ignore[arg-type]
    n_points = 1
    for index, (name, values) in enumerate(grid.items()):
        if name not in known:
            close = difflib.get_close_matches(str(name)[:100], known, n=3, cutoff=0.6)
            hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            cure = f"{hint}It has: {', '.join(known) or 'no settings'}"
            raise bad("grid", f"{base.name} has no setting {name!r}", index=index, cure=cure)
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
            raise bad("grid", f"{name!r} has no list of values", index=index, cure="give a non-empty list")
        for place, value in enumerate(values):
            if any(value is other or value == other for other in list(values)[:place]):
                raise bad("grid", f"{name!r} has {value!r} twice", index=place, cure="give each value once")
        n_points *= len(values)
    if n_points > budget:
        cure = "take fewer values, or raise budget for every agent that is compared"
        raise bad("grid", f"has {n_points} points, the budget is {budget}", cure=cure)
    return list(grid)


def _check_seeds(seeds: Iterable[int], reserved: Iterable[int]) -> list[int]:
    numbers = np.ravel(seeds).tolist() if isinstance(seeds, np.ndarray) else seeds
    numbers = list(numbers) if isinstance(numbers, Iterable) else [numbers]
    if not numbers:
        raise bad("seeds", "are empty", cure="give at least one")
    if len(set(numbers)) < len(numbers):
        raise bad("seeds", "are not all different")
    if not isinstance(reserved, Iterable):
        raise bad("reserved", f"{shown(reserved)} is not a list of seeds")
    kept = reserved if isinstance(reserved, range) else set(reserved)
    taken = [index for index, number in enumerate(numbers) if number in kept]
    if taken:
        raise bad(
            "seeds",
            f"{numbers[taken[0]]} is reserved for the evaluation",
            index=taken[0],
            count=len(taken),
            cure="tune on other seeds, or say with reserved=... which seeds the evaluation uses",
        )
    return numbers


def _metric(metric: str | Metric) -> tuple[str, Metric]:
    if callable(metric):
        return getattr(metric, "__name__", "metric"), metric
    if metric == "regret":
        return metric, lambda result: result.regret.sum(axis=1)
    if metric == "realised_regret":
        return metric, lambda result: result.realised_regret.sum(axis=1)
    raise bad("metric", f"{metric!r} is unknown", cure=f"choose one of {', '.join(METRICS)}, or give a function")


def _with(base: Agent[Any], point: dict[str, Any], index: int) -> Agent[Any]:
    try:
        made: Agent[Any] = replace(base, **point)  # type: ignore[type-var]
    except LivarotError as error:
        raise bad("grid", f"point {point} is refused ({error})", index=index) from error
    return made


def _scores(score: Metric, result: RunResult, n_seeds: int, index: int) -> FloatArray:
    found = np.asarray(score(result), dtype=np.float64)
    if found.shape != (n_seeds,) or not np.isfinite(found).all():
        raise bad("metric", f"gave {found!r} at a point", index=index, cure="one finite number per seed")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, bool | int | float | str) or value is None else repr(value)
