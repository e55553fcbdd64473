"""The model of the time to a target on many ranks: numbers by hand, the best batch by looking at all."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from basin.analysis.critical_batch import CriticalBatch
from basin.analysis.rank_scaling import (
    UpdateCost,
    best_batch,
    check,
    measured,
    ring_cost,
    scaling_table,
    time_to_target,
    update_costs,
)
from basin.reader.scaling import load_scaling
from rank_times import write_scaling

COST = UpdateCost(per_image=1e-3, per_update=4e-3, bytes=1e6, number=3, latency=50e-6, bandwidth=1e9)


def test_an_update_by_hand():
    assert COST.sums(1) == 0
    # Three sums of three steps each way; each rank sends 2 * 3/4 of a megabyte at 1 GB/s.
    assert COST.sums(4) == pytest.approx(3 * 6 * 50e-6 + 1.5e-3)
    assert COST.seconds(256, 4) == pytest.approx(4e-3 + 64e-3 + 2.4e-3)


@pytest.mark.parametrize("ranks", [1, 4, 64, 1024])
def test_no_other_batch_is_faster(ranks):
    critical, least, examples = 400.0, 50.0, 5000.0
    batches = np.arange(ranks, examples + 1)
    times = (
        least
        * (1 + critical * (1 / batches - 1 / examples))
        * (COST.per_update + COST.per_image * batches / ranks + COST.sums(ranks))
    )
    batch, updates, seconds = time_to_target(COST, critical, least, examples, ranks)
    assert batch == pytest.approx(batches[times.argmin()], abs=1)
    assert seconds <= times.min() * (1 + 1e-9)
    assert updates == pytest.approx(least * (1 + critical * (1 / batch - 1 / examples)))


def test_the_limits_of_the_batch():
    assert best_batch(COST, 1.0, 5000.0, 1024) == 1024  # an example for each rank at least
    assert best_batch(COST, 6000.0, 5000.0, 8) == 5000  # beyond N all sizes are the same
    assert best_batch(COST, 4000.0, 5000.0, 1024) == 5000
    assert best_batch(replace(COST, per_image=0.0), 400.0, 5000.0, 8) == 5000  # examples that cost nothing


def test_what_was_measured_comes_back(tmp_path):
    """Whatever the machine's speed in a round: medians over rounds give c and o of the middle one, ratios are exact."""
    times = load_scaling(write_scaling(tmp_path / "scaling.h5", COST, optimizers=("sgd", "lamb"), wobble=0.5), verify=False)
    found = update_costs(times)
    assert list(found) == ["sgd", "lamb"]
    for cost in found.values():
        assert cost.per_image == pytest.approx(1.5 * COST.per_image)
        assert cost.per_update == pytest.approx(1.5 * COST.per_update)
        assert (cost.bytes, cost.number) == (COST.bytes, COST.number)
        assert (cost.latency, cost.bandwidth) == pytest.approx((COST.latency, COST.bandwidth))
    assert ring_cost(times.sums).misfit < 1e-9
    rows = check(found, times)
    alone = rows[rows.ranks == 1]
    assert alone.model.to_numpy() == pytest.approx(alone.seconds.to_numpy())
    assert set(zip(rows.ranks, rows.scaling, rows.batch, strict=True)) == {
        (1, "strong", 2048), (1, "weak", 512), (1, "small", 16),
        (2, "strong", 2048), (2, "weak", 1024), (2, "small", 32), (4, "strong", 2048), (4, "weak", 2048), (4, "small", 64),
    }  # fmt: skip


def test_rates_are_compared_within_rounds(tmp_path):
    table = measured(load_scaling(write_scaling(tmp_path / "scaling.h5", COST, wobble=0.5), verify=False))
    strong = table[table.scaling == "strong"].set_index("ranks")
    assert strong.rate[2] == pytest.approx(2048 / COST.seconds(2048, 2) / 1.5)
    for n in (2, 4):
        expected = COST.seconds(2048, 1) / COST.seconds(2048, n)
        assert strong.loc[n, ["times_one", "low", "high"]].tolist() == pytest.approx([expected] * 3)
        assert strong.waiting[n] == 0.25 and strong.bytes[n] == COST.bytes
        assert strong.over_ring[n] == pytest.approx(1.1)
    assert np.isnan(strong.over_ring[1]) and strong.rounds[1] == 3
    weak = table[table.scaling == "weak"].set_index("ranks")
    assert weak.times_one[4] == pytest.approx(4 * COST.seconds(512, 1) / COST.seconds(2048, 4))
    products = table[table.scaling == "products"].set_index("ranks")
    assert products.times_one.tolist() == pytest.approx([1, 2, 4])
    assert "small" not in set(table.scaling)


def law(**more):
    sizes = pd.DataFrame({"batch": [64.0, 512.0, 4096.0], "status": ["ok", "ok", "no_best"]})
    return CriticalBatch(5000.0, sizes, 400.0, 300.0, 500.0, "ok", np.nan, updates=50.0, fitted=400.0, **more)


def test_the_table_compares_with_one_rank():
    table = scaling_table(COST, law(), [1, 16])
    alone, many = (time_to_target(COST, 400.0, 50.0, 5000.0, n) for n in (1, 16))
    assert table.faster.tolist() == pytest.approx([1, alone[2] / many[2]])
    assert (
        table.batch[1] > table.batch[0] and table.examples[1] > table.examples[0]
    )  # more ranks want larger batches, and more examples
    assert table.sums[1] == pytest.approx(COST.sums(16) / COST.seconds(many[0], 16))
    assert table.low.isna().all()  # no bootstrap, no interval
    assert table.batch[0] < 64 and table.batch[1] < 512 and table.fitted.tolist() == [False, True]


def test_the_interval_is_that_of_the_laws_drawn():
    drawn = [(300.0, 60.0), (400.0, 50.0), (500.0, 40.0)]
    table = scaling_table(COST, law(laws=np.array(drawn)), [16])
    ratios = [time_to_target(COST, *one, 5000.0, 1)[2] / time_to_target(COST, *one, 5000.0, 16)[2] for one in drawn]
    assert [table.low[0], table.high[0]] == pytest.approx(np.quantile(ratios, [0.025, 0.975]), rel=1e-3)
    assert table.low[0] < table.faster[0] < table.high[0]
