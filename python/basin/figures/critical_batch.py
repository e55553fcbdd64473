"""Critical batch sizes: updates to the target against batch size with the fitted law, and next to it what noise scales and branches say
along training."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.arms import plain_runs
from ..analysis.critical_batch import CriticalBatch
from ..analysis.matched import comparable
from ..analysis.names import optimizers_of
from ..reader.sweep import Sweep
from . import style

# By quantity and definition: others give numbers of these names for other sets.
SCALES = {("b_simple_finite", "noise-scale-finite"): "B_simple (finite set)",
          ("b_hessian", "noise-scale-hessian-population"): "B_hessian"}  # fmt: skip
# What each is the ratio of. Over runs it is that of the sums: a mean of ratios is that of the run whose gradient is smallest.
RATIOS = {"b_simple_finite": ("tr_sigma_finite", "g2_finite"), "b_hessian": ("tr_h_sigma", "g_h_g")}


def noise_scales(sweep: Sweep, optimizer: str) -> pd.DataFrame:
    """checkpoint, train_loss, quantity, value, uncertainty, batch_size, and `above` and `below` of the ratio that it is (NaN where they
    weren't measured) of every resolved noise scale, as the study has it measured, of the runs of S(B): those to the target, of plain
    settings."""
    runs = plain_runs(sweep)
    runs = runs[(runs.optimizer == optimizer) & (runs.protocol == "B") & comparable(runs)][["run_id", "batch_size"]]
    probes = sweep.probes.merge(runs, on="run_id", suffixes=("", "_of_run"))
    known = [pair in SCALES for pair in zip(probes.quantity, probes.definition)]
    there = probes.study.astype(bool) & ~probes.checkpoint.str.contains("@")
    key = ["run_id", "checkpoint", "definition", "quantity"]
    values = probes[there].drop_duplicates(key).set_index(key).value
    probes = probes[np.array(known, bool) & there & (probes.status == "ok") & (probes.value > 0)]
    probes = probes.drop_duplicates(key)  # several probes may give the same number
    for side, part in (("above", 0), ("below", 1)):
        parts = [(*place, RATIOS[quantity][part]) for *place, quantity in probes[key].itertuples(index=False)]
        probes[side] = values.reindex(pd.MultiIndex.from_tuples(parts, names=key)).to_numpy()
    columns = ["checkpoint", "train_loss", "quantity", "value", "uncertainty", "batch_size", "above", "below"]
    return probes[columns].sort_values("train_loss")


def figure(sweep: Sweep, laws: dict[str, CriticalBatch], branches: pd.DataFrame | None = None) -> Figure:
    """`laws` by optimiser. `branches`: one row per optimiser and branch point, with train_loss, batch (critical), low, high and bound."""
    optimizers = [name for name in optimizers_of(sweep.runs, sweep.names) if name in laws]
    picture, axes = style.panels(1, 2, 5.4, 4.0)
    left, right = axes[0]
    for name in optimizers:
        _updates(
            left,
            laws[name],
            style.colour(name, sweep.names),
            style.marker(name, sweep.names),
            sweep.names.label("optimizers", name),
        )
        _along(right, sweep, name, laws[name], branches)
    sizes = np.concatenate([laws[name].sizes.batch for name in optimizers])
    style.batch_axis(left, sizes)
    if any((laws[name].sizes.status == "ok").any() for name in optimizers):
        left.set_yscale("log")
        style.plain_log(left.yaxis)
    left.set_ylabel("updates to the target, at the best rate")
    left.set_title("bars: standard error; lines: S_min (1 + B_crit (1/B − 1/N))", fontsize=8.5)
    left.legend(fontsize=8)
    if right.has_data():
        right.set_xscale("log")
        right.set_yscale("log")
        right.invert_xaxis()
        style.few_logs(right.xaxis)
        style.plain_log(right.yaxis)
    right.set_xlabel("training loss, falling")
    right.set_ylabel("critical batch size, noise scale (examples)")
    right.set_title("band and bars of branches: 95 %; bars of scales: standard error; arrows: bounds", fontsize=8.5)
    if right.get_legend_handles_labels()[0]:
        right.legend(fontsize=7.5)
    return picture


def _updates(ax: Axes, law: CriticalBatch, colour: str, marker: str, label: str) -> None:
    good = law.sizes[law.sizes.status == "ok"]
    value = np.exp(good.log_updates)
    bars = np.stack([value - np.exp(good.log_updates - good.error), np.exp(good.log_updates + good.error) - value])
    open_text = {
        "open_above": f"B_crit ≥ {law.bound:,.0f}",
        "open_below": f"B_crit ≤ {law.bound:,.0f}",
        "few_sizes": "too few sizes",
    }
    said = open_text.get(law.status, f"B_crit {law.batch:,.0f} [{law.low:,.0f}, {law.high:,.0f}]")
    ax.errorbar(good.batch, value, yerr=bars, color=colour, marker=marker, linestyle="", markersize=5, label=f"{label}: {said}")
    if np.isfinite(law.updates) and len(good):
        fine = np.geomspace(good.batch.min(), good.batch.max(), 200)
        ax.plot(fine, law.curve(fine), color=colour, linewidth=1, linestyle="-" if law.status == "ok" else ":")


def _along(ax: Axes, sweep: Sweep, name: str, law: CriticalBatch, branches: pd.DataFrame | None) -> None:
    colour, label = style.colour(name, sweep.names), sweep.names.label("optimizers", name)
    scales = noise_scales(sweep, name)
    for ((quantity, _), text), marker in zip(SCALES.items(), ("o", "s")):
        mine = scales[scales.quantity == quantity]
        if len(mine):
            ax.errorbar(mine.train_loss, mine.value, yerr=mine.uncertainty.fillna(0), color=colour, marker=marker, linestyle="",
                        markersize=3.5, markerfacecolor="white", elinewidth=0.7, label=f"{label}: {text}")  # fmt: skip
    if law.status == "ok":
        ax.axhline(law.batch, color=colour, linewidth=1)
        ax.axhspan(law.low, law.high, color=colour, alpha=0.12, linewidth=0)
    if branches is None:
        return
    mine = branches[branches.optimizer == name]
    there = mine[mine.batch.notna()]
    if len(there):
        bars = np.stack([(there.batch - there.low).fillna(0), (there.high - there.batch).fillna(0)])
        ax.errorbar(there.train_loss, there.batch, yerr=np.where(np.isfinite(bars), bars, 0), color=colour, marker="D", linestyle="-",
                    linewidth=0.8, markersize=4, label=f"{label}: branched")  # fmt: skip
        endless = there[np.isinf(there.high)]
        if len(endless):
            ax.errorbar(endless.train_loss, endless.batch, yerr=0.5 * endless.batch, lolims=True, color=colour, linestyle="",
                        elinewidth=0.8)  # fmt: skip
    above = mine[mine.batch.isna() & mine.bound.notna()]
    ax.plot(above.train_loss, above.bound, color=colour, marker="^", linestyle="", markersize=5)
