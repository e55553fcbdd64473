"""Seeds that miss the target, diverge or are not run yet; several settings in a cell; losses that match only nearly."""

import numpy as np
import pytest

import basin
from basin.analysis.cell_answers import answers
from basin.analysis.matched import points_per_nat, reference_of, settings
from basin.analysis.pooled import pooled
from basin.pages import report_tables as tables
from basin.pages import report_text as text
from basin.pages.report_warnings import warnings_of
from basin.pages.summary import summary
from synthetic_sweep import Plan, make_sweep

FIVE = dict(batch_sizes=(32, 1024), optimizers=("sgd",), updates=4, seeds=(1, 2, 3, 4, 5), images=6000, seed_error=0.001)


def details(a):
    return tables.details_table([a]).iloc[0]


def answer(folder, source="auto", **plan):
    make_sweep(folder, Plan(**(FIVE | plan)), write_runs=source == "runs")
    sweep = basin.open_sweep(folder, source)
    return sweep, answers(sweep)[0]


def test_all_seeds_there_is_a_plain_verdict(tmp_path):
    _, a = answer(tmp_path / "s")
    assert a.gap.verdict.word == "no gap" and not a.gap.lost and details(a)["seeds left out"] == "–"


@pytest.mark.parametrize("ending, words", [("target_not_reached", "missed the target"), ("overshot", "overshot the target")])
def test_survivors_under_b_show_no_absence_of_a_gap(tmp_path, ending, words):
    _, a = answer(tmp_path / "s", endings={("B", "sgd", 1024, 5): ending, ("B", "sgd", 1024, 2): ending})
    assert a.gap.seeds == [1, 3, 4] and a.gap.survivors and a.share is None
    assert a.gap.verdict.text == f"undecided (2 of 5 seeds {words})"
    assert details(a)["at matched loss"] == f"undecided (2 of 5 seeds {words})"
    assert details(a)["seeds left out"] == f"matched loss: 2 of 5 seeds {words}"


def test_survivors_in_the_reference_too(tmp_path):
    _, a = answer(tmp_path / "s", endings={("B", "sgd", 32, 5): "target_not_reached"})
    assert a.gap.verdict.text == "undecided (1 of 5 reference seeds missed the target)"


def test_a_gap_among_survivors_at_matched_loss_is_no_verdict_either(tmp_path):
    _, a = answer(tmp_path / "s", drop_b=0.01, endings={("B", "sgd", 1024, 5): "target_not_reached"})
    assert a.gap.estimate.interval()[0] > 0 and a.gap.verdict.word == "undecided"


def test_diverged_seeds_under_a(tmp_path):
    # The drop stands, since those that diverged would add to it; its absence would not.
    _, a = answer(tmp_path / "s", endings={("A-epochs", "sgd", 1024, 5): "diverged"})
    assert a.drop.verdict.word == "gap" and a.share is None
    assert details(a)["at fixed budget"] == "a gap" and details(a)["seeds left out"] == "fixed budget: 1 of 5 seeds diverged"
    _, b = answer(tmp_path / "t", drop_a=0.0, endings={("A-epochs", "sgd", 1024, 5): "diverged"})
    assert b.drop.verdict.text == "undecided (1 of 5 seeds diverged)"
    _, c = answer(tmp_path / "u", endings={("A-epochs", "sgd", 32, 5): "diverged"})
    assert c.drop.verdict.text == "undecided (1 of 5 reference seeds diverged)"


def test_a_reference_that_lost_other_seeds_than_the_cell_has_counts_as_whole(tmp_path):
    make_sweep(tmp_path / "s", Plan(**(FIVE | {"endings": {("B", "sgd", 32, 5): "diverged"}})))
    sweep = basin.open_sweep(tmp_path / "s")
    sweep.runs = sweep.runs[(sweep.runs.batch_size == 32) | (sweep.runs.seed < 5)]
    assert not answers(sweep)[0].gap.lost


def test_what_is_not_run_yet_is_named_but_takes_no_verdict(tmp_path):
    endings = {("B", "sgd", 1024, 5): "queued", ("B", "sgd", 1024, 4): "running"}
    _, a = answer(tmp_path / "s", source="runs", endings=endings)
    assert a.gap.verdict.word == "no gap" and not a.gap.survivors
    assert (
        "1 of 5 seeds still running" in details(a)["seeds left out"]
        and "1 of 5 seeds not run yet" in details(a)["seeds left out"]
    )


