"""Files of every kind whose bytes are changed, cut, inserted, zeroed, doubled or set to extremes. Within a minute the program takes
such a file or says in one line why not, and it never takes one that a seal or a published checksum covers."""

import pathlib
import random
import shutil
import struct
from dataclasses import dataclass

import h5py
import numpy as np
import pytest

from basin_program import needs_program
from every_file import BASIN, PLANE, first_run, is_one_line, program

pytestmark = needs_program

EXTREMES = [
    b"\0" * 8,
    b"\xff" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\0" * 7 + b"\x80",
    struct.pack("<d", np.inf),
    struct.pack("<d", np.nan),
]


def stretch(content, dice):
    """From where to where; short ones are as frequent as long ones."""
    begin = dice.randrange(len(content))
    return begin, min(len(content), begin + 2 ** dice.randrange(14))


def change(content, dice):
    for _ in range(dice.randint(1, 200)):
        content[dice.randrange(len(content))] = dice.randrange(256)


def cut(content, dice):
    begin, end = stretch(content, dice)
    del content[begin : dice.choice([end, len(content)])]


def insert(content, dice):
    at = dice.randrange(len(content) + 1)
    content[at:at] = dice.randbytes(dice.randint(1, 200))


def zero(content, dice):
    begin, end = stretch(content, dice)
    content[begin:end] = bytes(end - begin)


def double(content, dice):
    begin, end = stretch(content, dice)
    content[end:end] = content[begin:end]


def to_extremes(content, dice):
    at = dice.randrange(len(content) - 7)
    content[at : at + 8] = dice.choice(EXTREMES)


DAMAGES = [change, cut, insert, zero, double, to_extremes]


@dataclass(frozen=True)
class Kind:
    pattern: str
    command: tuple[str, ...] = ("inspect", "{path}")
    sealed: bool = True  # or compared with a published checksum


KINDS = {
    "checkpoint": Kind("runs/*/ckpt/end.h5"),
    "probe": Kind("runs/*/probes/*.h5"),
    "run": Kind("runs/*/run.h5"),
    "audit": Kind("runs/*/audit/*.h5"),
    "surface": Kind("landscape/*.h5"),
    "tile": Kind("planes/*.tiles/000000.h5", PLANE),
    "sweep": Kind("sweep.h5"),
    "tune": Kind("tuned/tune.h5"),
    "scaling": Kind("scaling.h5"),
    "verdicts": Kind("asked/verdicts.h5", ("sweep", "{out}/asked.toml", "--out", "{out}/asked", "--dry-run", "--pilot", "{out}/asked")),
    "cifar": Kind("sets/cifar10-5k/data_batch_1.bin", ("data", "check", "cifar10-5k")),
    "study": Kind("asked.toml", ("sweep", "{path}", "--out", "{out}/asked", "--dry-run"), sealed=False),
    "selection": Kind("tuned/selection.toml", ("sweep", "{out}/tuned.toml", "--out", "{out}/chosen", "--dry-run", "--selection", "{path}"),
                      sealed=False),
    "prediction": Kind("prediction.toml", ("forecast", "--seeds", "{path}"), sealed=False),
    "journal": Kind("lost/journal", ("recover", "{out}/lost"), sealed=False),
}  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory, every_file):
    """With a copy of the run whose run.h5 is lost, and the embedded data set."""
    out = tmp_path_factory.mktemp("damaged") / "tiny"
    shutil.copytree(every_file, out)
    shutil.copytree(first_run(out), out / "lost")
    (out / "lost/run.h5").unlink()
    (out / "sets/cifar10-5k").mkdir(parents=True)
    for file in (pathlib.Path(BASIN).parents[1] / "share/basin/data/cifar10-5k").iterdir():
        (out / "sets/cifar10-5k" / file.name).symlink_to(file)
    return out


def damaged(content, damage, dice):
    """Bytes that are zero already are not damaged by zeroing them."""
    changed = bytearray(content)
    while changed == content:
        damage(changed, dice)
    return bytes(changed)


def losses(run):
    """None where the journal was cut before the first table."""
    with h5py.File(run / "run.h5") as file:
        return file["train/loss"][()] if "train" in file else np.array([])


def reads(kind, out, path):
    return program(*(word.format(out=out, path=path) for word in kind.command), BASIN_DATA=str(out / "sets"))


def check_damage(study, tmp_path, name, damages, seeds):
    """How many files were refused."""
    kind, refused = KINDS[name], 0
    for seed in seeds:
        for damage in damages:
            dice = random.Random(f"{name} {damage.__name__} {seed}")
            out = tmp_path / "out"
            shutil.copytree(study, out, symlinks=True)
            path = min(out.glob(kind.pattern))
            content = path.read_bytes()
            path.unlink()  # a link to the data set that is installed
            path.write_bytes(damaged(content, damage, dice))
            done = reads(kind, out, path)
            told = (name, damage.__name__, seed, done.returncode, done.stderr[-2000:])
            assert is_one_line(done), told
            assert done.returncode or not kind.sealed, told
            if name == "journal" and done.returncode == 0:
                kept = losses(out / "lost")
                assert np.array_equal(kept, losses(first_run(study))[: len(kept)]), told
            refused += done.returncode != 0
            shutil.rmtree(out)
    return refused


@pytest.mark.parametrize("name", KINDS)
def test_a_few_damaged_files_are_one_line(study, tmp_path, name):
    """Half of the kinds of damage, the other half on the next kind of file."""
    half = DAMAGES[list(KINDS).index(name) % 2 :: 2]
    assert check_damage(study, tmp_path, name, half, range(1)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_many_damaged_files_are_one_line(study, tmp_path, name):
    assert check_damage(study, tmp_path, name, DAMAGES, range(100, 150)) > 100


def test_whole_files_are_taken(study, tmp_path):
    """Without damage no command of the table fails."""
    out = tmp_path / "out"
    shutil.copytree(study, out, symlinks=True)
    for name, kind in KINDS.items():
        done = reads(kind, out, min(out.glob(kind.pattern)))
        assert done.returncode == 0, (name, done.stderr)
