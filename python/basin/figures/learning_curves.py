"""Training losses of a sweep against their cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..analysis.arms import ARM, with_arms
from ..analysis.matched import comparable
from ..analysis.names import optimizers_of, protocols_of
from ..reader.sweep import Sweep
from . import style
from .marks import few_arms

BESIDE = 4  # panels side by side; of more optimisers three, in several rows
LOST: style.Dashes = (0, (2, 1.5))


def learning_curves(sweep: Sweep) -> Figure:
    """Batch loss against image gradients computed (cost), one run per batch size (its smallest seed), running mean. A panel for each
    optimiser that was run under a protocol; a protocol's panels have one scale."""
    runs, arms, left_out = few_arms(with_arms(sweep))
    shown = _first_seeds(runs)
    rows = _rows(sweep, shown)
    figure, axes = style.panels(max(1, len(rows)), max(map(len, rows), default=1), 3.7, 2.5)
    first: dict[str, Axes] = {}
    for row, panels in zip(axes, rows):
        for ax, (protocol, optimizer) in zip(row, panels):
            if protocol in first:
                ax.sharex(first[protocol])
                ax.sharey(first[protocol])
            first.setdefault(protocol, ax)
            ax.set_title(f"{sweep.names.label('optimizers', optimizer)}, {protocol}")
            ax.set_xlabel("image gradients computed")
        row[0].set_ylabel("training loss (nat)")
        for ax in row[len(panels) :]:
            ax.set_visible(False)
    style.letters_in_order(axes)
    colours, lost = style.batch_colours(shown.batch_size), False
    for ax, (protocol, optimizer) in _in_order(axes, rows):
        for _, run in shown[(shown.protocol == protocol) & (shown.optimizer == optimizer)].iterrows():
            lost |= _curve(ax, sweep, run, colours[float(run.batch_size)], style.arm_line(arms.index(run[ARM])))
    for protocol, ax in first.items():
        style.count_axis(ax)
        _loss_limits(ax, sweep, runs[runs.protocol == protocol])
    handles = style.batch_legend(colours) + style.arm_lines(arms, set(shown[ARM]))
    handles += [Line2D([], [], color=style.GREY, linestyle=LOST, label="not comparable")] if lost else []
    style.legend(figure, handles, title=style.sentence("running means of one seed", left_out))
    return figure


def _first_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """One run per setting."""
    runs = runs[runs.batch_size.notna()].assign(config_id=runs.config_id.fillna(""))
    return (
        runs.sort_values("seed").drop_duplicates(["protocol", "optimizer", "batch_size", "config_id"]).sort_values("batch_size")
    )


def _rows(sweep: Sweep, shown: pd.DataFrame) -> list[list[tuple[str, str]]]:
    """Protocols and optimisers of each row's panels; a protocol begins a row."""
    rows = []
    for protocol in protocols_of(shown):
        panels = [(protocol, o) for o in optimizers_of(shown[shown.protocol == protocol], sweep.names)]
        count = len(panels) if len(panels) <= BESIDE else BESIDE - 1
        rows += [panels[i : i + count] for i in range(0, len(panels), count)]
    return rows


def _in_order(axes: np.ndarray, rows: list[list[tuple[str, str]]]) -> list[tuple[Axes, tuple[str, str]]]:
    return [(ax, panel) for row, panels in zip(axes, rows) for ax, panel in zip(row, panels)]


def _curve(ax: Axes, sweep: Sweep, run: Any, colour: Any, line: style.Dashes) -> bool:
    """Dashed where the run is not comparable, which is returned; a point where it has one update."""
    curve = sweep.curve(run.run_id)
    if curve.empty or "gradients" not in curve:
        return False
    loss = curve.loss.where(np.isfinite(curve.loss))
    smooth = loss.rolling(max(1, len(loss) // 60), min_periods=1, center=True).mean()
    good = bool(comparable(pd.DataFrame([run])).iloc[0])
    ax.plot(curve.gradients, smooth, color=colour, linestyle=line if good else LOST, marker="o" if len(curve) < 6 else "",
            markersize=3.5)  # fmt: skip
    return not good


def _loss_limits(ax: Axes, sweep: Sweep, runs: pd.DataFrame) -> None:
    """Logarithmic, since the end matters. A diverged run must not squeeze the others: at most half above the largest loss at the start."""
    starts = [c.loss.iloc[0] for c in (sweep.curve(r) for r in runs.run_id[:40]) if len(c) and np.isfinite(c.loss.iloc[0])]
    if starts:
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
        ax.set_ylim(top=min(ax.get_ylim()[1], 1.5 * max(starts)))
        style.close_ticks(ax.yaxis, *ax.get_ylim())
