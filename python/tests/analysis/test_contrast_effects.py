"""The contrasts and hypotheses of a study, on sweeps whose truth is known."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

import basin
from asked_study import DROP, PLAN
from basin.analysis.arms import ARM, has_own_rate, nearest_arm, with_arms
from basin.analysis.cell_answers import answers as cells_of
from basin.analysis.outcome_values import values_of
from basin.analysis.settings import Setting, pick
from basin.analysis.verdict_tables import contrast_table, verdicts_of
from basin.reader.fault import ReadError
from basin.reader.questions import Questions, read_questions
from synthetic_sweep import Plan, make_sweep


def sweep_of(folder, write_runs=False, **plan):
    make_sweep(folder, Plan(**(PLAN | plan)), write_runs)
    return basin.open_sweep(folder)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    sweep = sweep_of(tmp_path_factory.mktemp("asked") / "s")
    return sweep, verdicts_of(sweep)


def runs_of(sweep, protocol="A-epochs", optimizer="sgd", batch=32, ghost=0):
    runs = sweep.runs
    return runs[
        (runs.protocol == protocol) & (runs.optimizer == optimizer) & (runs.batch_size == batch) & (runs.ghost_batch == ghost)
    ]


def test_a_plain_effect_is_arm_less_base(asked):
    """The arm of 1,024 is the one that is as the base in the sweep's other axis."""
    sweep, v = asked
    small, large = runs_of(sweep), runs_of(sweep, batch=1024)
    f = v.found["drop"]
    assert f.effect.value == pytest.approx(large.test_acc.mean() - small.test_acc.mean()) and f.seeds == [1, 2, 3, 4, 5]
    assert f.effect.images == 1500 and f.losses == {
        "arm": pytest.approx(large.train_loss.mean()), "base": pytest.approx(small.train_loss.mean())
    }  # fmt: skip


def test_a_base_that_names_no_arm_is_the_plain_setting(tmp_path):
    """At 1,024 SGD was run with ghost batches too; the study says that an arm made those."""
    study = (
        PLAN["study"].replace("ghost_batch = [0, 25]", "[[sweep.arm]]\nwhen = { batch_size = 1024 }\nset = { ghost_batch = 25 }")
        + """
[[contrast]]
name = "lamb"
base = { optimizer = "sgd", batch_size = 1024, protocol = "A-epochs" }
arm = { optimizer = "lamb" }
outcome = "test_acc"
"""
    )
    sweep = sweep_of(tmp_path / "s", study=study)
    found = verdicts_of(sweep).found
    sgd, lamb = runs_of(sweep, batch=1024), runs_of(sweep, optimizer="lamb", batch=1024)
    assert found["lamb"].effect.value == pytest.approx(lamb.test_acc.mean() - sgd.test_acc.mean())
    assert found["ghost-recovers"].share.low < 0.5 < found["ghost-recovers"].share.high


def test_a_base_is_the_plain_setting_where_its_arm_lists_that_too(tmp_path):
    """The large batch was run with and without ghost batches by one arm, and nothing else says which is plain but the study's own value."""
    arm = "ghost_batch = 0\n[[sweep.arm]]\nwhen = { batch_size = 1024 }\nset = { ghost_batch = [0, 25] }\n"
    study = DROP.replace("batch_size = 32", "batch_size = 1024").replace("{ batch_size = 1024 }", "{ batch_size = 32 }")
    sweep = sweep_of(tmp_path / "s", study=arm + study, protocols=("A-epochs",), optimizers=("sgd",))
    found = verdicts_of(sweep).found["drop"]
    plain, small = runs_of(sweep, batch=1024), runs_of(sweep)
    assert found.reason == "" and found.effect.value == pytest.approx(small.test_acc.mean() - plain.test_acc.mean())


def test_a_methods_own_arms_are_left_out_where_the_base_has_no_such_option(asked):
    """SGD has no lamb.trust: LAMB as it is, and not the arm."""
    sweep = asked[0]
    runs = sweep.runs.copy()
    made = (runs.optimizer == "lamb") & (runs.seed == 1)
    runs.loc[made, "config_id"] += "-mean"
    runs["lamb.trust"] = np.where(runs.optimizer != "lamb", "", np.where(made, "mean", "live"))
    view = SimpleNamespace(runs=runs, options=sweep.options)
    base = Setting("base", runs_of(sweep, optimizer="sgd", batch=32).assign(**{"lamb.trust": ""}))
    questions = Questions(axes=("lamb.trust",), arms={"lamb.trust": ["mean"]})
    conditions = {"protocol": "A-epochs", "optimizer": "lamb", "batch_size": 32}
    found = pick(view, "arm", conditions, questions, base)
    assert set(found.runs["lamb.trust"]) == {"live"} and 1 not in set(found.runs.seed)


