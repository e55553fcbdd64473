"""The commands that write, each with what it needs beforehand, and how what it wrote is compared."""

import os
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import NamedTuple

import h5py

from calls import Call
from compare import differences, is_of_another_trial, other_shapes, unlike_arrivals
from forecast_studies import SMALL, TEST
from number_cases import BRANCHES, CHEAP, GRID, TUNE, Program, sets

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS, BOUND, ARRIVALS = 2, 1, 1500  # of the run with real workers
OFTEN = ("--set", "checkpoint_seconds=0.1")  # so that most kills have a state to go on from
SHOWN = 10  # differences of a trial
LONG = "updates=1000"  # one or two seconds of this network
GRID_OF_FOUR = GRID + 'optimizer = ["sgd", "lamb"]\nseed = [1, 2]\n'


class Case(NamedTuple):
    """`command` is the arguments of the program, in which {run} stands for the folder of the first run."""

    prepare: Callable[[Program], None]
    command: tuple[str, ...]
    seconds: float  # of an undisturbed call, roughly, on two cores: for plans alone
    again: tuple[str, ...] = ()  # what the command needs besides, once something has failed
    kept: str = "\0"  # part of the message by which it refuses to replace a result, which is no failure of a second call
    compare: Callable = differences
    module: str = ""  # of Python, in place of the program


def nothing(basin: Program):
    pass


def grid(basin: Program):
    basin.write("study.toml", GRID_OF_FOUR)


def branched(basin: Program):
    basin.write("study.toml", BRANCHES.replace("u000004", "u000200"))


def tuned(basin: Program):
    tiny = (basin.folder / "tiny.toml").read_text()
    basin.write("study.toml", tiny.replace("\nlearning_rate = 0.05\n", '\nlearning_rate = "tuned"\n') + TUNE)


def trained(basin: Program):
    grid(basin)
    basin("train", "study.toml", "--out", "out", *sets("updates=40"))


def swept(basin: Program):
    """A sweep of many short runs that is not collected."""
    basin.write("study.toml", GRID + f'optimizer = ["sgd", "lamb"]\nseed = {list(range(1, 9))}\n')
    basin("sweep", "study.toml", "--out", "out", "--jobs", 2)
    for name in ("sweep.h5", "table.md"):
        (basin.folder / "out" / name).unlink()


def swept_shortly(basin: Program):
    grid(basin)
    basin("sweep", "study.toml", "--out", "out", "--jobs", 2)


def lost_record(basin: Program):
    trained(basin)
    (first_run(basin.folder) / "run.h5").unlink()


def edited_record(basin: Program):
    trained(basin)
    with h5py.File(first_run(basin.folder) / "run.h5", "r+") as file:
        file.attrs["note"] = "edited on purpose"


def a_text(basin: Program):
    basin.write("input.txt", "to be or not to be, that is the question\n" * 20_000)


def small_runs(basin: Program):
    basin.write("test.toml", TEST)
    basin("sweep", basin.write("small.toml", SMALL), "--out", "out", "--jobs", 2)


def first_run(folder: pathlib.Path) -> pathlib.Path:
    return min((folder / "out/runs").iterdir())


SWEEP = ("sweep", "study.toml", "--out", "out", "--jobs", "2", *OFTEN)
TRAIN = ("train", "study.toml", "--out", "out", *sets(LONG), *OFTEN)
STALE = sets(f'parallel.mode="ssp" parallel.workers={WORKERS} parallel.bound={BOUND} parallel.delays="real" updates={ARRIVALS}')
RETRY = ("--retry", "failed")
ONLY = ("--only", CHEAP, "--subset", "48")
PLANE = ("--kind", "plane", "--jobs", "2", *sets("plane.alpha_points=25 plane.beta_points=25"))

