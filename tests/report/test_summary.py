"""The numbers of a report: promises, intervals that stay above 0, comparisons in their order, digits."""

import math

import numpy as np
import pytest

from livarot.report.page import data_of
from livarot.report.read_runs import read_runs
from livarot.report.summary import contradicted, promised, summarise, told
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import columns_of, store_of

CHAIN = EnvironmentSpec(name="hard-chain", settings={"horizon": 4})


def promise(name, settings=None, preset=None):
    found = promised(Cell.of("hard-chain", {"horizon": 4}, name, settings or {}, 50, preset))
    assert found is None or found.sound is (name == "sound-livarot")
    return None if found is None else found.level


@pytest.mark.parametrize("name", ["livarot", "bonus-livarot", "ucrl-mnl", "ucrl-mnl-ll", "ucrl-mnl-ol", "ons-ucrl-mnl"])
def test_the_theory_s_settings_promise_coverage_and_others_do_not(name):
    assert promise(name, preset="theory") == pytest.approx(0.95)
    assert promise(name, {"failure_level": 0.1}, "theory") == pytest.approx(0.9)
    assert promise(name, {"beta_scale": 2.0}, "theory") == pytest.approx(0.95)  # a larger set
    assert promise(name, {"beta_scale": 0.99}, "theory") is None
    assert promise(name, {"reg": 0.25}, "theory") is None
    assert promise(name) is None


def test_sound_is_said_of_sets_with_a_proof_only():
    assert promise("sound-livarot") == pytest.approx(0.95) and promise("sound-livarot", {"beta_scale": 0.5}) is None


def test_nothing_is_promised_by_agents_without_a_theory_of_sets():
    assert [promise(name) for name in ("psrl", "uniform", "oracle", "drifting-livarot")] == [None] * 4
    assert promise("ucbvi", preset="theory") is None
    assert promised(Cell("hard-chain", {}, "not registered", {"failure_level": 0.05, "beta_scale": 1.0}, 5)) is None
    assert promise("rare-switching") is None
    inner = {"name": "livarot", **Cell.of("hard-chain", {"horizon": 4}, "livarot", {}, 50, "theory").agent_settings}
    assert promise("rare-switching", {"agent": inner, "factor": 2.0}) == pytest.approx(0.95)


@pytest.mark.parametrize(("misses", "bad"), [(1, False), (8, True)])
def test_a_promise_that_is_not_kept_is_red(tmp_path, misses, bad):
    cell = Cell.of("hard-chain", {"horizon": 4}, "livarot", {}, 10, "theory")
    with Store(tmp_path / "store", create=True) as store:
        for seed in range(10):
            columns = columns_of(np.random.Generator(np.random.Philox(seed)), 10, 1.0, covered=True)
            columns["covered"][4] = float(seed >= misses)
            store.put(cell.run(seed), columns, np.ones((10, 1), dtype=np.int32))
    summary = summarise(read_runs(tmp_path / "store"))
    audit = summary.cells[0].audit
    assert audit["promised"].level == pytest.approx(0.95)
    assert contradicted(audit) is bad
    [shown] = data_of(summary)["cells"]
    assert shown["contradicted"] is bad and shown["told"]["promised"] == "95 %, by its theory"


def test_coverage_is_told_for_each_stage_and_for_all_at_once(tmp_path):
    """Stage 1 of three is missed once by half of the seeds, all stages at another time by one seed."""
    cell = Cell.of("hard-chain", {"horizon": 3}, "livarot", {}, 10, "theory")
    with Store(tmp_path / "store", create=True) as store:
        for seed in range(8):
            columns = columns_of(np.random.Generator(np.random.Philox(seed)), 10, 1.0, covered=True)
            bits = np.full((10, 1), 0b111, dtype=np.int32)
            columns["covered"][:2], bits[:2] = np.nan, 0  # a burn-in without sets
            if seed % 2:
                bits[5] = 0b101
            if seed == 0:
                bits[7] = 0
            columns["covered"][2:] = bits[2:, 0] == 0b111
            store.put(cell.run(seed), columns, bits)
    summary = summarise(read_runs(tmp_path / "store"))
    audit = summary.cells[0].audit
    assert audit["stages_always"].tolist() == [7 / 8, 3 / 8, 7 / 8] and audit["always_covered"].estimate == 3 / 8
    [shown] = data_of(summary)["cells"]
    assert shown["told"]["stages_always"] == "37.5 % (stage 1) to 87.5 %"


