"""The largest Hessian eigenvalue over training against the limit of stability, and the training loss."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ..analysis.stability_limit import limit, named, sharpness, why_no_limit
from ..reader.sweep import Sweep
from . import style


def figure(sweep: Sweep) -> Figure:
    """λ₁ over updates, a colour per rate, a line per seed, the limit dashed or why there is none; training loss below."""
    picture, axes = style.panels(2, 1, 6.4, 2.6, sharex=True)
    upper, lower = axes[0][0], axes[1][0]
    runs = sweep.runs[sweep.runs.learning_rate.notna()].sort_values("learning_rate", kind="stable")
    names = list(dict.fromkeys(named(runs.iloc[i]) for i in range(len(runs))))
    colours = dict(zip(names, [*style.LINES] * len(names)))
    for i in range(len(runs)):
        run = runs.iloc[i]
        colour = colours[named(run)]
        found = sharpness(sweep, run.run_id)
        good = found["status"] == "ok"
        upper.plot(found["update"][good], found["value"][good], color=colour, linewidth=1, label=named(run))
        upper.plot(found["update"][~good], found["value"][~good], "o", color=colour, markerfacecolor="none")
        curve = sweep.curve(run.run_id)
        if len(curve):
            lower.plot(curve["update"], curve["loss"], color=colour, linewidth=0.8)
        if np.isfinite(limit(run)):
            upper.axhline(limit(run), color=colour, linestyle="--", linewidth=1)
    handles = dict(zip(upper.get_legend_handles_labels()[1], upper.get_legend_handles_labels()[0]))
    reasons = dict.fromkeys(
        why_no_limit(runs.iloc[i]) or "one line per seed; dashed: limit of stability" for i in range(len(runs))
    )
    title = "\n".join(r if r.startswith("one line") else f"no limit: {r}" for r in reasons)
    upper.legend(handles.values(), handles.keys(), loc="lower right", title=title)
    upper.set_ylabel("λ₁ of the training loss")
    upper.set_ylim(bottom=0)
    lower.set_yscale("log")
    style.plain_log(lower.yaxis)
    lower.set_ylabel("training loss")
    lower.set_xlabel("update")
    return picture
