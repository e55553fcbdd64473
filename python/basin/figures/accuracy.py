"""Test accuracy of a sweep, against the batch size and against the training loss."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis import stats
from ..analysis.arms import ARM, with_arms
from ..analysis.matched import cell, comparable, reference_of, settings
from ..analysis.names import PROTOCOL_TITLES, optimizers_of, protocols_of
from ..reader.sweep import Sweep
from . import style
from .marks import Drawn, accuracy_cells, draw_arms, few_arms, handles_of, numbers, train_examples


def accuracy_against_batch(sweep: Sweep) -> Figure:
    """Test accuracy, mean and standard error over seeds, a panel per protocol; each optimiser's own small-batch reference with it."""
    runs, arms, left_out = few_arms(with_arms(sweep))
    names, found = sweep.names, protocols_of(runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 2.9, sharey=True)
    optimizers, drawn, referred = optimizers_of(runs, names), Drawn(), False
    for ax, protocol in zip(axes[0], found):
        for optimizer in optimizers:
            referred |= _reference_line(ax, sweep, runs, protocol, optimizer)
            mine = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer)]
            drawn |= draw_arms(ax, mine, accuracy_cells, optimizer, optimizers, arms, names)
        ax.set_title(PROTOCOL_TITLES[protocol])
        style.batch_axis(ax, runs.batch_size.dropna(), train_examples(runs))
    axes[0][0].set_ylabel("test accuracy (%)")
    handles = handles_of(drawn, optimizers, arms, names, "each optimiser's small-batch reference" if referred else "")
    style.legend(figure, handles, title=style.sentence("bars: ± standard error over seeds", left_out))
    return figure


def _reference_line(ax: Axes, sweep: Sweep, runs: pd.DataFrame, protocol: str, optimizer: str) -> bool:
    """The mean that this optimiser's batch sizes are compared with in the text; whether there is one."""
    if sweep.runs.batch_size.isna().all():
        return False
    reference = reference_of(sweep, optimizer)
    base = cell(runs, protocol, reference.optimizer, reference.batch_size)
    base = base[base[ARM] == ""] if (base[ARM] == "").any() else base
    mean, _, n = stats.mean_and_error(100 * numbers(base[comparable(base)], "test_acc"))
    there = n > 0 and settings(base) <= 1
    if there:
        ax.axhline(mean, color=style.colour(optimizer, sweep.names), linewidth=0.9, linestyle=(0, (5, 4)), alpha=0.6)
    return bool(there)


def loss_against_accuracy(sweep: Sweep) -> Figure:
    """One mark per run: a large batch that is merely undertrained lies on the small batches' line, further up the loss."""
    runs, arms, left_out = few_arms(with_arms(sweep))
    found = protocols_of(runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 3.2, sharey=True)
    colours, drawn = style.batch_colours(runs.batch_size.dropna()), Drawn()
    for ax, protocol in zip(axes[0], found):
        part = runs[runs.protocol == protocol]
        drawn |= _run_marks(ax, part, arms, colours, sweep)
        lost = int((~np.isfinite(numbers(part, "train_loss"))).sum())
        if lost:
            text = f"{lost} without a final loss"
            ax.text(0.98, 0.97, text, transform=ax.transAxes, ha="right", va="top", color=style.GREY, fontsize=8.5)
        ax.set_xlabel("training loss (nat)")
        style.loss_axis(ax.xaxis, part.train_loss if "train_loss" in part else [])
        ax.set_title(PROTOCOL_TITLES[protocol])
    axes[0][0].set_ylabel("test accuracy (%)")
    shapes = handles_of(drawn, optimizers_of(runs, sweep.names), arms, sweep.names)
    for handle in shapes:
        handle.set(color="#444444", linestyle="")
    style.legend(figure, shapes + style.batch_legend(colours, "s"), title=style.sentence("a mark per run", left_out))
    return figure


def _run_marks(ax: Axes, part: pd.DataFrame, arms: list[str], colours: style.Colours, sweep: Sweep) -> Drawn:
    """Filled where the run is comparable."""
    drawn, good = Drawn(), comparable(part)
    cells = part[["batch_size", "optimizer", ARM]].drop_duplicates().dropna()
    for size, optimizer, arm in cells.itertuples(index=False, name=None):
        inside = (part.batch_size == size) & (part.optimizer == optimizer) & (part[ARM] == arm)
        marker = style.arm_marker(optimizer, arms.index(arm), sweep.names)
        for filled in (True, False):
            some = part[
                inside & (good == filled) & np.isfinite(numbers(part, "train_loss")) & np.isfinite(numbers(part, "test_acc"))
            ]
            if some.empty:
                continue
            ax.plot(numbers(some, "train_loss"), 100 * numbers(some, "test_acc"), linestyle="", marker=marker,
                    color=colours[size], markerfacecolor=colours[size] if filled else "none", markersize=5.5, alpha=0.9)  # fmt: skip
            drawn.add((optimizer, arm, "mean" if filled else "hollow"))
    return drawn
