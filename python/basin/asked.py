"""What a study asked of its runs (docs/reading-results.md, "Verdicts")."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .reader.sweep import open_sweep


def contrasts(path: str | Path, verify: bool = True) -> pd.DataFrame:
    """One row for each [[contrast]] of a sweep's study, computed from its runs as they stand, then its A/A contrasts: the columns of
    /contrasts in verdicts.h5."""
    from .analysis.verdict_tables import contrast_table, verdicts_of  # SciPy takes a while that `import basin` need not wait for

    return contrast_table(verdicts_of(open_sweep(path, verify=verify)))
