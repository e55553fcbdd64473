"""What --json prints: by the schema of docs/json.md, with the numbers of the HDF5 files, alone on stdout."""

import json
import math
from pathlib import Path

import h5py
import jsonschema
import numpy as np
import pytest

from basin_program import needs_program, program

ROOT = Path(__file__).resolve().parents[3]
pytestmark = needs_program
SCHEMA = json.loads((ROOT / "docs" / "json.schema.json").read_text())
TINY = str(ROOT / "configs" / "tiny.toml")
THREADS = ["--set", "runtime.threads=1"]


def no_constant(name: str):
    raise AssertionError(f"{name} is no JSON")


def check(document: dict) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def document(*arguments, exit_code: int = 0) -> dict:
    done = program(*arguments, "--json")
    assert done.returncode == exit_code, done.stderr
    found = json.loads(done.stdout, parse_constant=no_constant)
    check(found)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("json") / "out"
    done = program("train", TINY, "--out", out, "--set", "protocol=A-epochs", *THREADS)
    assert done.returncode == 0, done.stderr
    return next((out / "runs").iterdir())


@pytest.fixture(scope="module")
def probed(run) -> dict:
    probes = "top_eigenvalues,noise_scale,sharpness_keskar"
    quick = ["--set", "sharpness_keskar.iterations=2"]
    return document("probe", run, "--only", probes, "--checkpoint", "start,end", *quick, *THREADS)


def same(number, stored) -> bool:
    """To the bit; what isn't finite is null."""
    return number is None if not math.isfinite(stored) else number == stored


def expect_numbers_of(result: dict, path: Path) -> int:
    """The numbers of a probe are those of its file; how many they are."""
    count = 0
    with h5py.File(path) as file:
        assert result["status"] == file.attrs["status"] and result["run_id"] == file.attrs["run_id"]
        for name, quantity in file["quantities"].items():
            mine = [number for number in result["numbers"] if number["quantity"] == name]
            assert len(mine) == len(quantity["value"])
            kind = quantity.attrs["uncertainty_kind"]
            for i, number in enumerate(mine):
                assert same(number["value"], quantity["value"][i])
                stored = quantity["uncertainty"][i] if kind != "none" and "uncertainty" in quantity else math.nan
                assert same(number["uncertainty"], stored) and number["uncertainty_kind"] == kind
                for end in ("ci_low", "ci_high"):
                    assert same(number[end], quantity[end][i] if end in quantity else math.nan)
                for key in ("units", "long_name", "definition"):
                    assert number[key] == quantity.attrs[key]
                assert number["status"] == quantity["entry_status"].asstr()[i]
            count += len(mine)
        assert count == len(result["numbers"])
        for key, value in result["attributes"].items():
            stored = file.attrs[key]
            assert same(value, stored) if isinstance(stored, float) else np.array_equal(value, stored), key
    return count


def test_probe_says_what_its_files_hold(probed):
    found = {(r["checkpoint"], r["probe"]): r for r in probed["results"]}
    assert len(found) == 6
    assert sum(expect_numbers_of(result, Path(result["file"])) for result in found.values()) > 30
    assert not any(result["measured_before"] for result in found.values())
    assert any(n["uncertainty"] is not None for n in found["end", "top_eigenvalues"]["numbers"])


def test_probe_says_what_was_measured_before(run, probed):
    again = document("probe", run, "--only", "noise_scale", *THREADS)
    assert [r["measured_before"] for r in again["results"]] == [True]
    before = next(r for r in probed["results"] if (r["checkpoint"], r["probe"]) == ("end", "noise_scale"))
    assert again["results"][0] == before | {"measured_before": True}


def test_inspect_says_what_a_probes_file_holds(probed):
    for result in probed["results"]:
        found = document("inspect", result["file"])
        assert found["kind"] == "basin/probe"
        assert expect_numbers_of(found["probe"], Path(result["file"])) == len(result["numbers"])


