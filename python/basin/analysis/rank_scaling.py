"""What more ranks bring, as `basin scaling` measured it, and a MODEL of the time to a target on many: the updates that a study needed,
times what an update takes.

    T(n, B) = S(B) (o + c B/n + s(n)),   S(B) = S_min (1 + B_crit (1/B − 1/N)₊),   s(n) = 2 (n − 1) k a + 2 (n − 1)/n G/b

n ranks, B examples in a batch, N in the training set; one rank takes c seconds for an example and o for an update; G bytes in k sums in
an update (buckets of gradients, the loss, whether to go on), a the latency and b the bandwidth of a ring's step. With k' = 1 − B_crit/N
and f = o + s(n) the least over B ≤ N is at B* = √(B_crit f n / (k' c)), where the parts of T that grow and fall with B are equal: more
ranks want larger batches, and more examples, E = S B.

What it leaves out: sums that go on behind the backward pass (T is too large), ranks that wait for the slowest and cores that share a memory
(too small), and whether S(B), measured at one target, keeps its form. Prices of updates come from few ranks and are extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from ..reader.scaling import RankTimes
from .critical_batch import MOST_LOST, CriticalBatch

PRODUCTS = "products"


@dataclass(frozen=True)
class UpdateCost:
    per_image: float  # c, seconds
    per_update: float  # o, seconds
    bytes: float  # G
    number: float  # k
    latency: float  # a, seconds
    bandwidth: float  # b, bytes per second

    def sums(self, ranks: float) -> float:
        return 2 * (ranks - 1) * self.number * self.latency + 2 * (ranks - 1) / ranks * self.bytes / self.bandwidth

    def seconds(self, batch: float, ranks: float) -> float:
        return self.per_update + self.per_image * batch / ranks + self.sums(ranks)


@dataclass(frozen=True)
class RingCost:
    latency: float
    bandwidth: float
    misfit: float  # the largest relative error over the sizes and numbers of ranks that were measured


def ring_cost(sums: pd.DataFrame) -> RingCost:
    """a and b of 2 (n - 1) a + 2 (n - 1)/n bytes/b, by least squares of relative errors, of medians over rounds."""
    medians = sums.groupby(["ranks", "bytes"], as_index=False).sum_seconds.median()
    n, size, took = (medians[c].to_numpy(float) for c in ("ranks", "bytes", "sum_seconds"))
    terms = np.stack([2 * (n - 1), 2 * (n - 1) / n * size], 1) / took[:, None]
    found, _ = nnls(terms, np.ones(len(took)))
    with np.errstate(divide="ignore"):
        return RingCost(float(found[0]), float(1 / found[1]), float(np.abs(terms @ found - 1).max()))


def update_costs(times: RankTimes) -> dict[str, UpdateCost]:
    """By optimiser: c and o of one rank's batch sizes, by least squares of relative errors; G and k as counted; a and b of the sums."""
    ring = ring_cost(times.sums)
    costs = {}
    for optimizer, rows in times.updates.groupby("optimizer", sort=False):
        alone = rows[rows.ranks == 1].groupby("batch_size").update_seconds.median()
        batch, took = alone.index.to_numpy(float), alone.to_numpy()
        (per_image, per_update), _ = nnls(np.stack([batch / took, 1 / took], 1), np.ones(len(took)))
        summed, number = (float(rows[rows.ranks > 1][f"rank_{what}_per_update"].median()) for what in ("bytes", "sums"))
        costs[str(optimizer)] = UpdateCost(float(per_image), float(per_update), summed, number, ring.latency, ring.bandwidth)
    return costs


