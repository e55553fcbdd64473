"""Outcomes of annealed branches against their training loss: the same phase at every batch size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..analysis.annealed import AVERAGED, annealed_branches, kind_text
from ..analysis.names import optimizers_of
from ..reader.sweep import Sweep
from . import style
from .along_runs import ROWS, course_of, draw_course


def annealed_outcomes(sweep: Sweep) -> Figure | None:
    """A column per optimiser. A mark per branch, and per batch size, arm and share the mean over seeds at equal loss. None where no
    setting has such branches from two places."""
    rows = annealed_branches(sweep)
    rows = rows[np.isfinite(rows.train_loss)]
    if rows.empty:
        return None
    optimizers = optimizers_of(rows, sweep.names)
    kinds = sorted(
        {(arm, share) for arm, share in zip(rows.arm, rows.share)}, key=lambda kind: (kind[0], kind[1] == AVERAGED, kind[1])
    )
    figure, axes = style.panels(len(ROWS), len(optimizers), 4.0, 2.8, sharex=True, sharey="row")
    colours = style.batch_colours(rows.parent_batch)
    for row, (column, label, scale) in zip(axes, ROWS):
        row[0].set_ylabel(label)
        for ax, optimizer in zip(row, optimizers):
            mine = rows[(rows.optimizer == optimizer) & np.isfinite(rows[column])]
            for (size, arm, share), cell in mine.groupby(["parent_batch", "arm", "share"]):
                colour = colours[float(size)]
                ax.plot(cell.train_loss, scale * cell[column], color=colour, marker="o", markersize=3, linestyle="", alpha=0.6)
                seeds = [seed.sort_values("train_loss", ascending=False) for _, seed in cell.groupby("seed") if len(seed) > 1]
                course = course_of(seeds, column) if seeds else None
                if course is not None:
                    draw_course(ax, course, scale, colour, style.arm_line(kinds.index((arm, share))))
    for ax, optimizer in zip(axes[0], optimizers):
        ax.set_title(sweep.names.label("optimizers", optimizer))
    style.training_axes(axes, rows.train_loss.to_numpy(float), "training loss of the branch (nat)")
    handles = style.batch_legend(colours) + [
        Line2D([], [], color=style.GREY, linestyle=style.arm_line(i), label=kind_text(*kind)) for i, kind in enumerate(kinds)
    ]
    style.legend(figure, handles, title="bands: 95 % interval over seeds")
    return figure