@pytest.mark.parametrize("source", ["file", "runs"])
def test_queued_runs_without_a_config_id_do_not_take_their_cell_away(tmp_path, source):
    endings = {(p, "sgd", b, 5): "queued" for p in ("A-epochs", "B") for b in (32, 1024)}
    sweep, a = answer(tmp_path / "s", source, endings=endings)
    sweep.runs.loc[sweep.runs.status == "queued", "config_id"] = ""
    a = answers(sweep)[0]
    assert a.gap.seeds == a.drop.seeds == [1, 2, 3, 4] and settings(sweep.runs) == 4


def test_several_settings_say_so(tmp_path):
    sweep, _ = answer(tmp_path / "s")
    rows = sweep.runs.index[(sweep.runs.batch_size == 1024) & (sweep.runs.protocol == "B")]
    sweep.runs.loc[rows[:2], "config_id"] = "another"
    a = answers(sweep)[0]
    assert a.gap.estimate is None and a.gap.reason == "2 settings, not pooled"
    assert details(a)["at matched loss"] == "2 settings, not pooled"
    rows = sweep.runs.index[(sweep.runs.batch_size == 32) & (sweep.runs.protocol == "A-epochs")]
    sweep.runs.loc[rows[0], "config_id"] = "a third"
    assert answers(sweep)[0].drop.reason == "2 settings in the reference, not pooled"


def test_pooling_leaves_survivors_out_and_says_so(tmp_path):
    endings = {("B", "sgd", 4096, 1): "target_not_reached"}
    plan = dict(batch_sizes=(32, 4096), optimizers=("sgd", "lars", "lamb"), endings=endings)
    make_sweep(tmp_path / "s", Plan(**(FIVE | plan)))
    sweep = basin.open_sweep(tmp_path / "s")
    found = answers(sweep)
    together = pooled(sweep, found)
    assert [a.optimizer for a in together.cells] == ["lars", "lamb"] and together.seeds == [1, 2, 3, 4, 5]
    warned = warnings_of(sweep, found, together)
    assert "Not in the average over cells: SGD at 4,096 (1 of 5 seeds missed the target)." in warned


def test_losses_and_what_their_distance_is_worth(tmp_path):
    sweep, a = answer(tmp_path / "s", reference_loss=0.7)
    runs = sweep.runs
    runs.loc[(runs.protocol == "B") & (runs.batch_size == 1024), "train_loss"] = 1.03
    a = answers(sweep)[0]
    assert a.gap.losses == (pytest.approx(0.98), pytest.approx(1.03))
    # The reference's own ends: loss 0.70 under A, 0.98 under B.
    mean = runs[runs.batch_size == 32].groupby("protocol").test_acc.mean()
    slope = (mean["A-epochs"] - mean["B"]) / 0.28
    assert a.gap.slope == pytest.approx(slope) and a.gap.shift == pytest.approx(0.05 * slope)
    assert details(a)["mean training losses matched"] == "0.980 : 1.030"
    assert details(a)["their distance is worth"] == f"{100 * 0.05 * slope:+.1f} points".replace("-", "−")
    assert "takes any end between 0.8 and 1 as matched" in text.limits(sweep) and "nothing is corrected" in text.limits(sweep)


def test_no_slope_between_equal_losses(tmp_path):
    sweep, _ = answer(tmp_path / "s")
    sweep.runs["train_loss"] = 0.98
    assert np.isnan(points_per_nat(sweep.runs, reference_of(sweep, "sgd")))
    assert details(answers(sweep)[0])["their distance is worth"] == "–"


def test_limits_count_what_the_sweep_holds(tmp_path):
    sweep, _ = answer(tmp_path / "s", images=50)
    assert "One data set (cifar10-5k), one network (small_cnn)" in text.limits(sweep)
    sweep.runs.loc[sweep.runs.index[0], "model"] = "mlp"
    assert "One data set (cifar10-5k), 2 networks (" in text.limits(sweep)


@pytest.mark.parametrize("ending", ["queued", "failed", "diverged"])
def test_a_sweep_without_any_comparable_run_is_told_in_words(tmp_path, ending):
    sweep, a = answer(
        tmp_path / "s", source="runs", images=20, endings={(p, "sgd", b): ending for p in ("A-epochs", "B") for b in (32, 1024)}
    )
    words = {"queued": "not run yet", "failed": "failed", "diverged": "diverged"}[ending]
    assert a.gap.reason == f"5 of 5 seeds {words}" and pooled(sweep, [a]) is None
    assert "no single cell is a drop resolved" in " ".join(text.answer([a])) and "nothing is corrected" not in text.limits(sweep)
    assert (
        f"Updates to the target loss at batch 1,024, mean over the seeds that reached it: SGD (5 of 5 seeds {words})"
        in summary(sweep)
    )
