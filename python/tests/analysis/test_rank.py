"""Against scipy, brute force over groups and pairs, and simulated truth."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau, norm, rankdata

from basin.analysis import rank


def one(statistic, x, y):
    return float(statistic(rank.pair_signs(x), rank.pair_signs(y), np.ones(len(x))))


@pytest.mark.parametrize("levels", [3, 8, 1000])
def test_tau_is_scipys_with_ties(levels):
    random = np.random.default_rng(1)
    x, y = random.integers(0, levels, 25).astype(float), random.integers(0, levels, 25).astype(float)
    assert rank.kendall(x, y).tau == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)


def test_what_is_no_number_is_dropped_and_counted():
    x, y = np.array([1, np.nan, 3, 4, np.inf, 2.0]), np.array([2, 1, np.nan, 5, 1, 3.0])
    found = rank.kendall(x, y)
    assert (found.n, found.dropped) == (3, 3)
    assert found.tau == pytest.approx(kendalltau([1, 4, 2], [2, 5, 3]).statistic)
    assert np.isnan(rank.kendall([1, 1, 1], [1, 2, 3]).tau)


def test_a_weight_is_a_configuration_that_comes_so_often():
    random = np.random.default_rng(2)
    x, y, weights = random.normal(size=9), random.integers(0, 4, 9).astype(float), random.integers(0, 4, 9)
    expected = kendalltau(np.repeat(x, weights), np.repeat(y, weights)).statistic
    assert rank.tau(rank.pair_signs(x), rank.pair_signs(y), weights.astype(float)) == pytest.approx(expected, abs=1e-12)


def psi_by_hand(codes, x, y):
    """Jiang et al.: by axis the mean tau over groups that are alike in all other axes, then the mean over axes."""
    psi = []
    for axis in range(codes.shape[1]):
        rest = [tuple(np.delete(row, axis)) for row in codes]
        taus = [kendalltau(x[m], y[m]).statistic for key in set(rest) if (m := np.array([r == key for r in rest])).sum() > 1]
        psi.append(np.nanmean(taus))
    return np.mean(psi)


def test_granulated_is_the_mean_of_scipys_taus_over_groups():
    random = np.random.default_rng(3)
    codes = np.array([(a, b, c) for a in range(3) for b in range(4) for c in range(2)])[random.permutation(24)[:20]]
    x, y = random.normal(size=20), random.normal(size=20)
    axes = []
    for axis in range(3):
        rest = np.delete(codes, axis, axis=1)
        found = [np.flatnonzero((rest == key).all(1)) for key in np.unique(rest, axis=0)]
        axes.append([g for g in found if len(g) > 1])
    assert one(rank.granulated(axes), x, y) == pytest.approx(psi_by_hand(codes, x, y), abs=1e-12)


def test_granulated_sees_through_a_confounder():
    # x and y both follow axis a; within a they run against each other along b.
    a, b = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    x, y = 10 * a + b, 10 * a - b
    groups = [[np.flatnonzero(b == k) for k in range(3)], [np.flatnonzero(a == k) for k in range(4)]]
    assert one(rank.granulated(groups), x, y) == pytest.approx(0.0)  # +1 along a, -1 along b
    assert kendalltau(x, y).statistic > 0.5
    assert np.isnan(one(rank.granulated([[np.array([0, 1])]]), np.array([1.0, 1, 2]), np.array([1.0, 2, 3])))


def by_formula(xy, xz, yz):
    return (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))


def test_partial_is_that_of_normal_scores():
    """By the recursion over covariates, from scipy's ranks."""
    random = np.random.default_rng(4)
    z, w = random.normal(size=30), random.integers(0, 5, 30).astype(float)
    x, y = z + random.normal(size=30), z - 0.3 * w + random.normal(size=30)
    scores = dict(zip("xyzw", (norm.ppf((rankdata(v) - 0.5) / 30) for v in (x, y, z, w))))
    r = {(i, j): np.corrcoef(scores[i], scores[j])[0, 1] for i in "xyzw" for j in "xyzw"}
    assert one(rank.partial([z]), x, y) == pytest.approx(by_formula(r["x", "y"], r["x", "z"], r["y", "z"]), abs=1e-12)
    given_z = {p: by_formula(r[p], r[p[0], "z"], r[p[1], "z"]) for p in (("x", "y"), ("x", "w"), ("y", "w"))}
    expected = by_formula(given_z["x", "y"], given_z["x", "w"], given_z["y", "w"])
    assert one(rank.partial([z, w]), x, y) == pytest.approx(expected, abs=1e-12)


def test_partial_of_a_resample_is_that_of_its_configurations():
    random = np.random.default_rng(5)
    x, y, z = random.normal(size=(3, 9))
    weights = np.array([2, 0, 1, 1, 3, 0, 0, 1, 1.0])
    drawn = np.repeat(np.arange(9), weights.astype(int))
    expected = one(rank.partial([z[drawn]]), x[drawn], y[drawn])
    assert float(rank.partial([z])(rank.pair_signs(x), rank.pair_signs(y), weights)) == pytest.approx(expected, abs=1e-12)


def test_partial_says_nothing_where_covariates_leave_nothing():
    random = np.random.default_rng(5)
    x, y, z = random.normal(size=(3, 12))
    assert np.isnan(one(rank.partial([z, np.exp(z)]), x, y))  # two covariates, one order
    assert np.isnan(one(rank.partial([x**3]), x, y))
    found = rank.estimate(rank.partial([x**3]), x, y)
    assert found.why == "not resolved" and np.isnan(found.low)


def beside_a_covariate(random, n, rho):
    """x and y that are independent given z, each at a correlation of rho with it."""
    z = random.normal(size=n)
    return z, *(rho * z + np.sqrt(1 - rho**2) * random.normal(size=n) for _ in range(2))


