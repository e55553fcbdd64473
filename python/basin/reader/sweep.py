"""A whole sweep as tables: from sweep.h5 where it is up to date, else from the run folders as they stand."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .fault import ReadError, SchemaError
from .layers import Layers, layers_of_sweep
from .names import MEASURE, Names, column_of, names_in, names_of_program
from .probe import PROBE_COLUMNS, ProbeResult, name_options, read_probe
from .run import TABLES, Run, load_run, read_status
from .schema import axis_label, meaning, reading, require, strings, text
from .tables import table_of

NOT_THERE = 255  # in /outcomes/test/correct and predicted: the run has no such outcome
ASKED_FOR = "option."  # before the name of an option that a result is also called by: `epochs` are those done
NO_OPTIONS = ("without_weight_decay", "without_trust_ratio")  # called options by files from before they had names of their own
STATUS_WORDS = ("finished", "target_not_reached", "diverged", "failed", "interrupted", "running", "queued")


def load_sweep(path: str | Path, source: str = "auto", verify: bool = True) -> pd.DataFrame:
    """One row per run. `source`: "file" (sweep.h5), "runs" (the run folders) or "auto": the file unless a run is newer. Without
    `verify` also files that were edited since (`basin seal`)."""
    return open_sweep(path, source, verify).runs


def open_sweep(path: str | Path, source: str = "auto", verify: bool = True) -> Sweep:
    path = Path(path)
    if path.is_file():
        return FileSweep(path, verify)
    if not path.is_dir():
        raise ReadError(f"{path}: no such file or folder")
    if source not in ("auto", "file", "runs"):
        raise ValueError(f'source = "{source}" is none of auto, file, runs')
    if (path / "run.h5").is_file() or ((path / "config.toml").is_file() and not (path / "runs").is_dir()):
        raise ReadError(f"{path}: a run's folder, not a sweep's: basin.load_run reads it")
    if source == "file" or (source == "auto" and _file_is_newest(path)):
        return FileSweep(path / "sweep.h5", verify)
    return FolderSweep(path, verify)


class Sweep:
    """What both sources offer. `runs`: one row per run; `probes`: one row per number, at any checkpoint; `study`: TOML text;
    `options`: the columns of `runs` that are options of the runs, or the data set's name."""

    path: Path
    study: str
    runs: pd.DataFrame
    probes: pd.DataFrame
    options: list[str]

    @property
    def folder(self) -> Path:
        """The study's: `path`, or where that file lies."""
        return self.path if self.path.is_dir() else self.path.parent

    @cached_property
    def names(self) -> Names:
        """Labels and order: from the file, else from the program, else the names themselves as they come in the file (with a warning,
        since nobody says then which quantities are ratios of means)."""
        known = self._names() or names_of_program()
        if known is None:
            warnings.warn(f"{self.path}: no /names in it, and no program `basin`: bare names, ratios unknown", stacklevel=3)
            firsts = self.probes.drop_duplicates("probe")
            known = Names(measures=self._as_the_file_says(zip(firsts.probe, firsts.quantity)))
        for kind, column in (("optimizers", "optimizer"), ("models", "model"), ("data_sets", "dataset.name")):
            known = known.seen(kind, self.runs.get(column, ()))
        return known.seen("probes", self.probes.probe).with_columns(self.runs)

    def about(self, column: str) -> dict:
        """Units, long_name and definition of a column of `runs`; empty where no file says."""
        raise NotImplementedError

    def label(self, column: str) -> str:
        """What a column of `runs` is, for a figure or table: "largest Hessian eigenvalues (loss/weight^2)"; its name where no file says."""
        return axis_label(column, self.about(column))

    def measures(self, named: Iterable[tuple[str, str]]) -> pd.DataFrame:
        """The rows of `names.measures` of these probes and quantities; of those that aren't in it, what the file says."""
        listed = self.names.measures
        own = self._as_the_file_says(named)
        rows = pd.concat([listed, own]).drop_duplicates(["probe", "quantity"])
        return own[["probe", "quantity"]].merge(rows, how="left")

    def _as_the_file_says(self, named: Iterable[tuple[str, str]]) -> pd.DataFrame:
        rows = []
        for probe, quantity in named:
            column = column_of(probe, quantity, self.runs)
            stems = (c.removesuffix(f".{probe}.{column}") for c in self.runs if c.endswith(f".{probe}.{column}"))
            label = axis_label(column, self.about(f"{next(stems, '')}.{probe}.{column}"))
            rows.append(
                {"probe": probe, "quantity": quantity, "column": column, "label": label, "heading": column, "companion": False}
            )
        return pd.DataFrame(rows, columns=MEASURE)

    def correct(self, run_ids: Iterable[str], at: str = "end") -> np.ndarray | None:
        """Right or wrong on the test images, [run, example] float, at the end of the runs or where they passed a level ("loss-1.5",
        of `loss_levels`); None where a run has no such outcomes."""
        return self._checked_outcomes(run_ids, "correct", at)

    def losses(self, run_ids: Iterable[str], at: str = "end") -> np.ndarray | None:
        """Loss of each test image, [run, example] float; None as for correct(), and for files from before losses were collected."""
        return self._checked_outcomes(run_ids, "loss", at)

    def predicted(self, run_ids: Iterable[str], at: str = "end") -> np.ndarray | None:
        """Predicted class of each test image, [run, example] float; None as for correct(), and for files from before they were kept."""
        return self._checked_outcomes(run_ids, "predicted", at)

    def outcomes_at(self) -> list[str]:
        """Where any run has outcomes of test images: "end", and loss levels from high to low."""
        splits = self._splits()
        levels = [split.removeprefix("test@") for split in splits if split.startswith("test@")]
        ordered = sorted(levels, key=_level_of, reverse=True)
        return ["end"] * ("test" in splits) + ordered

    def _checked_outcomes(self, run_ids: Iterable[str], what: str, at: str) -> np.ndarray | None:
        wanted = list(run_ids)
        for run_id in wanted:
            self._require_run(run_id)
        return self._outcomes_of(wanted, what, "test" if at == "end" else f"test@{at}")

    def curve(self, run_id: str, table: str = "train") -> pd.DataFrame:
        """All columns of "train" (one row per update), "eval" or "ledger"; empty where the run has no rows yet."""
        self._require_run(run_id)
        require(self.path, "table of a run", table, TABLES)
        return self._curve(run_id, table)

    def curve_column(self, run_id: str, table: str, column: str) -> np.ndarray:
        """The finite values of one column of a curve; empty where there is none. Faster than curve() over many runs."""
        self._require_run(run_id)
        values = self._curve_column(run_id, table, column)
        return values[np.isfinite(values)]

    def layers(self, run_id: str) -> Layers | None:
        """Norms and trust ratios by parameter over training; None where none are recorded."""
        self._require_run(run_id)
        return self._layers(run_id)

    def _require_run(self, run_id: str) -> None:
        require(self.path, "run", run_id, self.runs.run_id)

    def _names(self) -> Names | None:
        raise NotImplementedError

    def _splits(self) -> set[str]:
        raise NotImplementedError

    def _outcomes_of(self, run_ids: list[str], what: str, split: str) -> np.ndarray | None:
        raise NotImplementedError

    def _curve(self, run_id: str, table: str) -> pd.DataFrame:
        raise NotImplementedError

    def _curve_column(self, run_id: str, table: str, column: str) -> np.ndarray:
        return self._curve(run_id, table).get(column, pd.Series(dtype=float)).to_numpy(float)

    def _layers(self, run_id: str) -> Layers | None:
        raise NotImplementedError


