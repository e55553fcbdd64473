"""The limit of stability of a run's learning rate, and where the largest Hessian eigenvalue is to it over training.

Under full-batch gradient descent with rate η a quadratic with a curvature above 2/η (with momentum β: (2 + 2β)/η) diverges; networks are
seen to rise to that value and stay there (Cohen et al., ICLR 2021). η is the rate used: after `scaling_rule` and `effective_rate`. No
limit, but the reason: where the rate changes over the run, where `lr_factors` gives parameters rates of their own (the probe
`preconditioned_curvature` has a limit then), and for methods that don't step along gradients, as LARS and LAMB, whose preconditioner
moves with the gradient. A run has `sgd_noise_scale` where its method steps along gradients.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import stats

SHARE = 1 / 3  # of the updates, the last of them, over which the level is taken


def rate(run: pd.Series) -> float:
    """The largest rate of this run's schedule; NaN of a run that was never begun, and in a file from before it was recorded."""
    return float(run.get("peak_learning_rate", np.nan))


def rates_used(runs: pd.DataFrame) -> pd.Series:
    """rate() of each run; where that isn't recorded, the option `learning_rate`."""
    return runs.peak_learning_rate.fillna(runs.learning_rate) if "peak_learning_rate" in runs else runs.learning_rate


def named(run: pd.Series) -> str:
    """Its rate, in words."""
    if np.isnan(rate(run)):
        return f"learning_rate = {run.learning_rate:g}"
    return f"η = {rate(run):g}" if _holds(run) else f"η ≤ {rate(run):g}"


def _holds(run: pd.Series) -> bool:
    return run.get("schedule") == "constant" and run.get("warmup") == 0


def _is_list(run: pd.Series, option: str) -> bool:
    """Whether the option lists anything; empty or missing (a file from before the option) it does not."""
    value = run.get(option, "")
    return isinstance(value, str) and value not in ("", "[]")


def why_no_limit(run: pd.Series) -> str:
    """One reason; empty where there is a limit."""
    if np.isnan(rate(run)):
        return "the rate used is not recorded (peak_learning_rate)"
    if _is_list(run, "batch_milestones"):
        return "the batch size changes over the run (batch_milestones)"
    if np.isnan(run.get("sgd_noise_scale", np.nan)):
        return "steps are not along gradients"
    if not _holds(run):
        return f"the rate changes over the run (schedule {run.get('schedule')}, warmup {run.get('warmup')})"
    if _is_list(run, "learning_rate_factors"):
        return "parameters have rates of their own (lr_factors)"
    if run.get("lookahead_every", 0) > 0:
        return "Lookahead takes part of every step back (lookahead_every)"
    if run.get("perturbation.kind", "none") != "none":
        return "gradients are those of perturbed weights, or have a penalty's (perturbation.kind)"
    if run.get("parallel.mode", "one") != "one":
        return "gradients are of older weights (parallel.mode)"
    if run.get("parallel.shards", 0) > 0:
        return "weights are the mean of several runs (parallel.shards)"
    return ""


def limit(run: pd.Series) -> float:
    """The curvature above which plain or heavy-ball gradient descent with this run's rate grows; NaN where `why_no_limit` says why."""
    if why_no_limit(run):
        return np.nan
    momentum, nesterov, dampening = (run.get(f"{run.optimizer}.{key}", 0.0) for key in ("momentum", "nesterov", "dampening"))
    if momentum == 0:
        return 2 / rate(run)
    share = 1 + 2 * momentum if nesterov else 1 - dampening
    return 2 * (1 + momentum) / share / rate(run)


def sharpness(sweep: Sweep, run_id: str) -> pd.DataFrame:
    """update, value, uncertainty (residual) and status of λ₁ at the start and at the cadence's checkpoints, in order; as the study has
    it measured."""
    p = sweep.probes
    mine = p[
        p.study.astype(bool)
        & (p.run_id == run_id)
        & (p.probe == "top_eigenvalues")
        & (p.quantity == "lambda")
        & (p["index"] == 0)
    ]
    mine = mine[mine.checkpoint.str.fullmatch(r"start|u\d+")]
    return mine.sort_values("update")[["update", "value", "uncertainty", "status"]]


def levels(sweep: Sweep) -> pd.DataFrame:
    """One row per setting: mean over seeds of (λ₁ over its limit, averaged over the last third), its standard error, and seeds; `first` and
    `late` are means of λ₁ itself."""
    rows = []
    for i in range(len(sweep.runs)):
        run = sweep.runs.iloc[i]
        found = sharpness(sweep, run.run_id)
        good = found[found.status == "ok"]
        late = good[good["update"] > (1 - SHARE) * run.updates]
        first = good["value"].iloc[0] if len(good) else np.nan
        rows.append({"config_id": run.config_id, "learning_rate": run.learning_rate, "rate": rate(run), "named": named(run),
                     "limit": limit(run), "why": why_no_limit(run), "first": first,
                     "late": late["value"].mean() if len(late) else np.nan})  # fmt: skip
    table = pd.DataFrame(rows)
    out = []
    for _, group in table.groupby("config_id", sort=False):
        mean, error, _ = stats.mean_and_error(group.late / group.limit)
        start, start_error, _ = stats.mean_and_error(group["first"] / group.limit)
        late, _, n = stats.mean_and_error(group.late)
        same = {name: group[name].iloc[0] for name in ("learning_rate", "rate", "named", "limit", "why")}
        out.append({**same, "level": mean, "error": error, "start": start, "start_error": start_error, "late": late,
                    "first": stats.mean_and_error(group["first"])[0], "seeds": n})  # fmt: skip
    return pd.DataFrame(out).sort_values("learning_rate", ignore_index=True)
