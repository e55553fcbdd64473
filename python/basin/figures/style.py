"""How the figures look: one place for colours, markers, axes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike

from ..reader.names import Names

# Okabe & Ito's colours (jfly.uni-koeln.de/color), which readers with any kind of colour vision tell apart; wine in place of their
# yellow, which is lost on white. By an optimiser's place, beyond the last from the start again: with another marker, as there are nine.
PALETTE = ("#0072B2", "#E69F00", "#CC79A7", "#D55E00", "#56B4E9", "#009E73", "#882255", "#000000")
MARKERS = ("o", "v", "^", "s", "P", "D", "X", "<", ">")
LINES = tuple(PALETTE[i] for i in (0, 3, 5, 2))  # the darker ones, for lines that are no optimisers
ARM_MARKERS = ("*", "p", "h", "d", "H", "8", "4")  # of arms, in whatever colour their optimiser has
Dashes = str | tuple[float, tuple[float, ...]]
ARM_LINES: tuple[Dashes, ...] = ((0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (2, 2)))
GREY = "#8a8a8a"


def use() -> None:
    mpl.rcParams.update({
        "figure.dpi": 110, "savefig.dpi": 110, "figure.constrained_layout.use": True, "font.size": 9.5,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10.5, "axes.titlelocation": "left",
        "axes.grid": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.7, "axes.axisbelow": True,
        "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.4,
    })  # fmt: skip


def colour(optimizer: str, names: Names) -> str:
    return PALETTE[names.place("optimizers", optimizer) % len(PALETTE)]


def marker(optimizer: str, names: Names) -> str:
    return MARKERS[names.place("optimizers", optimizer) % len(MARKERS)]


def arm_marker(optimizer: str, place: int, names: Names) -> str:
    """`place`: of the arm's label among all, 0 for the plain setting."""
    return marker(optimizer, names) if place == 0 else ARM_MARKERS[(place - 1) % len(ARM_MARKERS)]


def arm_line(place: int) -> Dashes:
    return "-" if place == 0 else ARM_LINES[(place - 1) % len(ARM_LINES)]


def arm_legend(arms: list[str]) -> list[Line2D]:
    """Marks of those that aren't plain."""
    return [Line2D([], [], color=GREY, marker=ARM_MARKERS[(i - 1) % len(ARM_MARKERS)], linestyle="", markersize=7, label=arm)
            for i, arm in enumerate(arms) if i]  # fmt: skip


def arm_lines(arms: list[str]) -> list[Line2D]:
    return [Line2D([], [], color=GREY, linestyle=arm_line(i), label=arm) for i, arm in enumerate(arms) if i]


def panels(rows: int, columns: int, width: float = 4.4, height: float = 3.4, **options: Any) -> tuple[Figure, np.ndarray]:
    """Panels with letters, where there are several."""
    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, **options)
    for ax, letter in zip(axes.flat, ascii_lowercase if axes.size > 1 else ""):
        ax.annotate(letter, (0, 1), xytext=(-26, 5), xycoords="axes fraction", textcoords="offset points", fontweight="bold",
                    gid=LETTER)  # fmt: skip
    return figure, axes


LETTER = "panel-letter"


def letters_in_order(axes: np.ndarray) -> None:
    """Anew, where panels were hidden."""
    for ax, letter in zip((ax for ax in axes.flat if ax.get_visible()), ascii_lowercase):
        for text in ax.texts:
            if text.get_gid() == LETTER:
                text.set_text(letter)


def grid(count: int, columns: int, width: float, height: float) -> tuple[Figure, np.ndarray]:
    """A figure and `count` panels, row by row; one where there is none to draw."""
    shown = max(1, count)
    figure, axes = panels(-(-shown // columns), min(columns, shown), width, height)
    for ax in axes.flat[shown:]:
        ax.set_visible(False)
    return figure, axes.flat[:shown]


def batch_label(size: float) -> str:
    """64, 256, 1K, 64K: short where it is exact."""
    size = int(size)
    return f"{size // 1024}K" if size >= 1024 and size % 1024 == 0 else f"{size:,}"


def batch_axis(ax: Axes, sizes: Iterable[float], whole: float = np.nan) -> None:
    """log2, a tick at the sizes that were run; where they lie closer than a factor of two, every other one. Shaded: batches of at least
    `whole`, the examples of the training set."""
    sizes = sorted({float(s) for s in sizes})
    ax.set_xscale("log", base=2)
    ticks = [sizes[0]] if sizes else []
    room = max(1.0, np.log2(sizes[-1] / sizes[0]) / 11) if len(sizes) > 1 else 1.0
    for size in sizes[1:]:
        if np.log2(size / ticks[-1]) >= room - 1e-9:
            ticks.append(size)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: batch_label(round(v))))
    ax.tick_params(axis="x", labelsize=8.5)
    ax.set_xlabel("batch size (examples)")
    if sizes:
        ax.set_xlim(sizes[0] / 1.6, sizes[-1] * 1.6)
        if whole <= sizes[-1]:
            ax.axvspan(max(whole, sizes[0] / 1.6), sizes[-1] * 1.6, color="#f1f1ec", zorder=0)
            ax.text(0.99, 0.99, "B ≥ N", transform=ax.transAxes, ha="right", va="top", fontsize=7.5, color=GREY)


