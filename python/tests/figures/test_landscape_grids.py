"""Surfaces: the reader on files made by h5py alone, figures in the right orientation, and one made by the program itself."""

import numpy as np
import pytest

import basin
from basin.figures import landscape_grids as figures
from basin.reader.landscape import NONFINITE, NOT_MEASURED, OK
from panels import words_in
from surface_files import ALPHA, BETA, bowl, make

pytestmark = pytest.mark.usefixtures("drawing")


def test_the_grid_is_beta_by_alpha(tmp_path):
    surface = basin.surface(make(tmp_path / "s.h5", bowl()))
    assert list(surface.plot.axes) == ["beta", "alpha"] and surface.plot["train_loss"].shape == (4, 7)
    assert surface.plot["train_loss"][0, 6] == pytest.approx(0.1 + 4 + 5)
    assert surface.recipe["dtype"] == "float32" and surface.kind == "plane"
    table = surface.plot.table()
    row = table[(table.alpha == ALPHA[6]) & (table.beta == BETA[0])].iloc[0]
    assert row.train_loss == surface.plot["train_loss"][0, 6] and len(table) == 28
    with pytest.raises(basin.ReadError, match='no column "trainloss"; there are: train_loss'):
        surface.plot["trainloss"]


def segments(ax):
    """The white contour lines as pairs of level and points. Labels cut pieces out of them."""
    (lines,) = [c for c in ax.collections if hasattr(c, "allsegs") and not c.filled]
    return [(level, seg) for level, segs in zip(lines.levels, lines.allsegs) for seg in segs if len(seg)]


def test_alpha_lies_across_and_beta_upwards(tmp_path):
    """The test loss is 2 (3 + alpha): its contours stand at alpha = level / 2 - 3. Likewise one of 2 (3 + beta)."""
    for name, loss, column in (("a", 3 + ALPHA[None, :], 0), ("b", 3 + BETA[:, None], 1)):
        ax = figures.contours(basin.surface(make(tmp_path / f"{name}.h5", np.broadcast_to(loss, (4, 7))))).axes[1]
        assert ax.get_xlim() == (-1, 2) and ax.get_ylim() == (-1, 1)
        found = segments(ax)
        assert len({level for level, _ in found}) >= 3
        for level, seg in found:
            np.testing.assert_allclose(seg[:, column], level / 2 - 3, atol=1e-9)


def test_both_sets_share_a_scale_that_is_logarithmic_where_needed(tmp_path):
    figure = figures.contours(basin.surface(make(tmp_path / "s.h5", bowl())))
    assert [ax.get_title("left") for ax in figure.axes[:2]] == ["training examples", "test examples"]
    bar = figure.axes[2]
    assert bar.get_yscale() == "log" and bar.get_ylabel() == "mean loss (nat)"
    assert bar.get_ylim() == pytest.approx((0.1 + (5 / 9), 18.2), rel=0.01)  # no grid point at 0
    flat = figures.contours(basin.surface(make(tmp_path / "f.h5", 3 + 0.1 * bowl())), "acc")
    assert flat.axes[2].get_yscale() == "linear" and flat.axes[2].get_ylabel() == "accuracy"


def test_cells_without_a_number_are_marked(tmp_path):
    loss, state = bowl(), np.full((4, 7), OK)
    loss[0, 6] = loss[3, 0] = np.nan
    state[0, 6], state[3, 0] = NONFINITE, NOT_MEASURED
    figure = figures.contours(basin.surface(make(tmp_path / "s.h5", loss, state)))
    assert {t.get_text() for t in figure.legends[0].get_texts()} == {"not finite", "not measured yet"}
    marks = [
        tuple(c.get_offsets()[0]) for c in figure.axes[0].collections if len(c.get_offsets()) == 1 and not hasattr(c, "allsegs")
    ]
    assert sorted(marks) == [(-1, 1), (2, -1)]


def test_nothing_finite_is_said(tmp_path):
    figure = figures.contours(basin.surface(make(tmp_path / "s.h5", np.full((4, 7), np.nan), np.full((4, 7), NONFINITE))))
    assert words_in(figure.axes[0]) == ["no finite points"]


def test_the_path_lies_where_it_was_projected(tmp_path):
    steps = np.array([0.0, 5, 10])
    path = {"beta": np.array([0.8, 0.3, 0]), "alpha": np.array([1.5, 1.0, 0]), "distance": np.array([0.4, 0.2, 0])}
    surface = basin.surface(make(tmp_path / "s.h5", bowl(), kind="trajectory", path=([("update", steps)], path)))
    figure = figures.contours(surface)
    line = figure.axes[0].lines[1]
    assert list(line.get_xdata()) == [1.5, 1.0, 0] and list(line.get_ydata()) == [0.8, 0.3, 0]
    assert "0.4 off the plane" in figure.legends[0].get_texts()[1].get_text()


def test_relief_has_logarithmic_heights(tmp_path):
    ax = figures.relief(basin.surface(make(tmp_path / "s.h5", bowl()))).axes[0]
    assert ax.get_zlabel() == "mean loss (nat)" and (ax.get_xlabel(), ax.get_ylabel()) == ("α", "β")
    low, high = ax.get_zlim()
    assert low < np.log10(bowl().min()) and high > np.log10(bowl().max()) and high < 2


def test_lines_between_checkpoints_mark_both(tmp_path):
    alpha = np.array([-0.5, 0, 0.5, 1, 1.5])
    surface = basin.surface(make(tmp_path / "s.h5", alpha**2 + 0.2, kind="line", axes=[("alpha", alpha)]))
    loss, accuracy = figures.lines(surface).axes
    assert loss.get_ylabel() == "mean loss (nat)" and accuracy.get_ylabel() == "accuracy" and loss.get_yscale() == "log"
    marks = [(line.get_xdata()[0], line.get_ydata()[0]) for line in loss.lines if line.get_marker() == "o"]
    assert marks[:2] == [(0, 0.2), (1, 1.2)]
    with pytest.raises(ValueError, match="a line has no plane"):
        figures.contours(surface)


def test_lines_along_directions_have_a_band(tmp_path):
    alpha, direction = np.linspace(-1, 1, 5), np.arange(3.0)
    loss = 1 + (1 + direction[:, None]) * alpha[None, :] ** 2
    band = {}
    for column, factor in (("train_loss", 1), ("test_loss", 2), ("train_acc", 0), ("test_acc", 0)):
        mean = factor * loss.mean(0)
        band |= {column: mean, f"{column}_low": mean - 0.1, f"{column}_high": mean + 0.1}
    axes = [("direction", direction), ("alpha", alpha)]
    surface = basin.surface(make(tmp_path / "s.h5", loss, kind="line", axes=axes, band=([("alpha", alpha)], band)))
    ax = figures.lines(surface).axes[0]
    assert len(ax.lines) == 2 * (3 + 1) and len(ax.collections) == 2
    np.testing.assert_array_equal(ax.lines[3].get_ydata(), loss.mean(0))


def test_what_the_program_writes_is_read(tiny_runs):
    tiny = tiny_runs()
    surface = tiny.landscape("trajectory", tiny.train(), "trajectory.alpha_points=5", "trajectory.beta_points=3")
    shape = tuple(map(len, surface.plot.axes.values()))
    assert surface.kind == "trajectory" and surface.status == "ok" and shape in {(b, a) for b in (3, 4) for a in (5, 6)}
    assert (surface.plot.state == OK).all() and np.isfinite(surface.plot["test_loss"]).all()
    assert next(iter(surface["path"].labels["update"])) == "start" and surface.recipe["trajectory.centre"] == "final"
    figures.contours(surface)
