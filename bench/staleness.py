"""Real workers against their rule, and against one process: docs/staleness.md.

    PYTHONPATH=python .venv/bin/python bench/staleness.py build/release/bin/basin OUT [KILLS STOPS]

For each bound a server and three workers make 1,500 updates in float64, while one worker stands still (SIGSTOP) for a second; the largest
staleness and lead are printed next to what the rule allows, and how far the weights at the end are from those of one process that makes
the recorded order again. Then, with a bound of 1, a worker gets SIGKILL (KILLS runs, 5) or SIGSTOP for good (STOPS runs, 3), and the
longest time between two updates is how long the others waited until it was evicted. About six minutes.
"""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import numpy as np

import basin
from basin.reader.run import read_status

WORKERS, UPDATES, BOUNDS = 3, 1_500, (0, 1, 3, -1)
BEGIN, PAUSE = 100, 1.0  # updates before a worker is disturbed, seconds
STUDY = f"""model = "small_cnn"
protocol = "A-updates"
updates = {UPDATES}
batch_size = 32
micro_batch = 32
learning_rate = 0.01
dtype = "float64"
[data]
set = "cifar10-5k"
[small_cnn]
widths = [8, 16, 32]
norm = "none"
[parallel]
mode = "ssp"
workers = {WORKERS}
"""


def main():
    program, out, *counts = sys.argv[1:]
    kills, stops = map(int, counts or (5, 3))
    folder = pathlib.Path(out)
    folder.mkdir(parents=True)  # a new one: a run that is there would be gone on with
    study = folder / "study.toml"
    study.write_text(STUDY)
    print(
        "| bound | largest staleness | allowed | largest lead | allowed | waiting | difference |\n|---|---|---|---|---|---|---|"
    )
    for bound in BOUNDS:
        print("|", " | ".join(row(program, study, bound)), "|", flush=True)
    for sent, repeats in ((signal.SIGKILL, kills), (signal.SIGSTOP, stops)):
        gaps = [evicted(program, study, sent, number) for number in range(repeats)]
        print(f"{sent.name}: evicted after {statistics.median(gaps):.1f} s ({min(gaps):.1f} to {max(gaps):.1f}), {repeats} runs")


def row(program, study, bound):
    name = f"bound-{bound}"
    real = run(program, study, name, bound, pause)
    again = f"{name}-again"
    call = command(program, study, again, bound) + sets("delays", "recorded") + sets("order", real.folder)
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    one_process = loaded(study, again)
    for column in ("worker", "staleness", "worker_lead", "worker_batch"):
        assert (one_process.train[column] == real.train[column]).all(), column
    staleness, lead = int(real.train.staleness.max()), int(real.train.worker_lead.max())
    allowed = ((WORKERS - 1) * (2 * bound + 1), bound + 1) if bound >= 0 else ("any", "any")
    for seen, most in zip((staleness, lead), allowed):
        assert bound < 0 or seen <= most, f"bound {bound}: {seen} above {most}"
    return (
        str(bound) if bound >= 0 else "none", str(staleness), str(allowed[0]), str(lead), str(allowed[1]),
        f"{100 * real.summary['worker_wait_share']:.0f} %", f"{difference(real, one_process):.1e}",
    )  # fmt: skip


def evicted(program, study, sent, number):
    record = run(program, study, f"{sent.name}-{number}", 1, lambda pid: os.kill(pid, sent))
    assert list(record.train["update"]) == list(range(1, UPDATES + 1)), "an update is missing"
    return float(np.diff(record.train.arrival_time).max())


def pause(pid):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(PAUSE)
    os.kill(pid, signal.SIGCONT)


def run(program, study, name, bound, disturb):
    """A run with real workers, the second of which is disturbed."""
    call = [*command(program, study, name, bound), *sets("delays", "real"), "--ranks", str(WORKERS + 1)]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        wait_for(study.parent / name, process)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        disturb(int(children[1]))
        _, said = process.communicate()
    assert process.returncode == 0, said
    return loaded(study, name)


def wait_for(out, process):
    while process.poll() is None:
        for status in out.glob("runs/*/status.json"):
            if read_status(status).get("update", 0) >= BEGIN:
                return
        time.sleep(0.01)
    sys.exit(f"the run ended before it was disturbed: {process.stderr.read()}")


def command(program, study, name, bound):
    return [program, "train", str(study), "--out", str(study.parent / name), *sets("bound", bound)]


def sets(option, value):
    return ["--set", f"parallel.{option}={value}"]


def loaded(study, name):
    (folder,) = (study.parent / name / "runs").iterdir()
    return basin.load_run(folder)


def difference(one, other):
    """How far the weights at the end are apart, relative to their norm."""
    a, b = (np.concatenate([value.ravel() for _, value in sorted(run.checkpoint().items())]) for run in (one, other))
    return np.linalg.norm(a - b) / np.linalg.norm(a)


if __name__ == "__main__":
    main()
