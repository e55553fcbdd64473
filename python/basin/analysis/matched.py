"""Which runs may be compared, with which reference, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import stats
from .names import optimizers_of

OVERSHOT = 0.8  # of the target, or of a loss level: what ends further down doesn't stand for it


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
    """All runs of one cell, whatever became of them."""
    return runs[(runs.protocol == protocol) & (runs.optimizer == optimizer) & (runs.batch_size == batch_size)]


def settings(runs: pd.DataFrame) -> int:
    """How many settings (config_id) there are. A run that has not begun, or can't be read, may not know its own."""
    return int(runs.config_id[runs.config_id.fillna("") != ""].nunique())


# What became of a run that is in no comparison, in words that follow "2 of 5 seeds".
LEFT_OUT = {
    "target_not_reached": "missed the target", "overshot": "overshot the target", "diverged": "diverged", "failed": "failed",
    "interrupted": "interrupted", "running": "still running", "queued": "not run yet",
}  # fmt: skip
UNFINISHED = ("interrupted", "running", "queued")


@dataclass(frozen=True)
class Lost:
    """Seeds of one side that are in no comparison. `chosen`: their outcome decided that, so those that are left are survivors."""

    reference: bool
    seeds: int
    counts: dict[str, int]

    @property
    def chosen(self) -> bool:
        return any(word not in UNFINISHED for word in self.counts)

    @property
    def text(self) -> str:
        whose = "reference seeds" if self.reference else "seeds"
        if self.seeds == 1:
            word = next(iter(self.counts))
            return f"the one {whose[:-1]} {LEFT_OUT.get(word, word)}"
        return ", ".join(f"{n} of {self.seeds} {whose} {LEFT_OUT.get(word, word)}" for word, n in self.counts.items())


def lost_seeds(runs: pd.DataFrame, reference: bool = False) -> Lost | None:
    left_out = runs[~comparable(runs)]
    if left_out.empty:
        return None
    words = left_out.status.where(left_out.status != "finished", "overshot")
    return Lost(reference, len(runs), {str(word): int(n) for word, n in words.value_counts().items()})


def _lost_text(runs: pd.DataFrame, reference: bool = False) -> str:
    lost = lost_seeds(runs, reference)
    return lost.text if lost else ""


@dataclass(frozen=True)
class Reference:
    optimizer: str
    batch_size: int
    own: bool  # the optimiser's own small batch; else another optimiser's


def reference_of(sweep: Sweep, optimizer: str) -> Reference:
    """The smallest batch size of the sweep under the same optimiser, or under the first that has it, in the order of the sweep's
    names. At least one run must know its batch size."""
    known = sweep.runs[sweep.runs.batch_size.notna()]
    smallest = int(known.batch_size.min())
    optimizers = optimizers_of(known[known.batch_size == smallest], sweep.names)
    chosen = optimizer if optimizer in optimizers else optimizers[0]
    return Reference(chosen, smallest, chosen == optimizer)


@dataclass
class Contrast:
    """The reference less one cell under one protocol. `estimate` is None where there is nothing to compare, `reason` says why.

    `losses`: mean training loss of reference and cell over the seeds compared. `shift`: how much of the difference, in units
    of 1, the distance of these losses would make by itself, at `slope` (points_per_nat); nothing is corrected by it.
    """

    protocol: str
    optimizer: str
    batch_size: int
    reference: Reference
    estimate: stats.Difference | None = None
    verdict: stats.Verdict | None = None
    reason: str = ""
    seeds: list[int] = field(default_factory=list)
    reference_runs: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    losses: tuple[float, float] = (np.nan, np.nan)
    slope: float = np.nan

    @property
    def shift(self) -> float:
        return self.slope * (self.losses[1] - self.losses[0])

    @property
    def survivors(self) -> bool:
        """Whether outcomes decided which seeds are compared."""
        return any(lost.chosen for lost in self.lost)


