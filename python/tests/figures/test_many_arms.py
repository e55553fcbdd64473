"""A sweep of about 30 arms: every figure of its report has room for itself."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from asked_study import PLAN, STUDY
from basin.figures import accuracy, along_runs, layer_norms, learning_curves, sharpness, style
from basin.figures.marks import MOST_ARMS
from basin.pages import report
from basin.pages.page import Section
from planned import open_planned
from synthetic_sweep import Plan, make_sweep

pytestmark = pytest.mark.usefixtures("drawing")
OPTIMIZERS = ("sgd", "adamw", "lars", "larc", "lamb")
ROUNDING = 1.0  # pixel: the layout ends with boxes on the figure's edge


def arms(count):
    return (("ghost_batch", 25, (1024,), 0.8), *(("warmup", 1000 + i, (1024,), 0.01 * i) for i in range(count - 1)))


def out_of_place(figure):
    FigureCanvasAgg(figure).draw()  # a figure that pyplot has closed has no such canvas any more
    return drawn_outside(figure) + overlapping(figure)


def drawn_outside(figure):
    """Artists of a drawn figure, clipped as they are drawn, that reach beyond it, and their boxes."""
    edge = figure.bbox.padded(ROUNDING)
    parts = [part for ax in figure.axes if ax.get_visible() for part in ax.get_children() if part.get_visible()]
    found = []
    for artist in [*figure.get_children(), *parts]:
        box = artist.get_tightbbox() if artist.get_visible() else None
        if box is not None and np.isfinite(box.extents).all() and box.width * box.height > 0:
            found += [(artist, box)] if (Bbox.union([edge, box]).extents != edge.extents).any() else []
    return found


def overlapping(figure):
    """Pairs of a legend's texts that lie on each other, in a drawn figure."""
    pairs = []
    for legend in figure.legends:
        texts = [text for text in (*legend.get_texts(), legend.get_title()) if text.get_text()]
        boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
        pairs += [(one, two) for (one, a), (two, b) in itertools.combinations(boxes, 2) if a.overlaps(b)]
    return pairs


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """Those of a report, by name."""
    folder, found = tmp_path_factory.mktemp("many") / "s", {}
    plan = dict(seeds=(1, 2), arms=arms(30), twin=True, images=60, updates=5)
    study = STUDY.replace("{ batch_size = 1024", "{ warmup = 0, batch_size = 1024").replace("1024 }", "1024, ghost_batch = 0 }")
    make_sweep(folder, Plan(**(PLAN | plan | dict(study=study))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Section, "figure", lambda self, figure, about, name, folder: found.update({name: figure}) or figure is not None
        )
        report.make_report(folder, progress=lambda line: None)
    return {name: figure for name, figure in found.items() if figure is not None}


def test_the_report_has_its_figures(figures):
    expected = {
        "accuracy",
        "effects",
        "mediators",
        "loss-accuracy",
        "sharpness-batch",
        "sharpness-loss",
        "trust-ratios",
        "layers",
    }
    assert set(figures) == expected | {"learning-curves"}


def test_everything_lies_inside_and_no_entries_of_a_legend_overlap(figures):
    for name, figure in figures.items():
        assert out_of_place(figure) == [], name


def test_panels_keep_their_height_beside_any_legend(figures):
    for name, figure in figures.items():
        heights = [ax.bbox.height / figure.dpi for ax in figure.axes if ax.get_visible()]
        assert min(heights) > (1.4 if name != "effects" else 0.3), name


def test_plain_settings_alone_are_drawn_and_the_legend_says_so(figures):
    for name in ("accuracy", "loss-accuracy", "sharpness-batch", "sharpness-loss", "learning-curves"):
        (legend,) = figures[name].legends
        assert "plain settings alone: the 30 arms are in the tables" in legend.get_title().get_text().replace("\n", " "), name
        assert not any("=" in text.get_text() for text in legend.get_texts()), name


def test_marks_lie_within_their_panel(figures):
    for ax in figures["accuracy"].axes:
        low, high = np.log2(ax.get_xlim())
        for container in ax.containers:
            x = np.log2(np.asarray(container.lines[0].get_xdata(), float))
            assert low + 0.15 <= x.min() and x.max() <= high - 0.15


def test_five_optimisers_have_room_too(tmp_path):
    sweep = open_planned(tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=OPTIMIZERS, seeds=(1,), images=40, updates=4))
    figures = [draw(sweep) for draw in (accuracy.accuracy_against_batch, learning_curves.learning_curves, layer_norms.trust_ratios,
                                        sharpness.sharpness_against_loss)]  # fmt: skip
    loss = np.array([2.0, 1.5, 1.0])
    sweep.curve = lambda run_id, table="train": pd.DataFrame({"train_loss": loss, "test_acc": 1 - 0.2 * loss, "test_loss": loss})
    for figure in (*figures, along_runs.along_runs(sweep)):
        assert out_of_place(figure) == [] and figure.get_figwidth() <= style.WIDEST


