"""Paths between two solutions and radial profiles: `path_figure(surface)` of the kinds barrier and curve, `radial_figure(surface)` of
the kind radial."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..reader.landscape import Surface, path_summary
from . import style
from .landscape_grids import SETS, require_axes, sets_of

DASHES = {"train": "-", "test": (0, (4, 2))}
NAMES = {
    "as-is": "as they are", "as-is-reset": "as they are", "as-is-interpolate": "as they are, statistics interpolated",
    "matched": "units matched", "matched-reset": "units matched", "matched-interpolate": "units matched, statistics interpolated",
    "bezier": "Bézier curve", "chain": "polygonal chain", "line": "straight line",
}  # fmt: skip


def path_figure(surface: Surface) -> Figure:
    """Loss and error along each path. Where there is a barrier, a bar from the chord of the ends up to it, with twice its standard
    error."""
    require_axes(surface, "path", ["path", "t"])
    paths = surface.plot.labels["path"]
    figure, axes = style.panels(1, 2, 4.9, 3.7)
    for ax, quantity in zip(axes[0], ("loss", "error")):
        for number, path in enumerate(paths):
            for name in sets_of(surface.plot, "loss"):
                _draw_path(ax, surface, number, path, name, quantity)
        ax.set_xlabel("t: 0 at the first checkpoint, 1 at the second")
        ax.set_xlim(-0.02, 1.02)
    units = surface.plot.about["train_loss"].get("units", "1")
    axes[0][0].set_ylabel("mean loss" + (f" ({units})" if units != "1" else ""))
    axes[0][1].set_ylabel("share of examples misclassified")
    figure.legend(handles=_legend(surface), loc="outside lower center", ncols=2 if len(paths) > 2 else len(paths) + 2)
    return figure


def _draw_path(ax: Axes, surface: Surface, number: int, path: str, name: str, quantity: str) -> None:
    t = surface.plot.axes["t"]
    values = surface.plot[f"{name}_loss"][number] if quantity == "loss" else 1 - surface.plot[f"{name}_acc"][number]
    colour = style.LINES[number % len(style.LINES)]
    ax.plot(t, values, color=colour, linestyle=DASHES[name])
    if "summary" not in surface.plots:  # not all points are there
        return
    found = path_summary(surface).loc[(path, f"{name}_{quantity}")]
    if found.barrier > 2 * found.excess_error:
        chord = (1 - found.excess_t) * values[0] + found.excess_t * values[-1]
        ax.plot([0, 1], [values[0], values[-1]], color=colour, linewidth=0.6, alpha=0.5)
        sets = sets_of(surface.plot, "loss")
        t = found.excess_t + 0.008 * (sets.index(name) - (len(sets) - 1) / 2)  # bars of both sets side by side
        ax.plot([t, t], [chord, chord + found.excess], color=colour, linestyle=DASHES[name], linewidth=0.8, alpha=0.7)
        ax.errorbar([t], [chord + found.excess], yerr=[2 * found.excess_error], color=colour, capsize=2.5, linewidth=1)


def _legend(surface: Surface) -> list[Line2D]:
    paths = surface.plot.labels["path"]
    handles = [
        Line2D([], [], color=style.LINES[i % len(style.LINES)], label=NAMES.get(path, path)) for i, path in enumerate(paths)
    ]
    sets = sets_of(surface.plot, "loss")
    return handles + [Line2D([], [], color=style.GREY, linestyle=DASHES[name], label=SETS[name]) for name in sets]


def radial_figure(surface: Surface) -> Figure:
    """The distance at which the training loss has risen by delta: each direction that got there, and the mean of its logarithm with
    twice its standard error; a triangle where that is a lower bound."""
    require_axes(surface, "radial profile", ["direction", "delta"])
    rays, profile = surface.plot, surface["profile"]
    delta = rays.axes["delta"]
    figure, axes = style.panels(1, 1, 5.4, 4.0)
    ax = axes[0][0]
    if not np.isfinite(rays["radius"]).any():
        style.nothing(ax, "no direction has risen by any of the deltas")
        return figure
    ax.plot(delta, rays["radius"].T, color=style.LINES[0], linewidth=0.6, marker=".", markersize=2.5, alpha=0.35)
    mean, error = profile["mean_log_radius"], profile["mean_log_radius_error"]
    whole = profile["reached"] == len(rays.axes["direction"])
    bound = ~whole & np.isfinite(mean)
    spread = np.exp(mean) * np.stack([1 - np.exp(-2 * error), np.exp(2 * error) - 1])
    ax.errorbar(
        delta[whole], np.exp(mean[whole]), yerr=spread[:, whole], color=style.LINES[1], marker="o", markersize=5, capsize=3
    )
    ax.plot(delta[bound], np.exp(mean[bound]), color=style.LINES[1], marker="^", markersize=6, linestyle="")
    ax.set_xscale("log")
    ax.set_yscale("log")
    style.plain_log(ax.xaxis)
    style.plain_log(ax.yaxis)
    norm = surface.recipe["radial.norm"]
    ax.set_xlabel(rays.label("delta"))
    ax.set_ylabel("distance |Δw|" if norm == "unit" else f"distance along {norm}-normalised directions")
    ax.legend(handles=_radial_legend(len(rays.axes["direction"]), bound.any()), loc="upper left")
    return figure


def _radial_legend(directions: int, bounds: bool) -> list[Line2D]:
    handles = [Line2D([], [], color=style.LINES[0], linewidth=0.8, alpha=0.5, label=f"{directions} random directions"),
               Line2D([], [], color=style.LINES[1], marker="o", label="exp of the mean log, two standard errors")]  # fmt: skip
    if bounds:
        handles.append(Line2D([], [], color=style.LINES[1], marker="^", linestyle="", label="lower bound: not all have risen"))
    return handles
