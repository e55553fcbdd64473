"""python -m basin.pages.scaling OUT_DIR [--times SCALING.h5] [--picture FILE.png] [--into PAGE.md]: what more ranks bring, as
`basin scaling` measured it, and the time to the target of a sweep of protocol B on 1 to 1,024 ranks by a model (docs/scaling.md)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from ..analysis.branches import without_branches
from ..reader.fault import ReadError
from ..reader.names import Names
from ..reader.scaling import RankTimes, load_scaling
from ..reader.sweep import open_sweep
from . import scaling_text as text
from .critical import laws, trials_by_optimizer
from .output import ReportError, nothing_in_home, save_picture
from .paste import PasteError, paste
from .verdict_text import table

PASSAGE = "scaling"


def passage(times: RankTimes, model: text.Model, names: Names) -> str:
    parts = [text.where(times), table(text.measured_table(times)), text.costs_text(model, times), table(text.check_table(model, times)),
             table(text.model_table(model, names)), text.beyond_text(model, names)]  # fmt: skip
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts if part)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.pages.scaling", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=Path, help="what `basin scaling` wrote; by default OUT_DIR/scaling.h5")
    parser.add_argument("--draws", type=int, default=400, help="of the bootstrap (400)")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--into", type=Path, help=f"a Markdown file with a place for what is printed, <!-- {PASSAGE} -->")
    args = parser.parse_args(arguments)
    try:
        sweep = without_branches(open_sweep(args.folder))
        times = load_scaling(args.times or args.folder)
        model = text.model_of(times, laws(*trials_by_optimizer(sweep), args.draws))
        said = passage(times, model, sweep.names)
        print(said)
        if args.into:
            paste(args.into, PASSAGE, said)
        if args.picture:
            with nothing_in_home():
                from ..figures import rank_scaling as drawing

                save_picture(lambda s: drawing.figure(model.tables, s.names), args.folder, args.picture)
    except (PasteError, ReadError, ReportError, OSError, np.linalg.LinAlgError) as error:
        print(f"basin.pages.scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
