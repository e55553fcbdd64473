"""The gradient noise scale of several runs together: B_simple = tr Σ / |G|² as a ratio of means (docs/probes.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from . import student
from .stats import fieller


@dataclass(frozen=True)
class NoiseScale:
    """`resolved`: the mean of |G|² over runs is greater than 0 at the level asked for; else the interval is open (NaN). `error`:
    standard error by the delta method, over runs."""

    value: float
    error: float
    low: float
    high: float
    resolved: bool
    runs: int


def pooled_noise_scale(tr_sigma: ArrayLike, g2: ArrayLike, level: float = 0.95) -> NoiseScale:
    """sum tr_sigma / sum g2 over at least two runs, those not resolved by themselves included: leaving them out would take the
    largest ratios away. Fieller's interval from the spread over runs with t(n - 1). Only for runs with the same definition,
    number of examples and subset.
    """
    tr_sigma, g2 = np.asarray(tr_sigma, float), np.asarray(g2, float)
    there = np.isfinite(tr_sigma) & np.isfinite(g2)
    tr_sigma, g2 = tr_sigma[there], g2[there]
    n = tr_sigma.size
    if n < 2:
        raise ValueError(f"a pooled noise scale needs two runs: here are {n}")
    t = student.ppf(0.5 + level / 2, n - 1)
    (var_above, covariance), (_, var_below) = np.cov(tr_sigma, g2) / n
    value = tr_sigma.sum() / g2.sum() if g2.sum() > 0 else np.nan
    if g2.mean() - t * np.sqrt(var_below) <= 0:
        return NoiseScale(float(value), np.nan, np.nan, np.nan, False, n)
    error = np.sqrt(max(0.0, var_above - 2 * value * covariance + value**2 * var_below)) / g2.mean()
    low, high = fieller(tr_sigma.mean(), g2.mean(), var_above, var_below, covariance, t)
    return NoiseScale(float(value), float(error), max(0.0, low), high, True, n)
