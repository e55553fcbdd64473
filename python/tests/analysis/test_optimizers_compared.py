"""Optimisers against the first, references that are bad, cells that differ, and losses at which drop and comparison end."""

import numpy as np
import pytest

import basin
from basin.analysis.cell_answers import answers
from basin.analysis.optimizers_compared import compared
from basin.analysis.pooled import bad_references, pooled
from basin.pages import report_text as text
from basin.pages.phrases import share_text
from basin.pages.summary import summary
from basin.reader.sweep import NOT_THERE
from synthetic_sweep import Plan, make_sweep

PLAN = dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), updates=3, images=1500, seed_error=0.002, seeds=(1, 2, 3, 4))


def sweep_of(folder, **plan):
    make_sweep(folder, Plan(**(PLAN | plan)))
    return basin.open_sweep(folder)


def better(sweep, protocol, optimizer, batch, images):
    """Makes so many images right in all runs of a cell that were wrong."""
    runs = sweep.runs
    rows = runs.index[(runs.protocol == protocol) & (runs.optimizer == optimizer) & (runs.batch_size == batch)]
    whole = sweep._whole("outcomes/test/correct")
    for row in rows:
        wrong = np.flatnonzero(whole[row] == 0)[:images]
        whole[row, wrong] = 1
        assert (whole[row] != NOT_THERE).all()
        runs.loc[row, "test_acc"] = whole[row].mean()


def test_difference_and_difference_of_drops(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    better(sweep, "A-epochs", "lamb", 1024, 120)
    means = sweep.runs[sweep.runs.protocol == "A-epochs"].groupby(["optimizer", "batch_size"]).test_acc.mean()
    row = next(r for r in compared(sweep) if (r.protocol, r.optimizer, r.batch_size) == ("A-epochs", "lamb", 1024))
    drops = {o: means[o, 32] - means[o, 1024] for o in ("sgd", "lamb")}
    assert row.effect.value == pytest.approx(means["lamb", 1024] - means["sgd", 1024]) and row.verdict == "better"
    assert row.drop.value == pytest.approx(drops["lamb"] - drops["sgd"]) and row.drop.interval()[1] < 0
    assert "at a fixed number of epochs (in brackets: how much smaller the drop is): LAMB at 32" in summary(sweep)


def test_lost_seeds_leave_no_verdict(tmp_path):
    sweep = sweep_of(tmp_path / "s", endings={("B", "lamb", 1024, 2): "target_not_reached"})
    row = next(r for r in compared(sweep) if (r.protocol, r.batch_size) == ("B", 1024))
    assert row.verdict == "undecided (LAMB: 1 of 4 seeds missed the target)"


def test_no_verdict_over_cells_that_differ(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    assert pooled(sweep, answers(sweep)).withheld == ""
    better(sweep, "B", "lamb", 1024, 120)  # eight points
    together = pooled(sweep, answers(sweep))
    assert (
        "cells differ at matched loss, SGD at 1,024 has" in together.withheld
        and "more left than LAMB at 1,024" in together.withheld
    )
    assert "No verdict is given over this mean" in " ".join(text.answer(answers(sweep), together))
    assert "**No verdict is given over this mean**" in summary(sweep)


def test_a_reference_beaten_by_another_optimisers(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    assert bad_references(sweep, answers(sweep)) == {}
    better(sweep, "A-epochs", "lamb", 32, 120)
    bad = bad_references(sweep, answers(sweep))
    assert list(bad) == ["sgd"] and bad["sgd"].startswith("the reference SGD at 32 is beaten at the fixed budget by LAMB's, ")
    assert bad["sgd"] in pooled(sweep, answers(sweep)).withheld


def test_no_share_where_the_losses_are_apart(tmp_path):
    """The reference ends at 0.70 at the fixed budget and at 0.98 at matched loss."""
    sweep = sweep_of(tmp_path / "s", reference_loss=0.7)
    found = answers(sweep)
    assert all(a.share is None and a.apart for a in found) and share_text(found[0].share, found[0].ends) == (
        "no share: losses 0.70 and 0.98"
    )
    together = pooled(sweep, found)
    said = " ".join(text.answer(found, together))
    assert "0.28 nat apart, so no share of the drop is given" in said and "missing optimisation" not in said
    assert "missing optimisation" not in summary(sweep) and "0.28 nat apart" in summary(sweep)


def test_equal_updates_stand_next_to_equal_epochs(tmp_path):
    from basin.pages.report_tables import verdict_table

    sweep = sweep_of(tmp_path / "s", protocols=("A-epochs", "A-updates", "B"), images=200)
    runs = sweep.runs[(sweep.runs.protocol == "A-updates") & (sweep.runs.optimizer == "sgd")]
    found = answers(sweep)
    means = runs.groupby("batch_size").test_acc.mean()
    assert found[0].more_drops["A-updates"].estimate.value == pytest.approx(means[32] - means[1024])
    assert "drop at a fixed number of updates" in verdict_table(found)


def test_phase_and_test_loss_at_matched_loss(tmp_path):
    from basin.pages.report_tables import details_table

    sweep = sweep_of(tmp_path / "s", images=200, drop_b=0.01)
    gap = answers(sweep)[0].gap
    runs = sweep.runs[(sweep.runs.protocol == "B") & (sweep.runs.optimizer == "sgd")].groupby("batch_size").test_loss.mean()
    assert (
        gap.test_loss.value == pytest.approx(runs[1024] - runs[32]) and np.isnan(gap.phases).all()
    )  # no rates in the synthetic file
    sweep.curve_column = lambda run_id, table, column: np.array([0.1, 0.4, 0.2])
    found = answers(sweep)
    row = details_table(found).iloc[0]
    assert row["rate at the stop over peak"] == "0.50 : 0.50" and row["test loss above the reference's (nat)"].startswith("+0.0")


def test_several_cells_are_judged_together(tmp_path):
    """z = 2.2 for one cell of two: a gap alone, undecided with the other."""
    from basin.analysis import stats
    from basin.analysis.matched import verdict_of

    sweep = sweep_of(tmp_path / "s", images=100)
    gap = answers(sweep)[0].gap
    gap.estimate = stats.Difference(0.022, 0.010, 1e6, 4, 100)
    assert verdict_of(gap, 0.02).word == "gap" and verdict_of(gap, 0.02, 2).word == "undecided"
