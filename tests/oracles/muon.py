"""Muon trained by the program and by torch.optim.Muon with torch.optim.AdamW for the biases and what `by_adam` names.

    muon.py      ($BASIN_BINARY is the program)

An mlp on random vectors, five full-batch updates in float64, through the files that Basin reads and writes. torch orthogonalises
in bfloat16, so its Newton-Schulz iteration is replaced by one in float64, written here from the published code; and left as it is
once, for the size of that rounding.
"""

import fnmatch
import os
import pathlib
import subprocess
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F
import torch.optim._muon as torch_muon

from _oracle import compare, finish

N, INPUTS, HIDDEN, CLASSES, RATE, UPDATES = 30, 7, 5, 4, 0.03, 5
STUDY = """
model = "mlp"
mlp.hidden = [{hidden}]
mlp.activation = "tanh"
optimizer = "muon"
schedule = "constant"
warmup = 0.0
protocol = "A-updates"
updates = {updates}
batch_size = {n}
learning_rate = {rate}
dtype = "float64"
data.set = "arrays"
data.path = "{data}"
runtime.progress = false
"""
CASES = [
    ({}, {"adjust_lr_fn": "match_rms_adamw"}),
    ({"adjust": "spectral", "nesterov": False}, {"adjust_lr_fn": "original", "nesterov": False}),
    (
        {"weight_decay": 0.2, "momentum": 0.7, "iterations": 3},
        {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.2, "momentum": 0.7, "ns_steps": 3},
    ),
    # as the speedruns have it, which leave a network's first and last matrices to Adam
    ({"adjust": "spectral", "by_adam": ["name:fc2.*"]}, {"adjust_lr_fn": "original"}),
]


def newton_schulz(gradient, coefficients, steps, _eps):
    a, b, c = coefficients
    x = gradient.T if gradient.size(0) > gradient.size(1) else gradient
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if gradient.size(0) > gradient.size(1) else x


def trained_by_basin(folder, options, arrays):
    np.savez(folder / "set.npz", **arrays)
    text = STUDY.format(hidden=HIDDEN, updates=UPDATES, n=N, rate=RATE, data=folder / "set.npz")
    text += "[muon]\n" + "".join(
        f"{key} = {str(value).lower() if value is False else repr(value)}\n" for key, value in options.items()
    )
    (folder / "study.toml").write_text(text.replace("'", '"'))
    command = [os.environ["BASIN_BINARY"], "train", str(folder / "study.toml"), "--out", str(folder / "out")]
    subprocess.run(command, check=True, capture_output=True)
    [run] = folder.glob("out/runs/*")
    weights = {}
    for label in ("start", "end"):
        with h5py.File(run / f"ckpt/{label}.h5") as file:
            weights[label] = {name: torch.tensor(file["model"][name][...]) for name in file["model"]}
    return weights


def trained_by_torch(start, arrays, options, muon):
    x, y = torch.tensor(arrays["train_inputs"]), torch.tensor(arrays["train_targets"])
    p = {name: value.clone().requires_grad_() for name, value in start.items()}
    patterns = [pattern.removeprefix("name:") for pattern in options.get("by_adam", [])]
    by_adam = {name for name in p if p[name].dim() < 2 or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
    matrices = [value for name, value in p.items() if name not in by_adam]
    optimizers = [
        torch.optim.Muon(matrices, lr=RATE, **{"weight_decay": 0.0, "momentum": 0.95, **muon}),
        torch.optim.AdamW([p[name] for name in sorted(by_adam)], lr=RATE, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    for _ in range(UPDATES):
        hidden = torch.tanh(F.linear(x, p["fc1.weight"], p["fc1.bias"]))
        F.cross_entropy(F.linear(hidden, p["fc2.weight"], p["fc2.bias"]), y).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return {name: value.detach() for name, value in p.items()}


def main():
    random = np.random.default_rng(3)
    arrays = {"train_inputs": random.normal(size=(N, INPUTS)), "train_targets": np.arange(N) % CLASSES}
    rounded = torch_muon._zeropower_via_newtonschulz
    for number, (options, muon) in enumerate(CASES):
        with tempfile.TemporaryDirectory() as folder:
            found = trained_by_basin(pathlib.Path(folder), options, arrays)
        torch_muon._zeropower_via_newtonschulz = newton_schulz
        for name, theirs in trained_by_torch(found["start"], arrays, options, muon).items():
            compare(f"case {number}: {name}", found["end"][name], theirs, atol=1e-12, why="float64, five updates")
        torch_muon._zeropower_via_newtonschulz = rounded
        for name, theirs in trained_by_torch(found["start"], arrays, options, muon).items():
            moved = float((theirs - found["start"][name]).abs().max())
            compare(
                f"case {number}: {name}, torch in bfloat16",
                found["end"][name],
                theirs,
                atol=0.1 * moved,
                why="8 bits in each product of thirty",
            )
    finish()


if __name__ == "__main__":
    main()
