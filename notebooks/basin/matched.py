"""Which runs may be compared, with which reference, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import stats
from .sweep import Sweep

CELL = ["protocol", "optimizer", "batch_size"]


def comparable(runs: pd.DataFrame) -> pd.Series:
    """Finished runs; under protocol B those that stopped at the target without falling below 0.8 of it."""
    finished = runs.status == "finished"
    if "overshot" not in runs:
        return finished
    overshot = runs.overshot.map(lambda v: isinstance(v, (bool, np.bool_, int, float)) and v == 1)
    return finished & ~((runs.protocol == "B") & overshot)


def fixed_budget(runs: pd.DataFrame) -> str | None:
    """The protocol with a fixed budget that the drop is read from: epochs where there is one, else updates."""
    return next((p for p in ("A-epochs", "A-updates") if (runs.protocol == p).any()), None)


def cell(runs: pd.DataFrame, protocol: str, optimizer: str, batch_size: int) -> pd.DataFrame:
    """All runs of one cell. More than one setting (config_id) in a cell can't be pooled: then none is taken."""
    found = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer) & (runs.batch_size == batch_size)]
    return found if found.config_id.nunique() <= 1 else found.iloc[:0]


@dataclass(frozen=True)
class Reference:
    optimizer: str
    batch_size: int
    own: bool  # the optimiser's own small batch; else another optimiser's


def reference_of(runs: pd.DataFrame, optimizer: str) -> Reference | None:
    """The smallest batch size of the sweep under the same optimiser, or under SGD (else the first) where it has none."""
    known = runs[runs.batch_size.notna()]
    if known.empty:
        return None
    smallest = int(known.batch_size.min())
    optimizers = sorted(known[known.batch_size == smallest].optimizer.unique())
    chosen = optimizer if optimizer in optimizers else "sgd" if "sgd" in optimizers else optimizers[0]
    return Reference(chosen, smallest, chosen == optimizer)


@dataclass
class Contrast:
    """The reference less one cell under one protocol. `estimate` is None where there is nothing to compare, `reason` says why."""

    protocol: str
    optimizer: str
    batch_size: int
    reference: Reference
    estimate: stats.Difference | None
    verdict: stats.Verdict | None
    reason: str
    seeds: list[int]
    reference_runs: list[str]
    runs: list[str]


def contrast(sweep: Sweep, protocol: str, optimizer: str, batch_size: int, margin: float = stats.MARGIN) -> Contrast:
    reference = reference_of(sweep.runs, optimizer)
    nothing = Contrast(protocol, optimizer, batch_size, reference, None, None, "", [], [], [])
    all_arm = cell(sweep.runs, protocol, optimizer, batch_size)
    all_reference = cell(sweep.runs, protocol, reference.optimizer, reference.batch_size)
    arm, base = all_arm[comparable(all_arm)], all_reference[comparable(all_reference)]
    if arm.empty:
        nothing.reason = endings(all_arm)
        return nothing
    if base.empty:
        nothing.reason = f"the reference has no comparable run ({endings(all_reference)})"
        return nothing
    one, two, seeds = stats.paired_runs(base, arm)
    tables = (sweep.correct(one), sweep.correct(two)) if seeds else (None, None)
    if not seeds or tables[0] is None or tables[1] is None or tables[0].shape != tables[1].shape:
        nothing.reason = "no seed in common with the reference" if not seeds else "outcomes on test images are missing"
        return nothing
    estimate = stats.difference(*tables)
    return Contrast(protocol, optimizer, batch_size, reference, estimate, stats.verdict(estimate, margin), "", seeds, one, two)


def endings(runs: pd.DataFrame) -> str:
    """"2 target_not_reached, 1 diverged"; overshot runs under their own name."""
    if runs.empty:
        return "not run"
    words = runs.status.where(~((runs.status == "finished") & ~comparable(runs)), "overshot")
    return ", ".join(f"{n} {word}" for word, n in words.value_counts().items())


@dataclass
class CellAnswer:
    """What one batch size and optimiser says: the drop at a fixed budget, what remains at matched loss, and the ratio."""

    optimizer: str
    batch_size: int
    drop: Contrast | None  # protocol A
    gap: Contrast | None  # protocol B
    share: stats.Share | None


def answers(sweep: Sweep, margin: float = stats.MARGIN) -> list[CellAnswer]:
    """One for every cell beyond the reference, in order of optimiser and batch size."""
    runs, budget = sweep.runs, fixed_budget(sweep.runs)
    protocols = [p for p in (budget, "B") if p and (runs.protocol == p).any()]
    cells = runs[runs.protocol.isin(protocols)][["optimizer", "batch_size"]].drop_duplicates()
    found = []
    for optimizer, batch_size in sorted(cells.itertuples(index=False, name=None), key=lambda c: (optimizer_order(c[0]), c[1])):
        reference = reference_of(runs, optimizer)
        if batch_size == reference.batch_size and optimizer == reference.optimizer:
            continue
        by = {p: contrast(sweep, p, optimizer, int(batch_size), margin) for p in protocols}
        drop, gap = by.get(budget), by.get("B")
        answer = CellAnswer(optimizer, int(batch_size), drop, gap, None)
        answer.share = _share(sweep, answer)
        found.append(answer)
    return found


def optimizer_order(name: str) -> tuple[int, str]:
    known = ["sgd", "lars", "lamb"]
    return (known.index(name) if name in known else len(known), name)


@dataclass
class Pooled:
    """The mean over all cells that have both contrasts on enough seeds: one question put once."""

    cells: list[CellAnswer]
    seeds: list[int]
    drop: stats.Difference
    gap: stats.Difference
    drop_verdict: stats.Verdict
    gap_verdict: stats.Verdict
    share: stats.Share


def pooled(sweep: Sweep, found: list[CellAnswer], margin: float = stats.MARGIN) -> Pooled | None:
    """Each cell weighs the same; seeds are those that all of them share. None for fewer than two cells or three seeds."""
    cells = [a for a in found if len(_common_seeds(a)) >= stats.VERDICT_SEEDS]
    seeds = sorted(set.intersection(*(set(_common_seeds(a)) for a in cells))) if cells else []
    if len(cells) < 2 or len(seeds) < stats.VERDICT_SEEDS:
        return None
    drop = _mean_arms([_arms(sweep, a.drop, seeds) for a in cells])
    gap = _mean_arms([_arms(sweep, a.gap, seeds) for a in cells])
    one, two = stats.difference(*drop), stats.difference(*gap)
    return Pooled(cells, seeds, one, two, stats.verdict(one, margin), stats.verdict(two, margin), stats.share(drop, gap))


def _mean_arms(pairs) -> tuple[np.ndarray, np.ndarray]:
    return np.mean([p[0] for p in pairs], axis=0), np.mean([p[1] for p in pairs], axis=0)


def _common_seeds(a: CellAnswer) -> list[int]:
    """Seeds that the cell and its reference have under both protocols."""
    if not a.drop or not a.gap or a.drop.estimate is None or a.gap.estimate is None:
        return []
    return sorted(set(a.drop.seeds) & set(a.gap.seeds))


def _arms(sweep: Sweep, c: Contrast, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
    at = [c.seeds.index(s) for s in seeds]
    return sweep.correct([c.reference_runs[i] for i in at]), sweep.correct([c.runs[i] for i in at])


def _share(sweep: Sweep, a: CellAnswer) -> stats.Share | None:
    seeds = _common_seeds(a)
    if len(seeds) < stats.VERDICT_SEEDS:
        return None
    return stats.share(_arms(sweep, a.drop, seeds), _arms(sweep, a.gap, seeds))
