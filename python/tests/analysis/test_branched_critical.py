import numpy as np
import pandas as pd
import pytest

from basin.analysis.branched_critical import branched_critical, critical_of
from critical_trials import branches


def test_interpolates_in_the_logarithm_of_k():
    # 0.9 at 4, 0.7 at 8: 0.8 is half-way, 4 sqrt 2.
    found = critical_of(branches({1: 1.0, 2: 0.97, 4: 0.9, 8: 0.7, 16: 0.3}))
    assert found.status == "ok"
    assert found.k == pytest.approx(4 * np.sqrt(2))
    assert found.low == pytest.approx(found.k)  # without scatter
    assert found.high == pytest.approx(found.k)


def test_between_one_and_the_smallest():
    # 1 at 1 and 0.6 at 2: half-way is sqrt 2.
    assert critical_of(branches({1: 1.0, 2: 0.6, 4: 0.1})).k == pytest.approx(np.sqrt(2))


def test_the_best_rate_of_each_k_counts():
    frame = branches({1: 1.0, 2: 0.9, 4: 0.5})
    only_worse = frame[(frame.k == 1) | (frame.rate_factor == 0.5)]  # 0.81, 0.45
    assert critical_of(only_worse).k < critical_of(frame).k


def test_what_is_open_or_has_no_progress():
    found = critical_of(branches({1: 1.0, 2: 0.95, 4: 0.9}))
    assert (found.status, found.bound) == ("open_above", 4)
    assert np.isnan(found.k)
    none = critical_of(branches({1: -1.0, 2: -1.0}))
    assert none.status == "no_progress"
    frame = branches({1: 1.0, 2: 0.9, 4: 0.5})
    frame.loc[frame.k > 1, "censored"] = True
    assert critical_of(frame).status == "censored"
    assert critical_of(branches({1: 1.0, 2: 0.9, 4: 0.5}, seeds=1)).status == "few_seeds"


def test_a_seed_without_one_of_the_branches_is_left_out():
    frame = branches({1: 1.0, 2: 0.9, 4: 0.5})
    gone = frame.drop(frame[(frame.seed == 3) & (frame.k == 4)].index)
    assert critical_of(gone).seeds == 4


@pytest.mark.parametrize("seeds", [3, 4, 8])
def test_the_interval_covers(seeds):
    random = np.random.default_rng(2)
    inside = []
    for _ in range(200):
        found = critical_of(branches({1: 1.0, 2: 0.95, 4: 0.9, 8: 0.7, 16: 0.3}, seeds, 0.015, random), draws=200)
        inside.append(found.low <= 4 * np.sqrt(2) <= found.high)
    # 95 % but for 200 repetitions (1.5 %), and for quantiles of 200 draws. Seen: 0.93 to 0.95;
    # a bootstrap over seeds has 0.70, 0.81 and 0.88.
    assert np.mean(inside) > 0.90


def test_a_divergence_of_one_seed_is_one_of_the_mean():
    frame = branches({1: 1.0, 2: 0.9, 4: 0.7}, seeds=4, scatter=0.01, random=np.random.default_rng(1))
    frame.loc[(frame.k == 4) & (frame.seed == 2), "loss_after"] = np.inf
    found = critical_of(frame)
    assert found.status == "ok" and 2 <= found.low <= found.k <= found.high <= 4


def test_a_row_per_branch_point():
    both = pd.concat([branches({1: 1.0, 2: 0.6}, point="u100"), branches({1: 1.0, 2: 0.9, 4: 0.7}, point="u900")])
    assert list(branched_critical(both).branch_point) == ["u100", "u900"]
