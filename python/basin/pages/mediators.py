"""python -m basin.pages.mediators OUT [--into FILE.md] [--picture FILE.png]: what each arm of a sweep does to its outcome and to the
mediators that were measured, and whether the two go together, as the report has them, in Markdown."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from matplotlib.figure import Figure

from ..analysis.mediators import arm_effects, associations
from ..figures.mediators import plane
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .command import command, draw_picture, picture_link, publish, run, takes_page, takes_picture
from .mediator_text import FIGURE, arm_table, association_table
from .verdict_text import table

PASSAGE = "mediators"


def markdown(sweep: Sweep) -> str:
    arms = arm_effects(sweep)
    if not arms:
        raise ReadError(f"{sweep.path}: no arm has both an outcome and a mediator (docs/reading-results.md)")
    tables = [arm_table(arms), association_table(associations(arms))]
    return "\n\n".join("\n".join(table(rows)) for rows in tables if len(rows))


def draw(sweep: Sweep) -> Figure:
    arms = arm_effects(sweep)
    figure = plane(arms, associations(arms), sweep.names)
    if figure is None:
        raise ReadError(f"{sweep.path}: fewer than two arms have a mediator (docs/reading-results.md)")
    return figure


def work(options: argparse.Namespace) -> None:
    text = markdown(open_sweep(options.folder))
    draw_picture(options.picture, draw, options.folder)
    publish(options, text + picture_link(options.into, options.picture, FIGURE))


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.mediators", __doc__)
    parser.add_argument("folder", type=Path, metavar="OUT")
    takes_page(parser, PASSAGE)
    takes_picture(parser)
    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
