"""The paper's experiment: what is run, what is reported, what the text claims."""

import csv
import io
import json
import statistics
import threading

import matplotlib as mpl
import numpy as np
import pytest

import livarot
from livarot.envs import hard_chain
from livarot.report.drawing import render
from livarot.report.output import check_folder
from livarot.studies.paper.experiment import (
    CONTENDERS,
    FAMILIES,
    FIXED_GAP,
    LIVAROT,
    PAPER_GAP,
    SINGLE_PHASE,
    UCRL_MNL_OL,
    UNIFORM,
    Cell,
    Curves,
    Reproduction,
    reproduce,
)
from livarot.studies.paper.figures import (
    COLOUR,
    cumulative_figure,
    figures,
    finding_figure,
    scaled_figure,
    shown,
)
from livarot.studies.paper.report import rows, table, text, write_files


@pytest.fixture(scope="module")
def small() -> Reproduction:
    return reproduce(n_seeds=3, n_episodes=20, horizons=(3, 4), workers=2)


def made_up(exact, *, horizons=(4, 9), realised=None, n_episodes=5) -> Reproduction:
    """A result whose final regrets are `exact(family, contender, horizon)`, one number per seed."""
    curves = {}
    for family in FAMILIES:
        for contender in CONTENDERS:
            for horizon in horizons:
                final = np.asarray(exact(family, contender, horizon), dtype=np.float64)
                earned = final if realised is None else realised(family, contender, horizon)
                rise = np.arange(1, n_episodes + 1) / n_episodes
                cell = Cell(family.key, contender.key, horizon)
                curves[cell] = Curves(final[:, None] * rise, np.asarray(earned, float)[:, None] * rise)
    return Reproduction(len(final), n_episodes, tuple(horizons), curves)


# what is run


def test_the_paper_s_settings():
    livarot_agent, other = LIVAROT.agent, UCRL_MNL_OL.agent
    assert (livarot_agent.n_explore, livarot_agent.reg_explore, livarot_agent.reg) == (80, 1.0, 10.0)
    assert (livarot_agent.step_size, livarot_agent.beta_scale, livarot_agent.printed_radius) == (
        20.0,
        0.01,
        True,
    )
    assert (other.reg, other.step_size, other.beta_scale) == (10.0, 10.0, 0.02)
    assert SINGLE_PHASE.agent.n_explore == 0
    assert PAPER_GAP.gap(10, 1000) == pytest.approx(1 / (4 * np.sqrt(2 * 10 * 1000)), rel=1e-14)
    assert FIXED_GAP.gap(10, 1000) == 0.05


@pytest.mark.parametrize(("family", "gap"), [(PAPER_GAP, None), (FIXED_GAP, 0.5 / 4)])
@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda c: c.key)
def test_a_cell_is_the_run_of_each_seed_on_the_model_of_that_seed(small, family, gap, contender):
    for seed in range(3):
        mdp = hard_chain(4, n_episodes=20, gap=gap, seed=seed)
        alone = livarot.run(mdp, contender.agent, 20, seed=seed)
        assert np.array_equal(small.of(family, contender, 4).exact[seed], alone.cumulative_regret[0])
        assert np.array_equal(small.of(family, contender, 4).realised[seed], alone.cumulative_realised_regret[0])


def test_the_uniform_policy_has_the_known_constants():
    result = reproduce(n_seeds=2, horizons=(5, 10))  # T = 1000
    ratio, sd = result.ratio(PAPER_GAP, UNIFORM, "exact")
    assert ratio == pytest.approx([1.458, 1.457], abs=6e-4)  # exact values of the chain
    assert sd == pytest.approx([0, 0], abs=1e-10)
    fixed = [result.final(FIXED_GAP, UNIFORM, h, "exact").mean() for h in (5, 10)]
    assert fixed == pytest.approx([501, 964], rel=0.01)  # by simulation, 10 seeds
    assert all(result.final(FIXED_GAP, c, 5, "exact").mean() < 250 for c in CONTENDERS if c is not UNIFORM)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_files_do_not_depend_on_the_number_of_workers(small, workers):
    again = reproduce(n_seeds=3, n_episodes=20, horizons=(3, 4), workers=workers)
    assert table(again) == table(small)
    assert again.summary() == small.summary()
    for kind in ("png", "pdf"):
        assert render(finding_figure(again), kind) == render(finding_figure(small), kind)


def test_progress_counts_to_the_end():
    seen = []
    reproduce(n_seeds=2, n_episodes=30, horizons=[3], workers=2, progress=lambda *now: seen.append(now))
    done = [d for d, _ in seen]
    assert done[0] == 0
    assert done == sorted(done)
    assert {total for _, total in seen} == {2 * 30 * len(FAMILIES) * len(CONTENDERS)} == {done[-1]}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_progress_raises_ends_the_experiment_and_its_threads(error):
    before = threading.active_count()

    def progress(done, total):
        if done:
            raise error

    with pytest.raises(error):
        reproduce(n_seeds=2, n_episodes=2000, horizons=(3, 4), workers=2, progress=progress)
    assert threading.active_count() == before


@pytest.mark.parametrize("wrong", [{"n_seeds": 0}, {"n_episodes": 0}, {"workers": 0}, {"horizons": []}])
def test_refused(wrong):
    with pytest.raises(livarot.LivarotError):
        reproduce(**({"n_seeds": 1, "n_episodes": 2, "horizons": [3]} | wrong))


# what is reported


