"""Outcomes of a sweep whose runs have test sets of different sizes: sweep.h5 pads the shorter ones' rows."""

import h5py
import numpy as np
import pytest

import basin

IMAGES, FEWER = 64, 20


@pytest.fixture
def mixed(sweep_folder):
    """The first two runs have the first 20 of the others' 64 test images alone, in the runs' folders and in sweep.h5."""
    runs = list(basin.load_sweep(sweep_folder, "file").run_id)
    rng = np.random.default_rng(0)
    known = {}
    for k, run_id in enumerate(runs):
        images = FEWER if k < 2 else IMAGES
        right, losses = rng.random(images) < 0.5, rng.random(images).astype(np.float32)
        known[run_id] = (right, losses, rng.integers(0, 10, images).astype(np.uint8))
        with h5py.File(sweep_folder / "runs" / run_id / "run.h5", "a") as file:
            file["data"].attrs["n_test"] = images
            del file["outcomes/test"]
            group = file.create_group("outcomes/test")
            group.attrs["n"] = images
            group["correct"], group["loss"], group["predicted"] = np.packbits(right), losses, known[run_id][2]
    with h5py.File(sweep_folder / "sweep.h5", "a") as file:
        file["runs/dataset.n_test"][:2] = FEWER
        del file["outcomes"]
        for k, (name, missing, kind) in enumerate(
            (("correct", 255, np.uint8), ("loss", np.nan, np.float32), ("predicted", 255, np.uint8))
        ):
            whole = np.full((len(runs), IMAGES), missing, kind)
            for row, run_id in zip(whole, runs):
                row[: len(known[run_id][k])] = known[run_id][k]
            file[f"outcomes/test/{name}"] = whole
    return sweep_folder, runs, known


@pytest.mark.parametrize("source", ["file", "runs"])
def test_a_run_has_as_many_outcomes_as_test_images(mixed, source):
    folder, runs, known = mixed
    sweep = basin.open_sweep(folder, source, verify=False)
    for pair in (runs[:2], runs[2:4]):
        for k, read in enumerate((sweep.correct, sweep.losses, sweep.predicted)):
            found = read(pair)
            assert found is not None, (pair, read)
            np.testing.assert_array_equal(found, np.array([known[run][k] for run in pair], float))


@pytest.mark.parametrize("source", ["file", "runs"])
def test_runs_with_other_test_sets_have_no_common_table(mixed, source):
    folder, runs, _ = mixed
    sweep = basin.open_sweep(folder, source, verify=False)
    for read in (sweep.correct, sweep.losses, sweep.predicted):
        assert read([runs[0], runs[2]]) is None and read([]) is None


def test_a_file_that_does_not_say_how_many_is_read_whole(sweep_folder):
    with h5py.File(sweep_folder / "sweep.h5", "a") as file:
        del file["runs/dataset.n_test"]
    sweep = basin.open_sweep(sweep_folder, "file", verify=False)
    assert sweep.correct(list(sweep.runs.run_id[:2])).shape == (2, IMAGES)
