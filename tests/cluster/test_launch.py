"""`basin sweep --launch slurm` on a real Slurm: what it makes equals the local sweep, whatever happens to its tasks."""

import collections
import contextlib
import json
import pathlib
import re
import signal
import subprocess

import h5py
import numpy as np
import pytest

STUDY = """
model = "mlp"
protocol = "A-updates"
updates = {updates}
batch_size = 32
micro_batch = 32
learning_rate = 0.01
checkpoint_seconds = 600
[data]
set = "synthetic"
train_examples = 200
test_examples = 60
[mlp]
hidden = [8]
[probes]
run = ["noise_scale"]
at = ["end"]
subset = 50
[sweep]
optimizer = {optimizers}
seed = {seeds}
"""
LONG = 12_000  # updates: a few seconds


@pytest.fixture
def study(tmp_path):
    """study(...) writes one and returns its path; OUT is next to it."""

    def write(updates=LONG, optimizers=("sgd",), seeds=(1,), more=""):
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(updates=updates, optimizers=json.dumps(optimizers), seeds=list(seeds)) + more)
        return path

    return write


@pytest.fixture
def sweep(cluster, basin, tmp_path):
    """sweep(study, *arguments): a finished call of `basin sweep`; .begin() one that runs, .status() what `basin status` says."""

    class Sweep:
        out = tmp_path / "out"

        def arguments(self, study, *more, out=None):
            return [basin, "sweep", str(study), "--out", str(out or self.out), *map(str, more)]

        def __call__(self, study, *more, out=None):
            return cluster.run(self.arguments(study, *more, out=out), check=False)

        @contextlib.contextmanager
        def begin(self, study, *more):
            with (
                (tmp_path / "launch.out").open("w") as log,
                subprocess.Popen(
                    self.arguments(study, *more), env=cluster.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
                ) as process,
            ):
                yield process
                process.kill()

        def said(self):
            return (tmp_path / "launch.out").read_text()

        def status(self):
            return json.loads(cluster.run([basin, "status", str(self.out), "--json"]).stdout)

    return Sweep()


LAUNCH = ("--launch", "slurm", "--task-minutes", "0")


def states(sweep):
    """How many runs say what of themselves."""
    files = sweep.out.glob("runs/*/status.json")
    return collections.Counter(json.loads(file.read_text())["status"] for file in files)


def training(sweep):
    """The runs that have made updates and aren't done."""
    if not (sweep.out / "study.toml").exists():
        return []
    return [run for run in sweep.status()["at_work"] if run["activity"] == "training" and run["update"] > 0]


