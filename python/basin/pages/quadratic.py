"""python -m basin.pages.quadratic OUT_DIR [--picture FILE.png] [--into FILE.md]: updates to the target on the noisy quadratic model, as a sweep
found them and as theory has them (closed_form.py; docs/noisy-quadratic.md).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..analysis import stats
from ..analysis.closed_form import REPLICATES, Cell
from ..reader.schema import ReadError
from ..reader.sweep import Sweep, open_sweep
from .paste import PasteError, paste
from .report import ReportError, nothing_in_home, save_picture

PASSAGE = "noisy quadratic"
LATER = 4  # standard deviations above the target at which no run can have stopped yet: once in 30,000 looks at a Gaussian

# What a run must be for the closed form to be its own; a file from before an option was there doesn't have its column.
REQUIRED = {
    "model": "noisy_quadratic", "data.set": "coin_flips", "loss": "mse", "optimizer": "sgd", "protocol": "B", "schedule": "constant",
    "warmup": 0, "scaling_rule": "none", "effective_rate": False, "sgd.nesterov": False, "sgd.dampening": 0, "sgd.weight_decay": 0,
    "label_smoothing": 0, "clip_gradient": 0, "lookahead_every": 0, "weight_average": 0, "perturbation.kind": "none",
    "learning_rate_factors": "[]",
}  # fmt: skip
METHOD = ["sgd.momentum", "noisy_quadratic.precondition"]
ORDER = [*reversed(METHOD), "batch_size", "seed"]


def cell_of(run: pd.Series, where) -> tuple[Cell, float]:
    """A run's cell, and how far its target is above the least loss. ReadError where the closed form is not that of the run."""
    for key, wanted in REQUIRED.items():
        if run.get(key, wanted) != wanted:
            raise ReadError(f"{where}: run {run.run_id} has {key} = {run[key]}; the closed form is that of {key} = {wanted}")
    dimensions = int(run["dataset.classes"])
    cell = Cell(int(run.batch_size), run.learning_rate, *run[METHOD], run["noisy_quadratic.power"], dimensions, int(run["dataset.n_train"]))
    excess = run.target_loss - dimensions / 2
    if not 0 < excess < cell.h.sum() / 2:
        raise ReadError(f"{where}: run {run.run_id} has target_loss = {run.target_loss}, which isn't between the least loss and the start's")
    if (dimensions + cell.h.sum()) / 2 >= 1.15 * run.target_loss:
        raise ReadError(f"{where}: run {run.run_id} has target_loss = {run.target_loss}, of which the start is more than 1.15 times")
    return cell, excess


def method_name(momentum: float, precondition: float) -> str:
    parts = (f"momentum {momentum:g}" if momentum > 0 else "", f"preconditioned, p = {precondition:g}" if precondition > 0 else "")
    return ", ".join(filter(None, parts)) or "SGD"


def table(runs: pd.DataFrame, where="sweep") -> pd.DataFrame:
    """One row a cell, in updates to the target: closed form (with the runs' examples, and with independent batches), drawn runs (mean and
    standard deviation of one), measured (mean, standard error, seeds that reached it and seeds)."""
    rows = []
    for _, group in runs.sort_values(ORDER).groupby("config_id", sort=False):
        cell, excess = cell_of(group.iloc[0], where)
        every = int(group.check_every.iloc[0])
        stops = cell.drawn_stops(excess, every)
        mean, error, reached = stats.mean_and_error(group.steps_to_target)
        rows.append({"method": method_name(cell.momentum, cell.precondition), "batch": cell.batch, "rate": cell.rate,
                     "closed": cell.check_at(excess, every), "independent": replace(cell, examples=np.inf).check_at(excess, every),
                     "drawn": stops.mean(), "scatter": stops.std(ddof=1), "measured": mean, "error": error, "reached": reached,
                     "seeds": len(group)})  # fmt: skip
    return pd.DataFrame(rows)


def losses(sweep: Sweep) -> pd.DataFrame:
    """One row a cell: the training loss at the checks, averaged over seeds, against its expectation, as long as no run can have stopped.

    `worst` is the largest difference in standard errors, `checks` how many were compared; where the expectation has no scatter (whole epochs)
    `worst` is NaN and `relative` the largest relative difference.
    """
    rows = []
    for _, group in sweep.runs.sort_values(ORDER).groupby("config_id", sort=False):
        cell, excess = cell_of(group.iloc[0], sweep.path)
        curves = [sweep.curve(run_id, "eval").set_index("update").train_loss for run_id in group.run_id]
        found = pd.concat(curves, axis=1, join="inner").sort_index() - cell.dimensions / 2
        mean, deviation = cell.excess(found.index)
        early = mean - LATER * deviation > excess
        difference, error = (found.mean(axis=1) - mean)[early], deviation[early] / np.sqrt(len(curves))
        exact = bool((deviation == 0).all())
        rows.append({"method": method_name(cell.momentum, cell.precondition), "batch": cell.batch, "checks": int(early.sum()),
                     "worst": np.nan if exact else (difference / error).abs().max(),
                     "relative": (difference / mean[early]).abs().max()})  # fmt: skip
    return pd.DataFrame(rows)


