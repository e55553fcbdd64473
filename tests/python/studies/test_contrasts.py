"""Contrasts and hypotheses from outside: derived seeds against the recipe in the docs, registration, pilots against scipy, arms."""

import hashlib
import json
import re
import shutil
import tomllib
from pathlib import Path

import h5py
import numpy as np
from scipy.stats import t as student

import basin
from basin.analysis.verdict_tables import hypothesis_table, verdicts_of
from basin_program import needs_program, program

pytestmark = needs_program
ROOT = Path(__file__).parents[3]

BASE = """
model = "mlp"
protocol = "A-updates"
updates = 3
batch_size = 32
learning_rate = 0.05
[data]
set = "synthetic"
train_examples = 100
test_examples = 40
[mlp]
hidden = [4]
[sweep]
batch_size = [16, 32]
seed = [1, 2, 3]
"""
CONTRAST = """
[[contrast]]
name = "drop"
base = { batch_size = 16 }
arm = { batch_size = 32 }
outcome = "test_acc"
"""
HYPOTHESIS = """
[[hypothesis]]
name = "{name}"
claim = "Large batches lose: “{claim}”"
contrasts = ["drop"]
expect = "less"
margin = {margin}
{more}
"""


def hypothesis(name="h", claim="much", margin=2, more=""):
    return HYPOTHESIS.format(name=name, claim=claim, margin=margin, more=more)


def sweep(folder, text, *more):
    (folder / "study.toml").write_text(text)
    return program("sweep", folder / "study.toml", "--out", folder / "out", "--jobs", 2, *more)