class FileSweep(Sweep):
    def __init__(self, path: Path, verify: bool):
        self.path, self.verify = path, verify
        with reading(path, "sweep", verify) as file:
            self.study = text(file.attrs.get("study", ""))
            self.runs = _without_gaps_in_texts(table_of(file["runs"]))
            options = {c for c in self.runs if text(file["runs"][c].attrs.get("definition", "")) == "option"}
            self.probes = (
                _probe_table(table_of(file["probes"]), self.runs) if "probes" in file else pd.DataFrame(columns=PROBE_COLUMNS)
            )
            self._known_splits = set(file["outcomes"]) if "outcomes" in file else set()
        self.options = _options(self.runs, options)
        self._row = {run_id: i for i, run_id in enumerate(self.runs.run_id)}
        n_test = self.runs.get("dataset.n_test", pd.Series(np.nan, self.runs.index))
        self._n_test = pd.to_numeric(n_test, errors="coerce").to_numpy(float)
        self._kept: dict[str, np.ndarray | None] = {}

    def _names(self) -> Names | None:
        with reading(self.path, "sweep", self.verify) as file:
            return names_in(file)

    def about(self, column: str) -> dict:
        with reading(self.path, "sweep", self.verify) as file:
            return meaning(file["runs"][column]) if column in file["runs"] else {}

    def _splits(self) -> set[str]:
        return self._known_splits

    def _outcomes_of(self, run_ids: list[str], what: str, split: str) -> np.ndarray | None:
        table = self._whole(f"outcomes/{split}/{what}")
        if table is None:
            return None
        places = [self._row[r] for r in run_ids]
        lengths = {self._test_images(place, table.shape[1]) for place in places}
        if len(lengths) != 1:  # no runs, or runs with other test sets, that have no common table
            return None
        rows = table[places, : lengths.pop()]
        missing = np.isnan(rows) if what == "loss" else rows == NOT_THERE
        # A loss that isn't finite is an outcome; a run without any has none at all.
        gone = missing.all(axis=1).any() if what == "loss" else missing.any()
        return None if rows.size == 0 or gone else rows.astype(float)

    def _test_images(self, place: int, width: int) -> int:
        """How many entries of a run's row of outcomes are its own: rows are as wide as the largest test set of the sweep."""
        own = self._n_test[place]
        return min(int(own), width) if own > 0 else width

    def _whole(self, name: str) -> np.ndarray | None:
        """A dataset, read once."""
        if name not in self._kept:
            with reading(self.path, "sweep", self.verify) as file:
                self._kept[name] = file[name][()] if name in file else None
        return self._kept[name]

    def _curve_column(self, run_id: str, table: str, column: str) -> np.ndarray:
        whole = self._whole(f"curves/{table}/{column}")
        return np.array([]) if whole is None else whole[self._row[run_id]].astype(float)

    def _curve(self, run_id: str, table: str) -> pd.DataFrame:
        with reading(self.path, "sweep", self.verify) as file:
            if f"curves/{table}" not in file:
                return pd.DataFrame()
            row, group = self._row[run_id], file[f"curves/{table}"]
            frame = pd.DataFrame({name: group[name][row] for name in group if group[name].ndim == 2})
        return frame[frame["update"].notna()] if "update" in frame else frame

    def _layers(self, run_id: str) -> Layers | None:
        with reading(self.path, "sweep", self.verify) as file:
            return layers_of_sweep(file, run_id)


