"""Files without a seal, of older versions or other programs: a child process reads them first, since damage in one can crash libhdf5 or
keep it for ever."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

from . import seal
from .fault import ReadError

CHILD = Path(__file__).with_name("unsealed_child.py")

# Files that a child could read: one that is opened again and again is read ahead once.
_sound: set[tuple] = set()


def survey(path: str | Path) -> None:
    """Reads all of the HDF5 file in a child process, within a time limit; a ReadError where that fails."""
    path = Path(path)
    about = path.stat()
    key = seal.identity(path, about)
    if key in _sound:
        return
    try:
        fault = _surveyor(os.getpid()).fault_of(path, seconds_for(about.st_size))
    except OSError as error:
        raise ReadError(
            f"{path}: it has no seal, and no child process could read it first ({error}); verify=False opens it directly"
        ) from None
    if fault:
        raise ReadError(f"{path}: {fault}")
    _sound.add(key)


def seconds_for(size: int) -> float:
    return 10 + size / 1e7


@cache
def _surveyor(pid: int) -> Surveyor:
    """One for each process: a forked copy of this one would otherwise take the answers that are meant for its parent."""
    return Surveyor()


class Surveyor:
    """A child process that reads file after file. It starts with the first one, and anew after a file that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._stop)

    def fault_of(self, path: Path, seconds: float) -> str:
        """What is wrong with the file; empty where nothing is. OSError where no child could be asked."""
        with self._lock:
            try:
                process = self._running()
                answer = _ask(process, [os.path.abspath(path), seconds])
            except BaseException:  # Ctrl-C say: the next file would get this one's answer
                self._stop()
                raise
            return json.loads(answer) if answer else _last_word(process.wait(), seconds)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            # A session of its own, so that Ctrl-C is for this process alone. Without buffers nothing is left to be written at the end.
            self._process = subprocess.Popen(
                [sys.executable, "-P", CHILD],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if not _ask(self._process, None):
                raise OSError(f"{sys.executable} {CHILD} ended with exit code {self._process.wait()}")
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            with self._process:
                self._process.kill()


def _ask(process: subprocess.Popen[bytes], question: object) -> bytes:
    """A line of JSON; empty where the child ended without one."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(question).encode() + b"\n")
    return process.stdout.readline()


def _last_word(code: int, seconds: float) -> str:
    if code == -signal.SIGALRM:
        return f"damaged: not read within {seconds:.3g} s"
    if code < 0:
        return f"damaged: it crashes HDF5's library ({signal.strsignal(-code)})"
    return f"the process that was reading it stopped ({code})"