def test_a_run_is_picked_by_the_epochs_that_were_asked_for(asked):
    """Runs of protocol B end after epochs of their own."""
    sweep = asked[0]
    runs = sweep.runs.assign(**{"epochs": np.linspace(11, 29, len(sweep.runs)), "option.epochs": 8.0})
    conditions = {"protocol": "B", "optimizer": "sgd", "batch_size": 32, "epochs": 8}
    found = pick(SimpleNamespace(runs=runs, options=sweep.options), "base", conditions, Questions())
    assert list(found.runs.run_id) == list(runs_of(sweep, protocol="B").run_id)


def test_the_numbers_of_the_twin_are_columns_of_their_own(asked):
    sweep, outcome = asked[0], "probe.top_eigenvalues.lambda_1"
    runs = runs_of(sweep, protocol="B")
    column = "probe.end@twin.top_eigenvalues.lambda_1"
    runs = runs.assign(**{column: np.arange(len(runs)) + 7.0, f"{column}.status": "ok"})
    twin = values_of(sweep, Setting("base", runs), outcome, "end@twin").numbers
    assert twin == dict(zip(runs.seed, runs[column])) != values_of(sweep, Setting("base", runs), outcome, "end").numbers


def test_at_a_target_that_is_a_level_a_number_is_that_of_its_checkpoint(asked):
    """As the program has it. A run that wasn't probed there gives that of its end."""
    sweep, outcome = asked[0], "probe.top_eigenvalues.lambda_1"
    runs = runs_of(sweep, protocol="B")
    at_end = runs["probe.end.top_eigenvalues.lambda_1"].to_numpy()
    column = "probe.loss-1.top_eigenvalues.lambda_1"
    there = np.arange(len(runs)) + 7.0
    runs = runs.assign(**{column: there, f"{column}.status": ["", *["ok"] * (len(runs) - 1)]})
    assert list(values_of(sweep, Setting("base", runs), outcome, "loss-1").numbers.values()) == [at_end[0], *there[1:]]
    assert list(values_of(sweep, Setting("base", runs), outcome, "end").numbers.values()) == list(at_end)


def test_only_probes_measure_at_the_twin(tmp_path):
    with pytest.raises(ReadError, match="at = 'end@twin' is none of"):
        read_questions(DROP + 'at = "end@twin"\n', tmp_path, "study.toml")


def test_a_difference_of_two(asked):
    sweep, v = asked
    means = [runs_of(sweep, optimizer=o, batch=b).test_acc.mean() for o in ("lamb", "sgd") for b in (1024, 32)]
    f = v.found["lamb-less-sgd"]
    assert f.effect.value == pytest.approx(means[0] - means[1] - means[2] + means[3]) and f.kind == "difference"


def test_a_recovered_fraction(asked):
    sweep, v = asked
    small, large, arm = (runs_of(sweep, batch=b, ghost=g).test_acc.mean() for b, g in ((32, 0), (1024, 0), (1024, 25)))
    f = v.found["ghost-recovers"]
    assert f.share.value == pytest.approx((arm - large) / (small - large)) and f.share.low < 0.5 < f.share.high
    assert f.effect.value == pytest.approx(arm - large)


def test_losses_at_the_target_are_paired_by_seed(asked):
    """The synthetic file has no losses of images; protocol B's target is 1.0, so the level is its end."""
    sweep, v = asked
    d = runs_of(sweep, "B", batch=1024).test_loss.to_numpy() - runs_of(sweep, "B").test_loss.to_numpy()
    half = student.ppf(0.975, 4) * d.std(ddof=1) / np.sqrt(5)
    assert v.found["matched-loss"].effect.interval() == (pytest.approx(d.mean() - half), pytest.approx(d.mean() + half))


