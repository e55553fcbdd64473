"""What each cell of a sweep says: optimiser, batch size and arm against the small-batch reference, at each fixed budget and at matched
training loss.

Several cells are compared at once: verdicts at 5 % over the number of cells that have enough seeds, by protocol. Intervals are 95 %
each.

A share of the drop is given only where the reference ends at the same training loss at the fixed budget and at matched loss: else
part of the drop was made further down, where nothing was compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import stats
from .arms import ARM, arms_of, slim_with_arms
from .matched import SAME_LOSS, Contrast, cell, contrast, fixed_budgets, reference_of, verdict_of
from .names import optimizers_of


@dataclass
class CellAnswer:
    """The drop at a fixed budget, what remains at matched loss, and the ratio. `label`: what the optimiser is called; `arm`: in what the
    cell differs from the plain setting. `more_drops`: at further fixed budgets, by protocol."""

    optimizer: str
    label: str
    batch_size: int
    drop: Contrast | None  # protocol A
    gap: Contrast | None  # protocol B
    share: stats.Share | None
    arm: str = ""
    more_drops: dict[str, Contrast] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[float, float]:
        """Mean training loss of the reference at the fixed budget and at matched loss; NaN where it isn't known."""
        return (self.drop.losses[0], self.gap.losses[0]) if self.drop and self.gap else (np.nan, np.nan)

    @property
    def apart(self) -> bool:
        """Whether drop and comparison end at different losses."""
        return ends_apart(self.ends)


def ends_apart(ends: tuple[float, float]) -> bool:
    return bool(abs(ends[0] - ends[1]) >= SAME_LOSS)


def answers(sweep: Sweep, margin: float = stats.MARGIN) -> list[CellAnswer]:
    """One for every cell beyond the reference, in order of optimiser, batch size and arm."""
    runs = slim_with_arms(sweep)
    budgets = fixed_budgets(runs)
    protocols = [*budgets, *(["B"] if (runs.protocol == "B").any() else [])]
    cells = runs[runs.protocol.isin(protocols) & runs.batch_size.notna()]
    order, arms = optimizers_of(cells, sweep.names), arms_of(cells)
    there = cells[["optimizer", "batch_size", ARM]].drop_duplicates().itertuples(index=False, name=None)
    found = []
    for optimizer, batch_size, arm in sorted(there, key=lambda c: (order.index(c[0]), c[1], arms.index(c[2]))):
        reference = reference_of(sweep, optimizer)
        if (
            batch_size == reference.batch_size
            and optimizer == reference.optimizer
            and _is_reference(cells, optimizer, batch_size, arm)
        ):
            continue
        # A protocol that other cells of the same arm were run under is asked of this one too, and so are all of a plain cell.
        mine = [p for p in protocols if arm == "" or not cell(cells, p, optimizer, batch_size, arm).empty]
        by = {p: contrast(sweep, p, optimizer, int(batch_size), margin, arm, runs) for p in mine}
        drop, gap = by.get(budgets[0] if budgets else ""), by.get("B")
        more = {p: by[p] for p in budgets[1:] if p in by}
        label = sweep.names.label("optimizers", optimizer)
        found.append(CellAnswer(optimizer, label, int(batch_size), drop, gap, None, arm, more))
    _judge_together(found, margin)
    for a in found:
        a.share = _share(sweep, a)
    return found


def _is_reference(cells: pd.DataFrame, optimizer: str, batch_size: int, arm: str) -> bool:
    """The plain setting, or the only one, of the reference's batch size; all where none is plain."""
    arms = set(cells[(cells.optimizer == optimizer) & (cells.batch_size == batch_size)][ARM])
    return arm == "" or "" not in arms


def _judge_together(found: list[CellAnswer], margin: float) -> None:
    """Verdicts that take into account how many cells are compared under the same protocol."""
    contrasts = [c for a in found for c in (a.drop, a.gap, *a.more_drops.values()) if c and c.estimate]
    for c in contrasts:
        c.verdict = verdict_of(c, margin, comparisons(contrasts, c.protocol))


def comparisons(contrasts: list[Contrast], protocol: str) -> int:
    """At least one."""
    return max(1, sum(c.protocol == protocol and len(c.seeds) >= stats.VERDICT_SEEDS for c in contrasts))


def common_seeds(a: CellAnswer) -> list[int]:
    """Seeds that the cell and its reference have under both protocols."""
    if not a.drop or not a.gap or a.drop.estimate is None or a.gap.estimate is None:
        return []
    return sorted(set(a.drop.seeds) & set(a.gap.seeds))


def runs_at(c: Contrast, seeds: list[int]) -> tuple[list[str], list[str]]:
    at = [c.seeds.index(s) for s in seeds]
    return [c.reference_runs[i] for i in at], [c.runs[i] for i in at]


def tables_at(sweep: Sweep, c: Contrast, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
    one, two = (sweep.correct(runs) for runs in runs_at(c, seeds))
    if one is None or two is None:
        raise ValueError("outcomes on test images are missing")  # a contrast with an estimate has them
    return one, two


def _share(sweep: Sweep, a: CellAnswer) -> stats.Share | None:
    seeds = common_seeds(a)
    if not a.drop or not a.gap or len(seeds) < stats.VERDICT_SEEDS or a.drop.survivors or a.gap.survivors or a.apart:
        return None
    return stats.share(tables_at(sweep, a.drop, seeds), tables_at(sweep, a.gap, seeds))
