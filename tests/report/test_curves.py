"""The figures of a report: nothing is cut off, panels have titles of their own, names are text."""

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from livarot.report import curves
from livarot.report.curves import COLOURS, MAX_AGENTS, PAGE_HEIGHT, drawable, escaped, figures
from livarot.report.read_runs import read_runs
from livarot.report.summary import summarise
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from tests.support.stores import store_of

LONG = "a rather long description of the environment, for the appendix of the paper"


def drawn(path, *, agents, horizons=(4,), gaps=(0.1,), episodes=20, seeds=5, label=LONG, scale=1.0):
    settings = {"horizon": list(horizons), "gap": list(gaps)}
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings=settings, label=label)],
        agents=agents,
        episodes=episodes,
        seeds=seeds,
    )
    summary = summarise(read_runs(store_of(path, experiment, scale)))
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
    words = [one for one in found if not re.fullmatch(r"[−\d.]+", one.get_text())]
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
        assert axes.get_xlabel() == f"{15 - len(shown)} agents more in the page"
    assert "4 environments" in figure.get_supxlabel()


def test_scaling_has_the_horizons_as_ticks_and_agents_side_by_side(many):
    _, found = many
    axes = found["scaling"].axes[0]
    assert list(axes.get_xticks()) == [3, 4, 5, 6] and len(axes.get_xticks(minor=True)) == 0
    first = [line.get_xdata()[0] for line in axes.get_lines() if line.get_gid()]
    assert len(set(first)) == len(first) == MAX_AGENTS and np.allclose(first, 3.0, rtol=0.1)
    styles = {line.get_linestyle() for line in axes.get_lines() if line.get_gid()}
    assert "-" in styles and len(styles) > 1


def test_one_episode_is_a_marker(tmp_path):
    _, found = drawn(tmp_path / "a", agents=[AgentSpec(name="uniform")], episodes=1, seeds=1)
    [line] = found["curves"].axes[0].get_lines()
    assert line.get_marker() == "o" and len(line.get_xdata()) == 1
    _, found = drawn(tmp_path / "b", agents=[AgentSpec(name="uniform")], episodes=2, seeds=1)
    [line] = found["curves"].axes[0].get_lines()
    assert line.get_marker() in ("", "None")


def test_names_in_figures_are_not_mathematics():
    assert escaped("$x$") == r"\$x\$"
    assert not escaped("_hidden").startswith("_")


def test_signs_without_a_font_are_told_by_their_code(monkeypatch):
    monkeypatch.setattr(curves, "_drawn", lambda sign: sign.isascii() and sign.isprintable())
    assert drawable("é ﬁ\n猫") == "e fi [732B]"
    assert drawable("\u202ex") == "[202E]x"
