"""Annealed branches at equal losses: known lines, paired by seed and image."""

import numpy as np
import pytest
from scipy.stats import t as student

from basin.analysis.annealed import AVERAGED, Course, annealed_branches, same_phase
from basin.analysis.branches import branches_of
from basin.analysis.contrasts import evaluate
from basin.analysis.outcome_values import values_of
from basin.analysis.settings import Setting
from basin.figures import annealed
from basin.pages import report
from basin.reader.fault import ReadError
from basin.reader.questions import read_questions
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


def with_diverged(places, **options):
    """The branches of seed 2 at 1,024 that begin there have diverged."""

    def branches(rows, curves):
        for row, curve in plan(**options)["more"](rows, curves):
            if row["seed"] == 2 and row["batch_size"] == 1024 and row["branch.at"] in places:
                row |= {"status": "diverged", "train_loss": np.nan}
            yield row, curve

    return branches


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


def test_averaged_weights_need_no_annealed_branches_next_to_them(tmp_path):
    found = [s for s in same_phase(opened(tmp_path / "s", shares=())) if s.outcome == "test_acc"]
    assert [s.share for s in found] == [AVERAGED] * 3
    assert found[1].effect.value == pytest.approx(np.mean(list(SEED.values())) - 0.05)


def test_images_pair_where_they_are_stored(tmp_path):
    """With 1,000 images rounding is at most 0.05 % of each outcome."""
    sweep = open_planned(tmp_path / "s", plan(images=1000, by_image=True, averaged=False))
    found = [s for s in same_phase(sweep) if s.outcome == "test_acc"]
    assert all(s.effect.images == 1000 for s in found)
    assert found[1].effect.value == pytest.approx(np.mean(list(SEED.values())) - 0.05, abs=0.001)


def test_where_its_data_lies_is_no_change(tmp_path):
    """A branch that was made on another computer, with its ratios in another file: no part of a run's identity. A warm-up is one."""
    sweep = opened(tmp_path / "s")
    made = (sweep.runs["branch.from"] != "").to_numpy()
    places = {"data.path": np.where(made, "/b/d.npz", "/a/d.npz"), "lamb.trust_path": np.where(made, "/b/r", "/a/r"),
              "torchscript.file": np.where(made, "b.pt", "a.pt"), "runtime.threads": np.where(made, 4, 2)}  # fmt: skip
    sweep.runs, sweep.options = sweep.runs.assign(**places), [*sweep.options, *places]
    assert set(branches_of(sweep).differs) == {""} and len(same_phase(sweep)) == 18
    sweep.runs, sweep.options = sweep.runs.assign(warmup=np.where(made, 0.1, 0.2)), [*sweep.options, "warmup"]
    assert set(branches_of(sweep).differs) == {"warmup=0.1"} and same_phase(sweep) == []


def test_what_cannot_be_compared_says_why(tmp_path):
    def ended_apart(rows, curves):
        for row, curve in plan()["more"](rows, curves):
            if row["batch_size"] == 1024:
                row["train_loss"] += 2
                row["average_train_loss"] = row.get("average_train_loss", np.nan) + 2
            yield row, curve

    found = same_phase(opened(tmp_path / "s", more=ended_apart))
    assert {s.reason for s in found} == {"the branches end at no common loss"}

    found = same_phase(opened(tmp_path / "t", more=with_diverged(("loss-1.8", "loss-1.5"))))
    assert all(s.effect.seeds == 2 and s.asked == 3 for s in found if s.share > 0)


def test_nothing_without_branches_from_several_places(tmp_path):
    assert annealed_branches(opened(tmp_path / "none", more=None)).empty
    one_level = lambda rows, curves: [b for b in plan()["more"](rows, curves) if b[0]["branch.at"] == "loss-1.5"]  # noqa: E731
    sweep = opened(tmp_path / "one", more=one_level)
    assert same_phase(sweep) == [] and annealed.annealed_outcomes(sweep) is None


ASKED = """
[[sweep.arm]]
when = { batch_size = [32, 1024] }
set = { branch.from = 'protocol = "B"', branch.at = ["loss-1.8", "loss-1.5", "loss-1.2"], branch.anneal = 0.2 }
[[contrast]]
name = "equal"
base = { batch_size = 32 }
arm = { batch_size = 1024 }
outcome = "test_acc"
at = "annealed-1.4"
[[contrast]]
name = "outside"
base = { batch_size = 32 }
arm = { batch_size = 1024 }
outcome = "test_acc"
at = "annealed-1.65"
"""


def contrasts_of(folder, **options):
    sweep = opened(folder, shares=(0.2,), averaged=False, **options)
    sweep.study += ASKED
    return evaluate(sweep, read_questions(sweep.study, folder, folder))