def test_inspect_has_the_tree_of_every_file_of_a_run(run):
    found = document("inspect", run)
    assert found["kind"] == "basin/run" and found["run"]["status"] == "finished"
    with h5py.File(run / "run.h5") as file:
        for key, value in found["run"]["summary"].items():
            assert same(value, stored) if isinstance(stored := file["summary"].attrs[key], float) else value == stored, key
        assert found["run"]["tables"]["train"]["rows"] == len(file["train/loss"])

        def compare(tree, group):
            assert set(tree["datasets"]) == {n for n, o in group.items() if isinstance(o, h5py.Dataset)}
            assert set(tree["groups"]) == {n for n, o in group.items() if isinstance(o, h5py.Group)}
            for name, said in tree["datasets"].items():
                assert said["shape"] == list(group[name].shape)
                assert said["units"] == group[name].attrs.get("units", "")
            for name, said in tree["groups"].items():
                compare(said, group[name])

        compare(found["content"], file)
    assert document("inspect", run / "ckpt" / "end.h5")["kind"] == "basin/checkpoint"
    journal = document("inspect", run / "journal")
    assert journal["kind"] == "basin/journal" and journal["run"] == found["run"] and not journal["torn"]


def test_audit_says_what_its_file_holds(run):
    found = document("audit", run / "ckpt" / "end.h5", "--only", "weight_norms,top_eigenvalues", "--subset", "64", *THREADS)
    assert found["rows"] and found["moved"] and not found["failures"]
    with h5py.File(found["file"]) as file:
        table = file["audit"]
        for i, row in enumerate(found["rows"]):
            for key in ("probe", "settings", "quantity", "definition", "transformation", "kind", "verdict"):
                assert row[key] == table[key].asstr()[i]
            assert same(row["strength"], table["strength"][i]) and same(row["ratio"], table["ratio"][i])
            for key in ("before", "after"):
                assert same(row[key]["value"], table[key][i])
                assert same(row[key]["uncertainty"], table[f"uncertainty_{key}"][i])
        assert len(found["rows"]) == len(table["verdict"])
        assert found["attributes"]["checkpoint_sha256"] == file.attrs["checkpoint_sha256"]
    moved = {r["definition"] for r in found["rows"] if r["verdict"] == "moved" and r["kind"] == "function"}
    assert {name.split(" (")[0] for name in found["moved"]} == moved


def test_a_dry_run_lists_the_runs_that_the_sweep_then_makes(tmp_path):
    one = ["--set", "batch_size=128", "--set", "optimizer=sgd", "--set", "probes.run=[]", *THREADS]
    arguments = ["sweep", TINY, "--out", tmp_path / "out", "--jobs", 1, *one]
    planned = document(*arguments, "--dry-run")
    assert not (tmp_path / "out" / "runs").exists()
    assert [r["protocol"] for r in planned["runs"]] == ["A-epochs", "B"]
    assert [r["gradients_kind"] for r in planned["runs"]] == ["exact", "at_most"]
    assert planned["gradients"] == sum(r["gradients"] for r in planned["runs"]) and planned["expected_seconds"] > 0
    assert program(*arguments).returncode == 0
    after = document(*arguments, "--dry-run")
    assert [r["standing"] for r in after["runs"]] == ["done", "done"] and after["expected_seconds"] == 0
    assert {r["run_id"] for r in after["runs"]} == {p.name for p in (tmp_path / "out" / "runs").iterdir()}
    with h5py.File(tmp_path / "out" / "runs" / planned["runs"][0]["run_id"] / "run.h5") as file:
        assert planned["runs"][0]["gradients"] == file["summary"].attrs["gradients"]
    sweep = document("inspect", tmp_path / "out")
    assert sweep["kind"] == "basin/sweep" and sum(sweep["runs"].values()) == 2


