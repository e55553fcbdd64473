"""One call of the program: in a session of its own, watched while it runs, and killed with all that it started."""

import atexit
import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import weakref
from typing import NamedTuple

from number_cases import ENVIRONMENT

LONGEST_CALL = 600  # seconds: something hangs


class Ended(NamedTuple):
    code: int  # of the command; -N: signal N ended it
    said: str  # on stderr
    seconds: float

    @property
    def last_line(self):
        return (self.said.strip().splitlines() or ["(silent)"])[-1]


class Call:
    """The program at work. Workers have process groups of their own but stay in the session, by which all of them are found."""

    def __init__(self, command, folder, limits=(), environment=None):
        """`limits`: pairs of a resource and how much of it. stderr goes to a file elsewhere, for the folder's disk may be full."""
        self._began = time.monotonic()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  read until the call is forgotten
        self._process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=ENVIRONMENT | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
            preexec_fn=lambda: [resource.setrlimit(kind, (most, most)) for kind, most in limits] and None,
        )
        self.pid = self._process.pid
        CALLS.add(self)

    def alive(self):
        return self._process.poll() is None

    def processes(self):
        """All of the session, as PIDs."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == self.pid]

    def said(self):
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def until_loaded(self):
        """Waits until main() is at work, whose first act is to handle SIGINT; the seconds since the start. At once for what has ended."""
        while self.alive() and not _handles(self.pid, signal.SIGINT):
            time.sleep(0.001)
        return time.monotonic() - self._began

    def kill(self):
        """SIGKILL to all at once, until none is left: a process may be born meanwhile."""
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
            time.sleep(0.001)

    def kill_after(self, seconds):
        """Whether it still ran then."""
        try:
            self._process.wait(max(0.0, seconds - (time.monotonic() - self._began)))
        except subprocess.TimeoutExpired:
            self.kill()
        return self._process.wait() == -signal.SIGKILL

    def wait(self, at_most=LONGEST_CALL):
        """How it ended. What hangs is killed, and counts as ended by SIGKILL."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(at_most)
        hung = self.alive()
        self.kill()
        said = self.said() + (f"\nno end within {at_most} s" if hung else "")
        return Ended(self._process.wait(), said, time.monotonic() - self._began)


CALLS = weakref.WeakSet()
# A campaign that is interrupted leaves nothing at work.
atexit.register(lambda: [call.kill() for call in CALLS])


def _session(pid):
    with contextlib.suppress(OSError):
        # The name, in brackets, may have blanks; the session is the fourth field behind it.
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[3]) if fields[0] != "Z" else None
    return None


def _handles(pid, what):
    return bool(int(status_field(pid, "SigCgt") or "0", 16) >> (what - 1) & 1)


def status_field(pid, name):
    """A field of the process's /proc/PID/status; None for one that is gone."""
    with contextlib.suppress(OSError):
        found = re.search(rf"^{name}:\s*(.*)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return found and found[1]
    return None
