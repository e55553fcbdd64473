import json
import os
import shutil
import time

import h5py
import numpy as np
import pandas as pd
import pytest

import basin
from synthetic_sweep import LAYERS, OPTIONS, Plan, make_sweep, write_checkpoint

SMALL = Plan(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), seeds=(1, 2), images=64, updates=6)


def one_run(folder, optimizer="lamb", protocol="B"):
    runs = basin.load_sweep(folder)
    return runs[(runs.optimizer == optimizer) & (runs.protocol == protocol)].iloc[0]


@pytest.mark.parametrize("source", ["file", "runs"])
def test_load_sweep_gives_the_numbers_that_were_written(tmp_path, source):
    truth = make_sweep(tmp_path / "s", SMALL, write_runs=True)
    runs = basin.load_sweep(tmp_path / "s", source).set_index("run_id")
    assert len(runs) == len(truth) == 16
    for row in truth:
        got = runs.loc[row["run_id"]]
        for column, value in row.items():
            if column != "run_id":
                assert got[column] == value or (np.isnan(got[column]) and np.isnan(value)), column


def test_both_sources_agree(sweep_folder):
    one = basin.load_sweep(sweep_folder, "file").sort_values("run_id").reset_index(drop=True)
    two = basin.load_sweep(sweep_folder, "runs").sort_values("run_id").reset_index(drop=True)
    pd.testing.assert_frame_equal(one, two[one.columns], check_dtype=False)
    a, b = basin.open_sweep(sweep_folder, "file"), basin.open_sweep(sweep_folder, "runs")
    keys = ["run_id", "checkpoint", "probe", "quantity", "index"]
    pd.testing.assert_frame_equal(
        a.probes.sort_values(keys).reset_index(drop=True)[b.probes.columns],
        b.probes.sort_values(keys).reset_index(drop=True), check_dtype=False)  # fmt: skip
    assert set(a.options) == set(b.options) == {*OPTIONS, "dataset.name"}
    run_id = one_run(sweep_folder).run_id
    np.testing.assert_array_equal(a.correct([run_id]), b.correct([run_id]))
    np.testing.assert_array_equal(a.curve(run_id).loss, b.curve(run_id).loss)
    one, two = a.layers(run_id), b.layers(run_id)
    for column in ("weight_norm", "gradient_norm", "update_norm", "trust_ratio"):
        pd.testing.assert_frame_equal(getattr(one, column), getattr(two, column), check_index_type=False)
    assert (one.kinds, one.every, one.trust_ratio_definition) == (two.kinds, two.every, two.trust_ratio_definition)


def test_what_a_file_defines_otherwise_is_no_option(tmp_path):
    make_sweep(tmp_path / "s", SMALL)
    with h5py.File(tmp_path / "s/sweep.h5", "a") as file:
        for name, definition in (
            ("of_a_hook", "hooks-number"),
            ("learning_rate", "undeclared"),
            ("without_trust_ratio", "option"),
        ):
            if name not in file["runs"]:
                file["runs"][name] = np.arange(16.0)
            file["runs"][name].attrs["definition"] = definition
    options = basin.open_sweep(tmp_path / "s", "file").options
    assert set(options) == {*OPTIONS, "dataset.name"} - {"learning_rate"}


def test_unfinished_sweep_is_read_from_the_runs(tmp_path):
    endings = {("A-epochs", "sgd", 1024): "queued", ("B", "sgd", 1024): "running"}
    make_sweep(tmp_path / "s", Plan(**(vars(SMALL) | {"endings": endings})), write_runs=True, write_file=False)
    runs = basin.load_sweep(tmp_path / "s")
    assert runs.status.value_counts().to_dict() == {"finished": 12, "queued": 2, "running": 2}
    queued = runs[runs.status == "queued"].iloc[0]
    assert queued.batch_size == 1024 and np.isnan(queued.test_acc)
    assert basin.open_sweep(tmp_path / "s").correct([queued.run_id]) is None


