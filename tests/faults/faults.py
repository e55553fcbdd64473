"""What may be wrong with a machine while a command writes. Each fault is a function of a prepared case and a folder with its inputs.

It returns how the calls ended that it made, and the folder in which the result is. What they may say is in judge.py.
"""

import contextlib
import functools
import pathlib
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

from kills import begin
from small_disk import SmallDisk

# Limits on open files, three of which are open at the start: from some seven on all commands work but ranks, two of which need 36.
HANDLES = (4, 5, 6, 36)
MEMORY = (0, 0.1, 0.3, 0.6)  # shares of a command after which its memory is limited
BACK = 86_400  # seconds by which a clock is set back
PYTHON = ("report", "measure")  # whose interpreter says in its own way what it lacks while it starts


class Fault(NamedTuple):
    run: Callable
    needs_disk: bool = False  # a tmpfs of its own
    names_file: bool = False  # the message must
    workers_crash: bool = False  # oneDNN's code uses memory that it did not get; a sweep has to name the run
    not_on: tuple[str, ...] = ()  # commands


def full_disk(prepared, folder):
    """Room for half of what the command writes."""
    disk = SmallDisk(folder)
    disk.resize(disk.used() + pages_of(prepared.reference, prepared.inputs) * 4096 // 2)
    ended = prepared.call(folder).wait()
    disk.resize()
    return [ended], folder


def read_only(prepared, folder):
    disk = SmallDisk(folder)
    disk.read_only(True)
    ended = prepared.call(folder).wait()
    disk.read_only(False)
    return [ended], folder


def few_handles(most, prepared, folder):
    return [prepared.call(folder, limits=[(resource.RLIMIT_NOFILE, most)]).wait()], folder


def no_more_memory(share, prepared, folder):
    """From that share of the command on, no process has more address space than it has then, nor do those that it starts.

    A limit from the start would meet nothing: loading the libraries takes more than any of these commands later. Nor may it come
    while they are loaded, of which the program knows nothing.
    """
    call = prepared.call(folder)
    loading = call.until_loaded()
    time.sleep(share * max(0.0, prepared.seconds - loading))
    for pid in call.processes():
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            size = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
            resource.prlimit(pid, resource.RLIMIT_AS, (size, size))
    return [call.wait()], folder


def clock_back_while_it_runs(prepared, folder):
    at = int(time.time() + prepared.seconds / 2)
    return [prepared.call(folder, environment=clock_back(prepared, at)).wait()], folder


def clock_back_after_a_kill(prepared, folder):
    kill_half_way(prepared, folder)
    return [prepared.call(folder, environment=clock_back(prepared, 0)).wait()], folder


def two_at_once(prepared, folder):
    """The second begins while the first is at work: one may refuse, and both together make the result."""
    first = prepared.call(folder)
    time.sleep(prepared.seconds / 4)
    second = prepared.call(folder)
    return [first.wait(), second.wait()], folder


def moved_after_a_kill(prepared, folder):
    kill_half_way(prepared, folder)
    elsewhere = folder.with_name(folder.name + "-moved")
    shutil.rmtree(elsewhere, ignore_errors=True)
    folder.rename(elsewhere)
    return [prepared.call(elsewhere).wait()], elsewhere


FAULTS = {
    "disk": Fault(full_disk, needs_disk=True, names_file=True),
    "read-only": Fault(read_only, needs_disk=True, names_file=True),
    **{f"handles-{most}": Fault(functools.partial(few_handles, most), not_on=PYTHON) for most in HANDLES},
    **{
        f"memory-{share:g}": Fault(functools.partial(no_more_memory, share), workers_crash=True, not_on=PYTHON)
        for share in MEMORY
    },
    "clock-running": Fault(clock_back_while_it_runs),
    "clock-resumed": Fault(clock_back_after_a_kill),
    "two-at-once": Fault(two_at_once),
    "moved": Fault(moved_after_a_kill),
}


def kill_half_way(prepared, folder):
    """Earlier where the call has ended by then."""
    for share in (1 / 2, 1 / 4, 1 / 8):
        if prepared.call(folder).kill_after(share * prepared.seconds):
            return
        begin(prepared, folder)
    raise RuntimeError("no kill met the command at work")


def pages_of(after, before):
    """Pages of a disk that `after` takes and `before` doesn't."""
    return sum(
        -(-path.stat().st_size // 4096)
        for path in after.rglob("*")
        if path.is_file() and not (before / path.relative_to(after)).exists()
    )


def clock_back(prepared, at):
    """The environment of a call whose clock is set back at that second. The library is compiled once for a campaign."""
    library = prepared.shared / "clock_back.so"
    if not library.exists():
        source = pathlib.Path(__file__).with_name("clock_back.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_BACK_AT": str(at), "CLOCK_BACK_BY": str(BACK)}