CASES = {
    "train": Case(grid, TRAIN, 3),
    "two-ranks": Case(grid, (*TRAIN, *sets("ghost_batch=16"), "--ranks", "2"), 6),
    "ssp": Case(
        grid,
        ("train", "study.toml", "--out", "out", *OFTEN, *STALE, "--ranks", str(WORKERS + 1)),
        6,
        compare=unlike_arrivals(WORKERS, BOUND, ARRIVALS),
    ),
    "sweep": Case(grid, (*SWEEP, *sets(LONG)), 8, RETRY),
    "branches": Case(branched, (*SWEEP, *sets("updates=400 checkpoint_every=200")), 10, RETRY),
    "slurm-array": Case(grid, (*SWEEP[:4], "--jobs", "1", *OFTEN, *sets(LONG)), 12, RETRY),
    "tune": Case(tuned, ("tune", *SWEEP[1:], *sets("batch_size=128")), 6, RETRY),
    "probe": Case(trained, ("probe", "{run}", *ONLY, *sets("runtime.threads=1")), 1),
    "landscape": Case(trained, ("landscape", "{run}", *PLANE), 2, RETRY),
    "collect": Case(swept, ("collect", "out"), 1),
    "audit": Case(trained, ("audit", "{run}/ckpt/end.h5", *ONLY), 4, ("--force",), kept="an audit exists already"),
    "recover": Case(lost_record, ("recover", "{run}"), 0.5),
    "seal": Case(edited_record, ("seal", "{run}/run.h5"), 0.5),
    "init": Case(nothing, ("init", "study.toml"), 0.5, kept="study.toml: exists already"),
    "import": Case(
        a_text, ("data", "import", "tinyshakespeare", "--path", "input.txt", "--out", "text"), 0.5, kept="text: it exists already"
    ),
    "forecast": Case(
        small_runs, ("forecast", "out", "--test", "test.toml", "--prediction", "p.toml", "--count", "2"), 4, kept="p.toml"
    ),
    "scaling": Case(
        swept_shortly,
        ("scaling", "out", "--ranks", "2", "--rounds", "1", "--seconds", "0.05", *sets("ghost_batch=16")),
        5,
        compare=other_shapes,
    ),
    "report": Case(swept_shortly, ("out",), 10, module="basin.report"),
    "measure": Case(nothing, (), 4, module="measured"),
}
# The rest writes too little, or in one stroke, for a kill at a random moment to meet it at work.
KILLED = ("sweep", "tune", "branches", "landscape", "collect", "audit", "two-ranks", "ssp")
# An array's tasks are `sweep` once more, on machines of which none is at fault.
FAULTED = tuple(name for name in CASES if name != "slurm-array")


class Prepared:
    """What all trials of a case begin from, and what an undisturbed call makes of it. Both are kept in the campaign's folder."""

    def __init__(self, name, binary, folder):
        self.name, self.case, self.binary, self.shared = name, CASES[name], binary, folder
        self.inputs, self.reference, done = (folder / name / part for part in ("inputs", "reference", "seconds"))
        if not done.exists():
            shutil.rmtree(folder / name, ignore_errors=True)
            self.case.prepare(Program(binary, self.inputs, ROOT / "configs"))
            shutil.copytree(self.inputs, self.reference)
            ended = self.call(self.reference).wait()
            if ended.code != 0:
                raise RuntimeError(f"{name}: an undisturbed call ended with {ended.code}: {ended.last_line}")
            done.write_text(str(ended.seconds))
        self.seconds = float(done.read_text())

    def call(self, folder, more=(), **how):
        words = [word.format(run=self._run(folder)) if "{run}" in word else word for word in self.case.command]
        program = [sys.executable, "-m", self.case.module] if self.case.module else [self.binary]
        path = os.pathsep.join(str(ROOT / folder) for folder in ("python", "tests/faults", "tests/python/support"))
        environment = {"PYTHONPATH": path, "BASIN_BINARY": str(self.binary), **how.pop("environment", {})}
        return Call([*program, *words, *more], folder, environment=environment, **how)

    def _run(self, folder):
        return first_run(folder).relative_to(folder)

    def differences(self, folder, runs_failed=False):
        """A line each, at most SHOWN; none are wanted. `runs_failed`: some may have for a while, so that others were tried."""
        lines = self.case.compare(self.reference, folder)
        return [line for line in lines if not (runs_failed and is_of_another_trial(line))][:SHOWN]
