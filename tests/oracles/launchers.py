"""A run under torchrun and one under Open MPI's mpirun, two processes each that share it, against the same run of one process
($BASIN_BINARY is the program).

Batch norm, dropout and augmentation in float64: weights, running statistics and losses are the same but for the order of sums.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from _oracle import compare, finish, stored

STUDY = """
model = "keskar_c1"
optimizer = "lamb"
schedule = "constant"
protocol = "A-updates"
updates = 5
batch_size = 96
micro_batch = 48
ghost_batch = 12
learning_rate = 0.02
dtype = "float64"
[data]
set = "synthetic"
train_examples = 60
test_examples = 20
augmentation = "crop_flip"
[keskar_c1]
width = 4
hidden = [8, 6]
norm = "batch"
dropout = 0.5
[runtime]
progress = false
threads = 1
"""
BINARY = os.environ["BASIN_BINARY"]
MPIRUN = pathlib.Path(sys.executable).with_name("mpirun")
LAUNCHERS = {
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"],
    "mpirun": [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "2"],
}


def ended(launcher, out, study):
    subprocess.run([*launcher, BINARY, "train", study, "--out", out], check=True, capture_output=True, text=True, timeout=300)
    (run,) = pathlib.Path(out, "runs").iterdir()
    with h5py.File(run / "run.h5") as file:
        numbers = {"loss": file["train/loss"][()]}
        provenance = dict(file["provenance"].attrs)
    with h5py.File(run / "ckpt/end.h5") as file:
        numbers |= {f"model/{name}": values for name, values in stored(file, "model").items()}
        numbers |= {f"buffers/{name}": values for name, values in stored(file, "buffers").items()}
    return numbers, provenance


def main():
    with tempfile.TemporaryDirectory() as folder:
        study = os.path.join(folder, "study.toml")
        pathlib.Path(study).write_text(STUDY)
        one, alone = ended([], os.path.join(folder, "one"), study)
        assert "ranks" not in alone and len(one) > 10
        for launcher, command in LAUNCHERS.items():
            two, shared = ended(command, os.path.join(folder, launcher), study)
            assert shared.get("ranks") == "2", f"{launcher}'s processes did not share the run"
            assert one.keys() == two.keys()
            for name, numbers in one.items():
                size = np.linalg.norm(numbers)
                if size > 0:
                    off = np.linalg.norm(two[name] - numbers) / size
                    compare(f"{launcher}: {name}", off, 0, atol=1e-12, why="float64 sums in another order")
    finish()


main()