def contrast(sweep: Sweep, protocol: str, optimizer: str, batch_size: int, margin: float = stats.MARGIN) -> Contrast:
    reference = reference_of(sweep, optimizer)
    found = Contrast(protocol, optimizer, batch_size, reference)
    all_arm = cell(sweep.runs, protocol, optimizer, batch_size)
    all_base = cell(sweep.runs, protocol, reference.optimizer, reference.batch_size)
    found.reason = _why_not(all_arm, all_base)
    if found.reason:
        return found
    asked = all_base[all_base.seed.isin(all_arm.seed)]
    found.lost = [lost for lost in (lost_seeds(all_arm), lost_seeds(asked, reference=True)) if lost]
    one, two, seeds = stats.paired_runs(all_base[comparable(all_base)], all_arm[comparable(all_arm)])
    tables = (sweep.correct(one), sweep.correct(two)) if seeds else (None, None)
    if not seeds or tables[0] is None or tables[1] is None or tables[0].shape != tables[1].shape:
        found.reason = "outcomes on test images are missing" if seeds else "no seed in common with the reference"
        return found
    found.seeds, found.reference_runs, found.runs = seeds, one, two
    found.estimate = stats.difference(*tables)
    found.verdict = _verdict(found, found.estimate, margin)
    loss = sweep.runs.set_index("run_id").train_loss
    found.losses = (float(loss[one].mean()), float(loss[two].mean()))
    found.slope = points_per_nat(sweep.runs, reference)
    return found


def _why_not(arm: pd.DataFrame, base: pd.DataFrame) -> str:
    """Why two cells can't be compared; empty where they can."""
    if arm.empty:
        return "not run"
    for runs, where in ((arm, ""), (base, " in the reference")):
        if settings(runs) > 1:
            return f"{settings(runs)} settings{where}, not pooled"
    if not comparable(arm).any():
        return _lost_text(arm)
    if base.empty:
        return "the reference was not run"
    return "" if comparable(base).any() else f"the reference has no comparable run: {_lost_text(base, reference=True)}"


def _verdict(c: Contrast, estimate: stats.Difference, margin: float) -> stats.Verdict:
    """Survivors prove little: who misses the target or diverges is no matter of chance. Only a drop at the fixed budget
    stands where seeds of the cell alone are lost, since those that diverged would add to it."""
    verdict = stats.verdict(estimate, margin)
    stands = c.protocol != "B" and verdict.direction > 0 and not any(lost.reference for lost in c.lost if lost.chosen)
    if not c.survivors or stands or verdict.word == "undecided":
        return verdict
    return stats.Verdict("undecided", f"undecided ({'; '.join(lost.text for lost in c.lost)})")


def points_per_nat(runs: pd.DataFrame, reference: Reference) -> float:
    """Test accuracy (units of 1) per nat of training loss: the reference cell's own slope between its ends at the fixed budget and
    at matched loss. NaN where one of them is missing, has several settings, or both lie within 0.05 nat."""
    ends = []
    for protocol in (fixed_budget(runs), "B"):
        if protocol is None:
            return np.nan
        found = cell(runs, protocol, reference.optimizer, reference.batch_size)
        good = found[comparable(found)]
        if good.empty or settings(good) > 1:
            return np.nan
        ends.append((good.train_loss.mean(), good.test_acc.mean()))
    (loss_a, accuracy_a), (loss_b, accuracy_b) = ends
    return float((accuracy_a - accuracy_b) / (loss_b - loss_a)) if abs(loss_b - loss_a) >= 0.05 else np.nan


@dataclass
class CellAnswer:
    """What one batch size and optimiser says: the drop at a fixed budget, what remains at matched loss, and the ratio. `label`: what
    the optimiser is called."""

    optimizer: str
    label: str
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
    order = optimizers_of(cells, sweep.names)
    for optimizer, batch_size in sorted(cells.itertuples(index=False, name=None), key=lambda c: (order.index(c[0]), c[1])):
        reference = reference_of(sweep, optimizer)
        if batch_size == reference.batch_size and optimizer == reference.optimizer:
            continue
        by = {p: contrast(sweep, p, optimizer, int(batch_size), margin) for p in protocols}
        drop, gap = by.get(budget or ""), by.get("B")
        answer = CellAnswer(optimizer, sweep.names.label("optimizers", optimizer), int(batch_size), drop, gap, None)
        answer.share = _share(sweep, answer)
        found.append(answer)
    return found