def test_a_run_newer_than_the_file_wins(sweep_folder):
    status = sweep_folder / "runs" / one_run(sweep_folder).run_id / "status.json"
    status.write_text(json.dumps({"status": "running", "message": ""}))
    later = time.time() + 60
    os.utime(status, (later, later))
    assert (basin.load_sweep(sweep_folder).status == "running").sum() == 1
    assert (basin.load_sweep(sweep_folder, "file").status == "running").sum() == 0


def test_a_probe_after_collecting_is_seen(sweep_folder):
    """basin probe on an old checkpoint writes a probe file alone: sweep.h5 is stale then, whatever status.json says."""
    run_id = one_run(sweep_folder).run_id
    path = sweep_folder / "runs" / run_id / "probes" / "end.top_eigenvalues.h5"
    before = basin.load_sweep(sweep_folder).set_index("run_id").loc[run_id, "probe.end.top_eigenvalues.lambda_1"]
    with h5py.File(path, "r+") as f:
        f["quantities/lambda/value"][0] = 2 * before
    os.utime(path, (time.time() + 60,) * 2)
    assert basin.load_sweep(sweep_folder).set_index("run_id").loc[run_id, "probe.end.top_eigenvalues.lambda_1"] == 2 * before


@pytest.mark.parametrize("name", ["status.json", "run.h5", "probes/end.noise_scale.h5"])
def test_each_source_makes_the_file_stale(sweep_folder, name):
    assert type(basin.open_sweep(sweep_folder)).__name__ == "FileSweep"
    os.utime(sweep_folder / "runs" / one_run(sweep_folder).run_id / name, (time.time() + 60,) * 2)
    assert type(basin.open_sweep(sweep_folder)).__name__ == "FolderSweep"


def test_a_damaged_probe_file_takes_no_run_away(sweep_folder):
    run_id = one_run(sweep_folder).run_id
    path = sweep_folder / "runs" / run_id / "probes" / "end.noise_scale.h5"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="end.noise_scale.h5: truncated.*; left out"):
        row = basin.load_sweep(sweep_folder, "runs").set_index("run_id").loc[run_id]
    assert row.status == "finished" and row.status_message == "" and np.isfinite(row.test_acc)
    assert np.isfinite(row["probe.end.top_eigenvalues.lambda_1"]) and np.isnan(row["probe.end.noise_scale.b_simple"])


def test_one_eigenvalue_is_still_lambda_1(tmp_path):
    make_sweep(tmp_path / "s", Plan(**(vars(SMALL) | {"eigenvalues": 1})), write_runs=True)
    for source in ("file", "runs"):
        runs = basin.load_sweep(tmp_path / "s", source)
        assert "probe.end.top_eigenvalues.lambda_1" in runs and "probe.end.top_eigenvalues.lambda" not in runs
    row = one_run(tmp_path / "s")
    probe = basin.load_run(tmp_path / "s" / "runs" / row.run_id).probe("top_eigenvalues")
    assert probe.value("lambda_1") == probe.value("lambda") == row["probe.end.top_eigenvalues.lambda_1"]


def test_the_training_loss_is_the_whole_sets(sweep_folder, tmp_path):
    row = one_run(sweep_folder)
    folder = sweep_folder / "runs" / row.run_id
    table = basin.load_run(folder).probe("noise_scale").table
    assert (table.train_loss == row.train_loss).all() and (table.subset_loss == row.train_loss + 0.01).all()
    # A file from before both were stored: what it calls train_loss is the subset's.
    with h5py.File(folder / "probes" / "end.noise_scale.h5", "r+") as f:
        del f.attrs["subset_loss"]
        f.attrs["train_loss"] = 1.25
    table = basin.load_run(folder).probe("noise_scale").table
    assert table.train_loss.isna().all() and (table.subset_loss == 1.25).all()


