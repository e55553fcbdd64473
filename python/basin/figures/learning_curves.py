"""Training losses of a sweep against their cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.arms import ARM, arms_of, with_arms
from ..analysis.matched import comparable
from ..analysis.names import optimizers_of, protocols_of
from ..reader.sweep import Sweep
from . import style


def learning_curves(sweep: Sweep) -> Figure:
    """Batch loss against image gradients computed (cost), one run per batch size (its smallest seed), running mean."""
    runs, optimizers, found = with_arms(sweep), optimizers_of(sweep.runs, sweep.names), protocols_of(sweep.runs)
    figure, axes = style.panels(max(1, len(found)), max(1, len(optimizers)), 3.7, 2.7, sharex="row", sharey="row")
    colours, arms = style.batch_colours(runs.batch_size.dropna()), arms_of(runs)
    for row, protocol in zip(axes, found):
        for ax, optimizer in zip(row, optimizers):
            part = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer)]
            for (size, _), same in part.groupby(["batch_size", part.config_id.fillna("")]):
                first = same.sort_values("seed").iloc[0]
                _curve(ax, sweep, first, colours[float(size)], style.arm_line(arms.index(first[ARM])))
            ax.set_title(f"{sweep.names.label('optimizers', optimizer)}, {protocol}")
            ax.set_xlabel("image gradients computed")
        style.count_axis(row[0])
        row[0].set_ylabel("training loss (nat)")
        _loss_limits(row[0], sweep, runs[runs.protocol == protocol])
    style.legend(figure, style.batch_legend(runs.batch_size.dropna()) + style.arm_lines(arms), columns=12, title="batch size")
    return figure


def _curve(ax: Axes, sweep: Sweep, run: Any, colour: Any, line: style.Dashes) -> None:
    """Dashed where the run is not comparable; a point where it has one update."""
    curve = sweep.curve(run.run_id)
    if curve.empty or "gradients" not in curve:
        return
    loss = curve.loss.where(np.isfinite(curve.loss))
    smooth = loss.rolling(max(1, len(loss) // 60), min_periods=1, center=True).mean()
    good = bool(comparable(pd.DataFrame([run])).iloc[0])
    ax.plot(curve.gradients, smooth, color=colour, linestyle=line if good else (0, (2, 1.5)), marker="o" if len(curve) < 6 else "",
            markersize=3.5)  # fmt: skip


def _loss_limits(ax: Axes, sweep: Sweep, runs: pd.DataFrame) -> None:
    """Logarithmic, since the end matters. A diverged run must not squeeze the others: at most half above the largest loss at the start."""
    starts = [c.loss.iloc[0] for c in (sweep.curve(r) for r in runs.run_id[:40]) if len(c) and np.isfinite(c.loss.iloc[0])]
    if starts:
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
        ax.set_ylim(top=min(ax.get_ylim()[1], 1.5 * max(starts)))
