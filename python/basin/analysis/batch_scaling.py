"""How the best rate and the updates to a target move with the batch size, free of any law: the slope of log best rate against log B
(½ and 1 are the square-root and the linear rule), and S of each size over that of the size before.

Sizes are those of critical_batch.fit_sizes. The slope is by least squares over the sizes up to `most`, each size with the same weight.
Intervals are percentiles of the bootstrap over seeds (the same for all sizes) and rates. Shallue et al. 2019 (arXiv 1811.03600), figures 1
and 8: nearly perfect scaling (S falls as 1/B), then diminishing returns, then none; and no rule for the rate.

What can go wrong: the best rate is the minimum of a parabola over few rates, flat where many rates do as well; its slope is worth no
more than that, and a size whose minimum is at an end of its rates has none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .critical_batch import MOST_LOST, CriticalBatch


@dataclass(frozen=True)
class Interval:
    value: float
    low: float  # 95 %
    high: float


@dataclass(frozen=True)
class Scaling:
    slope: Interval  # of log best rate against log B
    most: float  # the largest size in it
    sizes: pd.DataFrame  # batch, updates, error (of log updates), rate, status; ratio, ratio_low, ratio_high to the size before


def batch_scaling(law: CriticalBatch, most: float) -> Scaling:
    """For one optimiser, from the sizes and the bootstrap draws of its fit. The slope is NaN where fewer than three sizes have a best
    rate."""
    sizes = law.sizes.sort_values("batch", ignore_index=True)
    # A draw of seeds may leave a size without trials, where sizes have different seeds.
    drawn = [table.set_index("batch").reindex(sizes.batch).reset_index() for table in law.drawn]
    ratios = _interval(_ratios(sizes), [_ratios(table) for table in drawn])
    return Scaling(
        Interval(*(float(v[0]) for v in _interval(_slope(sizes, most), [_slope(table, most) for table in drawn]))),
        most,
        sizes.assign(updates=np.exp(sizes.log_updates), rate=np.exp(sizes.log_rate), ratio=ratios[0], ratio_low=ratios[1],
                     ratio_high=ratios[2])[["batch", "updates", "error", "rate", "status", "ratio", "ratio_low", "ratio_high"]],
    )  # fmt: skip


def _slope(sizes: pd.DataFrame, most: float) -> np.ndarray:
    good = sizes[(sizes.status == "ok") & (sizes.batch <= most)]
    if len(good) < 3:
        return np.array([np.nan])
    return np.polyfit(np.log(good.batch), good.log_rate, 1)[:1]


def _ratios(sizes: pd.DataFrame) -> np.ndarray:
    return np.exp(sizes.log_updates.diff().to_numpy())


def _interval(value: np.ndarray, drawn: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """95 % percentiles where the value is known and at most MOST_LOST of the draws have none."""
    if not drawn:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    table = np.stack(drawn)
    known = np.isfinite(value) & (np.isnan(table).mean(axis=0) <= MOST_LOST)
    low, high = np.nanquantile(np.where(known, table, 0.0), [0.025, 0.975], axis=0)
    return value, np.where(known, low, np.nan), np.where(known, high, np.nan)
