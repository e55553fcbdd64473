"""README's screens are what its commands say: line by line, `...` for lines left out, whatever the numbers are."""

import os
import re
import subprocess
import sys

import pytest

from documents import ROOT

BINARY = os.environ.get("BASIN_BINARY")


def screens():
    """(command, lines shown) in README's order, of commands whose output is shown."""
    blocks = re.findall(r"```\n(\$ .*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    parts = [part.splitlines() for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(command, shown) for command, *shown in parts if shown]


def pattern_of(line):
    """Numbers differ from machine to machine, and which run ends first; spaces go with the numbers' widths."""
    line = re.sub(r"^\[.*", "[a run]", re.sub(r"\b[0-9a-f]{12}\b", "ID", line))
    line = re.sub(r"(?<![\w.])[+-]?\d[\d.]*(e[+-]?\d+)?\b", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def find_all(shown, said):
    """Every shown line stands in what was said, right behind the one before unless `...` stands between."""
    at, gap = 0, False
    for line in shown:
        if line == "...":
            gap = True
            continue
        places = range(at, len(said)) if gap else range(at, min(at + 1, len(said)))
        place = next((i for i in places if pattern_of(said[i]) == pattern_of(line)), None)
        assert place is not None, f"{line!r} is not what comes in:\n" + "\n".join(said[at:])
        at, gap = place + 1, False
    assert gap or at == len(said), f"{said[at:]} are left out without a mark"


def test_what_is_left_out_must_be_marked():
    said = ["a 1", "b 2", "c"]
    find_all(["a 9", "...", "c"], said)
    find_all(["a 9", "..."], said)
    for wrong in (["a 9", "c"], ["a 9", "b 2"], ["a 9", "...", "d"], ["b 2", "..."]):
        with pytest.raises(AssertionError):
            find_all(wrong, said)


@pytest.mark.slow
@pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")
def test_the_readmes_screens(tmp_path):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    found = screens()
    assert len(found) >= 8
    for command, shown in found:
        assert command.startswith(("basin ", "PYTHONPATH=python .venv/bin/python "))
        words = command.split()
        program = [BINARY, *words[1:]] if words[0] == "basin" else [sys.executable, *words[2:]]
        done = subprocess.run(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT / "python")))  # fmt: skip
        assert done.returncode == 0, done.stdout
        find_all(shown, done.stdout.splitlines())