@dataclass
class Pooled:
    """The mean over all cells that have both contrasts on enough seeds: one question put once. `left_out`: the other cells and
    why they are not in it."""

    cells: list[CellAnswer]
    left_out: list[tuple[CellAnswer, str]]
    seeds: list[int]
    drop: stats.Difference
    gap: stats.Difference
    drop_verdict: stats.Verdict
    gap_verdict: stats.Verdict
    share: stats.Share
    losses: tuple[float, float]  # mean training loss at matched loss: references, cells
    shift: float


def pooled(sweep: Sweep, found: list[CellAnswer], margin: float = stats.MARGIN) -> Pooled | None:
    """Each cell weighs the same; seeds are those that all of them share. Cells of which outcomes took seeds are left out, since a mean
    over survivors proves nothing. None for fewer than two cells or three seeds."""
    left_out = [(a, why) for a in found if (why := _why_not_pooled(a))]
    cells = [a for a in found if not _why_not_pooled(a)]
    seeds = sorted(set.intersection(*(set(_common_seeds(a)) for a in cells))) if cells else []
    if len(cells) < 2 or len(seeds) < stats.VERDICT_SEEDS:
        return None
    drops, gaps = [a.drop for a in cells if a.drop], [a.gap for a in cells if a.gap]
    drop = _mean_arms([_arms(sweep, c, seeds) for c in drops])
    gap = _mean_arms([_arms(sweep, c, seeds) for c in gaps])
    one, two = stats.difference(*drop), stats.difference(*gap)
    losses = tuple(np.mean([_losses(sweep, c, seeds) for c in gaps], axis=0).tolist())
    shift = float(np.mean([c.slope * np.diff(_losses(sweep, c, seeds))[0] for c in gaps]))
    return Pooled(cells, left_out, seeds, one, two, stats.verdict(one, margin), stats.verdict(two, margin),
                  stats.share(drop, gap), losses, shift)  # fmt: skip


def _why_not_pooled(a: CellAnswer) -> str:
    for c in (a.gap, a.drop):
        if c is None:
            return "not run under both protocols"
        if c.estimate is None:
            return c.reason
        if c.survivors:
            return "; ".join(lost.text for lost in c.lost if lost.chosen)
    n = len(_common_seeds(a))
    return "" if n >= stats.VERDICT_SEEDS else f"{n} seed{'s' * (n != 1)}"


def _mean_arms(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.mean([p[0] for p in pairs], axis=0), np.mean([p[1] for p in pairs], axis=0)


def _common_seeds(a: CellAnswer) -> list[int]:
    """Seeds that the cell and its reference have under both protocols."""
    if not a.drop or not a.gap or a.drop.estimate is None or a.gap.estimate is None:
        return []
    return sorted(set(a.drop.seeds) & set(a.gap.seeds))


def _runs_at(c: Contrast, seeds: list[int]) -> tuple[list[str], list[str]]:
    at = [c.seeds.index(s) for s in seeds]
    return [c.reference_runs[i] for i in at], [c.runs[i] for i in at]


def _arms(sweep: Sweep, c: Contrast, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
    one, two = _runs_at(c, seeds)
    return sweep.correct(one), sweep.correct(two)


def _losses(sweep: Sweep, c: Contrast, seeds: list[int]) -> tuple[float, float]:
    loss = sweep.runs.set_index("run_id").train_loss
    one, two = _runs_at(c, seeds)
    return float(loss[one].mean()), float(loss[two].mean())


def _share(sweep: Sweep, a: CellAnswer) -> stats.Share | None:
    seeds = _common_seeds(a)
    if not a.drop or not a.gap or len(seeds) < stats.VERDICT_SEEDS or a.drop.survivors or a.gap.survivors:
        return None
    return stats.share(_arms(sweep, a.drop, seeds), _arms(sweep, a.gap, seeds))
