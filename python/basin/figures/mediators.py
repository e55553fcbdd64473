"""Every arm in one plane: its effect on the outcome against its effect on a mediator, at the end and at the twin of equal norms."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..analysis.effects import Effect
from ..analysis.mediators import MEDIATORS, PLACES, ArmEffects, Association
from ..reader.names import Names
from . import style

ROWS = (("test_acc", "effect on test accuracy (points)", 100.0), ("test_loss", "effect on test loss (nat)", 1.0))


def plane(arms: list[ArmEffects], found: list[Association], names: Names) -> Figure | None:
    """A row per outcome, a column per mediator. Numbers are the arms' places in the list, titles say what `found` is. None without two
    arms of a mediator."""
    shown = [label for label in MEDIATORS if sum(any((label, p) in a.mediators for p in PLACES) for a in arms) > 1]
    rows = [row for row in ROWS if any(row[0] in a.outcomes for a in arms)]
    if not shown or not rows:
        return None
    said = {(a.mediator, a.place, a.outcome): a.text for a in found}
    if len(shown) == 1:  # side by side
        figure, axes = style.panels(1, len(rows), 5.4, 3.6)
        axes = axes.T
    else:
        figure, axes = style.panels(len(rows), len(shown), 4.0, 3.0, sharex="col", sharey="row")
    numbered: dict[Axes, list[tuple[float, float, str]]] = {}
    for row, (outcome, label, scale) in zip(axes, rows):
        row[0].set_ylabel(label)
        for ax, mediator in zip(row, shown):
            places = [_draw(ax, arm, mediator, outcome, scale, style.colour(arm.optimizer, names)) for arm in arms]
            numbered[ax] = [(*place, str(i)) for i, place in enumerate(places, 1) if place]
            ax.axhline(0, color=style.GREY, linewidth=0.7)
            ax.axvline(1, color=style.GREY, linewidth=0.7)
            ax.set_xscale("log")
            style.plain_log(ax.xaxis)
            style.close_ticks(ax.xaxis, *ax.get_xlim())
            texts = [f"{where}: {said[mediator, place, outcome]}" for where, place in zip(("end", "twin"), PLACES)
                     if (mediator, place, outcome) in said]  # fmt: skip
            ax.set_title("\n".join(texts), fontsize=7.5)
    for ax, mediator in zip(axes.flat if len(shown) == 1 else axes[-1], shown * len(rows)):
        ax.set_xlabel(f"{mediator}: arm over base")
    optimizers = list(dict.fromkeys(a.optimizer for a in arms if any((m, p) in a.mediators for m in shown for p in PLACES)))
    handles = [
        Line2D([], [], color=style.colour(o, names), marker="o", linestyle="", label=names.label("optimizers", o))
        for o in optimizers
    ]
    if any((m, PLACES[1]) in a.mediators for a in arms for m in shown):
        hollow = Line2D(
            [], [], color=style.GREY, marker="o", linestyle="", markerfacecolor="white", label="at the twin of equal norms"
        )
        handles.append(hollow)
    style.legend(figure, handles, title="bars: 95 % intervals; numbers: arms of the table, where there is room for them")
    style.number_points(figure, numbered)
    return figure


def _draw(ax: Axes, arm: ArmEffects, mediator: str, outcome: str, scale: float, colour: str) -> tuple[float, float] | None:
    """Filled at the end, hollow at the twin, joined by a line. Returns the place of the first, for its number."""
    effect = arm.outcomes.get(outcome)
    there = [(place, arm.mediators[mediator, place]) for place in PLACES if (mediator, place) in arm.mediators]
    if effect is None or not there:
        return None
    y, below, above = scale * effect.value, *(scale * side for side in _sides(effect))
    ax.plot([np.exp(m.value) for _, m in there], [y] * len(there), color=colour, linewidth=0.6, linestyle=":")
    for place, m in there:
        less, more = _sides(m)
        x = np.exp(m.value)
        bars = {"xerr": [[x - np.exp(m.value - less)], [np.exp(m.value + more) - x]], "yerr": [[below], [above]]}
        inside = colour if place == PLACES[0] else "white"
        ax.errorbar(x, y, **bars, color=colour, marker="o", markersize=4.5, elinewidth=0.7, markerfacecolor=inside)
    return float(np.exp(there[0][1].value)), y


def _sides(effect: Effect) -> tuple[float, float]:
    """How far the 95 % interval goes down and up; nowhere where there is none."""
    low, high = effect.interval()
    return (effect.value - low, high - effect.value) if np.isfinite(low) else (0.0, 0.0)
