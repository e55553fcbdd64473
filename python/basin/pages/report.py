"""python -m basin.report OUT_DIR [--page measures]: writes OUT_DIR/report.html on a sweep's folder, or OUT_DIR/measures.html, figures
also as SVG and PDF in OUT_DIR/figures, and prints the answer.

Every way in which it can fail ends in one line and exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.stats import MARGIN, margin_of
from ..reader.sweep import Sweep, open_sweep
from .command import command, draw_picture, run, takes_picture
from .output import nothing_in_home, write_atomically

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

PAGES = {"study": "report.html", "measures": "measures.html"}


def make_report(
    folder: str | Path, page: str = "study", margin: float = 100 * MARGIN, progress: Callable[[str], object] = print
) -> tuple[Path, str]:
    """The path of the page, and its first lines as plain text. `margin` is in points of accuracy."""
    folder = Path(folder)
    within = margin_of(margin)
    sweep = open_sweep(folder)
    # Imported here: matplotlib takes half a second that an error above need not wait for.
    import matplotlib

    matplotlib.use("Agg")
    from ..figures import style
    from .measures_page import measures_page
    from .study_page import study_page

    style.use()
    steps = _Progress(progress)
    made, first = study_page(sweep, within, folder, steps) if page == "study" else measures_page(sweep, folder, steps)
    steps.end()
    target = folder / PAGES[page]
    write_atomically(target, made.html().encode())
    return target, first


class _Progress:
    """On a terminal one line redrawn, else one line at the end."""

    def __init__(self, write: Callable[[str], object]):
        self.done, self.write, self.start = 0, write, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def __call__(self, what: str) -> None:
        self.done += 1
        if self.terminal:
            sys.stderr.write(f"\r\033[Kreport: {what}, {self._seconds()}")

    def end(self) -> None:
        if self.terminal:
            sys.stderr.write("\r\033[K")
        self.write(f"report: {self.done} parts, {self._seconds()}")

    def _seconds(self) -> str:
        return f"{time.monotonic() - self.start:.0f} s"


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.report", __doc__)
    parser.add_argument("folder", help="a sweep's folder, finished or not")
    parser.add_argument("--page", choices=PAGES, default="study", help="study: report.html (default); measures: measures.html")
    parser.add_argument(
        "--margin", type=float, default=100 * MARGIN, help="points of accuracy within which there is no gap (default: 2)"
    )
    takes_picture(parser, "the figure of accuracy against batch size")
    return run(parser, arguments, _work)


def _work(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    with nothing_in_home():
        path, first = make_report(
            options.folder, options.page, options.margin, progress=lambda line: print(line, file=sys.stderr)
        )
        draw_picture(options.picture, _accuracy, options.folder)
    print(f"{first}\n\n{path}" if first else path)


def _accuracy(sweep: Sweep) -> Figure:
    from ..figures import accuracy

    return accuracy.accuracy_against_batch(sweep)


if __name__ == "__main__":
    sys.exit(main())
