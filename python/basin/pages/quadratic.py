"""python -m basin.pages.quadratic OUT_DIR [--picture FILE.png] [--into FILE.md]: updates to the target on the noisy quadratic
model, as a sweep found them and as theory has them (closed_form.py; docs/noisy-quadratic.md).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..analysis.closed_form import REPLICATES
from ..analysis.noisy_quadratic import critical_batch, losses, table
from ..reader.sweep import Sweep, open_sweep
from .command import command, draw_picture, run, takes_page, takes_picture
from .paste import paste

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

PASSAGE = "noisy quadratic"


def in_words(found: pd.DataFrame) -> list[str]:
    """Each method's perfect scaling, plateau and critical batch size, predicted and measured."""
    lines = []
    for method, rows in found.groupby("method", sort=False):
        predicted, measured = (critical_batch(rows.batch, rows[column]) for column in ("closed", "measured"))
        last = rows.iloc[-1]
        lines.append(f"{method}: {last.closed:.0f} updates at batch size {last.batch:,.0f} predicted, {last.measured:g} measured; "
                     f"twice that at batch size {predicted:.0f} predicted, {measured:.0f} measured")  # fmt: skip
    return lines


def markdown(found: pd.DataFrame) -> str:
    lines = ["| method | batch | rate | closed form | independent batches | drawn | measured | measured / closed | measured − drawn |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for r in found.itertuples():
        reached = f" ({r.reached} of {r.seeds} reached it)" if r.reached < r.seeds else ""
        error = np.hypot(r.scatter / np.sqrt(r.reached), r.scatter / np.sqrt(REPLICATES)) if r.reached else np.nan
        away = (
            "exact"
            if r.measured == r.drawn == r.closed
            else f"{(r.measured - r.drawn) / error:+.1f} SE".replace("-", "−")
            if error > 0
            else ""
        )
        lines.append(
            f"| {r.method} | {r.batch:,} | {r.rate:g} | {r.closed:,.0f} | {r.independent:,.0f} | {r.drawn:,.1f} ± {r.scatter:.1f} "
            f"| {r.measured:,.1f} ± {r.error:.1f}{reached} | {r.measured / r.closed:.2f} | {away} |"
        )
    return "\n".join([*lines, "", *(f"- {line}" for line in in_words(found))])


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.quadratic", __doc__)
    parser.add_argument("folder", type=Path)
    takes_picture(parser)
    takes_page(parser, PASSAGE)

    def work(options: argparse.Namespace) -> None:
        sweep = open_sweep(options.folder)
        found = table(sweep.runs, options.folder)
        print(found.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
        print(losses(sweep).to_string(index=False, float_format=lambda v: f"{v:.3g}"))
        print("\n".join(in_words(found)))
        if options.into:
            paste(options.into, options.passage, markdown(found))
        draw_picture(options.picture, figure, options.folder)

    return run(parser, arguments, work)


def figure(sweep: Sweep) -> Figure:
    from ..figures import steps_against_batch

    return steps_against_batch.figure(sweep)


if __name__ == "__main__":
    sys.exit(main())
