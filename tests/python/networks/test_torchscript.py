"""A network from a file without PyTorch: what is measured on script_net.pt is what PyTorch wrote next to it, and a study trains it.

tests/oracles/torchscript.py wrote both files, and compares with PyTorch itself.
"""

import json
import pathlib

import h5py
import numpy as np
import pytest

from basin_program import needs_program, program

pytestmark = needs_program
NET = pathlib.Path(__file__).with_name("script_net.pt")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.npz"
    x = np.sin(1 + 3 * np.arange(24 * 3 * 8 * 8)).reshape(24, 3, 8, 8).astype(np.float32)
    np.savez(path, train_inputs=x, train_targets=np.arange(24) % 10)
    return path


def number(done, probe, name):
    [result] = [r for r in json.loads(done.stdout)["results"] if r["probe"] == probe]
    [found] = [n for n in result["numbers"] if n["name"] == name]
    return found["value"]


def test_numbers_are_those_that_pytorch_wrote(tmp_path, data):
    done = program("probe", "--script", NET, "--data", data, "--only", "top_eigenvalues,gradient_statistics", "--dtype", "float64",
                   "--set", "top_eigenvalues.tolerance=1e-8", "--out", tmp_path, "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = json.loads(NET.with_suffix(".json").read_text())
    # float64 on both sides; the eigenvalue to its residual, 1e-8 of itself.
    assert number(done, "top_eigenvalues", "lambda_1") == pytest.approx(theirs["lambda_1"], rel=2e-8)
    assert number(done, "gradient_statistics", "tr_sigma") == pytest.approx(theirs["tr_sigma"], rel=1e-10)


def test_every_probe_says_something_of_it(tmp_path, data):
    done = program("probe", "--script", NET, "--data", data, "--subset", 0, "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    results = {result["probe"]: result for result in json.loads(done.stdout)["results"]}
    assert len(results) > 10 and {r["status"] for r in results.values()} <= {"ok", "not_resolved", "unavailable"}
    assert results["relative_flatness"]["message"] == "needs the network's layers (layers), which this problem doesn't answer"
    assert results["preconditioned_curvature"]["message"] == "the checkpoint has no optimiser"


def test_the_weights_as_they_are_can_be_put_in_a_landscape(tmp_path, data):
    done = program("probe", "--script", NET, "--data", data, "--only", "weight_norms", "--out", tmp_path, "--json")
    run = json.loads(done.stdout)["run"]
    done = program("landscape", run, "--kind", "line", "--set", "line.points=5")
    assert done.returncode == 0, done.stderr


def test_a_landscape_does_not_estimate_batch_statistics_from_examples_sorted_by_class(tmp_path):
    path, random = tmp_path / "sorted.npz", np.random.default_rng(8)
    np.savez(path, train_inputs=random.normal(size=(600, 3, 8, 8)).astype(np.float32), train_targets=np.arange(600) // 60)
    done = program("probe", "--script", NET, "--data", path, "--only", "weight_norms", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run"]
    done = program("landscape", run, "--kind", "line", "--set", "line.points=5")
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert "the class changes 9 times from one to the next, and about 540 times in a random order" in done.stderr
    done = program("landscape", run, "--kind", "line", "--set", "line.points=5", "--set", "landscape.bn=frozen")
    assert done.returncode == 0, done.stderr


def test_other_examples_do_not_join_what_was_measured(tmp_path, data):
    other = tmp_path / "other.npz"
    with np.load(data) as arrays:
        np.savez(other, train_inputs=2 * arrays["train_inputs"], train_targets=arrays["train_targets"])
    for path, code in ((data, 0), (data, 0), (other, 4)):
        done = program("probe", "--script", NET, "--data", path, "--only", "weight_norms", "--out", tmp_path)
        assert done.returncode == code, done.stderr
    assert "made from other data" in done.stderr and done.stderr.count("\n") == 1


STUDY = """
model = "torchscript"
protocol = "A-updates"
updates = 4
batch_size = 12
ghost_batch = 6
data.set = "arrays"
data.path = "{data}"
torchscript.file = "{net}"
torchscript.start = "{start}"
runtime.progress = false
[sweep]
seed = [1, 2]
"""


def test_integers_where_the_network_takes_numbers_are_one_line(tmp_path):
    x = np.arange(24 * 3 * 8 * 8).reshape(24, 3, 8, 8)
    np.savez(tmp_path / "data.npz", train_inputs=x, train_targets=np.arange(24) % 10)
    done = program("probe", "--script", NET, "--data", tmp_path / "data.npz", "--out", tmp_path)
    assert done.returncode == 2 and " of Long: " in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_classes_that_do_not_occur_are_counted_where_that_is_said(tmp_path, data):
    """Three of ten classes occur: the loss is that of the same examples where the other seven do too, in examples left out."""
    found = np.load(data)
    x, y = found["train_inputs"], np.arange(24) % 3
    np.savez(tmp_path / "few.npz", train_inputs=x, train_targets=y)
    arguments = ["--script", NET, "--data", tmp_path / "few.npz", "--only", "weight_norms", "--out", tmp_path / "few"]
    refused = program("probe", *arguments)
    assert (
        refused.returncode == 2 and "[4, 3] is expected (data.classes = N: there are more classes than occur)" in refused.stderr
    )
    assert program("probe", *arguments, "--classes", 2).stderr.endswith("label 2; data.classes = 2, and they count from 0\n")
    assert program("probe", *arguments, "--classes", 10).returncode == 0
    [path] = (tmp_path / "few").glob("runs/*/probes/end.weight_norms.h5")
    np.savez(tmp_path / "all.npz", train_inputs=x, train_targets=y, test_inputs=x[:1], test_targets=[9])
    arguments = ["--script", NET, "--data", tmp_path / "all.npz", "--only", "weight_norms", "--out", tmp_path / "all"]
    assert program("probe", *arguments).returncode == 0
    [other] = (tmp_path / "all").glob("runs/*/probes/end.weight_norms.h5")
    with h5py.File(path) as a, h5py.File(other) as b:
        assert a.attrs["subset_loss"] == b.attrs["subset_loss"]


@pytest.mark.parametrize("start", ["file", "drawn"])
def test_a_sweep_trains_it_and_names_runs_by_what_is_in_the_file(tmp_path, data, start):
    copies = [tmp_path / "a.pt", tmp_path / "b.pt"]
    for number, copy in enumerate(copies):
        copy.write_bytes(NET.read_bytes())
        (tmp_path / "study.toml").write_text(STUDY.format(data=data, net=copy, start=start))
        done = program("sweep", tmp_path / "study.toml", "--out", tmp_path / str(number))
        assert done.returncode == 0, done.stderr
    runs = [sorted(p.name for p in (tmp_path / str(number) / "runs").iterdir()) for number in range(2)]
    assert runs[0] == runs[1] and len(runs[0]) == 2
    starts = []
    for name in runs[0]:
        with h5py.File(tmp_path / "0" / "runs" / name / "ckpt/start.h5") as file:
            starts.append(file["model/0.weight"][...])
    assert np.array_equal(*starts) == (start == "file")


def test_another_network_under_the_same_name_is_refused(tmp_path, data):
    net = tmp_path / "net.pt"
    net.write_bytes(NET.read_bytes())
    (tmp_path / "study.toml").write_text(STUDY.format(data=data, net=net, start="file"))
    done = program("train", tmp_path / "study.toml", "--out", tmp_path, "--set", f"torchscript.sha256={'0' * 64}")
    assert done.returncode == 2 and 'net.pt": another network: its SHA-256 is ' in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--script", NET), "--script needs --data"),
        (("run", "--script", NET), "a run and --script: one of them is measured at a time"),
        ((), "nothing to measure: name a run, or --script and --data"),
        (("run", "--data", "x.npz"), "--data, --classes and --out go with --script; a run has its own"),
        (("--script", "none.pt", "--data", "cifar10-5k"), 'torchscript.file = "none.pt": no such file'),
    ],
)
def test_words_that_do_not_go_together_are_one_line(tmp_path, arguments, said):
    done = program("probe", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
