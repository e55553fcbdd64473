"""Test accuracy of a sweep, against the batch size and against the training loss."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis import stats
from ..analysis.arms import ARM, arms_of, with_arms
from ..analysis.matched import cell, comparable, reference_of, settings
from ..analysis.names import PROTOCOL_TITLES, optimizers_of, protocols_of
from ..reader.sweep import Sweep
from . import style
from .marks import CROSS, HOLLOW, ONE_SEED, accuracy_cells, draw_arms, numbers, train_examples


def accuracy_against_batch(sweep: Sweep) -> Figure:
    """Test accuracy, mean and standard error over seeds, a panel per protocol; each optimiser's own small-batch reference with it."""
    runs, names, found = with_arms(sweep), sweep.names, protocols_of(sweep.runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 3.6, sharey=True)
    optimizers, arms, crosses = optimizers_of(runs, names), arms_of(runs), 0
    for ax, protocol in zip(axes[0], found):
        for optimizer in optimizers:
            _reference_line(ax, sweep, runs, protocol, optimizer)
            mine = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer)]
            crosses += draw_arms(ax, mine, accuracy_cells, optimizer, optimizers, arms, names)
        ax.set_title(PROTOCOL_TITLES[protocol])
        style.batch_axis(ax, runs.batch_size.dropna(), train_examples(runs))
    axes[0][0].set_ylabel("test accuracy (%)")
    handles = style.optimizer_legend(
        optimizers, names, HOLLOW, ONE_SEED, "each optimiser's small-batch reference", CROSS if crosses else ""
    )
    style.legend(
        figure, handles + style.arm_legend(arms), columns=3,
        title="bars: ± standard error over seeds",
    )  # fmt: skip
    return figure


def _reference_line(ax: Axes, sweep: Sweep, runs: pd.DataFrame, protocol: str, optimizer: str) -> None:
    """The mean that this optimiser's batch sizes are compared with in the text."""
    if sweep.runs.batch_size.isna().all():
        return
    reference = reference_of(sweep, optimizer)
    base = cell(runs, protocol, reference.optimizer, reference.batch_size)
    base = base[base[ARM] == ""] if (base[ARM] == "").any() else base
    mean, _, n = stats.mean_and_error(100 * numbers(base[comparable(base)], "test_acc"))
    if n and settings(base) <= 1:
        ax.axhline(mean, color=style.colour(optimizer, sweep.names), linewidth=0.9, linestyle=(0, (5, 4)), alpha=0.6)


def loss_against_accuracy(sweep: Sweep) -> Figure:
    """One mark per run: a large batch that is merely undertrained lies on the small batches' line, further up the loss."""
    runs, found = with_arms(sweep), protocols_of(sweep.runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 3.6, sharey=True)
    colours, arms = style.batch_colours(runs.batch_size.dropna()), arms_of(runs)
    for ax, protocol in zip(axes[0], found):
        part = runs[(runs.protocol == protocol)]
        good = comparable(part)
        for size, optimizer, arm in (
            part[["batch_size", "optimizer", ARM]].drop_duplicates().dropna().itertuples(index=False, name=None)
        ):
            inside = (part.batch_size == size) & (part.optimizer == optimizer) & (part[ARM] == arm)
            marker = style.arm_marker(optimizer, arms.index(arm), sweep.names)
            for filled in (True, False):
                some = part[inside & (good == filled)]
                ax.plot(numbers(some, "train_loss"), 100 * numbers(some, "test_acc"), linestyle="", marker=marker,
                        color=colours[size], markerfacecolor=colours[size] if filled else "none", markersize=5.5, alpha=0.9)  # fmt: skip
        lost = int((~np.isfinite(numbers(part, "train_loss"))).sum())
        if lost:
            ax.text(
                0.98,
                0.97,
                f"{lost} without a final loss",
                transform=ax.transAxes,
                ha="right",
                va="top",
                color=style.GREY,
                fontsize=8.5,
            )
        ax.set_xlabel("training loss (nat)")
        style.loss_axis(ax.xaxis, part.train_loss if "train_loss" in part else [])
        ax.set_title(PROTOCOL_TITLES[protocol])
    axes[0][0].set_ylabel("test accuracy (%)")
    shapes = style.optimizer_legend(optimizers_of(runs, sweep.names), sweep.names)
    shapes += style.arm_legend(arms)
    for handle in shapes:
        handle.set(color="#444444", linestyle="")
    style.legend(figure, shapes + style.batch_legend(runs.batch_size.dropna()), columns=12)
    return figure
