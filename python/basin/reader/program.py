"""The program `basin`: where it is, what it says can be named, and what its options are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

SECONDS = 60  # that it may take to answer
# Options outside a run's identity where no program says which they are: where a file lies (its content's hash counts), which setting
# another run has (its run_id counts), and how a run executes. python/tests/reader/test_names.py holds them against the program.
EXECUTION = (
    "checkpoint_seconds", "data.path", "branch.path", "branch.setting", "parallel.order_path", "parallel.order_setting", "torchscript.file",
    "*.trust_path", "*.trust_setting", "runtime.*", "probes.*",
)  # fmt: skip


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


def known_options() -> dict[str, dict]:
    """What the program has to say about each option, by its key: `default`, `role` and more. Empty without a program that can say."""
    program = find_program()
    return _options_of(program) if program else {}


@lru_cache
def _options_of(program: str) -> dict[str, dict]:
    return {str(entry["key"]): entry for entry in list_registered(program, "options") or [] if "key" in entry}


def in_identity(option: str) -> bool:
    """Whether a run with another value of it is another run."""
    role = known_options().get(option, {}).get("role")
    return role == "identity" if role else not any(fnmatch(option, pattern) for pattern in EXECUTION)
