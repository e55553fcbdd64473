"""What the hypotheses of a study are about: the effect of each of their contrasts with its interval, under the hypothesis' name."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from ..analysis.contrasts import Found
from ..analysis.verdict_tables import Verdicts
from ..analysis.verdicts import Part
from . import style

MARKS = {"confirmed": ("o", style.PALETTE[5]), "refuted": ("s", style.PALETTE[3]), "undecided": ("o", style.GREY)}
UNITS = {"points": "effect on test accuracy (points)", "nat": "effect on test loss (nat)", "ratio": "arm over base"}
INCH_A_ROW = 0.165
Row = tuple[str, Found, Part]  # of the hypothesis called so


def effects(v: Verdicts) -> Figure | None:
    """A panel for each unit, a row for each contrast. None where no hypothesis has an effect."""
    rows = {unit: found for unit in UNITS if (found := [row for row in _rows(v) if _unit(row[1]) == unit])}
    if not rows:
        return None
    longest = max(len(found) + len({name for name, *_ in found}) for found in rows.values())
    figure, axes = style.panels(1, len(rows), 6.4, 0.9 + INCH_A_ROW * longest)
    for ax, (unit, found) in zip(axes.flat, rows.items()):
        _panel(ax, unit, found)
        ax.set_ylim(longest - 0.3, -0.7)
    handles = [_handle(verdict) for verdict in MARKS]
    margin = Patch(color="#e8eef6", label="margin")
    style.legend(
        figure,
        [*handles, margin],
        title="bars: 95 % intervals; marks: the verdict on each contrast by itself; within the margin counts as nothing",
    )
    return figure


def _rows(v: Verdicts) -> list[Row]:
    return [(a.plan.name, v.found[p.contrast], p) for a in v.answers for p in a.parts if v.found[p.contrast].effect is not None]


def _unit(found: Found) -> str:
    if found.plan.scale == "ratio":
        return "ratio"
    return "points" if found.plan.outcome == "test_acc" else "nat" if found.plan.outcome == "test_loss" else ""


def _handle(verdict: str) -> Line2D:
    marker, colour = MARKS[verdict]
    face = colour if verdict != "undecided" else "white"
    return Line2D([], [], color=colour, marker=marker, markersize=5, markerfacecolor=face, linestyle="", label=verdict)


def _panel(ax: Axes, unit: str, rows: list[Row]) -> None:
    """Each hypothesis has a line with its name, then its contrasts."""
    labels: list[tuple[int, str, bool]] = []
    for name in dict.fromkeys(name for name, *_ in rows):
        labels.append((len(labels), name, True))
        for _, found, part in (row for row in rows if row[0] == name):
            _draw(ax, len(labels), unit, found, part)
            labels.append((len(labels), found.plan.name, False))
    ax.set_yticks([y for y, *_ in labels], [text for _, text, _ in labels], fontsize=7)
    for (_, _, is_name), tick in zip(labels, ax.get_yticklabels()):
        tick.set_fontweight("bold" if is_name else "normal")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(UNITS[unit])
    if unit == "ratio":
        ax.set_xscale("log")
        style.few_logs(ax.xaxis)
    ax.axvline(1 if unit == "ratio" else 0, color=style.GREY, linewidth=0.8)


def _draw(ax: Axes, y: int, unit: str, found: Found, part: Part) -> None:
    assert found.effect is not None
    scale = 100.0 if unit == "points" else 1.0

    def place(value: float) -> float:
        return float(np.exp(value)) if unit == "ratio" else scale * value

    if np.isfinite(part.margin) and not found.plan.recovers:  # of a recovery it is a part of the gap
        low, high = place(-part.margin), place(part.margin)
        ax.add_patch(Rectangle((low, y - 0.45), high - low, 0.9, color="#e8eef6", linewidth=0, zorder=0))
    handle = _handle(part.verdict)
    low, high = (place(end) for end in found.effect.interval())
    if np.isfinite(low):
        ax.plot([low, high], [y, y], color=handle.get_color(), linewidth=1.3)
    ax.plot(
        [place(found.effect.value)], [y], color=handle.get_color(), marker=handle.get_marker(), markersize=4.5,
        markerfacecolor=handle.get_markerfacecolor(), linestyle="",
    )  # fmt: skip
