"""Figures draw what they should: missing values are hollow or crossed, never dropped."""

import itertools

import h5py
import numpy as np
import pytest

import basin
from audit_files import audited, greyed, row
from basin.figures import accuracy, layer_norms, learning_curves, sharpness, style
from basin.figures.in_words import described
from basin.figures.marks import CROSS, accuracy_cells, measure_cells
from basin.reader.names import Names
from names_tables import IN_ORDER
from planned import open_planned

SMALL = dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=60, updates=5)
ALL = [accuracy.accuracy_against_batch, accuracy.loss_against_accuracy, sharpness.sharpness_against_batch,
       sharpness.sharpness_against_loss, layer_norms.trust_ratios, layer_norms.of_sweep, learning_curves.learning_curves]  # fmt: skip

pytestmark = pytest.mark.usefixtures("drawing")


def sweep_of(folder, **plan):
    return open_planned(folder, SMALL | plan)


def hollow(figure):
    return sum(line.get_markerfacecolor() == "none" and len(line.get_xdata()) for ax in figure.axes for line in ax.lines)


def crosses(figure):
    return sum(len(line.get_xdata()) for ax in figure.axes for line in ax.lines if line.get_marker() == "x")


def in_legend(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.parametrize("draw", ALL)
def test_every_axis_is_labelled(tmp_path, draw):
    """Every panel in use has an x label, and a y label of its own or that of the panel at the left of its row; units in brackets, but
    for the trust ratios' x axis of names."""
    figure = draw(sweep_of(tmp_path / "s"))
    figure.canvas.draw()
    used = [ax for ax in figure.axes if ax.lines or ax.containers]
    assert used
    for ax in used:
        spec = ax.get_subplotspec()
        row = [other for other in used if other.get_subplotspec().rowspan == spec.rowspan]
        column = [other for other in used if other.get_subplotspec().colspan == spec.colspan]
        first, last = (
            min(row, key=lambda a: a.get_subplotspec().colspan.start),
            max(column, key=lambda a: a.get_subplotspec().rowspan.start),
        )
        assert "(" in (ax.get_ylabel() or first.get_ylabel()), ax.get_title()
        below = ax.get_xlabel() or last.get_xlabel()
        assert below or [t.get_text() for t in ax.get_xticklabels()] == ["conv1.weight", "fc.weight"], ax.get_title()


@pytest.mark.parametrize("ending", ["diverged", "target_not_reached", "failed", "queued"])
def test_figures_survive_whatever_is_missing(tmp_path, ending, recwarn):
    endings = {(p, o, b): ending for p in ("A-epochs", "B") for o in ("sgd", "lamb") for b in (32, 1024)}
    sweep = sweep_of(tmp_path / "s", endings=endings)
    for figure in filter(None, (draw(sweep) for draw in ALL)):
        figure.canvas.draw()
    assert not [w for w in recwarn if "constrained_layout" in str(w.message)]


def test_filled_marks_are_the_means_of_the_finished_runs(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    figure = accuracy.accuracy_against_batch(sweep)
    drawn = sorted(y for ax in figure.axes for c in ax.containers for y in c.lines[0].get_ydata())
    assert {c.get_label() for ax in figure.axes for c in ax.containers} == {"mean"}
    runs = sweep.runs
    means = sorted(100 * runs.groupby(["protocol", "optimizer", "batch_size"]).test_acc.mean())
    np.testing.assert_allclose(drawn, means)


def test_without_layers_or_trust_ratios_there_is_no_figure(tmp_path):
    """Files of schema 1.0 have trust ratios by run, which the reader passes over."""
    path = tmp_path / "s" / "sweep.h5"
    sweep = sweep_of(tmp_path / "s")
    draws = (layer_norms.trust_ratios, layer_norms.of_sweep)
    assert all(draw(sweep) is not None for draw in draws)
    lamb = sweep.runs[sweep.runs.optimizer == "lamb"].run_id.iloc[0]
    with h5py.File(path, "r+") as file:
        del file["layers"]
        file.attrs["schema_version"] = "1.0.0"
        file[f"trust_ratio/{lamb}"] = np.ones((5, 2))
    old = basin.open_sweep(path)
    assert all(draw(old) is None for draw in draws)
    assert layer_norms.trust_ratios(sweep_of(tmp_path / "sgd", optimizers=("sgd",))) is None


def test_runs_that_missed_the_target_are_hollow(tmp_path):
    sweep = sweep_of(tmp_path / "s", endings={("B", "sgd", 1024): "target_not_reached"})
    assert hollow(accuracy.accuracy_against_batch(sweep)) == 3
    assert hollow(accuracy.loss_against_accuracy(sweep)) == 3
    # They were not probed, so the measures have nothing to say about them.
    assert crosses(sharpness.sharpness_against_batch(sweep)) == 0


def test_an_unresolved_noise_scale_is_one_hollow_mark_of_all_its_runs(tmp_path):
    # The synthetic sweep's LAMB at its largest batch: |G|^2 changes its sign from seed to seed; sum tr / sum G^2 > 0, not resolved.
    sweep = sweep_of(tmp_path / "s")
    lamb = sweep.runs[(sweep.runs.optimizer == "lamb") & (sweep.runs.protocol == "B")]
    small, large = measure_cells(sweep, lamb, "noise_scale", "b_simple", "probe.end.noise_scale.b_simple")
    sums = lamb[lamb.batch_size == 1024][["probe.end.noise_scale.tr_sigma", "probe.end.noise_scale.g2"]].sum()
    assert [m.kind for m in large.marks] == ["hollow"] and not large.joined and large.crosses == 0
    assert large.marks[0].value == pytest.approx(sums.iloc[0] / sums.iloc[1])
    assert [m.kind for m in small.marks] == ["mean"] and small.marks[0].low < 800 < small.marks[0].high
    assert hollow(sharpness.sharpness_against_batch(sweep)) == 1


def test_a_negative_noise_scale_is_a_cross(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    rows = (sweep.runs.optimizer == "lamb") & (sweep.runs.batch_size == 1024)
    sweep.runs.loc[rows, "probe.end.noise_scale.g2"] = -0.01
    figure = sharpness.sharpness_against_batch(sweep)
    assert crosses(figure) == 1 and CROSS in in_legend(figure)


def test_the_legend_has_no_cross_where_none_is_drawn(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    for figure in (sharpness.sharpness_against_batch(sweep), accuracy.accuracy_against_batch(sweep)):
        assert crosses(figure) == 0 and CROSS not in in_legend(figure)


def kinds(found):
    return [[m.kind for m in c.marks] for c in found]


def one_optimizer(sweep, protocol="B"):
    return sweep.runs[(sweep.runs.optimizer == "sgd") & (sweep.runs.protocol == protocol)]


def test_one_seed_is_told_from_several_and_has_its_own_bar(tmp_path):
    sweep = sweep_of(tmp_path / "s", seeds=(1,))
    runs = one_optimizer(sweep)
    found = accuracy_cells(runs)
    assert kinds(found) == [["one"], ["one"]]
    share = runs.test_acc.iloc[0]  # of 60 test images
    mark = next(c for c in found if c.size == runs.batch_size.iloc[0]).marks[0]
    assert mark.high - mark.value == pytest.approx(100 * np.sqrt(share * (1 - share) / 60))
    residual = measure_cells(sweep, runs, "top_eigenvalues", "lambda", "probe.end.top_eigenvalues.lambda_1")[0].marks[0]
    assert residual.kind == "one" and residual.high - residual.value == pytest.approx(0.01)
    phi = measure_cells(sweep, runs, "sharpness_keskar", "phi_full_1e-3", "probe.end.sharpness_keskar.phi_full_1e-3")[0].marks[0]
    assert np.isnan(phi.high)  # a lower bound's spread between starts is no error bar
    noise = measure_cells(sweep, runs, "noise_scale", "b_simple", "probe.end.noise_scale.b_simple")[0].marks[0]
    assert noise.kind == "one" and noise.high - noise.value == pytest.approx(120)
    figure = accuracy.accuracy_against_batch(sweep)
    drawn = [c for ax in figure.axes for c in ax.containers]
    assert {c.lines[0].get_fillstyle() for c in drawn} == {"left"} and not np.isnan(drawn[0].lines[2][0].get_segments()).any()
    assert "one seed" in " ".join(t.get_text() for t in figure.legends[0].get_texts())


def test_a_residual_greater_than_the_spread_is_the_bar(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    column = "probe.end.top_eigenvalues.lambda_1"
    sweep.runs[f"{column}.uncertainty"] = 1000.0
    mark = measure_cells(sweep, one_optimizer(sweep), "top_eigenvalues", "lambda", column)[0].marks[0]
    assert mark.kind == "mean" and mark.high - mark.value == pytest.approx(1000)


@pytest.mark.parametrize("column, value", [("n_examples", 500.0), ("subset_hash", "other"), ("definition", "another")])
def test_different_measurements_are_never_pooled(tmp_path, column, value):
    sweep = sweep_of(tmp_path / "s")
    runs = one_optimizer(sweep)
    first = runs[runs.batch_size == 32].run_id.iloc[0]
    sweep.probes.loc[sweep.probes.run_id == first, column] = value
    for probe, quantity, name in (("noise_scale", "b_simple", "b_simple"), ("top_eigenvalues", "lambda", "lambda_1")):
        found = measure_cells(sweep, runs, probe, quantity, f"probe.end.{probe}.{name}")
        assert sorted(kinds(found)[0]) == ["mean", "one"] and not found[0].joined and found[1].joined


def test_several_settings_are_drawn_apart(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    rows = one_optimizer(sweep).query("batch_size == 32").index
    sweep.runs.loc[rows[0], "config_id"] = "another"
    found = accuracy_cells(one_optimizer(sweep))
    assert sorted(kinds(found)[0]) == ["mean", "one"] and not found[0].joined
    for draw in ALL:
        draw(sweep).canvas.draw()


def test_the_line_breaks_where_no_run_is_comparable(tmp_path):
    sweep = sweep_of(
        tmp_path / "s", batch_sizes=(32, 256, 1024), optimizers=("sgd",), endings={("B", "sgd", 256): "target_not_reached"}
    )
    ax = next(ax for ax in accuracy.accuracy_against_batch(sweep).axes if ax.get_title("left").startswith("B"))
    line = next(line for line in ax.lines if len(line.get_xdata()) == 3 and line.get_linestyle() == "-")
    assert list(np.isnan(line.get_ydata())) == [False, True, False]


def test_no_line_runs_through_a_single_seed(tmp_path):
    sweep = sweep_of(tmp_path / "s", batch_sizes=(32, 256, 1024), optimizers=("sgd",))
    sweep.runs = sweep.runs[(sweep.runs.batch_size != 256) | (sweep.runs.seed == sweep.runs.seed.min())]
    for ax in accuracy.accuracy_against_batch(sweep).axes:
        line = next(line for line in ax.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 3)
        assert list(np.isnan(line.get_ydata())) == [False, True, False]


def test_a_loss_that_falls_far_has_a_logarithmic_axis(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    assert {ax.get_xscale() for ax in sharpness.sharpness_against_loss(sweep).axes} == {"linear"}  # 0.98 and 1.49
    sweep.probes.loc[sweep.probes.checkpoint == "end", "train_loss"] = 0.02
    axes = sharpness.sharpness_against_loss(sweep).axes
    assert {ax.get_xscale() for ax in axes} == {"log"} and axes[0].get_xlim()[0] > axes[0].get_xlim()[1]
    assert {ax.get_yscale() for ax in learning_curves.learning_curves(sweep).axes} == {"log"}


def test_a_study_without_runs_to_a_loss_shows_those_of_its_budget(tmp_path):
    sweep = sweep_of(tmp_path / "s", protocols=("B",))
    to_a_loss = len(sharpness.sharpness_against_loss(sweep).axes[0].containers)
    sweep.runs["protocol"] = "A-epochs"
    assert len(sharpness.sharpness_against_loss(sweep).axes[0].containers) == to_a_loss > 0


def test_a_long_title_of_a_legend_stays_in_the_figure(tmp_path):
    figure = sharpness.sharpness_against_loss(sweep_of(tmp_path / "s", optimizers=("sgd",)))
    figure.canvas.draw()
    title = figure.legends[0].get_title().get_window_extent()
    assert title.x0 >= 0 and title.x1 <= figure.bbox.x1


def test_batches_as_large_as_the_training_set_are_shaded(tmp_path):
    figure = accuracy.accuracy_against_batch(sweep_of(tmp_path / "s", batch_sizes=(32, 1024, 65536)))
    for ax in figure.axes:
        (shade,) = ax.patches
        assert shade.get_x() == 5000 and shade.get_x() + shade.get_width() == pytest.approx(ax.get_xlim()[1])
    assert not any(ax.patches for ax in accuracy.accuracy_against_batch(sweep_of(tmp_path / "t")).axes)


@pytest.mark.parametrize("draw", ALL)
def test_panels_have_letters_and_bars_an_explanation(tmp_path, draw):
    figure = draw(sweep_of(tmp_path / "s"))
    letters = [t.get_text() for ax in figure.axes for t in ax.texts if t.get_gid() == style.LETTER and ax.get_visible()]
    assert letters == list("abcdefghijklmnop"[: len(letters)]) and (len(letters) > 1 or len(figure.axes) == 1)
    bars = any(c.lines[2] for ax in figure.axes for c in ax.containers)
    assert not bars or "bars: " in figure.legends[0].get_title().get_text()


@pytest.mark.parametrize(
    "draw", [accuracy.accuracy_against_batch, sharpness.sharpness_against_batch, sharpness.sharpness_against_loss]
)
def test_a_bar_shorter_than_its_mark_is_seen(tmp_path, draw):
    """Its caps are wider than the mark by at least a point on either side."""
    figure = draw(sweep_of(tmp_path / "s"))
    bars = [c for ax in figure.axes for c in ax.containers if c.lines[1]]
    assert bars
    for mark, caps, _ in (c.lines for c in bars):
        assert all(cap.get_markersize() >= mark.get_markersize() + 2 for cap in caps)


def test_a_figure_in_words_has_every_panel_its_axes_and_range(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    said = described(accuracy.accuracy_against_batch(sweep))
    accuracies = 100 * sweep.runs[sweep.runs.protocol == "B"].groupby(["optimizer", "batch_size"]).test_acc.mean()
    assert said.startswith(
        "2 panels. Panel a, A: the same number of epochs: test accuracy (%) against batch size (examples), from "
    )
    # The panel on the right has the left one's label.
    assert f"same training loss: test accuracy (%) against batch size (examples), from {accuracies.min():.3g} to" in said
    assert "Legend: SGD; LAMB; " in said


def test_each_optimizer_is_compared_with_its_own_reference(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    means = sweep.runs[sweep.runs.batch_size == 32].groupby(["protocol", "optimizer"]).test_acc.mean()
    for ax, protocol in zip(accuracy.accuracy_against_batch(sweep).axes, ("A-epochs", "B")):
        flat = {line.get_color(): line.get_ydata()[0] for line in ax.lines if list(line.get_xdata()) == [0, 1]}
        assert flat == {style.colour(o, sweep.names): pytest.approx(100 * means[protocol, o]) for o in ("sgd", "lamb")}


def test_loss_figure_stands_on_the_full_training_loss_and_leaves_overshot_levels_out(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    figure = sharpness.sharpness_against_loss(sweep)
    assert {ax.get_xlabel() for ax in figure.axes if ax.get_xlabel()} == {"training loss (nat), training goes →"}
    assert {x for ax in figure.axes for c in ax.containers for x in c.lines[0].get_xdata()} == {0.98, 1.49}
    sweep.probes.loc[sweep.probes.checkpoint == "loss-1.5", "train_loss"] = 1.1  # below 0.8 x 1.5
    figure = sharpness.sharpness_against_loss(sweep)
    assert {x for ax in figure.axes for c in ax.containers for x in c.lines[0].get_xdata()} == {0.98}
    sweep.probes["train_loss"] = np.nan
    figure = sharpness.sharpness_against_loss(sweep)
    assert {ax.get_xlabel() for ax in figure.axes if ax.get_xlabel()} == {
        "training loss on the probed subset (nat), training goes →"
    }


def test_batch_labels():
    assert [style.batch_label(b) for b in (32, 256, 1000, 1024, 65536)] == ["32", "256", "1,000", "1K", "64K"]


def test_only_what_the_sweep_measured_has_a_panel(tmp_path):
    """The tables name six measures, of which preconditioned_curvature's was not measured; in a grid of three columns."""
    sweep = sweep_of(tmp_path / "s")
    figure = sharpness.sharpness_against_batch(sweep)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_ylabel() for ax in shown] == [label for _, _, _, label, _ in IN_ORDER[:-1]]
    assert [ax.get_subplotspec().colspan.start for ax in shown] == [0, 1, 2, 0, 1]
    figure = sharpness.sharpness_against_loss(sweep)
    assert [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()] == [
        label for _, _, _, label, heading in IN_ORDER if heading
    ]
    assert [ax.get_title("left") for ax in figure.axes if ax.get_title("left")] == ["SGD", "LAMB"]


@pytest.mark.parametrize(
    "plan", [dict(protocols=("A-epochs",)), dict(endings={("B", o, b): "queued" for o in ("sgd", "lamb") for b in (32, 1024)})]
)
def test_nothing_measured_is_no_figure(tmp_path, plan):
    sweep = sweep_of(tmp_path / "s", **plan)
    assert sharpness.sharpness_against_batch(sweep) is None and sharpness.sharpness_against_loss(sweep) is None


def test_colours_and_markers_go_by_place(tmp_path):
    """An optimiser that the tables don't name has those of the place behind them; one beyond the palette another marker."""
    sweep = sweep_of(tmp_path / "s", optimizers=("sgd", "new"))
    assert style.colour("new", sweep.names) == style.PALETTE[6] and style.marker("new", sweep.names) == style.MARKERS[6]
    names = Names({"optimizers": {f"o{i}": "" for i in range(40)}})
    looks = {(style.colour(o, names), style.marker(o, names)) for o in names.members["optimizers"]}
    assert len(looks) == 40 and len(style.MARKERS) % len(style.PALETTE) != 0


# Machado, Oliveira and Fernandes (2009), severity 1: what linear RGB comes to without one kind of cone.
COLOUR_VISION = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, seen_as):
    """CIELAB under D65."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = to_xyz @ np.clip(seen_as @ linear, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", COLOUR_VISION)
def test_colour_blind_readers_tell_the_palette_apart(vision):
    """Two colours 2.3 apart in CIELAB are just noticeably different side by side; 15 leaves room for thin lines. The colours before
    these came within 7 for protans."""
    seen = [lab(colour, np.array(COLOUR_VISION[vision])) for colour in style.PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 15
    white = lab("#ffffff", np.eye(3))[0]
    assert all(white - lab(colour, np.eye(3))[0] > 25 for colour in style.PALETTE)


def test_measures_that_moved_are_greyed_in_the_studys_figures(tmp_path):
    sweep = audited(tmp_path / "s")
    assert greyed(sharpness.sharpness_against_batch(sweep)) == greyed(sharpness.sharpness_against_loss(sweep)) == []
    sweep = audited(tmp_path / "t", [row("lambda", "relu_rescale", "moved"), row("b_simple", "relu_rescale", "within_error")])
    assert greyed(sharpness.sharpness_against_batch(sweep)) == ["λ₁ (loss / weight²)"]
    assert greyed(sharpness.sharpness_against_loss(sweep)) == ["λ₁ (loss / weight²)"]
