"""basin.measure() with another PyTorch in the user's environment than the one that the program is linked with. `make test-slow`: it
fetches 2.5 GB."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import basin
from basin_program import BASIN, needs_program

pytestmark = [pytest.mark.slow, needs_program]
TORCH = "2.6.0"
PACKAGES = [f"torch=={TORCH}", "numpy", "pandas", "h5py"]

USER = '''
import json, sys
import numpy as np, torch, torch.nn.functional as F
import basin
from torch import nn

class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.qkv, self.out = nn.Conv2d(1, 4, 3), nn.Linear(4, 12), nn.Linear(4, 3)
    def forward(self, x):
        h = torch.tanh(self.conv(x)).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(h)[:, None].chunk(3, dim=3)
        return self.out((h + F.scaled_dot_product_attention(q, k, v)[:, 0]).mean(1))

def measured(net, x, reduction):
    """Numbers, and whether the weights are as before; products reuse the graphs of batches that differ in size."""
    loader = [(x[i : i + 16], y[i : i + 16]) for i in range(0, len(x), 16)]
    problem = basin.torch_problem(net, lambda net, batch: F.cross_entropy(net(batch[0]), batch[1], reduction=reduction), loader)
    before = problem.weights()
    table = basin.measure(problem, ["top_eigenvalues", "noise_scale", "sharpness_keskar"],
                          options={"top_eigenvalues.tolerance": 1e-9, "noise_scale.estimator": "per_example"}, progress=False)
    numbers = {row.entry: row.value for row in table.itertuples()}
    return {"status": sorted(set(table.status)), "same": bool((problem.weights() == before).all())} | {
        name: float(numbers[name]) for name in ("lambda_1", "tr_sigma")}

def by_torch(net, x):
    """The dense Hessian's largest eigenvalue, and the variance of single gradients."""
    names, values = zip(*net.named_parameters())
    sizes = [p.numel() for p in values]
    def loss(flat, inputs, targets):
        parts = [piece.view_as(p) for piece, p in zip(flat.split(sizes), values)]
        return F.cross_entropy(torch.func.functional_call(net, dict(zip(names, parts)), (inputs,)), targets)
    flat = torch.cat([p.detach().flatten() for p in values])
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        hessian = torch.autograd.functional.hessian(lambda w: loss(w, x, y), flat)
        rows = [torch.func.grad(loss)(flat, x[i : i + 1], y[i : i + 1]) for i in range(len(x))]
    return {"lambda_1": torch.linalg.eigvalsh(hessian)[-1].item(), "tr_sigma": torch.stack(rows).var(0).sum().item()}

torch.manual_seed(1)
x, y = torch.randn(50, 6, dtype=torch.float64), torch.arange(50) % 3
net = nn.Linear(6, 3).double()
pictures, attentive = torch.randn(50, 1, 6, 6, dtype=torch.float64), Attentive().double()
np.savez("data.npz", train_inputs=pictures.float().numpy(), train_targets=y.numpy())
basin.export(attentive, pictures[:5], "net.pt")
print(json.dumps({"torch": torch.__version__, "linear": measured(net, x, "none"), "x": x.tolist(),
                  "probabilities": torch.softmax(net(x), 1).tolist(), "by_torch": by_torch(attentive, pictures),
                  "attentive": {reduction: measured(attentive, pictures, reduction) for reduction in ("none", "mean")}}))
'''


def largest_eigenvalue(x, probabilities):
    """Multinomial regression with weights and biases: the Hessian is the mean of (diag(p) - p p') (x) z z' with z = (x, 1)."""
    z = np.column_stack([x, np.ones(len(x))])
    blocks = [np.kron(np.diag(p) - np.outer(p, p), np.outer(one, one)) for one, p in zip(z, probabilities)]
    return np.linalg.eigvalsh(np.mean(blocks, 0))[-1]


def test_another_torch_has_the_same_numbers(tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin/python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    source = pathlib.Path(__file__).parents[3] / "python"
    done = subprocess.run(
        [str(python), "-c", USER],
        env=dict(os.environ, PYTHONPATH=str(source)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    engine = subprocess.run([BASIN, "--version"], capture_output=True, text=True, check=True).stdout
    assert found["torch"].startswith(TORCH) and re.search("libtorch ([0-9.]+)", engine)[1] != TORCH
    for one in (found["linear"], *found["attentive"].values()):
        assert set(one["status"]) <= {"ok", "not_resolved"} and one["same"]
    # The residual at this tolerance is 1e-9 of the value.
    exact = largest_eigenvalue(np.array(found["x"]), np.array(found["probabilities"]))
    assert found["linear"]["lambda_1"] == pytest.approx(exact, rel=2e-9)
    for one in found["attentive"].values():
        assert one["lambda_1"] == pytest.approx(found["by_torch"]["lambda_1"], rel=2e-9)
        assert one["tr_sigma"] == pytest.approx(found["by_torch"]["tr_sigma"], rel=1e-9)  # float64, a difference of squares

    # A file of that torch, in this one: float32.
    command = [BASIN, "probe", "--script", "net.pt", "--data", "data.npz", "--only", "top_eigenvalues", "--out", "out"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    [path] = tmp_path.glob("out/runs/*/probes/end.top_eigenvalues.h5")
    table = basin.read_probe(path).table
    assert table[table.entry == "lambda_1"].value.iloc[0] == pytest.approx(found["by_torch"]["lambda_1"], rel=1e-3)
