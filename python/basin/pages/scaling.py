"""python -m basin.pages.scaling OUT_DIR [--times SCALING.h5] [--picture FILE.png] [--into PAGE.md]: what more ranks bring, as
`basin scaling` measured it, and the time to the target of a sweep of protocol B on 1 to 1,024 ranks by a model (docs/scaling.md)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.branches import without_branches
from ..reader.names import Names
from ..reader.scaling import RankTimes, load_scaling
from ..reader.sweep import Sweep, open_sweep
from . import scaling_text as text
from .command import command, draw_picture, publish, run, takes_page, takes_picture
from .critical import laws, trials_by_optimizer
from .verdict_text import table

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

PASSAGE = "scaling"


def passage(times: RankTimes, model: text.Model, names: Names) -> str:
    parts = [text.where(times), table(text.measured_table(times)), text.costs_text(model, times), table(text.check_table(model, times)),
             table(text.model_table(model, names)), text.beyond_text(model, names)]  # fmt: skip
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts if part)


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.scaling", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=Path, help="what `basin scaling` wrote; by default OUT_DIR/scaling.h5")
    parser.add_argument("--draws", type=int, default=400, help="of the bootstrap (400)")
    takes_picture(parser)
    takes_page(parser, PASSAGE)

    def work(options: argparse.Namespace) -> None:
        sweep = without_branches(open_sweep(options.folder))
        times = load_scaling(options.times or options.folder)
        model = text.model_of(times, laws(*trials_by_optimizer(sweep), options.draws))

        def figure(drawn: Sweep) -> Figure:
            from ..figures import rank_scaling as drawing

            return drawing.figure(model.tables, drawn.names)

        publish(options, passage(times, model, sweep.names))
        draw_picture(options.picture, figure, options.folder)

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