def test_a_contrast_at_an_annealed_loss_is_the_distance_of_the_lines(tmp_path):
    """At 1.4 both are between branches, 1.32 and 1.62 at 32, 1.12 and 1.42 at 1,024; at 1.65 only the large batch's are on both sides."""
    found = contrasts_of(tmp_path / "s")
    d = np.array([SEED[s] - 0.05 for s in (1, 2, 3)])
    equal, outside = found["equal"], found["outside"]
    assert equal.effect.value == pytest.approx(d.mean()) and equal.seeds == [1, 2, 3] and not equal.claims
    assert equal.effect.error == pytest.approx(d.std(ddof=1) / np.sqrt(3))
    assert equal.losses == pytest.approx({"base": 1.4, "arm": 1.4}), "of the branches, by the same weights"
    assert outside.effect is None and "no annealed branches on both sides of the loss" in outside.reason


def test_its_images_are_mixed_as_the_outcomes_are(tmp_path):
    sweep = open_planned(tmp_path / "s", plan(images=1000, by_image=True, averaged=False, shares=(0.2,)))
    setting = Setting("base", sweep.runs[(sweep.runs.batch_size == 32) & (sweep.runs["branch.from"] == "")])
    values = values_of(sweep, setting, "test_acc", "annealed-1.4")
    table = values.table(sweep, [1, 2, 3])
    assert table.shape == (3, 1000) and set(np.unique(table)) > {0.0, 1.0}, "images that one branch gets right are between"
    np.testing.assert_allclose(table.mean(1), values.column([1, 2, 3]), atol=0.001)  # rounded to 1,000 images


def test_a_probes_number_is_mixed_and_counts_only_where_both_measurements_are_sound(tmp_path):
    """lambda_1 = 10 - 2 loss at 32 and 1.5 times that at 1,024; one measurement of seed 3 did not converge."""
    sweep = opened(tmp_path / "s", shares=(0.2,), averaged=False)
    column = "probe.end@twin.top_eigenvalues.lambda_1"
    runs = sweep.runs.copy()
    runs[column] = (10 - 2 * runs.train_loss) * np.where(runs.batch_size == 32, 1.0, 1.5)
    runs[f"{column}.status"] = "ok"
    bad = (runs.seed == 3) & (runs.batch_size == 32) & (runs["branch.at"] == "loss-1.5")
    runs.loc[bad, f"{column}.status"] = "not_converged"
    sweep.runs = runs
    sweep.study += ASKED.replace("test_acc", "probe.top_eigenvalues.lambda_1").replace("annealed-1.4", "annealed-1.4@twin")
    found = evaluate(sweep, read_questions(sweep.study, tmp_path, tmp_path))["equal"]
    assert np.exp(found.effect.value) == pytest.approx(1.5) and found.seeds == [1, 2]
    assert found.lost == ["base: 1 of 3 reference seeds didn't converge"]


def test_a_seed_whose_branch_diverged_is_lost(tmp_path):
    more = with_diverged(("loss-1.2",), shares=(0.2,), averaged=False)
    equal = contrasts_of(tmp_path / "s", more=more)["equal"]
    assert equal.seeds == [1, 3] and equal.lost == ["arm: 1 of 3 seeds diverged"]


@pytest.mark.parametrize(
    ("at", "outcome", "said"),
    [
        ("annealed-", "test_acc", "none of end, budget"),
        ("annealed-0", "test_acc", "none of end, budget"),
        ("annealed-1.4", "updates", "updates of annealed branches say nothing"),
        ("annealed-1.4@twin", "test_loss", "for a probe's number one of these"),
    ],
)
def test_a_place_that_is_none_is_refused(tmp_path, at, outcome, said):
    study = ASKED.replace("annealed-1.4", at).replace("test_acc", outcome, 1)
    with pytest.raises(ReadError, match=said):
        read_questions(study, tmp_path, tmp_path)


def test_the_figure_has_a_mark_for_each_branch_and_a_line_for_each_kind(tmp_path, drawing):
    figure = annealed.annealed_outcomes(opened(tmp_path / "s"))
    accuracy_axes = figure.axes[0]
    marks = [line for line in accuracy_axes.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in marks) == 2 * 3 * len(LEVELS) * 3
    assert len([line for line in accuracy_axes.lines if line.get_marker() != "o"]) == 2 * 3
    assert "averaged weights" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_the_report_has_the_section_and_keeps_branches_out_of_its_cells(tmp_path, draw_only):
    draw_only("annealed")
    open_planned(tmp_path / "s", plan(by_image=True))
    assert report.main([str(tmp_path / "s")]) == 0
    page = (tmp_path / "s/report.html").read_text()
    assert "The same phase: annealed branches" in page and "annealed over 20 %" in page and "1,024 less 32" in page
    assert "54 of the runs begin from checkpoints of the others" in page and "branch.anneal" not in page
    open_planned(tmp_path / "t", plan(more=None))
    assert report.main([str(tmp_path / "t")]) == 0
    assert "The same phase" not in (tmp_path / "t/report.html").read_text()