def numbers_of(path):
    """What sweep.h5 holds but times, and where a run was resumed from."""
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset) and "second" not in name:
            found[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(take)
    return found


def assert_same_sweep(a, b):
    ours, theirs = numbers_of(a / "sweep.h5"), numbers_of(b / "sweep.h5")
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def locally(cluster, sweep, study, tmp_path):
    done = sweep(study, "--jobs", 2, out=tmp_path / "local")
    assert done.returncode == 0, done.stderr
    return tmp_path / "local"


def test_parents_come_before_branches(cluster, sweep, study, tmp_path):
    path = study(updates=40, seeds=(1, 2), more="batch_size = [32]\nbranch.from = ['', 'batch_size = 32']\n")
    path.write_text(path.read_text().replace("[sweep]", "[branch]\nat = 'end'\nupdates = 5\n[sweep]"))
    done = sweep(path, *LAUNCH)
    assert done.returncode == 0, done.stderr
    assert re.search(r"job \d+: sweep, 2 tasks for 2 runs", done.stderr)
    assert re.search(r"job \d+: branches, 2 tasks for 2 runs", done.stderr)
    assert_same_sweep(sweep.out, locally(cluster, sweep, path, tmp_path))


def test_a_task_near_its_time_limit_goes_back_into_the_queue_and_goes_on(cluster, sweep, study, tmp_path):
    path = study()
    with sweep.begin(path, *LAUNCH) as launch:
        cluster.wait_until(lambda: training(sweep), 60)
        task = next(row.job for row in cluster.queue() if row.state == "RUNNING")
        # What Slurm itself does so many seconds before the limit (--signal=B:USR1@...).
        cluster.run(["scancel", "--batch", "--signal=USR1", task])
        cluster.wait_until(lambda: cluster.job(task).get("Restarts") == "1", 60)
        assert launch.wait(120) == 0, sweep.said()
    assert_same_sweep(sweep.out, locally(cluster, sweep, path, tmp_path))


def test_a_run_whose_process_is_killed_is_tried_once_more(cluster, sweep, study):
    with sweep.begin(study(), *LAUNCH) as launch:
        run = cluster.wait_until(lambda: training(sweep), 60)[0]
        worker = next(pid for pid in cluster.processes(run["host"]) if run["run_id"] in log_of(pid))
        signal_pid(worker, signal.SIGKILL)
        cluster.wait_until(lambda: sweep.status()["failed"], 60)
        assert launch.wait(120) == 0, sweep.said()
    assert sweep.status()["done"] == 1


def log_of(pid):
    """Where the process writes to; empty for one that is gone."""
    with contextlib.suppress(OSError):
        return str(pathlib.Path(f"/proc/{pid}/fd/1").readlink())
    return ""


def signal_pid(pid, number):
    subprocess.run(["kill", f"-{int(number)}", str(pid)], check=True)


def test_ctrl_c_leaves_the_jobs_and_cancel_ends_them(cluster, sweep, study, tmp_path):
    path = study(updates=10 * LONG, seeds=(1, 2))  # still at work when the third command comes to the queue, on any machine
    with sweep.begin(path, *LAUNCH) as launch:
        cluster.wait_until(lambda: training(sweep), 60)
        launch.send_signal(signal.SIGINT)
        assert launch.wait(30) == 130
        assert "the jobs go on" in sweep.said()
    assert cluster.queue()
    again = sweep(path, *LAUNCH, "--detach")
    assert again.returncode == 0 and "nothing is submitted" in again.stderr
    cancelled = sweep(path, *LAUNCH, "--cancel")
    assert cancelled.returncode == 0 and "cancelled: " in cancelled.stderr
    cluster.wait_until(lambda: not cluster.queue(), 60)
    status = sweep.status()
    assert status["done"] < 2 and not status["failed"] and not status["at_work"]
    assert states(sweep)["interrupted"]
    done = sweep(path, *LAUNCH)  # goes on from the states that were left
    assert done.returncode == 0, done.stderr
    assert sweep.status()["done"] == 2


def test_what_sbatch_refuses_is_said_in_one_line(sweep, study):
    done = sweep(study(), *LAUNCH, "--slurm", "partition=nowhere")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "invalid partition specified: nowhere" in done.stderr


@pytest.mark.slow
def test_a_study_survives_preemption_a_dead_node_and_a_requeue(cluster, sweep, study, tmp_path):
    path = study(updates=5_000, optimizers=("sgd", "lamb"), seeds=range(1, 13))
    with sweep.begin(path, *LAUNCH) as launch:
        cluster.wait_until(lambda: training(sweep), 60)
        first = next(row for row in cluster.queue() if row.state == "RUNNING")
        cluster.submit("#!/bin/sh\nsleep 2\n", "--partition=high", f"--nodelist={first.node}")
        cluster.wait_until(lambda: cluster.job(first.job).get("Restarts") == "1", 60)
        # Its state was written, although Slurm's SIGTERM and the script's both reach it.
        cluster.wait_until(lambda: states(sweep)["interrupted"], 10)
        other = cluster.wait_until(
            lambda: next((r for r in cluster.queue() if r.state == "RUNNING" and "_" in r.job and training(sweep)), None), 30
        )
        cluster.run(["scontrol", "requeue", other.job])
        cluster.wait_until(lambda: cluster.job(other.job).get("Restarts") == "1", 60)
        lost = cluster.wait_until(lambda: training(sweep), 60)[0]
        cluster.kill_node(lost["host"])
        gone = lambda: all(row.node != lost["host"] for row in cluster.queue())  # noqa: E731
        cluster.wait_until(gone, 60)
        cluster.start_node(lost["host"])
        assert launch.wait(240) == 0, sweep.said()
    status = sweep.status()
    assert status["done"] == 24 and not status["failed"]
    assert_same_sweep(sweep.out, locally(cluster, sweep, path, tmp_path))
