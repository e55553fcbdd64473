"""The five lines of docs/your-network.md on a ResNet with group normalisation that Basin doesn't know, next to PyHessian:

    BASIN_BINARY=build/release/bin/basin PYTHONPATH=python .venv-peers/bin/python bench/your_network.py [REPEATS]

`make bench-curvature` calls it.

Both tools work on the same network and loader in this process, whose torch makes every product; they take turns, and another seed each
time. The network, a ResNet-20 of 272,282 parameters, has had 200 updates on 128 of the images that come with Basin, and is measured on
those. Residuals are |Hv - lambda v| / |lambda|, the largest of the eigenvalues asked for: Basin's as it reports them, PyHessian's by one
more product of our own. PyHessian stops when a value changes by less than its tolerance (1e-3), Basin when the residual is below; at
1e-2 the two are about as accurate. Basin's time is that of the whole call, its process and its checks of the problem included.
"""

import functools
import itertools
import os
import pathlib
import statistics
import sys
import tarfile
import time

import numpy as np
import pyhessian
import torch
import torch.nn.functional as F
from torch import nn

import basin
from curvature_peers import RetainedHessian, worst_residual
from programs import ALLOCATOR

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOLERANCE, EXAMPLES, BATCH = 1e-3, 128, 64
PROBES = ["top_eigenvalues", "sharpness_keskar", "noise_scale"]


class Block(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.first = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(2))
        self.shortcut = nn.Conv2d(before, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.shortcut(x) + self.norms[1](self.second(y)))


def network():
    torch.manual_seed(1)
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in itertools.pairwise(widths)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(8, 16), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip


def images():
    """The first of the set that comes with Basin; rows are a label and 3,072 bytes."""
    with tarfile.open(ROOT / "data/assets/cifar10-5k.tar.xz") as archive:
        [member] = [m for m in archive if m.name.endswith("data_batch_1.bin")]
        rows = np.frombuffer(archive.extractfile(member).read(), np.uint8).reshape(-1, 3073)[:EXAMPLES]
    x = torch.tensor(rows[:, 1:].reshape(-1, 3, 32, 32), dtype=torch.float32) / 255
    mean, std = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    return (x - mean) / std, torch.tensor(rows[:, 0], dtype=torch.int64)


def trained(net, x, y):
    optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    for update in range(200):
        part = torch.randint(EXAMPLES, (BATCH,), generator=torch.Generator().manual_seed(update))
        optimizer.zero_grad()
        F.cross_entropy(net(x[part]), y[part]).backward()
        optimizer.step()
    return net.eval()


def by_basin(net, problem, loader, count, seed, tolerance=TOLERANCE):
    options = {"top_eigenvalues.count": count, "top_eigenvalues.smallest": 0, "top_eigenvalues.tolerance": tolerance}
    start = time.perf_counter()
    table = basin.measure(problem, ["top_eigenvalues"], options=options, seed=seed, progress=False)
    wall = time.perf_counter() - start
    found = table[table.entry.isin([f"lambda_{k + 1}" for k in range(count)])]
    return {"seconds": wall, "values": list(found.value), "residual": float((found.uncertainty / found.value.abs()).max())}


def by_pyhessian(net, problem, loader, count, seed):
    torch.manual_seed(seed)
    start = time.perf_counter()
    tool = pyhessian.hessian(net, F.cross_entropy, dataloader=loader, cuda=False)
    values, vectors = tool.eigenvalues(maxIter=100, tol=TOLERANCE, top_n=count)
    wall = time.perf_counter() - start
    net.zero_grad()
    product = RetainedHessian(net, *(torch.cat(parts) for parts in zip(*loader)))
    flat = [torch.cat([part.reshape(-1) for part in vector]) for vector in vectors]
    return {"seconds": wall, "values": values, "residual": worst_residual(product, values, flat)}


def compare(net, problem, loader, count, repeats):
    tools = {"Basin": by_basin, "Basin, 1e-2": functools.partial(by_basin, tolerance=1e-2), "PyHessian": by_pyhessian}
    rows = [{name: tool(net, problem, loader, count, seed) for name, tool in tools.items()} for seed in range(repeats)]
    for name in tools:
        seconds = [row[name]["seconds"] for row in rows]
        values = ", ".join(f"{value:.4g}" for value in rows[0][name]["values"])
        print(f"top {count}  {name:<12} {statistics.median(seconds):6.2f} s ({min(seconds):.2f} to {max(seconds):.2f})  "
              f"residual at most {max(row[name]['residual'] for row in rows):.1e}  first seed: {values}")  # fmt: skip
    for name in list(tools)[:2]:
        ratios = [row[name]["seconds"] / row["PyHessian"]["seconds"] for row in rows]
        print(
            f"top {count}  {name} / PyHessian {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def main():
    if any(os.environ.get(key) != value for key, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    x, y = images()
    net = trained(network(), x, y)
    loader = [(x[i : i + BATCH], y[i : i + BATCH]) for i in range(0, EXAMPLES, BATCH)]
    problem = basin.torch_problem(net, lambda net, batch: F.cross_entropy(net(batch[0]), batch[1], reduction="none"), loader)
    print(
        f"{problem.weights().size} parameters, {EXAMPLES} examples, loss {problem.loss(problem.weights()):.4f}, {repeats} repeats"
    )
    for count in (1, 5):
        compare(net, problem, loader, count, repeats)
    start = time.perf_counter()
    numbers = basin.measure(problem, PROBES, progress=False)
    print(f"{', '.join(PROBES)}: {time.perf_counter() - start:.0f} s")
    print(numbers[["entry", "value", "uncertainty", "uncertainty_kind", "status"]].to_string())
    start = time.perf_counter()
    plane = basin.landscape(problem, progress=False).plot
    print(f"a plane of {plane.state.size} points: {time.perf_counter() - start:.0f} s, loss {plane['train_loss'].min():.3f} "
          f"to {plane['train_loss'].max():.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