def measured(times: RankTimes) -> pd.DataFrame:
    """One row per optimiser, kind of scaling and number of ranks, and of Hessian products: the rate (images, or products, per second),
    how many times that of one rank of the same round it is, medians and quartiles over rounds; the share of waiting, the bytes that are
    summed, and what went over the loopback interface over a ring's 2 (n - 1) times these. NaN where it wasn't counted."""
    updates = times.updates[times.updates.scaling != "small"].assign(rate=times.updates.images_per_second)
    products = times.products.assign(optimizer="", scaling=PRODUCTS, rate=1 / times.products.product_seconds)
    rows = []
    for (optimizer, scaling), mine in pd.concat([updates, products]).groupby(["optimizer", "scaling"], sort=False):
        alone = mine[mine.ranks == 1].set_index("round").rate
        for ranks, of_n in mine.groupby("ranks"):
            ratio = of_n.rate.to_numpy() / alone[of_n["round"]].to_numpy()
            rounds = of_n.reindex(columns=["rank_wait_share", "rank_bytes_per_update", "wire_bytes_per_update", "batch_size"])
            low, times_one, high = np.quantile(ratio, [0.25, 0.5, 0.75])
            summed = rounds.rank_bytes_per_update.median()
            rows.append({
                "optimizer": optimizer, "scaling": scaling, "ranks": int(ranks), "batch_size": rounds.batch_size.median(),
                "rate": of_n.rate.median(), "times_one": times_one, "low": low, "high": high, "rounds": len(of_n),
                "waiting": rounds.rank_wait_share.median(), "bytes": summed,
                "over_ring": rounds.wire_bytes_per_update.median() / (2 * (ranks - 1) * summed) if ranks > 1 else np.nan,
            })  # fmt: skip
    return pd.DataFrame(rows)


def check(costs: dict[str, UpdateCost], times: RankTimes) -> pd.DataFrame:
    """optimizer, ranks, scaling, batch, measured and predicted seconds of an update. Those of several ranks are what the model wasn't made
    from."""
    rows = []
    for (optimizer, ranks, scaling, batch), mine in times.updates.groupby(["optimizer", "ranks", "scaling", "batch_size"],
                                                                          sort=False):  # fmt: skip
        rows.append({"optimizer": optimizer, "ranks": ranks, "scaling": scaling, "batch": batch,
                     "seconds": mine.update_seconds.median(), "model": costs[optimizer].seconds(batch, ranks)})  # fmt: skip
    return pd.DataFrame(rows)


def best_batch(cost: UpdateCost, critical: float, examples: float, ranks: float) -> float:
    """B*, at least one example for each rank."""
    fixed, perfect = cost.per_update + cost.sums(ranks), 1 - critical / examples
    if perfect <= 0 or cost.per_image == 0:
        return examples
    return float(np.clip(np.sqrt(critical * fixed * ranks / (perfect * cost.per_image)), ranks, max(ranks, examples)))


def time_to_target(cost: UpdateCost, critical: float, least: float, examples: float, ranks: float) -> tuple[float, float, float]:
    """B*, updates and seconds there."""
    batch = best_batch(cost, critical, examples, ranks)
    updates = least * (1 + critical * max(0.0, 1 / batch - 1 / examples))
    return batch, updates, updates * cost.seconds(batch, ranks)


def scaling_table(cost: UpdateCost, law: CriticalBatch, ranks: list[int]) -> pd.DataFrame:
    """One row per number of ranks: B*, updates, examples and seconds at it, how many times faster than one rank, and the 95 % interval of
    that from the law's bootstrap: the price of an update is taken as exact. `fitted`: B* is among the batch sizes that the law was
    fitted to."""
    drawn = [] if law.lost > MOST_LOST else law.laws

    def seconds_on(n: int) -> list[float]:
        return [time_to_target(cost, critical, least, law.examples, n)[2] for critical, least in drawn]

    alone, drawn_alone = time_to_target(cost, law.fitted, law.updates, law.examples, 1)[2], seconds_on(1)
    smallest, largest = fitted_sizes(law)
    rows = []
    for n in ranks:
        batch, updates, seconds = time_to_target(cost, law.fitted, law.updates, law.examples, n)
        ratios = [one / many for one, many in zip(drawn_alone, seconds_on(n), strict=True)]
        low, high = np.quantile(ratios, [0.025, 0.975]) if ratios else (np.nan, np.nan)
        rows.append({"ranks": n, "batch": batch, "updates": updates, "examples": updates * batch, "seconds": seconds,
                     "faster": alone / seconds, "low": low, "high": high, "sums": cost.sums(n) / cost.seconds(batch, n),
                     "fitted": smallest <= batch <= largest})  # fmt: skip
    return pd.DataFrame(rows)


def fitted_sizes(law: CriticalBatch) -> tuple[float, float]:
    """The smallest and the largest batch size that the law was fitted to."""
    sizes = law.sizes.batch[law.sizes.status == "ok"]
    return float(sizes.min()), float(sizes.max())
