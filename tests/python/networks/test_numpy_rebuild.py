"""A run rebuilt from its checkpoint by numpy alone: same loss and accuracy, and the dense Hessian's eigenvalues are the stored ones."""

import pathlib

import h5py
import numpy as np
import pytest

import basin
import numpy_network as net
from basin_program import BASIN, needs_program, program

pytestmark = needs_program

TRAIN, TEST, SUBSET, WANTED = 500, 200, 64, 4
STUDY = f"""
optimizer = "sgd"
protocol = "A-updates"
updates = 25
batch_size = 128
micro_batch = 100
learning_rate = 0.05
[data]
set = "cifar10-5k"
train_examples = {TRAIN}
test_examples = {TEST}
[probes]
run = ["top_eigenvalues"]
subset = {SUBSET}
at = ["end"]
[top_eigenvalues]
count = {WANTED}
tolerance = 1e-4
"""

CASES = {
    "mlp": ('model = "mlp"\n', '\n[mlp]\nhidden = [24, 12]\nactivation = "tanh"\n', dict(model="mlp", activation="tanh")),
    "small_cnn": ('model = "small_cnn"\n', "\n[small_cnn]\nwidths = [4, 8]\n", dict(model="small_cnn", activation="relu")),
    # 260 parameters and no kinks, so that its Hessian is dense and differentiable numerically.
    "smooth_cnn": (
        'model = "small_cnn"\n',
        '\n[small_cnn]\nwidths = [2, 2, 2, 2]\nactivation = "tanh"\ndownsample = "stride"\n',
        dict(model="small_cnn", activation="tanh", downsample="stride"),
    ),
}


def train(folder, case):
    top, table, _ = CASES[case]
    study = folder / f"{case}.toml"
    study.write_text(top + STUDY + table)
    done = program("train", study, "--out", folder / case, *(["--probe"] if case == "smooth_cnn" else []))
    assert done.returncode == 0, done.stderr
    (run,) = (folder / case / "runs").iterdir()
    return run


@pytest.fixture(scope="module", params=CASES)
def rebuilt(request, tmp_path_factory):
    run = train(tmp_path_factory.mktemp("rebuild"), request.param)
    with h5py.File(run / "ckpt" / "end.h5") as f:
        parameters = {}
        f["model"].visititems(
            lambda name, d: parameters.update({name: d[()].astype(float)}) if isinstance(d, h5py.Dataset) else None
        )
    data = pathlib.Path(BASIN).parents[1] / "share" / "basin" / "data" / "cifar10-5k"
    train_set, test_set = (net.read_records(data / f"{name}.bin") for name in ("data_batch_1", "test_batch"))
    chosen, tested = net.hashed_subset(*train_set, TRAIN), net.hashed_subset(*test_set, TEST)
    images, labels = train_set[0][chosen], train_set[1][chosen]
    return {
        "case": request.param, "run": run, "parameters": parameters, "kind": CASES[request.param][2],
        "train": (net.normalised(images, images), labels), "raw": images,
        "test": (net.normalised(test_set[0][tested], images), test_set[1][tested]),
    }  # fmt: skip


def test_parameters_are_float32_and_all_there(rebuilt):
    run = basin.load_run(rebuilt["run"])
    stored = run.checkpoint("end")
    assert all(v.dtype == np.float32 for v in stored.values())
    with h5py.File(rebuilt["run"] / "run.h5") as f:
        assert sum(v.size for v in stored.values()) == f["params/numel"][()].sum()


@pytest.mark.parametrize("split", ["train", "test"])
def test_loss_and_accuracy_are_the_stored_ones(rebuilt, split):
    x, labels = rebuilt[split]
    outputs = net.logits(net.build(rebuilt["parameters"], **rebuilt["kind"]), x)
    summary = basin.load_run(rebuilt["run"]).summary
    # float32 forward passes: logits are right to about 1e-6, and the mean of losses near 2 likewise.
    assert net.losses(outputs, labels).mean() == pytest.approx(summary[f"{split}_loss"], rel=1e-5)
    # Two logits may be equal to float32's rounding in one image.
    right = (outputs.argmax(1) == labels).mean()
    assert abs(right - summary[f"{split}_acc"]) <= 1 / len(labels) + 1e-12


def test_outcomes_of_each_test_image(rebuilt):
    x, labels = rebuilt["test"]
    outputs = net.logits(net.build(rebuilt["parameters"], **rebuilt["kind"]), x)
    stored = basin.load_run(rebuilt["run"]).outcomes["test"]
    np.testing.assert_allclose(stored.loss, net.losses(outputs, labels), rtol=1e-4, atol=1e-5)
    others = outputs.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    margin = outputs[np.arange(len(labels)), labels] - others.max(1)
    np.testing.assert_allclose(stored.margin, margin, rtol=1e-4, atol=2e-5)
    assert (stored.correct != (margin > 0)).sum() <= 1


def test_a_wrong_parameter_is_noticed(rebuilt):
    """The comparison above can fail: one weight tensor with two of its axes swapped or negated changes the loss."""
    x, labels = rebuilt["train"]
    bent = dict(rebuilt["parameters"])
    name = next(n for n in sorted(bent) if n.endswith(".weight"))
    bent[name] = bent[name][::-1]
    loss = net.losses(net.logits(net.build(bent, **rebuilt["kind"]), x), labels).mean()
    assert abs(loss - basin.load_run(rebuilt["run"]).summary["train_loss"]) > 1e-3


def test_eigenvalues_are_those_of_the_dense_hessian(rebuilt):
    if rebuilt["case"] != "smooth_cnn":
        pytest.skip("only the smooth net with 260 parameters has a dense Hessian here")
    x, labels = rebuilt["train"]
    subset = net.hashed_subset(rebuilt["raw"], labels, SUBSET)
    dense = np.linalg.eigvalsh(net.dense_hessian(rebuilt["parameters"], x[subset], labels[subset], **rebuilt["kind"]))
    probe = basin.load_run(rebuilt["run"]).probe("top_eigenvalues")
    rows = probe.table[probe.table.quantity == "lambda"].sort_values("index")
    assert len(rows) == WANTED and (rows.status == "ok").all()
    # The stored residual bounds the solver's error. The operator itself is float32: each product is off by some
    # multiple of 6e-8 of the largest eigenvalue; 1e-5 of it allows for sums over 64 images and four layers.
    allowance = 1e-5 * dense[-1]
    for stored, residual, true in zip(sorted(rows.value)[::-1], rows.uncertainty, dense[::-1]):
        assert abs(stored - true) <= residual + allowance, (stored, true, residual)
    smallest = probe.table[probe.table.quantity == "lambda_min"].iloc[0]
    assert abs(smallest.value - dense[0]) <= smallest.uncertainty + allowance
