"""Branches from outside: a sweep trains parents first, a killed branch ends at the same bits, and a path serves as a parent."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from basin_program import BASIN, needs_program, output, program, write

pytestmark = needs_program

# Momentum, augmentation, dropout and batch statistics: all that a branch continues.
STUDY = """
model = "keskar_c1"
protocol = "A-updates"
updates = 60
batch_size = 24
ghost_batch = 12
micro_batch = 12
checkpoint_every = 20
checkpoint_seconds = 0.02
loss_levels = [1e-9]
learning_rate = 0.01
keskar_c1.width = 4
keskar_c1.hidden = [8, 6]
keskar_c1.norm = "batch"
keskar_c1.dropout = 0.5
data.set = "synthetic"
data.train_examples = 60
data.test_examples = 20
data.augmentation = "crop_flip"
runtime.progress = false

[sweep]
seed = [1, 2]
"""
BRANCH = STUDY + 'branch.from = ["", "batch_size = 24"]\n[branch]\nat = "u000020"\n'


def attribute(file, name, group="/summary"):
    return file[group].attrs[name]


def runs_of(out):
    """Run folders by (seed, whether a branch)."""
    found = {}
    for folder in sorted((out / "runs").iterdir()):
        with h5py.File(folder / "run.h5") as file:
            found[int(file["config"].attrs["seed"]), bool(file["config"].attrs["branch.from"])] = folder
    return found


def end_of(folder):
    with h5py.File(folder / "ckpt" / "end.h5") as file:
        tensors = {}
        for group in ("model", "buffers", "optimizer"):
            file[group].visititems(
                lambda name, item: tensors.update({(item.name): item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        return tensors


def rows_of(folder):
    with h5py.File(folder / "run.h5") as file:
        return {name: file["train"][name][()] for name in file["train"] if name != "seconds"}


def expect_same(one, two):
    first, second = end_of(one), end_of(two)
    assert first.keys() == second.keys() and len(first) > 10
    for name, value in first.items():
        assert np.array_equal(value, second[name], equal_nan=True), name


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("branches")
    study = write(folder / "branch.toml", BRANCH)
    output("sweep", study, "--out", folder / "out", "--jobs", 2)
    return folder


def test_a_sweep_trains_parents_first_and_nothing_changed_changes_nothing(sweep):
    runs = runs_of(sweep / "out")
    assert len(runs) == 4
    for seed in (1, 2):
        parent, child = runs[seed, False], runs[seed, True]
        expect_same(parent, child)
        ours, theirs = rows_of(child), rows_of(parent)
        assert list(ours["update"]) == list(range(21, 61))
        for name, values in ours.items():
            assert np.array_equal(values, theirs[name][20:], equal_nan=True), name
        with h5py.File(child / "run.h5") as file:
            assert attribute(file, "branch_update") == 20 and attribute(file, "branch_examples") == 480
            assert np.isclose(attribute(file, "branch_train_loss"), file["eval"]["train_loss"][0])
            sha = hashlib.sha256((parent / "ckpt" / "u000020.h5").read_bytes()).hexdigest()
            assert attribute(file, "branch_parent_sha256", "/provenance") == sha
            assert attribute(file, "branch_parent", "/provenance") == f"{parent.name}/u000020"


def test_a_killed_branch_ends_at_the_same_bits(sweep):
    study, out = sweep / "branch.toml", sweep / "killed"
    names = {folder.name for key, folder in runs_of(sweep / "out").items() if key[1]}
    kills = 0
    for _ in range(20):
        worker = subprocess.Popen(
            [BASIN, "sweep", study, "--out", out, "--jobs", "2"],
            env=dict(os.environ, OMP_NUM_THREADS="1"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while worker.poll() is None:
            if any((out / "runs" / name / "ckpt" / "latest.h5").exists() for name in names):
                break
            time.sleep(0.005)
        if worker.poll() is not None:
            break
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        kills += 1
        if kills == 3:
            break
        time.sleep(0.3)
    assert kills > 0
    time.sleep(1)
    done = program("sweep", study, "--out", out, "--jobs", 2)
    assert done.returncode == 0, done.stderr
    for key, folder in runs_of(sweep / "out").items():
        expect_same(folder, out / "runs" / folder.name)
        one, two = rows_of(folder), rows_of(out / "runs" / folder.name)
        for name, values in one.items():
            assert np.array_equal(values, two[name], equal_nan=True), (key, name)


def test_a_branch_resumes_without_its_parent(sweep, tmp_path):
    parent = runs_of(sweep / "out")[1, False] / "ckpt" / "u000020.h5"
    copy = tmp_path / "parent.h5"
    shutil.copyfile(parent, copy)
    study = write(tmp_path / "study.toml", STUDY.replace("updates = 60", "updates = 200"))
    arguments = ["train", study, "--set", f"branch.from={copy}", "--set", "branch.at=u000020"]
    undisturbed = program(*arguments, "--out", tmp_path / "a")
    assert undisturbed.returncode == 0, undisturbed.stderr
    worker = subprocess.Popen(
        [BASIN, *map(str, arguments), "--out", tmp_path / "b"],
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        stdout=subprocess.DEVNULL,
    )
    while worker.poll() is None and not list((tmp_path / "b").glob("runs/*/ckpt/latest.h5")):
        time.sleep(0.005)
    assert worker.poll() is None, "the run ended before it could be killed"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    copy.unlink()
    (folder,) = (tmp_path / "b" / "runs").iterdir()
    resumed = program("train", folder / "config.toml", "--out", tmp_path / "b")
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed from update" in (folder / "run.log").read_text()
    expect_same(tmp_path / "a" / "runs" / folder.name, folder)


def test_faults_of_a_parent_are_one_line(sweep, tmp_path):
    study = write(tmp_path / "study.toml", STUDY)
    parent = runs_of(sweep / "out")[1, False] / "ckpt" / "u000020.h5"

    def fault(path, at="u000020", code=4):
        done = program("train", study, "--set", f"branch.from={path}", "--set", f"branch.at={at}", "--out", tmp_path / "out")
        assert done.returncode == code and done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    assert "none.h5: missing" in fault(tmp_path / "none.h5")
    half = tmp_path / "half.h5"
    half.write_bytes(parent.read_bytes()[:5000])
    assert "half.h5" in fault(half)
    assert "notes.txt" in fault(write(tmp_path / "notes.txt", "not a checkpoint\n"))
    assert 'is the checkpoint "u000020"' in fault(parent, "end", 2)


def test_a_level_that_the_parent_never_reached_costs_its_branch_a_line(tmp_path):
    study = write(tmp_path / "study.toml", BRANCH.replace('at = "u000020"', 'at = "loss-1e-09"').replace("[1, 2]", "[1]"))
    done = program("sweep", study, "--out", tmp_path / "out", "--jobs", 2)
    assert done.returncode != 0
    assert "kept no checkpoint" in done.stdout + done.stderr
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2


def test_the_forecast_counts_from_the_branch_point_on(sweep):
    done = program("sweep", sweep / "branch.toml", "--out", sweep / "dry", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    updates = sorted(run["updates"] for run in json.loads(done.stdout)["runs"])
    assert updates == [40, 40, 60, 60]
    annealed = program("sweep", sweep / "branch.toml", "--out", sweep / "dry", "--dry-run", "--json", "--set", "branch.anneal=1")
    # 3 / (1 - 0.9) = 30 are more than the 20 updates so far.
    assert sorted(run["updates"] for run in json.loads(annealed.stdout)["runs"]) == [30, 30, 60, 60], annealed.stderr
