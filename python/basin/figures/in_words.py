"""What a figure shows, for those who can't see it: its panels, their axes and the range of what is drawn in them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import LETTER

CAPS = ("_", "|")  # ends of error bars


def described(figure: Figure) -> str:
    """A sentence per panel, then the legends' words."""
    panels = [ax for ax in figure.axes if ax.get_visible() and ax.axison and not hasattr(ax, "_colorbar")]
    sentences = [_panel(ax, figure) for ax in panels]
    legends = [*figure.legends, *filter(None, (ax.get_legend() for ax in panels))]
    shown = list(dict.fromkeys(text.get_text() for legend in legends for text in legend.get_texts()))
    count = f"{len(panels)} panels. " if len(panels) > 1 else ""
    return count + " ".join(sentences) + (f" Legend: {'; '.join(shown)}." if shown else "")


def _panel(ax: Axes, figure: Figure) -> str:
    letter = next((f"Panel {text.get_text()}" for text in ax.texts if text.get_gid() == LETTER), "")
    title, across, up = ax.get_title(loc="left") or ax.get_title(), _label(ax, figure, "x"), _label(ax, figure, "y")
    what = f"{up} against {across}" if up and across else up or across
    return ": ".join(filter(None, (", ".join(filter(None, (letter, title))), f"{what}{_range(ax)}.")))


def _label(ax: Axes, figure: Figure, axis: str) -> str:
    """Its own, or that of the panel which it shares the axis with."""
    own = ax.get_xlabel() if axis == "x" else ax.get_ylabel()
    shared = ax.get_shared_x_axes() if axis == "x" else ax.get_shared_y_axes()
    labels = [a.get_xlabel() if axis == "x" else a.get_ylabel() for a in figure.axes if a is not ax and shared.joined(ax, a)]
    return own or next((label for label in labels if label), "")


def _range(ax: Axes) -> str:
    """From the lowest to the highest value drawn, without bars and what is placed by the axes."""
    lines = [line for line in ax.lines if line.get_marker() not in CAPS and line.get_transform().contains_branch(ax.transData)]
    values = [np.asarray(line.get_ydata(), float) for line in lines]
    finite = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.array([])
    return f", from {finite.min():.3g} to {finite.max():.3g}" if finite.size else ""
