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

from basin_program import BASIN, needs_program

pytestmark = [pytest.mark.slow, needs_program]
TORCH = "2.6.0"
PACKAGES = [f"torch=={TORCH}", "numpy", "pandas", "h5py"]

USER = """
import json, sys
import numpy as np, torch, torch.nn.functional as F
import basin
torch.manual_seed(1)
net = torch.nn.Linear(6, 3).double()
x, y = torch.randn(50, 6, dtype=torch.float64), torch.arange(50) % 3
problem = basin.torch_problem(net, lambda net, batch: F.cross_entropy(net(batch[0]), batch[1], reduction="none"), [(x, y)])
before = problem.weights()
table = basin.measure(problem, ["top_eigenvalues", "noise_scale", "sharpness_keskar"], options={"top_eigenvalues.tolerance": 1e-9},
                      progress=False)
same = bool((problem.weights() == before).all())
probabilities = torch.softmax(net(x), 1).detach().numpy()
print(json.dumps({"torch": torch.__version__, "status": sorted(set(table.status)), "same": same,
                  "lambda_1": float(table[table.entry == "lambda_1"].value.iloc[0]),
                  "x": x.tolist(), "probabilities": probabilities.tolist()}))
"""


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
        [str(python), "-c", USER], env=dict(os.environ, PYTHONPATH=str(source)), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    engine = subprocess.run([BASIN, "--version"], capture_output=True, text=True, check=True).stdout
    assert found["torch"].startswith(TORCH) and re.search("libtorch ([0-9.]+)", engine)[1] != TORCH
    assert set(found["status"]) <= {"ok", "not_resolved"} and found["same"]
    # The residual at this tolerance is 1e-9 of the value.
    assert found["lambda_1"] == pytest.approx(
        largest_eigenvalue(np.array(found["x"]), np.array(found["probabilities"])), rel=2e-9
    )
