"""python -m basin.pages.summary OUT [--into README.md]: what a sweep shows, as a list in Markdown in which every number says
what it is of."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from ..analysis import stats
from ..analysis.matched import CellAnswer, Pooled, answers, cell, comparable, fixed_budget, lost_seeds, pooled
from ..analysis.names import optimizers_of, protocol_name
from ..analysis.number_text import interval, points
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .paste import PasteError, paste
from .phrases import cell_names, contrast_text, left_out_text, share_text, shift_text

PASSAGE = "summary"


def summary(sweep: Sweep, margin: float = stats.MARGIN) -> str:
    found = answers(sweep, margin)
    together = pooled(sweep, found, margin)
    lines = _mean_lines(sweep, together, margin) if together else []
    lines += _cell_lines(found) + _cost_line(sweep) + _one_seed_line(sweep)
    return "\n".join(f"* {line}" for line in lines)


def _mean_lines(sweep: Sweep, p: Pooled, margin: float) -> list[str]:
    """The means over cells, with the cells' names and those that are not in them."""
    budget = fixed_budget(sweep.runs)
    share = f", {share_text(p.share)} of that drop" if p.share.resolved else ""
    lines = [
        f"Mean over {cell_names(p.cells)} ({len(p.seeds)} seeds, each cell against its own reference): at "
        f"{protocol_name(budget or '')} the drop is {points(p.drop.value)} points {interval(*p.drop.interval())}.",
        f"The same cells at matched training loss: {points(p.gap.value)} points {interval(*p.gap.interval())}{share} "
        f"({shift_text(p.losses, p.shift)}). {_pooled_verdict(p, margin)}",
    ]
    return lines + ([f"Not in these means: {left_out_text(p)}."] if p.left_out else [])


def _pooled_verdict(p: Pooled, margin: float) -> str:
    resolved = p.drop_verdict.word == "gap" and p.drop_verdict.direction > 0
    if not resolved:
        return "No drop at the fixed budget is resolved on average."
    if p.gap_verdict.word == "undecided":
        mostly = p.share.resolved and p.share.high < 0.5
        rest = f"Whether anything within ±{100 * margin:g} points remains is undecided"
        return rest + (f"; at least {100 * (1 - p.share.high):.0f} % of the drop is **missing optimisation**." if mostly else ".")
    if p.gap_verdict.direction > 0:
        return f"**On average a gap remains** ({p.gap_verdict.text})."
    return f"**On average the drop is missing optimisation**: {p.gap_verdict.text}."


def _cell_lines(found: list[CellAnswer]) -> list[str]:
    """Single cells at matched loss by their verdicts; the figures of those for which something is claimed."""
    by_verdict: dict[tuple[str, str], list[CellAnswer]] = {}
    for a in found:
        if a.gap and a.gap.verdict and len(a.gap.seeds) >= stats.VERDICT_SEEDS:
            by_verdict.setdefault((a.gap.verdict.word, a.gap.verdict.text), []).append(a)
    parts = []
    for (word, verdict), cells in by_verdict.items():
        claimed = word != "undecided"
        parts.append(f"{verdict}: " + (", ".join(f"{cell_names([a])} ({contrast_text(a.gap)} points)" for a in cells) if claimed
                                       else cell_names(cells)))  # fmt: skip
    return [f"Single cells at matched loss with at least {stats.VERDICT_SEEDS} seeds: {'; '.join(parts)}."] if parts else []


def _cost_line(sweep: Sweep) -> list[str]:
    """Updates to the target at the largest batch size, and who missed it."""
    runs = sweep.runs[sweep.runs.protocol == "B"]
    if runs.empty:
        return []
    largest = int(runs.batch_size.max())
    parts = []
    for optimizer in optimizers_of(runs, sweep.names):
        mine = cell(runs, "B", optimizer, largest)
        good = mine[comparable(mine)]
        text = sweep.names.label("optimizers", optimizer)
        text += f" {np.mean(good.steps_to_target.astype(float)):.0f}" if len(good) else ""
        lost = lost_seeds(mine)
        parts.append(text + (f" ({lost.text})" if lost else ""))
    return [f"Updates to the target loss at batch {largest:,}, mean over the seeds that reached it: {', '.join(parts)}."]


def _one_seed_line(sweep: Sweep) -> list[str]:
    runs = sweep.runs
    seeds = runs.groupby("batch_size").apply(
        lambda r: r.groupby(["protocol", "optimizer"]).seed.nunique().max(), include_groups=False
    )
    one = [f"{int(size):,}" for size, n in seeds.items() if n == 1]
    return [f"Batch sizes with one seed ({', '.join(one)}) are drawn half filled, and nothing is claimed of them."] if one else []


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m basin.pages.summary", description="What a sweep shows, as a list in Markdown."
    )
    parser.add_argument("folder", help="a sweep's folder or its sweep.h5")
    parser.add_argument(
        "--margin", type=float, default=100 * stats.MARGIN, help="points of accuracy within which there is no gap"
    )
    parser.add_argument(
        "--into", help=f"replace what stands between <!-- {PASSAGE} --> and <!-- end of {PASSAGE} --> in this file"
    )
    options = parser.parse_args(arguments)
    try:
        margin = stats.margin_of(options.margin)
        content = summary(open_sweep(options.folder), margin)
        paste(options.into, PASSAGE, content) if options.into else print(content)
    except (PasteError, ReadError, stats.MarginError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
