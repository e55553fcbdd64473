"""python -m basin.pages.critical OUT_DIR [--tuning DIR] [--branches DIR] [--picture FILE.png] [--into PAGE.md]: critical batch sizes
of a sweep of protocol B, by the fit of S(B), next to noise scales and branches, and how the best rate moves with the batch size
(docs/forecast.md).

The runs of the fit are those of plain settings that are no branches."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from ..analysis.batch_scaling import Interval, Scaling, batch_scaling
from ..analysis.branched_critical import critical_sizes
from ..analysis.branches import without_branches
from ..analysis.critical_batch import CriticalBatch, critical_batch
from ..analysis.names import optimizers_of
from ..analysis.updates_to_target import trials_of_sweep, trials_of_tuning
from ..figures import critical_batch as drawing
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from ..reader.tune import Tuning, load_tuning
from .command import command, draw_picture, publish, run, takes_page, takes_picture

PASSAGE = "critical"


def trials_by_optimizer(sweep: Sweep, tuning: Tuning | None = None) -> tuple[dict[str, pd.DataFrame], int]:
    """Those of the sweep's runs and, where one is given, of the tuning; and N, the number of training examples."""
    runs = sweep.runs[sweep.runs.protocol == "B"]
    if runs.empty:
        raise ReadError(f"{sweep.path}: no run of protocol B")
    if runs["dataset.n_train"].nunique() != 1 or runs.target_loss.nunique() != 1:
        raise ReadError(f"{sweep.path}: several sets of training examples or targets: S(B) is of one")
    examples, found = int(runs["dataset.n_train"].iloc[0]), {}
    for optimizer in optimizers_of(runs, sweep.names):
        trials = trials_of_sweep(sweep, optimizer)
        if tuning is not None:
            trials = pd.concat([trials, trials_of_tuning(tuning, sweep, optimizer)], ignore_index=True)
        if len(trials):
            found[optimizer] = trials
    return found, examples


def laws(trials: dict[str, pd.DataFrame], examples: int, draws: int = 400) -> dict[str, CriticalBatch]:
    return {optimizer: critical_batch(table, examples, draws) for optimizer, table in trials.items()}


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


def size_lines(name: str, scaling: Scaling) -> list[str]:
    """One row per batch size, then the slope in words."""

    def row(r: pd.Series) -> str:
        if r.status != "ok":
            return f"| {name} | {r.batch:,.0f} | – | – | – | {r.status} |"
        ratio = f"{r.ratio:.2f}{between(r.ratio_low, r.ratio_high)}" if np.isfinite(r.ratio) else "–"
        return f"| {name} | {r.batch:,.0f} | {r.rate:.3g} | {r.updates:,.0f} ± {100 * r.error:.0f} % | {ratio} | ok |"

    return [row(r) for _, r in scaling.sizes.iterrows()]


def between(low: float, high: float) -> str:
    return f" [{low:.2f}, {high:.2f}]" if np.isfinite(low) else ""


def slope_in_words(name: str, scaling: Scaling) -> str:
    slope: Interval = scaling.slope
    if not np.isfinite(slope.value):
        return f"{name}: no slope of the best rate: fewer than three sizes up to {scaling.most:,.0f} have one"
    return (f"{name}: over B up to {scaling.most:,.0f} the best rate goes as B to the power of {slope.value:.2f}"
            f"{between(slope.low, slope.high)} (½ square root, 1 linear)")  # fmt: skip


def scales_in_words(name: str, scales: pd.DataFrame) -> list[str]:
    """The noise scales of its runs, by quantity, from the first loss to the last: the ratio of sums over runs, and single runs."""
    lines = []
    for quantity, mine in scales.dropna(subset=["above", "below"]).groupby("quantity", sort=False):
        levels = sorted((g for _, g in mine.groupby("checkpoint")), key=lambda g: -g.train_loss.mean())
        lines.append(f"{name}: {quantity} {'; '.join(map(_level_in_words, levels))}")
    return lines


def _level_in_words(found: pd.DataFrame) -> str:
    """Those of one checkpoint of several runs."""
    values = found.value
    spread = f"{values.min():,.0f} to {values.max():,.0f}, {len(values)} runs" if len(values) > 1 else "one run"
    return f"{found.above.sum() / found.below.sum():,.0f} ({spread}) at a loss of {found.train_loss.mean():.2g}"


def passage(names: dict[str, str], found: dict[str, CriticalBatch], scalings: dict[str, Scaling], scales: list[str],
            branches: pd.DataFrame | None) -> str:  # fmt: skip
    lines = [
        "| optimiser | B | best rate | updates S | S over that of the size before [95 %] | status |",
        "|---|---|---|---|---|---|",
    ]
    lines += [line for o in found for line in size_lines(names[o], scalings[o])]
    said = [text for o in found for text in (in_words(names[o], found[o]), slope_in_words(names[o], scalings[o]))] + scales
    lines += ["", *(f"- {text}." for text in said)]
    if branches is not None:
        lines += [
            "",
            "| optimiser | branches at | training loss | critical size [95 %] | status | seeds |",
            "|---|---|---|---|---|---|",
        ]
        for r in branches.itertuples():
            high = f"{r.high:,.0f}" if np.isfinite(r.high) else "open"
            size = f"{r.batch:,.0f} [{r.low:,.0f}, {high}]" if np.isfinite(r.batch) else f"bound {r.bound:,.0f}"
            name, at = names.get(r.optimizer, r.optimizer), r.branch_point.split()[-1]
            lines.append(f"| {name} | {at} | {r.train_loss:.2f} | {size} | {r.status} | {r.seeds} |")
    return "\n".join(lines)


def branched(folder: Path) -> pd.DataFrame:
    found = critical_sizes(open_sweep(folder))
    if found.empty:
        raise ReadError(f"{folder}: no branches of its own runs that change the batch size alone, or with it the rate")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.critical", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tuning", type=Path, help="tune.h5 or its folder: its trials are taken too")
    parser.add_argument("--branches", type=Path, help="a sweep's folder with branches of several batch sizes; it can be OUT_DIR")
    parser.add_argument("--draws", type=int, default=400, help="of the bootstrap (400)")
    parser.add_argument("--slope-to", type=float, help="the largest batch size in the slope of the best rate (all below N)")
    takes_picture(parser)
    takes_page(parser, PASSAGE)

    def work(options: argparse.Namespace) -> None:
        sweep = without_branches(open_sweep(options.folder))
        branches = branched(options.branches) if options.branches else None
        trials, examples = trials_by_optimizer(sweep, load_tuning(options.tuning) if options.tuning else None)
        found = laws(trials, examples, options.draws)
        most = options.slope_to if options.slope_to else examples - 1
        scalings = {name: batch_scaling(law, most) for name, law in found.items()}
        names = {name: sweep.names.label("optimizers", name) for name in found}
        scales = [line for name in found for line in scales_in_words(names[name], drawing.noise_scales(sweep, name))]
        publish(options, passage(names, found, scalings, scales, branches))
        draw_picture(options.picture, lambda drawn: drawing.figure(drawn, found, branches), options.folder)

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
