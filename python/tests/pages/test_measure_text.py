"""What is said of measures and the gap, and that what failed an audit is marked in every table and figure."""

import numpy as np
import pytest

import basin
from audit_files import greyed, row, write_audit
from basin.analysis.audit_verdict import load_audit
from basin.analysis.sweep_measures import basis_of, collect
from basin.figures import measures_and_gap as figures
from basin.pages import measure_text
from clear_sweep import CLEAR, by_label
from documents import results_named_in
from planned import open_planned


@pytest.mark.parametrize(
    "plan, says",
    [
        (dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb")), "not enough: 4 configurations, 5 are needed"),
        (dict(batch_sizes=(32,), optimizers=("sgd",)), "not enough: 1 configuration, 5 are needed"),
        (dict(seeds=(1,)), "nothing is claimed: one seed each"),
    ],
)
def test_too_little_is_refused(tmp_path, plan, says, few_draws):
    found = by_label(open_planned(tmp_path / "s", CLEAR | plan))
    assert {found[label].says for label in ("lambda", "phi_full_1e-3")} == {says}
    assert "claimed" in measure_text.answer(list(found.values()))
    assert not any(word in measure_text.answer(list(found.values())) for word in ("rises", "falls"))


def test_a_fixed_budget_claims_nothing_that_the_loss_may_explain(clear, few_draws):
    clear.runs = clear.runs[clear.runs.protocol == "B"].assign(protocol="A-epochs")
    assert not basis_of(clear).matched
    assert by_label(clear)["lambda"].says == "nothing is claimed: training losses differ and could not be held"
    assert "nothing is claimed from" in measure_text.about_basis(basis_of(clear), collect(clear))
    # a loss that orders like the gap: nothing of tau is left
    clear.runs["train_loss"] = np.log2(clear.runs.batch_size) + clear.runs.optimizer.map({"sgd": 0.0, "lars": 0.1, "lamb": 0.2})
    c = by_label(clear)["lambda"]
    assert c.tau.low > 0 and c.says == "no association shown given the order of training loss"
    # one that has nothing to do with it: the claim stands, and says what it is given
    order = np.random.default_rng(1).permutation(len(clear.runs))
    clear.runs["train_loss"] = 1 + order / 100
    assert by_label(clear)["lambda"].says == "rises with the gap given the order of training loss"


def test_measures_that_moved_are_marked_everywhere(clear, few_draws, drawing):
    folder = clear.path.parent / "runs" / clear.runs.run_id.iloc[0] / "audit"
    write_audit(folder / "end.h5", [row("lambda", "relu_rescale", "moved", 16.0), row("tr_sigma", "permutation", "invariant")])
    basis, found = basis_of(clear), list(by_label(clear).values())
    moved = next(c for c in found if c.label == "lambda")
    assert moved.moved and moved.says == "rises with the gap, but moves where the function doesn't"
    assert "lambda *" in set(measure_text.table(found).measure) & set(measure_text.second_table(found, basis).measure)
    assert "2 of 7 measures were audited. These move" in measure_text.about_audit(load_audit(clear), found)
    told = measure_text.audit_table(load_audit(clear), found).set_index("measure")["where the function stays"]
    assert told["lambda *"] == "moves (relu_rescale, by a factor of up to 16)" and told["phi_full_1e-3"] == "not audited"
    for draw in (figures.against_gap, figures.against_batch):
        grey = [ax for ax in draw(found, basis).axes if greyed_axis(ax)]
        assert len(grey) == 1 and any("lambda (1)" in (ax.get_xlabel(), *TITLES(ax)) for ax in grey)
    forest = figures.forest(found)
    names = {t.get_text(): t.get_color() for t in forest.axes[0].get_yticklabels()}
    assert [n for n, colour in names.items() if colour != "black"] == ["lambda *  n=12"]


def greyed_axis(ax):
    return bool(greyed(type("Figure", (), {"axes": [ax]})))


def TITLES(ax):
    return [f"{ax.get_title(loc)} (1)" for loc in ("left", "center")]


@pytest.mark.parametrize("ending", ["diverged", "queued"])
def test_a_sweep_with_nothing_to_compare_says_so(tmp_path, ending, drawing):
    endings = {(p, o, b): ending for p in ("A-epochs", "B") for o in ("sgd", "lamb") for b in (32, 1024)}
    sweep = open_planned(
        tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=30, updates=3, endings=endings)
    )
    basis = basis_of(sweep)
    assert collect(sweep, basis) == [] and "Nothing to compare" in measure_text.about_basis(basis, [])
    for draw in (figures.against_gap, figures.against_batch):
        draw([], basis).canvas.draw()
    figures.forest([], []).canvas.draw()


def test_the_target_is_told_with_what_is_known_of_it(tmp_path, clear):
    known = measure_text.about_target(collect(clear), "gap")
    assert "over 12 configurations" in known and "mostly noise" not in known and "2,000 test images" in known
    noisy = open_planned(tmp_path / "noisy", CLEAR | dict(drop_b=0.0, images=200))
    assert "**mostly noise**" in measure_text.about_target(collect(noisy), "gap")
    lone = open_planned(tmp_path / "lone", CLEAR | dict(seeds=(1,)))
    assert "One seed" in measure_text.about_target(collect(lone), "gap").replace("one seed", "One seed")


def test_the_documents_reading_of_the_quick_study(few_draws):
    """docs/reading-results.md: no measure is seen to go with the gap; nine configurations, 12.5 to 13.4 points, errors near 0.4, wide
    intervals."""
    folder = results_named_in("docs/reading-results.md", r"results/[0-9-]+quick(?=\))")
    found = by_label(basin.open_sweep(folder / "sweep.h5"))
    assert {c.says for c in found.values() if not c.why_not} == {"no association shown"}
    largest = max(found.values(), key=lambda c: c.n)
    gaps = largest.measure.configs
    assert largest.n == 9 and (round(gaps.gap.min(), 1), round(gaps.gap.max(), 1)) == (12.5, 13.4)
    assert gaps.gap_error.median() == pytest.approx(0.4, abs=0.05)
    assert all(0.8 < c.tau.high - c.tau.low < 1.7 for c in found.values())
