"""The pooled noise scale against numbers by hand."""

import numpy as np
import pytest
from scipy.stats import t as student

from basin.analysis.noise_scale import pooled_noise_scale


def test_it_is_the_ratio_of_sums_not_the_mean_of_ratios():
    noise = pooled_noise_scale([8.0, 8.0, 8.0], [0.01, 0.02, 0.03])
    assert noise.value == pytest.approx(400) and np.mean(8.0 / np.array([0.01, 0.02, 0.03])) == pytest.approx(488.9, abs=0.1)


def test_resolved_is_the_t_interval_of_mean_g2():
    # Mean 2, s = 1, n = 3: se = 0.577; 2 - 4.303 x 0.577 = -0.48, not resolved. With s = 0.5: 0.76, resolved.
    assert not pooled_noise_scale([1, 1, 1], [1, 2, 3]).resolved
    assert pooled_noise_scale([1, 1, 1], [1.5, 2, 2.5]).resolved


def test_the_interval_holds_the_roots_of_fiellers_equation():
    above, below = np.array([8.1, 7.8, 8.4, 8.0]), np.array([0.0101, 0.0095, 0.0104, 0.0110])
    noise = pooled_noise_scale(above, below)
    cov, t = np.cov(above, below) / 4, student.ppf(0.975, 3)
    for r in (noise.low, noise.high):
        variance = cov[0, 0] - 2 * r * cov[0, 1] + r * r * cov[1, 1]
        assert (above.mean() - r * below.mean()) ** 2 == pytest.approx(t**2 * variance)
    assert noise.low < noise.value < noise.high


def test_the_error_is_the_spread_of_the_ratio():
    """tr Σ = 100 ± 5, |G|² = 1 ± 0.05, three runs: the ratio of their means has a standard deviation of 100 (0.05² + 0.05²)^½ / 3^½ = 4.1.
    4,000 repetitions know the mean of the estimated variances to 2 %."""
    random = np.random.default_rng(5)
    found = [pooled_noise_scale(100 + 5 * random.normal(size=3), 1 + 0.05 * random.normal(size=3)) for _ in range(4000)]
    assert np.std([f.value for f in found]) == pytest.approx(4.08, rel=0.05)
    assert np.sqrt(np.mean([f.error**2 for f in found])) == pytest.approx(4.08, rel=0.05)


def test_unresolved_runs_are_in_it():
    # The third run's |G|^2 is negative: dropped, the ratio would be 8 / 0.02 = 400; with it, 24 / 0.03 = 800.
    noise = pooled_noise_scale([8.0, 8.0, 8.0], [0.02, 0.02, -0.01])
    assert noise.value == pytest.approx(800) and not noise.resolved and np.isnan(noise.high) and noise.runs == 3


def test_a_mean_g2_below_zero_has_no_value():
    assert np.isnan(pooled_noise_scale([8.0, 8.0], [-0.02, 0.01]).value)


def test_one_run_is_not_pooled():
    with pytest.raises(ValueError, match="needs two"):
        pooled_noise_scale([8.0, np.nan], [0.01, 0.01])


def test_coverage():
    """95 % intervals of the ratio of means, five runs with |G|^2 spread by 20 %: 400 repetitions hold it in 92 to 98 % (three standard
    errors of 400 tosses)."""
    random = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        g2 = 0.01 * (1 + 0.2 * random.standard_normal(5))
        noise = pooled_noise_scale(8.0 * (1 + 0.1 * random.standard_normal(5)), g2)
        held += not noise.resolved or noise.low <= 800 <= noise.high
    assert 0.917 <= held / 400 <= 0.983
