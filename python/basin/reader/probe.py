"""One probe file: numbers with uncertainties, measured at one checkpoint of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pandas as pd

from .fault import ReadError
from .schema import attributes, meaning, reading, require, strings, text

# What a probe row says, in the order of the long table's columns.
PROBE_COLUMNS = [
    "run_id", "checkpoint", "update", "train_loss", "subset_loss", "probe", "quantity", "entry", "index", "value", "uncertainty",
    "uncertainty_kind", "ci_low", "ci_high", "status", "definition", "units", "n_examples",
    "subset_hash", "settings", "options", "study",
]  # fmt: skip
NO_ERROR_BAR = {"none", "lower_bound"}  # kinds of uncertainty that are no error of the value


class ProbeName(NamedTuple):
    """Which probe file. `settings` is empty for the study's own settings, else their fingerprint."""

    checkpoint: str
    probe: str
    settings: str = ""

    def __str__(self) -> str:
        return f"{self.probe} at {self.checkpoint}" + (f' (settings="{self.settings}")' if self.settings else "")

    @property
    def file(self) -> str:
        return ".".join(part for part in (self.checkpoint, self.probe, self.settings, "h5") if part)


@dataclass
class ProbeResult:
    """One probe file. `table` has one row per number; `attributes` holds settings and costs."""

    run_id: str
    probe: str
    checkpoint: str
    status: str
    message: str
    attributes: dict
    table: pd.DataFrame
    vectors: list[str] = field(default_factory=list)  # quantities that have columns <name>_1, <name>_2, ...
    about: dict[str, dict] = field(default_factory=dict)  # units, long_name, definition of each quantity

    def value(self, quantity: str, index: int = 0) -> float:
        """A number by its name and, in a vector, index from 0; or by the name of its column in `runs`: "lambda_1" is the first of
        the vector "lambda"."""
        whole, _, number = quantity.rpartition("_")
        if quantity not in set(self.table.quantity) and whole in set(self.table.quantity) and number.isdigit():
            quantity, index = whole, int(number) - 1
        require(f"{self.probe} at {self.checkpoint}", "quantity", quantity, dict.fromkeys(self.table.quantity))
        rows = self.table[(self.table.quantity == quantity) & (self.table["index"] == index)]
        if rows.empty:
            raise ReadError(f'{self.probe} at {self.checkpoint}: "{quantity}" has no entry {index}')
        return float(rows.value.iloc[0])


def name_options(probes: list[ProbeResult]) -> list[pd.DataFrame]:
    """The tables with `options`: those of a probe's options in which its measurements differ, as in sweep.h5."""
    asked = [{k.removeprefix("option."): _toml(v) for k, v in p.attributes.items() if k.startswith("option.")} for p in probes]
    known: dict[tuple[str, str], set[str]] = {}
    for probe, options in zip(probes, asked, strict=True):
        for key, value in options.items():
            known.setdefault((probe.probe, key), set()).add(value)
    texts = [
        ", ".join(f"{key} = {options[key]}" for key in sorted(options) if len(known[probe.probe, key]) > 1)
        for probe, options in zip(probes, asked, strict=True)
    ]
    return [probe.table.assign(options=text) for probe, text in zip(probes, texts, strict=True)]


def _toml(value: Any) -> str:
    """As the program writes it: the shorter of 100 and 1e+02, and a float with a point or an exponent."""
    if isinstance(value, (list, np.ndarray)):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if not isinstance(value, (float, np.floating)):
        return f'"{value}"' if isinstance(value, str) else str(value)
    if not np.isfinite(value):
        return repr(float(value))
    written = min(np.format_float_positional(value, trim="-"), np.format_float_scientific(value, trim="-", exp_digits=2), key=len)
    return written if set(written) & set(".e") else f"{written}.0"


def probe_name(path: Path) -> ProbeName:
    """runs/x/probes/loss-1.5.noise_scale.h5 -> ("loss-1.5", "noise_scale", ""); probe names have no dot. A file measured with
    other settings than the study's has their fingerprint, 8 hex digits, before .h5."""
    rest, _, last = path.stem.rpartition(".")
    settings = last if re.fullmatch("[0-9a-f]{8}", last) and "." in rest else ""
    checkpoint, _, probe = (rest if settings else path.stem).rpartition(".")
    return ProbeName(checkpoint, probe, settings)


def read_probe(path: str | Path, verify: bool = True) -> ProbeResult:
    with reading(path, "probe", verify) as file:
        root = attributes(file)
        study = probe_name(Path(path)).settings == ""
        rows, vectors, about = [], [], {}
        for name in file["quantities"]:
            group = file["quantities"][name]
            if bool(attributes(group).get("is_vector", group["value"].size > 1)):
                vectors.append(name)
            rows += _quantity_rows(root | {"study": study}, name, group, name in vectors)
            about[name] = meaning(group)
        return ProbeResult(
            text(root.get("run_id", "")), text(root.get("probe", "")), text(root.get("checkpoint", "")),
            text(root.get("status", "")), text(root.get("message", "")), root,
            pd.DataFrame(rows, columns=PROBE_COLUMNS), vectors, about,
        )  # fmt: skip


def _quantity_rows(root: dict, name: str, group: h5py.Group, is_vector: bool) -> list[dict]:
    value = np.atleast_1d(group["value"][()])

    def column(key: str) -> np.ndarray:
        data = np.atleast_1d(group[key][()]) if key in group else np.empty(0)
        return data if data.size == value.size else np.full(value.size, np.nan)

    uncertainty, low, high = column("uncertainty"), column("ci_low"), column("ci_high")
    about = attributes(group)
    train_loss, subset_loss = _losses(root)
    status = strings(group["entry_status"]) if "entry_status" in group else [about.get("status", "ok")] * value.size
    common = {
        "run_id": text(root.get("run_id", "")), "checkpoint": text(root.get("checkpoint", "")),
        "update": float(root.get("update", np.nan)), "train_loss": train_loss, "subset_loss": subset_loss,
        "probe": text(root.get("probe", "")), "quantity": name, "uncertainty_kind": about.get("uncertainty_kind", "none"),
        "definition": about.get("definition", ""),
        "units": about.get("units", ""), "n_examples": float(root.get("n_examples", np.nan)),
        "subset_hash": text(root.get("subset_hash", "")), "settings": text(root.get("settings", "")), "options": "",
        "study": root["study"],
    }  # fmt: skip
    return [
        common | {"index": i, "entry": f"{name}_{i + 1}" if is_vector else name, "value": float(value[i]),
                  "uncertainty": float(uncertainty[i]), "ci_low": float(low[i]), "ci_high": float(high[i]), "status": status[i]}
        for i in range(value.size)
    ]  # fmt: skip


def _losses(root: dict) -> tuple[float, float]:
    """Loss over the whole training set and over the probed examples. Files from before both were stored have the latter under the name
    of the former."""
    train_loss = float(root.get("train_loss", np.nan))
    return (train_loss, float(root["subset_loss"])) if "subset_loss" in root else (np.nan, train_loss)
