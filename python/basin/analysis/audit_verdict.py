"""What `basin audit` found: which measures change where the network's function doesn't (runs/<id>/audit/*.h5).

A measure that moves under a transformation that leaves the function as it is says nothing about that function by itself, however well it
correlates in one sweep, where the optimiser has chosen the parametrisation. It is greyed in every figure. Transformations that
leave the decisions alone (logit scale) are reported and grey nothing. A quantity counts by what it did itself in any run; one that was not
audited (another radius, say) by the others of its definition. What was audited with options that tell it from the usual ones
(`settings`, as eta = 0) speaks for studies that set these options so, where a study sets several for the row that names most of
them; the usual ones speak for all others. Where no run has an audit, nothing is known and nothing greyed.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..reader.audit import COLUMNS, VERDICTS, read_audit
from ..reader.schema import ReadError, SchemaError
from ..reader.sweep import Sweep, flat_options

# What a tool's variant sets of the options that settings name (`basin inspect probe NAME`).
VARIANTS: dict[tuple[str, str | None], dict[str, object]] = {
    ("sharpness_sam", "davda54"): {"eta": 0, "scaled": "all"},
    ("sharpness_adaptive", "sharpness_vs_generalization"): {"eta": 0},
}
IN_WORDS = {
    "": "not audited", "invariant": "invariant", "within_error": "invariant within its error", "unresolved": "not resolved",
    "moved": "moves",
}  # fmt: skip


@dataclass
class Audit:
    """`table`: a row per number, transformation, strength and run. `options`: what the study sets, by dotted key: each value it sets."""

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
        chosen = self.options.get(f"{probe}.compat", [None])
        variant = VARIANTS.get((probe, chosen[0]), {}) if len(chosen) == 1 else {}
        held = [self.options.get(f"{probe}.{key}", [variant.get(key)]) == [_toml_value(value)] for key, value in named]
        return len(held) if all(held) else -1


def _gravest(verdicts: Iterable[str]) -> str:
    return next((v for v in reversed(VERDICTS) if v in set(verdicts)), "")


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare string, as --set takes it


def options_set(study: str) -> dict[str, list]:
    """By dotted key the values that a study sets: in its tables, by rules for some of its runs, and last by overrides for all."""
    tables = tomllib.loads(study)
    sweep = tables.pop("sweep", {})
    values = {key: [value] for key, value in flat_options(tables).items()}
    for rule in sweep.get("set", []):
        for key, value in flat_options(rule.get("set", {})).items():
            values.setdefault(key, [None]).append(value)  # None: the default, for the runs that the rule is not for
    for override in sweep.get("override", []):
        values |= {key: [value] for key, value in flat_options(override.get("set", {})).items()}
    return values


def load_audit(sweep: Sweep) -> Audit:
    """All audits in the sweep's folder; empty where there are none. One that can't be read is left out with a warning."""
    folder = sweep.path if sweep.path.is_dir() else sweep.path.parent
    found = []
    for path in sorted(folder.glob("runs/*/audit/*.h5")):
        try:
            found.append(read_audit(path))
        except SchemaError:
            raise
        except ReadError as error:
            warnings.warn(str(error), stacklevel=2)
    return Audit(pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["run_id", *COLUMNS]),
                 options_set(sweep.study))  # fmt: skip
