"""python -m basin.pages.verdicts OUT... [--into FILE.md [--passage NAME]] [--picture FILE.png]: the verdicts on hypotheses as Markdown,
first a row for each hypothesis of all the studies, then a table for each study; and the figure of one study's effects."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ..analysis.verdict_tables import Verdicts, verdicts_of
from ..figures.effects import effects
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .output import ReportError, nothing_in_home, save_picture
from .paste import PasteError, paste
from .verdict_text import COLOURS, hypothesis_rows, same_text, table


def markdown(sweeps: list[Sweep], beside: Path) -> str:
    """`beside`: the folder that links are relative to."""
    all_of_them = [(sweep, _asked(sweep)) for sweep in sweeps]
    links = [_link(sweep, beside) for sweep, _ in all_of_them]
    lines = list(table(pd.concat(_overview(link, v) for link, (_, v) in zip(links, all_of_them, strict=True))))
    for link, (sweep, v) in zip(links, all_of_them, strict=True):
        lines += ["", f"## {link}", "", _made_of(sweep), "", *table(hypothesis_rows(v)), "", same_text(v.same)]
    return "\n".join(lines)


def _link(sweep: Sweep, beside: Path) -> str:
    folder = sweep.path if sweep.path.is_dir() else sweep.path.parent
    return f"[{folder.name}]({Path(os.path.relpath(folder, beside)).as_posix()})"


def _overview(link: str, v: Verdicts) -> pd.DataFrame:
    """A row for each hypothesis: how many of its contrasts came out as what, and what it comes to."""
    rows = []
    for a in v.answers:
        words = [part.verdict for part in a.parts]
        seeds = sorted({len(v.found[part.contrast].seeds) for part in a.parts})
        rows.append({
            "study": link, "claim": a.plan.claim or a.plan.name, "source": a.plan.source or "–", "status": a.status,
            "seeds": " to ".join(str(n) for n in dict.fromkeys((seeds[0], seeds[-1]))),
            "contrasts": ", ".join(f"{words.count(word)} {word}" for word in COLOURS if word in words), "verdict": a.verdict,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _made_of(sweep: Sweep) -> str:
    """Data, number of runs and what they cost."""
    runs = sweep.runs
    data = ", ".join(
        f"{row['dataset.name']} ({row['dataset.n_train']:,} training and {row['dataset.n_test']:,} test images, pixels {row['dataset.pixels']})"
        for _, row in runs.drop_duplicates(["dataset.name", "dataset.n_train", "dataset.n_test"]).iterrows()
    )
    return f"{len(runs)} runs on {data}; {runs['seconds'].sum() / 3600:.1f} hours of training in all, one core each, probes not counted."


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
    parser.add_argument("folders", nargs="+", metavar="OUT", help="a sweep's folder or its sweep.h5")
    parser.add_argument("--into", help="replace what stands between <!-- NAME --> and <!-- end of NAME --> in this file")
    parser.add_argument("--passage", default="verdicts", help="NAME (default: verdicts)")
    parser.add_argument("--picture", type=Path, help="a .png file for the figure, of one study")
    options = parser.parse_args(arguments)
    if options.picture and len(options.folders) > 1:
        parser.error("--picture draws the effects of one study: give one OUT")
    try:
        beside = Path(options.into).parent if options.into else Path()
        content = markdown([open_sweep(folder) for folder in options.folders], beside)
        if options.picture:
            with nothing_in_home():
                save_picture(_figure, options.folders[0], options.picture)
        if options.into:
            paste(options.into, options.passage, content)
        elif not options.picture:
            print(content)
    except (PasteError, ReadError, ReportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
