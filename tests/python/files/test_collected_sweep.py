"""The program's sweep.h5 and the Python reader's view of its run folders say the same, column by column."""

import pathlib
import shutil

import h5py
import numpy as np
import pytest

import basin
from basin_program import needs_program, program

pytestmark = needs_program
ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "tiny"
    done = program("sweep", ROOT / "configs" / "tiny.toml", "--out", out, "--set", "batch_size=128")
    assert done.returncode == 0, done.stderr
    return out


def same(a, b):
    return a == b or (isinstance(a, float) and isinstance(b, float) and np.isnan(a) and np.isnan(b))


def test_both_views_agree(folder):
    file = basin.load_sweep(folder, "file").set_index("run_id")
    runs = basin.load_sweep(folder, "runs").set_index("run_id")
    assert set(file.columns) == set(runs.columns) and set(file.index) == set(runs.index) and len(file) == 4
    for column in file:
        for run_id in file.index:
            assert same(file.loc[run_id, column], runs.loc[run_id, column]), (column, run_id)


def test_names_in_the_file_are_those_that_the_program_lists(folder):
    """sweep.h5 has them in /names; run folders have none, so that the program is asked."""
    file, runs = basin.open_sweep(folder, "file").names, basin.open_sweep(folder, "runs").names
    assert (file.members, file.ratios, file.copies) == (runs.members, runs.ratios, runs.copies)
    assert file.measures.to_dict("records") == runs.measures.to_dict("records") and len(file.measures) > 3
    assert file.label("optimizers", "sgd") == "SGD" and file.ratio("b_simple") == ("tr_sigma", "g2") and file.is_copy("coherence")
    shown = file.measures.set_index(["probe", "quantity"]).loc[("top_eigenvalues", "lambda")]
    assert shown.column == "lambda_1" and "(" in shown.label and not shown.companion


def test_tables_beside_the_runs_agree(folder):
    file, runs = basin.open_sweep(folder, "file"), basin.open_sweep(folder, "runs")
    keys = ["run_id", "checkpoint", "probe", "quantity", "index"]
    one, two = (view.probes.sort_values(keys).to_dict("records") for view in (file, runs))
    assert len(one) == len(two) > 0
    for a, b in zip(one, two):
        assert a.keys() == b.keys() and all(same(a[k], b[k]) for k in a), a
    for row in file.runs.itertuples():
        np.testing.assert_array_equal(file.correct([row.run_id]), runs.correct([row.run_id]))
        assert file.correct([row.run_id]).mean() == pytest.approx(row.test_acc)
        np.testing.assert_array_equal(file.curve(row.run_id).loss, runs.curve(row.run_id).loss)
        one, two = file.layers(row.run_id), runs.layers(row.run_id)
        assert one.has_trust_ratios == two.has_trust_ratios == (row.optimizer == "lamb")
        assert (one.kinds, one.every, one.trust_ratio_definition) == (two.kinds, two.every, two.trust_ratio_definition)
        for column in ("weight_norm", "gradient_norm", "update_norm", "trust_ratio"):
            thinned, whole = getattr(one, column), getattr(two, column)
            assert len(thinned) <= 50 and {1, row.updates} <= set(thinned.index) <= set(whole.index)
            # float32 in sweep.h5: 24 bits
            np.testing.assert_allclose(thinned, whole.loc[thinned.index], rtol=2**-24)


def test_the_long_table_names_entries_and_what_a_probe_was_asked_for(folder, tmp_path):
    out = tmp_path / "tiny"
    shutil.copytree(folder, out)
    run = next(path for path in (out / "runs").iterdir() if list(path.glob("probes/end.top_eigenvalues.h5")))
    other = program(
        "probe", run, "--only", "top_eigenvalues", "--set", "top_eigenvalues.count=3", "--set", "top_eigenvalues.tolerance=1e-2"
    )
    assert other.returncode == 0 and program("collect", out).returncode == 0, other.stderr
    for source in ("file", "runs"):
        probes = basin.open_sweep(out, source).probes
        lambdas = probes[(probes.run_id == run.name) & (probes.checkpoint == "end") & (probes.quantity == "lambda")]
        asked = lambdas[~lambdas.study].sort_values("index")
        assert list(asked.entry) == ["lambda_1", "lambda_2", "lambda_3"] and set(asked.options) == {
            "count = 3, tolerance = 0.01"
        }, source
        assert lambdas.study.any() and all(text == "count = 2, tolerance = 0.001" for text in lambdas[lambdas.study].options)
        assert set(probes[probes.probe == "noise_scale"].options) == {""}


def test_both_views_leave_out_a_run_of_something_else(folder, tmp_path):
    out = tmp_path / "tiny"
    shutil.copytree(folder, out)
    done = program("train", ROOT / "configs" / "tiny.toml", "--set", "batch_size=64", "--set", "epochs=2", "--out", out)
    assert done.returncode == 0, done.stderr
    with pytest.warns(UserWarning, match="1 run of another study, left out"):
        runs = basin.load_sweep(out, "runs")
    assert program("collect", out).returncode == 0
    assert set(runs.run_id) == set(basin.load_sweep(out, "file").run_id) and len(runs) == 4 < len(list((out / "runs").iterdir()))


def test_collect_without_the_file_writes_it_again(folder):
    before = (folder / "table.md").read_text()
    for name in ("sweep.h5", "table.md"):
        (folder / name).unlink()
    done = program("collect", folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "table.md").read_text() == before and len(basin.load_sweep(folder, "file")) == 4


@pytest.fixture
def newer(folder, tmp_path):
    """A copy of the sweep in which every HDF5 file of one run, and sweep.h5, is of the next major version."""
    out = tmp_path / "newer"
    shutil.copytree(folder, out)
    run = sorted((out / "runs").iterdir())[0]
    for path in [*run.rglob("*.h5"), out / "sweep.h5"]:
        with h5py.File(path, "r+") as file:
            file.attrs["schema_version"] = "2.0.0"
        path.write_bytes(path.read_bytes()[512:])  # without its seal, which is no longer right
    return out, run


def refused(done, path):
    assert done.returncode == 4 and done.stderr.count("\n") == 1
    assert str(path) in done.stderr and "schema version 2.0.0" in done.stderr


def test_inspect_refuses_files_of_a_newer_schema(newer):
    out, run = newer
    paths = [run / "run.h5", run / "ckpt" / "end.h5", next((run / "probes").glob("*.h5")), out / "sweep.h5"]
    for path in paths:
        refused(program("inspect", path), path)


def test_probe_refuses_a_checkpoint_of_a_newer_schema(newer):
    done = program("probe", newer[1], "--only", "noise_scale", "--subset", "20")
    assert done.returncode == 4 and ".h5" in done.stderr and "schema version 2.0.0" in done.stderr


def test_collect_says_which_run_is_of_a_newer_schema(newer):
    out, run = newer
    done = program("collect", out)
    assert done.returncode == 0 and str(run / "run.h5") in done.stderr and "schema version 2.0.0" in done.stderr
    row = basin.load_sweep(out, "file").set_index("run_id").loc[run.name]
    assert row.status == "failed" and "schema version 2.0.0" in row.status_message
    assert row.config_id and row.batch_size == 128


def test_collect_refuses_a_folder_without_runs(tmp_path):
    done = program("collect", tmp_path)
    assert done.returncode == 4 and "no folder runs/" in done.stderr and done.stderr.count("\n") == 1
