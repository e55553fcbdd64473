"""The figures of a sweep. Each takes a Sweep and returns a Figure; what is missing or not comparable is drawn hollow."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..analysis import stats
from ..analysis.audit_verdict import Audit, load_audit
from ..analysis.matched import OVERSHOT, cell, comparable, fixed_budget, reference_of, settings
from ..pages.report_text import optimizer_name
from ..reader.layers import NONE
from ..reader.sweep import Sweep
from . import style
from .marks import Cell, accuracy_cells, measure_cells, numbers

HOLLOW = "not comparable, not converged or not resolved"
ONE_SEED = "one seed: bar from that run alone"
PROTOCOL_TITLES = {
    "A-epochs": "A: the same number of epochs",
    "A-updates": "A: the same number of updates",
    "B": "B: stopped at the same training loss",
}

# (probe, quantity in the long table, which keeps vectors whole, its column in `runs`, axis label)
MEASURES = [
    ("top_eigenvalues", "lambda", "lambda_1", "λ₁ (loss / weight²)"),
    ("sharpness_keskar", "phi_full_1e-3", "phi_full_1e-3", "φ, full space, ε = 1e-3 (%)"),
    ("noise_scale", "b_simple", "b_simple", "B_simple (examples)"),
    ("top_eigenvalues", "lambda_1_w2", "lambda_1_w2", "λ₁ ‖w‖² (loss)"),
    ("sharpness_keskar", "phi_relative_1e-3", "phi_relative_1e-3", "φ, box relative to |w| (%)"),
    ("preconditioned_curvature", "rate_lambda_1", "rate_lambda_1", "η λ₁(P⁻¹H)"),
]


def protocols_of(runs: pd.DataFrame) -> list[str]:
    return [p for p in ("A-epochs", "A-updates", "B") if (runs.protocol == p).any()]


def accuracy_against_batch(sweep: Sweep):
    """Test accuracy, mean and standard error over seeds, a panel a protocol; each optimiser's own small-batch reference beside it."""
    runs, found = sweep.runs, protocols_of(sweep.runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 3.6, sharey=True)
    optimizers = style.optimizers_of(runs)
    for ax, protocol in zip(axes[0], found):
        for optimizer in optimizers:
            _reference_line(ax, runs, protocol, optimizer)
            mine = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer)]
            draw_cells(ax, accuracy_cells(mine), optimizer, optimizers)
        ax.set_title(PROTOCOL_TITLES[protocol])
        style.batch_axis(ax, runs.batch_size.dropna())
    axes[0][0].set_ylabel("test accuracy (%)")
    legend(figure, style.optimizer_legend(optimizers, HOLLOW, ONE_SEED, "each optimiser's small-batch reference"), columns=3)
    return figure


def _reference_line(ax, runs: pd.DataFrame, protocol: str, optimizer: str) -> None:
    """The mean that this optimiser's batch sizes are compared with in the text."""
    reference = reference_of(runs, optimizer)
    if reference is None:
        return
    base = cell(runs, protocol, reference.optimizer, reference.batch_size)
    mean, _, n = stats.mean_and_error(100 * numbers(base[comparable(base)], "test_acc"))
    if n and settings(base) <= 1:
        ax.axhline(mean, color=style.colour(optimizer), linewidth=0.9, linestyle=(0, (5, 4)), alpha=0.6)


