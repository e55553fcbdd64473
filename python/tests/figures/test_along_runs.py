"""Outcomes along runs against training loss, and marks of arms."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from basin.figures import accuracy, along_runs, learning_curves, sharpness, style
from planned import open_planned

pytestmark = pytest.mark.usefixtures("drawing")
ARMS = dict(batch_sizes=(32, 1024), optimizers=("sgd",), images=40, updates=4, arms=(("ghost_batch", 25, (1024,), 0.5),))


def curve(slope, losses=(2.0, 1.5, 1.6, 1.0)):
    """Accuracy is 1 less slope times loss; the third evaluation went up again and is no first time."""
    loss = np.array(losses)
    return pd.DataFrame({"train_loss": loss, "test_acc": 1 - slope * loss, "test_loss": loss + 0.1})


def test_means_over_seeds_at_equal_loss():
    found = along_runs.course_of([curve(0.2), curve(0.3), curve(0.25)], "test_acc")
    assert found.loss[0] == pytest.approx(1.0) and found.loss[-1] == pytest.approx(2.0) and found.seeds == 3
    np.testing.assert_allclose(found.mean, 1 - 0.25 * found.loss)
    half = student.ppf(0.975, 2) * 0.05 * found.loss / np.sqrt(3)
    np.testing.assert_allclose(found.high - found.mean, half)


def test_the_mean_ends_where_a_seed_ends():
    found = along_runs.course_of([curve(0.2), curve(0.2, (2.2, 1.8, 1.4))], "test_acc")
    assert (found.loss[0], found.loss[-1]) == (pytest.approx(1.4), pytest.approx(2.0))
    assert along_runs.course_of([curve(0.2), curve(0.2, (4.0, 3.0, 2.5))], "test_acc") is None


def test_a_line_for_each_batch_size_and_arm(tmp_path):
    sweep = open_planned(tmp_path / "s", ARMS)
    assert along_runs.along_runs(sweep) is None
    sweep.curve = lambda run_id, table="train": curve(0.2)
    figure = along_runs.along_runs(sweep)
    for ax in figure.axes:
        assert len(ax.lines) == 3 and len(ax.collections) == 3
        assert {line.get_linestyle() for line in ax.lines} == {"-", "--"}
    assert "ghost_batch=25" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_a_seed_that_diverged_has_no_part_in_the_course(tmp_path):
    sweep = open_planned(tmp_path / "s", ARMS)
    lost = sweep.runs.run_id[sweep.runs.protocol == "B"].iloc[0]
    sweep.curve = lambda run_id, table="train": curve(0.9, (9.0, 8.0, 7.0)) if run_id == lost else curve(0.2)
    assert len(along_runs.along_runs(sweep).axes[0].lines) == 2  # that of its cell has no loss in common
    sweep.runs.loc[sweep.runs.run_id == lost, "status"] = "diverged"
    assert len(along_runs.along_runs(sweep).axes[0].lines) == 3


@pytest.mark.parametrize(
    "draw", [accuracy.accuracy_against_batch, accuracy.loss_against_accuracy, sharpness.sharpness_against_batch]
)
def test_arms_have_marks_of_their_own(tmp_path, draw):
    figure = draw(open_planned(tmp_path / "s", ARMS))
    figure.canvas.draw()
    markers = {line.get_marker() for ax in figure.axes for line in ax.lines} | {
        c.lines[0].get_marker() for ax in figure.axes for c in ax.containers
    }
    assert style.ARM_MARKERS[0] in markers and "ghost_batch=25" in [t.get_text() for t in figure.legends[0].get_texts()]


@pytest.mark.parametrize("draw", [learning_curves.learning_curves, sharpness.sharpness_against_loss])
def test_arms_have_lines_of_their_own(tmp_path, draw):
    figure = draw(open_planned(tmp_path / "s", ARMS))
    assert any(line.get_linestyle() == "--" for ax in figure.axes for line in ax.lines)
    assert "ghost_batch=25" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_the_noise_scale_of_the_finite_set_comes_first_where_it_is_resolved(tmp_path):
    sweep = open_planned(tmp_path / "s", ARMS | dict(arms=()))
    labels = [ax.get_ylabel() for ax in sharpness.sharpness_against_batch(sweep).axes]
    assert "B_simple (examples)" in labels
    for tail in ("b_simple", "g2", "tr_sigma"):
        for more in ("", ".status", ".uncertainty", ".ci_low", ".ci_high"):
            sweep.runs[f"probe.end.noise_scale.{tail}_finite{more}"] = sweep.runs[f"probe.end.noise_scale.{tail}{more}"]
    labels = [ax.get_ylabel() for ax in sharpness.sharpness_against_batch(sweep).axes]
    assert "B_simple, finite set (examples)" in labels and "B_simple (examples)" not in labels
