"""What the hypotheses of a study are about: the effect of each of their contrasts with its interval, under the hypothesis' name."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from ..analysis.contrasts import Found
from ..analysis.verdict_tables import Verdicts
from ..analysis.verdicts import Part
from ..reader.questions import TWIN
from ..reader.sweep import Sweep
from . import style

MARKS = {"confirmed": ("o", style.PALETTE[5]), "refuted": ("s", style.PALETTE[3]), "undecided": ("o", style.GREY)}
POINTS, NAT = "effect on test accuracy (points)", "effect on test loss (nat)"
WIDTH, INCH_A_ROW, INCH_A_PANEL = 8.5, 0.155, 0.6
Row = tuple[str, Found, Part]  # of the hypothesis called so


def effects(v: Verdicts, sweep: Sweep) -> Figure | None:
    """A panel for each quantity, one below the other, a row for each contrast. None where no hypothesis has an effect."""
    by_quantity: dict[str, list[Row]] = {POINTS: [], NAT: []}
    for row in _rows(v):
        by_quantity.setdefault(_quantity(row[1], sweep), []).append(row)
    by_quantity = {quantity: found for quantity, found in by_quantity.items() if found}
    if not by_quantity:
        return None
    lines = [len(found) + len({name for name, *_ in found}) for found in by_quantity.values()]
    height = (INCH_A_ROW * sum(lines) + INCH_A_PANEL * len(lines)) / len(lines)
    figure, axes = style.panels(len(lines), 1, WIDTH, height, height_ratios=lines)
    for ax, (quantity, found), count in zip(axes.flat, by_quantity.items(), lines):
        _panel(ax, quantity, found)
        ax.set_ylim(count - 0.3, -0.7)
    drawn = {part.verdict for found in by_quantity.values() for *_, part in found}
    handles: list[Artist] = [_handle(verdict) for verdict in MARKS if verdict in drawn]
    margin = Patch(color="#e8eef6", label="margin: what counts as nothing, unless it is resolved")
    style.legend(figure, [*handles, margin], title="bars: 95 % intervals; marks: the verdict on each contrast by itself")
    return figure


def _rows(v: Verdicts) -> list[Row]:
    return [(a.plan.name, v.found[p.contrast], p) for a in v.answers for p in a.parts if v.found[p.contrast].effect is not None]


def _quantity(found: Found, sweep: Sweep) -> str:
    """What the panel's axis says: the effect on an outcome, or of which number a ratio is."""
    plan = found.plan
    if plan.scale != "ratio":
        return {"test_acc": POINTS, "test_loss": NAT}.get(plan.outcome, f"effect on {plan.outcome}")
    number = plan.outcome.removeprefix("probe")  # at whatever checkpoint
    column = next((c for c in sweep.runs if c.startswith("probe.") and c.endswith(number)), "")
    where = " at equal norms" if plan.at.endswith(TWIN) else ""
    return f"{sweep.about(column).get('long_name', plan.outcome)}{where}: arm over base"


def _handle(verdict: str) -> Line2D:
    marker, colour = MARKS[verdict]
    face = colour if verdict != "undecided" else "white"
    return Line2D([], [], color=colour, marker=marker, markersize=5, markerfacecolor=face, linestyle="", label=verdict)


def _panel(ax: Axes, quantity: str, rows: list[Row]) -> None:
    """Each hypothesis has a line with its name, then its contrasts."""
    labels: list[tuple[int, str, bool]] = []
    for name in dict.fromkeys(name for name, *_ in rows):
        labels.append((len(labels), name, True))
        for _, found, part in (row for row in rows if row[0] == name):
            _draw(ax, len(labels), found, part)
            labels.append((len(labels), found.plan.name, False))
    ax.set_yticks([y for y, *_ in labels], [text for _, text, _ in labels], fontsize=8)
    for (_, _, is_name), tick in zip(labels, ax.get_yticklabels()):
        tick.set_fontweight("bold" if is_name else "normal")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(quantity)
    ratio = rows[0][1].plan.scale == "ratio"
    if ratio:
        ax.set_xscale("log")
        style.few_logs(ax.xaxis, WIDTH)
    ax.axvline(1 if ratio else 0, color=style.GREY, linewidth=0.8)


def _draw(ax: Axes, y: int, found: Found, part: Part) -> None:
    assert found.effect is not None
    scale = 100.0 if found.plan.outcome == "test_acc" else 1.0

    def place(value: float) -> float:
        return float(np.exp(value)) if found.plan.scale == "ratio" else scale * value

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
