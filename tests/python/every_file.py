"""A folder with a file of every kind that the program reads, made by the program itself, and how it may refuse one that is bad."""

import os
import pathlib
import shutil
import subprocess

from basin.analysis.verdict_tables import verdicts_of
from basin.pages.verdict_files import write_verdicts
from basin.reader.sweep import open_sweep

BASIN = os.environ.get("BASIN_BINARY")
ROOT = pathlib.Path(__file__).parents[2]

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


def program(*words, **environment):
    return subprocess.run(
        [BASIN, *map(str, words)],
        env=dict(os.environ, OMP_NUM_THREADS="1", **environment),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    )


def make_every_file(out):
    """In OUT a sweep with probes, a surface and an audit, and a prediction. In OUT/tuned a tuning, in OUT/chosen the runs whose rates it
    chose, in OUT/asked a sweep with verdicts."""
    _succeed("sweep", ROOT / "configs/tiny.toml", "--out", out, "--set", "batch_size=128", "--set", 'optimizer="sgd"')
    run = first_run(out)
    _succeed("landscape", run, "--kind", "line", "--set", "line.points=3", "--set", "line.directions=1")
    _succeed("audit", run / "ckpt/end.h5", "--only", "weight_norms")
    (out / "tuned.toml").write_text(TUNED)
    _succeed("tune", out / "tuned.toml", "--out", out / "tuned")
    _succeed("sweep", out / "tuned.toml", "--out", out / "chosen", "--selection", out / "tuned/selection.toml")
    (out / "asked.toml").write_text(ASKED)
    _succeed("sweep", out / "asked.toml", "--out", out / "asked")
    write_verdicts(out / "asked", verdicts_of(open_sweep(out / "asked")))
    shutil.copy(ROOT / "tests/fuzz/corpus/prediction/whole.toml", out / "prediction.toml")


def _succeed(*words):
    done = program(*words)
    assert done.returncode == 0, done.stderr


def first_run(out):
    return next((out / "runs").iterdir())


def is_one_line(done):
    """Taken, or refused in one line of ours and by an exit code that says why; progress and warnings may stand before it."""
    others = [line for line in done.stderr.splitlines() if not line.startswith(("probing ", "warning: ", "note: "))]
    refused = len(others) == 1 and others[0].startswith("basin: ") and "std::" not in others[0]
    return done.returncode == 0 or (done.returncode in (2, 3, 4) and refused)