def draw_cells(ax, found: list[Cell], optimizer: str, optimizers: list[str]) -> None:
    """Filled: a mean over seeds; half filled: one seed; hollow: not to be compared; a cross on the axis: no value at all. The line
    breaks where a batch size has no single mark to compare."""
    colour, marker = style.colour(optimizer), style.marker(optimizer)
    x_of = {c.size: c.size * style.dodge(optimizer, optimizers) for c in found}
    ax.plot([x_of[c.size] for c in found], [c.marks[0].value if c.joined else np.nan for c in found], color=colour, zorder=2)
    for kind, fill in (("mean", "full"), ("one", "left")):
        marks = [(x_of[c.size], m) for c in found for m in c.marks if m.kind == kind]
        if marks:
            y = np.array([m.value for _, m in marks])
            bars = np.array([[m.value - m.low, m.high - m.value] for _, m in marks]).T
            ax.errorbar([x for x, _ in marks], y, bars, color=colour, marker=marker, markersize=5.5, fillstyle=fill, linestyle="",
                        markerfacecoloralt="white", capsize=2.5 if kind == "mean" else 0, label=kind)  # fmt: skip
    hollow = [(x_of[c.size], m.value) for c in found for m in c.marks if m.kind == "hollow"]
    hollow += [(x_of[c.size], np.nan) for c in found for _ in range(c.crosses)]
    _hollow(ax, [x for x, _ in hollow], [y for _, y in hollow], colour, marker)


def _hollow(ax, x, y, colour, marker: str) -> None:
    x, y = np.asarray(x, float), np.asarray(y, float)
    there = np.isfinite(y)
    ax.plot(x[there], y[there], linestyle="", marker=marker, markersize=5.5, markerfacecolor="none", color=colour)
    missing = x[~there & np.isfinite(x)]
    if not missing.size:
        return  # an empty artist outside the axes' clip has no place, and the layout fails over it
    ax.plot(missing, np.full(missing.size, 0.02), linestyle="", marker="x", markersize=5, color=colour,
            transform=ax.get_xaxis_transform(), clip_on=False)  # fmt: skip


def loss_against_accuracy(sweep: Sweep):
    """One mark a run: a large batch that is merely undertrained lies on the small batches' line, further up the loss."""
    runs, found = sweep.runs, protocols_of(sweep.runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 3.6, sharey=True)
    colours = style.batch_colours(runs.batch_size.dropna())
    for ax, protocol in zip(axes[0], found):
        part = runs[(runs.protocol == protocol)]
        good = comparable(part)
        for size, optimizer in part[["batch_size", "optimizer"]].drop_duplicates().dropna().itertuples(index=False):
            inside = (part.batch_size == size) & (part.optimizer == optimizer)
            for filled in (True, False):
                some = part[inside & (good == filled)]
                ax.plot(numbers(some, "train_loss"), 100 * numbers(some, "test_acc"), linestyle="", marker=style.marker(optimizer),
                        color=colours[size], markerfacecolor=colours[size] if filled else "none", markersize=5.5, alpha=0.9)  # fmt: skip
        lost = int((~np.isfinite(numbers(part, "train_loss"))).sum())
        if lost:
            ax.text(0.98, 0.97, f"{lost} without a final loss", transform=ax.transAxes, ha="right", va="top", color=style.GREY, fontsize=8.5)
        _loss_axis(ax, part.train_loss if "train_loss" in part else [])
        ax.set_title(PROTOCOL_TITLES[protocol])
    axes[0][0].set_ylabel("test accuracy (%)")
    shapes = style.optimizer_legend(style.optimizers_of(runs))
    for handle in shapes:
        handle.set(color="#444444", linestyle="")
    legend(figure, shapes + style.batch_legend(runs.batch_size.dropna()), columns=12)
    return figure


def _loss_axis(ax, values) -> None:
    ax.set_xlabel("training loss (nat)")
    finite = np.asarray([v for v in values if np.isfinite(v) and v > 0])
    if finite.size and finite.max() / finite.min() > 5:
        ax.set_xscale("log")
        style.plain_log(ax.xaxis)


