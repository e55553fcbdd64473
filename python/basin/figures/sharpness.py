"""Curvature, sharpness and noise of a sweep: against the batch size at the end, and against the training loss on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.audit_verdict import Audit, load_audit
from ..analysis.matched import OVERSHOT
from ..analysis.names import optimizer_name
from ..reader.sweep import Sweep
from . import style
from .marks import HOLLOW, ONE_SEED, draw_cells, draw_hollow, measure_cells, numbers

# (probe, quantity in the long table, which keeps vectors whole, its column in `runs`, axis label)
MEASURES = [
    ("top_eigenvalues", "lambda", "lambda_1", "λ₁ (loss / weight²)"),
    ("sharpness_keskar", "phi_full_1e-3", "phi_full_1e-3", "φ, full space, ε = 1e-3 (%)"),
    ("noise_scale", "b_simple", "b_simple", "B_simple (examples)"),
    ("top_eigenvalues", "lambda_1_w2", "lambda_1_w2", "λ₁ ‖w‖² (loss)"),
    ("sharpness_keskar", "phi_relative_1e-3", "phi_relative_1e-3", "φ, box relative to |w| (%)"),
    ("preconditioned_curvature", "rate_lambda_1", "rate_lambda_1", "η λ₁(P⁻¹H)"),
]


def sharpness_against_batch(sweep: Sweep) -> Figure:
    """λ₁, φ and B_simple at the end of protocol B, where training losses match, their scale-aware companions below, and next to those
    the curvature that the optimiser sees: a stability number for SGD (limit in docs/probes.md), a gauge for LARS and LAMB."""
    runs = sweep.runs[sweep.runs.protocol == "B"]
    optimizers = style.optimizers_of(sweep.runs)
    figure, axes = style.panels(2, 3, 4.0, 3.0)
    audit = load_audit(sweep)
    for ax, (probe, quantity, name, label) in zip(axes.flat, MEASURES):
        column = f"probe.end.{probe}.{name}"
        ax.set_ylabel(label)
        if column not in runs or runs.empty:
            style.nothing(ax, "not measured")
            continue
        for optimizer in optimizers:
            draw_cells(
                ax, measure_cells(sweep, runs[runs.optimizer == optimizer], probe, quantity, column), optimizer, optimizers
            )
        style.batch_axis(ax, sweep.runs.batch_size.dropna())
        style.positive_log(ax, numbers(runs, column))
        if _moved(audit, sweep, probe, quantity):
            style.grey(ax)
    style.legend(figure, style.optimizer_legend(optimizers, HOLLOW, ONE_SEED), columns=5)
    return figure


def _moved(audit: Audit, sweep: Sweep, probe: str, quantity: str) -> bool:
    rows = sweep.probes
    known = rows.definition[(rows.probe == probe) & (rows.quantity == quantity)].unique()
    return any(audit.moved(definition, quantity) for definition in known)


def sharpness_against_loss(sweep: Sweep, measures: Sequence[tuple[str, str, str, str]] = MEASURES[:3]) -> Figure:
    """These quantities at every probed checkpoint, a column an optimiser: compare at equal loss, that is, vertically."""
    optimizers = style.optimizers_of(sweep.runs)
    figure, axes = style.panels(len(measures), max(1, len(optimizers)), 3.7, 2.6, sharey="row", sharex=True)
    probes = sweep.probes.merge(sweep.runs[["run_id", "optimizer", "batch_size", "protocol"]], on="run_id")
    colours = style.batch_colours(sweep.runs.batch_size.dropna())
    probes, loss, loss_label = _at_losses(probes)
    audit = load_audit(sweep)
    for row, (probe, quantity, _, label) in zip(axes, measures):
        mine = probes[(probes.probe == probe) & (probes.quantity == quantity) & (probes["index"] == 0) & (probes.protocol == "B")]
        row[0].set_ylabel(label)
        for ax, optimizer in zip(row, optimizers):
            _loss_lines(ax, mine[mine.optimizer == optimizer], loss, colours)
        for ax in row:
            style.positive_log(ax, mine.value.to_numpy(float))
            if _moved(audit, sweep, probe, quantity):
                style.grey(ax)
        if mine.empty:
            for ax in row:
                ax.text(0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", color=style.GREY)
    for ax, optimizer in zip(axes[0], optimizers):
        ax.set_title(optimizer_name(optimizer))
    for ax in axes[-1]:
        ax.set_xlabel(loss_label)
    if len(probes):
        axes[0][0].invert_xaxis()  # training goes from left to right; the x axes are shared
    style.legend(figure, style.batch_legend(sweep.runs.batch_size.dropna()), columns=12, title="batch size")
    return figure


def _at_losses(probes: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    """The rows with a place on the axis, the column that gives it, and the axis' label. Files from before the full training loss
    was stored have that of the probed subset alone. A checkpoint that lies far below its loss level is none of that loss."""
    column, label = "train_loss", "training loss (nat)"
    if not np.isfinite(probes.train_loss.astype(float)).any() and "subset_loss" in probes:
        column, label = "subset_loss", "training loss on the probed subset (nat)"
    probes = probes[probes.study.astype(bool)]
    loss = probes[column].astype(float)
    level = pd.to_numeric(probes.checkpoint.str.extract(r"^loss-([0-9.eE+-]+)$")[0], errors="coerce")
    return probes[np.isfinite(loss) & ~(loss < OVERSHOT * level)], column, label


def _loss_lines(ax: Axes, rows: pd.DataFrame, loss: str, colours: style.Colours) -> None:
    """One line per run; bars are a value's own interval or residual, none where the value is a search's lower bound."""
    for (size, _), run in rows.groupby(["batch_size", "run_id"]):
        run = run.sort_values(loss)
        x, y = (
            run[loss].to_numpy(float),
            run.value.where(run.status == "ok").to_numpy(float),
        )  # the line breaks where a value is bad
        own = np.where(run.uncertainty_kind.isin(["none", "lower_bound"]), np.nan, run.uncertainty.astype(float))
        low = np.where(np.isfinite(run.ci_low.astype(float)), run.ci_low.astype(float), y - own)
        high = np.where(np.isfinite(run.ci_high.astype(float)), run.ci_high.astype(float), y + own)
        ax.errorbar(x, y, [np.maximum(y - low, 0), np.maximum(high - y, 0)], color=colours[size], marker="o", markersize=3.5,
                    linewidth=1, elinewidth=0.7, alpha=0.85)  # fmt: skip
        bad = run[run.status != "ok"]
        draw_hollow(ax, bad[loss], np.where(bad.value > 0, bad.value, np.nan), colours[size], "o")
