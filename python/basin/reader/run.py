"""One run: its record (run.h5) and checkpoints, and where its probe files are."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from .fault import ReadError
from .layers import Layers, layers_of_run
from .probe import ProbeName, ProbeResult, probe_name, read_probe
from .schema import attributes, reading, require, text

TABLES = ("train", "eval", "ledger")
LEDGER_STATUS = ("ok", "no_descent", "never_rises", "below_rounding", "nonfinite")  # of a row, by its number in the file
NOISE_STATUS = ("ok", "not_resolved", "unavailable", "nonfinite")  # of a look, by its number in the file
NOT_ARRAYS = ("config", "progress", "data")  # of a checkpoint: text and attributes


@dataclass
class Outcomes:
    """Per example of one split: correct (bool), loss, margin, predicted class. All but the loss are None where a label isn't one class,
    and the class in files from before it was kept."""

    correct: np.ndarray | None
    loss: np.ndarray
    margin: np.ndarray | None
    predicted: np.ndarray | None = None


@dataclass(repr=False)
class Run:
    folder: Path
    run_id: str
    config_id: str
    status: str
    message: str
    config: dict
    config_toml: str
    data: dict
    rng: dict
    provenance: dict
    summary: dict
    tables: dict[str, pd.DataFrame]
    layers: Layers | None
    outcomes: dict[str, Outcomes] = field(default_factory=dict)
    verify: bool = True

    def __repr__(self) -> str:
        """One line: the tables of a run fill screens."""
        what = ", ".join(
            f"{key} {self.config[key]}" for key in ("model", "optimizer", "batch_size", "seed") if key in self.config
        )
        return f"<Run {self.run_id}: {what}; {self.status}; in {self.folder}>"

    @property
    def train(self) -> pd.DataFrame:
        """One row per update."""
        return self.tables.get("train", pd.DataFrame())

    @property
    def eval(self) -> pd.DataFrame:
        """One row per evaluation."""
        return self.tables.get("eval", pd.DataFrame())

    @property
    def noise_scale(self) -> pd.DataFrame:
        """The gradient noise scale while training, one row per look; empty where `noise_scale_every` was 0. `status` in words; how it
        was measured is in `attrs`."""
        return self.tables.get("noise_scale", pd.DataFrame())

    def checkpoints(self) -> list[str]:
        return sorted(p.stem for p in (self.folder / "ckpt").glob("*.h5"))

    def checkpoint(self, label: str = "end", group: str = "model") -> dict[str, np.ndarray]:
        """Named arrays of a checkpoint: parameters ("model"), running statistics ("buffers"), the state of the "optimizer", and of what
        else keeps some: the "average" of the weights, Lookahead's "slow_weights", ... (docs/file-format.md)."""
        require(self.folder, "checkpoint", label, self.checkpoints())
        with reading(self.folder / "ckpt" / f"{label}.h5", "checkpoint", self.verify) as file:
            require(self.folder, "group of a checkpoint", group, [name for name in file if name not in NOT_ARRAYS])
            found: dict[str, np.ndarray] = {}
            file[group].visititems(lambda name, item: found.update({name: item[()]}) if hasattr(item, "shape") else None)
            return found

    def probes(self) -> list[ProbeName]:
        """(checkpoint, probe, settings) of every probe file; `settings` is empty where they are the study's own."""
        return [probe_name(p) for p in sorted((self.folder / "probes").glob("*.h5"))]

    def probe(self, name: str, checkpoint: str = "end", settings: str = "") -> ProbeResult:
        """By the study's own settings, or by those of the fingerprint `settings` (as in the column of `Sweep.probes`). Another's number
        is never given in place of the study's."""
        wanted, known = ProbeName(checkpoint, name, settings), self.probes()
        if wanted in known:
            return read_probe(self.folder / "probes" / wanted.file, self.verify)
        own = wanted._replace(settings="")
        if own in known:
            result = read_probe(self.folder / "probes" / own.file, self.verify)
            if text(result.attributes.get("settings", "")) == settings:
                return result  # the study's own, by its fingerprint
        there = [p for p in known if (p.checkpoint, p.probe) == (checkpoint, name)] or known
        what = str(wanted) if settings else f"{wanted} by the study's settings"
        raise ReadError(f"{self.folder}: no {what}; there are: {', '.join(map(str, there)) or 'none'}")


