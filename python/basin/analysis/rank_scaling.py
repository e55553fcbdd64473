"""A MODEL of the time to a target on many ranks: the updates that a study needed, times what an update takes.

    T(n, B) = S(B) (o + c B/n + s(n)),   S(B) = S_min (1 + B_crit (1/B − 1/N)₊),   s(n) = 2 (n − 1) a + 2 (n − 1)/n G/b

n ranks, B examples in a batch, N in the training set; one rank takes c seconds for an example and o for an update; G bytes of gradients,
a the latency and b the bandwidth of a ring's step. With k = 1 − B_crit/N and f = o + s(n) the least over B ≤ N is at
B* = √(B_crit f n / (k c)), where the parts of T that grow and fall with B are equal: more ranks want larger batches, and more examples,
E = S B.

What it leaves out: sums that go on behind the backward pass (T is too large), ranks that wait for the slowest and cores that share a memory
(too small), and whether S(B), measured at one target, keeps its form. Prices of updates come from few ranks and are extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from .critical_batch import MOST_LOST, CriticalBatch

SIZES = ("strong", "weak", "small")  # batch sizes of one rank in bench/scaling.py


@dataclass(frozen=True)
class UpdateCost:
    per_image: float  # c, seconds
    per_update: float  # o, seconds
    bytes: float  # G
    latency: float  # a, seconds
    bandwidth: float  # b, bytes per second

    def sums(self, ranks: float) -> float:
        return 2 * (ranks - 1) * self.latency + 2 * (ranks - 1) / ranks * self.bytes / self.bandwidth

    def seconds(self, batch: float, ranks: float) -> float:
        return self.per_update + self.per_image * batch / ranks + self.sums(ranks)


def update_cost(measured: dict[str, Any]) -> UpdateCost:
    """From what bench/scaling.py writes: c and o of one rank's three batch sizes, by least squares of relative errors; the rest of two."""
    batch = np.array([measured[size] for size in SIZES], float)
    took = np.array([median(measured[size] / run[size] for run in measured["runs"]["1"]) for size in SIZES])
    (per_image, per_update), _ = nnls(np.stack([batch / took, 1 / took], 1), np.ones(len(SIZES)))
    sums = measured["sums"]["2"]
    return UpdateCost(float(per_image), float(per_update), measured["runs"]["2"][0]["bytes_per_update"], max(0.0, sums["latency"]),
                      sums["bandwidth"])  # fmt: skip


def check(cost: UpdateCost, measured: dict[str, Any]) -> pd.DataFrame:
    """ranks, scaling, batch, measured and predicted seconds of an update: where the model can be compared with what it wasn't made from."""
    rows = []
    for name, of_n in measured["runs"].items():
        ranks = int(name)
        sizes = [("strong", measured["strong"]), ("weak", measured["weak"] * ranks)]
        for scaling, batch in sizes + [("small", measured["small"])] * (ranks == 1):
            took = median(batch / run[scaling] for run in of_n)
            rows.append(
                {"ranks": ranks, "scaling": scaling, "batch": batch, "seconds": took, "model": cost.seconds(batch, ranks)}
            )
    return pd.DataFrame(rows)


def best_batch(cost: UpdateCost, critical: float, examples: float, ranks: float) -> float:
    """B*, at least one example for each rank."""
    fixed, perfect = cost.per_update + cost.sums(ranks), 1 - critical / examples
    if perfect <= 0:
        return examples
    return float(np.clip(np.sqrt(critical * fixed * ranks / (perfect * cost.per_image)), ranks, max(ranks, examples)))


def time_to_target(cost: UpdateCost, critical: float, least: float, examples: float, ranks: float) -> tuple[float, float, float]:
    """B*, updates and seconds there."""
    batch = best_batch(cost, critical, examples, ranks)
    updates = least * (1 + critical * max(0.0, 1 / batch - 1 / examples))
    return batch, updates, updates * cost.seconds(batch, ranks)


def scaling_table(cost: UpdateCost, law: CriticalBatch, ranks: list[int]) -> pd.DataFrame:
    """One row per number of ranks: B*, updates, examples and seconds at it, how many times faster than one rank, and the 95 % interval of
    that from the law's bootstrap: the price of an update is taken as exact."""
    drawn = [] if law.lost > MOST_LOST else law.laws

    def seconds_on(n: int) -> list[float]:
        return [time_to_target(cost, critical, least, law.examples, n)[2] for critical, least in drawn]

    alone, drawn_alone = time_to_target(cost, law.fitted, law.updates, law.examples, 1)[2], seconds_on(1)
    rows = []
    for n in ranks:
        batch, updates, seconds = time_to_target(cost, law.fitted, law.updates, law.examples, n)
        ratios = [one / many for one, many in zip(drawn_alone, seconds_on(n), strict=True)]
        low, high = np.quantile(ratios, [0.025, 0.975]) if ratios else (np.nan, np.nan)
        rows.append({"ranks": n, "batch": batch, "updates": updates, "examples": updates * batch, "seconds": seconds,
                     "faster": alone / seconds, "low": low, "high": high,
                     "sums": cost.sums(n) / cost.seconds(batch, n)})  # fmt: skip
    return pd.DataFrame(rows)
