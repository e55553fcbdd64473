"""Rebuilds small_cnn from a checkpoint with h5py and PyTorch; compares loss, accuracy and Hessian eigenvalues with those
stored.

    checkpoint_eigenvalues.py [--sweep OUT]     every run of that sweep folder; without it a small sweep is trained
                                                first ($BASIN_BINARY is the program)

The files and the data's mean and standard deviation come from Basin; network, loss, differentiation and eigsh don't.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import tempfile
import tomllib

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import LinearOperator, eigsh

from _oracle import compare, finish

# Float32 in another order of operations: tens of roundings of 6e-8, amplified by cancellation in a product.
FLOAT32 = 1e-5
RESIDUAL = "the stored residual and a float32 allowance"

STUDY = """
model = "small_cnn"
epochs = 3
learning_rate = 0.05
micro_batch = 250
[data]
set = "cifar10-5k"
train_examples = 1000
test_examples = 300
[small_cnn]
widths = [6, 8]
[probes]
run = ["top_eigenvalues"]
at = ["end"]
subset = 300
micro_batch = 128
[top_eigenvalues]
count = 3
tolerance = 1e-3
[sweep]
batch_size = [100]
optimizer = ["sgd"]
protocol = ["A-epochs"]
seed = [1]
"""


def smallest_hashes(images, labels, count):
    """The subset by hash, as documented: smallest SHA-256 of image bytes and label byte, in ascending index."""
    if count <= 0 or count >= len(labels):
        return np.arange(len(labels))
    digests = [hashlib.sha256(images[i].tobytes() + bytes([labels[i]])).hexdigest() for i in range(len(labels))]
    return np.sort(np.argsort(digests, kind="stable")[:count])


def read_records(path):
    records = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


class Data:
    def __init__(self, config):
        options = config["data"]
        readable = options["set"] == "cifar10-5k" and options.get("validation", 0) == 0
        assert readable, "this oracle reads cifar10-5k without a validation share"
        folder = pathlib.Path(os.environ["BASIN_BINARY"]).parents[1] / "share/basin/data/cifar10-5k"
        splits = {}
        for split, file in (("train", "data_batch_1.bin"), ("test", "test_batch.bin")):
            images, labels = read_records(folder / file)
            chosen = smallest_hashes(images, labels, options.get(f"{split}_examples", 0))
            splits[split] = images[chosen], labels[chosen]
        scaled = splits["train"][0] / 255.0
        self.mean, self.std = scaled.mean((0, 2, 3)), scaled.std((0, 2, 3))
        self.splits = splits

    def tensors(self, split, subset=0, dtype=torch.float32):
        images, labels = self.splits[split]
        chosen = smallest_hashes(images, labels, subset)
        x = (images[chosen] / 255.0 - self.mean[:, None, None]) / self.std[:, None, None]
        return torch.tensor(x, dtype=dtype), torch.tensor(labels[chosen])


def small_cnn(parameters, options, x):
    activation = {"relu": F.relu, "tanh": torch.tanh, "softplus": F.softplus}[options["activation"]]
    pool = options["downsample"] == "pool"
    for i in range(1, len(options["widths"]) + 1):
        weight, bias = parameters[f"conv{i}.weight"], parameters[f"conv{i}.bias"]
        x = activation(F.conv2d(x, weight, bias, stride=1 if pool else 2, padding=options["kernel"] // 2))
        if pool:
            x = F.max_pool2d(x, 2)
    return F.linear(x.flatten(1), parameters["fc.weight"], parameters["fc.bias"])


def read_parameters(checkpoint, dtype):
    model = checkpoint["model"]
    names = sorted(model, key=lambda name: int(model[name].attrs.get("index", 0)))
    return {name: torch.tensor(model[name][()], dtype=dtype, requires_grad=True) for name in names}


def loss_and_accuracy(parameters, options, x, y):
    with torch.no_grad():
        logits = small_cnn(parameters, options, x)
        return F.cross_entropy(logits.double(), y).item(), (logits.argmax(1) == y).double().mean().item()


def hessian(parameters, options, x, y):
    tensors = list(parameters.values())
    loss = F.cross_entropy(small_cnn(parameters, options, x), y)
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, tensors, create_graph=True)])

    def product(v):
        direction = torch.from_numpy(np.ascontiguousarray(v).reshape(-1))
        parts = torch.autograd.grad(gradient @ direction, tensors, retain_graph=True)
        return torch.cat([p.reshape(-1) for p in parts]).numpy()

    return LinearOperator((gradient.numel(),) * 2, matvec=product, dtype=np.float64)


def compare_multisets(what, stored, residuals, exact, allowance):
    """Each stored value has a partner of its own within its residual, and no larger eigenvalue is left without one."""
    free = sorted(exact, reverse=True)
    for value, residual in zip(stored, residuals):
        partner = min(free, key=lambda e: abs(e - value))
        free.remove(partner)
        compare(what, value, partner, atol=residual + allowance, why=RESIDUAL)
    slack = max(residuals) + allowance
    missed = max(0.0, max(free) - min(stored))
    compare(f"{what}: largest one not stored lies below", missed, 0.0, atol=slack, why="nothing was missed")


def check_run(run, most):
    """The number of checkpoints whose stored eigenvalues were compared."""
    compared = 0
    with h5py.File(run / "run.h5") as record:
        summary = dict(record["summary"].attrs)
    for path in sorted((run / "ckpt").glob("*.h5"))[:most]:
        probe_path = run / "probes" / f"{path.stem}.top_eigenvalues.h5"
        with h5py.File(path) as checkpoint:
            text = checkpoint["config"][()]
            config = tomllib.loads(text.decode() if isinstance(text, bytes) else str(text))
            single, double = read_parameters(checkpoint, torch.float32), read_parameters(checkpoint, torch.float64)
        options, data = config["small_cnn"], Data(config)
        rebuildable = config["model"] == "small_cnn" and options["norm"] == "none"
        assert rebuildable, "this oracle rebuilds small_cnn without norm"
        if path.stem == "end":
            for split in ("train", "test"):
                x, y = data.tensors(split)
                loss, accuracy = loss_and_accuracy(single, options, x, y)
                compare(f"{run.name} {split} loss", summary[f"{split}_loss"], loss, rtol=FLOAT32, why="float32 in another order")
                compare(
                    f"{run.name} {split} accuracy",
                    summary[f"{split}_acc"],
                    accuracy,
                    atol=1.5 / len(y),
                    why="one example whose two best logits tie to rounding",
                )
        if not probe_path.exists():
            continue
        with h5py.File(probe_path) as probe:
            n = int(probe.attrs["n_examples"])
            top, low = probe["quantities/lambda"], probe["quantities/lambda_min"]
            stored, residuals = np.ravel(top["value"][()]), np.ravel(top["uncertainty"][()])
            lowest, low_residual = np.ravel(low["value"][()])[0], np.ravel(low["uncertainty"][()])[0]
        x, y = data.tensors("train", n, torch.float64)
        operator = hessian(double, options, x, y)
        exact = eigsh(operator, k=len(stored) + 2, which="LA", tol=1e-7, return_eigenvectors=False)
        allowance = FLOAT32 * float(np.abs(exact).max())
        name = f"{run.name} {path.stem}"
        compare_multisets(f"{name} lambda", stored.tolist(), residuals.tolist(), exact.tolist(), allowance)
        smallest = float(eigsh(operator, k=1, which="SA", tol=1e-7, return_eigenvectors=False)[0])
        compare(f"{name} lambda_min", lowest, smallest, atol=low_residual + allowance, why=RESIDUAL)
        compared += 1
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweep", type=pathlib.Path, help="a finished sweep folder of small_cnn on cifar10-5k")
    parser.add_argument("--most", type=int, default=3, help="checkpoints of each run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sweep = arguments.sweep
        if sweep is None:
            study, sweep = pathlib.Path(scratch) / "study.toml", pathlib.Path(scratch) / "out"
            study.write_text(STUDY)
            command = [os.environ["BASIN_BINARY"], "sweep", study, "--out", sweep]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        runs = [run for run in sorted((sweep / "runs").iterdir()) if (run / "run.h5").exists()]
        compared = sum(check_run(run, arguments.most) for run in runs)
        assert compared > 0, f"{sweep}: no checkpoint with stored eigenvalues, so nothing was compared"
    finish()


if __name__ == "__main__":
    main()
