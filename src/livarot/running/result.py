"""What a run gives back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.extras import extras_explained
from livarot.file_layout import Entry, Layout, Misfit, Tensor, check_range
from livarot.model.shown import html_of, text_of
from livarot.model.terms.units import PLAIN, Units, units_of
from livarot.storage import load_tensors, reading, save_tensors
from livarot.system.sizes import require_memory
from livarot.theory.audits.facts import check_facts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("regret", "realised_regret", "variance", "optimism_gap", "optimism_loss", "inner_gap", "covered")
SCALED = ("regret", "realised_regret", "optimism_gap", "optimism_loss")  # differences of values
WORD = 32  # parameters per word of ``stage_bits``
SLACK = 1e-6  # for rounding
# lowest and highest value (of a regret: per step of the horizon, as rewards are in [0, 1]); whether every run has it
RANGES = {
    "regret": (-SLACK, 1.0 + SLACK, True),
    "realised_regret": (-1.0 - SLACK, 1.0 + SLACK, True),
    "variance": (-SLACK, 0.25 + SLACK, True),
    "optimism_gap": (-math.inf, math.inf, False),
    "optimism_loss": (-math.inf, math.inf, False),
    "inner_gap": (0.0, math.inf, False),
    "covered": (0.0, 1.0, False),
}
LAYOUT = Layout(
    {
        "agent": Entry(str),
        "settings": Entry(str),
        "horizon": Entry(int, 1, 2.0**31 - 1.0),
        "facts": Entry(dict, optional=True),
        "units": Entry(list, optional=True),  # where rewards were mapped into [0, 1]
    },
    {"seeds": Tensor("int64", ("seeds",), low=0)}
    | {name: Tensor("float64", ("seeds", "episodes"), finite=False) for name in COLUMNS}
    | {f"{name}.mask": Tensor("bool", ("seeds", "episodes")) for name in COLUMNS}
    | {"stage_bits": Tensor("int32", ("seeds", "episodes", "words"), optional=True)},
)


class Coverage(NamedTuple):
    """Promised and observed coverage of theta*; None where an agent has no sets, or promises nothing.

    ``sound`` is said of sets whose promise has a proof that is written down and tested here.  "Certified", elsewhere,
    is said of the inner maximum over a set only, whether or not the set is valid.
    """

    promised: float | None  # 1 - delta, for all sets at all times at once
    sound: bool
    episodes: float | None  # share of (seed, episode) with theta* in all sets
    always: float | None  # share of seeds with theta* in all sets at all times
    per_stage: FloatArray | None  # (K,) share of seeds with theta* in the set of that parameter at all times
    n_seeds: int

    def __str__(self) -> str:
        if self.always is None or self.per_stage is None:
            return "no confidence sets"
        kind = "sound sets" if self.sound else "sets"
        promise = "nothing promised" if self.promised is None else f"promised {100.0 * self.promised:g} %"
        promise += "" if self.promised is None or self.sound else " by a theory"
        seen = f"theta* in all sets at all times in {100.0 * self.always:.3g} % of {self.n_seeds} seeds"
        return f"{kind}, {promise}: {seen} (worst stage {100.0 * float(self.per_stage.min()):.3g} %)"


@dataclass(frozen=True, eq=False, repr=False)
class RunResult:
    """Arrays (seeds, T), one number per seed and episode; what an agent does not have is masked, never NaN.

    Regrets and gaps are in the units of the rewards or costs that the model was given (``units``); :attr:`normalised`
    has them for rewards in [0, 1], as bounds and audits need them, and so has ``columns``.

    ``regret`` V*(s1) - V^{pi_t}(s1), exact; ``realised_regret`` V*(s1) minus the rewards really earned (the paper's);
    ``variance`` the increment of sigma_bar^2; ``optimism_gap`` the plan's own value minus V*; ``optimism_loss`` a
    certified bound minus the plan's own value; ``inner_gap`` the largest first-order gap of the inner maxima,
    relative to the stage's value range; ``covered`` is theta* in every confidence set.

    ``stage_bits`` (seeds, T, words) says which single confidence sets hold theta*: bit k % 32 of word k // 32 belongs
    to parameter k, so a horizon of 32 costs four bytes per seed and episode; :meth:`stage_covered` reads it.
    ``facts_source`` is :attr:`facts`, or a function that computes them when they are first asked for (or saved).
    """

    agent: str
    settings: str
    seeds: NDArray[np.int64]
    horizon: int
    columns: dict[str, np.ma.MaskedArray[Any, Any]] = field(repr=False)
    facts_source: dict[str, Any] | Callable[[], dict[str, Any]] = field(default_factory=dict, repr=False)
    stage_bits: NDArray[np.int32] | None = field(default=None, repr=False)
    units: Units = PLAIN

    @property
    def normalised(self) -> RunResult:
        """The same result for rewards in [0, 1]."""
        return self if self.units.scale == 1.0 else replace(self, units=PLAIN, facts_source=self.facts)

    def _in_units(self, name: str) -> np.ma.MaskedArray[Any, Any]:
        """A column; differences of values in the user's units."""
        column = self.columns[name]
        return column if self.units.scale == 1.0 or name not in SCALED else self.units.scale * column

    def __repr__(self) -> str:
        return text_of(f"RunResult({self.agent})", self._lines())

    def _repr_html_(self) -> str:
        return html_of(f"RunResult({self.agent})", self._lines())

    def _lines(self) -> dict[str, str]:
        total = self.regret.sum(axis=1)
        error = total.std(ddof=1) / math.sqrt(len(total)) if len(total) > 1 else None
        lines = {
            "agent": self.settings,
            "runs": f"{len(self.seeds)} seeds of {self.n_episodes} episodes, horizon {self.horizon}",
            "regret": f"{total.mean():.6g}" + ("" if error is None else f" +- {error:.2g} (standard error)"),
            "last tenth": f"{self.regret[:, -max(1, self.n_episodes // 10) :].mean():.6g} per episode",
        }
        if self.units.scale != 1.0:
            lines["normalised"] = f"{self.columns['regret'].sum(axis=1).mean():.6g}, for rewards in [0, 1]"
        if self.covered.count():
            lines["coverage"] = str(self.coverage())
        return lines

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What an audit needs to know of problem, truth and agent, ready for JSON."""
        return self.facts_source() if callable(self.facts_source) else self.facts_source

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"facts_source": self.facts}  # a copy elsewhere does not need the models

    @property
    def n_episodes(self) -> int:
        return int(self.columns["regret"].shape[1])

    @property
    def regret(self) -> FloatArray:
        return np.asarray(self._in_units("regret"))

    @property
    def realised_regret(self) -> FloatArray:
        return np.asarray(self._in_units("realised_regret"))

    @property
    def variance(self) -> FloatArray:
        """Always normalised: sigma_bar has no units."""
        return np.asarray(self.columns["variance"])

    @property
    def optimism_gap(self) -> np.ma.MaskedArray[Any, Any]:
        return self._in_units("optimism_gap")

    @property
    def optimism_loss(self) -> np.ma.MaskedArray[Any, Any]:
        return self._in_units("optimism_loss")

    @property
    def inner_gap(self) -> np.ma.MaskedArray[Any, Any]:
        return self.columns["inner_gap"]

    @property
    def covered(self) -> np.ma.MaskedArray[Any, Any]:
        """Boolean, masked where the agent has no confidence set."""
        found = self.columns["covered"]
        return np.ma.MaskedArray(found.filled(0.0) > 0.5, mask=np.ma.getmaskarray(found))

    @property
    def n_parameters(self) -> int:
        """K: one parameter per stage, or one for all."""
        return int(self.facts.get("problem", {}).get("n_parameters", self.horizon))

    @checked
    def stage_covered(self, parameter: int) -> np.ma.MaskedArray[Any, Any]:
        """Is theta* in the set of this parameter (stage)?  Boolean (seeds, T), masked where there is no set.

        >>> import livarot
        >>> run = livarot.run(livarot.envs.hard_chain(3), livarot.agents.Livarot(beta_scale=5.0), 10, seed=[0, 1])
        >>> [bool(run.stage_covered(k).all()) for k in range(3)]
        [True, True, True]
        """
        if not 0 <= parameter < self.n_parameters:
            raise bad("parameter", f"no parameter {parameter}", cure=f"they are numbered 0..{self.n_parameters - 1}")
        if self.stage_bits is None:
            return np.ma.MaskedArray(np.zeros(self.regret.shape, dtype=np.bool_), mask=True)
        inside = (self.stage_bits[:, :, parameter // WORD] >> (parameter % WORD)) & 1
        return np.ma.MaskedArray(inside.astype(np.bool_), mask=np.ma.getmaskarray(self.columns["covered"]))

    def coverage(self) -> Coverage:
        """What was promised about the confidence sets, and what was seen.

        >>> import livarot
        >>> mdp = livarot.envs.hard_chain(3, gap=0.1)
        >>> print(livarot.run(mdp, livarot.agents.SoundLivarot(), 50, seed=range(4)).coverage())
        sound sets, promised 95 %: theta* in all sets at all times in 100 % of 4 seeds (worst stage 100 %)
        >>> print(livarot.run(mdp, livarot.agents.Uniform(), 5).coverage())
        no confidence sets
        """
        promised = self.facts.get("agent", {}).get("promised_coverage")
        sound = bool(self.facts.get("agent", {}).get("sound", False))
        if np.ma.getmaskarray(self.columns["covered"]).all():
            return Coverage(promised, sound, None, None, None, len(self.seeds))
        sets = [self.stage_covered(k).filled(True) for k in range(self.n_parameters)]
        always = np.array([each.all(axis=1).mean() for each in sets])
        inside = self.covered
        return Coverage(
            promised,
            sound,
            float(inside.mean()),
            float(inside.filled(True).all(axis=1).mean()),
            always,
            len(self.seeds),
        )

    @property
    def cumulative_regret(self) -> FloatArray:
        return np.cumsum(self.regret, axis=1)

    @property
    def cumulative_realised_regret(self) -> FloatArray:
        return np.cumsum(self.realised_regret, axis=1)

    @property
    def sigma_bar(self) -> FloatArray:
        """sigma_bar_T of each seed, (seeds,)."""
        return np.asarray(np.sqrt(self.variance.mean(axis=1)))

    def to_pandas(self) -> pd.DataFrame:
        """A long table: one row per seed and episode (1-based)."""
        with extras_explained():
            import pandas as pd

        n_seeds, n_episodes = self.regret.shape
        require_memory("result", "a table of all episodes", 3 * n_seeds * n_episodes * (len(COLUMNS) + 3))
        table: dict[str, Any] = {
            "agent": self.agent,
            "seed": np.repeat(self.seeds, n_episodes),
            "episode": np.tile(np.arange(1, n_episodes + 1), n_seeds),
        }
        for name in COLUMNS:
            column = self.covered if name == "covered" else self._in_units(name)
            masked = np.ma.getmaskarray(column).reshape(-1)
            data = np.ma.getdata(column).reshape(-1)
            series = pd.Series(data, dtype="boolean" if name == "covered" else "Float64")
            series[masked] = pd.NA
            table[name] = series
        return pd.DataFrame(table)

    def plot(self, axes: Axes | None = None, *, realised: bool = False, label: str | None = None) -> Axes:
        """Mean cumulative regret, with a band of the 10 to 90 % quantiles over seeds: never below the least of them."""
        with extras_explained():
            import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots()
        curves = self.cumulative_realised_regret if realised else self.cumulative_regret
        low, high = np.quantile(curves, (0.1, 0.9), axis=0)
        episodes = np.arange(1, self.n_episodes + 1)
        style = ("-", "--", "-.", ":")[len(axes.lines) % 4]  # told apart in grey too
        (line,) = axes.plot(episodes, curves.mean(axis=0), linestyle=style, label=label or self.agent)
        axes.fill_between(episodes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_xlabel("episode")
        drawn = "mean and 10-90 % of seeds" if len(self.seeds) > 1 else "one seed"
        axes.set_ylabel(f"cumulative regret{' (realised)' if realised else ''}\n{drawn}")
        axes.legend()
        return axes

    def save(self, path: str | Path) -> None:
        """Write everything to one file, complete or not at all; :meth:`load` reads it back."""
        tensors: dict[str, NDArray[Any]] = {"seeds": self.seeds}
        for name, column in self.columns.items():
            tensors[name] = np.ascontiguousarray(np.ma.getdata(column))
            tensors[f"{name}.mask"] = np.ascontiguousarray(np.ma.getmaskarray(column))
        if self.stage_bits is not None:
            tensors["stage_bits"] = np.ascontiguousarray(self.stage_bits)
        header: dict[str, Any] = {"agent": self.agent, "settings": self.settings, "horizon": self.horizon}
        if self.facts:
            header["facts"] = self.facts
        if self.units != PLAIN:
            header["units"] = list(map(float, self.units))
        save_tensors(path, tensors, kind="run-result", header=header)

    @classmethod
    def load(cls, path: str | Path) -> RunResult:
        """Read a file of :meth:`save`; one of an earlier version has no facts and no coverage per stage.

        Refused: missing, additional or misshapen parts; numbers that are not finite where nothing is masked; masks on
        what every run has; values outside :data:`RANGES`; coverage bits that are not those of ``covered``, or of
        parameters that do not exist; facts of another horizon, or of another form than
        :func:`livarot.theory.audits.facts.facts_of` makes.  The agent's settings are text and cannot be checked.
        """
        tensors, header = load_tensors(path, kind="run-result", layout=LAYOUT)
        with reading(path):
            if "facts" in header:
                check_facts(header["facts"], header["horizon"])
            columns = {name: np.ma.MaskedArray(tensors[name], mask=tensors[f"{name}.mask"]) for name in COLUMNS}
            result = cls(
                header["agent"],
                header["settings"],
                tensors["seeds"],
                header["horizon"],
                columns,
                header.get("facts", {}),
                tensors.get("stage_bits"),
                units_of(header["units"]) if "units" in header else PLAIN,
            )
            _check(result)
        return result


def _check(result: RunResult) -> None:
    """See :meth:`RunResult.load`."""
    if result.columns["regret"].size == 0:
        raise Misfit("it has no episodes")
    for name, column in result.columns.items():
        low, high, always = RANGES[name]
        if always and np.ma.getmaskarray(column).any():
            raise Misfit(f"{name!r} is masked")
        steps = result.horizon if name.endswith("regret") else 1
        check_range(f"{name!r}", column.compressed(), low * steps, high * steps)
    covered = result.columns["covered"]
    if not np.isin(covered.compressed(), (0.0, 1.0)).all():
        raise Misfit("'covered' is neither 0 nor 1")
    if result.stage_bits is not None:
        words, seen = -(-result.n_parameters // WORD), ~np.ma.getmaskarray(covered)
        if result.stage_bits.shape[2] != words:
            raise Misfit(f"it has {result.stage_bits.shape[2]} words of coverage, expected {words}")
        full = np.full(words, -1, dtype=np.int32)
        full[-1] = -1 if result.n_parameters % WORD == 0 else (1 << result.n_parameters % WORD) - 1
        right = np.where(seen, (result.stage_bits == full).all(axis=2) == (covered.filled(0.0) > 0.5), True)
        if not right.all() or (result.stage_bits & ~full).any() or result.stage_bits[~seen].any():
            raise Misfit("its coverage per stage is not that of 'covered'")
