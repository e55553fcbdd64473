"""The landscapes of a sweep's runs (OUT/landscape/*.h5), each by the figures of its kind."""

from __future__ import annotations

from pathlib import Path

from ..figures.landscape_grids import contours, lines, relief
from ..figures.landscape_paths import path_figure, radial_figure
from ..reader.landscape import Surface, surface
from ..reader.sweep import Sweep

FIGURES: dict[str, list] = {
    "plane": [contours, relief], "trajectory": [contours, relief], "line": [lines], "barrier": [path_figure], "curve": [path_figure],
    "radial": [radial_figure],
}  # fmt: skip


def beside(sweep: Sweep) -> list[Path]:
    folder = sweep.path if sweep.path.is_dir() else sweep.path.parent
    return sorted((folder / "landscape").glob("*.h5"))


def draw(path: str | Path) -> tuple[Surface, list]:
    """The surface and its figures; none where not a cell is measured yet, or for a kind that this reader doesn't know."""
    found = surface(path)
    return found, [make(found) for make in FIGURES.get(found.kind, [])]


def in_words(found: Surface) -> str:
    state = "" if found.status == "ok" else f", {found.status}"
    return f"**{found.path.stem}** ({found.kind}{state})"
