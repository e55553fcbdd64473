"""The figures of a sweep. Each takes a Sweep and returns a Figure; what is missing or not comparable is drawn hollow."""

from __future__ import annotations

import numpy as np
import pandas as pd

from . import stats, style
from .matched import comparable, fixed_budget
from .sweep import Sweep
from .text import optimizer_name

HOLLOW = "not comparable, or not converged"
PROTOCOL_TITLES = {
    "A-epochs": "A: the same number of epochs",
    "A-updates": "A: the same number of updates",
    "B": "B: stopped at the same training loss",
}

# (probe, quantity names in order of preference, axis label)
MEASURES = [
    ("top_eigenvalues", ("lambda_1", "lambda"), "λ₁ (loss / weight²)"),
    ("sharpness_keskar", ("phi_full_1e-3",), "φ, full space, ε = 1e-3 (%)"),
    ("noise_scale", ("b_simple",), "B_simple (examples)"),
    ("top_eigenvalues", ("lambda_1_w2",), "λ₁ ‖w‖² (loss)"),
    ("sharpness_keskar", ("phi_relative_1e-3",), "φ, box relative to |w| (%)"),
]


def protocols_of(runs: pd.DataFrame) -> list[str]:
    return [p for p in ("A-epochs", "A-updates", "B") if (runs.protocol == p).any()]


def accuracy_against_batch(sweep: Sweep):
    """Test accuracy, mean and standard error over seeds, a panel a protocol; the band is the small-batch reference."""
    runs, found = sweep.runs, protocols_of(sweep.runs)
    figure, axes = style.panels(1, max(1, len(found)), 5.0, 3.6, sharey=True)
    for ax, protocol in zip(axes[0], found):
        part = runs[runs.protocol == protocol]
        _reference_band(ax, part)
        _by_optimizer(ax, part, "test_acc", 100)
        ax.set_title(PROTOCOL_TITLES[protocol])
        style.batch_axis(ax, runs.batch_size.dropna())
    axes[0][0].set_ylabel("test accuracy (%)")
    _legend(figure, style.optimizer_legend(style.optimizers_of(runs), HOLLOW, "small-batch reference ± s.e."))
    return figure


def _reference_band(ax, runs: pd.DataFrame) -> None:
    """The smallest batch: SGD's, else the first optimiser's."""
    smallest = runs[runs.batch_size == runs.batch_size.min()]
    chosen = style.optimizers_of(smallest)[:1]
    base = smallest[smallest.optimizer.isin(chosen)]
    mean, error, n = stats.mean_and_error(100 * _numbers(base[comparable(base)], "test_acc"))
    if n:
        error = error if np.isfinite(error) else 0.0
        ax.axhspan(mean - error, mean + error, color=style.GREY, alpha=0.25, linewidth=0)
        ax.axhline(mean, color=style.GREY, linewidth=0.9)


def _by_optimizer(ax, runs: pd.DataFrame, column: str, factor: float = 1.0, status: str | None = None) -> None:
    """Filled: mean and standard error of the comparable runs of a cell; hollow: each other run that has a value; a cross on
    the axis: a run that has none. With `status`, the column of a measure's status, runs that were not probed are left out,
    and a measure that came out negative (B_simple where |G|² is not resolved) is a cross: it has no place on a log axis."""
    optimizers = style.optimizers_of(runs)
    if status is not None and status in runs:
        runs = runs[runs[status].fillna("") != ""].copy()
        runs[column] = np.where(_numbers(runs, column) > 0, _numbers(runs, column), np.nan)
    for optimizer in optimizers:
        mine = runs[runs.optimizer == optimizer]
        good = comparable(mine) & np.isfinite(_numbers(mine, column))
        if status is not None and status in mine:
            good &= mine[status] == "ok"
        x, mean, error = [], [], []
        for size, cell in mine[good].groupby("batch_size"):
            m, e, _ = stats.mean_and_error(factor * _numbers(cell, column))
            x.append(size * style.dodge(optimizer, optimizers))
            mean.append(m)
            error.append(e if np.isfinite(e) else 0.0)
        ax.errorbar(x, mean, error, color=style.colour(optimizer), marker=style.marker(optimizer), markersize=5.5, capsize=2.5)
        rest = mine[~good]
        _hollow(ax, rest.batch_size * style.dodge(optimizer, optimizers), factor * _numbers(rest, column),
                style.colour(optimizer), style.marker(optimizer))  # fmt: skip


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
            cell = (part.batch_size == size) & (part.optimizer == optimizer)
            for filled in (True, False):
                some = part[cell & (good == filled)]
                ax.plot(_numbers(some, "train_loss"), 100 * _numbers(some, "test_acc"), linestyle="", marker=style.marker(optimizer),
                        color=colours[size], markerfacecolor=colours[size] if filled else "none", markersize=5.5, alpha=0.9)  # fmt: skip
        lost = int((~np.isfinite(_numbers(part, "train_loss"))).sum())
        if lost:
            ax.text(0.98, 0.97, f"{lost} without a final loss", transform=ax.transAxes, ha="right", va="top", color=style.GREY, fontsize=8.5)
        _loss_axis(ax, part.train_loss if "train_loss" in part else [])
        ax.set_title(PROTOCOL_TITLES[protocol])
    axes[0][0].set_ylabel("test accuracy (%)")
    shapes = style.optimizer_legend(style.optimizers_of(runs))
    for handle in shapes:
        handle.set(color="#444444", linestyle="")
    _legend(figure, shapes + style.batch_legend(runs.batch_size.dropna()), columns=12)
    return figure


