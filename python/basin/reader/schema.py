"""Opening Basin's HDF5 files: every refusal is one clear line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np

from . import seal
from .fault import ReadError, SchemaError
from .unsealed import survey

READER_MAJOR = 1
READERS = {
    "run": "load_run", "sweep": "load_sweep", "probe": "read_probe", "tune": "load_tuning", "surface": "surface", "scaling": "load_scaling",
    "checkpoint": "load_run(...).checkpoint",
}  # fmt: skip


def text(value: Any) -> str:
    """HDF5 strings come as str, bytes or numpy scalars, depending on who wrote them."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        return text(value.item()) if value.size == 1 else str(value.tolist())
    return str(value)


def attribute(value: Any) -> Any:
    """An attribute as plain Python: str, bool, int, float or a list of them."""
    if isinstance(value, (bytes, np.bytes_)):
        return text(value)
    if isinstance(value, h5py.Empty):
        return ""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return [attribute(v) for v in value]
    return value


def attributes(item: h5py.Group | h5py.Dataset) -> dict:
    return {name: attribute(value) for name, value in item.attrs.items()}


def axis_label(name: str, about: dict) -> str:
    """What a figure says, from the attributes of a dataset: "mean loss of the training examples (nat)"."""
    units = about.get("units", "1")
    return about.get("long_name", name) + (f" ({units})" if units not in ("1", "") else "")


def meaning(dataset: h5py.Dataset | h5py.Group) -> dict:
    """Its units, long_name and definition."""
    return {key: text(dataset.attrs[key]) for key in ("units", "long_name", "definition") if key in dataset.attrs}


def strings(dataset: h5py.Dataset) -> np.ndarray:
    """A string dataset as an object array of str."""
    return np.array([text(v) for v in dataset[()]], dtype=object)


def require(where: str | Path, kind: str, name: str, known: Iterable[str]) -> None:
    """A name that isn't there is an error that lists those that are."""
    known = list(known)
    if name not in known:
        listed = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        raise ReadError(f'{where}: no {kind} "{name}"; there are: {listed or "none"}')


def open_file(path: str | Path, kind: str, verify: bool = True) -> h5py.File:
    """Opens `path` for reading and checks that it is a basin/<kind> file of a version that this reader knows; before that, where
    `verify` is set, that it is what was written, or, without a seal, that a child process can read it."""
    path = Path(path)
    if not path.is_file():
        raise ReadError(f"{path}: no such file")
    if verify and not seal.check(path):
        survey(path)
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        raise ReadError(f"{path}: truncated, or not an HDF5 file ({_first_line(error)})") from None
    try:
        check_schema(path, file, kind)
    except Exception:
        file.close()
        raise
    return file


def check_schema(path: str | Path, file: h5py.File, kind: str) -> None:
    name = text(file.attrs.get("schema_name", ""))
    version = text(file.attrs.get("schema_version", ""))
    if name != f"basin/{kind}":
        found = f'a "{name}" file' if name else "an HDF5 file without schema_name"
        reader = READERS.get(name.removeprefix("basin/"))
        raise SchemaError(f'{path}: {found}, expected "basin/{kind}"' + (f"; basin.{reader} reads it" if reader else ""))
    major = version.split(".")[0]
    if not major.isdigit():
        raise SchemaError(f'{path}: schema_version "{version}" is not a version')
    if int(major) > READER_MAJOR:
        raise SchemaError(
            f"{path}: schema version {version} is newer than this reader knows ({READER_MAJOR}.x); update the basin package"
        )
    if int(major) < READER_MAJOR:
        raise SchemaError(f"{path}: schema version {version} is older than this reader knows ({READER_MAJOR}.x)")


class reading:
    """Context: an HDF5 fault inside (a damaged chunk, a missing dataset) becomes a ReadError that names the file."""

    def __init__(self, path: str | Path, kind: str, verify: bool = True):
        self.path, self.kind, self.verify = path, kind, verify

    def __enter__(self) -> h5py.File:
        self.file = open_file(self.path, self.kind, self.verify)
        return self.file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.file.close()
        if isinstance(error, (OSError, KeyError, RuntimeError)) and not isinstance(error, ReadError):
            raise ReadError(f"{self.path}: damaged or incomplete ({_first_line(error)})") from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip("'\"").splitlines() or [type(error).__name__])[0]
