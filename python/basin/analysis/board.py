"""A board of optimisers: what each takes to a target at each batch size, in means over seeds with 95 % intervals.

Plain settings of protocol B alone, each at its own rate, and no branches. Updates and examples are averaged as logarithms, with Student's
t; a cell in which a seed missed the target has no mean, because the seeds that are left are the lucky ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..reader.fault import ReadError
from ..reader.sweep import Sweep
from . import stats, student
from .arms import ARM, with_arms
from .branches import without_branches
from .matched import lost_seeds
from .names import optimizers_of


@dataclass(frozen=True)
class Mean:
    """`low` and `high`: 95 %; NaN for one seed. `why`: why there is no mean, "" where there is one."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    seeds: int = 0
    why: str = ""


def plain_mean(values: ArrayLike) -> Mean:
    numbers = np.asarray(values, float)
    if not len(numbers) or not np.isfinite(numbers).all():
        return Mean(why="not measured")
    mean, error, n = stats.mean_and_error(numbers)
    half = float(student.ppf(0.975, n - 1)) * error
    return Mean(mean, mean - half, mean + half, n)


def geometric(values: ArrayLike) -> Mean:
    """The mean of positive numbers by their logarithms."""
    numbers = np.asarray(values, float)
    if np.isfinite(numbers).all() and not (numbers > 0).all():
        return Mean(why="not above 0")
    m = plain_mean(np.log(np.asarray(values, float)))
    return replace(m, value=float(np.exp(m.value)), low=float(np.exp(m.low)), high=float(np.exp(m.high)))


def either(values: ArrayLike) -> Mean:
    """Geometric where all are above 0, else plain."""
    return geometric(values) if (np.asarray(values, float) > 0).all() else plain_mean(values)


class Board:
    """`optimizers` in the order of lists, `sizes` ascending."""

    def __init__(self, sweep: Sweep):
        sweep = without_branches(sweep)
        runs = with_arms(sweep)
        runs = runs[(runs.protocol == "B") & (runs[ARM] == "") & runs.batch_size.notna()]
        if runs.empty:
            raise ReadError(f"{sweep.path}: no run of protocol B, and a board is of updates to a target")
        if runs.target_loss.nunique() != 1:
            raise ReadError(f"{sweep.path}: several targets: a board is of one")
        self.sweep, self.runs = sweep, runs
        self.target = float(runs.target_loss.iloc[0])
        self.examples = int(runs["dataset.n_train"].iloc[0])
        self.optimizers = optimizers_of(runs, sweep.names)
        self.sizes = sorted(int(b) for b in runs.batch_size.unique())

    def cell(self, optimizer: str, size: int) -> pd.DataFrame:
        return self.runs[(self.runs.optimizer == optimizer) & (self.runs.batch_size == size)]

    def rate(self, optimizer: str, size: int) -> float:
        rates = self.cell(optimizer, size).learning_rate.dropna().unique()
        return float(rates[0]) if len(rates) == 1 else np.nan

    def updates(self, optimizer: str, size: int) -> Mean:
        """To the target."""
        return self._at_target(optimizer, size, "steps_to_target", geometric)

    def at_end(self, optimizer: str, size: int, column: str) -> Mean:
        """At the first check at or below the target: test_loss, test_acc."""
        return self._at_target(optimizer, size, column, plain_mean)

    def _at_target(self, optimizer: str, size: int, column: str, mean: Callable[[pd.Series], Mean]) -> Mean:
        runs = self.cell(optimizer, size)
        why = "not run" if runs.empty else lost.text if (lost := lost_seeds(runs)) else ""
        return Mean(why=why) if why else mean(runs[column])

    def loss_after(self, optimizer: str, size: int, examples: float) -> Mean:
        """Training loss at a fixed budget, between the two evaluations around it by a line."""
        runs = self.cell(optimizer, size)
        if runs.empty:
            return Mean(why="not run")
        losses = [_loss_at(self.sweep.curve(run, "eval"), examples / size) for run in runs.run_id]
        if any(np.isnan(loss) for loss in losses):
            return Mean(why="at the target before")
        return plain_mean(losses)

    def measured(
        self, optimizer: str, size: int, checkpoint: str, probe: str, entry: str, mean: Callable[[pd.Series], Mean] = either
    ) -> Mean:
        """The mean of one number of a probe at a checkpoint that all seeds have, with the study's settings, also where it was measured
        after the sweep (`basin probe`)."""
        runs, rows = self.cell(optimizer, size), self.sweep.probes
        here = rows.study.astype(bool) & (rows.probe == probe) & (rows.entry == entry) & (rows.checkpoint == checkpoint)
        rows = rows[here & rows.run_id.isin(runs.run_id)]
        if rows.empty or set(rows.run_id) != set(runs.run_id):
            return Mean(why="not measured")
        if (rows.status != "ok").any():
            return Mean(why="not resolved")
        return mean(rows.value)


def _loss_at(curve: pd.DataFrame, update: float) -> float:
    """NaN where the run ended before."""
    if curve.empty or "train_loss" not in curve:
        return np.nan
    known = curve[curve.train_loss.notna()]
    return float(np.interp(update, known["update"], known.train_loss, left=np.nan, right=np.nan))
