"""Regret against a setting: which cells belong together, and the exponent that was put in."""

import numpy as np
import pytest

from livarot.report.read_runs import read_runs
from livarot.report.scaling import axis_order, coordinates
from livarot.report.summary import summarise
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.store.store import Store
from tests.support.stores import columns_of

POWERS = {"horizon": 1.5, "gap": -1.0, "episodes": 0.5, "agent.beta_scale": 0.3}


def stored(path, cells, n_seeds=6):
    """Runs whose regret is the product of powers of their numbers, with noise of the seed that cancels in slopes."""
    with Store(path, create=True) as store:
        for cell in cells:
            sizes = coordinates(cell)
            regret = np.prod([sizes[axis] ** power for axis, power in POWERS.items() if axis in sizes])
            for seed in range(n_seeds):
                rng = np.random.Generator(np.random.Philox(seed))
                columns = columns_of(rng, cell.episodes, 0.01 * regret * rng.lognormal(0.0, 0.2), covered=False)
                store.put(cell.run(seed), columns, np.zeros((cell.episodes, 0), dtype=np.int32))
    return summarise(read_runs(path))


def lines_of(summary, axis):
    return [line for line in summary.scaling if summary.families[line.family].axis == axis]


def test_every_number_that_varies_alone_is_an_axis_with_its_exponent(tmp_path):
    cells = [
        Cell.of("hard-chain", {"horizon": h, "gap": gap, "n_episodes": 1000}, "livarot", {"beta_scale": scale}, T)
        for h in (4, 8)
        for gap in (0.02, 0.05)
        for scale in (0.1, 0.2)
        for T in (10, 30)
    ]
    summary = stored(tmp_path / "store", cells)
    assert list(dict.fromkeys(family.axis for family in summary.families)) == [
        "horizon",
        "episodes",
        "gap",
        "agent.beta_scale",
    ]
    for axis, power in POWERS.items():
        lines = lines_of(summary, axis)
        assert len(lines) == 8 and {len(line.cells) for line in lines} == {2}
        for line in lines:
            assert line.slope.estimate == pytest.approx(power, abs=1e-9)
            assert line.sizes == [coordinates(summary.cells[k].cell)[axis] for k in line.cells] == sorted(line.sizes)
            others = [coordinates(summary.cells[k].cell) | {axis: 0.0} for k in line.cells]
            assert others[0] == others[1]
    assert {line.name for line in lines_of(summary, "agent.beta_scale")} == {"livarot"}
    assert {str(summary.families[line.family].name) for line in lines_of(summary, "gap")} == {
        "hard-chain (horizon=4)",
        "hard-chain (horizon=8)",
    }


def test_what_differs_in_two_numbers_is_no_line(tmp_path):
    cells = [Cell.of("hard-chain", {"horizon": h, "gap": 0.2 / h}, "psrl", {}, 10) for h in (4, 8)]
    assert stored(tmp_path / "store", cells).scaling == []


def test_an_environment_made_for_its_runs_is_one_along_their_length(tmp_path):
    """The gap of the paper follows T where n_episodes is "$episodes"; the agent's own n_episodes too."""
    cells = [
        Cell.of("hard-chain", {"horizon": 4, "n_episodes": "$episodes"}, "livarot", {}, T, "theory") for T in (10, 20)
    ]
    [line] = lines_of(stored(tmp_path / "store", cells), "episodes")
    assert line.sizes == [10.0, 20.0] and line.name == "livarot (theory)"
    assert len(stored(tmp_path / "store", cells).scaling) == 1


def test_numbers_that_have_no_logarithm_are_left_out():
    cell = Cell.of("hard-chain", {"horizon": 4, "gap": 0.1, "seed": 7}, "livarot", {"beta_scale": 0.0}, 10)
    found = coordinates(cell)
    assert "agent.beta_scale" not in found and "seed" not in found and found["episodes"] == 10.0
    assert all(size > 0.0 for size in found.values())


def test_the_horizon_comes_first_and_agents_last():
    names = ["agent.reg", "gap", "episodes", "dim", "horizon", "a"]
    assert sorted(names, key=axis_order) == ["horizon", "episodes", "dim", "a", "gap", "agent.reg"]


def test_few_seeds_have_a_line_and_no_slope(tmp_path):
    cells = [Cell.of("hard-chain", {"horizon": h}, "psrl", {}, 10) for h in (4, 8)]
    [line] = lines_of(stored(tmp_path / "store", cells, n_seeds=3), "horizon")
    assert line.slope is None and line.sizes == [4.0, 8.0]
