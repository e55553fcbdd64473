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

from ..analysis.stats import MARGIN, MarginError, margin_of
from ..reader.fault import ReadError
from ..reader.sweep import open_sweep
from .output import ReportError, nothing_in_home, save_picture, write_atomically

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
    parser = argparse.ArgumentParser(
        prog="python -m basin.report", description="Write the report of a sweep and print its answer."
    )
    parser.add_argument("folder", help="a sweep's folder, finished or not")
    parser.add_argument("--page", choices=PAGES, default="study", help="study: report.html (default); measures: measures.html")
    parser.add_argument(
        "--margin", type=float, default=100 * MARGIN, help="points of accuracy within which there is no gap (default: 2)"
    )
    parser.add_argument("--picture", help="also write the figure of accuracy against batch size to this PNG")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    try:
        with nothing_in_home():
            path, first = make_report(
                options.folder, options.page, options.margin, progress=lambda line: print(line, file=sys.stderr)
            )
            if options.picture:
                from ..figures import accuracy

                save_picture(accuracy.accuracy_against_batch, options.folder, options.picture)
    except (MarginError, ReadError, ReportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{first}\n\n{path}" if first else path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