def test_a_run_is_shown_in_a_line(sweep_folder):
    run = basin.load_run(next(iter(sorted((sweep_folder / "runs").iterdir()))))
    shown = repr(run)
    assert "\n" not in shown and run.run_id in shown and run.status in shown and f"seed {run.config['seed']}" in shown


def test_load_run(sweep_folder):
    row = one_run(sweep_folder)
    run = basin.load_run(sweep_folder / "runs" / row.run_id)
    assert run.status == "finished" and run.config["optimizer"] == "lamb" and run.summary["test_acc"] == row.test_acc
    assert list(run.train["update"]) == [1, 2, 3, 4, 5, 6] and len(run.eval) == 1
    assert run.outcomes["test"].correct.mean() == row.test_acc
    assert list(run.layers.trust_ratio.columns) == LAYERS and list(run.layers.trust_ratio.index) == [1, 3, 6]
    assert run.layers.every == 3 and run.layers.weights == ["conv1.weight", "fc.weight"] and run.layers.has_trust_ratios
    assert run.layers.trust_ratio_definition == "of lamb" and run.layers.trust_ratio["fc.bias"].isna().all()
    assert basin.load_run(sweep_folder / "runs" / row.run_id / "run.h5").run_id == row.run_id


@pytest.mark.parametrize("source", ["file", "runs"])
def test_layers_are_the_numbers_that_were_written(sweep_folder, source):
    sweep = basin.open_sweep(sweep_folder, source)
    for optimizer in ("sgd", "lamb"):
        run_id = one_run(sweep_folder, optimizer).run_id
        layers = sweep.layers(run_id)
        assert layers.has_trust_ratios == (optimizer == "lamb")
        with h5py.File(sweep_folder / "runs" / run_id / "run.h5") as file:
            for column in ("weight_norm", "gradient_norm", "update_norm", "trust_ratio"):
                np.testing.assert_array_equal(getattr(layers, column), file["layers"][column][()])


def test_a_run_without_a_record_of_layers_has_none(sweep_folder):
    """A run of before there was one, and one that has made no update yet."""
    first, second = (sweep_folder / "runs" / one_run(sweep_folder, o).run_id for o in ("sgd", "lamb"))
    with h5py.File(first / "run.h5", "r+") as file:
        del file["layers"]
    with h5py.File(second / "run.h5", "r+") as file:
        del file["layers/update"]
        file["layers/update"] = np.empty(0)
    assert basin.load_run(first).layers is None and basin.load_run(second).layers is None
    with h5py.File(sweep_folder / "sweep.h5", "r+") as file:
        del file["layers"]
    assert basin.open_sweep(sweep_folder, "file").layers(first.name) is None


def test_probe(sweep_folder):
    row = one_run(sweep_folder)
    run = basin.load_run(sweep_folder / "runs" / row.run_id)
    assert ("loss-1.5", "noise_scale", "") in run.probes()
    probe = run.probe("top_eigenvalues")
    assert (
        probe.value("lambda", 1)
        == probe.value("lambda_2")
        == row["probe.end.top_eigenvalues.lambda_2"]
        == probe.value("lambda") / 2
    )
    assert run.probe("top_eigenvalues", "loss-1.5").table.train_loss.iloc[0] == 1.49
    with pytest.raises(basin.ReadError, match='no quantity "mu"; there are: lambda'):
        probe.value("mu")
    with pytest.raises(basin.ReadError, match="no spectrum at end by the study.s settings; there are: noise_scale at end, "):
        run.probe("spectrum")


