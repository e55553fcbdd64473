"""measure() and landscape(): Basin's probes and landscapes on a problem that Python code answers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from .answering import Answering, SharedVectors, Words, answer_all, hello
from .problem import MeasureError, Problem
from .reader.landscape import Surface, surface
from .reader.probe import read_probe
from .reader.program import find_program
from .training import toml

COLUMNS = [
    "probe", "quantity", "entry", "index", "value", "uncertainty", "uncertainty_kind", "ci_low", "ci_high", "status", "message", "units",
    "definition",
]  # fmt: skip
PATIENCE = 10  # seconds in which the engine has to end by itself


def measure(
    problem: Problem,
    probes: str | Sequence[str] = (),
    *,
    out: str | Path | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 1,
    silence: float = 60.0,
    progress: bool = True,
    program: str | Path | None = None,
) -> pd.DataFrame:
    """Measures `problem` (a Problem, torch_problem(...), transformers_problem(...) or jax_problem(...)) at its own weights by the probes
    named, all of them if none is, and returns a row for each number: with its uncertainty, what kind that is, and its status.

    >>> basin.measure(problem, ["top_eigenvalues", "noise_scale"], options={"top_eigenvalues.count": 5})

    The probes run in the program `basin`, a child process that asks this one for losses, gradients and products at weights of its
    choice. Whatever happens, an exception in the problem's code and Ctrl-C included, `problem.restore()` puts the weights back, and the
    exception is raised as it is. A probe that needs what the problem can't answer has the status `unavailable` and says what is missing.
    MeasureError: one line about an answer of the wrong size, NaN, a loss that changes, products that aren't a Hessian's, ...

    `out` gets the files that `basin probe` writes, probes/end.NAME.h5, for read_probe(). `options` are settings of probes with dotted
    keys, as of `--set`; `runtime.threads` too. `seed` is of what probes draw. `silence`: seconds after which the engine takes a process
    without a sign of life for hung; a thread gives one however long an answer takes. `program` as in train().
    """
    arguments = ["--only", probes if isinstance(probes, str) else ",".join(probes)] if probes else []
    with _folder(out) as folder:
        return _table(_asked_for(problem, arguments, folder, options, seed, silence, progress, program))


def landscape(
    problem: Problem,
    kind: str = "plane",
    *,
    out: str | Path | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 1,
    silence: float = 60.0,
    progress: bool = True,
    program: str | Path | None = None,
) -> Surface:
    """The loss of `problem` around its own weights, along directions drawn at random (docs/landscape.md).

    >>> plane = basin.landscape(problem, options={"plane.alpha_points": 15, "plane.beta_points": 15})
    >>> plane.plot["train_loss"]   # [beta, alpha]

    One loss per point (625 by default), and the weights are put back as measure() does. `out` gets the file that `basin landscape` writes,
    landscape/KIND.h5, for surface(). `seed` is of the directions; all else as in measure().
    """
    with _folder(out) as folder:
        said = _asked_for(problem, ["--landscape", kind], folder, options, seed, silence, progress, program)
        return surface(said[0]["file"])


@contextmanager
def _folder(out: str | Path | None) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as temporary:
        yield str(out if out is not None else temporary)


def _asked_for(
    problem: Problem, arguments: list[str], folder: str, options: Mapping[str, object] | None, seed: int, silence: float,
    progress: bool, program: str | Path | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """What the engine says that it has written."""
    found = str(program or find_program() or "")
    if not found:
        raise MeasureError(
            "no program `basin`: name it as `program`, in BASIN_BINARY, or put it on the PATH (make build makes it)"
        )
    command = [found, "measure", "--out", folder, "--seed", str(seed), "--silence", str(silence), *arguments]
    for key, value in (options or {}).items():
        command += ["--set", f"{key}={toml(value)}"]
    try:
        return _measured(problem, command, Progress(progress))
    finally:
        problem.restore()


def _measured(problem: Problem, command: list[str], progress: Progress) -> list[dict[str, Any]]:
    weights = np.asarray(problem.weights()).reshape(-1)
    size = sum(int(np.prod(p.shape)) for p in problem.parameters)
    if weights.size != size:
        raise MeasureError(f"weights() has {weights.size} numbers; the parameters have {size}")
    vectors = SharedVectors(size, problem.dtype, problem.examples)
    try:
        np.copyto(vectors.weights, weights, casting="same_kind")
        with tempfile.TemporaryFile() as log, engine(command, vectors.descriptor, log) as (words, child), progress:
            answering = Answering(problem, vectors)
            try:
                words.say(hello(problem))
                return answer_all(answering, words, progress.step, progress.answered)
            except (EOFError, BrokenPipeError, ConnectionResetError):
                raise MeasureError(_last_words(child, log)) from None
    finally:
        vectors.close()


@contextmanager
def engine(command: list[str], memory: int, log: IO[bytes] | None) -> Iterator[tuple[Words, subprocess.Popen]]:
    """The program, which ends with this block, and where this process is killed by the end of its socket. In a session of its own, so
    that Ctrl-C comes to this process alone."""
    ours, theirs = socket.socketpair()
    words = Words(ours)
    try:
        with theirs:
            child = subprocess.Popen(
                [*command, "--words", str(theirs.fileno()), "--memory", str(memory)],
                pass_fds=[theirs.fileno(), memory], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                # Threads of the engine that wait for work leave the cores to whoever answers.
                env={"OMP_WAIT_POLICY": "passive", **os.environ},
            )  # fmt: skip
    except BaseException:
        words.close()
        raise
    try:
        yield words, child
        child.wait()  # it has said that it is done
    finally:
        words.close()
        child.kill()  # the files that it has written are whole
        child.wait()


def _last_words(child: subprocess.Popen, log: IO[bytes]) -> str:
    """What an engine printed that ended before it could say why over the socket."""
    try:
        code = child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return "the program closed its socket"
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("basin: ") if lines else f"the program ended with code {code}"


class Progress:
    """A line on stderr: redrawn in place on a terminal, else one for each probe or landscape."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.terminal = sys.stderr.isatty()
        self.text = "checking the problem"
        self.answers = 0
        self.began = self.drawn = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def step(self, said: dict[str, Any]) -> None:
        step, of = said["step"], said["of"]
        if "probe" in said:
            return self._draw(f"measuring {step}/{of}: {said['probe']}")
        if step == 1:
            self.began = time.monotonic()
            return self._draw(f"measuring a {said['point_of']} of {of} points")
        if self.terminal and time.monotonic() > self.drawn + 0.2:
            left = (time.monotonic() - self.began) * (of - step + 1) / (step - 1)
            self._draw(f"measuring a {said['point_of']}: point {step}/{of}, about {left:.0f} s left")

    def answered(self) -> None:
        self.answers += 1
        if self.terminal and time.monotonic() > self.drawn + 0.2:
            self._draw(self.text)

    def _draw(self, text: str) -> None:
        self.text = text
        self.drawn = time.monotonic()
        if not self.shown:
            return
        if self.terminal:
            print(f"\r\033[K{text}, {self.answers} answers", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)


def _table(results: list[dict[str, Any]]) -> pd.DataFrame:
    """The probes' tables; a probe without a number has a row that says why."""
    tables = []
    for said in results:
        result = read_probe(said["file"])
        table = result.table
        if table.empty:
            table = pd.DataFrame([{"probe": result.probe, "value": np.nan, "uncertainty": np.nan, "status": result.status}])
        tables.append(table.assign(message=result.message))
    return pd.concat(tables, ignore_index=True).reindex(columns=COLUMNS)
