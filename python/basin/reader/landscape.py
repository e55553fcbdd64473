"""Reads what `basin landscape` writes: surfaces, lines, trajectories and paths.

>>> surface = basin.surface("out/quick/landscape/plane.0123456789ab.end.h5")
>>> surface.plot.axes["alpha"], surface.plot["train_loss"]   # the loss is [beta, alpha]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from .schema import attributes, axis_label, meaning, reading, require, strings, text

NOT_MEASURED, OK, NONFINITE, FAILED = range(4)  # how a cell stands
OWN = ("recipe", "vectors", "provenance")


@dataclass
class Plot:
    """Columns over one grid: arrays of the axes' lengths, slowest axis first."""

    name: str
    title: str
    axes: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]
    labels: dict[str, np.ndarray] = field(default_factory=dict)  # names of an axis' values, where they have names
    state: np.ndarray | None = None
    about: dict[str, dict] = field(default_factory=dict)  # units, long_name, definition of each axis and column
    attributes: dict = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        require(self.name, "column", name, self.columns)
        return self.columns[name]

    def label(self, name: str) -> str:
        """For an axis of a figure: "mean loss of the training examples (nat)"."""
        return axis_label(name, self.about.get(name, {}))

    def table(self) -> pd.DataFrame:
        """One row per cell; axes and columns as columns."""
        grids = np.meshgrid(*self.axes.values(), indexing="ij")
        columns = {name: grid.ravel() for name, grid in zip(self.axes, grids)}
        for name, labels in self.labels.items():
            shape = [-1 if axis == name else 1 for axis in self.axes]
            columns[f"{name}_label"] = np.broadcast_to(np.reshape(labels, shape), grids[0].shape).ravel()
        return pd.DataFrame(columns | {name: values.ravel() for name, values in self.columns.items()})


@dataclass
class Surface:
    path: Path
    kind: str
    status: str  # ok, partial, failed
    recipe: dict  # all that made the numbers
    plots: dict[str, Plot]
    vectors: dict[str, np.ndarray]

    @property
    def plot(self) -> Plot:
        """The grid that was computed; the other plots follow from it."""
        return next(iter(self.plots.values()))

    def __getitem__(self, name: str) -> Plot:
        require(self.path, "plot", name, self.plots)
        return self.plots[name]

    def to_xarray(self, name: str | None = None) -> Any:
        """One plot as an xarray.Dataset; needs xarray."""
        import xarray

        plot = self.plot if name is None else self[name]
        data = {c: (tuple(plot.axes), values, plot.about.get(c, {})) for c, values in plot.columns.items()}
        return xarray.Dataset(data, coords=dict(plot.axes), attrs=plot.attributes)


def surface(path: str | Path, verify: bool = True) -> Surface:
    """A file of `basin landscape`, finished or not: cells that are still to be measured are NaN and `state` 0."""
    with reading(path, "surface", verify) as file:
        names = [name for name in file if name not in OWN]
        names.sort(key=lambda name: name != text(file.attrs["default"]))
        vectors = file.get("vectors", {})
        return Surface(
            Path(path), text(file.attrs["kind"]), text(file.attrs["status"]), attributes(file["recipe"]),
            {name: _plot(name, file[name]) for name in names}, {name: vectors[name][()] for name in vectors},
        )  # fmt: skip


def path_summary(surface: Surface) -> pd.DataFrame:
    """What was read off each path, a row per path and quantity (docs/landscape.md)."""
    plot = surface["summary"]
    index = pd.MultiIndex.from_product([plot.labels["path"], plot.labels["quantity"]], names=["path", "quantity"])
    return pd.DataFrame({name: values.ravel() for name, values in plot.columns.items()}, index=index)


def _plot(name: str, group: h5py.Group) -> Plot:
    about = attributes(group)
    axes = np.atleast_1d(about["axes"]).tolist()
    labels = {axis: strings(group[f"{axis}_label"]) for axis in axes if f"{axis}_label" in group}
    known = {"state", *axes, *(f"{axis}_label" for axis in axes)}
    columns = [column for column in group if column not in known]
    columns.sort(key=lambda column: column != about["signal"])
    return Plot(
        name, text(about["long_name"]), {axis: group[axis][()] for axis in axes}, {c: group[c][()] for c in columns}, labels,
        group["state"][()] if "state" in group else None, {d: meaning(group[d]) for d in [*axes, *columns]},
        {key: value for key, value in about.items() if key not in ("NX_class", "signal", "auxiliary_signals", "axes", "long_name")},
    )  # fmt: skip
