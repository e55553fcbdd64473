"""python -m basin.pages.invariances AUDIT... [--save FILE.csv] --into docs/measures.md: fills the last columns of its table from files of
`basin audit`, or from the CSV file that --save made of some.

A row of the table is a measure: its definition id, and, where they matter, the settings behind it ("`adaptive-worst` (eta=0)").
A cell says what the measure's numbers did under one kind of transformation, in all files: they stay, stay within their error, move,
some of them move ("in part"), or have no value or too wide an error to say ("?").
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ..reader.audit import VERDICTS, read_audit
from ..reader.fault import ReadError
from .command import command, run, takes_page
from .paste import PasteError, passage, paste

PASSAGE = "invariances"
COLUMNS = {
    "layers rescaled": ("relu_rescale", "relu_rescale_all"),
    "units rescaled": ("relu_rescale_units",),
    "norm scaled": ("norm_scale",),
    "permuted": ("unit_permutation",),
    "logits scaled": ("logit_scale",),
}
FIELDS = ["probe", "settings", "quantity", "definition", "transformation", "strength", "kind", "before", "uncertainty_before", "after",
          "uncertainty_after", "ratio", "verdict"]  # fmt: skip
NOT_TRIED = "–"


def read(paths: Iterable[str | Path]) -> pd.DataFrame:
    """A row per number, transformation and file, with `measure`, the table's first column."""
    rows = pd.concat([_read(Path(path)) for path in paths], ignore_index=True)
    settings = rows.settings.map(lambda these: f" ({these})" if these else "")
    return rows.assign(measure="`" + rows.definition + "`" + settings)


def _read(path: Path) -> pd.DataFrame:
    if path.suffix == ".csv":
        try:
            return pd.read_csv(path, keep_default_na=False, na_values=["nan"])
        except (OSError, ValueError) as error:
            raise ReadError(f"{path}: {error}") from None
    return read_audit(path)


def save(rows: pd.DataFrame, path: str | Path) -> None:
    rows.to_csv(path, columns=["run_id", *FIELDS], index=False, float_format="%.6g", na_rep="nan", lineterminator="\n")


def cell(rows: pd.DataFrame) -> str:
    """What the numbers of one measure did; each number counts by its gravest verdict."""
    gravest = rows.groupby("quantity").verdict.agg(lambda verdicts: max(verdicts, key=VERDICTS.index))
    if gravest.empty:
        return NOT_TRIED
    kinds = set(gravest)
    if "moved" in kinds:
        return "**moves**" if kinds <= {"moved", "unresolved"} else "in part"
    stayed = "within error" if "within_error" in kinds else "stays" if "invariant" in kinds else ""
    return ", ".join(filter(None, [stayed, "?" if "unresolved" in kinds else ""]))


def filled(table: str, rows: pd.DataFrame) -> str:
    """The Markdown table with its last cells as the rows have them. PasteError for a measure that has no line."""
    lines, named = [], set()
    for line in table.splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        name = cells[1].strip() if len(cells) > len(COLUMNS) + 2 else ""
        if name.startswith("`"):
            of_measure = rows[rows.measure == name]
            last = [f" {cell(of_measure[of_measure.transformation.isin(kinds)])} " for kinds in COLUMNS.values()]
            line = "|".join(cells[: -len(COLUMNS) - 1] + last + [""])
            named.add(name)
        lines.append(line)
    missing = sorted(set(rows.measure) - named)
    if missing:
        raise PasteError(f"the table has no line for {', '.join(missing)}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.invariances", __doc__)
    parser.add_argument("audits", nargs="+", help="files of `basin audit`, or a CSV file of --save")
    takes_page(parser, PASSAGE)
    parser.add_argument("--save", metavar="FILE.csv", help="a file with all that was read")

    def work(options: argparse.Namespace) -> None:
        if not options.into:
            parser.error("--into names the page whose table is filled")
        rows = read(options.audits)
        if options.save:
            save(rows, options.save)
        paste(options.into, options.passage, filled(passage(options.into, options.passage), rows))

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
