"""What `basin audit` found: which measures change where the network's function doesn't (runs/<id>/audit/*.h5).

A measure that moves under a transformation that leaves the function as it is says nothing about that function by itself, however well it
correlates in one sweep, where the optimiser has chosen the parametrisation. It is greyed in every figure. Transformations that
leave the decisions alone (logit scale) are reported and grey nothing. A quantity counts by what it did itself in any run; one that was not
audited (another radius, say) by the others of its definition. What was audited with options that tell it from the usual ones
(`settings`, as eta = 0) speaks for studies that measured with these options, where a study has several for the row that names most of
them; the usual ones speak for all others. Where no run has an audit, nothing is known and nothing greyed.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..reader.audit import COLUMNS, VERDICTS, read_audit
from ..reader.fault import ReadError, SchemaError
from ..reader.probe import read_probe
from ..reader.sweep import Sweep

IN_WORDS = {
    "": "not audited", "invariant": "invariant", "within_error": "invariant within its error", "unresolved": "not resolved",
    "moved": "moves",
}  # fmt: skip


@dataclass
class Audit:
    """`table`: a row per number, transformation, strength and run. `options`: what the study's own measurements were made with, by dotted
    key: each value."""

    table: pd.DataFrame
    options: dict[str, list] = field(default_factory=dict)

    def moved(self, definition: str, quantity: str) -> bool:
        return self.verdict(definition, quantity) == "moved"

    def verdict(self, definition: str, quantity: str) -> str:
        """The gravest under transformations that keep the function; "" where there was none."""
        return _gravest(self._rows(definition, quantity).verdict)

    def in_words(self, definition: str, quantity: str) -> str:
        """ "moves (relu_rescale, by a factor of up to 16)"."""
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
        own = rows.quantity.isin([quantity, f"{quantity}_1"])  # _1: the first of a vector
        rows = rows[own] if own.any() else rows
        alike = pd.Series([self._alike(*row) for row in zip(rows.probe, rows.settings)], rows.index, dtype=float)
        return rows[alike == alike.max()]

    def _alike(self, probe: str, settings: str) -> int:
        """How many options the settings name that the study has so; -1 where it has one otherwise."""
        named = [part.split("=") for part in filter(None, settings.split(", "))]
        held = [self.options.get(f"{probe}.{key}") == [_toml_value(value)] for key, value in named]
        return len(held) if all(held) else -1


def _gravest(verdicts: Iterable[str]) -> str:
    return next((v for v in reversed(VERDICTS) if v in set(verdicts)), "")


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare string, as --set takes it


def readable(paths: Iterable[Path], read: Callable[[Path], Any]) -> Iterator[Any]:
    """What `read` makes of each file; one that can't be read is left out with a warning."""
    for path in paths:
        try:
            yield read(path)
        except SchemaError:
            raise
        except ReadError as error:
            warnings.warn(str(error), stacklevel=2)


def options_measured(folder: Path, probes: Iterable[str]) -> dict[str, list]:
    """By dotted key the values of the options that the probes had in a sweep's runs, from one of its own files for each run."""
    values: dict[str, list] = {}
    for probe in probes:
        firsts = (path for run in sorted(folder.glob("runs/*/probes")) for path in sorted(run.glob(f"*.{probe}.h5"))[:1])
        for measured in readable(firsts, read_probe):
            for name, value in measured.attributes.items():
                key, is_option = name.replace("option", probe, 1), name.startswith("option.")
                if is_option and value not in values.setdefault(key, []):
                    values[key].append(value)
    return values


def load_audit(sweep: Sweep) -> Audit:
    """All audits in the sweep's folder; empty where there are none."""
    found = list(readable(sorted(sweep.folder.glob("runs/*/audit/*.h5")), read_audit))
    if not found:
        return Audit(pd.DataFrame(columns=["run_id", *COLUMNS]))
    table = pd.concat(found, ignore_index=True)
    return Audit(table, options_measured(sweep.folder, table.probe[table.settings != ""].unique()))
