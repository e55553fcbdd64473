"""Figures of loss landscapes: `contours(surface)` with the path, `relief(surface)` in three dimensions, `lines(surface)` with a band.
Colours run linearly between neighbouring points and stop where one is missing: not finite, a cross; still to be measured, a dot."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator

from ..reader.landscape import FAILED, NONFINITE, NOT_MEASURED, Plot, Surface
from . import style

SETS = {"train": "training examples", "test": "test examples"}
COLOURS = {"train": style.LINES[0], "test": style.LINES[1]}
CMAP = "viridis"
SHADES = 48
NAMES = {"loss": "mean loss", "acc": "accuracy"}


def sets_of(plot: Plot, quantity: str) -> list[str]:
    return [name for name in SETS if f"{name}_{quantity}" in plot.columns]


def contours(surface: Surface, quantity: str = "loss") -> Figure:
    """Training and test surface side by side on one scale: alpha across, beta upwards. Losses on a logarithmic scale where they span a
    factor of ten. With the path of a trajectory, or the checkpoints that span the plane."""
    plot = surface.plot
    require_axes(surface, "plane", ["beta", "alpha"])
    sets = sets_of(plot, quantity)
    figure, axes = style.panels(1, len(sets), 4.9, 4.0, sharex=True, sharey=True)
    norm = _norm([plot[f"{name}_{quantity}"] for name in sets], quantity == "loss")
    drawn = None
    for ax, name in zip(axes[0], sets):
        drawn = _contour(ax, plot, plot[f"{name}_{quantity}"], norm) or drawn
        _mark_cells(ax, plot)
        _overlay(ax, surface)
        ax.set_title(SETS[name])
        ax.set_xlabel(_axis_label(plot, "alpha"))
        ax.grid(False)
    axes[0][0].set_ylabel(_axis_label(plot, "beta"))
    if drawn is not None:
        _colour_bar(figure, axes, norm, _quantity_label(plot, quantity))
    _explain(figure, surface)
    return figure


def relief(surface: Surface, quantity: str = "loss", name: str = "train", elevation: float = 32, azimuth: float = -58) -> Figure:
    """The surface in three dimensions; the height is log10 where the colours of `contours` would be logarithmic."""
    plot = surface.plot
    require_axes(surface, "plane", ["beta", "alpha"])
    values = np.array(plot[f"{name}_{quantity}"], float)
    norm = _norm([values], quantity == "loss")
    logarithmic = isinstance(norm, LogNorm)
    height = np.log10(np.where(values > 0, values, np.nan)) if logarithmic else values
    figure = mpl.pyplot.figure(figsize=(6.2, 5.0))
    ax = figure.add_subplot(projection="3d")
    x, y = np.meshgrid(plot.axes["alpha"], plot.axes["beta"])
    colours = mpl.colormaps[CMAP](norm(np.where(np.isfinite(values), values, np.nan)))
    ax.plot_surface(x, y, height, facecolors=colours, rstride=1, cstride=1, linewidth=0.15, edgecolor="#ffffff40", antialiased=True,
                    shade=False)  # fmt: skip
    ax.view_init(elevation, azimuth)
    ax.set_xlabel("α", labelpad=6)
    ax.set_ylabel("β", labelpad=6)
    ax.set_zlabel(_quantity_label(plot, quantity), labelpad=6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    if logarithmic:
        ax.zaxis.set_major_locator(FixedLocator(np.log10(_round_levels(norm))))
        ax.zaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{10**v:.3g}"))
    figure.suptitle(SETS[name], fontsize=10.5)
    ax.set_box_aspect((4, 4, 2.8), zoom=0.92)  # room for the labels
    return figure


def lines(surface: Surface) -> Figure:
    """Loss and accuracy along a line: between checkpoints with the standard error over examples; along random directions each
    direction, their mean, and the 95 % interval of the mean."""
    plot = surface.plot
    require_axes(surface, "line", ["alpha"], ["direction", "alpha"])
    quantities = [quantity for quantity in NAMES if sets_of(plot, quantity)]
    figure, axes = style.panels(1, len(quantities), 4.9, 3.6)
    for ax, quantity in zip(axes[0], quantities):
        values = []
        for name in sets_of(plot, quantity):
            along = "direction" in plot.axes
            values.append(_directions(ax, surface, name, quantity) if along else _between(ax, plot, name, quantity))
        _line_axes(ax, plot, quantity, values)
    handles = [Line2D([], [], color=COLOURS[name], label=SETS[name]) for name in sets_of(plot, "loss")]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


# ---- planes


def require_axes(surface: Surface, what: str, *known: list[str]) -> None:
    """ValueError where the surface's axes are none of `known`."""
    axes = list(surface.plot.axes)
    if axes not in known:
        raise ValueError(f"{surface.path}: a {surface.kind} has no {what} to draw; its axes are {', '.join(axes)}")