@pytest.mark.parametrize("name, column", [("sharper", "end"), ("sharper-on-the-way", "loss-1.5")])
def test_a_probes_number_is_a_ratio(asked, name, column):
    sweep, v = asked
    column = f"probe.{column}.top_eigenvalues.lambda_1"
    d = np.log(runs_of(sweep, "B", batch=1024)[column].to_numpy() / runs_of(sweep, "B")[column].to_numpy())
    row = contrast_table(v).set_index("name").loc[name]
    assert row.effect == pytest.approx(np.exp(d.mean())) and row.low < row.effect < row.high
    assert row.var_seed == pytest.approx(d.var(ddof=1)) and row.images == 0


def test_hypotheses(asked):
    _, v = asked
    by = {a.plan.name: a for a in v.answers}
    assert by["it-drops"].verdict == "confirmed" and [p.verdict for p in by["it-drops"].parts] == ["confirmed"] * 2
    assert by["lamb-differs"].verdict == "refuted"  # both lose ten points: equivalence within three
    assert by["ghosts"].verdict == "confirmed" and {a.status for a in v.answers} == {"exploratory"}
    # Holm: the largest of three p-values stands as it is.
    assert max(a.p_holm for a in v.answers) == pytest.approx(max(a.p for a in v.answers))


def test_halves_of_one_cell_come_with_every_study(asked):
    _, v = asked
    at_end = [s for s in v.same if s.outcome == "test_acc"]
    assert len(at_end) == 12 and {s.verdict for s in at_end} == {"nothing"}  # 2 protocols, 2 optimisers, 3 settings
    assert any("ghost_batch=25" in s.name for s in at_end) and {s.effect.freedom for s in at_end} == {3}


def test_the_door_gives_the_table(asked):
    sweep, v = asked
    table = basin.contrasts(sweep.path.parent)
    assert list(table.name[:7]) == list(v.found) and (table.kind[7:] == "same_cell").all()
    assert table.columns.equals(contrast_table(v).columns)


def test_arms_have_labels_and_rows(asked):
    sweep, _ = asked
    labels = with_arms(sweep)
    assert set(labels[ARM]) == {"", "ghost_batch=25"} and (labels[ARM] != "").sum() == 20
    rows = [(a.label, a.batch_size, a.arm) for a in cells_of(sweep)]
    assert rows == [(o, 1024, arm) for o in ("SGD", "LAMB") for arm in ("", "ghost_batch=25")]


def test_options_that_follow_from_the_swept_ones_are_in_no_label(asked):
    """The arm's probes need checks of their own, and each of its seeds takes ratios from a run of its own."""
    sweep = copy.copy(asked[0])
    arm = with_arms(sweep)[ARM] != ""
    made = {"check_every": np.where(arm, 2000, 10000), "lamb.trust_from": np.where(arm, sweep.runs.run_id, "")}
    sweep.runs = sweep.runs.assign(**made)
    sweep.options = [*made, *sweep.options]
    assert set(with_arms(sweep)[ARM]) == {"", "ghost_batch=25"}


def test_an_arm_of_two_changes_is_compared_with_the_arm_that_has_one_of_them():
    assert nearest_arm("norm=batch, warmup=0", ["", "norm=batch", "norm=layer"]) == "norm=batch"
    assert nearest_arm("warmup=0", ["", "norm=batch"]) == ""
    assert nearest_arm("warmup=0", ["norm=batch"]) is None


def test_an_arm_has_a_rate_of_its_own_where_a_rule_says_so():
    study = """
[[sweep.set]]
when = { batch_size = 2048, noise.batch = [32, 64] }
set = { learning_rate = 0.1 }
[[sweep.set]]
when = { warmup = 0.0 }
set = { epochs = 3 }
"""
    assert has_own_rate("norm=batch, noise.batch=32", "norm=batch", study)
    assert not has_own_rate("norm=batch, noise.batch=128", "norm=batch", study)
    assert not has_own_rate("warmup=0", "", study)


def test_a_file_and_folders_say_the_same(tmp_path):
    plan = dict(images=60, protocols=("A-epochs",), study=DROP, arms=())
    file = contrast_table(verdicts_of(sweep_of(tmp_path / "s", write_runs=True, **plan)))
    folders = contrast_table(verdicts_of(basin.open_sweep(tmp_path / "s", "runs")))
    assert file.effect[0] == folders.effect[0] and file.high[0] == folders.high[0]


