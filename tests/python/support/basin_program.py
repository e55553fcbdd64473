"""The program under test, called from outside as a user would: the file that BASIN_BINARY names."""

import functools
import os
import subprocess

import pytest

from fork_client import ForkServer

BASIN = os.environ.get("BASIN_BINARY")
needs_program = pytest.mark.skipif(not BASIN, reason="BASIN_BINARY names the program under test")


def surroundings(**more):
    """One thread, as a test runs next to others."""
    return dict(os.environ, OMP_NUM_THREADS="1", **more)


@functools.cache
def fork_server():
    """None where BASIN_FORK_SERVER names no library."""
    library = os.environ.get("BASIN_FORK_SERVER")
    return ForkServer(BASIN, library, surroundings()) if library else None


def program(*arguments, cwd=None, timeout=None, **environment):
    words, variables = [BASIN, *map(str, arguments)], surroundings(**environment)
    if fork_server():
        return fork_server().run(words, variables, cwd, timeout)
    return subprocess.run(words, env=variables, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=timeout)


def output(*arguments):
    """What a call that succeeds prints."""
    done = program(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(path, text):
    path.write_text(text)
    return path
