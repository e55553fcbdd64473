"""Trials of S(B) out of a sweep or a tuning: the rate, the seed, and the interval that the updates to the target lie in."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from ..reader.tune import Tuning
from .critical_batch import TRIALS

ENDED = ("finished", "target_not_reached")  # a run that diverged has no updates to the target at any cap


def trials_of_sweep(sweep: Sweep, optimizer: str) -> pd.DataFrame:
    """One per run of protocol B. The check before the one that stopped a run is read off its evaluations; where they aren't stored,
    it is at most `check_every` / 4 examples earlier, the cadence near the target."""
    runs = sweep.runs[(sweep.runs.protocol == "B") & (sweep.runs.optimizer == optimizer) & sweep.runs.status.isin(ENDED)]
    rows = []
    for _, run in runs.iterrows():
        low, high = _interval(sweep, run)
        rows.append((run.batch_size, run.learning_rate, run.seed, low, high))
    return pd.DataFrame(rows, columns=TRIALS)


def _interval(sweep: Sweep, run: pd.Series) -> tuple[float, float]:
    if run.status != "finished":
        return float(run.updates), np.inf
    stop = float(run.steps_to_target)
    curve = sweep.curve(run.run_id, "eval")
    before = curve["update"][curve["update"] < stop] if "update" in curve else pd.Series(dtype=float)
    if len(before):
        return float(before.max()), stop
    return max(0.0, stop - np.ceil(run.check_every / 4 / run.batch_size)), stop


def trials_of_tuning(tuning: Tuning, optimizer: str, examples: int, check_every: int) -> pd.DataFrame:
    """One per tuning run of protocol B with the whole budget. tune.h5 has image gradients, not updates: divided by min(B, N), which is
    exact to the batches that go across the end of an epoch."""
    runs = tuning.runs
    runs = runs[(runs.protocol == "B") & (runs.optimizer == optimizer) & (runs.budget == 1) & runs.status.isin(ENDED)]
    batch = np.minimum(runs.batch_size.to_numpy(float), examples)
    updates = np.round(runs.gradients.to_numpy(float) / batch)
    reached = (runs.status == "finished").to_numpy()
    cadence = np.ceil(check_every / 4 / runs.batch_size.to_numpy(float))
    return pd.DataFrame({"batch": runs.batch_size.to_numpy(float), "rate": runs.learning_rate.to_numpy(float), "seed": runs.seed.to_numpy(),
                         "low": np.where(reached, np.maximum(0, updates - cadence), updates),
                         "high": np.where(reached, updates, np.inf)})  # fmt: skip
