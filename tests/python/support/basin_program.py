"""The program under test, called from outside as a user would: the file that BASIN_BINARY names."""

import os
import subprocess

import pytest

BASIN = os.environ.get("BASIN_BINARY")
needs_program = pytest.mark.skipif(not BASIN, reason="BASIN_BINARY names the program under test")


def surroundings(**more):
    """One thread, as a test runs next to others."""
    return dict(os.environ, OMP_NUM_THREADS="1", **more)


def program(*arguments, cwd=None, timeout=None, **environment):
    return subprocess.run(
        [BASIN, *map(str, arguments)],
        env=surroundings(**environment),
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )


def output(*arguments):
    """What a call that succeeds prints."""
    done = program(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(path, text):
    path.write_text(text)
    return path
