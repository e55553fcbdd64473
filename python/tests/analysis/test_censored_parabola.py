"""Against scipy's general minimiser of the same likelihood written anew, and against trials drawn from known numbers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from basin.analysis.censored_parabola import fewest_updates

BEST, RATE = float(np.log(100)), float(np.log(0.1))


def drawn(random, best=BEST, log_rate=RATE, k=1.2, sigma=0.1, rates=9, seeds=2, cap=np.inf, every=1):
    """Rates, last check before, check at which the target was found; beyond the cap (cap, inf)."""
    rate = np.repeat(0.1 * 2.0 ** (np.arange(rates) - rates // 2), seeds)
    log_s = best + k / 2 * (np.log(rate) - log_rate) ** 2 + sigma * random.standard_normal(rate.size)
    high = np.ceil(np.exp(log_s) / every) * every
    low = high - every
    missed = high > cap
    return rate, np.where(missed, cap, low), np.where(missed, np.inf, high)


def by_scipy(rate, low, high):
    """log S*, by Nelder and Mead on the likelihood in other parameters: log S*, log rate, log k, log sigma."""

    def cost(p):
        mean = p[0] + np.exp(p[2]) / 2 * (np.log(rate) - p[1]) ** 2
        with np.errstate(divide="ignore"):
            share = norm.cdf(np.log(high), mean, np.exp(p[3])) - norm.cdf(np.log(low), mean, np.exp(p[3]))
        return -np.log(np.maximum(share, 1e-300)).sum()

    least = np.argmin(high)
    start = [np.log(high[least]), np.log(rate[least]), 0.0, np.log(0.2)]
    found = minimize(
        cost, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20000, "maxfev": 20000}
    )
    return found.x


@pytest.mark.parametrize("cap", [np.inf, 400])
def test_the_maximum_is_scipys(cap):
    rate, low, high = drawn(np.random.default_rng(3), cap=cap, every=4)
    assert np.isinf(high).any() == np.isfinite(cap)
    found, other = fewest_updates(rate, low, high), by_scipy(rate, low, high)
    # Nelder and Mead stop within about 1e-5 of a maximum whose curvature is 100.
    assert [found.log_updates, found.log_rate] == pytest.approx(other[:2], abs=1e-4)
    assert found.sigma == pytest.approx(np.exp(other[3]), rel=1e-3)


def test_the_error_covers_the_truth_with_and_without_censoring():
    for cap in (np.inf, 300):
        random = np.random.default_rng(11)
        away = []
        for _ in range(300):
            found = fewest_updates(*drawn(random, rates=7, seeds=3, cap=cap, every=5))
            away.append((found.log_updates - np.log(100)) / found.error)
        inside = np.mean(np.abs(away) < 2.1)  # t(18) or fewer
        # 300 draws: a standard error of 1.3 %; few censored trials make it no better than 0.9.
        assert 0.90 < inside < 0.985, (cap, inside)


def test_cutting_off_the_missed_trials_would_be_wrong():
    """Without the trials beyond the cap the parabola is too flat and the least too small: the censored fit isn't."""
    random = np.random.default_rng(5)
    kept, cut = [], []
    for _ in range(60):
        rate, low, high = drawn(random, sigma=0.3, cap=160, rates=9, seeds=4, log_rate=np.log(0.1))
        kept.append(fewest_updates(rate, low, high).log_updates)
        there = np.isfinite(high)
        cut.append(fewest_updates(rate[there], low[there], high[there]).log_updates)
    # 60 draws of about 0.1: a mean to 0.013.
    assert np.nanmean(kept) == pytest.approx(np.log(100), abs=0.04)
    assert np.nanmean(cut) < np.nanmean(kept) - 0.03


@pytest.mark.parametrize(
    ("rate", "high", "status"),
    [
        ([0.1, 0.1, 0.2, 0.2], [50, 51, 50, 49], "few_trials"),
        ([0.1, 0.2, 0.4, 0.8, 1.6], [10, 30, 50, 30, 10], "no_minimum"),
        ([0.1, 0.2, 0.4, 0.8, 1.6], [400, 210, 110, 60, 34], "outside"),
    ],
)
def test_what_has_no_minimum_says_so(rate, high, status):
    found = fewest_updates(np.array(rate), np.array(high) - 1.0, np.array(high, float))
    assert found.status == status
    assert np.isnan(found.log_updates)
