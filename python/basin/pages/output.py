"""What the commands here share: pictures and files are written completely or not at all, and nothing is left in $HOME."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..reader.sweep import Sweep, open_sweep

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

# What matplotlib (and fontconfig under it) would otherwise keep in $HOME.
KEPT_IN_HOME = {"XDG_CACHE_HOME": "cache", "MPLCONFIGDIR": "matplotlib"}


class ReportError(Exception):
    """What keeps a report from being made, in one line."""


@contextmanager
def nothing_in_home() -> Iterator[None]:
    """Gives what the environment doesn't place otherwise a temporary folder."""
    missing = {name: folder for name, folder in KEPT_IN_HOME.items() if name not in os.environ}
    with tempfile.TemporaryDirectory(prefix="basin-report-", ignore_cleanup_errors=True) as root:
        for name, folder in missing.items():
            os.makedirs(os.path.join(root, folder))
            os.environ[name] = os.path.join(root, folder)
        try:
            yield
        finally:
            for name in missing:
                del os.environ[name]


def write_atomically(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        if part.exists():
            part.unlink()
        raise ReportError(f"{path}: cannot be written: {error.strerror}") from None


def save_picture(draw: Callable[[Sweep], Figure], folder: str | Path, path: str | Path) -> None:
    """The figure that `draw` makes of the sweep: the README's picture, or another page's."""
    import matplotlib

    matplotlib.use("Agg")
    from ..figures import style

    if Path(path).suffix != ".png":
        raise ReportError(f"{path}: a picture is a .png file")
    style.use()
    png = io.BytesIO()
    draw(open_sweep(folder)).savefig(png, dpi=130, format="png")
    write_atomically(Path(path), png.getvalue())
