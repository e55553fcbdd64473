"""The landscapes of a sweep's runs (OUT/landscape/*.h5), each by the figures of its grid."""

from __future__ import annotations

from pathlib import Path

from ..figures.landscape_grids import contours, lines, relief
from ..figures.landscape_paths import path_figure, radial_figure
from ..reader.landscape import Surface, surface
from ..reader.sweep import Sweep

# By the axes, so that another kind over a known grid is drawn too.
FIGURES: dict[tuple[str, ...], list] = {
    ("beta", "alpha"): [contours, relief], ("alpha",): [lines], ("direction", "alpha"): [lines], ("path", "t"): [path_figure],
    ("direction", "delta"): [radial_figure],
}  # fmt: skip


def beside(sweep: Sweep) -> list[Path]:
    folder = sweep.path if sweep.path.is_dir() else sweep.path.parent
    return sorted((folder / "landscape").glob("*.h5"))


def draw(path: str | Path) -> tuple[Surface, list]:
    """The surface and its figures; none where not a cell is measured yet, or over a grid that has no figure."""
    found = surface(path)
    return found, [make(found) for make in FIGURES.get(tuple(found.plot.axes), [])]


def in_words(found: Surface) -> str:
    state = "" if found.status == "ok" else f", {found.status}"
    return f"**{found.path.stem}** ({found.kind}{state})"