def dry_run(folder, text, *more):
    done = sweep(folder, text, "--dry-run", "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(folder, text, *more):
    done = sweep(folder, text, *more)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert done.returncode == 2 and len(lines) == 1, done.stderr
    return lines[0]


def registration(folder):
    return tomllib.loads((folder / "out" / "registration.toml").read_text())


def section() -> str:
    return (ROOT / "docs" / "study.md").read_text().split("## Contrasts and hypotheses")[1].split("\n## ")[0]


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", section(), re.S)[1]


def recipe(folder, text) -> dict:
    """What the Python of docs/study.md makes of a study."""
    (folder / "study.toml").write_text(text)
    found: dict = {}
    exec(block("python").replace('"study.toml"', repr(str(folder / "study.toml"))), found)
    return found


def seeds_of(document):
    return list(dict.fromkeys(run["seed"] for run in document["runs"]))


def test_the_study_of_the_docs_gives_the_seeds_of_their_recipe(tmp_path):
    text = block("toml")
    document, expected = dry_run(tmp_path, text), recipe(tmp_path, text)
    assert seeds_of(document) == expected["seeds"] and len(set(expected["seeds"])) == 10
    assert document["hypotheses_hash"] == expected["hash"]
    assert all(1 <= seed <= 2**31 for seed in expected["seeds"])
    names = [contrast["name"] for contrast in document["contrasts"]]
    assert names == ["sgd-drop", "lamb-drop", "lamb-less-sgd", "warmup-recovers", "sharpness"]
    assert [len(c["settings"]) for c in document["contrasts"]] == [2, 2, 4, 3, 2]
    assert all(len(c["paired_seeds"]) == 10 for c in document["contrasts"])
    assert [c["margin"] for c in document["contrasts"]] == [2, None, 2, 0.5, None]


def registered(text):
    return text.replace("seed = [1, 2, 3]", "registered_seeds = 4")


def test_seeds_follow_from_the_questions_alone(tmp_path):
    text = registered(BASE + CONTRAST + hypothesis())
    seeds = seeds_of(dry_run(tmp_path, text))
    assert seeds == recipe(tmp_path, text)["seeds"]
    # Written out by hand: the quotes are in the text, which is UTF-8.
    contrast = 'contrast\narm.batch_size = 32.0\nbase.batch_size = 16.0\nname = "drop"\noutcome = "test_acc"'
    claim = 'hypothesis\nclaim = "Large batches lose: “much”"\ncontrasts = ["drop"]\nexpect = "less"\nmargin = 2.0\nname = "h"'
    hashes = sorted(hashlib.sha256(part.encode()).hexdigest() for part in (contrast, claim))
    total = hashlib.sha256("\n".join(hashes).encode()).hexdigest()
    by_hand = [int(hashlib.sha256(f"{total}:{i}".encode()).hexdigest()[:8], 16) % 2**31 + 1 for i in (1, 2, 3, 4)]
    assert seeds == by_hand
    # Comments, order and the form of a number change nothing, nor do runs, and what is exploratory.
    other = registered(BASE.replace("updates = 3", "updates = 2") + "# a word" + hypothesis(margin="2.0") + CONTRAST)
    assert seeds_of(dry_run(tmp_path, other)) == seeds
    later = other + hypothesis("later", more="exploratory = true")
    assert seeds_of(dry_run(tmp_path, later)) == seeds == recipe(tmp_path, later)["seeds"]
    assert seeds_of(dry_run(tmp_path, registered(BASE + CONTRAST + hypothesis(margin=3)))) != seeds
    assert seeds_of(dry_run(tmp_path, text, "--set", "seed=7")) == [7]


def test_numbers_read_as_those_of_python(tmp_path):
    text = registered(BASE + CONTRAST.replace("test_acc", "test_loss"))
    for i, number in enumerate([0.1, 1e-5, 123456.789, 3e16, 1e-4, 9999999999999998.0, 5e-324]):
        text += hypothesis(f"h{i}", margin=repr(number))
    assert seeds_of(dry_run(tmp_path, text)) == recipe(tmp_path, text)["seeds"]


def test_registered_seeds_go_with_hypotheses_and_without_seeds(tmp_path):
    both = BASE.replace("seed = [1, 2, 3]", "seed = [1]\nregistered_seeds = 4")
    assert "study.toml:15: sweep.registered_seeds and sweep.seed exclude each other" in refused(
        tmp_path, both + CONTRAST + hypothesis()
    )
    assert "needs a [[hypothesis]]" in refused(tmp_path, registered(BASE + CONTRAST))
    assert "needs a [[hypothesis]]" in refused(tmp_path, registered(BASE + CONTRAST + hypothesis(more="exploratory = true")))
    assert "whole number from 1" in refused(tmp_path, BASE.replace("seed = [1, 2, 3]", "registered_seeds = 0"))
    tuned = registered(BASE.replace("[sweep]", "[sweep]\nlearning_rate = [0.01, 0.1]\nselect = 'validation_loss'"))
    assert "a seed that confirms must not choose" in refused(tmp_path, tuned + CONTRAST + hypothesis())


def test_bad_contrasts_are_refused_before_anything_starts(tmp_path):
    bad = BASE + CONTRAST.replace("batch_size = 32", "batch_size = 64") + hypothesis()
    line = refused(tmp_path, bad)
    assert 'study.toml:17: arm of "drop" picks no run: none has batch_size = 64 (there is 16, 32)' in line
    assert line == refused(tmp_path, bad, "--dry-run") and not (tmp_path / "out").exists()
    assert 'base of "drop" picks no run' in refused(tmp_path, BASE + CONTRAST, "--dry-run", "--set", "batch_size=[32, 64]")
    # One run takes its options from the same file.
    assert program("train", tmp_path / "study.toml", "--out", tmp_path / "one").returncode == 0


def test_registration(tmp_path):
    text = BASE + CONTRAST + hypothesis()
    done = sweep(tmp_path, text)
    assert done.returncode == 0, done.stderr
    first = registration(tmp_path)
    assert first["hash"] == recipe_hash(tmp_path, text)
    assert [(row["kind"], row["name"], row["runs_before"], row["exploratory"]) for row in first["registered"]] == [
        ("contrast", "drop", False, False),
        ("hypothesis", "h", False, False),
    ]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["utc"]) for row in first["registered"])
    # The same again, with a comment: nothing changes.
    assert sweep(tmp_path, text + "# a word\n").returncode == 0 and registration(tmp_path) == first
    for bad, words in {
        BASE + CONTRAST + hypothesis(margin=3): 'hypothesis "h" changed after the runs',
        BASE + CONTRAST: 'hypothesis "h" is gone after the runs',
        BASE + CONTRAST.replace("test_acc", "test_loss") + hypothesis(): 'contrast "drop" changed after the runs',
        text + hypothesis("later"): 'hypothesis "later" is new after the runs: --extend adds it',
    }.items():
        assert words in refused(tmp_path, bad)
        assert words in refused(tmp_path, bad, "--dry-run")
        if "new" not in words:
            assert words in refused(tmp_path, bad, "--extend")
    assert registration(tmp_path) == first
    assert sweep(tmp_path, text + hypothesis("later"), "--extend").returncode == 0
    second = registration(tmp_path)
    assert second["hash"] == first["hash"] and second["registered"][:2] == first["registered"]
    assert (second["registered"][2]["runs_before"], second["registered"][2]["exploratory"]) == (True, True)


