"""The files and the text of the paper's experiment: tables, and claims that follow the numbers."""

import csv
import io
import json

import numpy as np
import pytest

from livarot.report.drawing import render
from livarot.studies.paper.experiment import (
    CONTENDERS,
    FAMILIES,
    LIVAROT,
    PAPER_GAP,
    SINGLE_PHASE,
    UNIFORM,
    Cell,
    Reproduction,
    reproduce,
)
from livarot.studies.paper.figures import finding_figure
from livarot.studies.paper.report import rows, table, text, write_files
from livarot.theory import chain_log_rate, sign_oracle
from tests.support.paper import made_up


@pytest.mark.parametrize("workers", [1, 3])
def test_the_files_do_not_depend_on_the_number_of_workers(small, workers):
    again = reproduce(n_seeds=3, n_episodes=20, horizons=(3, 4), workers=workers)
    assert table(again) == table(small)
    assert again.summary() == small.summary()
    for kind in ("png", "pdf"):
        assert render(finding_figure(again), kind) == render(finding_figure(small), kind)


def test_one_seed_has_no_spread():
    result = made_up(lambda f, c, h: [2.0])
    assert result.ratio(PAPER_GAP, LIVAROT, "exact")[1].tolist() == [0.0, 0.0]
    assert "one seed" in text(result) and "standard deviation" not in text(result)


def test_table(small):
    lines = list(csv.DictReader(io.StringIO(table(small))))
    assert len(lines) == len(FAMILIES) * len(CONTENDERS) * 2 * 3 * 20
    last = [line for line in lines if line["episode"] == "20" and line["agent"] == "livarot"]
    for line in last:
        curves = small.curves[Cell(line["family"], "livarot", int(line["horizon"]))]
        assert float(line["exact_regret"]) == pytest.approx(curves.exact[int(line["seed"]), -1], rel=1e-9)
        assert float(line["realised_regret"]) == pytest.approx(curves.realised[int(line["seed"]), -1], rel=1e-9)


def test_table_has_twenty_checkpoints_up_to_the_last_episode():
    long = made_up(lambda f, c, h: [1.0], horizons=(3,), n_episodes=1007)
    episodes = [int(line["episode"]) for line in csv.DictReader(io.StringIO(table(long)))][:20]
    assert len(set(episodes)) == 20 and episodes[-1] == 1007 and max(np.diff(episodes)) <= 51


def test_rows_have_one_cell_per_agent(small):
    for lines in rows(small).values():
        assert [line[0] for line in lines] == ["exact"] * 2 + ["realised"] * 2 + ["locked in"] * 2
        assert {len(line) for line in lines} == {4 + len(CONTENDERS)}


def finals(paper_share: float, fixed_share: float):
    def exact(family, contender, horizon):
        share = 1.0 if contender is UNIFORM else paper_share if family is PAPER_GAP else fixed_share
        return np.array([0.9, 1.0, 1.1]) * share * 2.5 * horizon**1.5

    return exact


def words(result: Reproduction) -> str:
    return " ".join(text(result).split())


def test_text_when_only_the_fixed_gap_tells():
    found = words(made_up(finals(0.95, 0.2)))
    assert "the uniform policy, which never learns, has 2.50; LIVAROT (paper) has 2.38; UCRL-MNL-OL has 2.38" in found
    assert "95 % of the uniform policy's regret" in found
    assert "cannot tell a learner from a coin" in found
    assert "20 % of the uniform policy's regret. Here learning shows." in found
    assert "LIVAROT (paper) 0 %; LIVAROT (paper, no burn-in) 0 %; UCRL-MNL-OL 0 %." in found


def test_text_does_not_claim_what_is_not_so():
    found = words(made_up(finals(0.3, 0.9)))
    assert "cannot tell" not in found and "Here learning shows" not in found
    assert "visibly below it" in found and "Not every learner is well below it" in found
    assert "LIVAROT (paper) 100 %; LIVAROT (paper, no burn-in) 100 %; UCRL-MNL-OL 100 %." in found


def test_the_limits_stand_in_text_table_and_summary(small):
    found = words(small)
    for family in FAMILIES:
        for k, horizon in enumerate(small.horizons):
            least, rate = small.limits(family, horizon)
            gap = family.gap(horizon, small.n_episodes)
            assert least == sign_oracle(horizon, small.n_episodes, gap, n_runs=5 * small.n_seeds).mean
            assert rate == pytest.approx(chain_log_rate(horizon, gap) * np.log(small.n_episodes))
            line = rows(small)[family.title][k]
            assert line[-2:] == [f"{least / horizon**1.5:.2f}", f"{rate / horizon**1.5:.2f}"]
            assert small.summary()["families"][family.key]["sign_oracle"][str(horizon)]["mean"] == least
    assert "an oracle that knows everything but the signs has" in found
    assert "The sign oracle was not run." in words(made_up(finals(0.95, 0.2)))


def test_text_compares_the_phases():
    def exact(family, contender, horizon):
        return [1.0] if contender is SINGLE_PHASE else [2.0]

    found = words(made_up(exact))
    assert "Without the burn-in of 80 episodes LIVAROT (paper) has 50 % of the regret it has with it" in found


def test_text_of_a_small_run_is_finite(small):
    assert "nan" not in text(small) and "inf" not in text(small)
    assert max(map(len, text(small).splitlines())) <= 78


def test_files(small, tmp_path):
    written = write_files(small, tmp_path / "a" / "b")
    assert {path.name for path in written} == {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert {path.suffix for path in written} == {".txt", ".json", ".csv", ".png", ".pdf"}
    for path in written:
        start = path.read_bytes()[:4]
        assert path.suffix != ".png" or start == b"\x89PNG"
        assert path.suffix != ".pdf" or start == b"%PDF"
    assert json.loads((tmp_path / "a" / "b" / "summary.json").read_text()) == small.summary()
