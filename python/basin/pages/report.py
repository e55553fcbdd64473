"""python -m basin.report OUT_DIR [--notebook measures]: runs notebooks/study.py on a sweep's folder and writes OUT_DIR/report.html, or
notebooks/measures.py and OUT_DIR/measures.html.

One file: figures embedded as PNG, inputs hidden. Every way in which the notebook can fail ends in one line and exit code 1.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..analysis.stats import MARGIN, MarginError, margin_of
from ..reader.schema import ReadError
from ..reader.sweep import open_sweep
from .output import ReportError, nothing_in_home, save_picture, write_atomically

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "notebooks" / "study.py"
PAGES = {"study": "report.html", "measures": "measures.html"}


def make_report(
    folder: str | Path,
    notebook: Path = NOTEBOOK,
    timeout: int = 300,
    progress: Callable[[str], object] = print,
    margin: float = 100 * MARGIN,
) -> Path:
    """Returns the path of the report. `timeout` is seconds per cell, `margin` points of accuracy."""
    folder = Path(folder)
    margin_of(margin)
    open_sweep(folder)  # like the line above, a clear error before a kernel is started
    # Imported here: half a second that an error above need not wait for.
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    book = jupytext.read(notebook)
    nbformat.validate(book)
    cells = [c for c in book.cells if c.cell_type == "code"]
    os.environ["BASIN_SWEEP"], os.environ["BASIN_MARGIN"] = str(folder.resolve()), repr(float(margin))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
    bar = _Progress(len(cells), progress)
    client = NotebookClient(
        book, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(folder)}},
        on_cell_executed=lambda cell, cell_index, execute_reply: bar.step(cell), startup_timeout=120,
        extra_arguments=["--log-level=40"],  # not its warning that it talks over localhost
    )  # fmt: skip
    try:
        client.execute()
    except CellExecutionError as error:
        raise ReportError(f"{notebook.name}: {error.ename}: {_one_line(error.evalue)}") from None
    except CellTimeoutError:
        raise ReportError(f"{notebook.name}: a cell took longer than {timeout} s") from None
    except DeadKernelError:
        raise ReportError(f"{notebook.name}: the kernel died (out of memory?)") from None
    target = folder / PAGES.get(notebook.stem, PAGES["study"])
    write_atomically(target, _html(book).encode())
    return target


def _html(book: Any) -> str:
    from nbconvert import HTMLExporter

    logging.getLogger("traitlets").setLevel(logging.ERROR)  # it misses the texts that _describe_images gives
    exporter = HTMLExporter(exclude_input=True, exclude_input_prompt=True, exclude_output_prompt=True, template_name="classic")
    exporter.embed_images = True
    exporter.mathjax_url = exporter.require_js_url = ""  # a single file: nothing is fetched when it is opened
    html, _ = exporter.from_notebook_node(book, {"metadata": {"name": "Basin: report"}})
    html = re.sub(r'<script src="[^"]*"[^>]*>\s*</script>', "", html)
    return _describe_images(html).replace("</head>", STYLE + "</head>")


def _describe_images(html: str) -> str:
    """Every figure's alternative text is the heading that it stands under."""
    heading, parts = "", []
    for part in re.split(r"(<h2.*?</h2>|<img[^>]*>)", html, flags=re.S):
        if part.startswith("<h2"):
            heading = re.sub(r"<[^>]*>|¶", "", part)
        elif part.startswith("<img"):
            part = re.sub(r'alt="[^"]*"', f'alt="{heading}"', part)
        parts.append(part)
    return "".join(parts)


STYLE = """<style>
body { max-width: 62rem; margin: 0 auto; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; background: white; }
#notebook-container, div#notebook { box-shadow: none; border: 0; padding: 0; width: 100%; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 0.86rem; margin: 0.5rem 0; }
th, td { padding: 0.25rem 0.7rem; text-align: left !important; border-bottom: 1px solid #ddd; vertical-align: top; }
</style>
"""


class _Progress:
    """On a terminal one line redrawn, else one line at the end of each third."""

    def __init__(self, total: int, write: Callable[[str], object]):
        self.total, self.done, self.write, self.start = total, 0, write, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def step(self, cell: object) -> None:
        self.done += 1
        line = f"report: cell {self.done}/{self.total}, {time.monotonic() - self.start:.0f} s"
        if self.terminal:
            sys.stderr.write("\r" + line + ("\n" if self.done == self.total else ""))
        elif self.done == self.total or self.done % max(1, self.total // 3) == 0:
            self.write(line)


def _one_line(message: str) -> str:
    return re.sub(r"\s+", " ", message)[:300]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.report", description="Execute a notebook on a sweep's folder.")
    parser.add_argument("folder", help="a sweep's folder, finished or not")
    parser.add_argument(
        "--notebook", choices=PAGES, default="study", help="study: report.html (default); measures: measures.html"
    )
    parser.add_argument("--timeout", type=int, default=300, help="limit of a cell, in seconds")
    parser.add_argument(
        "--margin", type=float, default=100 * MARGIN, help="points of accuracy within which there is no gap (default: 2)"
    )
    parser.add_argument("--picture", help="also write the figure of accuracy against batch size to this PNG")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    try:
        with nothing_in_home():
            path = make_report(
                options.folder, notebook=NOTEBOOK.with_stem(options.notebook), timeout=options.timeout, margin=options.margin,
                progress=lambda line: print(line, file=sys.stderr),
            )  # fmt: skip
            if options.picture:
                from ..figures import accuracy

                save_picture(accuracy.accuracy_against_batch, options.folder, options.picture)
    except (MarginError, ReadError, ReportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