def _norm(arrays: list[np.ndarray], logarithmic: bool = True) -> Normalize:
    values = np.concatenate([np.ravel(a) for a in arrays])
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Normalize(0, 1)
    low, high = float(values.min()), float(values.max())
    if logarithmic and low > 0 and high > 10 * low:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + 1)


def _shades(norm: Normalize) -> np.ndarray:
    return (np.geomspace if isinstance(norm, LogNorm) else np.linspace)(norm.vmin, norm.vmax, SHADES)


def _round_levels(norm: Normalize) -> np.ndarray:
    """Round values to draw lines at: 0.1, 0.2, 0.5, 1 ..., more of them in a small range and fewer in a large one."""
    if not isinstance(norm, LogNorm):
        levels = MaxNLocator(7).tick_values(norm.vmin, norm.vmax)
    else:
        span = norm.vmax / norm.vmin
        steps = (1, 1.5, 2, 3, 5, 7) if span < 40 else (1, 2, 5) if span < 3000 else (1,)
        decades = np.arange(np.floor(np.log10(norm.vmin)), np.ceil(np.log10(norm.vmax)) + 1)
        levels = np.array([step * 10.0**decade for decade in decades for step in steps])
    return levels[(levels > norm.vmin) & (levels < norm.vmax)]


def _contour(ax: Axes, plot: Plot, values: np.ndarray, norm: Normalize) -> ContourSet | None:
    shown = np.ma.masked_invalid(values)
    if shown.count() < 4:
        style.nothing(ax, "no finite points")
        return None
    x, y = plot.axes["alpha"], plot.axes["beta"]
    filled = ax.contourf(x, y, shown, levels=_shades(norm), norm=norm, cmap=CMAP, extend="both")
    lines = ax.contour(x, y, shown, levels=_round_levels(norm), norm=norm, colors="white", linewidths=0.7, alpha=0.85)
    ax.clabel(lines, fmt=lambda v: f"{v:g}", fontsize=7.5)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    return filled


def _mark_cells(ax: Axes, plot: Plot) -> None:
    if plot.state is None:
        return
    x, y = np.meshgrid(plot.axes["alpha"], plot.axes["beta"])
    for state, marker, size in ((NONFINITE, "x", 14), (FAILED, "s", 10), (NOT_MEASURED, ".", 6)):
        there = plot.state == state
        if there.any():
            ax.scatter(x[there], y[there], marker=marker, s=size, color=style.GREY, linewidths=0.8, clip_on=False, zorder=3)


def _overlay(ax: Axes, surface: Surface) -> None:
    if "path" in surface.plots:
        path = surface["path"]
        ax.plot(path["alpha"], path["beta"], color="#ffffff", linewidth=2.6, zorder=4)
        ax.plot(path["alpha"], path["beta"], color="#c0392b", linewidth=1.3, marker="o", markersize=2.6, zorder=5)
        ax.plot(path["alpha"][0], path["beta"][0], marker="s", color="#c0392b", markeredgecolor="white", markersize=7, zorder=6)
        ax.plot(
            path["alpha"][-1], path["beta"][-1], marker="*", color="#c0392b", markeredgecolor="white", markersize=12, zorder=6
        )
    elif "points" in surface.plots:
        points = surface["points"]
        ax.plot(points["alpha"], points["beta"], linestyle="", marker="o", color="#c0392b", markeredgecolor="white", markersize=6,
                zorder=6, clip_on=False)  # fmt: skip


