"""The table in docs/your-network.md of what each probe needs is that of the program, and all answers are explained."""

import json
import os
import pathlib
import re
import subprocess

import pytest

BASIN = os.environ.get("BASIN_BINARY")
pytestmark = pytest.mark.skipif(not BASIN, reason="BASIN_BINARY names the program under test")
PAGE = pathlib.Path(__file__).parents[2] / "docs/your-network.md"


def rows(head):
    """First and second column of the table under this heading, as lists of the words in backticks."""
    table = PAGE.read_text().split(f"\n{head}\n")[1].split("\n\n")[0].splitlines()[1:]
    return [[re.findall("`(.*?)`", cell) for cell in line.strip("|").split("|")[:2]] for line in table]


def test_the_table_has_what_each_probe_needs():
    done = subprocess.run([BASIN, "inspect", "--list", "probes", "--json"], capture_output=True, text=True, check=True)
    entries = json.loads(done.stdout)["entries"]
    assert rows("| probe | needs |") == [[[entry["name"]], entry["needs"]] for entry in entries]


def test_every_answer_is_explained():
    explained = [name for names, _ in rows("| answer | |") for name in names]
    needed = {name for _, names in rows("| probe | needs |") for name in names}
    assert needed <= set(explained)