def test_summary_by_hand():
    exact = {"livarot": [1.0, 2.0, 6.0], "uniform": [4.0, 4.0, 4.0]}
    result = made_up(lambda f, c, h: exact.get(c.key, [3.0, 3.0, 3.0]), horizons=(4,))
    numbers = result.summary()["families"]["fixed-gap"]["agents"]["livarot"]["4"]
    sd = statistics.stdev([1, 2, 6])
    assert numbers["exact"]["mean"] == 3.0
    assert numbers["exact"]["median"] == 2.0
    assert numbers["exact"]["sd"] == pytest.approx(sd)
    assert numbers["exact"]["regret_over_h15"] == pytest.approx({"mean": 3 / 8, "sd": sd / 8})
    assert numbers["realised"] == numbers["exact"]
    assert numbers["locked_in"] == pytest.approx(1 / 3)  # 6 > 2; 2 is not above half of 4
    assert result.summary()["families"]["fixed-gap"]["agents"]["uniform"]["4"]["locked_in"] is None


def test_summary_is_json_and_complete(small):
    summary = json.loads(json.dumps(small.summary(), allow_nan=False))
    assert summary == small.summary()
    for family in FAMILIES:
        assert summary["families"][family.key]["gap"]["3"] == family.gap(3, 20)
        for contender in CONTENDERS:
            assert summary["families"][family.key]["agents"][contender.key].keys() == {"3", "4"}


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
        assert {len(line) for line in lines} == {2 + len(CONTENDERS)}


# what the text claims


def finals(paper_share: float, fixed_share: float):
    def exact(family, contender, horizon):
        share = 1.0 if contender is UNIFORM else paper_share if family is PAPER_GAP else fixed_share
        return np.array([0.9, 1.0, 1.1]) * share * 2.5 * horizon**1.5

    return exact


def words(result: Reproduction) -> str:
    return " ".join(text(result).split())


def test_text_when_only_the_fixed_gap_tells():
    found = words(made_up(finals(0.95, 0.2)))
    assert "the uniform policy, which never learns, has 2.50; LIVAROT has 2.38; UCRL-MNL-OL has 2.38" in found
    assert "95 % of the uniform policy's regret" in found
    assert "cannot tell a learner from a coin" in found
    assert "20 % of the uniform policy's regret. Here learning shows." in found
    assert "LIVAROT 0 %; single-phase LIVAROT 0 %; UCRL-MNL-OL 0 %." in found


def test_text_does_not_claim_what_is_not_so():
    found = words(made_up(finals(0.3, 0.9)))
    assert "cannot tell" not in found and "Here learning shows" not in found
    assert "visibly below it" in found and "Not every learner is well below it" in found
    assert "LIVAROT 100 %; single-phase LIVAROT 100 %; UCRL-MNL-OL 100 %." in found


def test_text_compares_the_phases():
    def exact(family, contender, horizon):
        return [1.0] if contender is SINGLE_PHASE else [2.0]

    found = words(made_up(exact))
    assert "Without the burn-in of 80 episodes LIVAROT has 50 % of the regret it has with it" in found


def test_text_of_a_small_run_is_finite(small):
    assert "nan" not in text(small) and "inf" not in text(small)
    assert max(map(len, text(small).splitlines())) <= 78


# figures and files


def test_figures_leave_the_settings_alone(small):
    before = dict(mpl.rcParams)
    for figure in figures(small).values():
        render(figure, "png")
    assert dict(mpl.rcParams) == before


def test_one_legend_and_one_colour_per_agent(small):
    for figure in figures(small).values():
        assert len(figure.legends) == 1
        assert not any(panel.get_legend() for panel in figure.axes)
        for panel in figure.axes:
            for line in panel.lines:
                names = [c for c in CONTENDERS if c.label == line.get_label()]
                assert all(line.get_color() == COLOUR[c.key] for c in names)


def test_every_figure_shows_the_uniform_policy(small):
    for family in FAMILIES:
        assert UNIFORM in shown(family)
        assert (SINGLE_PHASE in shown(family)) == (family is FIXED_GAP)
    for figure in figures(small).values():
        assert UNIFORM.label in [entry.get_text() for entry in figure.legends[0].get_texts()]


def test_a_curve_is_the_mean_over_seeds(small):
    panel = cumulative_figure(small, FIXED_GAP, "realised").axes[1]
    (line,) = (line for line in panel.lines if line.get_label() == UCRL_MNL_OL.label)
    assert np.array_equal(line.get_xdata(), np.arange(1, 21))
    assert np.allclose(line.get_ydata(), small.of(FIXED_GAP, UCRL_MNL_OL, 4).realised.mean(axis=0))


def test_panels(small):
    assert len(cumulative_figure(small, PAPER_GAP, "exact").axes) == 2
    five = made_up(lambda f, c, h: [1.0, 2.0], horizons=(3, 4, 5, 6, 7))
    visible = [a for a in cumulative_figure(five, PAPER_GAP, "exact").axes if a.get_visible()]
    assert [a.get_title() for a in visible] == [f"H = {h}" for h in range(3, 8)]
    assert all(a.get_xlabel() for a in visible[-3:])
    assert len(scaled_figure(small, PAPER_GAP).axes) == len(finding_figure(small).axes) == 2


def test_files(small, tmp_path):
    written = write_files(small, tmp_path / "a" / "b")
    assert {path.name for path in written} == {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert {path.suffix for path in written} == {".txt", ".json", ".csv", ".png", ".pdf"}
    for path in written:
        start = path.read_bytes()[:4]
        assert path.suffix != ".png" or start == b"\x89PNG"
        assert path.suffix != ".pdf" or start == b"%PDF"
    assert json.loads((tmp_path / "a" / "b" / "summary.json").read_text()) == small.summary()


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(livarot.LivarotError, match="is not a folder"):
            check_folder(wrong)
    assert check_folder(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    assert not (tmp_path / "new").exists()
