"""What a figure draws of one cell, the mean over comparable runs or why there is none, and the drawing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ..analysis import stats
from ..analysis.arms import ARM, arms_of
from ..analysis.matched import comparable
from ..analysis.noise_scale import pooled_noise_scale
from ..reader.names import Names
from ..reader.probe import NO_ERROR_BAR
from ..reader.sweep import Sweep
from . import style

HOLLOW = "not comparable, not converged or not resolved"
ONE_SEED = "one seed: bar from that run alone"
CROSS = "no value, or none above 0"
MOST_ARMS = 6  # beyond the plain settings; more have neither marks of their own nor room in a legend
Drawn = set[tuple[str, str, str]]  # optimiser, label of the arm and kind of mark: what a legend lists


@dataclass(frozen=True)
class Mark:
    """`kind`: "mean" over at least two seeds, "one" seed with the run's own uncertainty, or "hollow": there, but not to be used."""

    value: float
    low: float = np.nan
    high: float = np.nan
    kind: str = "mean"


@dataclass
class Cell:
    """The marks of one batch size. `joined`: a line may run through the first of them, a mean over seeds."""

    size: float
    marks: list[Mark]
    crosses: int = 0  # runs that have no value to draw
    joined: bool = False


def numbers(runs: pd.DataFrame, column: str) -> np.ndarray:
    if column not in runs:
        return np.full(len(runs), np.nan)
    return pd.to_numeric(runs[column], errors="coerce").to_numpy(float)


def train_examples(runs: pd.DataFrame) -> float:
    """The training set's size; NaN where it is unknown, or runs differ in it."""
    known = np.unique(numbers(runs, "dataset.n_train")[np.isfinite(numbers(runs, "dataset.n_train"))])
    return float(known[0]) if known.size == 1 else np.nan


def cells(
    runs: pd.DataFrame,
    good: pd.Series,
    values: np.ndarray,
    estimate: Callable[[pd.DataFrame], Mark],
    about: pd.Series | None = None,
) -> list[Cell]:
    """One entry per batch size. `good` runs of one setting are put together by `estimate`; runs of several settings, or measured in several
    ways (`about`, a text per run), never are: each lot gets a mark of its own and no line. Other runs are hollow or crosses."""
    runs = runs.assign(_value=values, _good=good, _about="" if about is None else about)
    found = []
    for size, cell in runs.groupby("batch_size"):
        cell = cell.assign(config_id=cell.config_id.fillna(""))
        lots = [lot for _, lot in cell[cell._good].groupby(["config_id", "_about"])]
        rest = cell[~cell._good]._value.to_numpy(float)
        marks = [estimate(lot) for lot in lots] + [Mark(v, kind="hollow") for v in rest if np.isfinite(v)]
        drawn = [m for m in marks if np.isfinite(m.value)]
        crosses = len(marks) - len(drawn) + int((~np.isfinite(rest)).sum())
        found.append(Cell(float(size), drawn, crosses, len(lots) == 1 and bool(drawn) and drawn[0].kind == "mean"))
    return found


def accuracy_cells(runs: pd.DataFrame) -> list[Cell]:
    """Test accuracy in per cent. Mean ± standard error over seeds; one seed: ± the standard error from the test images."""
    values = 100 * numbers(runs, "test_acc")

    def estimate(lot: pd.DataFrame) -> Mark:
        mean, error, n = stats.mean_and_error(lot._value)
        if n == 1:
            images = numbers(lot, "dataset.n_test")[0]
            error = 100 * stats.image_error(mean / 100, int(images)) if images > 0 else np.nan
        return Mark(mean, mean - error, mean + error, "mean" if n > 1 else "one")

    return cells(runs, comparable(runs) & np.isfinite(values), values, estimate)


def measure_cells(sweep: Sweep, runs: pd.DataFrame, probe: str, quantity: str, column: str) -> list[Cell]:
    """A measure at the end of training, of the runs that were probed. Mean and standard error over seeds, or the mean of the runs'
    own uncertainties where that is greater; one seed: its own. A search's lower bound has no error bar."""
    status = runs[f"{column}.status"].fillna("") if f"{column}.status" in runs else pd.Series("", index=runs.index)
    runs, status = runs[status != ""], status[status != ""]
    values = numbers(runs, column)
    values = np.where(values > 0, values, np.nan)  # axes are logarithmic
    kinds, about = _what_was_measured(sweep, runs, probe, quantity)
    ratio = sweep.names.ratio(quantity)
    if ratio:
        above, below = (column.removesuffix(quantity) + name for name in ratio)
        has = np.isfinite(numbers(runs, above)) & np.isfinite(numbers(runs, below))
        return cells(runs, comparable(runs) & has, values, lambda lot: _ratio_mark(lot, column, above, below), about)

    def estimate(lot: pd.DataFrame) -> Mark:
        own = numbers(lot, f"{column}.uncertainty") if kinds - NO_ERROR_BAR else []
        mean, error, n = stats.mean_and_larger_error(lot._value, own)
        return Mark(mean, mean - error, mean + error, "mean" if n > 1 else "one")

    return cells(runs, comparable(runs) & (status == "ok") & np.isfinite(values), values, estimate, about)


