"""What the commands of this room have in common: options for a page and a picture, and one line with exit code 1 for whatever can't be
read or written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.linalg import LinAlgError

from ..analysis.stats import MarginError
from ..reader.fault import ReadError
from ..reader.sweep import Sweep
from .output import ReportError, nothing_in_home, save_picture
from .paste import PasteError, paste

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

FAULTS = (LinAlgError, MarginError, MemoryError, OSError, PasteError, ReadError, ReportError)


def command(module: str, text: str | None) -> argparse.ArgumentParser:
    """The parser of `python -m MODULE`, whose own text begins with how it is called and, after a colon, what it does."""
    return argparse.ArgumentParser(prog=f"python -m {module}", description=(text or "").partition(": ")[2])


def takes_page(parser: argparse.ArgumentParser, passage: str, by_name: bool = False) -> None:
    """`by_name`: a page can have several passages of its kind."""
    name = "NAME" if by_name else passage
    parser.add_argument("--into", type=Path, metavar="PAGE.md",
                        help=f"replace what stands there between <!-- {name} --> and <!-- end of {name} -->")  # fmt: skip
    parser.set_defaults(passage=passage)
    if by_name:
        parser.add_argument("--passage", metavar="NAME", default=passage, help=f"NAME of that place; {passage} unless given")


def takes_picture(parser: argparse.ArgumentParser, about: str = "the figure") -> None:
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help=f"write {about} too")


def publish(options: argparse.Namespace, text: str) -> None:
    """Prints it and, where a page is named, puts it there."""
    print(text)
    if options.into:
        paste(options.into, options.passage, text)


def draw_picture(picture: Path | None, draw: Callable[[Sweep], Figure], folder: Path) -> None:
    """Where one is named. `draw` imports matplotlib, which then leaves nothing in $HOME."""
    if picture is not None:
        with nothing_in_home():
            save_picture(draw, folder, picture)


def picture_link(page: Path | None, picture: Path | None, about: str) -> str:
    """How the page shows the picture; empty without both."""
    if page is None or picture is None:
        return ""
    return f"\n\n![{about}]({os.path.relpath(picture, page.parent)})"


def run(parser: argparse.ArgumentParser, arguments: list[str] | None, work: Callable[[argparse.Namespace], None]) -> int:
    options = parser.parse_args(arguments)
    try:
        work(options)
    except FAULTS as error:
        print(f"{parser.prog.removeprefix('python -m ')}: {one_line(error)}", file=sys.stderr)
        return 1
    return 0


def one_line(error: Exception) -> str:
    """What is wrong, of an operating system's error with the file ahead."""
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
