"""Running what prints its measurement as one last line of JSON, and the rows that tables and files are made of."""

import json
import os
import statistics
import subprocess
import sys

# The allocator's settings that a program of Basin takes at its start (tune_allocator() in core/runtime.cpp), for a peer that is to
# have them.
ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "THP_MEM_ALLOC_ENABLE": "1",
}
# What the user's shell may have, which would act on some tools and not on others.
SETTINGS = ("OMP_NUM_THREADS", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", *ALLOCATOR)


def start(command, stdin=None, stderr=subprocess.PIPE, **environment):
    inherited = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**inherited, **environment},
    )


def finish(process):
    """What a started process printed; the end of this one where it failed."""
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)}: exit code {process.returncode}\n{err}")
    return out


def measure(command, **environment):
    return json.loads(finish(start(command, **environment)).strip().splitlines()[-1])


class Answering:
    """A program that answers each line of its input by one of JSON: what it takes to start is paid once."""

    def __init__(self, command):
        self.process = start(command, stdin=subprocess.PIPE, stderr=None)

    def __call__(self, *words):
        try:
            print(*words, file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            sys.exit(f"{' '.join(self.process.args)}: exit code {self.process.wait()} at: {' '.join(map(str, words))}")
        return json.loads(answer)


def row(case, tool, version, quantity, values, **more):
    return {
        "case": case,
        "tool": tool,
        "version": version,
        quantity: statistics.median(values),
        f"{quantity}_all": values,
        **more,
    }


def with_ratios(rows, quantity):
    """The rows with ratio: the first one's median over each one's, and ratio_spread: smallest and largest of single repeats, which ran
    side by side in time and so say how steady the figure is."""
    ours = rows[0]
    for other in rows:
        single = [a / b for a, b in zip(ours[f"{quantity}_all"], other[f"{quantity}_all"])]
        other["ratio"], other["ratio_spread"] = ours[quantity] / other[quantity], [min(single), max(single)]
    return rows


def cell(values, digits=3):
    return f"{statistics.median(values):,.{digits}g} ({min(values):,.{digits}g} to {max(values):,.{digits}g})"


def ratio_cell(entry):
    low, high = entry["ratio_spread"]
    return f"{entry['ratio']:.2f} ({low:.2f} to {high:.2f}{', a tie' if low <= 1 <= high else ''})"