def _loss_axis(ax, values) -> None:
    ax.set_xlabel("training loss (nat)")
    finite = np.asarray([v for v in values if np.isfinite(v) and v > 0])
    if finite.size and finite.max() / finite.min() > 5:
        ax.set_xscale("log")
        style.plain_log(ax.xaxis)


def sharpness_against_batch(sweep: Sweep):
    """λ₁, φ and B_simple at the end of protocol B, where training losses match, and their scale-aware companions below."""
    runs = sweep.runs[sweep.runs.protocol == "B"]
    figure, axes = style.panels(2, 3, 4.0, 3.0)
    for ax, (probe, names, label) in zip(axes.flat, MEASURES):
        column = next((f"probe.end.{probe}.{n}" for n in names if f"probe.end.{probe}.{n}" in runs), None)
        ax.set_ylabel(label)
        if column is None or runs.empty:
            style.nothing(ax, "not measured")
            continue
        _by_optimizer(ax, runs, column, status=f"{column}.status")
        style.batch_axis(ax, sweep.runs.batch_size.dropna())
        _positive_log(ax, _numbers(runs, column))
    axes.flat[-1].axis("off")
    axes.flat[-1].legend(handles=style.optimizer_legend(style.optimizers_of(sweep.runs), HOLLOW), loc="center", fontsize=10)
    return figure


def _positive_log(ax, values) -> None:
    if (values[np.isfinite(values)] > 0).any():
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)


def sharpness_against_loss(sweep: Sweep):
    """The same quantities at every probed checkpoint, a column an optimiser: compare at equal loss, that is, vertically."""
    optimizers = style.optimizers_of(sweep.runs)
    measures = MEASURES[:3]
    figure, axes = style.panels(len(measures), max(1, len(optimizers)), 3.7, 2.6, sharey="row", sharex=True)
    probes = sweep.probes.merge(sweep.runs[["run_id", "optimizer", "batch_size", "protocol"]], on="run_id")
    colours = style.batch_colours(sweep.runs.batch_size.dropna())
    for row, (probe, names, label) in zip(axes, measures):
        base = names[-1]  # the long table keeps vectors whole: entry 0 of "lambda" is lambda_1
        mine = probes[(probes.probe == probe) & probes.quantity.isin([base, names[0]]) & (probes["index"] == 0) & (probes.protocol == "B")]
        row[0].set_ylabel(label)
        for ax, optimizer in zip(row, optimizers):
            _loss_lines(ax, mine[mine.optimizer == optimizer], colours)
        for ax in row:
            _positive_log(ax, mine.value.to_numpy(float))
        if mine.empty:
            for ax in row:
                ax.text(0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", color=style.GREY)
    for ax, optimizer in zip(axes[0], optimizers):
        ax.set_title(optimizer_name(optimizer))
    for ax in axes[-1]:
        ax.set_xlabel("training loss (nat)")
    if len(probes):
        axes[0][0].invert_xaxis()  # training goes from left to right; the x axes are shared
    _legend(figure, style.batch_legend(sweep.runs.batch_size.dropna()), columns=12, title="batch size")
    return figure


def _loss_lines(ax, rows: pd.DataFrame, colours) -> None:
    for (size, _), run in rows.groupby(["batch_size", "run_id"]):
        run = run.sort_values("train_loss")
        ok = run[run.status == "ok"]
        ax.plot(ok.train_loss, ok.value, color=colours[size], marker="o", markersize=3.5, linewidth=1, alpha=0.85)
        bad = run[run.status != "ok"]
        _hollow(ax, bad.train_loss, np.where(bad.value > 0, bad.value, np.nan), colours[size], "o")


def trust_ratios(sweep: Sweep):
    """Median over updates and seeds, with the middle 80 %, by parameter; a panel a layer-wise optimiser."""
    runs = sweep.runs
    protocol = "B" if (runs.protocol == "B").any() else fixed_budget(runs)
    found = {}
    for run in runs[runs.protocol == protocol].itertuples():
        ratios = sweep.trust_ratios(run.run_id)
        if ratios is not None:
            found.setdefault(run.optimizer, {}).setdefault(float(run.batch_size), []).append(ratios)
    figure, axes = style.panels(1, max(1, len(found)), 5.4, 3.8)
    if not found:
        style.nothing(axes[0][0], "no optimiser of this sweep has trust ratios")
        return figure
    colours = style.batch_colours(runs.batch_size.dropna())
    for ax, optimizer in zip(axes[0], sorted(found, key=style.optimizers_of(runs).index)):
        _trust_panel(ax, found[optimizer], colours)
        ax.set_title(f"{optimizer_name(optimizer)}, {PROTOCOL_TITLES.get(protocol, protocol)}")
    axes[0][0].set_ylabel("trust ratio (factor on the step)")
    _legend(figure, style.batch_legend(runs.batch_size.dropna()), columns=12, title="batch size")
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
            for size, cell in part.groupby("batch_size"):
                _curve(ax, sweep, cell.sort_values("seed").iloc[0], colours[float(size)])
            ax.set_title(f"{optimizer_name(optimizer)}, {protocol}")
            ax.set_xlabel("image gradients computed")
        style.count_axis(row[0])
        row[0].set_ylabel("training loss (nat)")
        _loss_limits(row[0], sweep, runs[runs.protocol == protocol])
    _legend(figure, style.batch_legend(runs.batch_size.dropna()), columns=12, title="batch size")
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


def _numbers(runs: pd.DataFrame, column: str) -> np.ndarray:
    if column not in runs:
        return np.full(len(runs), np.nan)
    return pd.to_numeric(runs[column], errors="coerce").to_numpy(float)


def _legend(figure, handles, columns: int = 6, title: str | None = None) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)), title=title, title_fontsize=9)