def sharpness_against_batch(sweep: Sweep):
    """λ₁, φ and B_simple at the end of protocol B, where training losses match, their scale-aware companions below, and beside those
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
            draw_cells(ax, measure_cells(sweep, runs[runs.optimizer == optimizer], probe, quantity, column), optimizer, optimizers)
        style.batch_axis(ax, sweep.runs.batch_size.dropna())
        positive_log(ax, numbers(runs, column))
        if _moved(audit, sweep, probe, quantity):
            style.grey(ax)
    legend(figure, style.optimizer_legend(optimizers, HOLLOW, ONE_SEED), columns=5)
    return figure


def _moved(audit: Audit, sweep: Sweep, probe: str, quantity: str) -> bool:
    rows = sweep.probes
    known = rows.definition[(rows.probe == probe) & (rows.quantity == quantity)].unique()
    return any(audit.moved(definition, quantity) for definition in known)


def positive_log(ax, values) -> None:
    if (values[np.isfinite(values)] > 0).any():
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)


def sharpness_against_loss(sweep: Sweep, measures=tuple(MEASURES[:3])):
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
            positive_log(ax, mine.value.to_numpy(float))
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
    legend(figure, style.batch_legend(sweep.runs.batch_size.dropna()), columns=12, title="batch size")
    return figure


def _at_losses(probes: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    """The rows with a place on the axis, the column that gives it, and the axis' label. Files from before the full training loss was
    stored beside the probed subset's have the latter alone. A checkpoint that lies far below its loss level is none of that loss."""
    column, label = "train_loss", "training loss (nat)"
    if not np.isfinite(probes.train_loss.astype(float)).any() and "subset_loss" in probes:
        column, label = "subset_loss", "training loss on the probed subset (nat)"
    probes = probes[probes.study.astype(bool)]
    loss = probes[column].astype(float)
    level = pd.to_numeric(probes.checkpoint.str.extract(r"^loss-([0-9.eE+-]+)$")[0], errors="coerce")
    return probes[np.isfinite(loss) & ~(loss < OVERSHOT * level)], column, label


def _loss_lines(ax, rows: pd.DataFrame, loss: str, colours) -> None:
    """One line a run; bars are a value's own interval or residual, none where the value is a search's lower bound."""
    for (size, _), run in rows.groupby(["batch_size", "run_id"]):
        run = run.sort_values(loss)
        x, y = run[loss].to_numpy(float), run.value.where(run.status == "ok").to_numpy(float)  # the line breaks where a value is bad
        own = np.where(run.uncertainty_kind.isin(["none", "lower_bound"]), np.nan, run.uncertainty.astype(float))
        low = np.where(np.isfinite(run.ci_low.astype(float)), run.ci_low.astype(float), y - own)
        high = np.where(np.isfinite(run.ci_high.astype(float)), run.ci_high.astype(float), y + own)
        ax.errorbar(x, y, [np.maximum(y - low, 0), np.maximum(high - y, 0)], color=colours[size], marker="o", markersize=3.5,
                    linewidth=1, elinewidth=0.7, alpha=0.85)  # fmt: skip
        bad = run[run.status != "ok"]
        _hollow(ax, bad[loss], np.where(bad.value > 0, bad.value, np.nan), colours[size], "o")


def trust_ratios(sweep: Sweep):
    """Median over recorded updates and seeds, with the middle 80 %, by parameter; a panel a layer-wise optimiser. Cells of several settings are
    left out."""
    runs = sweep.runs
    protocol = "B" if (runs.protocol == "B").any() else fixed_budget(runs)
    found, recorded = {}, False
    for run in runs[runs.protocol == protocol].itertuples():
        layers = sweep.layers(run.run_id)
        recorded |= layers is not None
        if settings(cell(runs, protocol, run.optimizer, run.batch_size)) > 1:
            continue  # never averaged
        if layers is not None and layers.has_trust_ratios:
            found.setdefault(run.optimizer, {}).setdefault(float(run.batch_size), []).append(layers.trust_ratio)
    figure, axes = style.panels(1, max(1, len(found)), 5.4, 3.8)
    if not found:
        style.nothing(axes[0][0], "no optimiser of this sweep has trust ratios" if recorded else NONE)
        return figure
    colours = style.batch_colours(runs.batch_size.dropna())
    for ax, optimizer in zip(axes[0], sorted(found, key=style.optimizers_of(runs).index)):
        _trust_panel(ax, found[optimizer], colours)
        ax.set_title(f"{optimizer_name(optimizer)}, {PROTOCOL_TITLES.get(protocol, protocol)}")
    axes[0][0].set_ylabel("trust ratio (factor on the step)")
    legend(figure, style.batch_legend(runs.batch_size.dropna()), columns=12, title="batch size")
    return figure


