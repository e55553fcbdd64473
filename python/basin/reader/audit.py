"""Files of `basin audit` (runs/<id>/audit/*.h5): each measure before and after transformations of the network."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .fault import ReadError
from .schema import reading, strings, text

COLUMNS = ["probe", "settings", "quantity", "definition", "transformation", "strength", "before", "after", "uncertainty_before",
           "uncertainty_after", "ratio", "verdict", "kind"]  # fmt: skip
VERDICTS = ("invariant", "within_error", "unresolved", "moved")  # the last is the gravest


def read_audit(path: str | Path, verify: bool = True) -> pd.DataFrame:
    path = Path(path)
    with reading(path, "audit", verify) as file:
        group = file["audit"]
        columns = {name: strings(group[name]) if group[name].dtype.kind in "OS" else group[name][()] for name in COLUMNS}
        run_id = text(file.attrs["run_id"])
    if len({len(values) for values in columns.values()}) != 1:
        raise ReadError(f"{path}: damaged or incomplete (the columns of /audit differ in length)")
    unknown = set(columns["verdict"]) - set(VERDICTS)
    if unknown:
        raise ReadError(f'{path}: verdict "{sorted(unknown)[0]}" is none of {", ".join(VERDICTS)}')
    return pd.DataFrame(columns).assign(run_id=run_id)
