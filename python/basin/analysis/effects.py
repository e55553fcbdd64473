"""An effect with what is needed to judge it: value, standard error, degrees of freedom, components of variance.

With outcomes of single test images, d[s, i] is the effect at seed s and image i, with the crossed variance of stats.py in closed form

    Var(mean d) = var_seed / S + var_image / N + var_rest / (S N).

Without them there is one number d[s] for each seed, and the interval is Student's over seeds: Var(mean d) = var_seed / S. A ratio is an
effect on logarithms. Components are unbiased estimates, cut at 0.

What can go wrong: two seeds know a variance badly (no verdict below stats.VERDICT_SEEDS); numbers that are alike at every seed,
as updates counted in steps of `check_every` can be, have no spread to make an interval from, and get none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from . import stats, student

MOST_SEEDS = 1000
FARTHEST = 1e6  # from the estimate of R that an end of its interval is looked for
LEAST = 1e-12  # p-value that is given: of smaller ones nothing is known


@dataclass(frozen=True)
class Effect:
    """In the outcome's unit (accuracy: of 1), or of logarithms. `images`: 0 where there is one number for each seed."""

    value: float
    error: float
    freedom: float
    seeds: int
    images: int
    var_seed: float
    var_image: float
    var_rest: float
    parts: tuple[float, float] | None = None  # of the variance, as in stats.Difference; None: Student with `freedom`

    def half(self, tail: float) -> float:
        """Half the width of the interval that leaves out `tail` on each side."""
        if self.parts is None:
            return float(student.isf(tail, self.freedom) * self.error)
        return stats.half_width(self.parts, self.seeds, self.images, 1 - 2 * tail)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        half = self.half(0.5 - level / 2)
        return float(self.value - half), float(self.value + half)

    def p_above(self) -> float:
        """One-sided, that it isn't above 0: the tail whose half width is the value."""
        if not self.error > 0:
            return np.nan
        if self.parts is None:
            return float(student.sf(self.value / self.error, self.freedom))
        if self.value < 0:
            return 1 - self.reversed().p_above()
        if self.half(LEAST) <= self.value:
            return LEAST
        return float(10 ** brentq(lambda tail: self.half(10**tail) - self.value, np.log10(LEAST), np.log10(0.5)))

    def p_different(self) -> float:
        """Two-sided, that there is none."""
        return min(1.0, 2 * (self.p_above() if self.value >= 0 else self.reversed().p_above()))

    def reversed(self) -> Effect:
        return replace(self, value=-self.value)

    def less(self, bound: float) -> Effect:
        """What has the sign of the effect less `bound`."""
        return replace(self, value=self.value - bound)


def crossed(d: ArrayLike) -> Effect:
    """From a table [seed, image]."""
    d = np.atleast_2d(np.asarray(d, float))
    a, b, e = stats.variance_parts(d)
    seeds, images = d.shape
    several = seeds > 1
    return Effect(
        float(d.mean()), float(np.sqrt(stats.variance_of_mean(d))), stats.degrees_of_freedom(d), seeds, images,
        max(0.0, seeds * (a - e)) if several else np.nan, max(0.0, images * (b - e)), seeds * images * e if several else np.nan,
        stats.interval_parts(d),
    )  # fmt: skip


def by_seed(d: ArrayLike) -> Effect:
    """From one number for each seed. Error and interval are NaN for one seed, and where all seeds are alike."""
    d = np.asarray(d, float)
    variance = float(d.var(ddof=1)) if d.size > 1 else np.nan
    # Rounding leaves a spread of about 1e-16 of the value where all are alike.
    alike = d.size > 1 and np.ptp(d) <= 1e-12 * max(1.0, float(np.abs(d).max()))
    error = np.nan if d.size < 2 or alike else float(np.sqrt(variance / d.size))
    return Effect(float(d.mean()), error, float(max(1, d.size - 1)), d.size, 0, variance, 0.0, 0.0)