class FolderSweep(Sweep):
    """Reads the folder of every run of the study; a run that cannot be read is a row with status "failed" and the reason, and a warning."""

    def __init__(self, path: Path, verify: bool):
        self.path, self.verify = path, verify
        folders, strays = _run_folders(path)
        if strays:
            names = ", ".join(p.name for p in strays)
            runs = "1 run" if len(strays) == 1 else f"{len(strays)} runs"
            warnings.warn(f"{path}/runs holds {runs} of another study, left out: {names}", stacklevel=2)
        if not folders:
            raise ReadError(f"{path}: neither sweep.h5 nor runs/ with a run of the study in it")
        study = path / "study.toml"
        self.study = study.read_text() if study.is_file() else ""
        self._runs: dict[str, Run] = {}
        self._meanings: dict[str, dict] = {}  # of columns of probes
        self._configured: set[str] = set()  # keys of the runs' configurations
        rows: list[dict] = []
        probes: list[ProbeResult] = []
        for folder in folders:
            row, found = self._read(folder)
            rows.append(row)
            probes += found
        self.runs = _without_gaps_in_texts(pd.DataFrame(rows))
        measured = {key for run in self._runs.values() for key in run.summary}
        self.options = _options(self.runs, self._configured - measured)
        self.probes = pd.concat(name_options(probes), ignore_index=True) if probes else pd.DataFrame(columns=PROBE_COLUMNS)

    def _read(self, folder: Path) -> tuple[dict, list[ProbeResult]]:
        row = {"run_id": folder.name, "config_id": "", "status": "queued", "status_message": ""}
        probes: list[ProbeResult] = []
        try:
            if (folder / "run.h5").is_file():
                run = self._runs[folder.name] = load_run(folder, self.verify)
                row |= run_row(run)
                self._configured.update(with_asked_for(flat_options(tomllib.loads(run.config_toml))))
            elif (folder / "config.toml").is_file():
                options = with_asked_for(flat_options(tomllib.loads((folder / "config.toml").read_text())))
                row |= options
                self._configured.update(options)
            if (folder / "status.json").is_file():
                status = read_status(folder / "status.json")
                row |= {"status": status.get("status", ""), "status_message": status.get("message", "")}
        except SchemaError:
            raise
        except (ReadError, ValueError) as error:
            warnings.warn(str(error), stacklevel=2)
            row |= {"status": "failed", "status_message": str(error)}
        for file in sorted((folder / "probes").glob("*.h5")):
            try:
                probe = read_probe(file, self.verify)
            except SchemaError:
                raise
            except ReadError as error:
                warnings.warn(f"{error}; left out", stacklevel=2)  # the run itself is none the worse
                continue
            probes.append(probe)
            row |= probe_columns(probe)
            self._meanings |= {f"{_stem(probe)}.{quantity}": about for quantity, about in probe.about.items()}
        return row, probes

    def _names(self) -> Names | None:
        return None  # of no run, but of the program that will collect them

    def about(self, column: str) -> dict:
        whole, _, number = column.rpartition("_")
        return self._meanings.get(column) or (self._meanings.get(whole, {}) if number.isdigit() else {})

    def _splits(self) -> set[str]:
        return {split for run in self._runs.values() for split in run.outcomes if split == "test" or split.startswith("test@")}

    def _outcomes_of(self, run_ids: list[str], what: str, split: str) -> np.ndarray | None:
        if not run_ids or any(r not in self._runs or split not in self._runs[r].outcomes for r in run_ids):
            return None
        rows = [getattr(self._runs[r].outcomes[split], what) for r in run_ids]
        if any(row is None or (what == "loss" and np.isnan(row).all()) for row in rows):
            return None
        return np.array(rows, float) if len({len(r) for r in rows}) == 1 else None

    def _curve(self, run_id: str, table: str) -> pd.DataFrame:
        run = self._runs.get(run_id)
        return run.tables.get(table, pd.DataFrame()) if run else pd.DataFrame()

    def _layers(self, run_id: str) -> Layers | None:
        run = self._runs.get(run_id)
        return run.layers if run else None


