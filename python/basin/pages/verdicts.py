"""python -m basin.pages.verdicts OUT... [--into FILE.md [--passage NAME]] [--picture FILE.png]: the verdicts on hypotheses, from the
studies' verdicts.h5, as Markdown: a row for each hypothesis of all, then a table for each study; and the figure of one study's effects."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..analysis.number_text import p_text
from ..analysis.verdict_tables import verdicts_of
from ..figures.effects import effects
from ..reader.schema import open_file
from ..reader.sweep import Sweep
from ..reader.tables import table_of
from .command import command, draw_picture, publish, run, takes_page, takes_picture
from .output import ReportError
from .verdict_text import COLOURS, margin_text, numbers_text, table, verdict_words

Tables = dict[str, pd.DataFrame]
PASSAGE = "verdicts"


def markdown(folders: list[Path], page_folder: Path) -> str:
    """`page_folder`: what links are relative to."""
    studies = {f"[{f.name}]({Path(os.path.relpath(f, page_folder)).as_posix()})": kept_verdicts(f) for f in folders}
    lines = list(table(pd.concat(_overview(link, tables) for link, tables in studies.items())))
    for link, tables in studies.items():
        lines += ["", f"## {link}", "", *table(_contrasts(tables)), "", _same_text(tables["contrasts"])]
    return "\n".join(lines)


def kept_verdicts(folder: Path) -> Tables:
    """The three tables of OUT/verdicts.h5, which the report writes."""
    path = folder / "verdicts.h5"
    if not path.is_file():
        raise ReportError(f"{path}: no such file: write it with python -m basin.report {folder}")
    with open_file(path, "verdicts") as file:
        tables = {name: table_of(file[name]) for name in file}
    if tables["hypotheses"].empty:
        raise ReportError(f"{path}: its study has no [[hypothesis]]")
    return tables


def _overview(link: str, tables: Tables) -> pd.DataFrame:
    """A row for each hypothesis: how many of its contrasts came out as what, and what it comes to."""
    seeds = tables["contrasts"].set_index("name").seeds
    rows = []
    for h in tables["hypotheses"].itertuples():
        parts = tables["parts"][tables["parts"].hypothesis == h.name]
        words, counts = list(parts.verdict), sorted(seeds[parts.contrast])
        rows.append({
            "study": link, "claim": h.claim or h.name, "source": h.source or "–", "status": h.status,
            "seeds": " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))),
            "contrasts": ", ".join(f"{words.count(word)} {word}" for word in COLOURS if word in words),
            "p (Holm)": p_text(h.p_holm), "verdict": verdict_words(h.verdict, int(h.seeds_to_decide)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _contrasts(tables: Tables) -> pd.DataFrame:
    """A row for each contrast of each hypothesis."""
    contrasts = {c.name: c for c in tables["contrasts"].itertuples()}
    rows = []
    for h in tables["hypotheses"].itertuples():
        for i, part in enumerate(tables["parts"][tables["parts"].hypothesis == h.name].itertuples()):
            c, first = contrasts[part.contrast], i == 0
            rows.append({
                "hypothesis": h.name if first else "", "contrast": c.name, "of": f"{c.outcome}, {c.at}", "effect [95 %]": _effect(c),
                "expected": part.expect + margin_text(part.margin, c.kind, c.outcome, c.scale), "seeds": str(c.seeds),
                "this part": part.verdict, "what forbids a verdict": c.reason or "–", "verdict": h.verdict if first else "",
            })  # fmt: skip
    return pd.DataFrame(rows)


def _effect(c: Any) -> str:
    said = numbers_text(c.effect, c.low, c.high, c.outcome, c.scale)
    if not np.isfinite(c.share_low):
        return said
    return said + f", R = {c.share:.2f} [{c.share_low:.2f}, {c.share_high:.2f}]".replace("-", "−")


def _same_text(contrasts: pd.DataFrame) -> str:
    same = contrasts[contrasts.kind == "same_cell"]
    odd = (same.verdict != "nothing").sum()
    return f"A/A contrasts: {len(same)}, of which {odd} came out as something."


def _figure(sweep: Sweep) -> Figure:
    figure = effects(verdicts_of(sweep), sweep)
    if figure is None:
        raise ReportError(f"{sweep.path}: no contrast of a hypothesis has an effect yet")
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.verdicts", __doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT", help="a sweep's folder with its verdicts.h5")
    takes_page(parser, PASSAGE, by_name=True)
    takes_picture(parser, "the figure of the effects of one study")

    def work(options: argparse.Namespace) -> None:
        if options.picture and len(options.folders) > 1:
            parser.error("--picture draws the effects of one study: give one OUT")
        draw_picture(options.picture, _figure, options.folders[0])
        publish(options, markdown(options.folders, options.into.parent if options.into else Path()))

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