def merged(tmp_path, here: str, there: str):
    """Two sweeps of two seeds each, collected into one folder."""
    for name, text, seeds in (("a", here, "[1, 2]"), ("b", there, "[3, 4]")):
        (tmp_path / name).mkdir()
        done = sweep(tmp_path / name, text, "--set", f"seed={seeds}")
        assert done.returncode == 0, done.stderr
    return program("collect", tmp_path / "a" / "out", tmp_path / "b" / "out", "--out", tmp_path / "out")


def test_sweeps_that_are_collected_into_one_keep_what_they_registered(tmp_path):
    """One study, seeds on two machines: the contrast is over all four, and its hypothesis is still registered."""
    text = BASE + CONTRAST + hypothesis()
    done = merged(tmp_path, text, text)
    assert done.returncode == 0, done.stderr
    both, alone = registration(tmp_path), [registration(tmp_path / name) for name in "ab"]
    assert both["hash"] == alone[0]["hash"] == recipe_hash(tmp_path, text)
    assert [(row["name"], row["runs_before"]) for row in both["registered"]] == [("drop", False), ("h", False)]
    assert [row["utc"] for row in both["registered"]] == [max(one["registered"][i]["utc"] for one in alone) for i in (0, 1)]
    drop = basin.contrasts(tmp_path / "out").set_index("name").loc["drop"]
    assert (drop.status, drop.seeds) == ("ok", 4)
    verdicts = hypothesis_table(verdicts_of(basin.open_sweep(tmp_path / "out"))).set_index("name")
    assert verdicts.loc["h"].status == "registered" and verdicts.loc["h"].utc == both["registered"][1]["utc"]


def test_a_question_that_one_of_the_sweeps_did_not_ask_is_exploratory(tmp_path):
    done = merged(tmp_path, BASE + CONTRAST, BASE + CONTRAST + hypothesis())
    assert done.returncode == 0, done.stderr
    assert [(row["name"], row["exploratory"]) for row in registration(tmp_path)["registered"]] == [("drop", False), ("h", True)]
    verdicts = hypothesis_table(verdicts_of(basin.open_sweep(tmp_path / "out")))
    assert list(verdicts.name) == ["h"] and list(verdicts.status) == ["exploratory"]


def test_sweeps_with_other_questions_under_one_name_are_not_merged(tmp_path):
    done = merged(tmp_path, BASE + CONTRAST + hypothesis(), BASE + CONTRAST + hypothesis(margin=3))
    assert done.returncode == 4 and done.stderr.count("\n") == 1
    assert 'hypothesis "h" is one question in ' in done.stderr and not (tmp_path / "out").exists()


def recipe_hash(folder, text) -> str:
    return recipe(folder, registered(text))["hash"]


def test_before_the_first_run_questions_may_change(tmp_path):
    assert sweep(tmp_path, BASE + CONTRAST + hypothesis()).returncode == 0
    shutil.rmtree(tmp_path / "out" / "runs")  # as where the sweep was stopped before the first
    changed = BASE + CONTRAST + hypothesis(margin=3)
    assert sweep(tmp_path, changed).returncode == 0
    assert registration(tmp_path)["hash"] == recipe_hash(tmp_path, changed)


def test_a_new_question_must_not_change_registered_seeds(tmp_path):
    text = registered(BASE + CONTRAST + hypothesis())
    assert sweep(tmp_path, text, "--set", "batch_size=[16, 32]").returncode == 0
    assert 'hypothesis "h" changed after the runs' in refused(tmp_path, registered(BASE + CONTRAST + hypothesis(margin=3)))
    later = text + hypothesis("later")
    assert "give it exploratory = true" in refused(tmp_path, later, "--extend")
    done = sweep(tmp_path, text + hypothesis("later", more="exploratory = true"), "--extend")
    assert done.returncode == 0, done.stderr
    assert registration(tmp_path)["registered"][2]["exploratory"]


