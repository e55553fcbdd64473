"""How the figures look: one place for colours, markers, axes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Container, Iterable
from string import ascii_lowercase
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox
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
        "svg.hashsalt": "basin",  # else the names of clips and marks are random, and a figure drawn again has other bytes
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


def arm_legend(arms: list[str], drawn: Container[str]) -> list[Line2D]:
    """Marks of those that aren't plain. `arms`: all labels of the figure, whose places give the marks."""
    return [Line2D([], [], color=GREY, marker=ARM_MARKERS[(i - 1) % len(ARM_MARKERS)], linestyle="", markersize=7, label=arm)
            for i, arm in enumerate(arms) if i and arm in drawn]  # fmt: skip


def arm_lines(arms: list[str], drawn: Container[str]) -> list[Line2D]:
    return [Line2D([], [], color=GREY, linestyle=arm_line(i), label=arm) for i, arm in enumerate(arms) if i and arm in drawn]


WIDEST = 12.8  # inches: shown on a page, letters of a wider figure are too small to read


def panels(rows: int, columns: int, width: float = 4.4, height: float = 3.4, **options: Any) -> tuple[Figure, np.ndarray]:
    """Panels with letters, where there are several; narrower ones where they don't fit side by side."""
    width = min(width, WIDEST / columns)
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
        low, high = sizes[0] / BESIDE, sizes[-1] * BESIDE
        ax.set_xlim(low, high)
        if whole <= sizes[-1]:
            ax.axvspan(max(whole, low), high, color="#f1f1ec", zorder=0)
            # Above the panel, where no mark and no bar can cross it.
            ax.text(1.0, 1.01, "B ≥ N", transform=ax.transAxes, ha="right", va="bottom", fontsize=7.5, color=GREY)


