"""A board of optimisers: updates to the target against the batch size, and the data that they take."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.board import Board, Mean
from ..reader.sweep import Sweep
from . import style


def figure(sweep: Sweep) -> Figure:
    """Means over seeds with 95 % intervals. Left updates, dashed: half as many at twice the batch; right epochs."""
    board = Board(sweep)
    picture, axes = style.panels(1, 2, 5.4, 4.0)
    left, right = axes[0]
    most = 0.0
    for name in board.optimizers:
        found = [(size, m) for size in board.sizes if not (m := board.updates(name, size)).why]
        most = max([most, *(m.value for _, m in found)])
        _line(left, board, name, found, [1.0] * len(found))
        _line(right, board, name, found, [size / board.examples for size, _ in found])
    if most:
        sizes = np.array(board.sizes, float)
        left.plot(sizes, most * sizes[0] / sizes, color=style.GREY, linestyle="--", linewidth=0.8)
    for ax in (left, right):
        style.batch_axis(ax, board.sizes, board.examples)
        if ax.has_data():
            ax.set_yscale("log")
            style.plain_log(ax.yaxis)
    left.set_ylabel(f"updates to a training loss of {board.target:g}")
    right.set_ylabel("epochs to it")
    left.set_title("dashed: half as many at twice the batch", fontsize=8.5)
    right.set_title("means over seeds, bars: 95 %", fontsize=8.5)
    style.legend(picture, style.optimizer_legend(board.optimizers, sweep.names))
    return picture


def _line(ax: Axes, board: Board, name: str, found: list[tuple[int, Mean]], units: list[float]) -> None:
    if not found:
        return
    at = [size * style.dodge(name, board.optimizers) for size, _ in found]
    value, low, high = (np.array([getattr(m, which) for _, m in found]) * units for which in ("value", "low", "high"))
    bars = np.nan_to_num(np.stack([value - low, high - value]))
    ax.errorbar(at, value, yerr=bars, color=style.colour(name, board.sweep.names), marker=style.marker(name, board.sweep.names),
                markersize=5, linewidth=1.2, capsize=2)  # fmt: skip
