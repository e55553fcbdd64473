"""The gradient noise scale while one run trained, against its batch size: `of_run(run)`.

For runs with `noise_scale_every`. B = tr Σ / |G|² is the batch size at which noise and signal of a gradient are equally strong; far below
it, batches can grow and save nearly as many updates (McCandlish et al., arXiv 1812.06162). The band is the 95 % interval; where |G|² is
not resolved there is no number, and what the interval leaves open is grey.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..reader.run import Run
from . import style

NONE = "no noise scale is recorded in this run (noise_scale_every)"


def of_run(run: Run) -> Figure:
    """One panel: B by its moving means, and the batch size of each look."""
    figure, axes = style.panels(1, 1, 6.4, 3.6)
    ax, looks = axes[0][0], run.noise_scale
    if looks.empty or not np.isfinite(looks.b_simple).any():
        style.nothing(ax, NONE if looks.empty else f"no look has a number: {', '.join(looks.status.unique())}")
        return figure
    theirs = "b_simple_low" not in looks
    update, colour = looks["update"], style.LINES[0]
    good = (looks.status == "ok") & (looks.b_simple > 0)
    ax.plot(update, looks.b_simple.where(good), color=colour, label="GPT-NeoX's" if theirs else "B = tr Σ / |G|²")
    size = looks.batch_size if "batch_size" in looks else np.full(len(looks), float(run.config["batch_size"]))
    ax.step(update, size, where="mid", color=style.GREY, linewidth=0.9, linestyle=(0, (5, 4)), label="batch size")
    ax.set_yscale("log")
    if not theirs:
        _band(ax, looks, good, colour)
    style.plain_log(ax.yaxis)
    ax.set(xlabel="update", ylabel="noise scale (examples)", title=f"run {run.run_id}")
    ax.legend(loc="best")
    return figure


def _band(ax: Axes, looks: pd.DataFrame, good: pd.Series, colour: Any) -> None:
    """The band of numbers first, which sets the axis; then what the others leave open, up to its end."""
    ax.fill_between(
        looks["update"], looks.b_simple_low, looks.b_simple_high, where=good, color=colour, alpha=0.2, linewidth=0, label="95 %"
    )
    low, high = ax.get_ylim()
    opened = (looks.status == "not_resolved").to_numpy()
    if opened.any():
        ax.fill_between(looks["update"], np.clip(looks.b_simple_low, low, high), high, where=opened, step="mid", color="#eeeeee",
                        linewidth=0, label="not resolved")  # fmt: skip
    ax.set_ylim(low, high)
