"""What `basin audit` found: which measures change where the network's function doesn't (runs/<id>/audit/*.h5).

A measure that moves under a transformation that leaves the function as it is says nothing about that function by itself, however well it
correlates in one sweep, where the optimiser has chosen the parametrisation. It is greyed in every figure. Transformations that
leave the decisions alone (logit scale) are reported and grey nothing. A quantity counts by what it did itself in any run; one that was not
audited (another radius, say) by the others of its definition. What was audited with options that tell it from the usual ones
(`settings`, as eta = 0) speaks for no sweep, whose options its file doesn't hold, unless there is nothing else. Where no run has an
audit, nothing is known and nothing greyed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from .schema import ReadError, reading, strings, text
from .sweep import Sweep

COLUMNS = ["probe", "settings", "quantity", "definition", "transformation", "strength", "before", "after", "uncertainty_before",
           "uncertainty_after", "ratio", "verdict", "kind"]  # fmt: skip
VERDICTS = ("invariant", "within_error", "unresolved", "moved")  # the last is the gravest
IN_WORDS = {
    "": "not audited", "invariant": "invariant", "within_error": "invariant within its error", "unresolved": "not resolved",
    "moved": "moves",
}  # fmt: skip


@dataclass
class Audit:
    """`table`: a row a number, transformation, strength and run."""

    table: pd.DataFrame

    def moved(self, definition: str, quantity: str) -> bool:
        return self.verdict(definition, quantity) == "moved"

    def verdict(self, definition: str, quantity: str) -> str:
        """The gravest under transformations that keep the function; "" where there was none."""
        return _gravest(self._rows(definition, quantity).verdict)

    def in_words(self, definition: str, quantity: str) -> str:
        """"moves (relu_rescale, by a factor of up to 16)"."""
        verdict = self.verdict(definition, quantity)
        if verdict != "moved":
            return IN_WORDS[verdict]
        rows = self._rows(definition, quantity)
        rows = rows[rows.verdict == "moved"]
        ratios = rows.ratio.astype(float)
        sizes = np.abs(np.log(ratios[ratios > 0]))
        by = f", by a factor of up to {np.exp(sizes.max()):.3g}" if np.isfinite(sizes.max()) else ""
        return f"moves ({', '.join(sorted(rows.transformation.unique()))}{by})"

    def in_words_of_decisions(self, definition: str, quantity: str) -> str:
        return IN_WORDS[_gravest(self._rows(definition, quantity, "decisions").verdict)]

    def _rows(self, definition: str, quantity: str, kind: str = "function") -> pd.DataFrame:
        rows = self.table[(self.table.definition == definition) & (self.table.kind == kind)]
        for narrower in (rows.quantity.isin([quantity, f"{quantity}_1"]), rows.settings == ""):  # _1: the first of a vector
            rows = rows[narrower.loc[rows.index]] if narrower.loc[rows.index].any() else rows
        return rows


def _gravest(verdicts) -> str:
    return next((v for v in reversed(VERDICTS) if v in set(verdicts)), "")


def load_audit(sweep: Sweep) -> Audit:
    """All audits beside the sweep; empty where there are none."""
    folder = sweep.path if sweep.path.is_dir() else sweep.path.parent
    found = [read_audit(path) for path in sorted(folder.glob("runs/*/audit/*.h5"))]
    return Audit(pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["run_id", *COLUMNS]))


def read_audit(path) -> pd.DataFrame:
    path = Path(path)
    with reading(path, "audit") as file:
        group = file["audit"]
        columns = {name: strings(group[name]) if group[name].dtype.kind in "OS" else group[name][()] for name in COLUMNS}
        run_id = text(file.attrs["run_id"])
    if len({len(values) for values in columns.values()}) != 1:
        raise ReadError(f"{path}: damaged or incomplete (the columns of /audit differ in length)")
    unknown = set(columns["verdict"]) - set(VERDICTS)
    if unknown:
        raise ReadError(f"{path}: verdict \"{sorted(unknown)[0]}\" is none of {', '.join(VERDICTS)}")
    return pd.DataFrame(columns).assign(run_id=run_id)