def test_a_dry_run_times_noise_in_whole_ghost_batches(tmp_path):
    """The sizes that are timed aren't the study's: at most 1,024 images, and no more than there are."""
    ghosts = {"model": "small_cnn", "small_cnn.norm": "batch", "ghost_batch": 24, "micro_batch": 1200, "noise.batch": 24}
    sets = [word for key, value in (ghosts | {"batch_size": 1200}).items() for word in ("--set", f"{key}={value}")]
    one = ["--set", "protocol=A-updates", "--set", "updates=2", "--set", "optimizer=sgd", "--set", "probes.run=[]", *THREADS]
    planned = document("sweep", TINY, "--out", tmp_path / "out", "--jobs", 1, *sets, *one, "--dry-run")
    assert planned["expected_seconds"] > 0 and len(planned["runs"]) == 1


def test_data_says_what_the_text_says():
    found = document("data", "describe", "cifar10-5k", "--validation", "0.1")
    text = program("data", "describe", "cifar10-5k", "--validation", "0.1").stdout
    assert found["sha256"] in text and found["split_hash"] in text
    for name in ("train", "validation", "test"):
        split = found["splits"][name]
        assert sum(split["per_class"]) == split["images"] and split["shape"] == [3, 32, 32]
        assert f"{split['images']} images" in text
    assert [f"{value:.6f}" for value in found["mean"]] == text.split("\nmean")[1].split()[:3]
    assert document("data", "check", "cifar10-5k")["splits"]["train"]["images"] == 5000


@pytest.mark.parametrize("name", SCHEMA["$defs"]["list"]["properties"]["list"]["enum"])
def test_a_list_has_the_names_that_its_text_has(name):
    found = document("inspect", "--list", name)
    assert found["schema"] == "basin/cli/list" and found["list"] == name and found["entries"]
    text = program("inspect", "--list", name).stdout
    assert all((entry.get("name") or entry["key"]) in text for entry in found["entries"])


def test_the_schema_knows_every_list():
    refused = program("inspect", "--list", "nonsense").stderr
    assert all(name in refused for name in SCHEMA["$defs"]["list"]["properties"]["list"]["enum"])


def test_errors_leave_stdout_empty(run, tmp_path):
    for arguments, code in [
        (["probe", run, "--checkpoint", "middle"], 2),
        (["probe", run, "--only", "top_eigenvalue"], 2),
        (["inspect", tmp_path / "none.h5"], 4),
        (["inspect"], 2),
        (["data", "check", "cifar10", "--path", tmp_path], 3),
        (["audit", run / "ckpt" / "middle.h5"], 4),
        (["sweep", TINY], 2),  # without --dry-run
    ]:
        done = program(*arguments, "--json")
        assert (done.returncode, done.stdout) == (code, ""), arguments
        assert done.stderr.startswith("basin: ") and done.stderr.count("\n") == 1


def test_the_schema_refuses_what_the_page_rules_out(probed):
    """The checks above would pass a schema that allows everything."""
    check(probed)

    def changed(change) -> dict:
        copy = json.loads(json.dumps(probed))
        change(copy)
        return copy

    number = lambda d: d["results"][0]["numbers"][0]  # noqa: E731
    for change in (
        lambda d: d.update(schema_version="2.0.0"),
        lambda d: d.update(more=1),
        lambda d: d.pop("results"),
        lambda d: number(d).update(value=None, status="ok"),
        lambda d: number(d).update(value="3.2"),
        lambda d: number(d).pop("uncertainty"),
        lambda d: number(d).update(status="fine"),
        lambda d: d["results"][0].update(more=1),
    ):
        with pytest.raises(jsonschema.ValidationError):
            check(changed(change))


def test_the_page_and_the_schema_name_the_same_documents():
    page = (ROOT / "docs" / "json.md").read_text()
    for name in SCHEMA["properties"]["schema"]["enum"]:
        assert f"`{name.removeprefix('basin/cli/')}`" in page
    for key in SCHEMA["$defs"]["number"]["required"]:
        assert f"`{key}`" in page