def load_run(path: str | Path, verify: bool = True) -> Run:
    """Reads a run folder or its run.h5. Without `verify` also files that were edited since (`basin seal`)."""
    path = Path(path)
    folder, record = (path, _record_of(path)) if path.is_dir() else (path.parent, path)
    with reading(record, "run", verify) as file:
        root = attributes(file)
        config = attributes(file["config"]) if "config" in file else {}
        toml = text(file["config/toml"][()]) if "config/toml" in file else ""
        summary = attributes(file["summary"]) if "summary" in file else {}
        run = Run(
            folder, text(root.get("run_id", "")), text(root.get("config_id", "")), text(root.get("status", "")),
            text(root.get("status_message", "")), config, toml, _group(file, "data"), _group(file, "rng"),
            _group(file, "provenance"), summary, _tables(file), layers_of_run(file),
            verify=verify,
        )  # fmt: skip
        if "outcomes" in file:
            run.outcomes = {split: _outcomes(file["outcomes"][split]) for split in file["outcomes"]}
        return run


def _record_of(folder: Path) -> Path:
    record = folder / "run.h5"
    if record.is_file():
        return record
    if any((folder / name).exists() for name in ("study.toml", "sweep.h5", "runs")):
        raise ReadError(
            f"{folder}: a sweep's folder, not a run's: basin.load_sweep reads it, basin.load_run the folders in its runs/"
        )
    if (folder / "status.json").is_file():
        raise ReadError(
            f"{folder}: no run.h5 yet, the run is {read_status(folder / 'status.json').get('status', 'without a status')}"
        )
    raise ReadError(f"{folder}: not a run's folder, no run.h5 in it")


def read_status(path: str | Path) -> dict:
    """status.json as a dict; ReadError where it is damaged."""
    try:
        return json.loads(Path(path).read_text())
    except OSError:
        raise ReadError(f"{path}: no such file") from None
    except ValueError as error:
        raise ReadError(f"{path}: damaged ({error})") from None


def _group(file: h5py.File, name: str) -> dict:
    return attributes(file[name]) if name in file else {}


def _tables(file: h5py.File) -> dict[str, pd.DataFrame]:
    """Groups of equally long 1-D datasets: /train, /eval and, where there are any, /ledger and /noise_scale."""
    tables = {}
    for name in (*TABLES, "noise_scale"):
        if name not in file:
            continue
        columns = {c: file[name][c][()] for c in file[name] if file[name][c].ndim == 1 and _is_row_column(file[name], c)}
        tables[name] = pd.DataFrame(columns)
    if "ledger" in tables:
        ledger = tables["ledger"]
        ledger["status"] = [LEDGER_STATUS[int(code)] for code in ledger.status]
        ledger.attrs = attributes(file["ledger"])
    if "noise_scale" in tables:
        noise = tables["noise_scale"]
        noise["status"] = [NOISE_STATUS[int(code)] for code in noise.status]
        noise.attrs = attributes(file["noise_scale"])
    return tables


def _is_row_column(group: h5py.Group, column: str) -> bool:
    """The second dimension scale (parameter names) is 1-D too, but not one entry per row."""
    if group[column].dtype.kind not in "fiu":
        return False
    rows = group["update"].shape[0] if "update" in group else group[column].shape[0]
    return group[column].shape[0] == rows


def _outcomes(group: h5py.Group) -> Outcomes:
    count = int(group.attrs["n"])
    if "correct" not in group:
        return Outcomes(None, group["loss"][()], None)
    correct = np.unpackbits(group["correct"][()].astype(np.uint8))[:count].astype(bool)
    if correct.size != count:
        raise ReadError(f"{group.file.filename}: {group.name}/correct holds {correct.size} outcomes, not n = {count}")
    empty = np.full(count, np.nan, np.float32)
    return Outcomes(
        correct,
        group["loss"][()] if "loss" in group else empty,
        group["margin"][()] if "margin" in group else empty,
        group["predicted"][()] if "predicted" in group else None,
    )
