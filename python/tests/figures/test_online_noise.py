"""The noise scale of a run while it trains: the reader's words, the figure's numbers."""

import h5py
import numpy as np
import pytest

import basin
from basin.figures import online_noise
from planned import open_planned

pytestmark = pytest.mark.usefixtures("drawing")

UPDATES = [10.0, 20.0, 30.0, 40.0, 50.0]
OURS = {
    "update": UPDATES, "b_simple": [-90.0, 500.0, 400.0, 300.0, np.nan], "b_simple_low": [0.0, 100.0, 200.0, 250.0, 0.0],
    "b_simple_high": [np.inf, np.inf, 900.0, 360.0, np.inf], "g2_mean": [-1.0, 0.2, 0.3, 0.4, np.nan],
    "batch_size": [64.0, 64.0, 64.0, 320.0, 320.0], "status": [1.0, 1.0, 0.0, 0.0, 3.0],
}  # fmt: skip


def run_with(folder, columns, **attributes):
    sweep = open_planned(folder, dict(batch_sizes=(64,), optimizers=("sgd",), images=20, updates=50), write_runs=True)
    path = folder / "runs" / sweep.runs.run_id.iloc[0]
    if columns:
        with h5py.File(path / "run.h5", "a") as file:
            group = file.create_group("noise_scale")
            group.attrs.update(attributes)
            for name, values in columns.items():
                group[name] = np.asarray(values)
    return basin.load_run(path)


def line(ax, label):
    return next(drawn for drawn in ax.lines if drawn.get_label() == label)


def test_the_reader_gives_the_status_in_words(tmp_path):
    looks = run_with(tmp_path / "s", OURS, every=10, bn_mode="ghost_batch").noise_scale
    assert list(looks.status) == ["not_resolved", "not_resolved", "ok", "ok", "nonfinite"]
    assert looks.attrs["every"] == 10 and looks.attrs["bn_mode"] == "ghost_batch"
    np.testing.assert_array_equal(looks.g2_mean, OURS["g2_mean"])
    assert run_with(tmp_path / "none", {}).noise_scale.empty


def test_the_figure_has_what_is_resolved_with_its_band_and_the_batch_size(tmp_path):
    ax = online_noise.of_run(run_with(tmp_path / "s", OURS)).axes[0]
    drawn = np.asarray(line(ax, "B = tr Σ / |G|²").get_ydata(), float)
    np.testing.assert_array_equal(drawn, [np.nan, np.nan, 400, 300, np.nan])
    assert list(line(ax, "batch size").get_ydata()) == OURS["batch_size"]
    band, opened = (next(c for c in ax.collections if c.get_label() == label) for label in ("95 %", "not resolved"))
    ends = {tuple(point) for path in band.get_paths() for point in path.vertices}
    assert {(30.0, 200.0), (30.0, 900.0), (40.0, 250.0), (40.0, 360.0)} <= ends and not any(x in (10, 20, 50) for x, _ in ends)
    xs = [x for path in opened.get_paths() for x, _ in path.vertices]
    assert min(xs) == 10 and max(xs) <= 25
    assert ax.get_yscale() == "log" and ax.get_ylim()[1] < 1e4, "an infinite end set the axis"


def test_gpt_neox_has_no_band_and_the_batch_size_of_its_study(tmp_path):
    columns = {"update": UPDATES, "b_simple": [5.0, 6.0, -7.0, 8.0, np.nan], "noise": [1.0] * 5, "status": [0.0] * 4 + [3.0]}
    ax = online_noise.of_run(run_with(tmp_path / "s", columns)).axes[0]
    np.testing.assert_array_equal(line(ax, "GPT-NeoX's").get_ydata(), [5, 6, np.nan, 8, np.nan])
    assert list(line(ax, "batch size").get_ydata()) == [64] * 5 and not ax.collections


def test_without_numbers_it_says_why(tmp_path):
    unavailable = OURS | {"b_simple": [np.nan] * 5, "status": [2.0] * 5}
    for i, (columns, words) in enumerate([({}, "noise_scale_every"), (unavailable, "unavailable")]):
        assert words in online_noise.of_run(run_with(tmp_path / str(i), columns)).axes[0].texts[0].get_text()
