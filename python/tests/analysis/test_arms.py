"""Labels of arms: which value is plain, what a label says, and which arm is the nearest."""

import copy

import numpy as np
import pytest

import basin
from basin.analysis.arms import ARM, has_own_rate, nearest_arm, plain_runs, with_arms, without_rate
from basin.analysis.matched import contrast
from basin.reader import questions
from basin.reader.sweep import with_asked_for
from branched_sweep import branch
from planned import open_planned
from synthetic_sweep import Plan, make_sweep

# As many settings with a warm-up as without, at both batch sizes.
TIED = dict(
    batch_sizes=(32, 256), optimizers=("sgd",), seeds=(1, 2), protocols=("B",), images=20, updates=4,
    arms=(("warmup", 0.1, (32, 256), 0.0),),
)  # fmt: skip
LIST = "[sweep]\nwarmup = {}\n"


def in_both_orders(sweep):
    turned = copy.copy(sweep)
    turned.runs = sweep.runs.iloc[::-1].reset_index(drop=True)
    return sweep, turned


@pytest.mark.parametrize(
    "study, default, plain",
    [
        ("warmup = 0.1\n" + LIST.format("[0.0, 0.1]"), 0.0, 0.1),  # the study's own
        (LIST.format("[0.1, 0.0]"), 0.0, 0.1),  # the first of its list
        (LIST.format("[0.0, 0.1]"), 0.1, 0.0),
        ("", 0.1, 0.1),  # the option's default
        ("", None, 0.0),  # nothing known: the first by text
    ],
)
def test_the_plain_value_is_the_studys_in_any_order_of_rows(tmp_path, monkeypatch, study, default, plain):
    monkeypatch.setattr(questions, "known_options", lambda: {} if default is None else {"warmup": {"default": default}})
    for sweep in in_both_orders(open_planned(tmp_path / "s", TIED | dict(study=study))):
        runs = with_arms(sweep)
        other = 0.1 - plain
        assert list(runs[ARM]) == ["" if value == plain else f"warmup={other:g}" for value in runs.warmup]


def test_a_file_and_its_folders_have_the_same_labels(tmp_path):
    """Rows of the file are in order of the plan, with the arm last; those of folders by hashes."""
    make_sweep(tmp_path / "s", Plan(**TIED | dict(study=LIST.format("[0.1, 0.0]"))), write_runs=True)
    labels = [
        with_arms(basin.open_sweep(tmp_path / "s", source)).set_index("run_id")[ARM].to_dict() for source in ("file", "runs")
    ]
    assert labels[0] == labels[1] and set(labels[0].values()) == {"", "warmup=0"}


def test_options_have_one_order_in_a_file_and_in_folders():
    """Labels leave out what follows from the options before it. In sweep.h5 `option.epochs` stands where the program has `epochs`."""
    assert list(with_asked_for({"epochs": 2.0, "warmup": 0.1})) == ["epochs", "option.epochs", "warmup"]


def branches(rows, curves):
    """From every run one, with an identity of its own at each batch size."""
    return [branch(row, dict(curves[row["run_id"]]), "u2", protocol="B") for row in rows if row["warmup"] == 0]


def test_a_branch_is_no_plain_setting_and_its_label_is_that_of_all_its_seeds(tmp_path):
    """At the smallest batch size too, where the branches of one seed begin from one run."""
    study = LIST.format("[0.0, 0.1]") + "branch.at = ['u2']\n"
    for sweep in in_both_orders(open_planned(tmp_path / "s", TIED | dict(more=branches, study=study))):
        runs = with_arms(sweep)
        of_branches = runs["branch.from"] != ""
        assert set(runs[ARM][of_branches]) == {"branch.at=u2"} and of_branches.sum() == 4
        assert set(runs[ARM][~of_branches]) == {"", "warmup=0.1"}


def test_plain_runs_are_those_of_all_rates_whatever_was_looked_at(tmp_path):
    def at_another_rate(rows, curves):
        for row in rows:
            yield row | {k: row[k] + "r" for k in ("run_id", "config_id")} | {"learning_rate": 0.3}, curves[row["run_id"]]

    sweep = open_planned(tmp_path / "s", TIED | dict(more=at_another_rate, study=LIST.format("[0.0, 0.1]")))
    sweep.runs["loss_levels"] = np.where(sweep.runs.learning_rate == 0.3, "[1.5]", "[]")
    sweep.options.append("loss_levels")
    runs = plain_runs(sweep)
    assert len(runs) == 8 and set(runs.warmup) == {0.0} and set(runs.learning_rate) == {0.1, 0.3}


def test_numbers_have_the_digits_that_tell_them_apart(tmp_path):
    close = (0.12345678, 0.12345681)
    plan = TIED | dict(arms=tuple(("warmup", value, (32,), 0.0) for value in close), study=LIST.format("[0.0]"))
    assert set(with_arms(open_planned(tmp_path / "close", plan))[ARM]) == {"", "warmup=0.12345678", "warmup=0.12345681"}
    plan |= dict(arms=(("warmup", close[0], (32,), 0.0),))
    assert set(with_arms(open_planned(tmp_path / "alone", plan))[ARM]) == {"", "warmup=0.123457"}


def test_a_list_is_one_option():
    two, three = "mlp.hidden=[64, 64]", "mlp.hidden=[64, 64, 64]"
    assert nearest_arm(three, ["", two]) == "" and nearest_arm(f"norm=batch, {three}", [two, "norm=batch", three]) == "norm=batch"
    assert nearest_arm(f"{three}, warmup=0", ["", three, two]) == three
    assert without_rate(f"{three}, learning_rate=0.1") == three
    study = "[[sweep.set]]\nwhen = { mlp.hidden = 64 }\nset = { learning_rate = 0.1 }\n"
    assert not has_own_rate(three, "", study)


def test_of_two_arms_as_near_it_is_the_one_with_the_first_change():
    for there in (["warmup=0", "norm=batch"], ["norm=batch", "warmup=0"]):
        assert nearest_arm("norm=batch, warmup=0", there) == "norm=batch"
        assert nearest_arm("warmup=0, norm=batch", there) == "warmup=0"


def test_an_arm_has_its_own_rate_whatever_digits_its_label_has():
    study = "[[sweep.set]]\nwhen = { warmup = 0.12345678 }\nset = { learning_rate = 0.1 }\n"
    assert has_own_rate("warmup=0.123457", "", study) and has_own_rate("warmup=0.12345678", "", study)
    assert not has_own_rate("warmup=0.12345681", "", study)


def test_a_reference_of_other_arms_alone_is_no_reference(tmp_path):
    arms = tuple(("warmup", value, (32,), 0.0) for value in (0.1, 0.2))
    sweep = open_planned(tmp_path / "s", TIED | dict(arms=arms, study=LIST.format("[0.0, 0.1]")))
    assert contrast(sweep, "B", "sgd", 256, arm="").reason == ""
    sweep.runs = sweep.runs[(sweep.runs.batch_size == 256) | (sweep.runs.warmup > 0)]
    assert contrast(sweep, "B", "sgd", 256, arm="").reason == "none of the reference's 2 arms is like this"
