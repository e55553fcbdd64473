"""Rank correlation between a measure x and a target y over configurations (runs that differ in the seed alone are one), with
bootstrap intervals and a placebo.

All statistics are sums over pairs of configurations of s_x(i,j) = sign(x_i - x_j):

    Kendall's tau-b    tau_xy = sum s_x s_y / sqrt(sum s_x^2 * sum s_y^2)                  (Kendall 1945; a tie counts in no sum)
    granulated Psi     mean over hyper-parameters of psi_i, psi_i the mean tau of the groups in which hyper-parameter i alone
                       varies (Jiang et al., ICLR 2020, section 4, equations 5 and 6). A group without a tau (one configuration,
                       or all of them tied) is in no mean
    partial            -P_xy / sqrt(P_xx P_yy), P the inverse of the correlation matrix of the normal scores of x, y and covariates z:
                       Phi^-1((rank - 1/2) / n), ties sharing their mean rank (van der Waerden 1952). For monotone functions of normal
                       variables it is their partial correlation. Kendall's own partial tau (1942) isn't 0 where x and y are independent
                       given z (Korn 1984): with normal correlations of 0.8 to z it is 0.14, and at 60 configurations "found" half of
                       the time. Where z's tie (a grid's learning rates) what they make within a tie is left,
                       and a z whose effect turns (a rate with an optimum in the middle) is hardly held at all

Bootstrap: configurations are drawn with replacement, never runs, whose errors are not independent. A configuration drawn twice is
a tie with itself and counts in no sum. Interval: tanh(atanh t +- 1.96 s), s the larger of the bootstrap's standard error and the
placebo's, on the scale of atanh (t kept one discordant pair away from +-1): else a perfect order of five configurations, which
chance gives often, has an interval of length 0. Coverage of the 95 % interval of tau at 5 to 30 configurations: 93 to 100 %
(python/tests/analysis/test_rank.py); plain percentiles at a true tau of 0.85: 55 % at 5, 87 % at 8.

Not covered: configurations of a grid are no independent draws from anything; intervals hold for more cells of the same kind.

Placebo: a measure that knows nothing has the values of x dealt out to configurations at random (its runs go together). The middle
95 % of its statistic are the grey band of the figures, and p = (1 + how many of the N placebos are as far from 0) / (1 + N).

Cost: n^2 numbers a draw; at 24 configurations 0.1 s a statistic, at 100 some 0.4 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

DRAWS = 1999  # of the bootstrap and of the placebo
SINGULAR = 1e-6  # smallest eigenvalue of a matrix of correlations that is still inverted
FEWEST = 0.8  # of the resamples must have a value for an interval
CHUNK = 2_000_000  # pairs held at a time

Statistic = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # (signs of x, signs of y, weights) -> a number a draw


@dataclass(frozen=True)
class Estimate:
    """`low`, `high`: 95 % interval. `band`: the middle 95 % of placebos. `why`: the reason where there is no value or no interval."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    band: tuple[float, float] = (np.nan, np.nan)
    why: str = ""


@dataclass(frozen=True)
class Kendall:
    tau: float
    n: int
    dropped: int  # pairs (x, y) of which one is not a finite number


def kendall(x: ArrayLike, y: ArrayLike) -> Kendall:
    x, y = np.asarray(x, float), np.asarray(y, float)
    there = np.isfinite(x) & np.isfinite(y)
    value = tau(pair_signs(x[there]), pair_signs(y[there]), np.ones(int(there.sum())))
    return Kendall(float(value), int(there.sum()), int((~there).sum()))


def pair_signs(x: ArrayLike) -> np.ndarray:
    x = np.asarray(x, float)
    return np.sign(x[:, None] - x[None, :])


