"""Test accuracy and test loss along runs, against training loss: whether batch sizes and arms part on the way, or lie on one line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis import student
from ..analysis.arms import ARM, with_arms
from ..analysis.matched import comparable
from ..analysis.names import optimizers_of, protocol_name
from ..reader.sweep import Sweep
from . import style
from .marks import few_arms

POINTS = 60
FEWEST = 3  # evaluations of a run
ROWS = (("test_acc", "test accuracy (%)", 100.0), ("test_loss", "test loss (nat)", 1.0))


@dataclass(frozen=True)
class Course:
    """Mean over seeds at equal training loss, and its 95 % interval (NaN for one seed)."""

    loss: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int


def along_runs(sweep: Sweep) -> Figure | None:
    """A column per optimiser, at matched loss where runs of it were evaluated on the way, else at the fixed budget; of runs that can be
    compared, as a seed that diverged would end the others' course where it turned. None where there are no evaluations on the way."""
    runs = with_arms(sweep)
    runs, arms, left_out = few_arms(runs[comparable(runs)])
    found = next((f for p in ("B", "A-epochs", "A-updates") if (f := _evaluated(sweep, runs[runs.protocol == p]))), {})
    if not found:
        return None
    part = runs[runs.run_id.isin(list(found))]
    optimizers = optimizers_of(part, sweep.names)
    figure, axes = style.panels(len(ROWS), len(optimizers), 4.0, 2.8, sharex=True, sharey="row")
    colours = style.batch_colours(part.batch_size)
    for row, (column, label, scale) in zip(axes, ROWS):
        row[0].set_ylabel(label)
        for ax, optimizer in zip(row, optimizers):
            for (size, arm), cell in part[part.optimizer == optimizer].groupby(["batch_size", ARM]):
                course = course_of([found[r] for r in cell.run_id], column)
                if course is not None:
                    draw_course(ax, course, scale, colours[float(size)], style.arm_line(arms.index(arm)))
    protocol = protocol_name(str(part.protocol.iloc[0]))
    for ax, optimizer in zip(axes[0], optimizers):
        ax.set_title(f"{sweep.names.label('optimizers', optimizer)}, {protocol}")
    style.training_axes(axes, np.concatenate([curve.train_loss.to_numpy(float) for curve in found.values()]))
    handles = style.batch_legend(colours) + style.arm_lines(arms, set(part[ARM]))
    style.legend(figure, handles, title=style.sentence("bands: 95 % interval over seeds", left_out))
    return figure


def _evaluated(sweep: Sweep, runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The evaluations of each run that has several with test images."""
    found = {}
    for run_id in runs.run_id[runs.batch_size.notna()]:
        curve = sweep.curve(run_id, "eval")
        if curve.empty or not {"train_loss", "test_acc", "test_loss"} <= set(curve):
            continue
        curve = curve[np.isfinite(curve.train_loss) & np.isfinite(curve.test_acc)]
        if len(curve) >= FEWEST:
            found[str(run_id)] = curve
    return found


def course_of(curves: list[pd.DataFrame], column: str) -> Course | None:
    """Each run between its evaluations by linear interpolation, at losses that it reached for the first time; the mean where every seed
    has been. None where seeds share no loss."""
    lines = []
    for curve in curves:
        loss = curve.train_loss.to_numpy(float)
        first = loss < np.minimum.accumulate(np.r_[np.inf, loss[:-1]])
        lines.append((loss[first][::-1], curve[column].to_numpy(float)[first][::-1]))
    low, high = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    if not low < high:
        return None
    at = np.geomspace(low, high, POINTS)
    values = np.array([np.interp(at, x, y) for x, y in lines])
    seeds, mean = len(values), values.mean(0)
    half = np.full(POINTS, np.nan)
    if seeds > 1:
        half = student.ppf(0.975, seeds - 1) * values.std(0, ddof=1) / np.sqrt(seeds)
    return Course(at, mean, mean - half, mean + half, seeds)


def draw_course(ax: Axes, course: Course, scale: float, colour: style.Colour, line: style.Dashes) -> None:
    ax.plot(course.loss, scale * course.mean, color=colour, linestyle=line)
    if course.seeds > 1:
        ax.fill_between(course.loss, scale * course.low, scale * course.high, color=colour, alpha=0.15, linewidth=0)
