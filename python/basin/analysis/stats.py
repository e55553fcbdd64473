"""Differences of test accuracy between two sets of runs, honest about few seeds, and the three verdicts.

Data. d[s, i] = c_reference[s, i] - c_arm[s, i]: seed s (the same in both arms: same initial weights and data order), test
image i (the same images in both arms), c = 1 for right, 0 for wrong. Seeds and images are crossed random factors:

    Var(mean d) = var_seed / S + var_image / N + var_rest / (S N) = a + b - e,

with a = s^2(row means)/S, b = s^2(column means)/N, e = s^2(rest)/(S N), an unbiased estimate (both a and b hold e once).

Bootstrap. Seeds and images are resampled together, each with replacement, the same draws for every arm (the pigeonhole
bootstrap, Owen 2007). As it comes it is wrong twice at three seeds: the seed term shrinks by (S - 1)/S, and what is neither
seed nor image is counted up to three times. So weights are stretched around 1 by sqrt(n / (n - 1)) and replicates of the
mean are scaled to the unbiased variance.

Interval. mean +- half, with

    half^2 = t(S - 1)^2 a + t(N - 1)^2 (b - e):

a has the spread of the seeds' means, of which S - 1 degrees of freedom know, b - e the images' own part. Where seeds alone differ it is
Student's interval exactly, and it stays valid far out, where many comparisons are corrected for. Satterthwaite's degrees of freedom
for the sum are fine at 95 %, but at 99.6 % and three seeds the interval misses the truth four times as often as it says. The bootstrap
is for ratios (`share`), whose numerator and denominator go together.
Simulated coverage of the 95 % interval: 94 to 99 % at three and five seeds, but 89 to 98 % at two, for which reason no verdict
is given on fewer than three (python/tests/analysis/test_stats.py holds the lower ends).

Not covered: another training set, another model, another way of tuning. Verdicts of several comparisons take their number into account,
intervals don't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from . import student

REPLICATES = 2000
MARGIN = 0.02  # two points of accuracy
VERDICT_SEEDS = 3


class MarginError(ValueError):
    """A margin that makes no sense, in one line."""


def margin_of(points: float) -> float:
    """A margin given in points, in units of 1."""
    if not 0 < points < 100:
        raise MarginError(f"margin = {points:g}: a number of points above 0 and below 100 is needed")
    return points / 100


@dataclass(frozen=True)
class Difference:
    """An estimated difference of accuracies, reference minus arm, in units of 1 (0.02 is two points)."""

    value: float
    standard_error: float
    degrees_of_freedom: float
    seeds: int
    examples: int
    parts: tuple[float, float] | None = None  # of the variance: a and b - e; None: the standard error with its degrees of freedom

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        if self.parts is None:
            half = student.ppf(0.5 + level / 2, self.degrees_of_freedom) * self.standard_error
        else:
            half = half_width(self.parts, self.seeds, self.examples, level)
        return float(self.value - half), float(self.value + half)


@dataclass(frozen=True)
class Verdict:
    """`word` is "gap", "no gap" or "undecided"; `direction` +1 where the reference is better, -1 where the arm is."""

    word: str
    text: str
    direction: int = 0
    within_margin: bool = False


@dataclass(frozen=True)
class Share:
    """Which part of a drop remains: gap / drop, with Fieller's interval; not resolved where no drop is."""

    value: float
    low: float
    high: float
    resolved: bool


def mean_and_error(values: ArrayLike) -> tuple[float, float, int]:
    """Mean, standard error over seeds (NaN for fewer than two) and n, of the finite values."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return np.nan, np.nan, 0
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return float(values.mean()), float(error), int(values.size)


def mean_and_larger_error(values: ArrayLike, own: ArrayLike) -> tuple[float, float, int]:
    """The same, but with the mean of the values' own uncertainties (NaN: none is known) as the error where that is greater."""
    mean, error, n = mean_and_error(values)
    own = np.asarray(own, float)
    own = own[np.isfinite(own)]
    return mean, float(np.nanmax([error, own.mean()])) if own.size else error, n


