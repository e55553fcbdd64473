"""What a command may say and do where the machine is at fault: work, or end with one clear line and an exit code of its own."""

import contextlib
import re
import shutil
import signal

from faults import FAULTS
from small_disk import SmallDisk

OURS = re.compile(r"basin(\.\w+)?: ")  # how a line begins with which the program, or a module of Python, ends
CODES = range(8)  # of `basin --help`; interruptions were not asked for here
CRASHES = ("terminate called", "what():", "Traceback", "core dumped", "Segmentation")


def trial(name, prepared, folder):
    """One row: how the command ended under a fault, and, once that is lifted, whether the same command makes the same result."""
    fault = FAULTS[name]
    shutil.rmtree(folder, ignore_errors=True)
    with SmallDisk(folder) if fault.needs_disk else contextlib.nullcontext():
        shutil.copytree(prepared.inputs, folder, dirs_exist_ok=True)
        ends, place = fault.run(prepared, folder)
        problems = [problem for ended in ends for problem in problems_of(ended, fault, prepared.case.kept)]
        after = prepared.call(place, prepared.case.again).wait()
        if after.code != 0 and prepared.case.kept not in after.last_line:
            problems.append(f"afterwards it ended with {after.code}: {after.last_line}")
        problems += prepared.differences(place, runs_failed=True)
    if place != folder:
        place.rename(folder)
    worst = max(ends, key=lambda ended: ended.code != 0)
    return {"code": worst.code, "line": message_of(worst) if worst.code else "", "problems": problems}


def message_of(ended):
    """The line that says why: of basin itself, or, of a sweep that went on without them, the first of the runs that failed."""
    chosen = our_lines(ended)[-1:] or [line for line in ended.said.splitlines() if line.startswith("FAILED ")]
    return chosen[0] if chosen else ""


def our_lines(ended):
    return [line for line in ended.said.splitlines() if OURS.match(line)]


def problems_of(ended, fault, kept):
    """What is wrong with how a call ended."""
    line, lines = message_of(ended), ended.said.splitlines()
    if fault.workers_crash:
        lines = [said for said in lines if not said.endswith("/run.log)")]
    if ended.code < 0:
        yield f"ended by {signal.Signals(-ended.code).name}: {ended.last_line}"
    elif ended.code not in CODES:
        yield f"exit code {ended.code}: {ended.last_line}"
    elif ended.code and not line:
        yield f"exit code {ended.code}, and no line of basin says why: {ended.last_line}"
    elif ended.code and len(our_lines(ended)) > 1:
        yield f"exit code {ended.code} with more than one line: {ended.said.strip()}"
    elif ended.code and fault.names_file and kept not in line and not names_a_file(line):
        yield f"the line names no file: {line}"
    for words in CRASHES:
        if words in "\n".join(lines):
            yield f"{words} ... in {ended.said.strip()[-300:]}"


def names_a_file(line):
    """Whether a word of it has the form of a path."""
    return re.search(r"\w[/.]\w", OURS.sub("", line)) is not None
