"""What limits the runs while they train, from the rows that `ledger_every` keeps: a column per optimiser, coloured by batch size."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..analysis.arms import ARM, with_arms
from ..analysis.names import optimizers_of
from ..reader.sweep import Sweep
from . import style
from .marks import few_arms

POINTS = 12  # of a run
PANELS = {
    "rate_over_critical": "rate over the critical rate, η / η_c",
    "noise_over_gradient": "noise over gradient",
    "first_order_share": "first-order share",
    "cosine": "cosine of successive updates",
}
LOGARITHMIC = ("rate_over_critical", "noise_over_gradient")


def means_of(rows: pd.DataFrame) -> pd.DataFrame:
    """batch_loss and PANELS in at most POINTS parts of a run, equally many rows in each. Shares and noise are ratios of means, since one
    row's say little; η / η_c = η λ_c / 2. NaN where a part has no number, or a mean square that isn't positive."""
    if rows.empty:
        return pd.DataFrame(columns=["batch_loss", *PANELS])
    part = np.arange(len(rows)) * min(POINTS, len(rows)) // len(rows)
    rows = rows.assign(rate_over_critical=rows.learning_rate * rows.critical_sharpness / 2)
    mean = rows.select_dtypes("number").groupby(part).mean()
    return pd.DataFrame(
        {
            "batch_loss": mean.batch_loss,
            "rate_over_critical": mean.rate_over_critical,
            "noise_over_gradient": mean.noise_square / mean.gradient_square.where(mean.gradient_square > 0),
            "first_order_share": mean.decrease / mean.first_order.where(mean.first_order > 0),
            "cosine": mean.cosine,
        }
    )


def ledger_on_the_way(sweep: Sweep) -> Figure | None:
    """None where no run kept a ledger. One line per run; compare at equal loss, that is, vertically. At 1 the first says that the update
    ends where the loss is back at its start, the second that a batch's noise is as long as the gradient."""
    runs, arms, left_out = few_arms(with_arms(sweep))
    lines = {run_id: means for run_id in runs.run_id if len(means := means_of(sweep.curve(run_id, "ledger")))}
    if not lines:
        return None
    part = runs[runs.run_id.isin(list(lines))]
    optimizers = optimizers_of(part, sweep.names)
    figure, axes = style.panels(len(PANELS), len(optimizers), 4.0, 2.4, sharex=True, sharey="row")
    colours = style.batch_colours(part.batch_size)
    for row, (column, label) in zip(axes, PANELS.items()):
        row[0].set_ylabel(style.up(label, 2.2))
        values = np.concatenate([means[column] for means in lines.values()])
        for ax, optimizer in zip(row, optimizers):
            mine = part[part.optimizer == optimizer]
            for run_id, size, arm in zip(mine.run_id, mine.batch_size, mine[ARM]):
                means = lines[run_id]
                ax.plot(means.batch_loss, means[column], color=colours[float(size)], linewidth=0.9, alpha=0.8,
                        linestyle=style.arm_line(arms.index(arm)))  # fmt: skip
            if column in LOGARITHMIC:
                style.positive_log(ax, values)
    for ax, optimizer in zip(axes[0], optimizers):
        ax.set_title(sweep.names.label("optimizers", optimizer))
    style.training_axes(axes, np.concatenate([means.batch_loss for means in lines.values()]), "batch loss (nat)")
    handles = style.batch_legend(colours) + style.arm_lines(arms, set(part[ARM]))
    style.legend(figure, handles, title=style.sentence(f"one line per run, means over {POINTS} parts of it, no bars", left_out))
    return figure
