"""Outcomes of test images at the end and at loss levels, from sweep.h5 and from the run folders; files from before there were any."""

import h5py
import numpy as np
import pytest

import basin

IMAGES = 64


@pytest.fixture
def with_levels(sweep_folder):
    """Adds what schema 1.3 has to every run and to sweep.h5; the last run never passed the level."""
    runs = list(basin.load_sweep(sweep_folder, "file").run_id)
    rng = np.random.default_rng(0)
    known = {}
    for k, run_id in enumerate(runs):
        known[run_id] = {
            split: (rng.random(IMAGES) < 0.5, rng.random(IMAGES).astype(np.float32), rng.integers(0, 10, IMAGES).astype(np.uint8))
            for split in ("test", "test@loss-2", "test@loss-1.5")
        }
        if k == len(runs) - 1:
            del known[run_id]["test@loss-1.5"]
        with h5py.File(sweep_folder / "runs" / run_id / "run.h5", "a") as file:
            for split, (correct, loss, predicted) in known[run_id].items():
                if split == "test":
                    del file["outcomes/test"]
                group = file.create_group(f"outcomes/{split}")
                group.attrs["n"] = IMAGES
                group["correct"], group["loss"], group["predicted"] = np.packbits(correct), loss, predicted
    with h5py.File(sweep_folder / "sweep.h5", "a") as file:
        del file["outcomes"]
        for split in ("test", "test@loss-2", "test@loss-1.5"):
            group, missing = file.create_group(f"outcomes/{split}"), (np.full(IMAGES, v) for v in (255, np.nan, 255))
            nothing = tuple(missing)
            rows = [known[run_id].get(split, nothing) for run_id in runs]
            group["correct"] = np.array([row[0] for row in rows]).astype(np.uint8)
            group["loss"] = np.array([row[1] for row in rows], np.float32)
            group["predicted"] = np.array([row[2] for row in rows]).astype(np.uint8)
    return sweep_folder, runs, known


@pytest.mark.parametrize("source", ["file", "runs"])
def test_outcomes_are_those_of_each_run_at_each_place(with_levels, source):
    folder, runs, known = with_levels
    sweep = basin.open_sweep(folder, source, verify=False)
    assert sweep.outcomes_at() == ["end", "loss-2", "loss-1.5"]
    two = [runs[1], runs[0]]
    for at, split in (("end", "test"), ("loss-1.5", "test@loss-1.5")):
        for k, read in enumerate((sweep.correct, sweep.losses, sweep.predicted)):
            np.testing.assert_array_equal(read(two, at=at), np.array([known[r][split][k] for r in two], float))


@pytest.mark.parametrize("source", ["file", "runs"])
def test_a_run_that_was_never_there_has_none(with_levels, source):
    folder, runs, _ = with_levels
    sweep = basin.open_sweep(folder, source, verify=False)
    for read in (sweep.correct, sweep.losses, sweep.predicted):
        assert read([runs[0], runs[-1]], at="loss-1.5") is None
        assert read([runs[0], runs[-1]], at="loss-2") is not None
        assert read(runs[:1], at="loss-9") is None


@pytest.mark.parametrize("source", ["file", "runs"])
def test_files_from_before_have_right_and_wrong_at_the_end_alone(sweep_folder, source):
    sweep = basin.open_sweep(sweep_folder, source)
    runs = list(sweep.runs.run_id[:2])
    assert sweep.outcomes_at() == ["end"]
    assert sweep.correct(runs).shape == (2, IMAGES)
    assert sweep.predicted(runs) is None and sweep.correct(runs, at="loss-1.5") is None
