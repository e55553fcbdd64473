"""OUT/verdicts.md and OUT/verdicts.h5, which nothing but this module writes (docs/file-format.md)."""

from __future__ import annotations

import io
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from ..analysis.verdict_tables import Verdicts, contrast_table, hypothesis_table, part_table
from ..reader import seal
from .output import write_atomically
from .verdict_text import markdown

SCHEMA, VERSION = "basin/verdicts", "1.3.0"
TEXT = h5py.string_dtype()
ABOUT = {
    "effect": "arm less base in the outcome's unit, of a ratio arm over base; of a recovery arm less large",
    "low": "lower end of the interval, in /contrasts 95 %, in /parts at the level corrected for the hypothesis",
    "high": "upper end, likewise",
    "error": "standard error of the mean effect, of logarithms for a ratio",
    "freedom": "degrees of freedom of the variance (Satterthwaite); of the interval where images is 0",
    "p": "two-sided p-value of no effect, unadjusted; in /hypotheses of the verdict it has alone",
    "p_holm": "p after Holm's correction over the hypotheses",
    "var_seed": "component of variance: Var(mean) = var_seed/S + var_image/N + var_rest/(S N)",
    "var_image": "component of variance of the test images; 0 without them",
    "var_rest": "component of variance that is neither seed nor image; 0 without images",
    "share": "R = (arm - large)/(small - large) of a recovery",
    "seeds_to_decide": "seeds at which intervals for difference and equivalence together fit the margin; 0: not known or not by seeds",
}


def write_verdicts(folder: Path, v: Verdicts) -> list[Path]:
    """Both files; none where there is nothing to say."""
    if v.empty:
        return []
    md, h5 = folder / "verdicts.md", folder / "verdicts.h5"
    write_atomically(md, markdown(v).encode())
    write_atomically(h5, _file(v))
    return [md, h5]


def _file(v: Verdicts) -> bytes:
    content = io.BytesIO()
    with h5py.File(content, "w", userblock_size=seal.BYTES, track_order=True, libver=("earliest", "v110")) as file:
        file.attrs.update({"schema_name": SCHEMA, "schema_version": VERSION, "registration_hash": v.questions.hash})
        for name, table in (("contrasts", contrast_table(v)), ("hypotheses", hypothesis_table(v)), ("parts", part_table(v))):
            _write_table(file, name, table)
    return seal.sealed(content.getvalue(), SCHEMA)


def _write_table(file: h5py.File, name: str, table: pd.DataFrame) -> None:
    """A 1-D dataset for each column; the first is the scale of the rows."""
    group = file.create_group(name, track_order=True)
    for column in table:
        values = table[column]
        if not pd.api.types.is_numeric_dtype(values):
            data = group.create_dataset(column, data=list(values), shape=(len(values),), dtype=TEXT)
        else:
            kept = np.asarray(values, np.int64 if values.dtype.kind in "iu" else np.float64)
            data = group.create_dataset(column, data=kept)
        data.attrs.update({"units": "1", "long_name": column.replace("_", " "), "definition": ABOUT.get(column, "verdicts")})
    scale = group[table.columns[0]]
    scale.make_scale(table.columns[0])
    for column in table.columns[1:]:
        group[column].dims[0].attach_scale(scale)
