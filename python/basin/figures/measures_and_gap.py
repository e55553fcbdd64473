"""Figures of measures and the gap. Measures that failed the audit are greyed in each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..analysis.correlation import Correlation
from ..analysis.names import optimizers_of
from ..analysis.number_text import estimate_text
from ..analysis.rank import Estimate
from ..analysis.sweep_measures import TARGETS, Basis
from . import style
from .marks import Cell, Mark, draw_cells, train_examples

BARS = "bars: ± standard error over seeds"
ONE_SEED = "one seed: bars from the others' spread"
COLUMNS = 4
MOST = 24  # panels in a figure
STATISTICS = [("tau", "τ", "o"), ("psi", "Ψ, one hyper-parameter at a time", "D"), ("partial", "ρ given covariates", "s"),
              ("corrected", "τ without errors", "^")]  # fmt: skip


def panels_of(found: list[Correlation]) -> tuple[Figure, list[tuple[Axes, Correlation]]]:
    """A panel per measure; the others are named, not dropped in silence."""
    shown = found[:MOST]
    figure, axes = style.grid(len(shown), COLUMNS, 3.5, 2.9)
    if len(found) > MOST:
        figure.suptitle(f"the first {MOST} of {len(found)} measures", fontsize=9, color=style.GREY)
    if not found:
        style.nothing(axes[0], "nothing to compare")
    return figure, list(zip(axes, shown))


def against_gap(found: list[Correlation], basis: Basis) -> Figure:
    """One mark per configuration, coloured by batch size, shaped by optimiser; bars are standard errors over seeds."""
    figure, panels = panels_of(found)
    sizes = basis.runs.batch_size.dropna()
    for k, (ax, c) in enumerate(panels):
        configs, colours = c.measure.configs, style.batch_colours(sizes)
        for config in configs.itertuples(index=False):
            marker = style.marker(config.optimizer, basis.names)
            ax.errorbar(config.value, getattr(config, c.target), getattr(config, f"{c.target}_error"), _within(config, c.measure.positive),
                        color=colours[config.batch_size], marker=marker, markersize=5.5, elinewidth=0.7,
                        linestyle="", fillstyle="full" if config.seeds > 1 else "left", markerfacecoloralt="white")  # fmt: skip
        _value_axis(ax, c)
        if k % COLUMNS == 0:
            ax.set_ylabel(TARGETS[c.target])
        if c.moved:
            style.grey(ax)
    if panels:
        optimizers = optimizers_of(basis.runs, basis.names)
        single = any((c.measure.configs.seeds == 1).any() for _, c in panels)
        shapes = style.optimizer_legend(optimizers, basis.names, one_seed=ONE_SEED if single else "")
        for handle in shapes[: len(optimizers)]:
            handle.set(color="#444444", linestyle="")
        style.legend(figure, shapes + style.batch_legend(style.batch_colours(sizes), "s"), title=BARS)
    return figure


def _within(config: Any, positive: bool) -> list[list[float]]:
    """The error bar in x; on a logarithmic axis not below a hundredth of the value."""
    error = config.value_error if np.isfinite(config.value_error) else 0.0
    return [[min(error, 0.99 * config.value) if positive else error], [error]]


def _value_axis(ax: Axes, c: Correlation) -> None:
    m = c.measure
    ax.set_title(f"τ {estimate_text(c.tau)}" if np.isfinite(c.tau.value) else c.why_not, fontsize=8.5)
    ax.set_xlabel(f"{m.label} ({m.units})", fontsize=8.5)
    values = m.configs.value.to_numpy(float)
    if m.positive:
        ax.set_xscale("log")
        ax.set_xlim(values.min() / 1.7, values.max() * 1.7)
        style.few_logs(ax.xaxis)


def forest(*by_target: list[Correlation]) -> Figure:
    """Every τ with its 95 % interval, a panel a target; behind each row the middle 95 % of placebos' plain τ."""
    rows = max((len(found) for found in by_target if any(np.isfinite(c.tau.value) for c in found)), default=0)
    figure, axes = style.panels(1, max(1, len(by_target)), 5.6, max(1.6, 0.5 * rows + 0.9), sharey=True)
    for ax, found in zip(axes[0], by_target):
        if not any(np.isfinite(c.tau.value) for c in found):
            style.nothing(ax, "nothing to compare")
            continue
        for y, c in enumerate(found):
            _forest_row(ax, y, c)
        ax.axvline(0, color="#444444", linewidth=0.8)
        ax.set_xlim(-1.02, 1.02)
        ax.set_xticks([-1, -0.5, 0, 0.5, 1])
        ax.set_ylim(len(found) - 0.4, -0.6)
        ax.set_yticks(range(len(found)), [f"{c.name}  n={c.n}" for c in found], fontsize=8.5)
        for label, c in zip(ax.get_yticklabels(), found):
            label.set_color(style.GREY if c.moved or c.why_not else "black")
        ax.grid(axis="y", visible=False)
        ax.set_xlabel(f"rank correlation with the {TARGETS[found[0].target].split(' (')[0]} (−1 to 1)")
    style.legend(figure, _forest_legend(), columns=3, title="bars: 95 % intervals from a bootstrap over configurations")
    return figure