def test_few_arms_have_marks_and_lines_that_differ(tmp_path):
    sweep = open_planned(
        tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=("sgd",), images=40, updates=4, arms=arms(MOST_ARMS))
    )
    figure = accuracy.accuracy_against_batch(sweep)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    shapes = {
        line.get_marker() for line in figure.legends[0].get_lines() if line.get_label() in names and "=" in line.get_label()
    }
    assert len(shapes) == MOST_ARMS == sum("=" in name for name in names)
    assert out_of_place(figure) == []


def test_a_legend_lists_what_is_drawn(tmp_path):
    """Seeds are three each, all runs comparable, and the arm was run under one protocol."""
    plan = dict(batch_sizes=(32, 1024), optimizers=("sgd",), images=40, updates=4, protocols=("A-epochs",))
    figure = accuracy.accuracy_against_batch(open_planned(tmp_path / "s", plan | dict(arms=arms(1))))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "SGD",
        "each optimiser's small-batch reference",
        "ghost_batch=25",
    ]


def test_a_protocol_has_no_empty_panels(tmp_path):
    sweep = open_planned(tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=40, updates=4))
    sweep.runs = sweep.runs[(sweep.runs.protocol != "B") | (sweep.runs.optimizer == "sgd")]
    shown = [ax for ax in learning_curves.learning_curves(sweep).axes if ax.get_visible()]
    assert [ax.get_title("left") for ax in shown] == ["SGD, A-epochs", "LAMB, A-epochs", "SGD, B"]
    assert all(ax.lines for ax in shown)


@pytest.mark.parametrize("count, words", [(40, 5), (40, 60), (3, 90), (1, 150)])
def test_a_figure_has_the_size_of_its_legend(count, words):
    figure, axes = style.panels(1, 1, 3.7, 2.5)
    axes[0][0].plot([1, 2], [1, 2])
    before = figure.get_figheight()
    handles = [Line2D([], [], marker="o", label=f"{i} {'m' * words}"[:words]) for i in range(count)]
    style.legend(figure, handles, columns=6, title="a title that is longer than the figure is wide, " * 3)
    assert out_of_place(figure) == []
    assert axes[0][0].bbox.height / figure.dpi > 0.7 * before
    assert (figure.get_figwidth() == 3.7) == (words == 5)  # wider only where a single entry is


def test_numbers_of_points_lie_on_nothing(figures):
    """Those of the mediators: on no other number; some are left out where 60 points share one place."""
    figure = figures["mediators"]
    FigureCanvasAgg(figure).draw()
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in ax.texts if text.get_gid() != style.LETTER]
        assert boxes and not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    figure, axes = style.panels(1, 1, 3.0, 2.5)
    style.number_points(figure, {axes[0][0]: [(0.5, 0.5, str(i)) for i in range(60)]})
    assert 0 < sum(text.get_gid() != style.LETTER for text in axes[0][0].texts) < 60
