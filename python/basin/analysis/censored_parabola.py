"""The fewest updates to a target over learning rates, from trials whose updates are known to an interval or to lie beyond a cap.

At one batch size  log S = c0 + c1 u + c2 u² + σ ε,  u = log η less its mean over the trials, ε a standard normal. A trial that reached
the target has S in (last check before, this check]; one that did not has S above the cap. With γ = c/σ and h = 1/σ

    ℓ = Σ log[Φ(h log S_high − γ·(1, u, u²)) − Φ(h log S_low − γ·(1, u, u²))]

is concave (Olsen 1978, Econometrica 46:1211, for censored; the same argument for intervals), so Newton's method finds the maximum. The
answer is the least value log S* = c0 − c1²/(4 c2), with the error from the observed information, times √(n/(n − 3)) for the three
coefficients. What can go wrong: trials that diverge have no S and are left out, so beyond the edge of stability nothing is
known; a minimum outside of the rates that reached the target is no minimum (status).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

LEAST_SIGMA = 0.02  # two runs that differ in nothing but the seed are never closer: keeps few trials from being taken as exact
STEPS = 200


@dataclass(frozen=True)
class FewestUpdates:
    """log S*, its standard error, the best rate's logarithm, σ. NaN with a status that isn't ok: `few_trials` (fewer than four that reached
    the target, or than three rates of them), `no_minimum` (no upward parabola), `outside` (its least is not between the rates tried)."""

    log_updates: float
    error: float
    log_rate: float
    sigma: float
    status: str
    trials: int
    reached: int

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def fewest_updates(rates: np.ndarray, low: np.ndarray, high: np.ndarray) -> FewestUpdates:
    """The least over trials with these rates, S in (low, high]; high = inf where the target wasn't reached, low the cap then."""
    rates, low, high = (np.asarray(a, float) for a in (rates, low, high))
    there = np.isfinite(rates) & (high > low)
    rates, low, high = rates[there], low[there], high[there]
    reached = np.isfinite(high)
    n = int(reached.sum())
    if n < 4 or len(np.unique(rates[reached])) < 3:
        return _none("few_trials", len(rates), n)
    middle = np.log(rates).mean()
    u = np.log(rates) - middle
    design = np.stack([np.ones_like(u), u, u**2], axis=1)
    with np.errstate(divide="ignore"):
        gamma_h, covariance = _maximum(design, np.log(low), np.log(high))
    g0, g1, g2, h = gamma_h
    if g2 <= 0:
        return _none("no_minimum", len(rates), n)
    best = -g1 / (2 * g2)
    if not u[reached].min() <= best <= u[reached].max():
        return _none("outside", len(rates), n)
    value = (g0 - g1**2 / (4 * g2)) / h
    slope = np.array([1, best, best**2, -value]) / h
    error = np.sqrt(slope @ covariance @ slope) * np.sqrt(n / (n - 3))
    return FewestUpdates(float(value), float(error), float(best + middle), float(1 / h), "ok", len(rates), n)


def _none(status: str, trials: int, reached: int) -> FewestUpdates:
    return FewestUpdates(np.nan, np.nan, np.nan, np.nan, status, trials, reached)


def _maximum(design: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(γ0, γ1, γ2, h) at the maximum and minus the inverse Hessian there; h is at most 1/LEAST_SIGMA."""
    known = np.where(np.isfinite(high), high, low + 0.3)
    coefficients = np.linalg.lstsq(design, known, rcond=None)[0]
    sigma = max(float(np.std(known - design @ coefficients)), 0.05)
    at = np.append(coefficients, 1) / sigma
    value, gradient, hessian = _likelihood(at, design, low, high)
    for _ in range(STEPS):
        free = slice(0, 3) if at[3] >= 1 / LEAST_SIGMA and gradient[3] > 0 else slice(0, 4)
        step = np.zeros(4)
        step[free] = -np.linalg.solve(hessian[free, free] - 1e-10 * np.eye(len(at[free])), gradient[free])
        if at[3] + step[3] > 1 / LEAST_SIGMA:
            step *= (1 / LEAST_SIGMA - at[3]) / step[3]
        if abs(step @ gradient) < 1e-12:
            break
        size = 1.0
        while True:
            there = at + size * step
            new = _likelihood(there, design, low, high) if there[3] > 0 else (-np.inf, gradient, hessian)
            if new[0] > value or size < 1e-9:
                break
            size /= 2
        if new[0] <= value:
            break
        at, (value, gradient, hessian) = there, new
    return at, np.linalg.inv(-hessian + 1e-12 * np.eye(4))


def _likelihood(at: np.ndarray, design: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """ℓ, its gradient and its Hessian."""
    place = design @ at[:3]
    a = np.where(np.isfinite(low), at[3] * np.where(np.isfinite(low), low, 0) - place, -np.inf)
    b = np.where(np.isfinite(high), at[3] * np.where(np.isfinite(high), high, 0) - place, np.inf)
    log_p = _log_difference(a, b)
    if not np.isfinite(log_p).all():
        return -np.inf, np.zeros(4), -np.eye(4)
    pa, pb = _density_over(a, log_p), _density_over(b, log_p)  # φ(a)/P and φ(b)/P, 0 at infinity
    za, zb = np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0)
    la, lb = np.where(np.isfinite(low), low, 0), np.where(np.isfinite(high), high, 0)
    first, by_h = pb - pa, lb * pb - la * pa
    gradient = np.append(-design.T @ first, by_h.sum())
    second = za * pa - zb * pb - first**2
    mixed = za * la * pa - zb * lb * pb - first * by_h
    last = za * la**2 * pa - zb * lb**2 * pb - by_h**2
    hessian = np.empty((4, 4))
    hessian[:3, :3] = (design * second[:, None]).T @ design
    hessian[:3, 3] = hessian[3, :3] = -design.T @ mixed
    hessian[3, 3] = last.sum()
    return float(log_p.sum()), gradient, hessian


def _log_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(Φ(b) − Φ(a)), from the tail in which both are small."""
    swap = a > 0
    low, high = np.where(swap, -b, a), np.where(swap, -a, b)
    upper, lower = log_ndtr(high), log_ndtr(low)
    with np.errstate(invalid="ignore", divide="ignore"):
        return upper + np.log1p(-np.exp(np.minimum(lower - upper, 0)))


def _density_over(z: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(z), np.exp(-(np.where(np.isfinite(z), z, 0) ** 2) / 2 - np.log(2 * np.pi) / 2 - log_p), 0.0)
