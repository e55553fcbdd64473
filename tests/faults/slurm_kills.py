"""A study as a job array on a real Slurm (tests/cluster) of which a machine or the submitting command is killed at a random moment."""

import contextlib
import random
import shutil
import time

from kills import begin
from slurm_cluster import NODES, SlurmCluster

NAME = "slurm-array"
LAUNCH = ("--launch", "slurm", "--task-minutes", "0")
WHAT = ("node", "command")
SLOWER = 1.5  # about, than on this machine alone
STARTS = 6  # of the command at most, before it has to have ended with everything done


class Cluster:
    """Started when it is first needed, for all trials."""

    def __init__(self, folder):
        self._folder, self._stack, self._cluster = folder, contextlib.ExitStack(), None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.close()

    def get(self):
        if not self._cluster:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._cluster = self._stack.enter_context(SlurmCluster(self._folder))
        return self._cluster


def trial(prepared, folder, seed, cluster):
    """One row. `prepared` is the sweep on this machine alone, which the array's results must equal."""
    moments = random.Random(seed)
    what, node, at = moments.choice(WHAT), moments.choice(NODES), moments.uniform(0, SLOWER * prepared.seconds)
    begin(prepared, folder)
    try:
        met, ended, starts = killed_launch(prepared, folder, cluster, what, node, at)
        problems = [f"the command ended with {ended.code}: {ended.last_line}"] if ended.code else []
        problems += prepared.differences(folder)
    finally:
        cluster.reset()
    kills = [{"at": round(at, 3), "what": what if what == "command" else node, "met": met}]
    return {"kills": kills, "resumes": starts - 1, "problems": problems}


def killed_launch(prepared, folder, cluster, what, node, at):
    """Whether something was at work then, how the last call ended, and how many there were."""

    def launch():
        return prepared.call(folder, (*LAUNCH, "--retry", "failed"), environment=cluster.environment)

    call = launch()
    if what == "command":
        met = call.kill_after(at)
    else:
        time.sleep(at)
        met = has_a_job(node, cluster, call)
        cluster.kill_node(node)
        cluster.wait_until(lambda: all(row.node != node for row in cluster.queue()), 60)
        cluster.start_node(node)
    ended, starts = call.wait(), 1
    while ended.code != 0 and starts < STARTS:
        ended, starts = launch().wait(), starts + 1
    return met, ended, starts


def has_a_job(node, cluster, call):
    """Waits for it until the call has ended."""
    while not any(row.node == node for row in cluster.queue()):
        if not call.alive():
            return False
        time.sleep(0.05)
    return True
