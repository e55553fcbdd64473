"""The critical batch size from updates to a target: S(B) = S_min (1 + B_crit x), x = (1/B − 1/N)₊, and E_min = S_min B_crit.

For each batch size the fewest updates over learning rates (censored_parabola.py), then the law by least squares in log S, each size with
its own error. N examples: beyond N all sizes are the same experiment, and are one size here. McCandlish et al. 2018 (arXiv
1812.06162), eq. 2.11; the −1/N is that of batches without replacement.

B_crit stays open, NaN with `status` and a one-sided 95 % bound, unless two sizes lie on each side of it: `open_above` (it is at least the
bound), `open_below` (at most). `misfit` is the p-value of χ² against a free value for each size, `exponent` that of x in a fit where it is
free: the law says 1. Intervals are of the bootstrap over seeds (the same for all sizes, as they share initial weights and data order) and
over rates; `profile` is that of the likelihood's profile, without any scatter that the errors don't know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.optimize import least_squares, minimize_scalar
from scipy.special import chdtrc

from . import student
from .censored_parabola import FewestUpdates, fewest_updates

TRIALS = ["batch", "rate", "seed", "low", "high"]  # S in (low, high]; high = inf: not reached at the cap, which is `low` then
LEAST_SIDE = 2  # sizes on each side of B_crit
MOST_LOST = 0.2  # of bootstrap draws: beyond it there is no interval


@dataclass(frozen=True)
class CriticalBatch:
    examples: float
    sizes: pd.DataFrame  # batch, log_updates, error, log_rate, sigma, status, trials, reached: one row per size
    batch: float  # B_crit
    low: float
    high: float
    status: str  # ok, open_above, open_below, few_sizes
    bound: float  # one-sided 95 %, where it is open
    profile: tuple[float, float] = (np.nan, np.nan)
    updates: float = np.nan  # S_min
    updates_interval: tuple[float, float] = (np.nan, np.nan)
    examples_least: float = np.nan  # E_min
    misfit: float = np.nan
    exponent: float = np.nan
    exponent_error: float = np.nan
    fitted: float = np.nan  # the least-squares value, where B_crit is open too: for drawing the curve, no result
    lost: float = np.nan  # share of bootstrap draws that had no fit
    drawn: tuple[pd.DataFrame, ...] = ()  # `sizes` of each bootstrap draw
    laws: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))  # (B_crit, S_min) of each draw that had a fit

    def curve(self, batch: np.ndarray) -> np.ndarray:
        return self.updates * (1 + self.fitted * noise_share(batch, self.examples))


@dataclass
class _Points:
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        self.scale = float(np.median(self.x[self.x > 0])) if (self.x > 0).any() else 1.0


def noise_share(batch: np.ndarray, examples: float) -> np.ndarray:
    return np.maximum(0, 1 / np.asarray(batch, float) - 1 / examples)


def critical_batch(trials: pd.DataFrame, examples: float, draws: int = 400, seed: int = 1) -> CriticalBatch:
    """The fit to the trials of one optimiser; TRIALS are its columns. `draws` = 0: no bootstrap, so that low and high are the profile's."""
    trials = trials.assign(batch=np.minimum(trials.batch, examples))
    sizes = fit_sizes(trials)
    points = _points(sizes, examples)
    tables = tuple(_resampled_sizes(trials, draws, seed))
    if len(points.x) < 3:
        return CriticalBatch(examples, sizes, np.nan, np.nan, np.nan, "few_sizes", np.nan, drawn=tables)
    fitted, log_least = _law(points)
    profile = _profile(points, fitted, 0.95)
    drawn, lost = _bootstrap(tables, examples)
    if draws and lost <= MOST_LOST:
        interval, one_sided = np.quantile(drawn[:, 0], [0.025, 0.975]), np.quantile(drawn[:, 0], [0.05, 0.95])
        least = np.quantile(drawn[:, 1], [0.025, 0.975])
    else:
        interval = np.array(profile if not draws else (np.nan, np.nan))
        one_sided, least = np.array(_profile(points, fitted, 0.90)), np.full(2, np.nan)
    status = _status(sizes[sizes.status == "ok"].batch.to_numpy(), fitted)
    bound = {"ok": np.nan, "open_above": one_sided[0], "open_below": one_sided[1]}[status]
    value = fitted if status == "ok" else np.nan
    low, high = interval if status == "ok" else (np.nan, np.nan)
    chi_squared = float((_residuals(points, fitted) ** 2).sum())
    exponent, exponent_error = _free_exponent(points, fitted)
    updates = float(np.exp(log_least))
    return CriticalBatch(examples, sizes, value, float(low), float(high), status, float(bound), profile, updates,
                         (float(least[0]), float(least[1])), updates * value, float(chdtrc(len(points.x) - 2, chi_squared)), exponent,
                         exponent_error, fitted, lost, tables, drawn)  # fmt: skip


