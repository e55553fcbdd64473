"""Barriers, curves and radial profiles: tables and figures of surfaces made by hand, and of one that the program wrote."""

from pathlib import Path

import numpy as np
import pytest

from basin.figures import landscape_paths as paths
from basin.reader.landscape import Plot, Surface, path_summary

pytestmark = pytest.mark.usefixtures("drawing")

T = np.linspace(0, 1, 5)
LABELS = {"path": ["as-is", "matched"], "quantity": ["train_loss", "train_error"]}


def barrier():
    """Losses 1 + t + 4 t (1 - t) and 1 + t: 0.75 over the chord at 1/4, which stands for the barrier here, and none."""
    loss = np.stack([1 + T + 4 * T * (1 - T), 1 + T])
    columns = {"train_loss": loss, "train_loss_error": 0 * loss, "train_acc": np.full((2, 5), 0.75)}
    grid = Plot(
        "barrier", "", {"path": np.arange(2.0), "t": T}, columns, {"path": LABELS["path"]}, about={"train_loss": {"units": "nat"}}
    )
    read = {"barrier": [[0.75, 0], [0, 0]], "excess": [[0.75, 0], [-0.1, 0]], "excess_error": [[0.125, 0], [0.125, 0]],
            "excess_t": [[0.25, 0.25], [0.5, 0.25]]}  # fmt: skip
    axes = {"path": np.arange(2.0), "quantity": np.arange(2.0)}
    read_off = Plot("summary", "", axes, {name: np.array(values, float) for name, values in read.items()}, LABELS)
    return Surface(Path("barrier.h5"), "barrier", "ok", {}, {"barrier": grid, "summary": read_off}, {})


def test_the_summary_has_a_row_a_path_and_quantity():
    table = path_summary(barrier())
    assert list(table.index) == [(p, q) for p in LABELS["path"] for q in LABELS["quantity"]]
    assert table.loc[("as-is", "train_loss"), "excess"] == 0.75 and table.loc[("matched", "train_loss"), "excess"] == -0.1


def test_the_bar_stands_on_the_chord_where_there_is_a_barrier():
    loss, error = paths.path_figure(barrier()).axes
    assert loss.get_ylabel() == "mean loss (nat)" and error.get_ylabel() == "share of examples misclassified"
    bars = [line for line in loss.lines if list(line.get_xdata()) == [0.25, 0.25] and line.get_marker() == "None"]
    assert [list(bar.get_ydata()) for bar in bars] == [[1.25, 2]]
    (error_bar,) = loss.containers
    assert error_bar.lines[2][0].get_segments()[0][:, 1] == pytest.approx([1.75, 2.25])
    np.testing.assert_array_equal(error.lines[0].get_ydata(), np.full(5, 0.25))
    assert not error.containers
    texts = [text.get_text() for text in loss.figure.legends[0].get_texts()]
    assert texts == ["as they are", "units matched", "training examples"]


def test_unfinished_paths_are_drawn():
    surface = barrier()
    surface.plots.pop("summary")
    surface.plot["train_loss"][1, 2:] = np.nan
    assert len(paths.path_figure(surface).axes[0].lines) == 2


def radial(reached):
    radius = np.array([[0.1, 1.0, 4.0], [0.4, 1.0, np.nan]])
    rays = Plot("radial", "", {"direction": np.arange(2.0), "delta": np.array([0.01, 0.1, 1])}, {"radius": radius},
                about={"delta": {"units": "nat", "long_name": "rise of the training loss"}})  # fmt: skip
    mean = np.log([0.2, 1.0, 9.0])
    profile = {
        "mean_log_radius": mean,
        "mean_log_radius_error": np.array([np.log(2), 0, np.nan]),
        "reached": np.array(reached, float),
    }
    plots = {"radial": rays, "profile": Plot("profile", "", {"delta": rays.axes["delta"]}, profile)}
    return Surface(Path("radial.h5"), "radial", "ok", {"radial.norm": "unit"}, plots, {})


def test_the_radial_mean_has_its_error_or_is_a_bound():
    ax = paths.radial_figure(radial([2, 2, 1])).axes[0]
    (bars,) = ax.containers
    assert list(bars.lines[0].get_ydata()) == pytest.approx([0.2, 1])
    np.testing.assert_allclose(bars.lines[2][0].get_segments()[0][:, 1], [0.05, 0.8])  # factors of exp(2 log 2)
    (bound,) = [line for line in ax.lines if line.get_marker() == "^"]
    assert list(bound.get_xdata()) == [1] and bound.get_ydata()[0] == pytest.approx(9)
    assert ax.get_xlabel() == "rise of the training loss (nat)" and ax.get_xscale() == ax.get_yscale() == "log"
    assert len(ax.get_legend().get_texts()) == 3
    assert len(paths.radial_figure(radial([2, 2, 2])).axes[0].get_legend().get_texts()) == 2


def test_a_profile_that_nothing_reached_says_so():
    surface = radial([0, 0, 0])
    surface.plot["radius"][:] = np.nan
    figure = paths.radial_figure(surface)
    figure.canvas.draw()
    assert "no direction has risen" in figure.axes[0].texts[0].get_text()


def test_what_has_no_paths_is_one_line():
    with pytest.raises(ValueError, match="a radial has no path to draw; its axes are direction, delta"):
        paths.path_figure(radial([2, 2, 1]))


def test_what_the_program_writes_is_read(tiny_runs):
    tiny = tiny_runs('norm = "batch"')
    tiny.train("seed=1")
    runs = tiny.train("seed=2")
    surface = tiny.landscape("barrier", runs, "barrier.points=3")
    assert next(iter(surface.plot.labels["path"])) == "as-is-reset" and surface.vectors["order_fc1"].shape == (4,)
    assert np.isfinite(path_summary(surface).to_numpy()).all() and len(path_summary(surface)) == 16
    paths.path_figure(surface)
    surface = tiny.landscape("curve", runs, "curve.points=3", "curve.epochs=2", "curve.batch_size=32")
    assert surface.plot["train_loss"].shape == (2, 3) and len(surface.plot.attributes["epoch_losses"]) == 2
    paths.path_figure(surface)
    surface = tiny.landscape("radial", runs[:1], "radial.directions=2", "radial.deltas=[0.01]")
    assert surface.plot["radius"].shape == (2, 1) and (surface["profile"]["reached"] == 2).all()
    paths.radial_figure(surface)