def image_error(accuracy: float, examples: int) -> float:
    """Standard error of one accuracy from the drawing of the test images alone."""
    return float(np.sqrt(accuracy * (1 - accuracy) / examples))


def difference(reference: ArrayLike, arm: ArrayLike) -> Difference:
    """Reference minus arm from right-or-wrong tables [seed, image] whose rows and columns belong together.

    With one seed the interval holds the test images' part alone.
    """
    d = _paired(reference, arm)
    error = float(np.sqrt(variance_of_mean(d)))
    return Difference(float(d.mean()), error, degrees_of_freedom(d), len(d), d.shape[1], interval_parts(d))


def share(drop: tuple[ArrayLike, ArrayLike], gap: tuple[ArrayLike, ArrayLike], level: float = 0.95) -> Share:
    """`drop` and `gap` are pairs (reference, arm) of tables [seed, image] over the same seeds and images.

    Resolved where there is a drop, that is, a positive one that differs from 0.
    """
    d, g = _paired(*drop), _paired(*gap)
    if d.shape != g.shape:
        raise ValueError(f"drop {d.shape} and gap {g.shape} differ in seeds or images")
    if d.shape[0] < 2 or d.mean() <= 0:
        return Share(np.nan, np.nan, np.nan, False)
    v = _covariance([d, g])
    t = student.ppf(0.5 + level / 2, min(degrees_of_freedom(d), degrees_of_freedom(g)))
    low, high = fieller(g.mean(), d.mean(), v[1, 1], v[0, 0], v[0, 1], t)
    return Share(float(g.mean() / d.mean()), low, high, bool(np.isfinite(low)))


def fieller(above: float, below: float, var_above: float, var_below: float, covariance: float, t: float) -> tuple[float, float]:
    """Fieller's (1954) interval of above / below: all r with (above - r below)^2 <= t^2 Var(above - r below). NaN where `below` does
    not differ from 0, since the set is then no interval."""
    a = below**2 - t**2 * var_below
    b = above * below - t**2 * covariance
    root = b * b - a * (above**2 - t**2 * var_above)
    if a <= 0 or root < 0:
        return np.nan, np.nan
    return float((b - root**0.5) / a), float((b + root**0.5) / a)


def verdict(estimate: Difference, margin: float = MARGIN, comparisons: int = 1) -> Verdict:
    """A gap: the interval at 1 - 5 %/m lies on one side of 0, m = `comparisons` made at once. No gap within the margin: the one at
    1 - 10 %/m lies inside +-margin, which is two one-sided tests at 5 %/m (Schuirmann 1987). Else undecided. Where both hold it is
    a gap, and a small one."""
    if estimate.seeds < 2:
        return Verdict("undecided", "undecided (one seed: nothing is claimed)")
    if estimate.seeds < VERDICT_SEEDS:
        return Verdict("undecided", f"undecided ({estimate.seeds} seeds; a verdict needs {VERDICT_SEEDS})")
    points = f"{100 * margin:g} points"
    low, high = estimate.interval(1 - 0.05 / comparisons)
    inner = estimate.interval(1 - 0.10 / comparisons)
    inside = bool(inner[0] > -margin and inner[1] < margin)
    if low > 0 or high < 0:
        direction = 1 if low > 0 else -1
        words = "a gap" if direction > 0 else "a gap the other way (better than the reference)"
        return Verdict("gap", words + (f", smaller than {points}" if inside else ""), direction, inside)
    if inside:
        return Verdict("no gap", f"no gap within ±{points}", 0, True)
    return Verdict("undecided", "undecided")


def paired_runs(reference: pd.DataFrame, arm: pd.DataFrame) -> tuple[list[str], list[str], list[int]]:
    """run_ids of both arms over the seeds that they share, and those seeds."""
    one, two = reference.set_index("seed").run_id, arm.set_index("seed").run_id
    seeds = sorted(set(one.index) & set(two.index))
    return [one[s] for s in seeds], [two[s] for s in seeds], [int(s) for s in seeds]