def _level_of(label: str) -> float:
    """ "loss-1.5" -> 1.5; a label of another kind stands last."""
    try:
        return float(label.removeprefix("loss-"))
    except ValueError:
        return -np.inf


def _options(runs: pd.DataFrame, known: set[str]) -> list[str]:
    """In the order of columns. The data set's name is one by any of the options that choose it."""
    return [column for column in runs if (column in known and column not in NO_OPTIONS) or column == "dataset.name"]


def with_asked_for(options: dict) -> dict:
    """Options that a result is also called by have a second column, in which the result doesn't take their place; next to the first, as
    in sweep.h5, since labels of arms go by the order of options."""
    found: dict = {}
    for key, value in options.items():
        found |= {key: value, ASKED_FOR + key: value} if key in ("updates", "epochs") else {key: value}
    return found


def run_row(run: Run) -> dict:
    """A run's row: identity, options, what the data is, and the final numbers."""
    row = {"run_id": run.run_id, "config_id": run.config_id, "status": run.status, "status_message": run.message}
    row |= with_asked_for({key: option_text(value) for key, value in run.config.items()})
    row |= {f"dataset.{key}": option_text(value) for key, value in run.data.items()}
    return row | run.summary


def probe_columns(probe: ProbeResult) -> dict:
    """probe.<checkpoint>.<probe>.<quantity>, for a vector <quantity>_1 and so on, with siblings for what is known of it; of files by
    the study's own settings alone."""
    columns = {}
    for row in probe.table[probe.table.study.astype(bool)].itertuples(index=False):
        number = f"_{row.index + 1}" if row.quantity in probe.vectors else ""
        name = f"{_stem(probe)}.{row.quantity}{number}"
        columns[name] = row.value
        columns |= {f"{name}.{key}": getattr(row, key) for key in ("uncertainty", "ci_low", "ci_high", "status")}
    return columns


