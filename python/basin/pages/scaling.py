"""python -m basin.pages.scaling OUT_DIR SCALING.json [--picture FILE.png] [--into PAGE.md]: the time to a target on 1 to 1,024 ranks, by a
model of S(B) of a sweep of protocol B and of what bench/scaling.py measured (docs/scaling.md)."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from ..analysis.branches import without_branches
from ..analysis.rank_scaling import SIZES, UpdateCost, check, scaling_table, update_cost
from ..reader.fault import ReadError
from ..reader.sweep import open_sweep
from .critical import laws, trials_by_optimizer
from .output import ReportError, nothing_in_home, save_picture
from .paste import PasteError, paste

PASSAGE = "scaling"
RANKS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def measured_by(path: Path) -> dict:
    try:
        measured = json.loads(path.read_text())
        known = {*SIZES, "runs", "sums"} <= set(measured)
        if not known or "2" not in measured["sums"] or "1" not in measured["runs"]:
            raise ReadError(f"{path}: not of bench/scaling.py on one and two ranks")
    except ValueError as error:
        raise ReadError(f"{path}: no JSON: {error}") from None
    return measured


def passage(cost: UpdateCost, misfit: float, checks: pd.DataFrame, tables: dict[str, pd.DataFrame]) -> str:
    lines = [
        f"An update takes {cost.per_update * 1e3:.2f} ms and {cost.per_image * 1e6:.0f} µs for each example. "
        f"{cost.bytes / 1e3:,.1f} kB are summed,",
        f"at {cost.latency * 1e6:.0f} µs and {cost.bandwidth / 1e9:.2f} GB/s for each step of a ring, "
        f"which is off by {100 * misfit:.0f} % at the worst of the sizes measured.",
        "",
        "| ranks | scaling | batch size | measured, ms | model, ms | measured / model |",
        "|---|---|---|---|---|---|",
    ]
    for r in checks.itertuples():
        took, model = r.seconds * 1e3, r.model * 1e3
        lines.append(f"| {r.ranks} | {r.scaling} | {r.batch:,} | {took:.1f} | {model:.1f} | {took / model:.2f} |")
    lines += [
        "",
        "| optimiser | ranks | best batch size | updates | examples | seconds | faster than one rank [95 %] | share of sums |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, table in tables.items():
        for r in table.itertuples():
            lines.append(
                f"| {name} | {r.ranks:,} | {r.batch:,.0f} | {r.updates:,.0f} | {r.examples:,.0f} | {r.seconds:.3g} | "
                f"{r.faster:.2g} [{r.low:.2g}, {r.high:.2g}] | {100 * r.sums:.0f} % |"
            )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.pages.scaling", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("measured", type=Path, help="what bench/scaling.py wrote")
    parser.add_argument("--draws", type=int, default=400, help="of the bootstrap (400)")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--into", type=Path, help=f"a Markdown file with a place for what is printed, <!-- {PASSAGE} -->")
    args = parser.parse_args(arguments)
    try:
        sweep = without_branches(open_sweep(args.folder))
        measured = measured_by(args.measured)
        cost = update_cost(measured)
        found = laws(*trials_by_optimizer(sweep), args.draws)
        tables = {name: scaling_table(cost, law, RANKS) for name, law in found.items() if law.status == "ok"}
        text = passage(
            cost,
            measured["sums"]["2"]["worst_residual"],
            check(cost, measured),
            {sweep.names.label("optimizers", name): t for name, t in tables.items()},
        )
        print(text)
        if args.into:
            paste(args.into, PASSAGE, text)
        if args.picture:
            with nothing_in_home():
                from ..figures import rank_scaling as drawing

                save_picture(lambda s: drawing.figure(tables, s.names), args.folder, args.picture)
    except (PasteError, ReadError, ReportError, OSError, np.linalg.LinAlgError) as error:
        print(f"basin.pages.scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
