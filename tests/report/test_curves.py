"""The figures of a report: nothing is cut off, panels have titles of their own, names are text."""

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from livarot import LivarotError
from livarot.report.curves import COLOURS, DASHES, DODGE, MARKERS, MAX_AGENTS, PAGE_HEIGHT, figures, plot_scaling
from livarot.report.read_runs import read_runs
from livarot.report.summary import summarise
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from tests.support.stores import store_of

LONG = "a rather long description of the environment, for the appendix of the paper"


def drawn(path, *, agents, horizons=(4,), gaps=(0.1,), episodes=20, seeds=5, scale=1.0, controls=True):
    settings = {"horizon": list(horizons), "gap": list(gaps)}
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings=settings, label=LONG)],
        agents=agents,
        episodes=episodes,
        seeds=seeds,
    )
    summary = summarise(read_runs(store_of(path, experiment, scale)), controls=controls)
    return summary, figures(summary)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Sixteen agents in twelve environments."""
    grid = {"beta_scale": [0.01 * k for k in range(1, 8)], "step_size": [1.0, 2.0]}
    agents = [AgentSpec(name="uniform"), AgentSpec(name="bonus-livarot", settings=grid), AgentSpec(name="oracle")]
    path = tmp_path_factory.mktemp("curves") / "store"
    return drawn(path, agents=agents, horizons=(3, 4, 5, 6), gaps=(0.02, 0.05, 0.1), scale={"oracle": 0.0})


def texts(figure):
    """Every text but the numbers of axes (those beyond the limits are not drawn), with the box it takes."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found = [one for one in figure.findobj(mpl.text.Text) if one.get_visible() and one.get_text().strip()]
    words = [one for one in found if not re.fullmatch(r"[−\d.e]+", one.get_text())]
    visible = [one for one in words if one.axes is None or one.axes.get_visible()]
    return [(one.get_text(), one.get_window_extent(canvas.get_renderer())) for one in visible]


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_visible()]


@pytest.mark.parametrize("name", ["curves", "scaling", "comparisons"])
def test_no_text_is_cut_off_and_panels_have_titles_of_their_own(many, name):
    _, found = many
    figure = found[name]
    outside = [
        text
        for text, box in texts(figure)
        if box.x0 < -1.0 or box.y0 < -1.0 or box.x1 > figure.bbox.width + 1.0 or box.y1 > figure.bbox.height + 1.0
    ]
    assert outside == []
    assert len(set(titles(figure))) == len(titles(figure)) > 1
    assert all("gap=" in title for title in titles(figure))


def test_the_legend_names_agents_in_their_order_with_their_colours(many):
    summary, found = many
    [legend] = found["curves"].legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == sorted(names, key=summary.agents.index) and len(names) == MAX_AGENTS + 2
    for name, line in zip(names, legend.get_lines(), strict=True):
        assert line.get_color() == COLOURS[summary.agents.index(name) % len(COLOURS)]
    assert "simultaneous" in legend.get_title().get_text()
    assert "not shown: 3 environments and 6 agents" in legend.get_title().get_text()
    bands = [len(axes.collections) for axes in found["curves"].axes]
    assert set(bands) == {MAX_AGENTS + 2}  # one band for each curve


def test_comparisons_fit_a_page_and_say_what_is_left_out(many):
    summary, found = many
    figure = found["comparisons"]
    assert figure.get_figheight() <= PAGE_HEIGHT
    for axes in (axes for axes in figure.axes if axes.get_visible()):
        shown = [tick.get_text() for tick in axes.get_yticklabels()]
        assert len(set(shown)) == len(shown) and set(shown) <= set(summary.agents)
        assert axes.get_xlabel() == f"{16 - len(shown)} agents more in the page"
    assert "4 environments" in figure.get_supxlabel()


def test_scaling_has_the_horizons_as_ticks_and_agents_side_by_side(many):
    _, found = many
    axes = found["scaling"].axes[0]
    assert list(axes.get_xticks()) == [3, 4, 5, 6] and len(axes.get_xticks(minor=True)) == 0
    first = [line.get_xdata()[0] for line in axes.get_lines() if line.get_gid()]
    assert len(set(first)) == len(first) == MAX_AGENTS and np.allclose(first, 3.0, rtol=DODGE + 1e-12)
    assert DODGE <= 0.015
    styles = {line.get_linestyle() for line in axes.get_lines() if line.get_gid()}
    assert "-" in styles and len(styles) > 1


def test_the_legend_of_scaling_names_agent_and_slope_together(many):
    summary, found = many
    for axes in found["scaling"].axes[: len([one for one in summary.families if one.axis == "horizon"])]:
        legend, lines = axes.get_legend(), [line for line in axes.get_lines() if line.get_gid()]
        entries = [" ".join(text.get_text().split()) for text in legend.get_texts()]
        assert len(entries) == len(lines) == len(set(entries)) == MAX_AGENTS
        for entry, line in zip(entries, lines, strict=True):
            assert re.fullmatch(re.escape(summary.agents[int(line.get_gid())]) + r": [−\d.e]+ \[.*, .*\]", entry)
    assert not found["scaling"].legends


