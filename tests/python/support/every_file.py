"""A folder with a file of every kind that the program reads, made by the program itself, and how it may refuse one that is bad."""

import pathlib
import shutil
import subprocess
import time

import basin_program
from basin.analysis.verdict_tables import verdicts_of
from basin.pages.verdict_files import write_verdicts
from basin.reader.sweep import open_sweep
from basin_program import BASIN, surroundings

ROOT = pathlib.Path(__file__).parents[3]

TINY = """
[data]
set = "synthetic"
train_examples = 64
test_examples = 16
[mlp]
hidden = [4]
"""
TUNED = f"""
model = "mlp"
epochs = 1
learning_rate = "tuned"
{TINY}
[tune]
trials = 2
[[tune.range]]
key = "learning_rate"
low = 0.01
high = 0.1
"""
ASKED = f"""
model = "mlp"
epochs = 1
learning_rate = 0.05
{TINY}
[sweep]
optimizer = ["sgd", "lamb"]
seed = [1, 2]
[[contrast]]
name = "drop"
base = {{ optimizer = "sgd" }}
arm = {{ optimizer = "lamb" }}
outcome = "test_acc"
[[hypothesis]]
name = "less"
claim = "LAMB generalises worse"
contrasts = ["drop"]
expect = "less"
margin = 2
"""


# Of OUT/planes/end.h5, slow enough to be killed after the first of its three tiles.
PLANE = (
    *("landscape", "{out}/planes/end.h5", "--kind", "plane", "--out", "{out}/planes/plane.h5"),
    *("--set", "plane.alpha_points=5", "--set", "plane.beta_points=3", "--set", "landscape.subset=0"),
    *("--set", "landscape.micro_batch=1", "--set", "runtime.progress=false"),
)


def program(*words, **environment):
    return basin_program.program(*words, timeout=60, **environment)


def make_every_file(out):
    """In OUT a sweep with probes, a surface, an audit and times of ranks, and a prediction. In OUT/tuned a tuning, in OUT/chosen the runs
    whose rates it chose, in OUT/asked a sweep with verdicts, in OUT/planes the tiles of a surface that was killed."""
    _succeed("sweep", ROOT / "configs/tiny.toml", "--out", out, "--set", "batch_size=128", "--set", 'optimizer="sgd"')
    run = first_run(out)
    _succeed("landscape", run, "--kind", "line", "--set", "line.points=3", "--set", "line.directions=1")
    _succeed("audit", run / "ckpt/end.h5", "--only", "weight_norms")
    _succeed("scaling", out, "--ranks", 2, "--rounds", 1, "--seconds", 0.01)
    (out / "tuned.toml").write_text(TUNED)
    _succeed("tune", out / "tuned.toml", "--out", out / "tuned")
    _succeed("sweep", out / "tuned.toml", "--out", out / "chosen", "--selection", out / "tuned/selection.toml")
    (out / "asked.toml").write_text(ASKED)
    _succeed("sweep", out / "asked.toml", "--out", out / "asked")
    write_verdicts(out / "asked", verdicts_of(open_sweep(out / "asked")))
    shutil.copy(ROOT / "tests/fuzz/corpus/prediction/whole.toml", out / "prediction.toml")
    (out / "planes").mkdir()
    shutil.copy(run / "ckpt/end.h5", out / "planes")
    _leave_tiles(out)


def _leave_tiles(out):
    words = [word.format(out=out) for word in PLANE]
    process = subprocess.Popen([BASIN, *words], env=surroundings(), stderr=subprocess.DEVNULL)
    while process.poll() is None and not (out / "planes/plane.h5.tiles/000000.h5").exists():
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not (out / "planes/plane.h5").exists(), "the surface was finished before it could be killed"


def _succeed(*words):
    done = program(*words)
    assert done.returncode == 0, done.stderr


def first_run(out):
    return next((out / "runs").iterdir())


def is_one_line(done):
    """Taken, or refused in one line of ours and by an exit code that says why; progress and warnings may stand before it."""
    before = ("probing ", "plane: ", "warning: ", "note: ")
    others = [line for line in done.stderr.splitlines() if not line.startswith(before)]
    refused = len(others) == 1 and others[0].startswith("basin: ") and "std::" not in others[0]
    return done.returncode == 0 or (done.returncode in (2, 3, 4) and refused)
