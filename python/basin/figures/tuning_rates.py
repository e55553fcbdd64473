"""The figure of a tuning: validation loss against the learning rate."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.names import optimizers_of
from ..reader.names import Names
from ..reader.tune import Tuning
from . import style

HOLLOW = "under B: missed or overshot the target"


def loss_against_rate(tuning: Tuning) -> Figure:
    """Every candidate of the last rung, a panel per protocol and batch size, a colour per optimiser. Bars: standard errors from the
    validation examples alone. Ringed: the winner. Hollow: what protocol B ranks behind those that ended at the target. A cross at the
    top: some run of it diverged or failed, so its loss is infinite."""
    scores = tuning.last_rung
    protocols, sizes = sorted(scores.protocol.unique()), sorted(scores.batch_size.unique())
    optimizers = optimizers_of(scores, tuning.names)
    figure, axes = style.panels(len(protocols), len(sizes), 3.4, 3.0, sharey="row")
    for row, protocol in zip(axes, protocols):
        for ax, size in zip(row, sizes):
            here = scores[(scores.protocol == protocol) & (scores.batch_size == size)]
            for optimizer in optimizers:
                _draw(ax, here[here.optimizer == optimizer].sort_values("learning_rate"), optimizer, tuning.names)
            ax.set_xscale("log")
            ax.set_xlim(here.learning_rate.min() / 1.6, here.learning_rate.max() * 1.6)
            ax.set_title(f"Protocol {protocol}, batch size {style.batch_label(size)}")
        row[0].set_ylabel("validation loss (nats)")
    for ax in axes[-1]:
        ax.set_xlabel("learning rate")
    handles = style.optimizer_legend(optimizers, tuning.names, HOLLOW if "B" in protocols else "")
    style.legend(figure, handles, title="bars: ± standard error from the validation examples alone")
    return figure


def _draw(ax: Axes, candidates: pd.DataFrame, optimizer: str, names: Names) -> None:
    colour, marker = style.colour(optimizer, names), style.marker(optimizer, names)
    finite = candidates[np.isfinite(candidates.validation_loss)]
    ax.plot(finite.learning_rate, finite.validation_loss, color=colour, linewidth=0.9)
    behind = (finite.protocol == "B") & ((finite.reached < finite.seeds) | (finite.overshot_runs > 0))
    for marks, face in ((finite[~behind], colour), (finite[behind], "none")):
        ax.errorbar(marks.learning_rate, marks.validation_loss, marks.validation_loss_error, color=colour, marker=marker, markersize=4.5,
                    markerfacecolor=face, linestyle="", elinewidth=0.8)  # fmt: skip
    lost = candidates[~np.isfinite(candidates.validation_loss)]
    ax.plot(lost.learning_rate, np.full(len(lost), 0.97), "x", color=colour, markersize=5, transform=ax.get_xaxis_transform())
    winner = finite[finite.place == 1]
    ax.plot(winner.learning_rate, winner.validation_loss, "o", markersize=11, markerfacecolor="none", markeredgecolor=colour)
