"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.ragged import FloatArray
from livarot.storage import load_tensors, save_tensors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("regret", "realised_regret", "variance", "optimism_gap", "optimism_loss", "inner_gap", "covered")


@dataclass(frozen=True, eq=False)
class RunResult:
    """Arrays (seeds, T), one number per seed and episode; what an agent does not have is masked, never NaN.

    ``regret`` V*(s1) - V^{pi_t}(s1), exact; ``realised_regret`` V*(s1) minus the rewards really earned (the paper's);
    ``variance`` the increment of sigma_bar^2; ``optimism_gap`` what the plan believes minus V*; ``optimism_loss`` a
    certified bound minus what the plan believes; ``inner_gap`` the largest first-order gap of the inner maxima,
    relative to the stage's value range; ``covered`` is theta* in every confidence set.
    """

    agent: str
    settings: str
    seeds: NDArray[np.int64]
    horizon: int
    columns: dict[str, np.ma.MaskedArray[Any, Any]] = field(repr=False)

    @property
    def n_episodes(self) -> int:
        return int(self.columns["regret"].shape[1])

    @property
    def regret(self) -> FloatArray:
        return np.asarray(self.columns["regret"])

    @property
    def realised_regret(self) -> FloatArray:
        return np.asarray(self.columns["realised_regret"])

    @property
    def variance(self) -> FloatArray:
        return np.asarray(self.columns["variance"])

    @property
    def optimism_gap(self) -> np.ma.MaskedArray[Any, Any]:
        return self.columns["optimism_gap"]

    @property
    def optimism_loss(self) -> np.ma.MaskedArray[Any, Any]:
        return self.columns["optimism_loss"]

    @property
    def inner_gap(self) -> np.ma.MaskedArray[Any, Any]:
        return self.columns["inner_gap"]

    @property
    def covered(self) -> np.ma.MaskedArray[Any, Any]:
        """Boolean, masked where the agent has no confidence set."""
        found = self.columns["covered"]
        return np.ma.MaskedArray(found.filled(0.0) > 0.5, mask=np.ma.getmaskarray(found))

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
        import pandas as pd

        n_seeds, n_episodes = self.regret.shape
        table: dict[str, Any] = {
            "agent": self.agent,
            "seed": np.repeat(self.seeds, n_episodes),
            "episode": np.tile(np.arange(1, n_episodes + 1), n_seeds),
        }
        for name in COLUMNS:
            column = self.covered if name == "covered" else self.columns[name]
            masked = np.ma.getmaskarray(column).reshape(-1)
            data = np.ma.getdata(column).reshape(-1)
            series = pd.Series(data, dtype="boolean" if name == "covered" else "Float64")
            series[masked] = pd.NA
            table[name] = series
        return pd.DataFrame(table)

    def plot(self, axes: Axes | None = None, *, realised: bool = False, label: str | None = None) -> Axes:
        """Mean cumulative regret with one standard deviation over seeds."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots()
        curves = self.cumulative_realised_regret if realised else self.cumulative_regret
        mean, sd = curves.mean(axis=0), curves.std(axis=0)
        episodes = np.arange(1, self.n_episodes + 1)
        (line,) = axes.plot(episodes, mean, label=label or self.agent)
        axes.fill_between(episodes, mean - sd, mean + sd, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_xlabel("episode")
        axes.set_ylabel("cumulative regret" + (" (realised)" if realised else ""))
        axes.legend()
        return axes

    def save(self, path: str | Path) -> None:
        """Write everything to one file, complete or not at all; :meth:`load` reads it back."""
        tensors = {"seeds": self.seeds}
        for name, column in self.columns.items():
            tensors[name] = np.ascontiguousarray(np.ma.getdata(column))
            tensors[f"{name}.mask"] = np.ascontiguousarray(np.ma.getmaskarray(column))
        header: dict[str, Any] = {"agent": self.agent, "settings": self.settings, "horizon": self.horizon}
        save_tensors(path, tensors, kind="run-result", header=header)

    @classmethod
    def load(cls, path: str | Path) -> RunResult:
        tensors, header = load_tensors(path, kind="run-result")
        columns = {name: np.ma.MaskedArray(tensors[name], mask=tensors[f"{name}.mask"]) for name in COLUMNS}
        return cls(header["agent"], header["settings"], tensors["seeds"], int(header["horizon"]), columns)
