"""Updates to the target against the batch size on the noisy quadratic model: closed form, runs drawn from it, and runs measured."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ..analysis.noisy_quadratic import table
from ..reader.sweep import Sweep
from . import style


def figure(sweep: Sweep) -> Figure:
    """Left: updates to the target against batch size. Right: measured over the closed form, with the runs drawn."""
    found = table(sweep.runs, sweep.path)
    picture, axes = style.panels(1, 2, 5.2, 3.8)
    left, right = axes[0]
    right.axhline(1, color=style.GREY, linewidth=0.9)
    for (method, rows), colour, marker in zip(found.groupby("method", sort=False), style.LINES, style.MARKERS):
        left.plot(rows.batch, rows.closed, color=colour, label=method)
        left.plot(rows.batch, rows.independent, color=colour, linestyle=":", linewidth=1)
        left.plot(
            rows.batch, rows.closed.iloc[0] * rows.batch.iloc[0] / rows.batch, color=style.GREY, linestyle="--", linewidth=0.7
        )
        left.errorbar(rows.batch, rows.measured, yerr=rows.error, color=colour, marker=marker, linestyle="", markersize=5)
        half = 2 * rows.scatter / np.sqrt(rows.seeds) / rows.closed
        right.fill_between(
            rows.batch, rows.drawn / rows.closed - half, rows.drawn / rows.closed + half, color=colour, alpha=0.18, linewidth=0
        )
        right.errorbar(rows.batch, rows.measured / rows.closed, yerr=rows.error / rows.closed, color=colour, marker=marker, linestyle="",
                       markersize=5)  # fmt: skip
    for ax in (left, right):
        style.batch_axis(ax, found.batch)
    left.set_yscale("log")
    style.plain_log(left.yaxis)
    left.set_ylim(found.closed.min() / 2, found.closed.max() * 2)
    left.set_ylabel("updates to the target loss")
    left.legend(
        title="marks: measured, bars ± standard error; dotted: independent batches;\ndashed: perfect scaling",
        title_fontsize=8,
        fontsize=8,
    )
    right.set_ylabel("measured / closed form")
    right.set_title("band: runs drawn from the model, mean ± 2 standard errors", fontsize=8.5)
    return picture
