"""The mean over the cells of one batch size that have both comparisons: one question put once, and the reasons not to answer it by one
number. The size is the largest with two cells or more: a mean over sizes would say nothing of any of them.

No verdict is given over the mean where cells differ from one another at matched loss (a pair whose difference is resolved at 20 %
over the number of pairs: a verdict withheld in vain costs less than one that hides a cell), or where a reference is bad: beaten at
the fixed budget by a larger batch of its own optimiser, or by the reference of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import stats
from .arms import ARM, slim_with_arms
from .cell_answers import CellAnswer, common_seeds, ends_apart, runs_at, tables_at
from .matched import Contrast, cell, comparable, fixed_budget, reference_of
from .names import optimizers_of

DOUBT = 0.2  # that alike cells have a pair called different


@dataclass
class Pooled:
    """`left_out`: the other cells and why they are not in it. `ends`: mean training loss of the references at the fixed budget and at
    matched loss. `withheld`: why there is no verdict over the mean; empty: there is one."""

    cells: list[CellAnswer]
    left_out: list[tuple[CellAnswer, str]]
    seeds: list[int]
    drop: stats.Difference
    gap: stats.Difference
    drop_verdict: stats.Verdict
    gap_verdict: stats.Verdict
    share: stats.Share | None
    losses: tuple[float, float]  # mean training loss at matched loss: references, cells
    shift: float
    ends: tuple[float, float]
    withheld: str

    @property
    def apart(self) -> bool:
        return ends_apart(self.ends)


def pooled(sweep: Sweep, found: list[CellAnswer], margin: float = stats.MARGIN) -> Pooled | None:
    """Each cell weighs the same; seeds are those that all of them share. Cells of which outcomes took seeds are left out, since a mean
    over survivors proves nothing. None for fewer than two cells or three seeds."""
    left_out = [(a, why) for a in found if (why := _why_not_pooled(a))]
    cells = [a for a in found if not _why_not_pooled(a)]
    size = max((a.batch_size for a in cells if sum(b.batch_size == a.batch_size for b in cells) > 1), default=0)
    left_out += [(a, "another batch size") for a in cells if a.batch_size != size]
    cells = [a for a in cells if a.batch_size == size]
    seeds = sorted(set.intersection(*(set(common_seeds(a)) for a in cells))) if cells else []
    if len(cells) < 2 or len(seeds) < stats.VERDICT_SEEDS:
        return None
    drops, gaps = [a.drop for a in cells if a.drop], [a.gap for a in cells if a.gap]
    gap_tables = [tables_at(sweep, c, seeds) for c in gaps]
    drop, gap = _mean_arms([tables_at(sweep, c, seeds) for c in drops]), _mean_arms(gap_tables)
    one, two = stats.difference(*drop), stats.difference(*gap)
    losses = tuple(np.mean([_losses(sweep, c, seeds) for c in gaps], axis=0).tolist())
    shift = float(np.mean([c.slope * np.diff(_losses(sweep, c, seeds))[0] for c in gaps]))
    ends = (float(np.mean([_losses(sweep, c, seeds)[0] for c in drops])), losses[0])
    share = None if ends_apart(ends) or any(a.apart for a in cells) else stats.share(drop, gap)
    withheld = "; ".join(filter(None, (_cells_that_differ(cells, gap_tables), *bad_references(sweep, found).values())))
    return Pooled(cells, left_out, seeds, one, two, stats.verdict(one, margin), stats.verdict(two, margin), share, losses, shift, ends,
                  withheld)  # fmt: skip


def _cells_that_differ(cells: list[CellAnswer], tables: list[tuple[np.ndarray, np.ndarray]]) -> str:
    """The pair that is furthest apart for its error, where that is resolved over all pairs."""
    pairs = list(combinations(range(len(cells)), 2))
    apart = []
    for i, j in pairs:
        d = stats.difference(tables[i][0] - tables[i][1], tables[j][0] - tables[j][1])
        low, high = d.interval(1 - DOUBT / len(pairs))
        if low > 0 or high < 0:
            apart.append((abs(d.value) / d.standard_error, d, i, j))
    if not apart:
        return ""
    _, d, i, j = max(apart, key=lambda found: found[0])
    i, j, d = (i, j, d) if d.value > 0 else (j, i, replace(d, value=-d.value))
    low, high = d.interval()
    words = f"{100 * d.value:.1f} points [{100 * low:.1f}, {100 * high:.1f}]".replace("-", "−")
    return f"cells differ at matched loss, {cell_name(cells[i])} has {words} more left than {cell_name(cells[j])}"


def cell_name(a: CellAnswer) -> str:
    return f"{a.label} at {a.batch_size:,}" + (f" ({a.arm})" if a.arm else "")


def bad_references(sweep: Sweep, found: list[CellAnswer]) -> dict[str, str]:
    """By optimiser what is wrong with its reference, in words that follow a colon."""
    names = sweep.names
    bad: dict[str, str] = {}
    for a in found:
        better = (
            a.drop is not None and a.drop.verdict is not None and a.drop.verdict.word == "gap" and a.drop.verdict.direction < 0
        )
        if better and a.drop and not a.arm:
            who = a.drop.reference.optimizer
            name = f"{names.label('optimizers', who)} at {a.drop.reference.batch_size:,}"
            bad.setdefault(who, f"the reference {name} is beaten at the fixed budget by {cell_name(a)}")
    return bad | {who: text for who, text in beaten_by_others(sweep).items() if who not in bad}


def beaten_by_others(sweep: Sweep) -> dict[str, str]:
    """Own references against each other at the fixed budget, at 5 % over their pairs."""
    runs, budget, names = slim_with_arms(sweep), fixed_budget(sweep.runs), sweep.names
    if budget is None or runs.batch_size.isna().all():
        return {}
    own = [o for o in optimizers_of(runs, names) if reference_of(sweep, o).own]
    size = int(runs.batch_size.min())
    counted = {
        o: part[comparable(part)] for o in own if not (part := cell(runs, budget, o, size, _plain(runs, budget, o, size))).empty
    }
    pairs = list(combinations(counted, 2))
    bad: dict[str, str] = {}
    for pair in pairs:
        one, two, seeds = stats.paired_runs(*(counted[o] for o in pair))
        tables = (sweep.correct(one), sweep.correct(two)) if len(seeds) >= stats.VERDICT_SEEDS else (None, None)
        if tables[0] is None or tables[1] is None or tables[0].shape != tables[1].shape:
            continue
        d = stats.difference(*tables)
        low, high = d.interval(1 - 0.05 / len(pairs))
        if low <= 0 <= high:
            continue
        better, worse = pair if low > 0 else pair[::-1]
        words = f"by {names.label('optimizers', better)}'s, {100 * abs(d.value):.1f} points"
        bad.setdefault(
            worse, f"the reference {names.label('optimizers', worse)} at {size:,} is beaten at the fixed budget {words}"
        )
    return bad


def _plain(runs: pd.DataFrame, budget: str, optimizer: str, size: int) -> str:
    arms = set(cell(runs, budget, optimizer, size)[ARM])
    return "" if "" in arms else next(iter(sorted(arms)), "")


def _why_not_pooled(a: CellAnswer) -> str:
    if a.arm:
        return "an arm of its own"
    for c in (a.gap, a.drop):
        if c is None:
            return "not run under both protocols"
        if c.estimate is None:
            return c.reason
        if c.survivors:
            return "; ".join(lost.text for lost in c.lost if lost.chosen)
    n = len(common_seeds(a))
    return "" if n >= stats.VERDICT_SEEDS else f"{n} seed{'s' * (n != 1)}"


def _mean_arms(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.mean([p[0] for p in pairs], axis=0), np.mean([p[1] for p in pairs], axis=0)


def _losses(sweep: Sweep, c: Contrast, seeds: list[int]) -> tuple[float, float]:
    loss = pd.Series(sweep.runs.train_loss.to_numpy(float), index=sweep.runs.run_id)
    one, two = runs_at(c, seeds)
    return float(loss[one].mean()), float(loss[two].mean())
