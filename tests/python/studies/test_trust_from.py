"""trust_from by a cell of the study, from outside: the named run is trained first, and its means are what the arm steps with."""

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

STUDY = """
model = "mlp"
optimizer = "lamb"
protocol = "A-updates"
updates = 40
batch_size = 24
checkpoint_seconds = 0.02
layers_every = 7
learning_rate = 0.01
mlp.hidden = [8]
data.set = "synthetic"
data.train_examples = 60
data.test_examples = 20
runtime.progress = false
lamb.trust_from = 'lamb.trust = "live"'

[sweep]
seed = [1, 2]
lamb.trust = ["frozen", "live"]
"""


def runs_of(out):
    """Run folders by (seed, trust)."""
    found = {}
    for folder in sorted((out / "runs").iterdir()):
        with h5py.File(folder / "run.h5") as file:
            found[int(file["config"].attrs["seed"]), file["config"].attrs["lamb.trust"]] = folder
    return found


def end_of(folder):
    with h5py.File(folder / "ckpt" / "end.h5") as file:
        tensors = {}
        file["model"].visititems(lambda name, item: tensors.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
        return tensors


def ratios_of(folder):
    with h5py.File(folder / "run.h5") as file:
        return file["layers"]["trust_ratio"][()]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trust")
    study = write(folder / "trust.toml", STUDY)
    output("sweep", study, "--out", folder / "out", "--jobs", 2)
    return folder


def test_the_arm_steps_with_the_means_of_the_run_of_its_seed(sweep):
    runs = runs_of(sweep / "out")
    assert len(runs) == 4
    for seed in (1, 2):
        live, frozen = ratios_of(runs[seed, "live"]), ratios_of(runs[seed, "frozen"])
        # Means over the rows, written as text that reads back; biases have none.
        assert np.allclose(frozen, np.tile(live.mean(axis=0), (len(frozen), 1)), rtol=1e-14, equal_nan=True)
        assert np.isfinite(live).any() and np.ptp(live[:, np.isfinite(live[0])], axis=0).min() > 0
        with h5py.File(runs[seed, "frozen"] / "run.h5") as file:
            assert file["config"].attrs["lamb.trust_from"] == runs[seed, "live"].name
    first, second = (h5py.File(runs[seed, "frozen"] / "run.h5") for seed in (1, 2))
    assert first.attrs["config_id"] == second.attrs["config_id"] and first.attrs["run_id"] != second.attrs["run_id"]


def test_a_killed_run_ends_at_the_same_bits_without_the_named_one(sweep, tmp_path):
    runs, out = runs_of(sweep / "out"), tmp_path / "out"
    live, frozen = runs[1, "live"], runs[1, "frozen"]
    config = write(tmp_path / "config.toml", (frozen / "config.toml").read_text())
    (out / "runs").mkdir(parents=True)
    # As the sweep queued it: without the ratios, which it finds in the other run's record.
    bare = "\n".join(line for line in config.read_text().splitlines() if not line.startswith("trust_ratios"))
    write(config, bare + "\n")
    missing = program("train", config, "--out", out)
    assert missing.returncode == 4 and missing.stderr.count("\n") == 1, missing.stderr
    assert "which is to be trained first" in missing.stderr
    shutil.copytree(live, out / "runs" / live.name)
    worker = subprocess.Popen(
        [BASIN, "train", str(config), "--out", str(out), "--set", "checkpoint_seconds=0"],
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        stdout=subprocess.DEVNULL,
    )
    while worker.poll() is None and not (out / "runs" / frozen.name / "ckpt" / "latest.h5").exists():
        time.sleep(0.002)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    shutil.rmtree(out / "runs" / live.name)
    done = program("train", config, "--out", out)
    assert done.returncode == 0, done.stderr
    one, two = end_of(frozen), end_of(out / "runs" / frozen.name)
    assert one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)
    assert np.array_equal(ratios_of(frozen), ratios_of(out / "runs" / frozen.name), equal_nan=True)


def test_the_dry_run_lists_it_without_the_record(sweep):
    done = program("sweep", sweep / "trust.toml", "--out", sweep / "dry", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "frozen" in done.stdout and not (sweep / "dry").exists()
    # Noise looks at all batches of a run beforehand, and the micro-benchmark stops after a few of its own; seconds, on any machine.
    start = time.monotonic()
    noisy = program("sweep", sweep / "trust.toml", "--out", sweep / "dry", "--dry-run", "--set", "noise.batch=6")
    assert noisy.returncode == 0 and time.monotonic() - start < 60, noisy.stderr


def test_a_named_run_that_diverged_costs_the_arm_a_line(tmp_path):
    text = STUDY.replace("seed = [1, 2]", "seed = [1]") + (
        "[[sweep.set]]\nwhen = { lamb.trust = 'live' }\nset = { learning_rate = 1e9, divergence_loss = 10.0 }\n"
    )
    done = program("sweep", write(tmp_path / "trust.toml", text), "--out", tmp_path / "out", "--jobs", 2)
    assert done.returncode != 0
    assert "its run diverged" in done.stdout + done.stderr