def test_what_was_registered_before_the_runs(tmp_path):
    sweep = sweep_of(tmp_path / "s", images=60)
    rows = [("it-drops", "false"), ("ghosts", "true")]
    entries = [f'[[registered]]\nkind = "hypothesis"\nname = "{n}"\nhash = "1"\nutc = "x"\nruns_before = {b}\n' for n, b in rows]
    (tmp_path / "s" / "registration.toml").write_text('hash = "abc"\n' + "".join(entries))
    status = {a.plan.name: a.status for a in verdicts_of(sweep).answers}
    assert status == {"it-drops": "registered", "lamb-differs": "exploratory", "ghosts": "exploratory"}


@pytest.mark.parametrize(
    "endings, claims",
    [
        ({("A-epochs", "sgd", 32, 5): "diverged"}, "base: 1 of 5 reference seeds diverged"),
        ({("A-epochs", "sgd", 1024, 5): "failed"}, "1 of 5 seeds failed"),
        ({("A-epochs", "sgd", 1024, 5): "diverged"}, ""),  # it would add to the drop
        ({("A-epochs", "sgd", 1024, 5): "queued"}, ""),
    ],
)
def test_survivors_claim_nothing(tmp_path, endings, claims):
    plan = dict(images=200, arms=(), optimizers=("sgd",), protocols=("A-epochs",), study=DROP, endings=endings)
    f = verdicts_of(sweep_of(tmp_path / "s", **plan)).found["drop"]
    assert f.effect is not None and f.seeds[:3] == [1, 2, 3] and claims in f.claims and bool(f.claims) == bool(claims)


@pytest.mark.parametrize(
    "old, new, reason",
    [
        ("batch_size = 32", "batch_size = 64", "base: no run has optimizer = sgd, batch_size = 64"),
        ("batch_size = 1024", "batch_sice = 1024", 'no run has an option "batch_sice"'),
        ("batch_size = 1024", "batch_size = 32", "two of its settings are the same"),
        ('"test_acc"', '"probe.margins.median"', "probe.margins.median was never measured there"),
        (', protocol = "A-epochs"', "", "2 settings have optimizer = sgd, batch_size = 32, which differ in protocol"),
        ('outcome = "test_acc"', 'at = "loss-0.3"', "never reached the level"),
    ],
)
def test_what_cannot_be_compared_says_why(tmp_path, old, new, reason):
    plan = dict(images=20, arms=(), optimizers=("sgd",), study=DROP.replace(old, new))
    f = verdicts_of(sweep_of(tmp_path / "s", **plan)).found["drop"]
    assert f.effect is None and reason in f.reason and f.status == "not_compared"


HYPOTHESIS = '[[hypothesis]]\nname = "h"\ncontrasts = ["drop"]\nexpect = "less"\n'


@pytest.mark.parametrize(
    "text, words",
    [
        (DROP + DROP, 'contrast "drop" twice'),
        (DROP.replace("arm =", "warm ="), "no arm"),
        (DROP + 'scale = "log"', "scale = 'log' is none of difference, ratio"),
        (DROP + 'at = "loss-low"', "at = 'loss-low' is none of end, budget, loss-LEVEL"),
        ('[[contrast]]\nname = "a"\nminuend = "a"\nsubtrahend = "a"\n', "made from itself"),
        (DROP + '[[contrast]]\nname = "r"\nrecovers = "dorp"\narm = { warmup = 0.2 }\n', 'no contrast "dorp"'),
        (DROP + HYPOTHESIS.replace("drop", "dorp"), 'hypothesis "h": no contrast "dorp"'),
        (DROP + HYPOTHESIS + "margin = -1", "margin = -1: a positive number"),
        (DROP + HYPOTHESIS.replace('"less"', '["less", "less"]'), "expect has 2 entries for 1 contrasts"),
        (DROP + HYPOTHESIS + 'rule = "most"', "rule = 'most' is none of all, any"),
    ],
)
def test_bad_questions_are_one_line(tmp_path, text, words):
    with pytest.raises(ReadError) as error:
        read_questions(text, tmp_path, "study.toml")
    assert words in str(error.value) and str(error.value).startswith("study.toml: ") and "\n" not in str(error.value)