def pilot(folder, rows, **columns):
    """verdicts.h5 without a seal, of rows (name, kind, outcome, scale, var_seed, var_image, var_rest)."""
    folder.mkdir()
    with h5py.File(folder / "verdicts.h5", "w") as file:
        file.attrs.update(schema_name="basin/verdicts", schema_version="1.3.0")
        group = file.create_group("contrasts")
        names = ("name", "kind", "outcome", "scale", "var_seed", "var_image", "var_rest")
        for name, values in zip(names, zip(*rows)):
            kind = h5py.string_dtype() if isinstance(values[0], str) else np.float64
            group.create_dataset(columns.get(name, name), data=list(values), dtype=kind)
    return folder


def least_seeds(seed, image, rest, images, margin, comparisons=1, equivalence=False):
    """Straight from the formula, with scipy's quantiles; 0: more than 200."""
    tails = (0.05 / comparisons, 0.1) if equivalence else (0.025 / comparisons, 0.2)
    for s in range(3, 201):
        e = rest / (s * images)
        a, b = seed / s + e, image / images + e
        variance = max(a + b - e, b)
        spread = a**2 / (s - 1) + (b**2 / (images - 1) + e**2 / ((s - 1) * (images - 1)) if images > 1 else 0)
        nu = max(s - 1, variance**2 / spread)
        if (student.isf(tails[0], nu) + student.isf(tails[1], nu)) * variance**0.5 < margin:
            return s
    return 0


def test_a_pilot_says_how_many_seeds_resolve_a_margin(tmp_path):
    # The data have 40 test images.
    text = BASE + CONTRAST + CONTRAST.replace("drop", "loss").replace("test_acc", "test_loss")
    text += CONTRAST.replace("drop", "speed").replace("test_acc", "updates") + hypothesis(margin=20)
    for name, margin in (("loss", 0.1), ("speed", 1.5)):
        text += hypothesis("of-" + name, margin=margin).replace('"drop"', f'"{name}"')
    text += '[[contrast]]\nname = "twice"\nminuend = "drop"\nsubtrahend = "other"\n'
    text += CONTRAST.replace('name = "drop"', 'name = "other"')
    text += hypothesis("of-twice", margin=30).replace('"drop"', '"twice"')
    nan = float("nan")
    rows = [
        ("drop", "plain", "test_acc", "difference", 3e-4, 0.02, 0.1),
        ("small", "plain", "test_loss", "difference", 0.01, 0.0, 0.1),
        ("large", "plain", "test_loss", "difference", 0.02, 0.05, 0.1),
        ("A/A", "same_cell", "test_loss", "difference", 9.0, 0.0, 0.0),
        ("other", "plain", "updates", "ratio", 0.3, nan, nan),
        ("one-seed", "plain", "updates", "ratio", nan, nan, nan),
    ]
    found = dry_run(tmp_path, text, "--pilot", pilot(tmp_path / "pilot", rows))["contrasts"]
    by_name = {c["name"]: c for c in found}
    assert by_name["drop"]["pilot"] == "drop" and by_name["loss"]["pilot"] == "large" and by_name["speed"]["pilot"] == "other"
    assert by_name["drop"]["seeds_needed"] == least_seeds(3e-4, 0.02, 0.1, 40, 0.2, comparisons=4)
    assert by_name["loss"]["beyond_most_seeds"] and by_name["loss"]["seeds_needed"] is None
    assert least_seeds(0.02, 0.05, 0.1, 40, 0.1, comparisons=4) == 0
    assert by_name["speed"]["seeds_needed"] == least_seeds(0.3, 0, 0, 1, np.log(1.5), comparisons=4)
    assert least_seeds(0.3, 0, 0, 1, np.log(1.5)) < by_name["speed"]["seeds_needed"] < 200
    printed = sweep(tmp_path, text, "--dry-run", "--pilot", tmp_path / "pilot").stdout
    assert "more than 200 (variances of large)" in printed
    assert "arm   sgd B=32 protocol A-updates\n" in printed


