"""Each optimiser against the first, SGD where it is there: its accuracy at the same batch size, and its drop less the first's.

Plain settings alone, each with its own rate. Differences are the optimiser's accuracy less SGD's; a drop is that from the smallest
batch size, so "drop less" is negative where the optimiser loses less. Paired by seed and test image. Verdicts at 5 % over the number
of lines of the protocol that have enough seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import stats
from .arms import ARM, slim_with_arms
from .effects import Effect, crossed
from .matched import cell, comparable, lost_seeds, settings
from .names import optimizers_of, protocols_of


@dataclass
class Against:
    """`effect`: optimiser less the first. `drop`: its drop less the first's. None where there is nothing to compare."""

    protocol: str
    optimizer: str
    first: str
    batch_size: int
    effect: Effect | None
    drop: Effect | None
    lost: str
    verdict: str = ""


def compared(sweep: Sweep) -> list[Against]:
    runs = slim_with_arms(sweep)
    runs = runs[runs.batch_size.notna() & (runs[ARM] == "")]
    order = optimizers_of(runs, sweep.names)
    if len(order) < 2:
        return []
    found = []
    for protocol in protocols_of(runs):
        sizes = sorted(int(b) for b in runs[runs.protocol == protocol].batch_size.unique())
        rows = [_line(sweep, runs, protocol, order[0], other, size, sizes[0]) for other in order[1:] for size in sizes]
        rows = [row for row in rows if row.effect is not None]
        enough = [row for row in rows if row.effect and row.effect.seeds >= stats.VERDICT_SEEDS]
        for row in rows:
            row.verdict = _verdict(row, len(enough))
        found += rows
    return found


def _line(sweep: Sweep, runs: pd.DataFrame, protocol: str, first: str, other: str, size: int, smallest: int) -> Against:
    parts = [cell(runs, protocol, o, b) for o, b in ((other, size), (first, size), (other, smallest), (first, smallest))]
    lost = [f"{sweep.names.label('optimizers', o)}: {found.text}" for o, part in zip((other, first), parts)
            if (found := lost_seeds(part)) and found.chosen]  # fmt: skip
    effect = _effect(sweep, parts[:2], (1, -1))
    drop = _effect(sweep, parts, (-1, 1, 1, -1)) if size != smallest else None
    return Against(protocol, other, first, size, effect, drop, "; ".join(lost))


def _effect(sweep: Sweep, parts: list[pd.DataFrame], weights: tuple[int, ...]) -> Effect | None:
    good = [part[comparable(part)] for part in parts]
    if any(part.empty or settings(part) > 1 for part in good):
        return None
    seeds = sorted(set.intersection(*(set(part.seed) for part in good)))
    if not seeds:
        return None
    tables = [sweep.correct(list(part.set_index("seed").run_id[seeds])) for part in good]
    there = [t for t in tables if t is not None]
    if len(there) < len(tables) or len({t.shape for t in there}) > 1:
        return None
    return crossed(np.sum([w * t for w, t in zip(weights, there)], axis=0))


def _verdict(row: Against, count: int) -> str:
    if row.effect is None or row.effect.seeds < stats.VERDICT_SEEDS:
        return "undecided (fewer than 3 seeds)"
    if row.lost:
        return f"undecided ({row.lost})"
    low, high = row.effect.interval(1 - 0.05 / max(1, count))
    return "better" if low > 0 else "a gap" if high < 0 else "undecided"
