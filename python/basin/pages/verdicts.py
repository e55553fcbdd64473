"""python -m basin.pages.verdicts OUT [--into FILE.md [--passage NAME]] [--picture FILE.png]: the verdicts on a study's hypotheses as a
table in Markdown, and the figure of their effects."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from matplotlib.figure import Figure

from ..analysis.verdict_tables import Verdicts, verdicts_of
from ..figures.effects import effects
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .output import ReportError, nothing_in_home, save_picture
from .paste import PasteError, paste
from .verdict_text import hypothesis_rows, same_text, table


def markdown(v: Verdicts) -> str:
    rows = hypothesis_rows(v).drop(columns=["seeds", "p (Holm)"], errors="ignore")
    seeds = sorted({len(f.seeds) for f in v.found.values()})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return "\n".join(
        [*table(rows), "", f"{count} seeds; verdicts after Holm's correction over {len(v.answers)}. {same_text(v.same)}"]
    )


def _asked(sweep: Sweep) -> Verdicts:
    v = verdicts_of(sweep)
    if not v.answers:
        raise ReportError(f"{sweep.path}: its study has no [[hypothesis]]")
    return v


def _figure(sweep: Sweep) -> Figure:
    figure = effects(_asked(sweep), sweep)
    if figure is None:
        raise ReportError(f"{sweep.path}: no contrast of a hypothesis has an effect yet")
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.pages.verdicts", description=(__doc__ or "").split(": ", 1)[1])
    parser.add_argument("folder", help="a sweep's folder or its sweep.h5")
    parser.add_argument("--into", help="replace what stands between <!-- NAME --> and <!-- end of NAME --> in this file")
    parser.add_argument("--passage", default="verdicts", help="NAME (default: verdicts)")
    parser.add_argument("--picture", type=Path, help="a .png file for the figure")
    options = parser.parse_args(arguments)
    try:
        content = markdown(_asked(open_sweep(options.folder)))
        if options.picture:
            with nothing_in_home():
                save_picture(_figure, options.folder, options.picture)
        paste(options.into, options.passage, content) if options.into else print(content)
    except (PasteError, ReadError, ReportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