def _stem(probe: ProbeResult) -> str:
    return f"probe.{probe.checkpoint}.{probe.probe}"


def flat_options(tree: dict, prefix: str = "") -> dict:
    """Nested TOML tables as dotted keys."""
    flat: dict = {}
    for key, value in tree.items():
        flat |= flat_options(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: option_text(value)}
    return flat


def option_text(value: Any) -> Any:
    """A list as TOML text, so that a column holds one kind of thing; everything else as it is."""
    if not isinstance(value, list):
        return value
    return (
        "["
        + ", ".join(f'"{v}"' if isinstance(v, str) else str(v).lower() if isinstance(v, bool) else repr(v) for v in value)
        + "]"
    )


def _probe_table(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Files from before the full training loss was stored have the subset's under its name (probe.py does the same)."""
    if "subset_loss" not in table:
        table = table.rename(columns={"train_loss": "subset_loss"}).assign(train_loss=np.nan)
    if "entry" not in table and len(table):  # from before it was stored: vectors have numbered columns in /runs
        ends = {tuple(column.split(".")[-2:]) for column in columns if column.startswith("probe.")}
        table = table.assign(
            entry=[
                f"{row.quantity}_{row.index + 1}" if (row.probe, f"{row.quantity}_1") in ends else row.quantity
                for row in table[["probe", "quantity", "index"]].itertuples(index=False)
            ]
        )
    missing = {"entry": "", "subset_hash": "", "settings": "", "options": "", "study": True}
    return table.assign(**{name: value for name, value in missing.items() if name not in table})


def _without_gaps_in_texts(runs: pd.DataFrame) -> pd.DataFrame:
    """A missing text is "", as in sweep.h5."""
    for column in runs:
        if runs[column].dtype.kind not in "fiub":
            runs[column] = runs[column].where(runs[column].notna(), "" if _is_text(runs[column]) else np.nan)
    return runs


def _is_text(column: pd.Series) -> bool:
    return any(isinstance(v, str) for v in column)


def _run_folders(path: Path) -> tuple[list[Path], list[Path]]:
    """Folders of the study's runs, and of others under runs/ (of `basin train --out`). Without a study all count."""
    folders = sorted(p for p in (path / "runs").glob("*") if p.is_dir())
    doubtful = [p for p in folders if not _has_marks_of_a_sweep(p)] if (path / "study.toml").is_file() else []
    known = _collected(path) if doubtful else set()
    strays = [p for p in doubtful if p.name not in known]
    return [p for p in folders if p not in strays], strays


def _has_marks_of_a_sweep(folder: Path) -> bool:
    """A sweep writes cell.toml for each run that it starts, and says about the others that they are queued; `basin train` does neither."""
    if (folder / "cell.toml").is_file():
        return True
    try:
        return read_status(folder / "status.json").get("status", "queued") == "queued"
    except ReadError:
        return True  # a row that says what is wrong


def _collected(path: Path) -> set[str]:
    """Runs that sweep.h5 has: one trained by hand may be the study's all the same, and `basin collect` knows which."""
    try:
        with reading(path / "sweep.h5", "sweep") as file:
            return set(strings(file["runs/run_id"]))
    except ReadError:
        return set()


def _file_is_newest(folder: Path) -> bool:
    """Whether nothing that sweep.h5 was collected from is younger than it."""
    file = folder / "sweep.h5"
    if not file.is_file():
        return False
    stamp = file.stat().st_mtime_ns
    runs, _ = _run_folders(folder)
    sources = (p for run in runs for name in ("status.json", "run.h5", "probes/*.h5") for p in run.glob(name))
    return all(p.stat().st_mtime_ns <= stamp for p in sources)