def plain_log(axis: Axis) -> None:
    """A logarithmic axis with plain numbers and few of them."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(FuncFormatter(_minor_label(axis)))


MANY_LEADS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8)  # for less than half a decade, where 1 alone might be left


def few_logs(axis: Axis, width: float = 3.5) -> None:
    """The same for a panel of so many inches: labels that don't touch."""
    low, high = axis.get_view_interval()
    decades = np.log10(high / low) * 3.5 / width
    leads = MANY_LEADS if decades < 0.5 else (1, 2, 5) if decades < 1 else (1, 3) if decades < 1.7 else (1,)
    axis.set_major_locator(LogLocator(subs=leads, numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def positive_log(ax: Axes, values: ArrayLike, signed: bool = False) -> None:
    """A logarithmic axis, where negative values are at fault (a search's) and drawn as such; linear where they are right (`signed`)."""
    if (values[np.isfinite(values)] > 0).any() and not signed:
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


# How far marks of one batch size lie apart, in doublings: optimisers among each other, arms of one optimiser, and the room that the
# outermost mark needs.
MOST_APART, MOST_APART_ARMS, ROOM = 0.72, 0.24, 0.2
BESIDE = 2 ** (MOST_APART / 2 + MOST_APART_ARMS + ROOM)


def dodge(optimizer: str, optimizers: list[str], arm: int = 0) -> float:
    """A small factor on x, so that error bars of different optimisers and arms don't lie on each other."""
    offset = optimizers.index(optimizer) - (len(optimizers) - 1) / 2
    step = min(0.16, MOST_APART / max(1, len(optimizers) - 1))
    return 2 ** (step * offset + min(0.04 * arm, MOST_APART_ARMS))


def up(label: str, inches: float) -> str:
    """A y label in as many lines as a panel of that height needs, at a thirteenth of an inch per letter."""
    return textwrap.fill(label, max(20, int(13 * inches)))


def sentence(*parts: str) -> str:
    """Those that aren't empty, of a legend's title."""
    return "; ".join(filter(None, parts))


def legend(figure: Figure, handles: list, columns: int = 6, title: str | None = None) -> None:
    """Below the panels, in as many columns as fit, `columns` at most. The figure grows by the legend's height, so that the panels keep
    theirs; and to its width where a single entry is wider. Its title is broken to the figure's width: a letter of 9 points is a
    thirteenth of an inch."""
    lines = textwrap.fill(title, int(13 * figure.get_figwidth())) if title else None
    for count in range(min(columns, max(1, len(handles))), 0, -1):
        found = figure.legend(handles=handles, loc="outside lower center", ncols=count, title=lines, title_fontsize=9)
        found.get_title().set_multialignment("center")
        size = found.get_window_extent()
        if size.width <= figure.bbox.width:
            break
        if count > 1:
            found.remove()
    width, height = size.width / figure.dpi, size.height / figure.dpi
    figure.set_size_inches(max(figure.get_figwidth(), width + 0.1), figure.get_figheight() + height)


NEXT_TO_A_POINT = [(4, 3), (4, -9), (-4, 3), (-4, -9), (4, 9), (-4, 9), (12, -3), (-12, -3)]


def number_points(figure: Figure, numbered: dict[Axes, list[tuple[float, float, str]]]) -> None:
    """Numbers next to points, (x, y, number) by panel: none on another number or another point, none outside its panel. One that has no
    such place is left out. The last thing that is drawn: the figure is laid out for it."""
    figure.canvas.draw()
    point = figure.dpi / 72
    for ax, places in numbered.items():
        centres = [ax.transData.transform(place[:2]) for place in places]
        taken = [Bbox.from_extents(x - 3 * point, y - 3 * point, x + 3 * point, y + 3 * point) for x, y in centres]
        for x, y, number in places:
            for right, up in NEXT_TO_A_POINT:
                text = ax.annotate(number, (x, y), xytext=(right, up), textcoords="offset points", fontsize=7,
                                   ha="left" if right > 0 else "right")  # fmt: skip
                text.set_in_layout(False)
                box = text.get_window_extent()
                inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
                if inside and not any(box.overlaps(other) for other in taken):
                    taken.append(box)
                    break
                text.remove()


def loss_axis(axis: Axis, values: ArrayLike) -> None:
    """An axis of losses is logarithmic where they fall by more than a half, for the end to be seen. In a narrower range it would look the
    same."""
    finite = np.asarray([v for v in values if np.isfinite(v) and v > 0])
    if finite.size and finite.max() / finite.min() > 2:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        plain_log(axis)
        close_ticks(axis, finite.min(), finite.max())


def close_ticks(axis: Axis, low: float, high: float) -> None:
    """More numbers than `plain_log` gives on a logarithmic axis of less than a decade."""
    if high / low < 8:
        between = [1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.5, 4, 6, 8, 9] if high / low < 1.5 else [1.2] if high / low < 4 else []
        leads = [1, 1.5, 2, 3, 5, 7, *between]
        axis.set_major_locator(FixedLocator([10.0**power * lead for power in range(-5, 6) for lead in leads]))
        axis.set_minor_locator(NullLocator())


def training_axes(axes: np.ndarray, values: ArrayLike, label: str = "training loss (nat)") -> None:
    """Losses on x axes that are shared, falling to the right, and saying so."""
    for ax in axes.flat:
        loss_axis(ax.xaxis, values)
    axes.flat[0].invert_xaxis()
    narrow = axes.flat[0].figure.get_figwidth() / axes.shape[1] < 3
    for ax in axes[-1]:
        ax.set_xlabel(f"{label}{chr(10) if narrow else ', '}training goes →")


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


def batch_colours(sizes: Iterable[float], optimizers: int = 2) -> Colours:
    """Dark for small, light for large batches; the lightest stays readable on white. A few sizes of one optimiser have the palette's
    colours, which mean no optimiser then."""
    sizes = sorted({float(s) for s in sizes})
    if optimizers == 1 and len(sizes) <= len(LINES):
        return {size: to_rgba(LINES[i]) for i, size in enumerate(sizes)}
    norm = LogNorm(sizes[0], sizes[-1] * (1.0 if len(sizes) > 1 else 2.0))
    return {s: mpl.colormaps["viridis"](0.88 * norm(s)) for s in sizes}


def batch_legend(colours: Colours, marker: str = "") -> list[Line2D]:
    """Entries for lines, or for marks."""
    look: dict[str, Any] = {"marker": marker, "linestyle": "", "markersize": 7} if marker else {"linewidth": 2.4}
    return [Line2D([], [], color=colours[s], label=f"batch size {batch_label(s)}", **look) for s in colours]


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