def _trust_panel(ax, by_size: dict, colours) -> None:
    names = [c for c in next(iter(by_size.values()))[0].columns if any(f[c].notna().any() for fs in by_size.values() for f in fs if c in f)]
    sizes = sorted(by_size)
    for i, size in enumerate(sizes):
        pooled = pd.concat(by_size[size])
        if not names:
            continue
        low, middle, high = (pooled[names].quantile(q).to_numpy(float) for q in (0.1, 0.5, 0.9))
        x = np.arange(len(names)) + 0.6 * ((i + 0.5) / len(sizes) - 0.5)
        ax.errorbar(x, middle, [middle - low, high - middle], color=colours[size], marker="o", markersize=4.5, linestyle="", capsize=2)
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=8.5)
    ax.grid(axis="x", visible=False)
    ax.set_yscale("log")
    style.plain_log(ax.yaxis)


def learning_curves(sweep: Sweep):
    """Batch loss against image gradients computed (cost), one run a batch size (its smallest seed), running mean."""
    runs, optimizers, found = sweep.runs, style.optimizers_of(sweep.runs), protocols_of(sweep.runs)
    figure, axes = style.panels(max(1, len(found)), max(1, len(optimizers)), 3.7, 2.7, sharex="row", sharey="row")
    colours = style.batch_colours(runs.batch_size.dropna())
    for row, protocol in zip(axes, found):
        for ax, optimizer in zip(row, optimizers):
            part = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer)]
            for (size, _), same in part.groupby(["batch_size", part.config_id.fillna("")]):
                _curve(ax, sweep, same.sort_values("seed").iloc[0], colours[float(size)])
            ax.set_title(f"{optimizer_name(optimizer)}, {protocol}")
            ax.set_xlabel("image gradients computed")
        style.count_axis(row[0])
        row[0].set_ylabel("training loss (nat)")
        _loss_limits(row[0], sweep, runs[runs.protocol == protocol])
    legend(figure, style.batch_legend(runs.batch_size.dropna()), columns=12, title="batch size")
    return figure


def _curve(ax, sweep: Sweep, run, colour) -> None:
    """Dashed where the run is not comparable; a point where it has one update."""
    curve = sweep.curve(run.run_id)
    if curve.empty or "gradients" not in curve:
        return
    loss = curve.loss.where(np.isfinite(curve.loss))
    smooth = loss.rolling(max(1, len(loss) // 60), min_periods=1, center=True).mean()
    good = bool(comparable(pd.DataFrame([run])).iloc[0])
    ax.plot(curve.gradients, smooth, color=colour, linestyle="-" if good else (0, (2, 1.5)), marker="o" if len(curve) < 6 else "",
            markersize=3.5)  # fmt: skip


def _loss_limits(ax, sweep: Sweep, runs: pd.DataFrame) -> None:
    """A diverged run must not squeeze the others: at most half above the largest loss at the start."""
    starts = [c.loss.iloc[0] for c in (sweep.curve(r) for r in runs.run_id[:40]) if len(c) and np.isfinite(c.loss.iloc[0])]
    if starts:
        ax.set_ylim(0, min(ax.get_ylim()[1], 1.5 * max(starts)))


def legend(figure, handles, columns: int = 6, title: str | None = None) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)), title=title, title_fontsize=9)
