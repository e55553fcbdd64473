"""train(): one run of a study by the program, for whoever searches settings from Python."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .reader.program import find_program
from .reader.run import Run, load_run


class TrainError(Exception):
    """The program's own line on what it couldn't do. A run that diverged is a result, not an error."""


def train(
    study: str | Path,
    settings: Mapping[str, object] | None = None,
    out: str | Path | None = None,
    program: str | Path | None = None,
) -> Run:
    """Trains the study's run with `settings` (dotted keys, as of `--set`) and returns its record; a run that is done is read, one
    that was interrupted goes on.

    >>> run = basin.train("configs/tiny.toml", {"learning_rate": 0.05, "sgd.momentum": 0.8}, out="out/search")
    >>> run.status, run.summary["validation_loss"]

    `program` is `basin`'s path: by default the environment variable BASIN_BINARY, `basin` on the PATH, or build/release/bin/basin.
    """
    command = [_program(program), "train", str(study)]
    command += ["--out", str(out)] if out is not None else []
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={toml(value)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TrainError((done.stderr.strip().splitlines() or [f"{command[0]}: exit code {done.returncode}"])[-1])
    said = re.match(r"(.*/runs/[0-9a-f]{12}) ", done.stdout.strip().splitlines()[-1])
    if not said:
        raise TrainError(f"{command[0]} train named no run: {done.stdout.strip()[-200:]}")
    return load_run(said[1])


def toml(value: Any) -> str:
    """A setting as TOML: numpy's numbers as Python's, floats with every digit."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _program(program: str | Path | None) -> str:
    found = program or find_program()
    if found is None:
        raise TrainError("no program `basin`: name it as `program`, in BASIN_BINARY, or put it on the PATH (make build makes it)")
    return str(found)
