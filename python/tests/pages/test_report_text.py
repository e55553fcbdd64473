"""What the report says, on sweeps whose truth is known."""

import numpy as np
import pytest

import basin
from basin.analysis.cell_answers import answers
from basin.analysis.matched import comparable, reference_of
from basin.analysis.pooled import pooled
from basin.pages import report_tables as tables
from basin.pages import report_text as text
from basin.pages.report_warnings import warnings_of
from synthetic_sweep import Plan, make_sweep

ONE = dict(batch_sizes=(32, 1024), optimizers=("sgd",), updates=4)


def report_of(folder, **plan):
    make_sweep(folder, Plan(**(ONE | plan)))
    sweep = basin.open_sweep(folder)
    found = answers(sweep)
    return sweep, found, " ".join(text.answer(found, pooled(sweep, found)))


def test_missing_optimisation_is_said_where_it_is_shown(tmp_path):
    _, found, said = report_of(tmp_path / "s", images=6000, seed_error=0.001)
    assert found[0].drop.verdict.word == "gap" and found[0].gap.verdict.word == "no gap"
    assert "At matched training loss, of these, there is no gap within ±2 points in 1 (missing optimisation)." in said
    assert found[0].share.resolved and abs(found[0].share.value) < 0.1


def test_a_gap_at_matched_loss_is_said(tmp_path):
    # The drop of 10 points at the fixed budget and 5 of them at matched loss: half is left.
    _, found, said = report_of(tmp_path / "s", images=6000, seed_error=0.001, drop_b=0.01)
    assert (
        "At matched training loss, of these, **a gap remains** for SGD at 1,024." in said and "missing optimisation" not in said
    )
    assert found[0].gap.estimate.value == pytest.approx(0.05, abs=0.01)
    assert found[0].share.low < 0.5 < found[0].share.high


def test_the_reverse_counts_as_missing_optimisation(tmp_path):
    _, found, said = report_of(tmp_path / "s", images=6000, seed_error=0.001, drop_b=-0.01)
    assert found[0].gap.verdict.direction == -1
    assert "of these, the large batch is the better one in 1 (missing optimisation)." in said
    assert tables.verdict_table(found)["at matched loss"].tolist() == ["better than the reference"]


def test_undecided_is_called_undecided(tmp_path):
    _, found, said = report_of(tmp_path / "s", images=300, seed_error=0.02, drop_a=0.08)
    assert found[0].gap.verdict.word == "undecided"
    assert "of these, 1 is undecided." in said and "missing optimisation" not in said and "no gap" not in said


def test_one_seed_claims_nothing(tmp_path):
    sweep, found, said = report_of(tmp_path / "s", images=5000, seeds=(1,), seed_error=0.0)
    assert pooled(sweep, found) is None and "missing optimisation" not in said
    assert tables.verdict_table(found)["at matched loss"].tolist() == ["undecided"]
    assert tables.details_table(found)["at matched loss"].tolist() == ["undecided (one seed: nothing is claimed)"]
    assert any("nothing is claimed of SGD at 1,024" in w for w in warnings_of(sweep, found, None))


def test_no_resolved_drop_is_not_called_absence(tmp_path):
    _, _, said = report_of(tmp_path / "s", images=300, drop_a=0.0, seed_error=0.01)
    assert "that is not to say that there is none" in said and "missing optimisation" not in said


def test_runs_that_missed_the_target_enter_nothing(tmp_path):
    endings = {("B", "sgd", 1024): "target_not_reached"}
    sweep, found, said = report_of(tmp_path / "s", images=2000, endings=endings)
    assert found[0].gap.estimate is None and found[0].gap.reason == "3 of 3 seeds missed the target"
    assert "of these, 1 can't be compared." in said and "missing optimisation" not in said
    assert tables.details_table(found)["at matched loss"].tolist() == ["3 of 3 seeds missed the target"]
    warned = warnings_of(sweep, found, None)
    assert "**Not compared at matched loss**: SGD at 1,024 (3 of 3 seeds missed the target)." in warned
    assert "3 target not reached" in text.about_status(sweep)


