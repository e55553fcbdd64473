"""Runs that begin from a checkpoint of another run of the sweep: next to each its parent, and what it changed."""

from __future__ import annotations

import copy
from collections.abc import Collection

import numpy as np
import pandas as pd

from ..reader.program import in_identity
from ..reader.sweep import ASKED_FOR, Sweep
from .arms import FROM, WATCHED, value_text

ENDED = ("finished", "target_not_reached", "diverged")
# Options in which a branch may differ from its parent though it changes nothing else: where it begins and ends, what is looked at on
# the way, and the rate and the batch, which have columns of their own.
NO_CHANGE = (
    *WATCHED, "seed", "protocol", "epochs", "updates", "target_loss", "max_gradients", "check_every", "batch_size", "learning_rate",
    "scaling_rule", "base_batch", FROM, "branch.at", "branch.anneal", "branch.updates",
)  # fmt: skip
COLUMNS = [
    "run_id", "config_id", "seed", "status", "optimizer", "batch_size", "k", "rate_factor", "anneal", "at", "updates", "examples",
    "loss_before", "loss_after", "averaged", "differs", "parent", "parent_config", "parent_batch", "parent_rate",
]  # fmt: skip


def branches_of(sweep: Sweep, parents: Collection[str] | None = None) -> pd.DataFrame:
    """One row per branch that has ended and whose parent is a run of the sweep (or one of `parents`), with the parent's batch size, peak
    rate and setting.

    `k` and `rate_factor`: batch size and peak rate over the parent's. `updates` and `examples`: the branch's own. `loss_before` and
    `loss_after`: over the whole training set, infinite after a divergence; `averaged`: of the averaged weights, NaN without them.
    `differs`: the other options that were changed, in words."""
    runs = sweep.runs
    if FROM not in runs:
        return pd.DataFrame(columns=COLUMNS)
    known = {str(row.run_id): i for i, row in enumerate(runs.itertuples())}
    mine = runs[runs[FROM].isin(known if parents is None else parents) & runs.status.isin(ENDED)]
    rows = [_row(sweep, branch, runs.iloc[known[str(branch[FROM])]]) for _, branch in mine.iterrows()]
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(sweep: Sweep, branch: pd.Series, parent: pd.Series) -> dict:
    diverged = branch.status == "diverged"
    return {
        "run_id": branch.run_id, "config_id": branch.config_id, "seed": int(branch.seed), "status": branch.status,
        "optimizer": branch.optimizer, "batch_size": int(branch.batch_size), "k": float(branch.batch_size / parent.batch_size),
        # Six digits: a factor of a rate is no exact number.
        "rate_factor": float(f"{peak_rate(branch) / peak_rate(parent):.6g}"), "anneal": _number(branch, "branch.anneal", 0.0),
        "at": str(branch.get("branch.at", "")), "updates": _number(branch, "updates") - _number(branch, "branch_update"),
        "examples": _number(branch, "examples") - _number(branch, "branch_examples"),
        "loss_before": _number(branch, "branch_train_loss"), "loss_after": np.inf if diverged else _number(branch, "train_loss"),
        "averaged": np.inf if diverged else _number(branch, "average_train_loss"), "differs": _differs(sweep, branch, parent),
        "parent": parent.run_id, "parent_config": parent.config_id, "parent_batch": int(parent.batch_size),
        "parent_rate": peak_rate(parent),
    }  # fmt: skip


def peak_rate(run: pd.Series) -> float:
    """After the scaling rule, where the file has it."""
    peak = _number(run, "peak_learning_rate")
    return peak if np.isfinite(peak) else float(run.learning_rate)


def _number(run: pd.Series, column: str, missing: float = np.nan) -> float:
    value = pd.to_numeric(run.get(column, np.nan), errors="coerce")
    return float(value) if np.isfinite(value) else missing


def _differs(sweep: Sweep, branch: pd.Series, parent: pd.Series) -> str:
    """Options at rest stay with their values; those of another optimiser are said by its name. What is outside a run's identity, as the
    place of its data, changes nothing."""
    texts = []
    for option in sweep.options:
        mine, theirs = value_text(branch[option]), value_text(parent[option])
        if option == "branch.optimizer":
            theirs = "kept"
        elif option == "branch.stream":
            theirs = "continued"
        elif not (mine and theirs):
            continue
        if mine and mine != theirs and option.removeprefix(ASKED_FOR) not in NO_CHANGE and in_identity(option):
            texts.append(f"{option}={mine}")
    return ", ".join(texts)


def without_branches(sweep: Sweep) -> Sweep:
    """The sweep's other runs, with their probes. The sweep itself where it has no branch of its own, or nothing else."""
    if FROM not in sweep.runs:
        return sweep
    branch = sweep.runs[FROM].isin(sweep.runs.run_id)
    if not branch.any() or branch.all():
        return sweep
    rest = copy.copy(sweep)
    rest.runs = sweep.runs[~branch].reset_index(drop=True)
    rest.probes = sweep.probes[sweep.probes.run_id.isin(rest.runs.run_id)].reset_index(drop=True)
    return rest
