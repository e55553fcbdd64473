"""scripts/same_numbers.py: a program agrees with itself, and whatever is planted in a copy of its results is found."""

import json
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import h5py
import numpy as np
import pytest

from basin_program import BASIN, needs_program, output

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from number_cases import TRAININGS, sets  # noqa: E402
from same_numbers import MAY_DIFFER, report  # noqa: E402
from tree_difference import Change, Tally, compare_trees, in_words  # noqa: E402

pytestmark = needs_program
CASE = "merged"  # small: two updates


def same_numbers(*arguments):
    command = [sys.executable, ROOT / "scripts" / "same_numbers.py", *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


@pytest.mark.parametrize("kind", ["optimizers", "models", "landscapes", "hooks"])
def test_every_registered_name_is_in_a_case(kind):
    """Probes and presets need no mention: a case runs all there are. Data sets are files, or another's words for them."""
    said = output("inspect", "--list", kind, "--json")
    cases = (ROOT / "scripts/number_cases.py").read_text()
    for entry in json.loads(said)["entries"]:
        words = entry["traits"]["on"] if kind == "hooks" else [entry["name"]]  # what switches it on
        assert any(re.search(rf"\b{word.partition('=')[0]}\b", cases) for word in words), entry["name"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The program against itself: the folder with before/ and after/."""
    folder = tmp_path_factory.mktemp("results")
    done = same_numbers(BASIN, BASIN, "--only", CASE, "--keep", folder)
    assert done.returncode == 0 and ", 0 differences\n" in done.stdout, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout)
    return folder


def test_a_program_agrees_with_itself(results):
    """The fixture has seen it; but of how much?"""
    files, datasets, numbers = (int(word) for word in re.findall(r"\d+", results.joinpath("said").read_text())[:3])
    assert files >= 10 and datasets >= 100 and numbers >= 1000


def flip_lowest_bit(data, index):
    """By its bits, so that a NaN stays one."""
    values = data[()]
    values.reshape(-1).view(np.uint8)[index * values.itemsize] ^= 1
    data[...] = values


def in_file(name, edit):
    def plant(run):
        with h5py.File(next(run.glob(name)), "r+") as file:
            edit(file)

    return plant


def in_text(name, old, new):
    def plant(run):
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new))

    return plant


def with_next_number(file):
    summary = file["summary"].attrs
    summary.modify("train_loss", np.nextafter(summary["train_loss"], 9))


def with_other_type(file):
    summary = file["summary"].attrs
    summary["test_loss"] = np.float32(summary["test_loss"])


def with_other_shape(file):
    values = file["train/update_norm"][()]
    del file["train/update_norm"]
    file["train/update_norm"] = values.reshape(-1, 1)


PLANTED = {  # what is planted, and how a line of it begins behind the run's folder
    "a bit of a number": (in_file("run.h5", lambda f: flip_lowest_bit(f["train/loss"], 1)), "run.h5:/train/loss[1]: "),
    "a bit of a weight": (
        in_file("ckpt/end.h5", lambda f: flip_lowest_bit(f["model/conv1.weight"], 5)),
        "ckpt/end.h5:/model/conv1.weight[0, 0, 1, 2]: ",
    ),
    "a bit of a NaN": (
        in_file("run.h5", lambda f: flip_lowest_bit(f["eval/validation_loss"], 0)),
        "run.h5:/eval/validation_loss[0]: nan (0x7ff8000000000000) -> nan (0x7ff8000000000001)",
    ),
    "a number of a probe": (
        in_file("probes/end.weight_norms.h5", lambda f: flip_lowest_bit(f["quantities/path_norm/value"], 0)),
        "probes/end.weight_norms.h5:/quantities/path_norm/value[0]: ",
    ),
    "a dataset less": (
        in_file("run.h5", lambda f: f.__delitem__("outcomes/test/margin")),
        "run.h5:/outcomes/test/margin: there -> (not there)",
    ),
    "a dataset more": (in_file("run.h5", lambda f: f.create_dataset("more", data=1.0)), "run.h5:/more: (not there) -> there"),
    "another order": (in_file("run.h5", with_other_shape), "run.h5:/train (order): update_norm -> weight_norm"),
    "another shape": (lambda run: None, "run.h5:/train/update_norm: shape (2,) -> shape (2, 1)"),  # of the line above
    "an attribute": (in_file("run.h5", with_next_number), "run.h5:/summary@train_loss: "),
    "an attribute's type": (in_file("run.h5", with_other_type), "run.h5:/summary@test_loss: type float64 -> type float32"),
    "a text": (
        in_file("run.h5", lambda f: f["train/loss"].attrs.modify("definition", "other")),
        "run.h5:/train/loss@definition: ",
    ),
    "a scale": (
        in_file("run.h5", lambda f: f["train/examples"].dims[0].detach_scale(f["train/update"])),
        "run.h5:/train/examples@DIMENSION_LIST: there",
    ),
    "a run_id in JSON": (lambda run: in_text("status.json", run.name, "0123456789ab")(run), "status.json:run_id: "),
    "a line of TOML": (in_text("config.toml", "batch_size = 600", "batch_size = 601"), "config.toml:"),
    "a file less": (lambda run: (run / "ckpt" / "start.h5").unlink(), "ckpt/start.h5: there -> (not there)"),
    "a folder more": (lambda run: shutil.copytree(run / "ckpt", run / "more"), "more: (not there) -> there"),
    "no time": (
        in_file("run.h5", lambda f: f["provenance"].attrs.__delitem__("started_utc")),
        "run.h5:/provenance@started_utc: there -> (not there)",
    ),
    "no journal": (lambda run: (run / "journal").unlink(), "journal: there -> (not there)"),
}
MEANT = {  # the same of what may differ
    "times": (in_file("run.h5", lambda f: flip_lowest_bit(f["train/seconds"], 1)), "run.h5:/train/seconds"),
    "a log": (lambda run: (run / "run.log").write_text("other"), "run.log"),
}


def run_of(tree):
    (run,) = (tree / CASE / "out" / "runs").iterdir()
    return run


@pytest.fixture(scope="module")
def lines(results, tmp_path_factory):
    """What the comparison says with all of that planted."""
    tree = tmp_path_factory.mktemp("planted") / "after"
    shutil.copytree(results / "after", tree)
    run = run_of(tree)
    for plant, _ in (PLANTED | MEANT).values():
        plant(run)
    changes = compare_trees(results / "before", tree, MAY_DIFFER).changes
    return [line.removeprefix(f"{run.relative_to(tree)}/") for change in changes for line in change.lines]


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(lines, what):
    assert [line for line in lines if line.startswith(PLANTED[what][1])], lines


@pytest.mark.parametrize("what", MEANT)
def test_what_may_differ_is_not(lines, what):
    assert not [line for line in lines if line.startswith(MEANT[what][1])]


def test_another_run_id_is_found_once(results, tmp_path):
    shutil.copytree(results / "after" / CASE, tmp_path / CASE)
    run = run_of(tmp_path)
    run.rename(run.parent / "0123456789ab")
    changes = compare_trees(results / "before" / CASE, tmp_path / CASE, MAY_DIFFER).changes
    names = sorted(["0123456789ab", run.name])
    assert [change.address for change in changes] == [f"out/runs/{name}" for name in names] and all(
        change.count > 10 for change in changes
    )


def script(path, text):
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


ANOTHER = f"""
import pathlib, subprocess, sys, h5py
code = subprocess.run([{BASIN!r}, *sys.argv[1:]]).returncode
if sys.argv[1] == "train":
    with h5py.File(next(pathlib.Path("out").glob("runs/*/run.h5")), "r+") as file:
        file["train/loss"][...] *= 1 + 2**-52
        file["eval/test_loss"][-1] *= 1 + 2**-52
sys.exit(code)
"""


def test_another_program_is_told_from_it_but_for_what_is_allowed(tmp_path):
    other = script(tmp_path / "other", ANOTHER)
    done = same_numbers(BASIN, other, "--only", CASE, "--allow", f"{CASE}/*:/train/loss")
    assert done.returncode == 1 and ", 1 differences (2 more allowed)\n" in done.stdout, done.stdout
    assert f"\n{CASE}/out/runs/" in "\n" + done.stdout and "run.h5:/eval/test_loss[0]: " in done.stdout
    assert f"allowed by {CASE}/*:/train/loss: {CASE}/out/runs/" in done.stdout


def test_all_of_it_allowed_is_agreement(capsys):
    tally = Tally([Change("sam/run.h5:/train/loss", 5, ["first", "second", "third"])], files=1, datasets=1, numbers=9)
    assert report(tally, [], ["dropout/*"]) == 1 and report(tally, [], ["dropout/*", "sam/*"]) == 0
    assert "allowed by sam/*: sam/run.h5:/train/loss: and 2 more\n" in capsys.readouterr().out


def test_programs_that_fail_do_not_agree():
    done = same_numbers("/bin/false", "/bin/false", "--only", CASE)
    assert done.returncode == 1 and f"{CASE} (after): basin train tiny.toml" in done.stdout and ", 2 differences\n" in done.stdout
    assert same_numbers("/bin/true", "/bin/true", "--only", CASE).returncode == 1
    assert "no case nonsense" in same_numbers(BASIN, BASIN, "--only", "nonsense").stderr


def test_of_long_texts_the_part_that_differs_is_told():
    before, after = in_words("a" * 200 + "b" * 200, "a" * 200 + "c" * 200).split(" -> ")
    assert before.startswith("...aaa") and "ab" in before and "ac" in after and len(before) < 80
    assert in_words("type object", "type object") == "type object -> type object"


def test_nothing_compared_is_no_agreement(capsys):
    assert report(Tally(), [], []) == 1 and "0 numbers compared, 0 differences" in capsys.readouterr().out


@pytest.mark.parametrize("name", TRAININGS)
def test_the_program_takes_the_settings_of_every_training(name):
    command = [BASIN, "train", ROOT / "configs" / "tiny.toml", "--print-config", *sets(TRAININGS[name])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "tests/python/networks")  # script_net.pt
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_all_cases_repeat_and_each_exception_is_needed(tmp_path):
    done = same_numbers(BASIN, BASIN, "--keep", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    tally = compare_trees(tmp_path / "before", tmp_path / "after", MAY_DIFFER)
    assert tally.excused == set(MAY_DIFFER)