def critical_batch(batches, updates) -> float:
    """The batch size at which the updates are twice those of the largest, on straight lines in logarithms; NaN where none is."""
    x, y = np.log(np.asarray(batches, float)), np.log(np.asarray(updates, float) / (2 * np.asarray(updates, float)[-1]))
    below = np.flatnonzero((y[:-1] >= 0) & (y[1:] < 0))
    if not below.size:
        return np.nan
    i = below[-1]
    return float(np.exp(x[i] + (x[i + 1] - x[i]) * y[i] / (y[i] - y[i + 1])))


def in_words(found: pd.DataFrame) -> list[str]:
    """Of each method: perfect scaling, plateau and critical batch size, predicted and measured."""
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
        away = "exact" if r.measured == r.drawn == r.closed else f"{(r.measured - r.drawn) / error:+.1f} SE".replace("-", "−") if error > 0 else ""
        lines.append(f"| {r.method} | {r.batch:,} | {r.rate:g} | {r.closed:,.0f} | {r.independent:,.0f} | {r.drawn:,.1f} ± {r.scatter:.1f} | "
                     f"{r.measured:,.1f} ± {r.error:.1f}{reached} | {r.measured / r.closed:.2f} | {away} |")  # fmt: skip
    return "\n".join(lines + ["", *(f"- {line}" for line in in_words(found))])


def figure(sweep: Sweep):
    """Left: updates to the target against batch size. Right: measured over the closed form, beside the runs drawn."""
    from ..figures import style

    found = table(sweep.runs, sweep.path)
    picture, axes = style.panels(1, 2, 5.2, 3.8)
    left, right = axes[0]
    right.axhline(1, color=style.GREY, linewidth=0.9)
    for (method, rows), colour, marker in zip(found.groupby("method", sort=False), style.COLOURS.values(), style.MARKERS.values()):
        left.plot(rows.batch, rows.closed, color=colour, label=method)
        left.plot(rows.batch, rows.independent, color=colour, linestyle=":", linewidth=1)
        left.plot(rows.batch, rows.closed.iloc[0] * rows.batch.iloc[0] / rows.batch, color=style.GREY, linestyle="--", linewidth=0.7)
        left.errorbar(rows.batch, rows.measured, yerr=rows.error, color=colour, marker=marker, linestyle="", markersize=5)
        half = 2 * rows.scatter / np.sqrt(rows.seeds) / rows.closed
        right.fill_between(rows.batch, rows.drawn / rows.closed - half, rows.drawn / rows.closed + half, color=colour, alpha=0.18, linewidth=0)
        right.errorbar(rows.batch, rows.measured / rows.closed, yerr=rows.error / rows.closed, color=colour, marker=marker, linestyle="",
                       markersize=5)  # fmt: skip
    for ax in (left, right):
        style.batch_axis(ax, found.batch)
    left.set_yscale("log")
    style.plain_log(left.yaxis)
    left.set_ylim(found.closed.min() / 2, found.closed.max() * 2)
    left.set_ylabel("updates to the target loss")
    left.legend(title="marks: measured; dotted: independent batches;\ndashed: perfect scaling", title_fontsize=8, fontsize=8)
    right.set_ylabel("measured / closed form")
    right.set_title("band: runs drawn from the model, mean ± 2 standard errors", fontsize=8.5)
    return picture


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.pages.quadratic", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--into", type=Path, help=f"a Markdown file with a place for the table, <!-- {PASSAGE} -->")
    args = parser.parse_args(arguments)
    try:
        sweep = open_sweep(args.folder)
        found = table(sweep.runs, args.folder)
        print(found.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
        print(losses(sweep).to_string(index=False, float_format=lambda v: f"{v:.3g}"))
        print("\n".join(in_words(found)))
        if args.into:
            paste(args.into, PASSAGE, markdown(found))
        if args.picture:
            with nothing_in_home():
                save_picture(figure, args.folder, args.picture)
    except (PasteError, ReadError, ReportError) as error:
        print(f"basin.quadratic: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