def between(one: ArrayLike, two: ArrayLike) -> Effect:
    """Mean of two less mean of one, of numbers by seed that aren't paired: the pooled two-sample t interval. The variance holds the
    seeds' part and what is neither seed nor image; the images' part is common to two halves of one cell and falls out."""
    one, two = np.asarray(one, float), np.asarray(two, float)
    freedom = one.size + two.size - 2
    if freedom < 1 or not one.size or not two.size:
        return Effect(float(two.mean() - one.mean()), np.nan, 1.0, one.size + two.size, 0, np.nan, 0.0, 0.0)
    pooled = (((one - one.mean()) ** 2).sum() + ((two - two.mean()) ** 2).sum()) / freedom
    error = float(np.sqrt(pooled * (1 / one.size + 1 / two.size)))
    return Effect(float(two.mean() - one.mean()), error if error > 0 else np.nan, float(freedom), one.size + two.size, 0,
                  float(pooled), 0.0, 0.0)  # fmt: skip


def seeds_to_decide(e: Effect, margin: float, comparisons: int = 1, alpha: float = 0.05) -> int:
    """The least number of seeds at which the two half widths together are at most the margin: whatever the estimate then is, either
    the interval excludes 0 or the one for equivalence lies within the margin. 0: not known, or not by seeds alone."""
    if not np.isfinite(e.var_seed) or not margin > 0 or not e.var_seed + e.var_image + e.var_rest > 0:
        return 0
    seeds = np.arange(stats.VERDICT_SEEDS, MOST_SEEDS + 1, dtype=float)
    images = max(2, e.images)
    by_seeds, by_images = (e.var_seed + e.var_rest / images) / seeds, e.var_image / images

    def half(tail: float) -> np.ndarray:
        return np.sqrt(student.isf(tail, seeds - 1) ** 2 * by_seeds + student.isf(tail, images - 1) ** 2 * by_images)

    enough = np.flatnonzero(half(alpha / comparisons / 2) + half(alpha / comparisons) <= margin)
    return int(seeds[enough[0]]) if enough.size else 0


@dataclass(frozen=True)
class Recovered:
    """R = (m_arm - m_large) / (m_small - m_large). `why`: what forbids a value or a verdict. `part` and `gap`: the two differences, with
    a sign that makes the gap positive: tables [seed, image], or numbers by seed."""

    part: np.ndarray
    gap: np.ndarray
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    why: str = ""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Fieller's set: all r for which part - r gap isn't resolved, by the interval that p-values are of too. NaN where it has no end,
        since the gap isn't resolved."""
        gap, tail = _effect(self.gap), 0.5 - level / 2
        if not gap.value > gap.half(tail):
            return np.nan, np.nan

        def beyond(r: float) -> float:
            """Above 0 where r is rejected. What is alike at every seed has no width."""
            e = self.less(r)
            return abs(e.value) - (e.half(tail) if e.error > 0 else 0.0)

        estimate = float(self.part.mean()) / gap.value
        low, high = (_first_above(beyond, estimate, sign) for sign in (-1.0, 1.0))
        return (low, high) if np.isfinite(high - low) else (np.nan, np.nan)

    def less(self, r: float) -> Effect:
        """part - r gap: it has the sign of R - r."""
        return _effect(self.part - r * self.gap)


def _effect(d: np.ndarray) -> Effect:
    return crossed(d) if d.ndim == 2 else by_seed(d)


def _first_above(function: Callable[[float], float], start: float, sign: float) -> float:
    """Where it passes 0 on one side of `start`: between the last two of steps that double until one is beyond. NaN where none is."""
    inside, step = start, 1e-3
    while step < FARTHEST:
        outside = start + sign * step
        if function(outside) > 0:
            return float(brentq(function, inside, outside, xtol=1e-12)) if function(inside) < 0 else inside
        inside, step = outside, 2 * step
    return np.nan


WIDEST = 0.5  # of an interval of R from which something is said


def recovered(small: np.ndarray, large: np.ndarray, arm: np.ndarray) -> Recovered:
    """From tables [seed, image], or numbers by seed, over the same seeds. The gap must be resolved, whichever sign it has."""
    small, large, arm = (np.asarray(x, float) for x in (small, large, arm))
    gap, part = small - large, arm - large
    if gap.mean() < 0:
        gap, part = -gap, -part
    none = Recovered(part, gap)
    seeds = len(small)
    if seeds < stats.VERDICT_SEEDS:
        return replace(none, why=f"{seeds} seed{'s' * (seeds != 1)}; a share needs {stats.VERDICT_SEEDS}")
    low, high = none.interval()
    if not np.isfinite(low):
        return replace(none, why="the gap between small and large isn't resolved")
    wide = high - low > WIDEST
    why = f"the interval of R is wider than {WIDEST:g}" if wide else ""
    return Recovered(part, gap, float(part.mean() / gap.mean()), low, high, why)
