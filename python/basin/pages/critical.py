"""python -m basin.pages.critical OUT_DIR [--tuning DIR] [--branches DIR] [--picture FILE.png]: critical batch sizes of a sweep
of protocol B, by the fit of S(B), next to noise scales and branches (docs/forecast.md).

The runs of the fit are those that are no branches."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from ..analysis.branched_critical import critical_sizes
from ..analysis.branches import without_branches
from ..analysis.critical_batch import CriticalBatch, critical_batch
from ..analysis.names import optimizers_of
from ..analysis.updates_to_target import trials_of_sweep, trials_of_tuning
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from ..reader.tune import Tuning, load_tuning
from .output import ReportError, nothing_in_home, save_picture


def laws(sweep: Sweep, tuning: Tuning | None = None, draws: int = 400) -> dict[str, CriticalBatch]:
    """By optimiser, of the sweep's runs and, where one is given, the tuning's trials."""
    runs = sweep.runs[sweep.runs.protocol == "B"]
    if runs.empty:
        raise ReadError(f"{sweep.path}: no run of protocol B")
    if runs["dataset.n_train"].nunique() != 1 or runs.target_loss.nunique() != 1:
        raise ReadError(f"{sweep.path}: several sets of training examples or targets: S(B) is of one")
    examples, check_every = int(runs["dataset.n_train"].iloc[0]), int(runs.check_every.iloc[0])
    found = {}
    for optimizer in optimizers_of(runs, sweep.names):
        trials = trials_of_sweep(sweep, optimizer)
        if tuning is not None:
            trials = pd.concat([trials, trials_of_tuning(tuning, optimizer, examples, check_every)], ignore_index=True)
        if len(trials):
            found[optimizer] = critical_batch(trials, examples, draws)
    return found


def in_words(name: str, law: CriticalBatch) -> str:
    if law.status == "few_sizes":
        whys = ", ".join(f"{int(r.batch)} {r.status}" for r in law.sizes.itertuples() if r.status != "ok")
        return f"{name}: no B_crit: fewer than three batch sizes with a best rate ({whys})"
    fit = f"misfit p = {law.misfit:.2g}, free exponent {law.exponent:.2f} ± {law.exponent_error:.2f}"
    if law.status == "ok":
        low, high = law.updates_interval
        return (f"{name}: B_crit {law.batch:,.0f} [{law.low:,.0f}, {law.high:,.0f}], S_min {law.updates:,.1f} [{low:,.1f}, {high:,.1f}], "
                f"E_min {law.examples_least:,.0f}; {fit}")  # fmt: skip
    side, sign = ("above", "≥") if law.status == "open_above" else ("below", "≤")
    return (
        f"{name}: B_crit stays open {side} (fewer than two sizes on that side): {sign} {law.bound:,.0f} (95 %, one-sided); {fit}"
    )


def branched(folder: Path) -> pd.DataFrame:
    found = critical_sizes(open_sweep(folder))
    if found.empty:
        raise ReadError(f"{folder}: no branches of its own runs that change the batch size alone, or with it the rate")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.pages.critical", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tuning", type=Path, help="tune.h5 or its folder: its trials are taken too")
    parser.add_argument("--branches", type=Path, help="a sweep's folder with branches of several batch sizes; it can be OUT_DIR")
    parser.add_argument("--draws", type=int, default=400, help="of the bootstrap (400)")
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args(arguments)
    try:
        sweep = without_branches(open_sweep(args.folder))
        branches = branched(args.branches) if args.branches else None
        found = laws(sweep, load_tuning(args.tuning) if args.tuning else None, args.draws)
        for name, law in found.items():
            print(in_words(sweep.names.label("optimizers", name), law))
        if branches is not None:
            print(branches.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
        if args.picture:
            with nothing_in_home():
                from ..figures import critical_batch as drawing

                save_picture(lambda s: drawing.figure(s, found, branches), args.folder, args.picture)
    except (ReadError, ReportError, OSError, np.linalg.LinAlgError) as error:
        print(f"basin.pages.critical: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
