"""The model of the time to a target on many ranks: numbers by hand, the best batch by looking at all."""

import numpy as np
import pandas as pd
import pytest

from basin.analysis.critical_batch import CriticalBatch
from basin.analysis.rank_scaling import UpdateCost, best_batch, check, scaling_table, time_to_target, update_cost

COST = UpdateCost(per_image=1e-3, per_update=4e-3, bytes=1e6, latency=50e-6, bandwidth=1e9)


def test_an_update_by_hand():
    assert COST.sums(1) == 0
    # Three steps each way; each rank sends 2 * 3/4 of a megabyte at 1 GB/s.
    assert COST.sums(4) == pytest.approx(6 * 50e-6 + 1.5e-3)
    assert COST.seconds(256, 4) == pytest.approx(4e-3 + 64e-3 + 1.8e-3)


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
    assert best_batch(COST, 4.0, 5000.0, 1024) == 1024  # an example for each rank at least
    assert best_batch(COST, 6000.0, 5000.0, 8) == 5000  # beyond N all sizes are the same
    assert best_batch(COST, 4000.0, 5000.0, 1024) == 5000


def measured_with(cost):
    def run(ranks):
        found = {"strong": 2048 / cost.seconds(2048, ranks), "weak": 256 * ranks / cost.seconds(256 * ranks, ranks)}
        return {**found, "small": 16 / cost.seconds(16, 1)} if ranks == 1 else {**found, "bytes_per_update": cost.bytes}

    sums = {"latency": cost.latency, "bandwidth": cost.bandwidth}
    return {"strong": 2048, "weak": 256, "small": 16, "runs": {"1": [run(1)] * 3, "2": [run(2)] * 3}, "sums": {"2": sums}}


def test_what_was_measured_comes_back():
    measured = measured_with(COST)
    found = update_cost(measured)
    assert found.per_image == pytest.approx(COST.per_image)
    assert found.per_update == pytest.approx(COST.per_update)
    rows = check(found, measured)
    assert list(zip(rows.ranks, rows.scaling, rows.batch, strict=True)) == [
        (1, "strong", 2048),
        (1, "weak", 256),
        (1, "small", 16),
        (2, "strong", 2048),
        (2, "weak", 512),
    ]
    assert rows.model.to_numpy() == pytest.approx(rows.seconds.to_numpy())


def test_the_table_compares_with_one_rank():
    law = CriticalBatch(5000.0, pd.DataFrame(), 400.0, 300.0, 500.0, "ok", np.nan, updates=50.0, fitted=400.0)
    table = scaling_table(COST, law, [1, 16])
    alone, many = (time_to_target(COST, 400.0, 50.0, 5000.0, n) for n in (1, 16))
    assert table.faster.tolist() == pytest.approx([1, alone[2] / many[2]])
    assert (
        table.batch[1] > table.batch[0] and table.examples[1] > table.examples[0]
    )  # more ranks want larger batches, and more examples
    assert table.sums[1] == pytest.approx(COST.sums(16) / COST.seconds(many[0], 16))
    assert table.low.isna().all()  # no bootstrap, no interval


def test_the_interval_is_that_of_the_laws_drawn():
    drawn = [(300.0, 60.0), (400.0, 50.0), (500.0, 40.0)]
    law = CriticalBatch(5000.0, pd.DataFrame(), 400.0, 300.0, 500.0, "ok", np.nan, updates=50.0, fitted=400.0,
                        laws=np.array(drawn))  # fmt: skip
    table = scaling_table(COST, law, [16])
    ratios = [time_to_target(COST, *one, 5000.0, 1)[2] / time_to_target(COST, *one, 5000.0, 16)[2] for one in drawn]
    assert [table.low[0], table.high[0]] == pytest.approx(np.quantile(ratios, [0.025, 0.975]), rel=1e-3)
    assert table.low[0] < table.faster[0] < table.high[0]
