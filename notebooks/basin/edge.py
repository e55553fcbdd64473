"""python -m basin.edge OUT_DIR [--picture FILE.png]: the largest Hessian eigenvalue over training beside the limit of stability.

For sweeps whose probes ran at = ["every"]. Under full-batch gradient descent with rate η a quadratic with a curvature above 2/η (with
momentum β: (2 + 2β)/η) diverges; networks are seen to rise to that value and stay there (Cohen et al., ICLR 2021). LARS and LAMB have no
such limit, since their preconditioner moves with the gradient: they get no line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from . import stats
from .report import ReportError, nothing_in_home, save_picture
from .schema import ReadError
from .sweep import Sweep, open_sweep

SHARE = 1 / 3  # of the updates, the last of them, over which the level is taken


def limit(run: pd.Series) -> float:
    """The curvature above which plain or heavy-ball gradient descent with this run's rate grows; NaN for other methods."""
    if run.optimizer != "sgd":
        return np.nan
    momentum = float(run.get("sgd.momentum", 0.0))
    if momentum == 0:
        return 2 / run.learning_rate
    share = 1 + 2 * momentum if run.get("sgd.nesterov", False) else 1 - float(run.get("sgd.dampening", 0.0))
    return 2 * (1 + momentum) / share / run.learning_rate


def sharpness(sweep: Sweep, run_id: str) -> pd.DataFrame:
    """update, value, uncertainty (residual) and status of λ₁ at the start and at the cadence's checkpoints, in order."""
    p = sweep.probes
    mine = p[(p.run_id == run_id) & (p.probe == "top_eigenvalues") & (p.quantity == "lambda") & (p["index"] == 0)]
    mine = mine[mine.checkpoint.str.fullmatch(r"start|u\d+")]
    return mine.sort_values("update")[["update", "value", "uncertainty", "status"]]


def levels(sweep: Sweep) -> pd.DataFrame:
    """One row a setting: mean over seeds of (λ₁ over its limit, averaged over the last third), its standard error, and seeds."""
    rows = []
    for i in range(len(sweep.runs)):
        run = sweep.runs.iloc[i]
        found = sharpness(sweep, run.run_id)
        good = found[found.status == "ok"]
        late = good[good["update"] > (1 - SHARE) * run.updates]
        first = good["value"].iloc[0] if len(good) else np.nan
        rows.append({"config_id": run.config_id, "learning_rate": run.learning_rate, "limit": limit(run), "first": first,
                     "late": late["value"].mean() if len(late) else np.nan})  # fmt: skip
    table = pd.DataFrame(rows)
    out = []
    for _, group in table.groupby("config_id", sort=False):
        mean, error, n = stats.mean_and_error(group.late / group.limit)
        start, start_error, _ = stats.mean_and_error(group["first"] / group.limit)
        out.append({"learning_rate": group.learning_rate.iloc[0], "limit": group.limit.iloc[0], "level": mean, "error": error,
                    "start": start, "start_error": start_error, "seeds": n})  # fmt: skip
    return pd.DataFrame(out).sort_values("learning_rate", ignore_index=True)


def figure(sweep: Sweep):
    """λ₁ over updates, a colour a rate, a line a seed, with 2/η dashed; training loss below."""
    from . import style

    picture, axes = style.panels(2, 1, 6.4, 2.6, sharex=True)
    upper, lower = axes[0][0], axes[1][0]
    rates = sorted(sweep.runs.learning_rate.dropna().unique())
    colours = dict(zip(rates, [*style.COLOURS.values()] * len(rates)))
    for i in range(len(sweep.runs)):
        run = sweep.runs.iloc[i]
        found = sharpness(sweep, run.run_id)
        good = found["status"] == "ok"
        named = f"η = {run.learning_rate:g}"
        upper.plot(found["update"][good], found["value"][good], color=colours[run.learning_rate], linewidth=1, label=named)
        upper.plot(found["update"][~good], found["value"][~good], "o", color=colours[run.learning_rate], markerfacecolor="none")
        curve = sweep.curve(run.run_id)
        if len(curve):
            lower.plot(curve["update"], curve["loss"], color=colours[run.learning_rate], linewidth=0.8)
        if np.isfinite(limit(run)):
            upper.axhline(limit(run), color=colours[run.learning_rate], linestyle="--", linewidth=1)
    handles = dict(zip(upper.get_legend_handles_labels()[1], upper.get_legend_handles_labels()[0]))
    upper.legend(handles.values(), handles.keys(), loc="lower right", title="dashed: limit of stability")
    upper.set_ylabel("λ₁ of the training loss")
    upper.set_ylim(bottom=0)
    lower.set_yscale("log")
    lower.set_ylabel("training loss")
    lower.set_xlabel("update")
    return picture


def in_words(sweep: Sweep) -> list[str]:
    lines = []
    for row in levels(sweep).itertuples(index=False):
        lines.append(
            f"η = {row.learning_rate:g}, limit {row.limit:g}: λ₁ begins at {row.start:.2f} ± {row.start_error:.2f} of it; over the last third of "
            f"training {row.level:.3f} ± {row.error:.3f} (mean and standard error over {row.seeds} seeds)"
        )
    return lines


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.edge", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args(arguments)
    try:
        sweep = open_sweep(args.folder)
        if not any(len(sharpness(sweep, run_id)) for run_id in sweep.runs.run_id):
            raise ReadError(f'{args.folder}: no top_eigenvalues at checkpoints of a cadence (checkpoint_every, probes.at = ["every"])')
        print("\n".join(in_words(sweep)))
        if args.picture:
            with nothing_in_home():
                save_picture(figure, args.folder, args.picture)
    except (ReadError, ReportError) as error:
        print(f"basin.edge: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