def test_seeds_needed_follow_the_rule(tmp_path):
    other = CONTRAST.replace('name = "drop"', 'name = "other"')
    one = hypothesis(margin=20)
    either = hypothesis("either", margin=20, more='rule = "any"').replace('["drop"]', '["drop", "other"]')
    alike = one.replace("less", "equivalent")
    folder = pilot(tmp_path / "pilot", [("drop", "plain", "test_acc", "difference", 3e-2, 0.02, 0.1)])

    def needed(text):
        return dry_run(tmp_path, BASE + CONTRAST + other + text, "--pilot", folder)["contrasts"][0]["seeds_needed"]

    expected = [
        least_seeds(3e-2, 0.02, 0.1, 40, 0.2),
        least_seeds(3e-2, 0.02, 0.1, 40, 0.2, equivalence=True),
        least_seeds(3e-2, 0.02, 0.1, 40, 0.2, comparisons=2),
    ]
    assert [needed(one), needed(alike), needed(either)] == expected
    assert needed(one + either) == least_seeds(3e-2, 0.02, 0.1, 40, 0.2, comparisons=4)
    assert len(set(expected)) == 3 and min(expected) > 3


def test_settings_of_a_list_of_rates_are_named_by_theirs(tmp_path):
    rates = CONTRAST.replace("base = { batch_size = 16 }", "base = { batch_size = 16, learning_rate = 0.01 }")
    rates = rates.replace("arm = { batch_size = 32 }", "arm = { learning_rate = 0.1 }")
    text = BASE.replace("[sweep]", "[sweep]\nlearning_rate = [0.01, 0.1]") + rates
    printed = sweep(tmp_path, text, "--dry-run").stdout
    assert "rate 0.01\n" in printed.split("  base  ")[1] and "rate 0.1\n" in printed.split("  arm   ")[1]


def test_a_bad_pilot_is_one_line(tmp_path):
    text = BASE + CONTRAST
    (tmp_path / "study.toml").write_text(text)
    for folder, words in (
        (tmp_path / "nowhere", "verdicts.h5"),
        (pilot(tmp_path / "old", [("a", "plain", "test_acc", "difference", 1.0, 1.0, 1.0)], var_rest="rest"), "var_rest"),
    ):
        done = sweep(tmp_path, text, "--dry-run", "--pilot", folder)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        assert done.returncode == 4 and len(lines) == 1 and words in lines[0], done.stderr
    assert "--dry-run" in sweep(tmp_path, text, "--pilot", tmp_path).stderr


ARMS = """
[[sweep.set]]
when = { ghost_batch = 8 }
set = { horizon = 5 }
[[sweep.skip]]
when = { ghost_batch = 8, perturbation.kind = "sam" }
"""


def test_arms_are_columns_and_labels(tmp_path):
    text = BASE.replace("batch_size = [16, 32]", 'ghost_batch = [0, 8]\nperturbation.kind = ["none", "sam"]').replace(
        "[1, 2, 3]", "[1]"
    )
    text = text.replace("updates = 3", 'updates = 3\nschedule = "constant"') + ARMS.replace("horizon = 5", "warmup = 0.1")
    document = dry_run(tmp_path, text)
    assert [run["arms"] for run in document["runs"]] == [
        {"ghost_batch": 0, "perturbation.kind": "none"},
        {"ghost_batch": 0, "perturbation.kind": "sam"},
        {"ghost_batch": 8, "perturbation.kind": "none"},
    ]
    head, *lines = sweep(tmp_path, text, "--dry-run").stdout.splitlines()
    assert head.split()[:7] == ["run_id", "batch", "optimizer", "protocol", "ghost_batch", "perturbation.kind", "seed"]
    assert [line.split()[4:6] for line in lines[:3]] == [["0", "none"], ["0", "sam"], ["8", "none"]]
    done = sweep(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert "ghost_batch=0 perturbation.kind=sam seed 1" in done.stderr
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| batch size | optimiser | ghost_batch | perturbation.kind | learning rate | runs |" in table
    rows = [line.split("|")[1:6] for line in table.splitlines() if line.startswith("| 32 ")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["32", "sgd", "0", "none", "0.05"],
        ["32", "sgd", "0", "sam", "0.05"],
        ["32", "sgd", "8", "none", "0.05"],
    ]


def test_the_warning_of_one_rate_comes_for_each_optimiser(tmp_path):
    text = BASE.replace("[sweep]", '[sweep]\noptimizer = ["sgd", "lamb"]')
    text += '[[sweep.set]]\nwhen = { optimizer = "lamb" }\nset = { learning_rate = 0.02 }\n'
    warnings = [line for line in sweep(tmp_path, text, "--dry-run").stderr.splitlines() if "warning: " in line]
    assert len(warnings) == 2
    assert "lamb has the same learning rate, 0.02, at 2 batch sizes" in warnings[0]
    assert "sgd has the same learning rate, 0.05, at 2 batch sizes" in warnings[1]
