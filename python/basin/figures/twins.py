"""What a sweep ends at against its batch sizes: test accuracy and loss, and measures with the same at the twin of equal norm below."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..analysis import stats
from ..analysis.arms import with_arms
from ..analysis.matched import comparable
from ..analysis.names import optimizers_of
from ..reader.questions import TWIN
from ..reader.sweep import Sweep
from . import style
from .marks import (
    Cell,
    Drawn,
    Mark,
    accuracy_cells,
    cells,
    draw_arms,
    few_arms,
    handles_of,
    measure_cells,
    numbers,
    train_examples,
)

CellsOf = Callable[[pd.DataFrame], list[Cell]]
Panel = tuple[str, CellsOf, str]  # label, what is drawn, the column of a measure


def ends_against_batch(sweep: Sweep, measures: pd.DataFrame) -> Figure:
    """Runs of protocol B; `measures` as rows of `names.measures`. A measure and its twin have one scale; without a twin it has one
    panel."""
    runs, names = with_arms(sweep), sweep.names
    runs, arms, left_out = few_arms(runs[(runs.protocol == "B") & runs.batch_size.notna()])
    optimizers, drawn = optimizers_of(runs, names), Drawn()
    columns: list[list[Panel]] = [[("test accuracy (%)", accuracy_cells, ""), ("test loss (nat)", _loss_cells, "")]]
    for measure in measures.itertuples():
        panels = []
        for place, words in (("", ""), (TWIN, "\nat the twin")):
            column = f"probe.end{place}.{measure.probe}.{measure.column}"
            if np.isfinite(numbers(runs, column)).any():
                panels.append((f"{measure.label}{words}", _cells_of(sweep, measure.probe, measure.quantity, column), column))
        columns += [panels] if panels else []
    figure, axes = style.panels(2, len(columns), 3.6, 2.9)
    for column_of_axes, panels in zip(axes.T, columns):
        for ax in column_of_axes[len(panels) :]:
            ax.set_visible(False)
        for ax, (label, cells_of, column) in zip(column_of_axes, panels):
            ax.set_ylabel(style.up(label, 2.5) if "\n" not in label else label)
            for optimizer in optimizers:
                drawn |= draw_arms(ax, runs[runs.optimizer == optimizer], cells_of, optimizer, optimizers, arms, names)
            style.batch_axis(ax, runs.batch_size, train_examples(runs))
            if column:
                style.positive_log(ax, numbers(runs, column))
        if panels[-1][2]:
            _one_scale(column_of_axes[: len(panels)])
    handles = handles_of(drawn, optimizers, arms, names)
    style.legend(figure, handles, title=style.sentence("bars: ± standard error over seeds", left_out))
    return figure


def _one_scale(axes: np.ndarray) -> None:
    limits = [ax.get_ylim() for ax in axes]
    for ax in axes:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def _cells_of(sweep: Sweep, probe: str, quantity: str, column: str) -> CellsOf:
    return lambda runs: measure_cells(sweep, runs, probe, quantity, column)


def _loss_cells(runs: pd.DataFrame) -> list[Cell]:
    """Mean ± standard error over seeds; one seed has no bar."""
    values = numbers(runs, "test_loss")

    def estimate(lot: pd.DataFrame) -> Mark:
        mean, error, n = stats.mean_and_error(lot._value)
        return Mark(mean, mean - error, mean + error, "mean" if n > 1 else "one")

    return cells(runs, comparable(runs) & np.isfinite(values), values, estimate)