def test_partial_leaves_nothing_of_what_a_covariate_makes():
    z, x, y = beside_a_covariate(np.random.default_rng(6), 1500, 0.8)
    # a partial correlation of 1500 has a standard error of 1/sqrt(1500) = 0.026, by ranks a tenth more; Kendall's own has 0.14 here
    assert one(rank.partial([z]), np.exp(x), y**3) == pytest.approx(0, abs=0.085)


@pytest.mark.parametrize("n, rho", [(24, 0.8), (60, 0.8), (60, 0.9)])
def test_partial_claims_nothing_where_the_covariate_is_all(n, rho, few_draws):
    """A claim (correlation.py): a placebo's p below 0.05 and an interval without 0. 120 repetitions know 5 % to 2 points, three of
    which are left."""
    random, claims = np.random.default_rng([n, int(10 * rho)]), 0
    for _ in range(120):
        z, x, y = beside_a_covariate(random, n, rho)
        found = rank.estimate(rank.partial([z]), x, y)
        claims += found.p < 0.05 and (found.low > 0 or found.high < 0)
    assert claims / 120 <= 0.05 + 0.06


@pytest.mark.parametrize("n", [5, 8, 14, 30])
@pytest.mark.parametrize("truth", [0.0, 0.6, 0.85])
def test_coverage(n, truth, few_draws):
    """At least 93 %, as the module says; 250 repetitions know 95 % to 1.4 points, three of which are left."""
    random = np.random.default_rng([n, int(100 * truth)])
    rho, held = np.sin(np.pi * truth / 2), 0
    for _ in range(250):
        x = random.normal(size=n)
        y = rho * x + np.sqrt(1 - rho**2) * random.normal(size=n)
        found = rank.estimate(rank.tau, x, y)
        held += found.low <= truth <= found.high
    assert held / 250 >= 0.93 - 0.042


def test_plain_percentiles_would_not_do(few_draws):
    """Why the interval is another one: at five configurations and a true tau of 0.85 every second order is perfect."""
    random = np.random.default_rng(7)
    rho, plain, ours = np.sin(np.pi * 0.85 / 2), 0, 0
    for _ in range(150):
        x = random.normal(size=5)
        y = rho * x + np.sqrt(1 - rho**2) * random.normal(size=5)
        sx, sy = rank.pair_signs(x), rank.pair_signs(y)
        low, high = np.nanpercentile(rank.tau(sx, sy, rank.resamples(5)), [2.5, 97.5])
        plain += low <= 0.85 <= high
        found = rank.estimate(rank.tau, x, y)
        ours += found.low <= 0.85 <= found.high
    assert plain / 150 < 0.7 and ours / 150 > 0.9


def test_intervals_of_psi_and_partial_hold_their_truths(few_draws):
    """A 4 x 4 grid without anything in it: both are 0. 200 repetitions know 95 % to 1.5 points."""
    random = np.random.default_rng(8)
    a, b = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    statistics = {"psi": rank.granulated([[np.flatnonzero(b == k) for k in range(4)], [np.flatnonzero(a == k) for k in range(4)]]),
                  "partial": rank.partial([a, b])}  # fmt: skip
    held = dict.fromkeys(statistics, 0)
    for _ in range(200):
        x, y = random.normal(size=(2, 16))
        for name, statistic in statistics.items():
            found = rank.estimate(statistic, x, y)
            held[name] += found.low <= 0 <= found.high
    assert min(held.values()) / 200 >= 0.95 - 0.046


def test_the_placebos_p_is_that_of_all_permutations():
    x, y = np.array([1, 2, 3, 4, 5, 6.0]), np.array([2, 1, 4, 3, 6, 5.0])
    taus = np.array([kendalltau(p, y).statistic for p in permutations(x)])
    observed = kendalltau(x, y).statistic
    exact = (np.abs(taus) >= abs(observed) - 1e-12).mean()
    found = rank.estimate(rank.tau, x, y)
    assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / rank.DRAWS))  # four standard errors of the draws
    # steps of 2/15 between taus: the band's ends are within one
    assert found.band == pytest.approx(np.percentile(taus, [2.5, 97.5]), abs=2 / 15 + 1e-9)


def test_p_values_are_honest(few_draws):
    """Where there is nothing, p <= 0.1 in a tenth of the cases at most; 400 know that to 1.5 points."""
    random = np.random.default_rng(9)
    p = [rank.estimate(rank.tau, *random.normal(size=(2, 10))).p for _ in range(400)]
    assert 0.05 < np.mean(np.array(p) <= 0.1) <= 0.1 + 0.045
    assert rank.estimate(rank.tau, np.arange(10), np.arange(10)).p == pytest.approx(1 / 300)


def test_holm_on_a_textbook_case():
    assert rank.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    adjusted = rank.holm([0.5, np.nan, 0.9])
    assert adjusted[[0, 2]] == pytest.approx([1.0, 1.0]) and np.isnan(adjusted[1])


def test_a_placebo_deals_each_value_once_and_a_resample_is_as_large():
    assert (np.sort(rank.placebos(7), axis=1) == np.arange(7)).all() and len(
        np.unique(rank.placebos(7), axis=0)
    ) > 1500  # of 5,040
    assert (rank.resamples(7).sum(1) == 7).all()


def test_draws_repeat_and_chunks_change_nothing(monkeypatch):
    random = np.random.default_rng(10)
    x, y = random.normal(size=(2, 11))
    once = rank.estimate(rank.tau, x, y)
    rank.resamples.cache_clear()
    rank.placebos.cache_clear()
    monkeypatch.setattr(rank, "CHUNK", 5000)
    assert rank.estimate(rank.tau, x, y) == once