def test_stages_that_are_never_covered_are_counted(tmp_path):
    cell = Cell.of("hard-chain", {"horizon": 3}, "livarot", {}, 10)
    with Store(tmp_path / "store", create=True) as store:
        columns = columns_of(np.random.Generator(np.random.Philox(0)), 10, 1.0, covered=True)
        columns["covered"][:] = 0.0
        store.put(cell.run(0), columns, np.ones((10, 1), dtype=np.int32))
    assert summarise(read_runs(tmp_path / "store")).cells[0].audit["stages_always"].tolist() == [1.0, 0.0, 0.0]


def test_a_scaled_down_radius_is_measured_and_promises_nothing(tmp_path):
    experiment = Experiment(environments=[CHAIN], agents=[AgentSpec(name="livarot")], episodes=10, seeds=6)
    [shown] = data_of(summarise(read_runs(store_of(tmp_path / "store", experiment))))["cells"]
    assert shown["told"]["covered"] == "91.7 %" and shown["told"]["promised"] == "nothing"
    assert shown["audit"]["promised"] is None and shown["contradicted"] is False


def test_regret_that_cannot_be_negative_has_no_negative_ends(tmp_path):
    """Two seeds of six are far below the others: bootstrap-t goes below 0, as realised regret may."""
    cell = Cell.of("hard-chain", {"horizon": 4}, "psrl", {}, 20)
    with Store(tmp_path / "store", create=True) as store:
        for seed in range(6):
            columns = columns_of(
                np.random.Generator(np.random.Philox(seed)), 20, 3.0 if seed > 1 else 0.05, covered=False
            )
            store.put(cell.run(seed), columns, np.ones((20, 1), dtype=np.int32))
    [one] = summarise(read_runs(tmp_path / "store")).cells
    assert one.totals["regret"].low == 0.0 and one.totals["iqm"].low >= 0.0
    assert one.totals["realised_regret"].low < 0.0
    regret, realised = one.curves["regret"], one.curves["realised_regret"]
    assert all(band.low.min() >= 0.0 for band in (regret.pointwise, regret.simultaneous))
    assert realised.simultaneous.low.min() < 0.0


def test_the_best_learner_is_compared_first_and_controls_last(tmp_path):
    names = ["oracle", "psrl", "uniform", "livarot", "rlsvi"]
    experiment = Experiment(environments=[CHAIN], agents=[AgentSpec(name=name) for name in names], episodes=10, seeds=6)
    scales = {"oracle": 0.0, "uniform": 0.1, "livarot": 0.5, "rlsvi": 0.7, "psrl": 0.9}
    summary = summarise(read_runs(store_of(tmp_path / "store", experiment, scales)))
    assert summary.agents == names and summary.controls == {0, 2}
    pairs = [(summary.agents[one.first], summary.agents[one.second]) for one in summary.comparisons]
    assert pairs[:4] == [("livarot", "rlsvi"), ("livarot", "psrl"), ("rlsvi", "psrl"), ("livarot", "oracle")]
    assert pairs[-1] == ("oracle", "uniform") and len(pairs) == 10


def test_numbers_are_rounded_once_and_from_the_full_number():
    assert told([2.634996]) == ["2.635"] and told([2.63449996]) == ["2.634"]  # 2.6345 after five digits: 2.635
    assert told((12.3456, 11.0, 13.9)) == ["12.3", "11.0", "13.9"]
    assert told((12345.6, 11000.0, 14000.0)) == ["12300", "11000", "14000"]
    assert told((1.5e-12, -1.0e-12, 1.0e-12)) == ["0", "0", "0"]
    assert told((-0.004, -0.9, 0.9)) == ["0.00", "-0.90", "0.90"]
    assert told((2e-5, 1e-5, 4e-5)) == ["2.0e-5", "1.0e-5", "4.0e-5"]
    assert told(None) == told([math.nan]) == []
