"""Curvature, sharpness and noise of a sweep: against the batch size at the end, and against the training loss on the way."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.arms import ARM, with_arms
from ..analysis.audit_verdict import Audit, load_audit
from ..analysis.matched import OVERSHOT
from ..analysis.names import optimizers_of
from ..reader.names import FINITE
from ..reader.sweep import Sweep
from . import style
from .marks import (
    CROSS,
    HOLLOW,
    Cell,
    Drawn,
    draw_arms,
    draw_hollow,
    few_arms,
    handles_of,
    measure_cells,
    numbers,
    train_examples,
)

BARS = "bars: ± standard error over seeds, or the value's own residual or error where greater; of a ratio the 95 % interval"
OWN_BARS = "a line or mark per run; bars: the residual or 95 % interval of each value (a search, as of φ, gives none)"
TITLES = {"rate_lambda_1": "learning rate times the largest eigenvalue under the preconditioner"}  # files: "the largest of them"


def sharpness_against_batch(sweep: Sweep) -> Figure | None:
    """The measures of sharpness and noise that the sweep has at the end of protocol B, where training losses match, and behind them their
    scale-aware companions. η λ₁(P⁻¹H) is a stability number for SGD (limit in docs/probes.md), a gauge for LARS and LAMB."""
    runs, names = with_arms(sweep), sweep.names
    runs, arms, left_out = few_arms(runs[runs.protocol == "B"])
    measured = [m for m in finite_first(names.measures, runs).itertuples() if _has_values(runs, _column(m))]
    optimizers = optimizers_of(sweep.runs, names)
    if not measured:
        return None
    figure, axes = style.grid(len(measured), 3, 4.0, 3.0)
    audit, drawn = load_audit(sweep), Drawn()
    for ax, measure in zip(axes, measured):
        ax.set_ylabel(style.up(measure.label, 2.5))
        ax.set_title(_title(sweep, measure), fontsize=8.5)
        for optimizer in optimizers:
            mine = runs[runs.optimizer == optimizer]
            drawn |= draw_arms(ax, mine, _cells_of(sweep, measure), optimizer, optimizers, arms, names)
        style.batch_axis(ax, sweep.runs.batch_size.dropna(), train_examples(sweep.runs))
        style.positive_log(ax, numbers(runs, _column(measure)))
        if _moved(audit, sweep, measure.probe, measure.quantity):
            style.grey(ax)
    style.legend(figure, handles_of(drawn, optimizers, arms, names), title=style.sentence(BARS, left_out))
    return figure


def _title(sweep: Sweep, measure: Any) -> str:
    """What it is, in words; in two lines where they are long."""
    words = TITLES.get(measure.column) or str(sweep.about(_column(measure)).get("long_name", measure.column))
    words = words.replace("eps = ", "ε\u00a0=\u00a0")  # is not broken
    return textwrap.fill(words[:1].upper() + words[1:], 46)


def _cells_of(sweep: Sweep, measure: Any) -> Callable[[pd.DataFrame], list[Cell]]:
    return lambda runs: measure_cells(sweep, runs, measure.probe, measure.quantity, _column(measure))


def finite_first(measures: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The measures, a ratio over an unlimited population replaced by that over the training set as it is where the sweep has the latter
    resolved: it is exact where all examples were measured, and what training draws from."""
    rows = []
    for m in measures.to_dict("records"):
        column = f"{m['column']}{FINITE}"
        has = any(c.endswith(f".{m['probe']}.{column}.status") and (runs[c] == "ok").any() for c in runs)
        if has:
            words, bracket, unit = m["label"].partition(" (")
            m |= {"quantity": f"{m['quantity']}{FINITE}", "column": column, "label": f"{words}, finite set{bracket}{unit}"}
        rows.append(m)
    return pd.DataFrame(rows, columns=measures.columns)


def _column(measure: Any) -> str:
    return f"probe.end.{measure.probe}.{measure.column}"


def _has_values(runs: pd.DataFrame, column: str) -> bool:
    """Good ones or not."""
    return f"{column}.status" in runs and bool((runs[f"{column}.status"].fillna("") != "").any())


def _moved(audit: Audit, sweep: Sweep, probe: str, quantity: str) -> bool:
    rows = sweep.probes
    known = rows.definition[(rows.probe == probe) & (rows.quantity == quantity)].unique()
    return any(audit.moved(definition, quantity) for definition in known)