def _axis_label(plot: Plot, axis: str) -> str:
    share = plot.attributes.get(f"share_{axis}")
    of_all = f", {100 * share:.0f} % of ‖w − c‖²" if share is not None else ""
    return f"{'α' if axis == 'alpha' else 'β'}: {plot.label(axis)}{of_all}"


def _quantity_label(plot: Plot, quantity: str) -> str:
    units = plot.about[f"{sets_of(plot, quantity)[0]}_{quantity}"].get("units", "1")
    return NAMES[quantity] + (f" ({units})" if units not in ("1", "") else "")


def _colour_bar(figure: Figure, axes: np.ndarray, norm: Normalize, label: str) -> None:
    bar = figure.colorbar(mpl.cm.ScalarMappable(norm=norm, cmap=CMAP), ax=axes, label=label, pad=0.02, aspect=30)
    if isinstance(norm, LogNorm):
        decades = np.log10(norm.vmax / norm.vmin)
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,)))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        bar.ax.yaxis.set_minor_formatter(FuncFormatter(lambda v, _: ""))


def _explain(figure: Figure, surface: Surface) -> None:
    handles = []
    if "path" in surface.plots:
        farthest = float(np.nanmax(surface["path"]["distance"]))
        handles += [Line2D([], [], color="#c0392b", marker="s", markeredgecolor="white", label="start of the path"),
                    Line2D([], [], color="#c0392b", marker="*", markersize=11, markeredgecolor="white",
                           label=f"its end; checkpoints lie up to {farthest:.2g} off the plane")]  # fmt: skip
    elif "points" in surface.plots:
        handles.append(Line2D([], [], color="#c0392b", linestyle="", marker="o", markeredgecolor="white", label="checkpoints"))
    state = surface.plot.state
    for wanted, marker, label in (
        (NONFINITE, "x", "not finite"),
        (FAILED, "s", "failed"),
        (NOT_MEASURED, ".", "not measured yet"),
    ):
        if state is not None and (state == wanted).any():
            handles.append(Line2D([], [], color=style.GREY, linestyle="", marker=marker, label=label))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


# ---- lines


def _between(ax: Axes, plot: Plot, name: str, quantity: str) -> np.ndarray:
    alpha, values = plot.axes["alpha"], plot[f"{name}_{quantity}"]
    ax.plot(alpha, values, color=COLOURS[name])
    if quantity == "loss":
        error = plot[f"{name}_loss_error"]
        ax.fill_between(alpha, values - error, values + error, color=COLOURS[name], alpha=0.2, linewidth=0)
    for end in (0, 1):
        at = np.flatnonzero(alpha == end)
        ax.plot(alpha[at], values[at], linestyle="", marker="o", markersize=5.5, color=COLOURS[name])
    return values


def _directions(ax: Axes, surface: Surface, name: str, quantity: str) -> np.ndarray:
    plot, column = surface.plot, f"{name}_{quantity}"
    alpha, values = plot.axes["alpha"], plot[column]
    for row in values:
        ax.plot(alpha, row, color=COLOURS[name], linewidth=0.6, alpha=0.35)
    if "band" in surface.plots:
        band = surface["band"]
        ax.plot(alpha, band[column], color=COLOURS[name], linewidth=1.8)
        ax.fill_between(alpha, band[f"{column}_low"], band[f"{column}_high"], color=COLOURS[name], alpha=0.25, linewidth=0)
    return values


def _line_axes(ax: Axes, plot: Plot, quantity: str, values: list[np.ndarray]) -> None:
    ax.set_xlabel("α: " + plot.label("alpha"))
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set_ylabel(_quantity_label(plot, quantity))
    if quantity == "loss" and isinstance(_norm(values), LogNorm):
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
