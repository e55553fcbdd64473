"""Trials of S(B) out of a sweep or a tuning: the rate, the seed, and the interval that the updates to the target lie in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..reader.fault import ReadError
from ..reader.program import in_identity
from ..reader.sweep import Sweep, option_text
from ..reader.tune import Tuning
from .arms import NO_ARM, plain_runs, value_text
from .critical_batch import TRIALS
from .stability_limit import rates_used

ENDED = ("finished", "target_not_reached")  # a run that diverged has no updates to the target at any cap


def trials_of_sweep(sweep: Sweep, optimizer: str) -> pd.DataFrame:
    """One per run of protocol B and a plain setting: arms have laws of their own. The check before the one that stopped a run is read off
    its evaluations; where they aren't stored, it is at most `check_every` / 4 examples earlier, the cadence near the target."""
    runs = plain_runs(sweep)
    runs = runs[(runs.protocol == "B") & (runs.optimizer == optimizer) & runs.status.isin(ENDED)]
    rows = []
    for (_, run), rate in zip(runs.iterrows(), rates_used(runs)):  # as used, after a scaling rule
        low, high = _interval(sweep, run)
        rows.append((run.batch_size, rate, run.seed, low, high))
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


def trials_of_tuning(tuning: Tuning, sweep: Sweep, optimizer: str) -> pd.DataFrame:
    """One per tuning run of protocol B with the whole budget and a plain setting of the sweep. tune.h5 has image gradients, not updates:
    divided by min(B, N) and by the gradients of an example, which is exact to the batches that go across the end of an epoch."""
    plain = plain_runs(sweep)
    plain = plain[(plain.protocol == "B") & (plain.optimizer == optimizer)]
    if plain.empty:
        return pd.DataFrame(columns=TRIALS)
    refuse_another_task(tuning, sweep.path, plain)
    rules = tuning.option("scaling_rule", "none")
    if rules is None or (rules != "none").any():
        raise ReadError(f"{tuning.path}: scaling_rule changes the rates that were tried: S(B) is of rates as used")
    examples, check_every = int(plain["dataset.n_train"].iloc[0]), int(plain.check_every.iloc[0])
    runs = tuning.runs
    runs = runs[(runs.protocol == "B") & (runs.optimizer == optimizer) & (runs.budget == 1) & runs.status.isin(ENDED)]
    runs = runs[_is_plain(runs, plain[[o for o in sweep.options if o in runs and o not in NO_ARM]])]
    batch = runs.batch_size.to_numpy(float)
    passes = _passes(tuning, optimizer)[runs.index].to_numpy(float) if len(runs) else 1.0
    updates = np.round(runs.gradients.to_numpy(float) / np.minimum(batch, examples) / passes)
    reached = (runs.status == "finished").to_numpy()
    cadence = np.ceil(check_every / 4 / batch)
    return pd.DataFrame({"batch": batch, "rate": runs.learning_rate.to_numpy(float), "seed": runs.seed.to_numpy(),
                         "low": np.where(reached, np.maximum(0, updates - cadence), updates),
                         "high": np.where(reached, updates, np.inf)})  # fmt: skip


def refuse_another_task(tuning: Tuning, path: Path, runs: pd.DataFrame) -> None:
    """A target or data other than those of the sweep's `runs`, as far as tune.h5 says."""
    keys = [key for key in runs if key == "target_loss" or (key.startswith("data.") and in_identity(key))]
    for key in keys:
        known = tuning.option(key)
        if known is None:
            continue
        there, here = ({value_text(option_text(v)) for v in values} for values in (known[tuning.runs.protocol == "B"], runs[key]))
        if not there <= here:
            both = " and ".join(f"{', '.join(sorted(texts))} in {where}" for texts, where in ((there, tuning.path), (here, path)))
            raise ReadError(f"{key} is {both}: S(B) is of one task")


def _is_plain(runs: pd.DataFrame, plain: pd.DataFrame) -> pd.Series:
    """Which have, in all that groups and candidates differ in, a value of the sweep's plain settings. One at rest is empty."""
    same = pd.Series(True, index=runs.index)
    for option in plain:
        texts = runs[option].map(value_text)
        same &= texts.isin(plain[option].map(value_text)) | (texts == "")
    return same


def _passes(tuning: Tuning, optimizer: str) -> pd.Series:
    """Gradients of an example in an update, by run: two under a perturbation, and twice those where noise has a pass of its own."""
    defaults = {"perturbation.kind": "none", "noise.batch": 0, "noise.control": "none", "noise.preconditioner": "noisy"}
    found = {key: tuning.option(key, default) for key, default in defaults.items()}
    unknown = [key for key, values in found.items() if values is None]
    if optimizer == "lbfgs":
        raise ReadError(f"{tuning.path}: lbfgs computes more gradients than a batch has examples: no updates follow from them")
    if unknown:
        raise ReadError(f"{tuning.path}: a rule of its study sets {unknown[0]}: no updates follow from gradients")
    kind, batch, control, preconditioner = (values for values in found.values() if values is not None)
    apart = (batch > 0) & ((control != "none") | (preconditioner == "clean"))
    return (1 + (kind != "none")) * (1 + apart)
