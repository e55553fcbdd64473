"""Basin's own networks against the same networks written in PyTorch, exported by basin.export() and measured from their file: probes,
and a plane of the landscape.

    script_twins.py          ($BASIN_BINARY is the program)

small_cnn without normalisation, ResNet-20 with batch norm, ResNet-20 with group norm, and the transformer gpt are trained for a few
updates by Basin; the twins take weights and statistics out of the checkpoint. Both are then measured by the same probes with the same
draws, on the same examples: in float64 everything to 1e-8 of itself, in float32 to 1e-4, eigenvalues to their residuals and searched
maxima to the spread of their starts.
"""

import os
import pathlib
import subprocess
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import basin
from _oracle import compare, finish, stored

N, CLASSES = 60, 4
PROBES = [
    "top_eigenvalues",
    "sharpness_keskar",
    "noise_scale",
    "dual_noise_scale",
    "generalised_sharpness",
    "gradient_statistics",
    "batch_sharpness",
    "sharpness_sam",
]
OPTIONS = [
    "runtime.threads=1",  # networks too small for two
    "top_eigenvalues.tolerance=1e-6",
    "sharpness_keskar.epsilons=[1e-3]",
    "sharpness_sam.group_size=16",
    "batch_sharpness.batch_size=16",
    "batch_sharpness.batches=8",
]
STUDY = """
model = "{model}"
optimizer = "sgd"
schedule = "constant"
protocol = "A-updates"
updates = 5
batch_size = 20
ghost_batch = 20
micro_batch = 20
learning_rate = 0.05
loss = "{loss}"
data.set = "arrays"
data.path = "{data}"
runtime.progress = false
probes.run = []
{options}
[sweep]
seed = [1]
"""


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.fc = nn.Linear(6 * 4, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


class Block(nn.Module):
    def __init__(self, width, out, stride, norm):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, out, 3, padding=1, stride=stride, bias=False), norm(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, padding=1, bias=False), norm(out)
        self.stride, self.before = stride, (out - width) // 2
        self.after = out - width - self.before

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + F.pad(x[:, :, :: self.stride, :: self.stride], [0, 0, 0, 0, self.before, self.after]))


class Stage(nn.Module):
    def __init__(self, width, out, stride, norm):
        super().__init__()
        self.block1, self.block2 = Block(width, out, stride, norm), Block(out, out, 1, norm)

    def forward(self, x):
        return self.block2(self.block1(x))


class ResNet(nn.Module):
    """He et al.'s for CIFAR, with shortcuts that pad."""

    def __init__(self, norm):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), norm(4)
        self.stage1, self.stage2, self.stage3 = Stage(4, 4, 1, norm), Stage(4, 8, 2, norm), Stage(8, 16, 2, norm)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.stage3(self.stage2(self.stage1(F.relu(self.norm1(self.conv1(x))))))
        return self.fc(x.mean([2, 3]))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (
            nn.LayerNorm(width),
            nn.LayerNorm(width),
        )  # in Basin's order: a random direction is drawn along it
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h):
        q, k, v = [t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.attention(self.norm1(h)).chunk(3, dim=2)]
        h = h + self.projection(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return h + self.shrink(F.gelu(self.expand(self.norm2(h))))


class Gpt(nn.Module):
    """nanoGPT's with biases and a head of its own."""

    def __init__(self, width=8, heads=2, steps=6):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(CLASSES, width), nn.Embedding(steps, width)
        self.block1, self.block2 = GptBlock(width, heads), GptBlock(width, heads)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES, bias=False)

    def forward(self, x):
        h = self.tokens(x) + self.positions.weight
        return self.head(self.norm(self.block2(self.block1(h))))


def pictures():
    random = np.random.default_rng(2)
    return {"train_inputs": random.normal(size=(N, 3, 8, 8)).astype(np.float32), "train_targets": np.arange(N) % CLASSES}


def texts():
    tokens = np.random.default_rng(3).integers(CLASSES, size=(N, 7))
    return {"train_inputs": tokens[:, :-1], "train_targets": tokens[:, 1:]}


def networks():
    """Name, Basin's model with its options, the twin, loss, examples."""
    torch.manual_seed(1)
    yield "small_cnn", "small_cnn", "small_cnn.widths = [4, 6]", SmallCnn(), "cross_entropy", pictures()
    sizes = "resnet20.width = 4\nresnet20.blocks = 2"
    for norm, module in (("batch", nn.BatchNorm2d), ("group", lambda width: nn.GroupNorm(2, width))):
        options = f'{sizes}\nresnet20.norm = "{norm}"\nresnet20.groups = 2'
        yield f"resnet20, {norm} norm", "resnet20", options, ResNet(module), "cross_entropy", pictures()
    options = "gpt.layers = 2\ngpt.heads = 2\ngpt.width = 8\ngpt.tied = false\ngpt.bias = true"
    yield "gpt", "gpt", options, Gpt(), "token_cross_entropy", texts()


