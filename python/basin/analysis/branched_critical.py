"""The critical batch size along training, from branches (Merrill et al. 2025, arXiv 2505.23971).

From one checkpoint, branches with batches of k b over the same examples. With L_0 the loss before and L_k the loss after, progress is
(L_0 − L_k)/(L_0 − L_1), of means over the same seeds; of each k the best of its rate factors counts. Critical is the largest k
whose progress is at least 0.8, interpolated in log k to the next; k = 1 has progress 1. The interval has means of all branches drawn from
the multivariate t(S − 1) of S seeds, with their covariance (a bootstrap over three seeds covers 70 %), and the choice of the rate made
again.

NaN with a status: `no_progress` (the loss of k = 1 didn't fall over these seeds), `open_above` (the largest k still has 0.8: k is at least
the bound), `censored` (no branch of k > 1 was long enough), `few_seeds` (a value, and no interval: by its uncertainty k = 1 may make
no progress).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from .branches import branches_of

PROGRESS = 0.8
MOST_LOST = 0.05  # of draws without progress
LEAST_UPDATES = 30  # of a branch: a shorter window is censored
BRANCHES = ["branch_point", "k", "seed", "rate_factor", "loss_before", "loss_after", "censored"]
ABOUT = ["optimizer", "batch_size", "train_loss", "averaged"]


@dataclass(frozen=True)
class BranchedCritical:
    k: float
    low: float
    high: float
    status: str
    bound: float  # 95 %, where it is open
    seeds: int


def branch_table(sweep: Sweep) -> pd.DataFrame:
    """The columns BRANCHES, optimizer, batch_size (the parent's), train_loss (at the branch point) and averaged, of all branches that
    change nothing but batch and rate and see as many examples as those with k = 1 from their point. The loss at the end is that of
    the averaged weights where all branches of a point have it; after a divergence it is infinite."""
    rows = branches_of(sweep)
    rows = rows[(rows.anneal == 0) & (rows.differs == "")]
    found = []
    for (config, at), group in rows.groupby(["parent_config", "at"]):
        window = group.examples[(group.k == 1) & (group.status != "diverged")].median()
        # One batch more or less: windows are whole updates.
        mine = group[((group.examples - window).abs() < group.batch_size) | (group.status == "diverged")]
        if np.isnan(window):
            continue
        averaged = bool(mine.averaged.notna().all())
        found.append(pd.DataFrame({
            "branch_point": f"{config} {at}", "k": mine.k, "seed": mine.seed, "rate_factor": mine.rate_factor,
            "loss_before": mine.loss_before, "loss_after": mine.averaged if averaged else mine.loss_after,
            "censored": window / mine.batch_size < LEAST_UPDATES, "optimizer": mine.optimizer, "batch_size": mine.parent_batch,
            "train_loss": mine.loss_before.mean(), "averaged": averaged,
        }))  # fmt: skip
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*BRANCHES, *ABOUT])


def critical_sizes(sweep: Sweep) -> pd.DataFrame:
    """One row per optimiser and branch point: the columns of BranchedCritical, and train_loss, batch, low, high, bound in examples."""
    found = []
    for (optimizer, batch), group in branch_table(sweep).groupby(["optimizer", "batch_size"]):
        points = branched_critical(group)
        about = group.groupby("branch_point")[["train_loss", "averaged"]].first()
        scaled = {
            column: points[source] * batch
            for column, source in (("batch", "k"), ("low", "low"), ("high", "high"), ("bound", "bound"))
        }
        found.append(points.assign(optimizer=optimizer, **scaled).join(about, on="branch_point"))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["optimizer", "branch_point", "batch"])


def branched_critical(branches: pd.DataFrame, draws: int = 1000, seed: int = 1) -> pd.DataFrame:
    """One row per branch point: the columns of BranchedCritical. Branches that are `censored` (too short a window) are left out."""
    rows = [
        {"branch_point": point, **critical_of(group, draws, seed).__dict__} for point, group in branches.groupby("branch_point")
    ]
    return pd.DataFrame(rows)


def critical_of(branches: pd.DataFrame, draws: int = 1000, seed: int = 1) -> BranchedCritical:
    usable = branches[~branches.censored.astype(bool)]
    kept = _paired(usable)
    seeds = kept.seed.unique()
    if not (kept.k > 1).any():
        return BranchedCritical(np.nan, np.nan, np.nan, "censored", np.nan, len(seeds))
    gains = kept.assign(gain=kept.loss_before - kept.loss_after).pivot_table(
        index="seed", columns=["k", "rate_factor"], values="gain"
    )
    table, ks = gains.to_numpy(), gains.columns.get_level_values("k").to_numpy(float)
    k, status = _critical(table.mean(0), ks)
    if status == "no_progress":
        return BranchedCritical(np.nan, np.nan, np.nan, status, np.nan, len(seeds))
    if len(seeds) < 2:
        known = (k, "few_seeds", np.nan) if status == "ok" else (np.nan, status, k)
        return BranchedCritical(known[0], np.nan, np.nan, known[1], known[2], len(seeds))
    random = np.random.default_rng(seed)
    drawn = [_critical(means, ks) for means in _uncertain_means(table, draws, random)]
    values = np.array([np.inf if how == "open_above" else value for value, how in drawn])
    lost = np.isnan(values).mean()
    values = values[~np.isnan(values)]
    if status == "ok" and lost > MOST_LOST:
        return BranchedCritical(k, np.nan, np.nan, "few_seeds", np.nan, len(seeds))
    if status == "open_above":
        return BranchedCritical(np.nan, np.nan, np.nan, status, _lower(values, 0.05, k), len(seeds))
    low, high = (float(np.quantile(values, q, method="inverted_cdf")) for q in (0.025, 0.975))
    return BranchedCritical(k, low, high, status, np.nan, len(seeds))


def _uncertain_means(table: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    """Means over the rows of `table`, as far as these say: [draw, column]. One after a divergence is −∞ in all draws."""
    seeds = len(table)
    mean = table.mean(0)
    finite = np.isfinite(mean)
    apart = np.zeros_like(table)
    apart[:, finite] = table[:, finite] - mean[finite]
    scale = np.sqrt((seeds - 1) / random.chisquare(seeds - 1, draws))
    return mean + scale[:, None] * random.standard_normal((draws, seeds)) @ apart / np.sqrt(seeds * (seeds - 1))


def _lower(values: np.ndarray, level: float, largest: float) -> float:
    return min(largest, float(np.quantile(values, level, method="inverted_cdf")))


def _paired(branches: pd.DataFrame) -> pd.DataFrame:
    """Seeds that have every branch that any has; k whose branches all seeds lack are gone already."""
    wanted = branches[["k", "rate_factor"]].drop_duplicates()
    counts = branches.groupby("seed").size()
    return branches[branches.seed.isin(counts[counts == len(wanted)].index)]


def _critical(gains: np.ndarray, ks: np.ndarray) -> tuple[float, str]:
    """The critical k by mean gains of the branches. The largest k and `open_above` where that still makes the progress."""
    base = gains[ks == 1].max() if (ks == 1).any() else np.nan
    if not base > 0:
        return np.nan, "no_progress"
    sizes = np.unique(ks)
    progress = np.array([gains[ks == k].max() / base for k in sizes])
    last = int(np.flatnonzero(progress >= PROGRESS)[-1])
    if last == len(sizes) - 1:
        return float(sizes[-1]), "open_above"
    share = (progress[last] - PROGRESS) / (progress[last] - progress[last + 1])
    logs = np.log(sizes)
    return float(np.exp(logs[last] + share * (logs[last + 1] - logs[last]))), "ok"