def fit_sizes(trials: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for batch, group in trials.groupby("batch"):
        found: FewestUpdates = fewest_updates(group.rate.to_numpy(), group.low.to_numpy(), group.high.to_numpy())
        rows.append({"batch": float(batch), **found.__dict__})
    return pd.DataFrame(rows)


def _points(sizes: pd.DataFrame, examples: float) -> _Points:
    good = sizes[sizes.status == "ok"]
    return _Points(noise_share(good.batch.to_numpy(), examples), good.log_updates.to_numpy(), good.error.to_numpy())


def _residuals(points: _Points, critical: float | np.ndarray, exponent: float = 1.0) -> np.ndarray:
    """In errors, with the best S_min; of a column of values of B_crit a row each."""
    shape = points.y - np.log1p((critical * points.x) ** exponent)
    weight = points.error**-2.0
    return (shape - (shape * weight).sum(-1, keepdims=True) / weight.sum()) / points.error


def _law(points: _Points) -> tuple[float, float]:
    """B_crit and log S_min by least squares."""

    def cost(log_critical: float) -> float:
        return float((_residuals(points, np.exp(log_critical)) ** 2).sum())

    log_critical = _least(cost, np.log(1 / points.scale))
    critical = float(np.exp(log_critical))
    weight = points.error**-2.0
    return critical, float(((points.y - np.log1p(critical * points.x)) * weight).sum() / weight.sum())


def _least(cost: Callable[[float], float], middle: float) -> float:
    """Looked for over twelve decades, then by Brent's method around the best."""
    places = middle + np.linspace(-14, 14, 113)
    best = int(np.argmin([cost(p) for p in places]))
    low, high = places[max(0, best - 1)], places[min(len(places) - 1, best + 1)]
    return float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x)


def _profile(points: _Points, critical: float, level: float) -> tuple[float, float]:
    """Where the cost is above its least by t² (n − 2 degrees of freedom), times the reduced χ² where that is above 1."""
    freedom = len(points.x) - 2
    least = float((_residuals(points, critical) ** 2).sum())
    allowed = least + student.ppf(0.5 + level / 2, freedom) ** 2 * max(1.0, least / freedom)
    places = np.log(critical) + np.linspace(-14, 14, 2801)
    inside = (_residuals(points, np.exp(places)[:, None]) ** 2).sum(1) <= allowed
    middle = len(places) // 2
    low, high = middle, middle
    while low > 0 and inside[low - 1]:
        low -= 1
    while high < len(places) - 1 and inside[high + 1]:
        high += 1
    return (0.0 if low == 0 else float(np.exp(places[low])), np.inf if high == len(places) - 1 else float(np.exp(places[high])))


def _status(batches: np.ndarray, critical: float) -> str:
    if (batches > critical).sum() < LEAST_SIDE:
        return "open_above"
    return "open_below" if (batches < critical).sum() < LEAST_SIDE else "ok"


def _free_exponent(points: _Points, critical: float) -> tuple[float, float]:
    if len(points.x) < 4:
        return np.nan, np.nan
    found = least_squares(lambda p: _residuals(points, np.exp(p[0]), np.exp(p[1])), [np.log(critical), 0.0],
                          bounds=([np.log(critical) - 10, -3], [np.log(critical) + 10, 3]))  # fmt: skip
    information = found.jac.T @ found.jac
    spread = max(1.0, 2 * found.cost / (len(points.x) - 3))
    exponent = float(np.exp(found.x[1]))
    if np.linalg.cond(information) > 1e12:
        return exponent, np.nan
    return exponent, float(exponent * np.sqrt(spread * np.linalg.inv(information)[1, 1]))


def _resampled_sizes(trials: pd.DataFrame, draws: int, seed: int) -> Iterator[pd.DataFrame]:
    """fit_sizes() of the trials drawn anew, seeds (the same for all sizes) and rates with replacement, `draws` times."""
    random = np.random.default_rng(seed)
    groups = [group for _, group in trials.groupby("batch")]
    seeds = trials.seed.unique()
    for _ in range(draws):
        chosen = random.choice(seeds, len(seeds))
        yield fit_sizes(pd.concat([_resampled(group, chosen, random) for group in groups]))


def _bootstrap(drawn: tuple[pd.DataFrame, ...], examples: float) -> tuple[np.ndarray, float]:
    """(B_crit, S_min) of each draw that had a fit, and the share of those that had none."""
    found = []
    for sizes in drawn:
        points = _points(sizes, examples)
        if len(points.x) >= 3:
            critical, log_least = _law(points)
            found.append((critical, np.exp(log_least)))
    return np.array(found).reshape(-1, 2), 1 - len(found) / len(drawn) if drawn else np.nan


def _resampled(group: pd.DataFrame, seeds: np.ndarray, random: np.random.Generator) -> pd.DataFrame:
    """Its trials at these seeds (each as often as it was drawn), of rates drawn with replacement: at least four of them where there are."""
    rates = group.rate.unique()
    drawn = random.choice(rates, len(rates))
    for _ in range(50):
        if len(np.unique(drawn)) >= min(4, len(rates)):
            break
        drawn = random.choice(rates, len(rates))
    seed, rate = group.seed.to_numpy(), group.rate.to_numpy()
    taken = [np.flatnonzero((seed == s) & (rate == r)) for s in seeds for r in drawn]
    return group.iloc[np.concatenate(taken)] if taken else group