def test_probe_by_other_settings(sweep_folder):
    """As `basin probe --subset 0` leaves them: next to the study's own file at the end, and where the study measured nothing."""
    folder = sweep_folder / "runs" / one_run(sweep_folder).run_id / "probes"
    own = folder / "end.top_eigenvalues.h5"
    for name, factor in (("end.top_eigenvalues.bb94bde2.h5", 3), ("start.top_eigenvalues.0123abcd.h5", 5)):
        shutil.copy(own, folder / name)
        with h5py.File(folder / name, "r+") as f:
            f["quantities/lambda/value"][...] *= factor
            f.attrs.update(settings=name.split(".")[2], checkpoint=name.split(".")[0])
    run = basin.load_run(folder.parent)
    value = run.probe("top_eigenvalues").value("lambda_1")
    assert run.probe("top_eigenvalues", settings="bb94bde2").value("lambda_1") == pytest.approx(3 * value)
    assert run.probe("top_eigenvalues", "start", "0123abcd").value("lambda_1") == pytest.approx(5 * value)
    assert run.probe("top_eigenvalues", settings="5e77").value("lambda_1") == value  # the study's own by its fingerprint
    assert {("end", "top_eigenvalues", ""), ("end", "top_eigenvalues", "bb94bde2")} < set(run.probes())
    with pytest.raises(basin.ReadError, match='no top_eigenvalues at start by the study.s settings; there are: '
                       r'top_eigenvalues at start \(settings="0123abcd"\)$'):  # fmt: skip
        run.probe("top_eigenvalues", checkpoint="start")
    with pytest.raises(
        basin.ReadError, match=r'no top_eigenvalues at end \(settings="ffffffff"\); there are: top_eigenvalues at end'
    ):
        run.probe("top_eigenvalues", settings="ffffffff")