def basin_says(*arguments):
    subprocess.run([os.environ["BASIN_BINARY"], *map(str, arguments)], check=True, capture_output=True)


def trained(folder, model, options, loss):
    (folder / "study.toml").write_text(STUDY.format(model=model, options=options, loss=loss, data=folder / "data.npz"))
    basin_says("sweep", folder / "study.toml", "--out", folder / "own")
    [run] = folder.glob("own/runs/*")
    return run


def take(twin, checkpoint):
    """Weights and statistics, by name."""
    with h5py.File(checkpoint) as file:
        found = stored(file, "model") | stored(file, "buffers")
    state = twin.state_dict()
    for name, value in found.items():
        state[name].copy_(torch.tensor(value))
    missing = [name for name in state if name not in found and not name.endswith("num_batches_tracked")]
    compare("every parameter of the twin is Basin's", missing, [], why="names")
    return list(found)


def measured(folder, dtype, *subject):
    options = [word for option in OPTIONS for word in ("--set", option)]
    basin_says("probe", *subject, "--only", ",".join(PROBES), "--subset", 0, "--dtype", dtype, "--micro-batch", 16, *options)
    return {probe: basin.read_probe(newest(folder, probe)) for probe in PROBES}


def newest(folder, probe):
    """Each type has a file of its own."""
    return max(folder.glob(f"runs/*/probes/end.{probe}*.h5"), key=lambda path: path.stat().st_mtime)


RTOL = {"float64": 1e-8, "float32": 1e-4}


def compare_tables(name, ours, theirs, dtype):
    rtol = RTOL[dtype]
    for probe in PROBES:
        a, b = ours[probe].table, theirs[probe].table
        losses = [found[probe].attributes["subset_loss"] for found in (ours, theirs)]
        compare(f"{name}: loss of {probe}", *losses, rtol=rtol, why=f"{dtype} sums in another order")
        compare(f"{name}: names of {probe}", list(a.entry) == list(b.entry), True, why="the same numbers")
        for (_, x), (_, y) in zip(a.iterrows(), b.iterrows()):
            if x.entry.startswith("rate_"):
                continue  # a file's weights have no learning rate
            if np.isnan(x.value) or np.isnan(y.value):
                compare(f"{name}: {x.entry} of {probe}", x.status == y.status, True, why="without a number both say why")
                continue
            allowed, why = {"rtol": rtol}, f"{dtype} sums in another order"
            if x.uncertainty_kind == "residual":
                allowed, why = {"atol": x.uncertainty + y.uncertainty, "rtol": rtol}, "both residuals"
            if x.uncertainty_kind == "lower_bound":
                allowed, why = {"atol": max(x.uncertainty, y.uncertainty), "rtol": rtol}, "the spread of the starts"
            compare(f"{name}: {x.entry} of {probe}", x.value, y.value, **allowed, why=why)


def compare_planes(name, ours, theirs, dtype, folder):
    planes = []
    for place, checkpoint in (("own", ours), ("script", theirs)):
        out = folder / f"{place}.{dtype}.plane.h5"
        settings = ["plane.alpha_points=5", "plane.beta_points=5", f"landscape.dtype={dtype}", "landscape.bn=frozen"]
        words = [word for setting in settings for word in ("--set", setting)]
        basin_says("landscape", checkpoint, "--kind", "plane", "--out", out, "--set", "landscape.subset=0", *words)
        with h5py.File(out) as file:
            planes.append(stored(file, "/"))
    compare(f"{name}: datasets of the plane", set(planes[0]) == set(planes[1]), True, why="the same file")
    losses = [key for key in planes[0] if "loss" in key]
    compare(f"{name}: the plane has losses", bool(losses), True, why="something to compare")
    for key in losses:
        compare(f"{name}: {key} of the plane", planes[0][key], planes[1][key], rtol=RTOL[dtype], why="sums in another order")


def check(name, model, options, twin, loss, arrays, folder):
    np.savez(folder / "data.npz", **arrays)
    run = trained(folder, model, options, loss)
    take(twin, run / "ckpt/end.h5")
    x = torch.tensor(arrays["train_inputs"])
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        basin.export(twin.eval(), x[:5], folder / "net.pt")
    script = ("--script", folder / "net.pt", "--data", folder / "data.npz", "--loss", loss, "--out", folder / "script")
    for dtype in ("float64", "float32"):
        own = measured(folder / "own", dtype, run)
        compare_tables(f"{name}, {dtype}", measured(folder / "script", dtype, *script), own, dtype)
        [scripted] = folder.glob("script/runs/*/ckpt/end.h5")
        compare_planes(f"{name}, {dtype}", run / "ckpt/end.h5", scripted, dtype, folder)


def main():
    for name, model, options, twin, loss, arrays in networks():
        with tempfile.TemporaryDirectory() as folder:
            check(name, model, options, twin, loss, arrays, pathlib.Path(folder))
    finish()


if __name__ == "__main__":
    main()
