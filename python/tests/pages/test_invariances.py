"""docs/measures.md: a line for every measure, and cells that are those of the audits."""

import re

import h5py
import pandas as pd
import pytest

from basin.pages.invariances import FIELDS, PASSAGE, cell, filled, main, read
from basin.pages.paste import PasteError, passage
from documents import ROOT

PAGE = ROOT / "docs" / "measures.md"


def audits():
    named = sorted(set(re.findall(r"results/[0-9-]+audit/\w+\.csv", PAGE.read_text())))
    assert named == sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("results/*-audit/*.csv"))
    return [ROOT / name for name in named]


def test_every_definition_has_a_line():
    defined = re.findall(r"^### ([a-z0-9-]+)$", (ROOT / "docs" / "probes.md").read_text(), flags=re.M)
    assert len(defined) > 30
    listed = set(re.findall(r"^\| `([a-z0-9-]+)`", passage(PAGE, PASSAGE), flags=re.M))
    assert set(defined) - listed == set()
    assert listed - set(defined) == set()


def test_the_cells_are_those_of_the_audits():
    assert passage(PAGE, PASSAGE) == filled(passage(PAGE, PASSAGE), read(audits()))


def rows_of(*triples):
    return pd.DataFrame(triples, columns=["quantity", "transformation", "verdict"])


def test_a_cell_says_the_gravest_of_each_number():
    assert cell(rows_of()) == "–"
    assert cell(rows_of(("a", "t", "invariant"), ("b", "t", "invariant"))) == "stays"
    assert cell(rows_of(("a", "t", "invariant"), ("b", "t", "within_error"))) == "within error"
    assert cell(rows_of(("a", "t", "invariant"), ("a", "u", "moved"))) == "**moves**"
    assert cell(rows_of(("a", "t", "invariant"), ("b", "t", "moved"))) == "in part"
    assert cell(rows_of(("a", "t", "unresolved"), ("b", "t", "moved"))) == "**moves**"
    assert cell(rows_of(("a", "t", "unresolved"))) == "?"
    assert cell(rows_of(("a", "t", "unresolved"), ("b", "t", "invariant"))) == "stays, ?"
    assert cell(rows_of(("a", "t", "unresolved"), ("a", "u", "invariant"))) == "?"


TABLE = r"""| measure | formula | layers rescaled | units rescaled | norm scaled | permuted | logits scaled |
|---|---|---|---|---|---|---|
| `one` | \|w\| | old | | | | |
| `one` (eta=0) | w | old | | | | |
"""


def write_audit(path, rows):
    names = ("definition", "settings", "quantity", "transformation", "verdict")
    with h5py.File(path, "w") as file:
        file.attrs["schema_name"], file.attrs["schema_version"] = "basin/audit", "1.1.0"
        file.attrs["run_id"] = path.stem
        for name in FIELDS:
            texts = [row[names.index(name)] for row in rows] if name in names else ["x"] * len(rows)
            is_number = name in ("strength", "ratio") or name.endswith(("before", "after"))
            file[f"audit/{name}"] = [float("nan") if name == "strength" else 0.1] * len(rows) if is_number else texts


def test_fills_the_last_columns_and_leaves_the_others(tmp_path, capsys):
    page, first, second = tmp_path / "page.md", tmp_path / "a.h5", tmp_path / "b.h5"
    page.write_text(f"x\n<!-- invariances -->\n{TABLE}<!-- end of invariances -->\n")
    write_audit(first, [("one", "", "q", "relu_rescale", "invariant"), ("one", "", "q", "relu_rescale_units", "moved")])
    write_audit(second, [("one", "eta=0", "q", "relu_rescale", "invariant"), ("one", "", "q", "logit_scale", "within_error")])
    assert main([str(first), str(second), "--into", str(page)]) == 0
    lines = page.read_text().splitlines()
    assert lines[4] == r"| `one` | \|w\| | stays | **moves** | – | – | within error |"
    assert lines[5] == "| `one` (eta=0) | w | stays | – | – | – | – |"
    assert main([str(first), str(second), "--into", str(page)]) == 0  # again: the same
    assert page.read_text().splitlines() == lines
    saved, untouched = str(tmp_path / "rows.csv"), page.read_text()
    assert main([str(first), str(second), "--save", saved, "--into", str(page)]) == 0
    page.write_text(untouched.replace("stays", "old"))
    assert main([saved, "--into", str(page)]) == 0
    assert page.read_text() == untouched
    write_audit(tmp_path / "c.h5", [("two", "", "q", "relu_rescale", "moved")])
    assert main([str(tmp_path / "c.h5"), "--into", str(page)]) == 1
    assert "no line for `two`" in capsys.readouterr().err
    with pytest.raises(PasteError):
        filled(TABLE, read([tmp_path / "c.h5"]))