def _paired(reference: ArrayLike, arm: ArrayLike) -> np.ndarray:
    reference, arm = np.atleast_2d(np.asarray(reference, float)), np.atleast_2d(np.asarray(arm, float))
    if reference.shape != arm.shape:
        raise ValueError(f"arms of different shape cannot be paired: {reference.shape} and {arm.shape}")
    return reference - arm


@lru_cache(maxsize=8)
def _weights(seeds: int, images: int) -> tuple[np.ndarray, np.ndarray]:
    """Stretched bootstrap weights less 1; the same for every comparison of a report, so that reports repeat."""
    random = np.random.default_rng(20261121)

    def draw(n: int) -> np.ndarray:
        drawn = np.array([np.bincount(random.integers(0, n, n), minlength=n) for _ in range(REPLICATES)], np.float32)
        return (drawn - 1) * np.float32(np.sqrt(n / (n - 1))) if n > 1 else drawn - 1

    return draw(seeds), draw(images)


def _covariance(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Bootstrap covariance of the tables' means under common resampling."""
    replicates = np.array([_replicates(d) for d in tables])
    return np.atleast_2d(np.cov(replicates, ddof=1))


def _replicates(d: np.ndarray) -> np.ndarray:
    """Bootstrap replicates of mean d, less mean d, with the unbiased variance."""
    seed_weights, image_weights = _weights(*d.shape)
    by_seed, by_image = d.mean(1) - d.mean(), d.mean(0) - d.mean()
    drawn = (seed_weights @ by_seed) / d.shape[0] + (image_weights @ by_image) / d.shape[1]
    a, b, _ = variance_parts(d)
    unbiased = variance_of_mean(d)
    if a + b == 0:
        return np.sqrt(unbiased) * np.random.default_rng(1).standard_normal(REPLICATES)
    return drawn * np.sqrt(unbiased / (a + b))


def variance_parts(d: np.ndarray) -> tuple[float, float, float]:
    """a, b and e of the module's comment; without a second seed a and e are 0."""
    seeds, images = d.shape
    by_seed, by_image = d.mean(1), d.mean(0)
    b = by_image.var(ddof=1) / images
    if seeds < 2:
        return 0.0, b, 0.0
    rest = d - by_seed[:, None] - by_image[None, :] + d.mean()
    return by_seed.var(ddof=1) / seeds, b, (rest**2).sum() / ((seeds - 1) * (images - 1)) / d.size


def interval_parts(d: np.ndarray) -> tuple[float, float]:
    """a and b - e; together at least what the rule of three leaves where nothing differs."""
    a, b, e = variance_parts(d)
    return a, max(b - e, (1.5 / d.shape[1]) ** 2 - a, 0.0)


def half_width(parts: tuple[float, float], seeds: int, images: int, level: float) -> float:
    """As in the module's comment. With one seed there is no first part."""
    by_seed = student.ppf(0.5 + level / 2, seeds - 1) ** 2 * parts[0] if seeds > 1 else 0.0
    by_image = student.ppf(0.5 + level / 2, images - 1) ** 2 * parts[1] if images > 1 else 0.0
    return float(np.sqrt(by_seed + by_image))


def variance_of_mean(d: np.ndarray) -> float:
    """Unbiased, and at least what the rule of three leaves where nothing differs."""
    a, b, e = variance_parts(d)
    return float(max(a + b - e, b, (1.5 / d.shape[1]) ** 2))


def degrees_of_freedom(d: np.ndarray) -> float:
    seeds, images = d.shape
    if seeds < 2:
        return float(images - 1)
    a, b, e = variance_parts(d)
    spread = a**2 / (seeds - 1) + b**2 / (images - 1) + e**2 / ((seeds - 1) * (images - 1))
    return float(max(seeds - 1, max(a + b - e, b) ** 2 / spread)) if spread > 0 else float(seeds - 1)