def test_checkpoint_gives_named_arrays(sweep_folder):
    folder = sweep_folder / "runs" / one_run(sweep_folder).run_id
    weights = {"fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "fc.bias": np.ones(2, np.float32)}
    write_checkpoint(folder / "ckpt" / "end.h5", weights)
    found = basin.load_run(folder).checkpoint("end")
    assert found.keys() == weights.keys()
    np.testing.assert_array_equal(found["fc.weight"], weights["fc.weight"])
    assert basin.load_run(folder).checkpoints() == ["end"] and basin.load_run(folder).checkpoint("end", "optimizer") == {}
    with pytest.raises(basin.ReadError, match='no checkpoint "begin"; there are: end$'):
        basin.load_run(folder).checkpoint("begin")
    with pytest.raises(
        basin.ReadError, match='no group of a checkpoint "weights"; there are: buffers, generators, model, optimizer'
    ):
        basin.load_run(folder).checkpoint("end", "weights")


@pytest.mark.parametrize("source", ["file", "runs"])
def test_a_name_that_is_not_there_is_told_with_those_that_are(sweep_folder, source):
    sweep = basin.open_sweep(sweep_folder, source)
    run_id = one_run(sweep_folder).run_id
    for ask in (lambda: sweep.curve("zzz"), lambda: sweep.layers("zzz"), lambda: sweep.correct([run_id, "zzz"])):
        with pytest.raises(basin.ReadError, match='no run "zzz"; there are: [0-9a-f]{12}, .* and 6 more$'):
            ask()
    with pytest.raises(basin.ReadError, match='no table of a run "loss"; there are: train, eval, ledger$'):
        sweep.curve(run_id, "loss")


def test_the_wrong_kind_of_folder_or_file_names_the_right_function(sweep_folder):
    run = sweep_folder / "runs" / one_run(sweep_folder).run_id
    with pytest.raises(basin.ReadError, match="sweep: a sweep's folder, not a run's: basin.load_sweep reads it"):
        basin.load_run(sweep_folder)
    with pytest.raises(basin.ReadError, match="a run's folder, not a sweep's: basin.load_run reads it"):
        basin.load_sweep(run)
    with pytest.raises(basin.SchemaError, match='a "basin/run" file, expected "basin/sweep"; basin.load_run reads it'):
        basin.load_sweep(run / "run.h5")
    with pytest.raises(basin.ReadError, match="runs: not a run's folder, no run.h5 in it"):
        basin.load_run(sweep_folder / "runs")
    (run / "run.h5").unlink()
    with pytest.raises(basin.ReadError, match="no run.h5 yet, the run is finished"):
        basin.load_run(run)
    with pytest.raises(basin.ReadError, match="a run's folder, not a sweep's"):
        basin.load_sweep(run)


def test_runs_of_something_else_are_left_out(tmp_path):
    """What `basin train --out` puts among the study's runs has no cell.toml. One that sweep.h5 has is the study's."""
    make_sweep(tmp_path / "s", SMALL, write_runs=True)
    stray, by_hand = sorted((tmp_path / "s" / "runs").iterdir())[:2]
    shutil.copytree(stray, tmp_path / "s" / "runs" / "000000000000")
    for run in ("000000000000", by_hand.name):
        (tmp_path / "s" / "runs" / run / "cell.toml").unlink()
    with pytest.warns(UserWarning, match=r"runs holds 1 run of another study, left out: 000000000000$"):
        assert len(basin.load_sweep(tmp_path / "s", "runs")) == 16
    os.utime(tmp_path / "s" / "runs" / "000000000000" / "run.h5", (time.time() + 60,) * 2)
    assert type(basin.open_sweep(tmp_path / "s")).__name__ == "FileSweep"  # not stale for a stray's sake
    (tmp_path / "s" / "study.toml").unlink()
    assert len(basin.load_sweep(tmp_path / "s", "runs")) == 17


def rewrite(path, **attributes):
    with h5py.File(path, "r+") as f:
        f.attrs.update(attributes)


def test_newer_major_version_is_refused_in_one_line(sweep_folder):
    run_id = one_run(sweep_folder).run_id
    rewrite(sweep_folder / "sweep.h5", schema_version="2.0.0")
    rewrite(sweep_folder / "runs" / run_id / "run.h5", schema_version="2.1.0")
    for read in (lambda: basin.load_sweep(sweep_folder, "file"), lambda: basin.load_sweep(sweep_folder, "runs"),
                 lambda: basin.load_run(sweep_folder / "runs" / run_id)):  # fmt: skip
        with pytest.raises(basin.SchemaError) as caught:
            read()
        assert "newer than this reader knows (1.x)" in str(caught.value) and "\n" not in str(caught.value)


def test_newer_minor_version_is_read(sweep_folder):
    rewrite(sweep_folder / "sweep.h5", schema_version="1.7.0")
    assert len(basin.load_sweep(sweep_folder, "file")) == 16


def test_foreign_files_are_refused(tmp_path, sweep_folder):
    with h5py.File(tmp_path / "run.h5", "w") as f:
        f["x"] = 1
    with pytest.raises(basin.SchemaError, match='an HDF5 file without schema_name, expected "basin/run"'):
        basin.load_run(tmp_path / "run.h5")
    with pytest.raises(basin.SchemaError, match='a "basin/sweep" file, expected "basin/run"'):
        basin.load_run(sweep_folder / "sweep.h5")
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(basin.ReadError, match="text.h5: truncated, damaged or not an HDF5 file"):
        basin.load_run(tmp_path / "text.h5")


def test_truncated_files_are_refused_and_one_does_not_hide_the_sweep(sweep_folder):
    run_id = one_run(sweep_folder).run_id
    path = sweep_folder / "runs" / run_id / "run.h5"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(basin.ReadError, match="run.h5: truncated"):
        basin.load_run(path)
    with pytest.warns(UserWarning, match="truncated"):
        runs = basin.load_sweep(sweep_folder, "runs").set_index("run_id")
    assert runs.loc[run_id].status == "failed" and "truncated" in runs.loc[run_id].status_message
    assert (runs.status == "finished").sum() == 15


def test_missing_and_empty_folders(tmp_path):
    with pytest.raises(basin.ReadError, match="no such file or folder"):
        basin.load_sweep(tmp_path / "nowhere")
    with pytest.raises(basin.ReadError, match="neither sweep.h5 nor runs/"):
        basin.load_sweep(tmp_path)