def sharpness_against_loss(sweep: Sweep, measures: pd.DataFrame | None = None) -> Figure | None:
    """These quantities (rows as in `names.measures`; by default those that are nobody's companion) at every probed checkpoint, as far as
    the sweep has them; a column per optimiser: compare at equal loss, that is, vertically. Runs at a fixed budget are shown where none
    trained to a loss."""
    names = sweep.names
    measures = names.measures[~names.measures.companion] if measures is None else measures
    runs, arms, left_out = few_arms(with_arms(sweep))
    measures = finite_first(measures, runs)
    probes, loss, loss_label = _at_losses(
        sweep.probes.merge(runs[["run_id", "optimizer", "batch_size", "protocol", ARM]], on="run_id")
    )
    probes = _runs_to_a_loss(probes[probes["index"] == 0])
    values = {m: probes[(probes.probe == m.probe) & (probes.quantity == m.quantity)] for m in measures.itertuples()}
    values = {m: mine for m, mine in values.items() if len(mine)}
    if not values:
        return None
    shown = pd.concat(list(values.values()))
    optimizers = optimizers_of(shown, names)
    one = len(optimizers) == 1
    figure, axes = style.panels(len(values), len(optimizers), 5.4 if one else 3.7, 2.6, sharey="row", sharex=True)
    colours = style.batch_colours(shown.batch_size, len(optimizers))
    audit = load_audit(sweep)
    for row, (measure, mine) in zip(axes, values.items()):
        row[0].set_ylabel(style.up(measure.label, 2.5))
        for ax, optimizer in zip(row, optimizers):
            _loss_lines(ax, mine[mine.optimizer == optimizer], loss, colours, arms)
        for ax in row:
            good = mine.value.where(mine.status == "ok").astype(float)
            style.positive_log(ax, mine.value.to_numpy(float), signed=bool((good <= 0).any()))
            if _moved(audit, sweep, measure.probe, measure.quantity):
                style.grey(ax)
    for ax, optimizer in zip(axes[0], optimizers if not one else ()):
        ax.set_title(names.label("optimizers", optimizer))
    style.training_axes(axes, shown[loss].astype(float), loss_label)
    handles = style.batch_legend(colours) + style.arm_lines(arms, set(shown[ARM]))
    bad = shown[shown.status != "ok"]
    handles += style.optimizer_legend(
        [], names, HOLLOW if (bad.value > 0).any() else "", cross=CROSS if not (bad.value > 0).all() else ""
    )
    style.legend(figure, handles, title=style.sentence(OWN_BARS, left_out))
    return figure


def _at_losses(probes: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    """The rows with a place on the axis, the column that gives it, and the axis' label. Files from before the full training loss
    was stored have that of the probed subset alone. A checkpoint that lies far below its loss level is none of that loss."""
    column, label = "train_loss", "training loss (nat)"
    if not np.isfinite(probes.train_loss.astype(float)).any() and "subset_loss" in probes:
        column, label = "subset_loss", "training loss on the probed subset (nat)"
    probes = probes[probes.study.astype(bool) & ~probes.checkpoint.str.endswith("@twin")]
    loss = probes[column].astype(float)
    level = pd.to_numeric(probes.checkpoint.str.extract(r"^loss-([0-9.eE+-]+)$")[0], errors="coerce")
    return probes[np.isfinite(loss) & ~(loss < OVERSHOT * level)], column, label


def _runs_to_a_loss(probes: pd.DataFrame) -> pd.DataFrame:
    """Those of protocol B where there are any, so that no setting has two lines; a fixed-budget study has all its runs."""
    to_a_loss = probes.protocol == "B"
    return probes[to_a_loss] if to_a_loss.any() else probes


def _loss_lines(ax: Axes, rows: pd.DataFrame, loss: str, colours: style.Colours, arms: list[str]) -> None:
    """One line per run, dashed by arm; bars are a value's own interval or residual, none where the value is a search's lower bound."""
    for (size, arm, _), run in rows.groupby(["batch_size", ARM, "run_id"]):
        run = run.sort_values(loss)
        x, y = (
            run[loss].to_numpy(float),
            run.value.where(run.status == "ok").to_numpy(float),
        )  # the line breaks where a value is bad
        own = np.where(run.uncertainty_kind.isin(["none", "lower_bound"]), np.nan, run.uncertainty.astype(float))
        low = np.where(np.isfinite(run.ci_low.astype(float)), run.ci_low.astype(float), y - own)
        high = np.where(np.isfinite(run.ci_high.astype(float)), run.ci_high.astype(float), y + own)
        ax.errorbar(x, y, [np.maximum(y - low, 0), np.maximum(high - y, 0)], color=colours[size], marker="o", markersize=2.5,
                    capsize=4, linewidth=1, elinewidth=0.9, alpha=0.85, linestyle=style.arm_line(arms.index(arm)))  # fmt: skip
        bad = run[run.status != "ok"]
        draw_hollow(ax, bad[loss], np.where(bad.value > 0, bad.value, np.nan), colours[size], "o")
