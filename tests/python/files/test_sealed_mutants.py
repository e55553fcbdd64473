"""Files whose seal is right and whose content is not: names, types, shapes and values changed through HDF5, then sealed. Our own
checks of content meet them: the program says one line or takes the file, and never crashes or hangs."""

import random
import shutil

import h5py
import numpy as np
import pytest

from basin_program import needs_program
from every_file import PLANE, first_run, is_one_line, program

pytestmark = needs_program

VALUES = [-1, 0, 2**31, 2**62, -(2**63), 3.5, float("nan"), float("inf"), "", "x" * 5000, "end", True, [1, 2], [], ["a", ""],
          np.zeros((2, 2)), np.complex128(1j), b"\xff\xfe", h5py.Empty("f8")]  # fmt: skip
SHAPES = [(), (0,), (1,), (3, 2), (2, 0, 2)]


def everything_in(file):
    found = [file]
    file.visititems(lambda name, item: found.append(item))
    return found


def change_attribute(file, dice):
    item = dice.choice([item for item in everything_in(file) if len(item.attrs)])
    name = dice.choice(sorted(item.attrs))
    if dice.random() < 0.3:
        del item.attrs[name]
    else:
        item.attrs[name if dice.random() < 0.8 else "odd"] = dice.choice(VALUES)


def replace_dataset(file, dice):
    item = dice.choice([item for item in everything_in(file) if isinstance(item, h5py.Dataset)])
    name, about = item.name, dict(item.attrs)
    kept = {key: value for key, value in about.items() if key in ("index", "layer", "kind", "units", "long_name", "definition")}
    was = item[()] if item.size < 10**6 else ()  # an earlier change made it larger than any memory
    del file[name]
    how = dice.randrange(6)
    if how == 0:  # never written, and larger than any memory
        new = file.create_dataset(name, shape=(2**40, 2**20), dtype=dice.choice(["f8", "i4", "u1"]), chunks=(1024, 1))
    elif how == 1:
        new = file.create_dataset(name, data=np.zeros(dice.choice(SHAPES), dice.choice(["f8", "f4", "f2", "i8", "i2", "?"])))
    elif how == 2:
        new = file.create_dataset(name, data=dice.choice([v for v in VALUES if not isinstance(v, h5py.Empty)]))
    elif how == 3:
        new = file.create_group(name)
    elif how == 4:
        new = file.create_dataset(name, data=np.zeros(2, [("a", "f8"), ("b", "i4")]))
    else:  # one entry more or less, or other values
        flat = np.asarray(was)
        new = file.create_dataset(name, data=flat[:-1] if flat.ndim and len(flat) else flat)
    new.attrs.update(kept)


def rename(file, dice):
    item = dice.choice(everything_in(file)[1:])
    name = f"{item.parent.name.rstrip('/')}/{dice.choice(['odd', 'x' * 300, 'ü'])}"
    if name not in file:
        file.move(item.name, name)


def remove(file, dice):
    del file[dice.choice(everything_in(file)[1:]).name]


def link(file, dice):
    group = dice.choice([item for item in everything_in(file) if isinstance(item, h5py.Group)])
    group[f"odd{dice.randrange(10**6)}"] = dice.choice(
        [file["/"], h5py.SoftLink("/nowhere"), h5py.SoftLink("."), h5py.ExternalLink("no.h5", "/")]
    )


def check_mutants(every_file, tmp_path, kind, pattern, commands, seeds):
    taken = 0
    for seed in seeds:
        dice = random.Random(f"{kind} {seed}")
        out = tmp_path / "out"
        shutil.copytree(every_file, out)
        path = next(iter(sorted(out.glob(pattern))))
        with h5py.File(path, "r+") as file:
            for _ in range(dice.choice([1, 1, 2, 4])):
                if len(everything_in(file)) < 2:  # nothing but the root is left
                    break
                dice.choice([change_attribute, replace_dataset, rename, remove, link])(file, dice)
        told, first = [program("seal", path)], first_run(out)
        if told[0].returncode == 0:
            taken += 1
            told += [
                program(*(str(word).format(out=out, run=path.parents[1], path=path, first=first) for word in words))
                for words in commands
            ]
        for done in told:
            assert is_one_line(done), (kind, seed, done.args, done.returncode, done.stderr[-2000:])
        shutil.rmtree(out)
    return taken


KINDS = {
    "run": ("runs/*/run.h5", [("inspect", "{path}"), ("collect", "{out}"), ("recover", "{path}/..")]),
    "checkpoint": ("runs/*/ckpt/end.h5", [("inspect", "{path}"), ("probe", "{run}", "--only", "weight_norms", "--force")]),
    "probe": ("runs/*/probes/*.h5", [("inspect", "{path}"), ("collect", "{out}")]),
    "sweep": ("sweep.h5", [("inspect", "{path}"), ("collect", "{out}")]),
    "scaling": ("scaling.h5", [("inspect", "{path}")]),
    "surface": (
        "landscape/*.h5",
        [
            ("inspect", "{path}"),
            ("landscape", "{first}", "--kind", "line", "--set", "line.points=3", "--set", "line.directions=1"),
        ],
    ),
    "tile": ("planes/*.tiles/000000.h5", [("inspect", "{path}"), PLANE]),
    "audit": ("runs/*/audit/*.h5", [("inspect", "{path}"), ("audit", "{run}/ckpt/end.h5", "--only", "weight_norms")]),
    "tune": (
        "tuned/tune.h5",
        [("inspect", "{path}"), ("forecast", "{out}/tuned", "--test", "{out}/tuned.toml", "--prediction", "{out}/p.toml")],
    ),
    "verdicts": (
        "asked/verdicts.h5",
        [("inspect", "{path}"), ("sweep", "{out}/asked.toml", "--out", "{out}/asked", "--dry-run", "--pilot", "{out}/asked")],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_mutants_are_one_line(every_file, tmp_path, kind):
    pattern, commands = KINDS[kind]
    assert check_mutants(every_file, tmp_path, kind, pattern, commands, range(5)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutants_are_one_line(every_file, tmp_path, kind):
    pattern, commands = KINDS[kind]
    assert check_mutants(every_file, tmp_path, kind, pattern, commands, range(100, 400)) > 100