def plain_log(axis: Axis) -> None:
    """A logarithmic axis with plain numbers and few of them."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(FuncFormatter(_minor_label(axis)))


def few_logs(axis: Axis) -> None:
    """The same for a narrow panel: labels that don't touch."""
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 1 else (1, 3) if decades < 1.7 else (1,), numticks=5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def positive_log(ax: Axes, values: ArrayLike) -> None:
    if (values[np.isfinite(values)] > 0).any():
        ax.set_yscale("log")
        plain_log(ax.yaxis)


def _minor_label(axis: Axis) -> Callable[[float, object], str]:
    def label(v: float, _: object) -> str:
        low, high = sorted(axis.get_view_interval())
        if low <= 0 or high / low > 100:
            return ""
        lead = round(v / 10 ** np.floor(np.log10(v)))
        return f"{v:g}" if lead in (2, 5) or (high / low < 12 and lead == 3) or (high / low < 4 and lead in (4, 7)) else ""

    return label


def count_axis(ax: Axes) -> None:
    """A logarithmic x axis of counts: 500, 2k, 10k, 1M; few enough labels not to touch."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 20 else (1, 3) if high / low < 200 else (1,)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{v / 1e6:g}M" if v >= 1e6 else f"{v / 1e3:g}k" if v >= 1e3 else f"{v:g}")
    )


def dodge(optimizer: str, optimizers: list[str]) -> float:
    """A small factor on x, so that error bars of different optimisers don't lie on each other."""
    offset = optimizers.index(optimizer) - (len(optimizers) - 1) / 2
    return 2 ** (0.16 * offset)


def legend(figure: Figure, handles: list, columns: int = 6, title: str | None = None) -> None:
    """Below the panels. Its title is broken to the figure's width: a letter of 9 points is a thirteenth of an inch."""
    lines = textwrap.fill(title, int(13 * figure.get_figwidth())) if title else None
    found = figure.legend(
        handles=handles, loc="outside lower center", ncols=min(columns, len(handles)), title=lines, title_fontsize=9
    )
    found.get_title().set_multialignment("center")


def loss_axis(axis: Axis, values: ArrayLike) -> None:
    """An axis of losses is logarithmic where they fall far enough for the end to matter."""
    finite = np.asarray([v for v in values if np.isfinite(v) and v > 0])
    if finite.size and finite.max() / finite.min() > 5:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        plain_log(axis)


def optimizer_legend(
    optimizers: Iterable[str], names: Names, hollow: str = "", one_seed: str = "", reference: str = "", cross: str = ""
) -> list[Line2D]:
    handles = [
        Line2D([], [], color=colour(o, names), marker=marker(o, names), markersize=5.5, label=names.label("optimizers", o))
        for o in optimizers
    ]
    if reference:
        handles.append(Line2D([], [], color=GREY, linewidth=0.9, linestyle=(0, (5, 4)), label=reference))
    if one_seed:
        handles.append(
            Line2D([], [], color=GREY, marker="o", linestyle="", fillstyle="left", markerfacecoloralt="white", label=one_seed)
        )
    if hollow:
        handles.append(Line2D([], [], color=GREY, marker="o", linestyle="", markerfacecolor="none", label=hollow))
    if cross:
        handles.append(Line2D([], [], color=GREY, marker="x", markersize=5, linestyle="", label=cross))
    return handles


Colour = tuple[float, float, float, float]
Colours = dict[float, Colour]  # by batch size


def batch_colours(sizes: Iterable[float]) -> Colours:
    """Dark for small, light for large batches; the lightest stays readable on white."""
    sizes = sorted({float(s) for s in sizes})
    norm = LogNorm(sizes[0], sizes[-1] * (1.0 if len(sizes) > 1 else 2.0))
    return {s: mpl.colormaps["viridis"](0.88 * norm(s)) for s in sizes}


def batch_legend(sizes: Iterable[float]) -> list[Line2D]:
    colours = batch_colours(sizes)
    return [Line2D([], [], color=colours[s], linewidth=2.4, label=batch_label(s)) for s in colours]


NOT_INVARIANT = "moves where the function doesn't"


def grey(ax: Axes) -> None:
    """A measure that failed the audit (analysis/audit_verdict.py)."""
    ax.set_facecolor("#eeeeee")
    for artist in (*ax.lines, *ax.collections):
        artist.set_alpha(0.4)
    ax.text(0.98, 0.03, NOT_INVARIANT, transform=ax.transAxes, ha="right", fontsize=8, color="#666666")


def nothing(ax: Axes, why: str) -> None:
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=GREY)
    ax.set_xticks([])
    ax.set_yticks([])
