"""Kendall's tau as it would be without errors of measurement, which pull it towards 0.

Only means over a few seeds are known of a configuration's x and y, x̂_i = x_i + u_i, ŷ_i = y_i + v_i, u and v normal with known standard
errors and correlation r (the same runs give both). SIMEX (Cook & Stefanski, J. Am. Stat. Assoc. 89, 1994; Carroll et al., Measurement
Error in Nonlinear Models, chapter 5): errors of zeta times the variance are added on top, tau(zeta) is followed over zeta = 0, 0.5, 1,
1.5, 2 and continued to zeta = -1, where none is left. Here

  * nothing is drawn at random: the expected product of two normal differences' signs is known,
        E[s_x s_y] = erf(a/sqrt 2) erf(b/sqrt 2) + 4 int_0^r phi_2(a, b; t) dt,    a = (x̂_i - x̂_j) / sd, b likewise
    (the integral is Plackett's identity for the orthant of a bivariate normal, by Gauss-Legendre);
  * what is continued, by a parabola, is c = sin(pi tau / 2), the normal correlation that belongs to tau (Greiner). For normal x, y and
    errors c(zeta) = rho / sqrt((1 + (1 + zeta) q_x)(1 + (1 + zeta) q_y)), q the ratio of the errors' variance to the true one: smooth at
    -1. A parabola through the five points falls a little short of it: at a true tau of 0.6 and q = 1/4 in both, 30 configurations,
    the plain tau is 0.16 too small and this 0.03. Continuing 1/c^2 instead, exact for normal errors in x alone, has several
    times the variance.

So it is a cautious correction: towards the truth, seldom beyond (bias and coverage: test_attenuation.py). Its own error is
larger than that of the plain tau, and the interval, by the bootstrap over configurations, shows it. Where the errors are as large
as the spread itself nothing can be said; `order_kept` gauges that, and below LEAST_KEPT there is no correction.

Cost: some 4 times that of a plain tau. Errors are taken as known: those of three seeds are rough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from .rank import Estimate, dealt_places, in_chunks, pair_signs, pair_sum, placebos, resamples, summarise

ZETA = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
TO_NO_ERROR = np.linalg.pinv(np.vander(ZETA, 3, increasing=True)).T @ np.array([1.0, -1.0, 1.0])  # the parabola's value at -1
LEAST_KEPT = 0.3
FEWER = 499  # placebos: for the least width of the interval alone
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)


def corrected(x: ArrayLike, x_error: ArrayLike, y: ArrayLike, y_error: ArrayLike, correlation: float = 0.0) -> Estimate:
    """All but `correlation` have one finite number a configuration."""
    x, x_error, y, y_error = (np.asarray(v, float) for v in (x, x_error, y, y_error))
    kept = order_kept(x, x_error), order_kept(y, y_error)
    if not min(kept) >= LEAST_KEPT:
        whose = " and ".join(name for name, k in zip(("measure", "target"), kept) if not k >= LEAST_KEPT)
        return Estimate(why=f"noise in the {whose}")
    n, ones = len(x), np.ones(len(x))
    sx, sy = _signs(x, x_error), _signs(y, y_error)
    both = sx * sy + _common(x, x_error, y, y_error, correlation)
    value = float(_continued(both, sx, sy, ones))
    if not np.isfinite(value):
        return Estimate(why="not resolved")
    replicates = in_chunks(lambda weights: _continued(both, sx, sy, weights), resamples(n))
    null = in_chunks(lambda order: _placebo(sx, sy, order), placebos(n)[:FEWER])
    return summarise(value, replicates, null, n)


def order_kept(value: ArrayLike, error: ArrayLike) -> float:
    """How well the order of values is known: 2 E|erf(d / sqrt(2 v))| - 1 over pairs, d their difference, v its variance. 1 without
    errors; about 0 where there is nothing but error, since erf(|d| / sqrt(2 v)) is then spread evenly between 0 and 1."""
    signs = _expected_signs(np.asarray(value, float), np.asarray(error, float), 1.0)
    pairs = ~np.eye(len(signs), dtype=bool)
    return float(2 * np.abs(signs[pairs]).mean() - 1)


def _expected_signs(value: np.ndarray, error: np.ndarray, zeta: float) -> np.ndarray:
    """E[sign] of each difference with errors of zeta times the variance on top."""
    spread = np.sqrt(2 * zeta * (error[:, None] ** 2 + error[None, :] ** 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        smooth = erf((value[:, None] - value[None, :]) / spread)
    return np.where(spread > 0, smooth, pair_signs(value))


def _signs(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    return np.array([_expected_signs(value, error, zeta) for zeta in ZETA])


def _common(x: ArrayLike, x_error: ArrayLike, y: ArrayLike, y_error: ArrayLike, r: float) -> np.ndarray:
    """4 int_0^r phi_2(a, b; t) dt for every zeta and pair, r the correlation of the errors of the pair's differences; 0 where r, zeta or
    an error of both is."""
    table = np.zeros((ZETA.size, len(x), len(x)))
    spread_x, spread_y = (np.sqrt(e[:, None] ** 2 + e[None, :] ** 2) for e in (x_error, y_error))
    both = (spread_x > 0) & (spread_y > 0) & ~np.eye(len(x), dtype=bool)
    covariance = r * (np.add.outer(x_error * y_error, x_error * y_error))[both]
    r = covariance / (spread_x * spread_y)[both]
    a, b = ((v[:, None] - v[None, :])[both] / s[both] for v, s in ((x, spread_x), (y, spread_y)))
    for k, zeta in enumerate(ZETA[1:], start=1):
        for node, weight in zip(NODES, NODE_WEIGHTS):
            t = 0.5 * r * (node + 1)
            exponent = -(a**2 - 2 * t * a * b + b**2) / (2 * zeta * (1 - t**2))
            table[k][both] += 2 * r * weight * np.exp(exponent) / (2 * np.pi * np.sqrt(1 - t**2))
    return table


def _continued(both: np.ndarray, sx: np.ndarray, sy: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """tau at zeta = -1."""
    sums = [pair_sum(table, weights) for table in both]
    return _at_no_error(sums, [_untied(one, weights) * _untied(two, weights) for one, two in zip(sx, sy)])


def _untied(signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A tie at zeta = 0 is one in tau-b's denominator; with errors on top there are none but a configuration's own."""
    return pair_sum((signs != 0) * 1.0, weights)


def _at_no_error(sums: list[np.ndarray], squares: list[np.ndarray]) -> np.ndarray:
    """tau at zeta = -1, by its numerator and squared denominator at every zeta."""
    c = 0.0
    for factor, numerator, square in zip(TO_NO_ERROR, sums, squares):
        with np.errstate(invalid="ignore", divide="ignore"):
            c = c + factor * np.sin(0.5 * np.pi * np.clip(numerator / np.sqrt(square), -1, 1))
    return 2 / np.pi * np.arcsin(np.clip(c, -1, 1))


def _placebo(sx: np.ndarray, sy: np.ndarray, order: np.ndarray) -> np.ndarray:
    """x and its errors dealt out together: those of a placebo have nothing to do with y's. However they are dealt, as many are tied."""
    ones, places = np.ones(order.shape[1]), dealt_places(order).reshape(len(order), -1)
    sums = [np.take(one.ravel(), places) @ two.ravel() for one, two in zip(sx, sy)]
    return _at_no_error(sums, [_untied(one, ones) * _untied(two, ones) for one, two in zip(sx, sy)])