def tau(sx: np.ndarray, sy: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """tau-b of pair signs [..., n, n], each configuration counted weights [..., n] times; NaN where all are tied."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return pair_sum(sx * sy, weights) / np.sqrt(pair_sum(sx * sx, weights) * pair_sum(sy * sy, weights))


def pair_sum(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (_weighted(table, weights) * weights).sum(-1)


def _weighted(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[..., n]: the sum of each row of table [..., n, n], its columns counted weights [..., n] times; one product of matrices where the
    table is one for all draws."""
    return weights @ table.T if table.ndim == 2 else (table @ weights[..., None])[..., 0]


def granulated(axes: Sequence[Sequence[np.ndarray]]) -> Statistic:
    """`axes`: for each hyper-parameter its groups, each an array of configurations that differ in it alone (grid.groups)."""

    def statistic(sx: np.ndarray, sy: np.ndarray, weights: np.ndarray) -> np.ndarray:
        psi = [_mean([tau(_part(sx, g), _part(sy, g), weights[..., g]) for g in groups]) for groups in axes]
        return _mean(psi) if psi else np.full(np.broadcast_shapes(sx.shape[:-2], weights.shape[:-1]), np.nan)

    return statistic


def _part(table: np.ndarray, group: np.ndarray) -> np.ndarray:
    return table[..., group[:, None], group]


def _mean(values: list[np.ndarray]) -> np.ndarray:
    """Over those that are there; NaN where none is."""
    stacked = np.array(np.broadcast_arrays(*values), float)
    there = np.isfinite(stacked)
    with np.errstate(invalid="ignore"):
        return np.where(there, stacked, 0.0).sum(0) / there.sum(0)


def partial(covariates: Sequence) -> Statistic:
    """NaN where the covariates, or x or y and they, order the configurations alike, so that nothing is left to correlate."""
    signs = [pair_signs(z) for z in covariates]

    def statistic(sx: np.ndarray, sy: np.ndarray, weights: np.ndarray) -> np.ndarray:
        scores = [normal_scores(table, weights) for table in (sx, sy, *signs)]
        scores = np.stack(np.broadcast_arrays(*scores), -2)  # [..., variable, configuration]
        drawn = weights[..., None, :]
        apart = scores - (scores * drawn).sum(-1, keepdims=True) / drawn.sum(-1, keepdims=True)
        matrix = (apart * drawn) @ np.swapaxes(apart, -1, -2)
        size = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
        with np.errstate(invalid="ignore", divide="ignore"):
            matrix = matrix / (size[..., None, :] * size[..., :, None])
        bad = ~np.isfinite(matrix).all((-1, -2))
        matrix[bad] = np.eye(len(signs) + 2)
        bad |= np.linalg.eigvalsh(matrix)[..., 0] < SINGULAR
        matrix[bad] = np.eye(len(signs) + 2)
        inverse = np.linalg.inv(matrix)
        value = -inverse[..., 0, 1] / np.sqrt(inverse[..., 0, 0] * inverse[..., 1, 1])
        return np.where(bad, np.nan, value)

    return statistic


def normal_scores(signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[..., n] from pair signs [..., n, n]: a configuration's rank is the weight of those below it and half of that of its equals,
    itself among them. 0 for those that were not drawn."""
    below = _weighted(0.5 + 0.5 * signs, weights) / weights.sum(-1, keepdims=True)
    there = np.broadcast_to(weights > 0, below.shape)
    return np.where(there, ndtri(np.where(there, below, 0.5)), 0.0)


@lru_cache(maxsize=8)
def resamples(n: int) -> np.ndarray:
    """[draw, configuration]: how often it was drawn; the same for every statistic, so that reports repeat."""
    random = np.random.default_rng([20261122, n])
    return np.array([np.bincount(random.integers(0, n, n), minlength=n) for _ in range(DRAWS)], float)


@lru_cache(maxsize=8)
def placebos(n: int) -> np.ndarray:
    """[draw, configuration]: whose value it is dealt."""
    random = np.random.default_rng([20261123, n])
    return np.array([random.permutation(n) for _ in range(DRAWS)])


def dealt(table: np.ndarray, order: np.ndarray) -> np.ndarray:
    """[draw, n, n]: the table of pairs with configurations dealt out by `order` [draw, n]."""
    return np.take(table.ravel(), dealt_places(order))


def dealt_places(order: np.ndarray) -> np.ndarray:
    """[draw, n, n]: where in a flattened table the entries of dealt() stand."""
    return order.shape[1] * order[:, :, None] + order[:, None, :]


def in_chunks(of: Callable[[np.ndarray], np.ndarray], draws: np.ndarray) -> np.ndarray:
    """`of` a few draws at a time."""
    step = max(1, CHUNK // draws.shape[1] ** 2)
    return np.concatenate([of(draws[i : i + step]) for i in range(0, len(draws), step)])


def estimate(statistic: Statistic, x: ArrayLike, y: ArrayLike) -> Estimate:
    """x and y: one finite number a configuration."""
    sx, sy, n = pair_signs(x), pair_signs(y), len(x)
    ones = np.ones(n)
    value = float(statistic(sx, sy, ones))
    if not np.isfinite(value):
        return Estimate(why="not resolved")
    replicates = in_chunks(lambda weights: statistic(sx, sy, weights), resamples(n))
    null = in_chunks(lambda order: statistic(dealt(sx, order), sy, ones), placebos(n))
    return summarise(value, replicates, null, n)


def summarise(value: float, replicates: np.ndarray, null: np.ndarray, n: int) -> Estimate:
    null = null[np.isfinite(null)]
    p, band = placebo_p(value, null), tuple(np.percentile(null, [2.5, 97.5])) if null.size else (np.nan, np.nan)
    replicates = replicates[np.isfinite(replicates)]
    if replicates.size < FEWEST * DRAWS:
        lost = 100 * (1 - replicates.size / DRAWS)
        return Estimate(value, p=p, band=band, why=f"no interval: {lost:.0f} % of the resamples have no value")
    low, high = interval(value, float(replicates.std(ddof=1)), float(null.std(ddof=1)) if null.size > 1 else 0.0, n)
    return Estimate(value, low, high, p, band)


def interval(value: float, error: float, null_error: float, n: int) -> tuple[float, float]:
    edge = 1 - 2 / (n * (n - 1) / 2)  # one discordant pair
    kept = float(np.clip(value, -edge, edge))
    half = 1.96 * max(error / (1 - kept**2), null_error)
    low, high = float(np.tanh(np.arctanh(kept) - half)), float(np.tanh(np.arctanh(kept) + half))
    return min(low, value), max(high, value)  # a perfect order lies beyond `kept`


def placebo_p(value: float, null: np.ndarray, one_sided: bool = False) -> float:
    """How often a placebo is as far from 0; one_sided: as large. Never 0: the measure itself is one of N + 1."""
    if not null.size:
        return np.nan
    far = null - value if one_sided else np.abs(null) - abs(value)
    return float((1 + (far >= -1e-12).sum()) / (1 + null.size))  # a tie is as far, whatever it was rounded to


def holm(p: Sequence[float]) -> np.ndarray:
    """p values adjusted for how many there are (Holm 1979): the smallest times m, the next times m - 1, ..., never decreasing. NaN
    stays NaN and is not counted."""
    given = np.asarray(p, float)
    adjusted = np.full(given.shape, np.nan)
    there = np.flatnonzero(np.isfinite(given))
    order = there[np.argsort(given[there], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return adjusted