def _forest_row(ax: Axes, y: int, c: Correlation) -> None:
    """Hollow: nothing may be claimed."""
    low, high = c.tau.band
    if np.isfinite(low):
        ax.fill_betweenx([y - 0.42, y + 0.42], low, high, color="#dcdcdc", linewidth=0, zorder=0)
    for k, (attribute, _, marker) in enumerate(STATISTICS):
        e: Estimate = getattr(c, attribute)
        if not np.isfinite(e.value):
            continue
        colour, at = style.GREY if c.moved else style.LINES[k], y + 0.21 * (k - 1.5)
        if np.isfinite(e.low):
            ax.plot([e.low, e.high], [at, at], color=colour, linewidth=1.1)
        ax.plot(e.value, at, marker=marker, color=colour, markersize=4.5, markerfacecolor="white" if c.why_not else colour)


def _forest_legend() -> list[Artist]:
    handles = [Line2D([], [], color=colour, marker=marker, markersize=4.5, label=label)
               for (_, label, marker), colour in zip(STATISTICS, style.LINES)]  # fmt: skip
    handles.append(Patch(color="#dcdcdc", label="95 % of placebos (plain τ)"))
    handles.append(Line2D([], [], color=style.GREY, marker="o", markersize=4.5, label=f"grey: {style.NOT_INVARIANT}"))
    hollow = "hollow: too few configurations or seeds for a claim"
    return [
        *handles,
        Line2D([], [], color=style.GREY, marker="o", linestyle="", markerfacecolor="white", markersize=4.5, label=hollow),
    ]


def against_batch(found: list[Correlation], basis: Basis) -> Figure:
    """Means over seeds and their standard errors; a line where an optimiser has one configuration of several seeds per batch size."""
    figure, panels = panels_of(found)
    optimizers, kinds = optimizers_of(basis.runs, basis.names), set()
    for ax, c in panels:
        configs = c.measure.configs
        for optimizer in optimizers:
            kinds |= draw_cells(ax, _cells(configs[configs.optimizer == optimizer]), optimizer, optimizers, basis.names)
        style.batch_axis(ax, basis.runs.batch_size.dropna(), train_examples(basis.runs))
        ax.set_title(c.measure.label, fontsize=8.5)
        ax.set_ylabel(f"value ({c.measure.units})", fontsize=8.5)
        if c.measure.positive:
            style.positive_log(ax, configs.value.to_numpy(float))
        if c.moved:
            style.grey(ax)
    if panels:
        style.legend(
            figure, style.optimizer_legend(optimizers, basis.names, one_seed=ONE_SEED if "one" in kinds else ""), title=BARS
        )
    return figure


def _cells(configs: pd.DataFrame) -> list[Cell]:
    cells = []
    for size, same in configs.groupby("batch_size"):
        marks = [Mark(c.value, c.value - c.value_error, c.value + c.value_error, "mean" if c.seeds > 1 else "one")
                 for c in same.itertuples(index=False)]  # fmt: skip
        cells.append(Cell(float(size), marks, joined=len(marks) == 1 and marks[0].kind == "mean"))
    return cells
