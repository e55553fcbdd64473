"""The page of what more ranks bring: what docs/scaling.md says is what the committed results give, as far as no bootstrap is in it."""

import re
from pathlib import Path

import pytest

from basin.pages import scaling
from basin.pages.paste import passage

ROOT = Path(__file__).resolve().parents[3]
SWEEP, MEASURED = ROOT / "results/2026-11-25-critical/sizes", ROOT / "results/2026-11-27-scaling/scaling.json"


def without_intervals(text):
    return [re.sub(r" \[.*?\]", "", line) for line in text.splitlines()]


def test_the_page_has_the_models_numbers(capsys, tmp_path):
    picture = tmp_path / "scaling.png"
    assert scaling.main([str(SWEEP), str(MEASURED), "--draws", "3", "--picture", str(picture)]) == 0
    printed = capsys.readouterr().out.strip()
    assert without_intervals(printed) == without_intervals(passage(ROOT / "docs/scaling.md", scaling.PASSAGE).strip())
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("text, says", [("{", "no JSON"), ('{"runs": {}}', "not of bench/scaling.py")])
def test_another_file_is_one_line(text, says, capsys, tmp_path):
    (tmp_path / "other.json").write_text(text)
    assert scaling.main([str(SWEEP), str(tmp_path / "other.json")]) == 1
    assert says in capsys.readouterr().err
