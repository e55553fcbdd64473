"""Figures draw what they should: missing values are hollow or crossed, never dropped."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from synthetic_sweep import Plan, make_sweep

import basin
from basin import figures, style

SMALL = dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=60, updates=5)
ALL = [figures.accuracy_against_batch, figures.loss_against_accuracy, figures.sharpness_against_batch,
       figures.sharpness_against_loss, figures.trust_ratios, figures.learning_curves]  # fmt: skip


@pytest.fixture(autouse=True)
def close_figures():
    style.use()
    yield
    plt.close("all")


def sweep_of(folder, **plan):
    make_sweep(folder, Plan(**(SMALL | plan)))
    return basin.open_sweep(folder)


def hollow(figure):
    return sum(line.get_markerfacecolor() == "none" and len(line.get_xdata()) for ax in figure.axes for line in ax.lines)


def crosses(figure):
    return sum(len(line.get_xdata()) for ax in figure.axes for line in ax.lines if line.get_marker() == "x")


@pytest.mark.parametrize("draw", ALL)
def test_every_axis_has_a_label_with_a_unit_or_title(tmp_path, draw):
    figure = draw(sweep_of(tmp_path / "s"))
    figure.canvas.draw()
    used = [ax for ax in figure.axes if ax.lines or ax.containers]
    assert used and any(ax.get_ylabel() for ax in used)


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize("ending", ["diverged", "target_not_reached", "failed", "queued"])
def test_figures_survive_whatever_is_missing(tmp_path, draw, ending, recwarn):
    endings = {(p, o, b): ending for p in ("A-epochs", "B") for o in ("sgd", "lamb") for b in (32, 1024)}
    draw(sweep_of(tmp_path / "s", endings=endings)).canvas.draw()
    assert not [w for w in recwarn if "constrained_layout" in str(w.message)]


def test_filled_marks_are_the_means_of_the_finished_runs(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    figure = figures.accuracy_against_batch(sweep)
    drawn = sorted(y for ax in figure.axes for c in ax.containers for y in c.lines[0].get_ydata())
    runs = sweep.runs
    means = sorted(100 * runs.groupby(["protocol", "optimizer", "batch_size"]).test_acc.mean())
    np.testing.assert_allclose(drawn, means)


def test_runs_that_missed_the_target_are_hollow(tmp_path):
    sweep = sweep_of(tmp_path / "s", endings={("B", "sgd", 1024): "target_not_reached"})
    assert hollow(figures.accuracy_against_batch(sweep)) == 3
    assert hollow(figures.loss_against_accuracy(sweep)) == 3
    # They were not probed, so the measures have nothing to say of them: LAMB's three without a resolved noise scale alone.
    assert crosses(figures.sharpness_against_batch(sweep)) == 3


def test_an_unresolved_noise_scale_is_a_cross(tmp_path):
    # The synthetic sweep leaves LAMB's largest batch unresolved: NaN, three seeds.
    assert crosses(figures.sharpness_against_batch(sweep_of(tmp_path / "s"))) == 3


def test_batch_labels():
    assert [style.batch_label(b) for b in (32, 256, 1000, 1024, 65536)] == ["32", "256", "1,000", "1K", "64K"]