def test_panels_of_an_environment_have_one_range_of_regret_unless_curves_would_be_flat(tmp_path):
    agents = [AgentSpec(name="psrl")]
    for horizons, ranges in (((4, 8), 1), ((3, 30), 2)):  # regrets of stores here grow with H^1.5
        summary, found = drawn(tmp_path / str(horizons), agents=agents, horizons=horizons)
        limits = [axes.get_ylim() for axes in found["curves"].axes]
        assert len(limits) == len(summary.panels) == 2 and len(set(limits)) == ranges
        note = found["curves"].legends[0].get_title().get_text()
        assert ("range of regret differs between panels" in note) == (ranges == 2)
        tops = [max(one.curves["regret"].simultaneous.high) for one in summary.cells]
        assert all(low < 0.0 and high >= top for (low, high), top in zip(limits, tops, strict=True))


def test_comparisons_have_one_order_in_all_panels_and_say_which_agent_is_best(tmp_path):
    agents = [AgentSpec(name=name) for name in ("livarot", "psrl", "ucbvi", "ucrl2")]
    summary, found = drawn(tmp_path / "store", agents=agents, horizons=(3, 4, 5), seeds=5)
    figure = found["comparisons"]
    panels = [axes for axes in figure.axes if axes.get_visible()]
    rows = [[tick.get_text() for tick in axes.get_yticklabels()] for axes in panels]
    assert len(rows) == 3 and rows[0] == rows[1] == rows[2] and sorted(rows[0]) == sorted(summary.agents)
    for axes, panel in zip(panels, range(3), strict=True):
        [best] = [text for text in axes.texts if text.get_text() == "best"]
        least = min(summary.of_panel(panel), key=lambda one: one.values.mean())
        assert rows[panel][int(best.get_position()[1])] == summary.agents[least.agent]
        assert len(axes.containers) == 3


def test_one_episode_is_a_marker(tmp_path):
    _, found = drawn(tmp_path / "a", agents=[AgentSpec(name="uniform")], episodes=1, seeds=1)
    [line] = found["curves"].axes[0].get_lines()
    assert line.get_marker() == "o" and len(line.get_xdata()) == 1


def test_forty_agents_can_be_told_apart_without_colour(tmp_path):
    assert len({(k % len(DASHES), k % len(MARKERS)) for k in range(40)}) == 40
    agents = [AgentSpec(name=name) for name in ("livarot", "psrl", "ucbvi", "rlsvi", "ucrl2")]
    _, found = drawn(tmp_path / "store", agents=agents, horizons=(3, 4))
    for name in ("curves", "scaling"):
        lines = [line for line in found[name].axes[0].get_lines() if line.get_gid()]
        looks = {(str(line._dash_pattern), line.get_marker()) for line in lines}
        assert len(lines) == len(looks) == 5
        assert all(line.get_marker() in MARKERS for line in lines)


def test_controls_are_out_of_the_way_unless_they_are_asked_for_or_alone(tmp_path):
    names = ["oracle", "psrl", "uniform", "livarot"]
    agents, scale = (
        [AgentSpec(name=name) for name in names],
        {"oracle": 0.5, "uniform": 90.0, "psrl": 2.0, "livarot": 1.0},
    )

    def shown(found):
        curves = {int(line.get_gid()) for line in found["curves"].axes[0].get_lines() if line.get_gid()}
        lines = {int(line.get_gid()) for line in found["scaling"].axes[0].get_lines() if line.get_gid()}
        pairs = {tick.get_text() for tick in found["comparisons"].axes[0].get_yticklabels()}
        return curves, lines, pairs

    for controls, wanted in ((False, {"psrl", "livarot"}), (True, set(names))):
        summary, found = drawn(tmp_path / str(controls), agents=agents, horizons=(3, 4), scale=scale, controls=controls)
        curves, lines, pairs = shown(found)
        assert {summary.agents[k] for k in curves} == {summary.agents[k] for k in lines} == wanted
        assert pairs == wanted
    _, found = drawn(tmp_path / "alone", agents=agents[:1] + agents[2:3], controls=False)
    assert len([line for line in found["curves"].axes[0].get_lines() if line.get_gid()]) == 2


def test_an_interval_that_holds_zero_is_hollow(tmp_path):
    agents = [AgentSpec(name=name) for name in ("livarot", "psrl", "ucbvi")]
    _, found = drawn(tmp_path / "store", agents=agents, scale={"livarot": 1.0, "psrl": 1.0, "ucbvi": 9.0})
    faces = {bar.lines[0].get_markerfacecolor() for bar in found["comparisons"].axes[0].containers}
    assert "white" in faces and len(faces) == 2


def test_the_axis_of_scaling_can_be_chosen(many, tmp_path):
    summary, _ = many
    assert figures(summary, "gap")["scaling"].axes[0].get_xlabel() == "gap"
    along = figures(summary, "agent.beta_scale")["scaling"]
    entries = [" ".join(text.get_text().split()) for text in along.axes[0].get_legend().get_texts()]
    assert [entry.partition(":")[0] for entry in entries] == [f"bonus-livarot (step_size={k})" for k in (1, 2)]
    with pytest.raises(LivarotError, match=r"against: no runs differ in 'dim' only; one of: horizon, gap, agent\."):
        figures(summary, "dim")
    drawn(tmp_path / "store", agents=[AgentSpec(name="psrl")], gaps=(0.05, 0.1))
    axes = plot_scaling(tmp_path / "store", "gap").axes[0]
    assert list(axes.get_xticks()) == [0.05, 0.1] and list(axes.get_lines()[0].get_xdata()) == [0.05, 0.1]
    with pytest.raises(LivarotError, match="against"):
        plot_scaling(tmp_path / "store", "horizon")