@pytest.mark.parametrize("ending, words", [("overshot", "overshot the target"), ("diverged", "diverged"), ("failed", "failed")])
def test_other_endings_enter_nothing(tmp_path, ending, words):
    sweep, found, _ = report_of(tmp_path / "s", images=200, endings={("B", "sgd", 1024): ending})
    assert found[0].gap.estimate is None and found[0].gap.reason == f"3 of 3 seeds {words}"
    assert comparable(sweep.runs).sum() == 9


def test_pooling_gives_one_answer_where_single_cells_are_undecided(tmp_path):
    plan = dict(batch_sizes=(32, 256, 512, 1024, 2048, 4096), optimizers=("sgd", "lars", "lamb"), images=3000, seed_error=0.008)
    _, found, said = report_of(tmp_path / "s", **plan)
    assert any(a.gap.verdict.word == "undecided" for a in found)
    assert text.chance(found).startswith("15 cells were compared at matched loss with at least 3 seeds. Each interval is at 95 %")
    assert said.startswith("Averaged over ")
    assert "**Here the drop is missing optimisation**: at the same training loss, on average, no gap within ±2 points." in said


def test_pooling_is_the_mean_of_the_cells(tmp_path):
    """The mean is over the cells of the largest batch size."""
    sweep, found, _ = report_of(tmp_path / "s", batch_sizes=(32, 256, 1024), optimizers=("sgd", "lamb"), images=500)
    together, largest = pooled(sweep, found), [a for a in found if a.batch_size == 1024]
    assert together.cells == largest and len(largest) == 2
    assert {why for _, why in together.left_out} == {"another batch size"}
    assert together.gap.value == pytest.approx(np.mean([a.gap.estimate.value for a in largest]))
    assert together.drop.value == pytest.approx(np.mean([a.drop.estimate.value for a in largest]))


def test_difference_is_that_of_the_stored_accuracies(tmp_path):
    sweep, found, _ = report_of(tmp_path / "s", images=500)
    by = sweep.runs[sweep.runs.protocol == "B"].groupby("batch_size").test_acc.mean()
    assert found[0].gap.estimate.value == pytest.approx(by[32] - by[1024])


def test_seeds_are_paired_whatever_the_order_of_runs(tmp_path):
    sweep, found, _ = report_of(tmp_path / "s", images=500)
    seed_of = sweep.runs.set_index("run_id").seed
    for a, b in zip(found[0].gap.reference_runs, found[0].gap.runs):
        assert seed_of[a] == seed_of[b]


def test_another_optimisers_reference_is_named(tmp_path):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=50, updates=4))
    sweep = basin.open_sweep(tmp_path / "s")
    sweep.runs = sweep.runs[~((sweep.runs.optimizer == "lamb") & (sweep.runs.batch_size == 32))]
    assert not reference_of(sweep, "lamb").own and reference_of(sweep, "lamb").optimizer == "sgd"
    assert "SGD at batch 32 for SGD, LAMB" in text.reference_sentence(sweep)


def test_data_copy_examples_and_seeds_are_named(tmp_path):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 65536), optimizers=("sgd",), images=1000, updates=4))
    sweep = basin.open_sweep(tmp_path / "s")
    said = text.about_data(sweep)
    assert "cifar10-5k (official), 5000 training and 1000 test examples" in said and "seeds 3 per cell" in said
    assert "1,000 test examples alone" in said and "±1.6 points" in said
    assert "counts updates, not noise" in text.about_large_batches(sweep) and "(65,536)" in text.about_large_batches(sweep)


def test_no_word_on_updates_below_the_training_set(tmp_path):
    make_sweep(tmp_path / "s", Plan(**(ONE | {"images": 50})))
    assert text.about_large_batches(basin.open_sweep(tmp_path / "s")) == ""


