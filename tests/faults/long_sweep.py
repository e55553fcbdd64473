"""A sweep of thousands of short runs: neither memory, nor open files, nor the time of a run may grow on the way.

The study is that of bench/many_cells.py with one optimiser, so that all runs are alike, and with as many updates as make a run last.

A host that is slower for some minutes makes a run's training last longer, by a third on a rented machine, which has nothing to do with how
many runs there were: a worker is a fork of the sweep, whose memory is looked at. So time is judged in units of what the runs themselves say
they took.
"""

import os
import re
import shutil
import statistics
import time

import h5py

from calls import Call, status_field
from many_cells import STUDY

GROWTH = 0.1  # between the first and the last quarter of the runs
FOLLOW_THE_HOST = ("seconds_per_cell", "own_seconds")  # shown, and not judged
JOBS = 2
TRIED = 20_000  # updates, by which the length of a run is set


def trial(binary, folder, cells, cell_seconds):
    """One row: means over the first and the last quarter of the runs, and what grew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    study = STUDY.replace('["sgd", "lamb"]', '["sgd"]').format(seeds=list(range(1, cells + 1)))
    (folder / "study.toml").write_text(study)
    updates = updates_lasting(cell_seconds, binary, folder)
    sweep = ("sweep", "study.toml", "--out", "out", "--jobs", JOBS, "--set", f"updates={updates}")
    call = Call([binary, *sweep], folder)
    expected = cells * cell_seconds / JOBS
    samples = sampled(call, min(1.0, expected / 100), 60 + 10 * expected)
    ended = call.wait(60)
    problems = [f"the sweep ended with {ended.code}: {ended.last_line}"] if ended.code else []
    own = own_seconds(folder / "out")
    first, last = (quarter(samples, own, number) for number in (0, 3))
    problems += grown(first, last)
    if first and first["seconds_per_cell"] * JOBS < cell_seconds / 2:
        problems.append(f"a run took {first['seconds_per_cell'] * JOBS:.3g} s, not {cell_seconds:g}")
    return {"cells": cells, "updates": updates, "first": first, "last": last, "problems": problems}


def updates_lasting(seconds, binary, folder):
    """By a long run less a short one: starting takes most of that, and a sweep's workers are forks that start in no time."""

    def took(updates):
        train = (binary, "train", "study.toml", "--set", f"updates={updates}", "--out")
        return min(Call([*train, f"tried-{updates}-{again}"], folder).wait().seconds for again in range(3))

    return updates_for(seconds, took(1), took(TRIED))


def updates_for(seconds, short, long):
    """How many last so long, from what one and what TRIED of them took."""
    if long <= short:
        raise RuntimeError("this machine does too much else to time an update")
    return max(1, round(seconds * (TRIED - 1) / (long - short)))


def sampled(call, every, at_most):
    """What the processes hold while the sweep runs, and how many runs are done by then. `at_most`: seconds; then it hangs."""
    began, samples = time.monotonic(), []
    while call.alive() and time.monotonic() - began < at_most:
        workers = [pid for pid in call.processes() if pid != call.pid]
        sample = {
            "seconds": time.monotonic() - began,
            "done": max([0, *map(int, re.findall(r"^\[(\d+)/", call.said(), re.MULTILINE))]),
            "sweep_kib": resident(call.pid),
            "sweep_handles": handles(call.pid),
            "worker_kib": max(map(resident, workers), default=0),
            "worker_handles": max(map(handles, workers), default=0),
        }
        samples.append(sample)
        time.sleep(every)
    return samples


def resident(pid):
    """KiB of a process's own memory: the pages of libraries are everybody's."""
    return int((status_field(pid, "RssAnon") or "0").split()[0])


def handles(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def own_seconds(out):
    """What each run says it took, in the order in which they ended."""
    took = []
    for path in sorted(out.glob("runs/*/run.h5"), key=lambda path: path.stat().st_mtime):
        with h5py.File(path) as file:
            took.append(float(file["summary"].attrs["seconds"]))
    return took


def quarter(samples, own, number):
    """Quarter `number` of the runs, from 0: wall time between two runs' ends, what the runs say they took, the one in units of the other
    (1 where nothing but the runs takes time), the median of memory, the most handles seen."""
    cells = len(own)
    first = max(4, number * cells)  # a sweep begins before its first run
    inside = [sample for sample in samples if first <= 4 * sample["done"] < (number + 1) * cells]
    if len(inside) < 2:
        return {}
    start, end = inside[0], inside[-1]
    runs = max(1, end["done"] - start["done"])
    between, took = (end["seconds"] - start["seconds"]) / runs, statistics.mean(own[start["done"] :][:runs])
    found = {"seconds_per_cell": between, "own_seconds": took, "time_over_own": JOBS * between / took}
    for name in ("sweep_kib", "worker_kib", "sweep_handles", "worker_handles"):
        found[name] = (statistics.median if name.endswith("_kib") else max)(sample[name] for sample in inside)
    return found


def grown(first, last):
    if not first or not last:
        return ["too few looks at the sweep: more cells, or longer ones"]
    return [
        f"{name} grew from {first[name]:.4g} to {last[name]:.4g}"
        for name in first
        if name not in FOLLOW_THE_HOST and last[name] > (1 + GROWTH) * first[name]
    ]
