"""Figures of measures show every configuration and interval."""

import pytest

from basin.analysis.sweep_measures import basis_of
from basin.figures import measures_and_gap as figures
from basin.figures import style
from clear_sweep import by_label


def test_figures_show_every_configuration_and_interval(clear, few_draws, drawing):
    basis, found = basis_of(clear), list(by_label(clear).values())
    figure = figures.against_gap(found, basis)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == len(found) == 7
    for ax, c in zip(shown, found):
        drawn = sorted(float(x) for container in ax.containers for x in container.lines[0].get_xdata())
        assert drawn == pytest.approx(sorted(c.measure.configs.value))
        assert "(" in ax.get_xlabel()
    forest = figures.forest(found, found)
    assert len(forest.axes) == 2 and "generalisation gap" in forest.axes[0].get_xlabel()
    band = forest.axes[0].collections[0].get_paths()[0].vertices[:, 0]
    assert (band.min(), band.max()) == pytest.approx(found[0].tau.band)


def test_many_measures_are_counted_not_dropped_in_silence(clear, few_draws, drawing):
    basis, found = basis_of(clear), list(by_label(clear).values())
    figure = figures.against_gap(found * 4, basis)
    assert figure.get_suptitle() == "the first 24 of 28 measures"


@pytest.mark.parametrize(("low", "high"), [(0.62, 1.8), (0.8, 1.25), (0.5, 3.0), (0.3, 20.0)])
def test_a_narrow_logarithmic_axis_has_three_numbers(low, high):
    figure, ax = style.panels(1, 1, 7.0, 2.0)
    only = ax[0][0]
    only.set_xscale("log")
    only.set_xlim(low, high)
    style.few_logs(only.xaxis, 7.0)
    figure.canvas.draw()
    shown = [label.get_text() for label in only.get_xticklabels() if low <= label.get_position()[0] <= high]
    assert 3 <= len([text for text in shown if text]) <= 12
