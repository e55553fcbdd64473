"""A sweep of the noisy quadratic model against its closed form: updates to the target, and training losses on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..reader.fault import ReadError
from ..reader.sweep import Sweep
from . import stats
from .closed_form import Cell

LATER = 4  # standard deviations above the target at which no run can have stopped yet: once in 30,000 looks at a Gaussian

# What a run must be for the closed form to be its own; a file from before an option was there doesn't have its column.
REQUIRED = {
    "model": "noisy_quadratic", "data.set": "coin_flips", "loss": "mse", "optimizer": "sgd", "protocol": "B", "schedule": "constant",
    "warmup": 0, "scaling_rule": "none", "effective_rate": False, "sgd.nesterov": False, "sgd.dampening": 0, "sgd.weight_decay": 0,
    "label_smoothing": 0, "clip_gradient": 0, "lookahead_every": 0, "weight_average": 0, "perturbation.kind": "none",
    "learning_rate_factors": "[]", "noise.batch": 0, "parallel.mode": "one", "parallel.shards": 0,
    "batch_milestones": "[]",
}  # fmt: skip
METHOD = ["sgd.momentum", "noisy_quadratic.precondition"]
ORDER = [*reversed(METHOD), "batch_size", "seed"]


def cell_of(run: pd.Series, where: str | Path) -> tuple[Cell, float]:
    """A run's cell, and how far its target is above the least loss. ReadError where the closed form is not that of the run."""
    for key, wanted in REQUIRED.items():
        if run.get(key, wanted) != wanted:
            raise ReadError(f"{where}: run {run.run_id} has {key} = {run[key]}; the closed form is that of {key} = {wanted}")
    dimensions = int(run["dataset.classes"])
    cell = Cell(
        int(run.batch_size),
        run.learning_rate,
        run["sgd.momentum"],
        run["noisy_quadratic.precondition"],
        run["noisy_quadratic.power"],
        dimensions,
        int(run["dataset.n_train"]),
    )
    excess = run.target_loss - dimensions / 2
    if not 0 < excess < cell.h.sum() / 2:
        raise ReadError(
            f"{where}: run {run.run_id} has target_loss = {run.target_loss}, which isn't between the least loss and the start's"
        )
    if (dimensions + cell.h.sum()) / 2 >= 1.15 * run.target_loss:
        raise ReadError(
            f"{where}: run {run.run_id} has target_loss = {run.target_loss}, of which the start is more than 1.15 times"
        )
    return cell, excess


def method_name(momentum: float, precondition: float) -> str:
    parts = (
        f"momentum {momentum:g}" if momentum > 0 else "",
        f"preconditioned, p = {precondition:g}" if precondition > 0 else "",
    )
    return ", ".join(filter(None, parts)) or "SGD"


def table(runs: pd.DataFrame, where: str | Path = "sweep") -> pd.DataFrame:
    """One row per cell, in updates to the target: closed form (with the runs' examples, and with independent batches), drawn runs (mean and
    standard deviation of one), measured (mean, standard error, seeds that reached it and seeds)."""
    rows = []
    for _, group in runs.sort_values(ORDER).groupby("config_id", sort=False):
        cell, excess = cell_of(group.iloc[0], where)
        every = int(group.check_every.iloc[0])
        stops = cell.drawn_stops(excess, every)
        mean, error, reached = stats.mean_and_error(group.steps_to_target)
        rows.append({"method": method_name(cell.momentum, cell.precondition), "batch": cell.batch, "rate": cell.rate,
                     "closed": cell.check_at(excess, every), "independent": replace(cell, examples=np.inf).check_at(excess, every),
                     "drawn": stops.mean(), "scatter": stops.std(ddof=1), "measured": mean, "error": error, "reached": reached,
                     "seeds": len(group)})  # fmt: skip
    return pd.DataFrame(rows)


def losses(sweep: Sweep) -> pd.DataFrame:
    """One row per cell: the training loss at the checks, averaged over seeds, against its expectation, as long as no run can have stopped.

    `worst` is the largest difference in standard errors, `checks` how many were compared; where the expectation has no scatter
    (whole epochs) `worst` is NaN and `relative` the largest relative difference.
    """
    rows = []
    for _, group in sweep.runs.sort_values(ORDER).groupby("config_id", sort=False):
        cell, excess = cell_of(group.iloc[0], sweep.path)
        curves = [sweep.curve(run_id, "eval").set_index("update").train_loss for run_id in group.run_id]
        found = pd.concat(curves, axis=1, join="inner").sort_index() - cell.dimensions / 2
        mean, deviation = cell.excess(found.index)
        early = mean - LATER * deviation > excess
        difference, error = (found.mean(axis=1) - mean)[early], deviation[early] / np.sqrt(len(curves))
        exact = bool((deviation == 0).all())
        rows.append({"method": method_name(cell.momentum, cell.precondition), "batch": cell.batch, "checks": int(early.sum()),
                     "worst": np.nan if exact else (difference / error).abs().max(),
                     "relative": (difference / mean[early]).abs().max()})  # fmt: skip
    return pd.DataFrame(rows)


def critical_batch(batches: ArrayLike, updates: ArrayLike) -> float:
    """The batch size at which the updates are twice those of the largest, on straight lines in logarithms; NaN where none is."""
    x, y = np.log(np.asarray(batches, float)), np.log(np.asarray(updates, float) / (2 * np.asarray(updates, float)[-1]))
    below = np.flatnonzero((y[:-1] >= 0) & (y[1:] < 0))
    if not below.size:
        return np.nan
    i = below[-1]
    return float(np.exp(x[i] + (x[i + 1] - x[i]) * y[i] / (y[i] - y[i + 1])))
