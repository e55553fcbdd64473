"""Which trials a campaign has, and what each is expected to take."""

import contextlib
import dataclasses
import functools
import math
import pathlib
import shutil
import time
from collections.abc import Callable

import judge
import kills
import long_sweep
import slurm_cluster
import slurm_kills
import small_disk
from cases import CASES, FAULTED, KILLED, Prepared
from faults import FAULTS

PARTS = ("kills", "slurm", *FAULTS, "cells")
SLURM = 60  # seconds until a lost node is missed and the array goes on


@dataclasses.dataclass(frozen=True)
class Settings:
    binary: pathlib.Path
    out: pathlib.Path
    parts: tuple[str, ...] = PARTS
    cases: tuple[str, ...] | None = None
    kills: int = 200
    seed: int = 1
    cells: int = 2_000
    cell_seconds: float = 1.0

    def of(self, part, names):
        """The cases of a part that are asked for."""
        return [name for name in names if part in self.parts and (not self.cases or name in self.cases)]


@dataclasses.dataclass(frozen=True)
class Job:
    """One trial: a function of the folder that it works in, which returns its row."""

    part: str
    case: str
    trial: int
    seconds: float
    run: Callable
    skipped: str | None = None  # why it can't be made here

    @property
    def key(self):
        return self.part, self.case, self.trial

    def row(self, trials):
        """With what was found, or why nothing was tested. The folder of what went well is removed."""
        key = dict(zip(("part", "case", "trial"), self.key))
        if self.skipped:
            return {**key, "skipped": self.skipped, "seconds": 0}
        folder, began = trials / "-".join(map(str, self.key)), time.monotonic()
        try:
            found = self.run(folder)
        except Exception as error:
            found = {"problems": [f"{type(error).__name__}: {error}"]}
        if found["problems"]:
            found["folder"] = str(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return {**key, **found, "seconds": round(time.monotonic() - began, 1)}


@contextlib.contextmanager
def plan(settings: Settings):
    """The jobs, in order; what several of them need is made when the first one needs it, and ended here."""
    prepared = functools.cache(lambda name: Prepared(name, settings.binary, settings.out / "prepared"))
    with slurm_kills.Cluster(settings.out / "slurm") as cluster:
        yield [*kill_jobs(settings, prepared, cluster), *fault_jobs(settings, prepared), *cell_jobs(settings)]


def kill_jobs(settings, prepared, cluster):
    """Every case has its share of the kills, those of a Slurm array one in a trial."""
    share = math.ceil(settings.kills / (len(KILLED) + 1))
    for name in settings.of("kills", KILLED):
        for number in range(math.ceil(share / kills.IN_A_ROW)):
            count = min(kills.IN_A_ROW, share - number * kills.IN_A_ROW)

            def kill(folder, name=name, number=number, count=count):
                return kills.trial(prepared(name), folder, f"{settings.seed} {name} {number}", count)

            yield Job("kills", name, number, (0.6 * count + 2) * CASES[name].seconds, kill)
    reason = slurm_cluster.why_not()
    for name in settings.of("slurm", [slurm_kills.NAME]):
        for number in range(share):

            def kill_in_slurm(folder, name=name, number=number):
                return slurm_kills.trial(prepared(name), folder, f"{settings.seed} {name} {number}", cluster.get())

            yield Job("slurm", name, number, SLURM + 2 * CASES[name].seconds, kill_in_slurm, reason)


def fault_jobs(settings, prepared):
    no_disk = small_disk.why_not()
    for fault in FAULTS:
        for name in settings.of(fault, [name for name in FAULTED if name not in FAULTS[fault].not_on]):

            def fail(folder, fault=fault, name=name):
                return judge.trial(fault, prepared(name), folder)

            yield Job(fault, name, 0, 1 + 3 * CASES[name].seconds, fail, no_disk if FAULTS[fault].needs_disk else None)


def cell_jobs(settings):
    if "cells" in settings.parts and not settings.cases:

        def sweep(folder):
            return long_sweep.trial(settings.binary, folder, settings.cells, settings.cell_seconds)

        expected = settings.cells * settings.cell_seconds / long_sweep.JOBS
        yield Job("cells", f"{settings.cells}x{settings.cell_seconds:g}s", 0, expected, sweep)
