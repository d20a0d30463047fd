"""The figures of the paper's experiment: legends of what is shown, one colour per agent, the means that they claim."""

import matplotlib as mpl
import numpy as np
import pytest

from livarot.report.drawing import render
from livarot.studies.paper.experiment import (
    CONTENDERS,
    FAMILIES,
    FIXED_GAP,
    LIVAROT,
    PAPER_GAP,
    SINGLE_PHASE,
    UCRL_MNL_OL,
    UNIFORM,
)
from livarot.studies.paper.figures import (
    COLOUR,
    ORACLE,
    RATE,
    cumulative_figure,
    figures,
    finding_figure,
    realised_figure,
    scaled_figure,
    shown,
)
from tests.support.paper import made_up


def test_figures_leave_the_settings_alone(small):
    before = dict(mpl.rcParams)
    for figure in figures(small).values():
        render(figure, "png")
    assert dict(mpl.rcParams) == before


def legends(figure):
    """Every legend with the panels that it stands for."""
    if figure.legends:
        return [(one, figure.axes) for one in figure.legends]
    return [(panel.get_legend(), [panel]) for panel in figure.axes]


def names(legend):
    return [entry.get_text() for entry in legend.get_texts()]


def test_one_colour_per_agent(small):
    for figure in figures(small).values():
        for panel in figure.axes:
            for line in panel.lines:
                known = [c for c in CONTENDERS if c.label == line.get_label()]
                assert all(line.get_color() == COLOUR[c.key] for c in known)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.key)
def test_a_legend_names_what_its_panels_show_and_nothing_else(small, family):
    for figure in (finding_figure(small), scaled_figure(small, family), cumulative_figure(small, family)):
        for legend, panels in legends(figure):
            for panel in panels:
                assert names(legend) == panel.get_legend_handles_labels()[1]
    assert [len(names(legend)) for legend, _ in legends(finding_figure(small))] == [4, 6]


def test_no_mark_of_the_oracle_can_be_taken_for_an_interval(small):
    for figure in (finding_figure(small), *(cumulative_figure(small, family) for family in FAMILIES)):
        found = [line for panel in figure.axes for line in panel.lines if line.get_label() == ORACLE]
        assert len(found) == len(figure.axes) and {line.get_marker() for line in found} == {"None"}
    assert "mean only" in ORACLE


def test_files_are_called_after_the_gap(small):
    kinds = ("figure1", "figure2", "realised")
    gaps = ("gap-of-the-paper", "gap-independent-of-T")
    assert set(figures(small)) == {"finding"} | {f"{kind}-{gap}" for kind in kinds for gap in gaps}


def test_every_figure_shows_the_uniform_policy(small):
    for family in FAMILIES:
        assert UNIFORM in shown(family)
        assert (SINGLE_PHASE in shown(family)) == (family is FIXED_GAP)
    for figure in figures(small).values():
        assert all(UNIFORM.label in names(legend) for legend, _ in legends(figure))


def test_a_curve_is_the_mean_over_seeds(small):
    panel = cumulative_figure(small, FIXED_GAP).axes[1]
    (line,) = (line for line in panel.lines if line.get_label() == UCRL_MNL_OL.label)
    assert np.array_equal(line.get_xdata(), np.arange(1, 21))
    assert np.allclose(line.get_ydata(), small.of(FIXED_GAP, UCRL_MNL_OL, 4).exact.mean(axis=0) / 4**1.5)