def test_the_answer_has_at_most_five_sentences(tmp_path):
    """In a sweep that has something of everything."""
    endings = {("B", "sgd", 2048): "target_not_reached", ("A-epochs", "lars", 4096): "diverged"}
    sizes = (32, 256, 1024, 2048, 4096)
    sweep, found, _ = report_of(
        tmp_path / "s", batch_sizes=sizes, optimizers=("sgd", "lars", "lamb"), images=2000, endings=endings
    )
    said = text.answer(found, pooled(sweep, found))
    assert 3 <= len(said) <= 5 and all(s.endswith(".") and ". " not in s for s in said)


def test_too_few_seeds_for_a_verdict_are_not_called_an_unresolved_drop(tmp_path):
    _, found, said = report_of(tmp_path / "s", seeds=(1,), images=2000)
    assert found[0].drop.estimate.interval()[0] > 0 and "In no single cell" not in said
    assert "a verdict needs 3 seeds" in said


def test_a_verdict_has_its_colour():
    words = {"a gap, smaller than 2 points": "gap", "no gap within ±2 points": "equal", "undecided": "open", "not compared": ""}
    words["a gap the other way (better than the reference)"] = "better"
    assert {word: tables.verdict_class(word) for word in words} == words


def test_without_a_matched_loss_the_drops_have_seeds_and_verdicts(tmp_path):
    """No column says "not run" in every row; the last one, which is coloured, has the verdict on the drop."""
    _, found, _ = report_of(tmp_path / "s", protocols=("A-epochs",), seeds=(1, 2, 3, 4), images=2000)
    table = tables.verdict_table(found)
    assert list(table) == ["optimiser", "batch size", "drop at fixed budget", "seeds", "at fixed budget"]
    assert table["seeds"].tolist() == ["4"] and tables.verdict_class(table["at fixed budget"][0]) == "gap"
    assert list(tables.details_table(found)) == ["optimiser", "batch size", "seeds left out", "at fixed budget"]


def test_without_a_fixed_budget_nothing_is_said_of_drops(tmp_path):
    _, found, _ = report_of(tmp_path / "s", protocols=("B",), seeds=(1, 2, 3, 4), images=2000)
    said = " ".join(text.answer(found))
    assert "Nothing was run at a fixed budget" in said and "resolved at the fixed budget" not in said


def test_an_arm_that_was_not_run_at_matched_loss_has_the_seeds_of_its_drop(tmp_path):
    arms = (("ghost_batch", 25, (1024,), 0.5),)
    folder = tmp_path / "s"
    make_sweep(folder, Plan(batch_sizes=(32, 1024), optimizers=("sgd",), images=200, updates=4, arms=arms))
    sweep = basin.open_sweep(folder)
    sweep.runs = sweep.runs[(sweep.runs.protocol != "B") | (sweep.runs.ghost_batch == 0)]
    table = tables.verdict_table(answers(sweep))
    assert table["seeds"].tolist() == ["3", "3"] and table["at matched loss"].tolist()[1] == "not compared"
    assert table["left at matched loss"].tolist()[1] == "not run"


def test_one_rate_for_all_batch_sizes_is_warned_of(tmp_path):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=50, updates=4))
    sweep = basin.open_sweep(tmp_path / "s")
    sweep.runs["learning_rate"] = 0.1
    sweep.runs.loc[(sweep.runs.optimizer == "lamb") & (sweep.runs.batch_size == 1024), "learning_rate"] = 0.2
    warned = [w for w in warnings_of(sweep, answers(sweep), None) if "one learning rate" in w]
    assert len(warned) == 1 and warned[0].startswith("**SGD has one learning rate for all batch sizes** (0.1)")


def test_a_reference_that_is_beaten_is_warned_of(tmp_path):
    """A "drop" of -10 points: the larger batch is the better one at the fixed budget."""
    sweep, found, _ = report_of(tmp_path / "s", images=6000, seed_error=0.001, drop_a=-0.02)
    assert found[0].drop.verdict.direction == -1
    warned = [w for w in warnings_of(sweep, found, None) if "is beaten" in w]
    assert (
        len(warned) == 1 and "**The reference SGD at 32 is beaten** at the fixed budget by SGD at 1,024 (by up to +" in warned[0]
    )