def _ratio_mark(lot: pd.DataFrame, column: str, above: str, below: str) -> Mark:
    if len(lot) == 1:
        low, high = numbers(lot, f"{column}.ci_low")[0], numbers(lot, f"{column}.ci_high")[0]
        return Mark(lot._value.iloc[0], low, high, "one" if lot[f"{column}.status"].iloc[0] == "ok" else "hollow")
    noise = pooled_noise_scale(numbers(lot, above), numbers(lot, below))
    return Mark(noise.value, noise.low, noise.high, "mean" if noise.resolved else "hollow")


def _what_was_measured(sweep: Sweep, runs: pd.DataFrame, probe: str, quantity: str) -> tuple[set, np.ndarray]:
    """The kinds of uncertainty, and for each run a text of definition, examples and subset: what differs in it is never pooled."""
    rows = sweep.probes
    rows = rows[(rows.probe == probe) & (rows.checkpoint == "end") & (rows.quantity == quantity) & rows.study.astype(bool)]
    keys = [k for k in ("definition", "n_examples", "subset_hash") if k in rows]
    told = {run_id: " ".join(str(v) for v in one[keys].iloc[0]) for run_id, one in rows.groupby("run_id")}
    return set(rows.uncertainty_kind), np.array([told.get(r, "") for r in runs.run_id], dtype=object)


def draw_arms(
    ax: Axes,
    runs: pd.DataFrame,
    cells_of: Callable[[pd.DataFrame], list[Cell]],
    optimizer: str,
    optimizers: list[str],
    arms: list[str],
    names: Names,
) -> Drawn:
    """One optimiser's runs, with labels of arms: each arm by marks and a line of its own. `arms`: all labels of the figure."""
    drawn: Drawn = set()
    for place, arm in enumerate(arms):
        mine = runs[runs[ARM] == arm]
        if len(mine):
            drawn |= {(optimizer, arm, kind) for kind in draw_cells(ax, cells_of(mine), optimizer, optimizers, names, place)}
    return drawn


def few_arms(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str], str]:
    """The runs to draw, the labels of their arms, and words for the legend's title where arms are left out: with more than MOST_ARMS
    the plain settings alone are drawn."""
    arms = arms_of(runs)
    if len(arms) - 1 <= MOST_ARMS or arms[0]:
        return runs, arms, ""
    return runs[runs[ARM] == ""], [""], f"plain settings alone: the {len(arms) - 1} arms are in the tables"


def handles_of(drawn: Drawn, optimizers: list[str], arms: list[str], names: Names, reference: str = "") -> list[Line2D]:
    """A legend of what was drawn."""
    seen, with_marks, kinds = ({entry[i] for entry in drawn} for i in range(3))
    words = [text if kind in kinds else "" for kind, text in (("hollow", HOLLOW), ("one", ONE_SEED), ("cross", CROSS))]
    some = [optimizer for optimizer in optimizers if optimizer in seen]
    handles = style.optimizer_legend(some, names, words[0], words[1], reference, words[2])
    return handles + style.arm_legend(arms, with_marks)


def draw_cells(ax: Axes, found: list[Cell], optimizer: str, optimizers: list[str], names: Names, arm: int = 0) -> set[str]:
    """`arm`: the place of its label, 0 for the plain setting. Filled: a mean over seeds; half filled: one seed; hollow: not to be
    compared; a cross on the axis: no value at all. Returns which of "mean", "one", "hollow" and "cross" were drawn. The line joins
    means over seeds, and breaks where a batch size has none or several."""
    colour, marker = style.colour(optimizer, names), style.arm_marker(optimizer, arm, names)
    x_of = {c.size: c.size * style.dodge(optimizer, optimizers, arm) for c in found}
    ax.plot([x_of[c.size] for c in found], [c.marks[0].value if c.joined else np.nan for c in found], color=colour, zorder=2,
            linestyle=style.arm_line(arm))  # fmt: skip
    for kind, fill in (("mean", "full"), ("one", "left")):
        marks = [(x_of[c.size], m) for c in found for m in c.marks if m.kind == kind]
        if marks:
            y = np.array([m.value for _, m in marks])
            bars = np.array([[m.value - m.low, m.high - m.value] for _, m in marks]).T
            ax.errorbar([x for x, _ in marks], y, bars, color=colour, marker=marker, markersize=5.5, fillstyle=fill, linestyle="",
                        markerfacecoloralt="white", capsize=4, label=kind)  # fmt: skip
    hollow = [(x_of[c.size], m.value) for c in found for m in c.marks if m.kind == "hollow"]
    hollow += [(x_of[c.size], np.nan) for c in found for _ in range(c.crosses)]
    draw_hollow(ax, [x for x, _ in hollow], [y for _, y in hollow], colour, marker)
    return {m.kind for c in found for m in c.marks} | ({"cross"} if any(c.crosses for c in found) else set())


def draw_hollow(ax: Axes, x: ArrayLike, y: ArrayLike, colour: Any, marker: str) -> None:
    x, y = np.asarray(x, float), np.asarray(y, float)
    there = np.isfinite(y)
    ax.plot(x[there], y[there], linestyle="", marker=marker, markersize=5.5, markerfacecolor="none", color=colour)
    missing = x[~there & np.isfinite(x)]
    if not missing.size:
        return  # an empty artist outside the axes' clip has no place, and the layout fails over it
    ax.plot(missing, np.full(missing.size, 0.04), linestyle="", marker="x", markersize=5, color=colour,
            transform=ax.get_xaxis_transform())  # fmt: skip