def test_realised_regret_is_exact_regret_and_noise():
    """Noise 3 for the first seed and 5 for the second, whatever the agent; agents differ by 1 in exact regret."""

    def exact(family, contender, horizon):
        return [8.0, 12.0] if contender is UNIFORM else [7.0, 9.0] if contender is LIVAROT else [4.0, 4.0]

    def realised(family, contender, horizon):
        return np.array(exact(family, contender, horizon)) + (0.0 if contender is LIVAROT else [3.0, 5.0])

    noise, differences = realised_figure(made_up(exact, horizons=(4,), realised=realised), PAPER_GAP).axes
    assert noise.get_ylim() == differences.get_ylim()
    assert [round(8 * box.lines[0].get_ydata()[0], 9) for box in noise.containers] == [0.0, 4.0, 4.0]
    ends = [8 * path.vertices[:, 1] for path in noise.collections[-1].get_paths()]
    assert np.allclose(ends, [[4.0 - 2**0.5, 4.0 + 2**0.5]])  # mean and standard deviation of 3 and 5
    found = [round(8 * box.lines[0].get_ydata()[0], 9) for box in differences.containers]
    assert found == [-2.0, -6.0, -6.0, -6.0]  # LIVAROT without the noise, then UCRL-MNL-OL; each exact, realised
    assert [box.lines[0].get_markerfacecolor() == "white" for box in differences.containers] == [False, True] * 2
    ends = [8 * path.vertices[:, 1] for path in differences.collections[0].get_paths()]
    assert np.allclose(ends, [[-4.0, 0.0]])  # two standard errors: -1 and -3 have 1


def test_panels(small):
    assert len(cumulative_figure(small, PAPER_GAP).axes) == 2
    five = made_up(lambda f, c, h: [1.0, 2.0], horizons=(3, 4, 5, 6, 7))
    visible = [a for a in cumulative_figure(five, PAPER_GAP).axes if a.get_visible()]
    assert [a.get_title() for a in visible] == [f"H = {h}" for h in range(3, 8)]
    assert all(a.get_xlabel() for a in visible[-3:])
    assert len(scaled_figure(small, PAPER_GAP).axes) == len(finding_figure(small).axes) == 2


def test_nothing_exact_is_drawn_below_zero_or_cut_off():
    """One bad seed among many: mean - sd would be negative."""
    found = made_up(lambda f, c, h: [0.1] * 9 + [50.0], horizons=(3, 4))
    for figure in (finding_figure(found), *(scaled_figure(found, family) for family in FAMILIES)):
        for panel in figure.axes:
            low, high = panel.get_ylim()
            ends = [y for bars in panel.collections for segment in bars.get_segments() for _, y in segment]
            assert ends and low == 0.0 and min(ends) >= 0.0 and max(ends) <= high
    for panel in cumulative_figure(found, PAPER_GAP).axes:
        assert min(path.vertices[:, 1].min() for band in panel.collections for path in band.get_paths()) >= 0.0


def test_panels_have_one_scale(small):
    panels = cumulative_figure(small, PAPER_GAP).axes
    assert len({panel.get_ylim() for panel in panels}) == 1


def test_the_share_of_the_uniform_policy():
    found = made_up(lambda f, c, h: [4.0, 4.0] if c is UNIFORM else [1.0, 3.0], horizons=(3, 4))
    right = scaled_figure(found, PAPER_GAP).axes[1]
    heights = {box.get_label(): box.lines[0].get_ydata().tolist() for box in right.containers}
    assert np.allclose(heights.pop(UNIFORM.label), 100.0)
    assert heights and all(np.allclose(values, 50.0) for values in heights.values())


def test_the_sign_oracle_and_the_rate_of_log_t_are_lines(small):
    paper, fixed = finding_figure(small).axes[:2]
    for axes, family, names in ((paper, PAPER_GAP, {ORACLE}), (fixed, FIXED_GAP, {ORACLE, RATE})):
        lines = {line.get_label(): line for line in axes.get_lines() if line.get_label() in (ORACLE, RATE)}
        assert lines.keys() == names
        wanted = [small.limits(family, h)[0] / h**1.5 for h in small.horizons]
        assert lines[ORACLE].get_ydata() == pytest.approx(wanted)
    curve = next(line for line in cumulative_figure(small, FIXED_GAP).axes[0].get_lines() if line.get_label() == ORACLE)
    assert curve.get_ydata()[-1] == pytest.approx(
        small.limits(FIXED_GAP, small.horizons[0])[0] / small.horizons[0] ** 1.5
    )
