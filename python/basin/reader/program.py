"""The program `basin`: where it is, and what it says can be named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

SECONDS = 60  # that it may take to answer


def find_program() -> str | None:
    """By BASIN_BINARY, `basin` on the PATH, next to the Python that runs (an environment that isn't on the PATH), or
    build/release/bin/basin of the checkout that this package is in."""
    installed, built = Path(sys.executable).parent / "basin", Path(__file__).parents[3] / "build" / "release" / "bin" / "basin"
    found = os.environ.get("BASIN_BINARY") or shutil.which("basin") or next(filter(Path.is_file, (installed, built)), None)
    return str(found) if found else None


@lru_cache
def list_registered(program: str, kind: str) -> list[dict] | None:
    """`basin inspect --list KIND --json`; None of a program that can't say, or says something else."""
    try:
        done = subprocess.run(
            [program, "inspect", "--list", kind, "--json"], capture_output=True, text=True, check=True, timeout=SECONDS
        )
        found = json.loads(done.stdout)["entries"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, list) and all(isinstance(entry, dict) for entry in found) else None
