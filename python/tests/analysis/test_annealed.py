"""Annealed branches at equal losses: known lines, paired by seed and image."""

import numpy as np
import pytest
from scipy.stats import t as student

from basin.analysis.annealed import AVERAGED, Course, annealed_branches, same_phase
from basin.figures import annealed
from basin.pages import report
from branched_sweep import branch
from planned import open_planned

LEVELS = {"loss-1.8": 1.6, "loss-1.5": 1.3, "loss-1.2": 1.0}  # and the loss at the end of an annealed branch at batch size 32
SEED = {1: -0.01, 2: 0.0, 3: 0.04}  # what a seed's large batch has more than the line says


def accuracy(loss):
    return 0.9 - 0.25 * loss


def plan(images=40, by_image=False, drop=0.05, shares=(0.2, 0.4), averaged=True, **more):
    """At equal loss the batch of 1,024 has an accuracy lower by `drop`; its branches end at other losses than those of 32."""

    def branches(rows, curves):
        for row in rows:
            large = row["batch_size"] > 32
            for at, loss in LEVELS.items():
                for share in (*shares, *([AVERAGED] if averaged else [])):
                    # Every share has its own losses: what is compared has to be interpolated.
                    end = loss + (0.1 if large else 0.0) + share / 10
                    value = accuracy(end) - (drop - SEED[row["seed"]] if large else 0.0)
                    ends = {"train_loss": end, "test_acc": value, "test_loss": 2 - value}
                    if share == AVERAGED:
                        ends = {f"average_{k}": v for k, v in ends.items()} | {
                            "train_loss": 3.0,
                            "test_acc": 0.1,
                            "test_loss": 9.0,
                        }
                    curve = dict(curves[row["run_id"]])
                    correct = np.arange(images) < round(images * value)
                    curve["correct"] = correct if by_image else np.ones(images, bool)
                    yield branch(row, curve, at, anneal=share, **ends)

    return dict(batch_sizes=(32, 1024), optimizers=("sgd",), protocols=("B",), images=images, updates=4, more=branches) | more


def opened(folder, **options):
    """Without outcomes of images, which have rounding of their own."""
    sweep = open_planned(folder, plan(**options))
    sweep.correct = lambda run_ids, at="end": None
    return sweep


def test_a_course_is_linear_between_its_branches():
    course = Course(np.array([1.0, 1.5, 2.0]), np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(course.at(1.25), [0.5, 1.0])
    np.testing.assert_allclose(course.at(2.0), [1.0, 0.0])
    np.testing.assert_allclose(course.at(1.0), [0.0, 1.0])


def test_the_effect_at_equal_loss_is_the_distance_of_the_lines(tmp_path):
    found = [s for s in same_phase(opened(tmp_path / "s")) if s.outcome == "test_acc"]
    assert [s.share for s in found] == [0.2] * 3 + [0.4] * 3 + [AVERAGED] * 3
    d = np.array([SEED[s] - 0.05 for s in (1, 2, 3)])
    half = student.ppf(0.975, 2) * d.std(ddof=1) / np.sqrt(3)
    for s in found:
        assert (s.batch_size, s.reference, s.asked, s.effect.seeds) == (1024, 32, 3, 3)
        assert s.effect.value == pytest.approx(d.mean()) and s.effect.interval()[1] == pytest.approx(d.mean() + half)
    # Losses of 32 span 1.0 to 1.6 and those of 1,024 span 1.1 to 1.7, a twentieth of a share later.
    assert [s.loss for s in found[:3]] == pytest.approx([1.62, 1.37, 1.12])
    assert [s.loss for s in found[6:]] == pytest.approx([1.6, 1.35, 1.1])


def test_images_pair_where_they_are_stored(tmp_path):
    """With 1,000 images rounding is at most 0.05 % of each outcome."""
    sweep = open_planned(tmp_path / "s", plan(images=1000, by_image=True, averaged=False))
    found = [s for s in same_phase(sweep) if s.outcome == "test_acc"]
    assert all(s.effect.images == 1000 for s in found)
    assert found[1].effect.value == pytest.approx(np.mean(list(SEED.values())) - 0.05, abs=0.001)


def test_what_cannot_be_compared_says_why(tmp_path):
    def ended_apart(rows, curves):
        for row, curve in plan()["more"](rows, curves):
            if row["batch_size"] == 1024:
                row["train_loss"] += 2
                row["average_train_loss"] = row.get("average_train_loss", np.nan) + 2
            yield row, curve

    found = same_phase(opened(tmp_path / "s", more=ended_apart))
    assert {s.reason for s in found} == {"the branches end at no common loss"}

    def one_diverged(rows, curves):
        for row, curve in plan()["more"](rows, curves):
            if row["seed"] == 2 and row["batch_size"] == 1024 and row["branch.at"] != "loss-1.2":
                row |= {"status": "diverged", "train_loss": np.nan}
            yield row, curve

    found = same_phase(opened(tmp_path / "t", more=one_diverged))
    assert all(s.effect.seeds == 2 and s.asked == 3 for s in found if s.share > 0)


def test_nothing_without_branches_from_several_places(tmp_path):
    assert annealed_branches(opened(tmp_path / "none", more=None)).empty
    one_level = lambda rows, curves: [b for b in plan()["more"](rows, curves) if b[0]["branch.at"] == "loss-1.5"]  # noqa: E731
    sweep = opened(tmp_path / "one", more=one_level)
    assert same_phase(sweep) == [] and annealed.annealed_outcomes(sweep) is None


def test_the_figure_has_a_mark_for_each_branch_and_a_line_for_each_kind(tmp_path, drawing):
    figure = annealed.annealed_outcomes(opened(tmp_path / "s"))
    accuracy_axes = figure.axes[0]
    marks = [line for line in accuracy_axes.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in marks) == 2 * 3 * len(LEVELS) * 3
    assert len([line for line in accuracy_axes.lines if line.get_marker() != "o"]) == 2 * 3
    assert "averaged weights" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_the_report_has_the_section_and_keeps_branches_out_of_its_cells(tmp_path, capsys):
    open_planned(tmp_path / "s", plan(by_image=True))
    assert report.main([str(tmp_path / "s")]) == 0
    page = (tmp_path / "s/report.html").read_text()
    assert "The same phase: annealed branches" in page and "annealed over 20 %" in page and "1,024 less 32" in page
    assert "54 of the runs begin from checkpoints of the others" in page and "branch.anneal" not in page
    open_planned(tmp_path / "t", plan(more=None))
    assert report.main([str(tmp_path / "t")]) == 0
    assert "The same phase" not in (tmp_path / "t/report.html").read_text()
