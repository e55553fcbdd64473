"""The Python side of the operator protocol (docs/operator-protocol.md): memory shared with the engine, words, and answers to its
questions."""

from __future__ import annotations

import json
import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import numpy as np

from .problem import KINDS, MeasureError, Problem

PROTOCOL = 1
ALIGNMENT = 64  # bytes


class SharedVectors:
    """The six arrays of docs/operator-protocol.md in a memfd: memory without a name, which goes with its last process."""

    def __init__(self, size: int, dtype: str, examples: int) -> None:
        if not hasattr(os, "memfd_create"):
            raise MeasureError("measure() needs Linux, which has memory without a name (memfd)")
        import fcntl  # not on every system, on which the rest of the package works

        arrays = [(size, dtype)] * 3 + [(examples, "int64"), (examples, "float64"), (examples, "float64")]
        starts = [0]
        for count, kind in arrays:
            starts.append(starts[-1] + -(-count * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT)
        self.descriptor = os.memfd_create("basin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, starts[-1])
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            memory = mmap.mmap(self.descriptor, starts[-1])
        except BaseException:
            os.close(self.descriptor)
            raise
        views = [np.frombuffer(memory, kind, count, start) for (count, kind), start in zip(arrays, starts)]
        self.weights, self.direction, self.result, self.index, self.share, self.losses = views

    def close(self) -> None:
        os.close(self.descriptor)


class Words:
    """Lines of JSON to and from the engine. A thread says at intervals that this process is alive, however long an answer takes."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def say(self, what: dict[str, Any]) -> None:
        with self.lock:
            self.end.sendall(json.dumps(what).encode() + b"\n")

    def lines(self) -> Iterator[dict[str, Any]]:
        """Until the engine ends."""
        rest = b""
        while part := self.end.recv(1 << 16):
            *whole, rest = (rest + part).split(b"\n")
            yield from map(json.loads, whole)

    def keep_alive(self, seconds: float) -> None:
        def beat() -> None:
            while not self.stopped.wait(seconds):
                try:
                    self.say({"alive": True})
                except OSError:  # the engine has ended: whoever reads from it will see
                    return

        threading.Thread(target=beat, name="basin", daemon=True).start()

    def close(self) -> None:
        self.stopped.set()
        self.end.close()


def hello(problem: Problem) -> dict[str, Any]:
    """What the engine has to know before it asks."""
    for parameter in problem.parameters:
        if parameter.kind not in KINDS:
            raise MeasureError(f'{parameter.name}: no kind "{parameter.kind}"; known: {", ".join(KINDS)}')
    return {
        "hello": PROTOCOL,
        "parameters": [
            {"name": p.name, "shape": list(p.shape), "kind": p.kind} | ({"layer": p.layer} if p.layer else {})
            for p in problem.parameters
        ],
        "dtype": problem.dtype,
        "examples": problem.examples,
        "answers": problem.answers(),
        "loss_units": problem.loss_units,
        "by_example": bool(problem.by_example),
    }


class Answering:
    """Answers the engine's questions by a problem's methods. An exception of theirs passes through as it is."""

    def __init__(self, problem: Problem, vectors: SharedVectors) -> None:
        self.problem = problem
        self.vectors = vectors
        self.number = -1  # of the weights
        self.weights = np.empty(0)
        self.questions = 0

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if question["weights"] != self.number:
            self.weights = self.vectors.weights.copy()
            self.weights.flags.writeable = False
            self.number = question["weights"]
        self.questions += 1
        self.problem.place = self.vectors.result
        try:
            return {"answer": question["number"]} | self._of(question["ask"], question["batch"])
        finally:
            self.problem.place = None  # who calls a method between two questions gets an array of its own

    def _of(self, asked: str, count: int) -> dict[str, Any]:
        problem, w, v = self.problem, self.weights, self.vectors.direction
        index, share = self.vectors.index[:count], self.vectors.share[:count]
        if asked == "loss":
            return {"loss": _number(problem.loss(w))}
        if asked == "losses":
            return {"size": _put(problem.losses(w, index), self.vectors.losses[:count])}
        if asked in ("product", "batch_product"):
            found = problem.product(w, v) if asked == "product" else problem.batch_product(w, v, index, share)
            return {"size": _put(found, self.vectors.result)}
        loss, found = problem.gradient(w) if asked == "gradient" else problem.batch_gradient(w, index, share)
        return {"loss": _number(loss), "size": _put(found, self.vectors.result)}


def _number(loss: Any) -> float | None:
    """JSON has no NaN."""
    return float(loss) if isfinite(loss) else None


def _put(found: Any, place: np.ndarray) -> int:
    """How many numbers there are, which the engine compares with how many there should be."""
    flat = np.asarray(found).reshape(-1)
    if flat.size == place.size and found is not place:
        np.copyto(place, flat, casting="same_kind")
    return int(flat.size)


def answer_all(
    answering: Answering, words: Words, on_step: Callable[[dict[str, Any]], None], on_answer: Callable[[], None]
) -> list[dict[str, Any]]:
    """Until the engine has measured everything: a line for each probe. MeasureError with what it says instead."""
    for said in words.lines():
        if "ask" in said:
            words.say(answering.answer(said))
            on_answer()
        elif "step" in said:
            on_step(said)
        elif "welcome" in said:
            words.keep_alive(said["heartbeat"])
        elif "error" in said:
            raise MeasureError(said["error"])
        elif "done" in said:
            return said["done"]
    raise EOFError
