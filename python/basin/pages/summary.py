"""python -m basin.pages.summary OUT [--into README.md]: what a sweep shows, as a list in Markdown in which every number says
what it is of."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from ..analysis import stats
from ..analysis.arms import with_arms
from ..analysis.branches import without_branches
from ..analysis.cell_answers import CellAnswer, answers
from ..analysis.matched import cell, comparable, fixed_budget, lost_seeds
from ..analysis.names import optimizers_of, protocol_name
from ..analysis.number_text import interval, points
from ..analysis.optimizers_compared import Against, compared
from ..analysis.pooled import Pooled, pooled
from ..reader.sweep import Sweep, open_sweep
from .command import command, publish, run, takes_page
from .phrases import cell_names, contrast_text, distance_text, effect_text, left_out_text, share_text, shift_text, test_loss_text
from .report_text import SPEED

PASSAGE = "summary"


def summary(sweep: Sweep, margin: float = stats.MARGIN) -> str:
    found = answers(sweep, margin)
    together = pooled(sweep, found, margin)
    lines = _mean_lines(sweep, together, margin) if together else []
    lines += _cell_lines(found) + _test_loss_line(found) + _against_lines(sweep) + _cost_line(sweep) + _one_seed_line(sweep)
    return "\n".join(f"* {line}" for line in lines)


def _mean_lines(sweep: Sweep, p: Pooled, margin: float) -> list[str]:
    """The means over cells, with the cells' names and those that are not in them."""
    budget = fixed_budget(sweep.runs)
    share = f", {share_text(p.share)} of that drop" if p.share and p.share.resolved else ""
    lines = [
        f"Mean over {cell_names(p.cells)} ({len(p.seeds)} seeds, each cell against its own reference): at "
        f"{protocol_name(budget or '')} the drop is {points(p.drop.value)} points {interval(*p.drop.interval())}.",
        f"The same cells at matched training loss: {points(p.gap.value)} points {interval(*p.gap.interval())}{share} "
        f"({shift_text(p.losses, p.shift)}). {_pooled_verdict(p, margin)}",
    ]
    if p.apart:
        lines.append(distance_text(p.ends).capitalize() + ".")
    return lines + ([f"Not in these means: {left_out_text(p)}."] if p.left_out else [])


def _pooled_verdict(p: Pooled, margin: float) -> str:
    if p.withheld:
        return f"**No verdict is given over this mean**: {p.withheld}."
    resolved = p.drop_verdict.word == "gap" and p.drop_verdict.direction > 0
    if not resolved:
        return "No drop at the fixed budget is resolved on average."
    if p.gap_verdict.word == "undecided":
        mostly = p.share is not None and p.share.resolved and p.share.high < 0.5
        rest = f"Whether anything within ±{100 * margin:g} points remains is undecided"
        return rest + (
            f"; at least {100 * (1 - p.share.high):.0f} % of the drop is **missing optimisation**." if mostly and p.share else "."
        )
    if p.gap_verdict.direction > 0:
        return f"**On average a gap remains** ({p.gap_verdict.text})."
    if p.apart:
        return f"**At this loss**, on average, {p.gap_verdict.text}; nothing was compared at the loss where the drop is."
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
    count = sum(len(cells) for cells in by_verdict.values())
    corrected = f", verdicts at 5 %/{count}" if count > 1 else ""
    start = f"Single cells at matched loss with at least {stats.VERDICT_SEEDS} seeds{corrected}"
    return [f"{start}: {'; '.join(parts)}."] if parts else []


def _test_loss_line(found: list[CellAnswer]) -> list[str]:
    """Where the difference of test losses at matched training loss excludes 0."""
    gaps = [(a, a.gap.test_loss) for a in found if a.gap and a.gap.test_loss and not a.gap.survivors]
    known = [(a, e) for a, e in gaps if e.seeds >= stats.VERDICT_SEEDS]
    told = [a for a, e in known if excludes_zero(e.interval(1 - 0.05 / len(known)))]
    if not told:
        return []
    parts = ", ".join(f"{cell_names([a])} {test_loss_text(a.gap)}" for a in told)
    return [
        f"Test loss at matched training loss, cell less reference in nats, where it differs (5 %/{len(known)} each): {parts}."
    ]


def excludes_zero(ends: tuple[float, float]) -> bool:
    return ends[0] > 0 or ends[1] < 0


def _against_lines(sweep: Sweep) -> list[str]:
    """Other optimisers against the first at the same batch size, where there are seeds enough."""
    by_protocol: dict[str, list[Against]] = {}
    for row in compared(sweep):
        if row.effect and row.effect.seeds >= stats.VERDICT_SEEDS:
            by_protocol.setdefault(row.protocol, []).append(row)
    lines = []
    for protocol, rows in by_protocol.items():
        first = sweep.names.label("optimizers", rows[0].first)
        what = f"Accuracy less that of {first} at the same batch size, at {protocol_name(protocol)}"
        start = f"{what} (in brackets: how much smaller the drop is)"
        lines.append(f"{start}: {'; '.join(_against(sweep, row) for row in rows)}.")
    return lines


def _against(sweep: Sweep, row: Against) -> str:
    text = f"{sweep.names.label('optimizers', row.optimizer)} at {row.batch_size:,} {effect_text(row.effect)}"
    smaller = f" ({effect_text(row.drop.reversed())})" if row.drop else ""
    return text + smaller + (f", {row.lost}" if row.lost else "")


def _cost_line(sweep: Sweep) -> list[str]:
    """Updates to the target at the largest batch size, and who missed it."""
    runs = with_arms(sweep)
    runs = runs[runs.protocol == "B"]
    if runs.empty:
        return []
    largest = int(runs.batch_size.max())
    parts = []
    for optimizer in optimizers_of(runs, sweep.names):
        mine = cell(runs, "B", optimizer, largest, "")
        good = mine[comparable(mine)]
        text = sweep.names.label("optimizers", optimizer)
        text += f" {np.mean(good.steps_to_target.astype(float)):.0f}" if len(good) else ""
        lost = lost_seeds(mine)
        parts.append(text + (f" ({lost.text})" if lost else ""))
    return [f"Updates to the target loss at batch {largest:,}, mean over the seeds that reached it: {', '.join(parts)}. {SPEED}"]


def _one_seed_line(sweep: Sweep) -> list[str]:
    runs = sweep.runs
    seeds = runs.groupby("batch_size").apply(
        lambda r: r.groupby(["protocol", "optimizer"]).seed.nunique().max(), include_groups=False
    )
    one = [f"{int(size):,}" for size, n in seeds.items() if n == 1]
    return [f"Batch sizes with one seed ({', '.join(one)}) are drawn half filled, and nothing is claimed of them."] if one else []


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.summary", __doc__)
    parser.add_argument("folder", help="a sweep's folder or its sweep.h5")
    parser.add_argument(
        "--margin", type=float, default=100 * stats.MARGIN, help="points of accuracy within which there is no gap"
    )
    takes_page(parser, PASSAGE)

    def work(options: argparse.Namespace) -> None:
        margin = stats.margin_of(options.margin)
        publish(options, summary(without_branches(open_sweep(options.folder)), margin))

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
