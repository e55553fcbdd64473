"""The documents that tests read, and the results that these name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def results_named_in(file, pattern):
    """The results that a document says its numbers are of."""
    names = set(re.findall(pattern, (ROOT / file).read_text()))
    assert len(names) == 1, names
    return ROOT / names.pop()
