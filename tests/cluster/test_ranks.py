"""One run on both nodes of a real Slurm: `srun basin train`, whose processes share it."""

import pathlib
import sys

import h5py
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "tests/faults")]

from compare import broken_rules  # noqa: E402

STUDY = """
model = "mlp"
protocol = "A-updates"
updates = {updates}
batch_size = 64
micro_batch = 32
learning_rate = 0.01
dtype = "float64"
checkpoint_seconds = 1
[data]
set = "synthetic"
train_examples = 200
test_examples = 60
[mlp]
hidden = [8]
[runtime]
threads = 1
progress = false
"""
# Enough for two states before the node is killed. Not more: Slurm 22.05 signals step 0 of the job, for the first srun, again 50 s after
# the second began.
UPDATES = 4_000
# A process that is left alone ends by itself; the step should not wait for those that can't.
SCRIPT = "#!/bin/bash\nsrun --kill-on-bad-exit=1 {basin} train {study} --out {out}\n"


def losses_in(out):
    (run,) = (out / "runs").iterdir()
    with h5py.File(run / "run.h5") as file:
        return file["train/loss"][()], dict(file["provenance"].attrs)


def test_srun_makes_one_run_of_two_processes(cluster, basin, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(updates=20))
    for out, launcher in (("one", ()), ("two", ("srun", "--nodes=2", "--ntasks=2"))):
        cluster.run([*launcher, basin, "train", study, "--out", tmp_path / out])
    one, alone = losses_in(tmp_path / "one")
    two, shared = losses_in(tmp_path / "two")
    assert "ranks" not in alone and shared["ranks"] == "2"
    np.testing.assert_allclose(two, one, rtol=1e-12)  # float64 sums in another order


def test_srun_makes_a_server_and_two_workers(cluster, basin, tmp_path):
    """The machines have a processor each, for three processes. Who arrives when is chance."""
    study, bound = tmp_path / "study.toml", 1
    study.write_text(STUDY.format(updates=60) + f'[parallel]\nmode = "ssp"\nworkers = 2\nbound = {bound}\ndelays = "real"\n')
    cluster.run(["srun", "--nodes=2", "--ntasks=3", "--overcommit", basin, "train", study, "--out", tmp_path / "out"])
    (run,) = (tmp_path / "out/runs").iterdir()
    with h5py.File(run / "run.h5") as file:
        assert broken_rules(file["train"], workers=2, bound=bound, updates=60) == []
        assert set(file["train/worker"][()]) == {0, 1} and len(file["train/worker_batch"]) == 60


@pytest.mark.slow
def test_the_run_goes_on_after_a_node_is_lost(cluster, basin, tmp_path):
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(STUDY.format(updates=UPDATES))
    script = SCRIPT.format(basin=basin, study=study, out=out)
    job = cluster.submit(script, "--nodes=2", "--ntasks=2", "--requeue", "--open-mode=append", f"--output={tmp_path}/job.out")
    cluster.wait_until(lambda: list(out.glob("runs/*/ckpt/previous.h5")), 60)
    cluster.kill_node("n2")
    cluster.wait_until(lambda: cluster.job(job)["Restarts"] == "1", 60)
    cluster.start_node("n2")
    cluster.wait_until(lambda: cluster.job(job)["JobState"] == "COMPLETED", 120)
    losses, _ = losses_in(out)
    assert len(losses) == UPDATES
    (log,) = out.glob("runs/*/run.log")
    assert "resumed from update" in log.read_text()
