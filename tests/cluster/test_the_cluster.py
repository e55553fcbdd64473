"""The cluster itself, without Basin: that it does what the other tests here rely on."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from slurm_cluster import HEAD, NODES, SlurmCluster

pytestmark = pytest.mark.slow  # of the machinery of tests: `make test-cluster` alone has the time

# Notes its start and end with the node and the number of requeues; what it does in between is up to the test.
SCRIPT = """#!/bin/bash
note() { echo "$1 $(hostname) ${SLURM_RESTART_COUNT:-0}"; }
note start
%s
note end
"""
# In front of a command: not after a requeue.
ONCE = '[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || '


def notes_in(log):
    """Without the lines of Slurm and of bash, which are in there too."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [line for line in lines if line.startswith(("start", "end", "TERM", "USR1"))]


@pytest.fixture
def submit(cluster, tmp_path):
    """submit(what, *options): the number of a job, and the function that reads what it noted."""
    numbered = iter(range(100))

    def submit(what, *options):
        log = tmp_path / f"{next(numbered)}.log"
        job = cluster.submit(SCRIPT % what, f"--output={log}", "--open-mode=append", "--requeue", *options)
        return job, lambda: notes_in(log)

    return submit


def node_of(cluster, job):
    """Where a job runs, once it does."""
    return cluster.wait_until(lambda: next((row.node for row in cluster.queue() if row.job == job and row.node), None), 10)


def wait_for_end(cluster, job, seconds=40):
    cluster.wait_until(lambda: not any(row.job.split("_")[0] == job for row in cluster.queue()), seconds)
    return cluster.job(job)["JobState"]


def alive(pids):
    return [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]


def test_an_array_runs_on_both_nodes_one_task_at_a_time_on_each(cluster, submit):
    job, notes = submit("sleep 1", "--array=1-4")
    assert {row.job for row in cluster.queue()} == {f"{job}_{task}" for task in (1, 2, 3, 4)}
    assert wait_for_end(cluster, job) == "COMPLETED"
    assert len(notes()) == 8
    for node in NODES:
        there = [line for line in notes() if node in line]
        assert there and there == [f"start {node} 0", f"end {node} 0"] * (len(there) // 2)


def test_nodes_know_each_other_by_name(cluster):
    seen = cluster.run(["srun", "--nodes=2", "sh", "-c", f"hostname; getent hosts {' '.join(NODES)} | wc -l"]).stdout.split()
    assert sorted(seen) == ["2", "2", *NODES]


def test_a_job_that_requeues_itself_runs_again(cluster, submit):
    job, notes = submit(f'trap "note USR1; scontrol requeue $SLURM_JOB_ID; exit 0" USR1\n{ONCE}while :; do sleep 0.1; done')
    cluster.wait_until(notes, 10)
    cluster.run(["scancel", "--batch", "--signal=USR1", job])
    assert wait_for_end(cluster, job) == "COMPLETED"
    assert [line.split()[::2] for line in notes()] == [["start", "0"], ["USR1", "0"], ["start", "1"], ["end", "1"]]
    assert cluster.job(job)["Restarts"] == "1"


def test_a_job_in_high_preempts_one_in_main(cluster, submit):
    job, notes = submit(f'trap "note TERM; exit 143" TERM\n{ONCE}while :; do sleep 0.1; done', "--nodelist=n1")
    cluster.wait_until(notes, 10)
    urgent, _ = submit("sleep 1", "--partition=high", "--nodelist=n1")
    cluster.wait_until(lambda: cluster.job(urgent)["JobState"] == "RUNNING", 10)
    assert [(row.job, row.state) for row in cluster.queue() if row.job == job] == [(job, "PENDING")]
    assert wait_for_end(cluster, job) == wait_for_end(cluster, urgent) == "COMPLETED"
    assert notes() == ["start n1 0", "TERM n1 0", "start n1 1", "end n1 1"]


def test_the_job_of_a_dead_node_runs_again_on_the_other(cluster, submit):
    job, notes = submit(f"{ONCE}{{ setsid sleep 600 & sleep 600; }}")
    cluster.wait_until(notes, 10)
    dead = node_of(cluster, job)
    other = next(node for node in NODES if node != dead)
    before = cluster.wait_until(lambda: len(pids := cluster.processes(dead)) >= 6 and pids, 5)
    cluster.kill_node(dead)
    assert not alive(before) and not cluster.processes(dead)
    assert wait_for_end(cluster, job) == "COMPLETED"
    assert notes() == [f"start {dead} 0", f"start {other} 1", f"end {other} 1"]


def test_a_node_that_boots_again_repeats_what_it_lost(cluster, submit):
    job, notes = submit(f"{ONCE}sleep 600", "--nodelist=n2")
    cluster.wait_until(notes, 10)
    time.sleep(8)  # a younger job might be about to begin, so slurmctld would wait for it
    cluster.kill_node("n2")
    cluster.start_node("n2")
    assert wait_for_end(cluster, job) == "COMPLETED"
    assert notes() == ["start n2 0", "start n2 1", "end n2 1"]


def test_a_job_goes_on_without_the_head(cluster, submit):
    job, notes = submit("sleep 1")
    cluster.wait_until(notes, 10)
    cluster.stop_head()
    failed = cluster.run(["squeue"], check=False)
    assert failed.returncode == 1 and "Unable to contact slurm controller" in failed.stderr
    assert [line.split()[0] for line in notes()] == ["start", "end"]
    cluster.start_head()
    assert wait_for_end(cluster, job) == "COMPLETED"


def busy_processes(cluster):
    """All of a cluster's processes, when a job runs with one of its own in the background."""
    cluster.submit("#!/bin/sh\nsetsid sleep 600 & sleep 600")
    # Two machines with a shell and slurmd each, then slurmstepd, the script and its two.
    return cluster.wait_until(lambda: len(on(cluster, NODES)) >= 8 and on(cluster, (HEAD, *NODES)), 10)


def on(cluster, names):
    return [pid for name in names for pid in cluster.processes(name)]


OWNER = """
import sys, time
from slurm_cluster import SlurmCluster
from test_the_cluster import busy_processes
cluster = SlurmCluster(sys.argv[1])
cluster.start()
print(*busy_processes(cluster), flush=True)
time.sleep(600)
"""


def test_nothing_outlives_the_process_that_started_it(cluster, tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, text=True
    )
    pids = owner.stdout.readline().split()
    assert pids and alive(pids) == pids
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    end = time.monotonic() + 10
    while alive(pids):
        assert time.monotonic() < end, alive(pids)
        time.sleep(0.05)


def test_stop_leaves_nothing(cluster, tmp_path):
    with SlurmCluster(tmp_path) as second:
        pids = busy_processes(second)
        assert alive(pids) == pids
    assert not alive(pids)
