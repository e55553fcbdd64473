"""Which runs may be compared, with which reference, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import stats
from .arms import ARM, nearest_arm, slim_with_arms
from .effects import Effect, by_seed, crossed
from .names import optimizers_of

SAME_LOSS = 0.05  # nat: training losses closer than that are taken for one
OVERSHOT = 0.8  # of the target, or of a loss level: what ends further down doesn't stand for it


def comparable(runs: pd.DataFrame) -> pd.Series:
    """Finished runs; under protocol B those that stopped at the target without falling below 0.8 of it."""
    finished = runs.status == "finished"
    if "overshot" not in runs:
        return finished
    overshot = runs.overshot.map(lambda v: isinstance(v, (bool, np.bool_, int, float)) and v == 1)
    return finished & ~((runs.protocol == "B") & overshot)


def fixed_budgets(runs: pd.DataFrame) -> list[str]:
    """The protocols with a fixed budget, the one that the drop is read from first."""
    return [p for p in ("A-epochs", "A-updates") if (runs.protocol == p).any()]


def fixed_budget(runs: pd.DataFrame) -> str | None:
    """The protocol with a fixed budget that the drop is read from: epochs where there is one, else updates."""
    return next(iter(fixed_budgets(runs)), None)


def cell(runs: pd.DataFrame, protocol: str, optimizer: str, batch_size: int, arm: str | None = None) -> pd.DataFrame:
    """All runs of one cell, whatever became of them; with `arm` those of that label, and those that don't know theirs. The runs then
    have the column of labels (arms.py)."""
    found = runs[(runs.protocol == protocol) & (runs.optimizer == optimizer) & (runs.batch_size == batch_size)]
    return _of_arm(found, arm)


def _of_arm(runs: pd.DataFrame, arm: str | None) -> pd.DataFrame:
    return runs if arm is None else runs[runs[ARM] == arm]


def settings(runs: pd.DataFrame) -> int:
    """How many settings (config_id) there are. A run that has not begun, or can't be read, may not know its own."""
    return int(runs.config_id[runs.config_id.fillna("") != ""].nunique())


# What became of a run that is in no comparison, in words that follow "2 of 5 seeds".
LEFT_OUT = {
    "target_not_reached": "missed the target", "overshot": "overshot the target", "diverged": "diverged", "failed": "failed",
    "interrupted": "interrupted", "running": "still running", "queued": "not run yet", "level_not_reached": "never reached the level",
    "not_converged": "didn't converge", "not_resolved": "came out unresolved", "nonfinite": "came out as no number",
    "unavailable": "can't be had of this network",
    "too_few_branches": "have fewer than two annealed branches that ended", "several_shares": "were annealed over several shares",
    "loss_not_spanned": "have no annealed branches on both sides of the loss",
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
    arm: str | None = None  # its label, where it has several; None: its one setting, whatever it is


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
    of 1, the distance of these losses would make by itself, at `slope` (points_per_nat); nothing is corrected by it. `test_loss`: cell
    less reference, in nats. `phases`: learning rate at the stop over its peak, reference and cell: matched loss isn't matched phase.
    """

    protocol: str
    optimizer: str
    batch_size: int
    reference: Reference
    arm: str = ""
    estimate: stats.Difference | None = None
    verdict: stats.Verdict | None = None
    reason: str = ""
    seeds: list[int] = field(default_factory=list)
    reference_runs: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    losses: tuple[float, float] = (np.nan, np.nan)
    slope: float = np.nan
    test_loss: Effect | None = None
    phases: tuple[float, float] = (np.nan, np.nan)

    @property
    def shift(self) -> float:
        return self.slope * (self.losses[1] - self.losses[0])

    @property
    def survivors(self) -> bool:
        """Whether outcomes decided which seeds are compared."""
        return any(lost.chosen for lost in self.lost)


def contrast(
    sweep: Sweep, protocol: str, optimizer: str, batch_size: int, margin: float = stats.MARGIN, arm: str | None = None,
    labelled: pd.DataFrame | None = None,
) -> Contrast:  # fmt: skip
    """With the verdict that it has by itself. The reference has the same arm where that was run there, else the nearest; None: the
    cell has one setting. `labelled`: the runs with labels of arms, from a caller that has them."""
    runs = slim_with_arms(sweep) if labelled is None else labelled
    reference = _with_arm(runs, protocol, reference_of(sweep, optimizer), batch_size, arm)
    found = Contrast(protocol, optimizer, batch_size, reference, arm or "")
    all_arm = cell(runs, protocol, optimizer, batch_size, arm)
    of_all_arms = cell(runs, protocol, reference.optimizer, reference.batch_size)
    all_base = _of_arm(of_all_arms, reference.arm)
    found.reason = _why_not(all_arm, all_base, of_all_arms)
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
    found.verdict = verdict_of(found, margin)
    loss = pd.Series(sweep.runs.train_loss.to_numpy(float), index=sweep.runs.run_id)
    found.losses = (float(loss[one].mean()), float(loss[two].mean()))
    found.slope = points_per_nat(runs, reference)
    found.test_loss = _test_loss(sweep, one, two)
    found.phases = (_phase(sweep, one), _phase(sweep, two))
    return found


def _with_arm(runs: pd.DataFrame, protocol: str, reference: Reference, batch_size: int, arm: str | None) -> Reference:
    """The reference of a cell's arm. Arms at the reference's own batch size are compared with the plain setting there."""
    if arm is None:
        return reference
    there = set(cell(runs, protocol, reference.optimizer, reference.batch_size)[ARM])
    own = nearest_arm(arm, there) if reference.batch_size != batch_size else ""
    if own is None or own not in there:
        own = next(iter(there)) if len(there) == 1 else ""
    return replace(reference, arm=own)


def _test_loss(sweep: Sweep, one: list[str], two: list[str]) -> Effect | None:
    """Cell less reference: by image where losses of images are stored, else by seed. None where it isn't known."""
    tables = sweep.losses(one), sweep.losses(two)
    if tables[0] is not None and tables[1] is not None and tables[0].shape == tables[1].shape:
        return crossed(tables[1] - tables[0])
    if "test_loss" not in sweep.runs:
        return None
    loss = pd.Series(sweep.runs.test_loss.to_numpy(float), index=sweep.runs.run_id)
    d = loss[two].to_numpy() - loss[one].to_numpy()
    return by_seed(d) if np.isfinite(d).all() else None


def _phase(sweep: Sweep, run_ids: list[str]) -> float:
    """Mean over runs of the last update's learning rate over the greatest of the run."""
    shares = []
    for run_id in run_ids:
        rates = sweep.curve_column(run_id, "train", "learning_rate")
        rates = rates[np.isfinite(rates)]
        if rates.size and rates.max() > 0:
            shares.append(rates[-1] / rates.max())
    return float(np.mean(shares)) if shares else np.nan


def _why_not(arm: pd.DataFrame, base: pd.DataFrame, of_all_arms: pd.DataFrame) -> str:
    """Why two cells can't be compared; empty where they can. `of_all_arms`: the runs at the reference, whatever their arm."""
    if arm.empty:
        return "not run"
    for runs, where in ((arm, ""), (base, " in the reference")):
        if settings(runs) > 1:
            return f"{settings(runs)} settings{where}, not pooled"
    if not comparable(arm).any():
        return _lost_text(arm)
    if base.empty:
        return (
            "the reference was not run"
            if of_all_arms.empty
            else f"none of the reference's {of_all_arms[ARM].nunique()} arms is like this"
        )
    return "" if comparable(base).any() else f"the reference has no comparable run: {_lost_text(base, reference=True)}"


def verdict_of(c: Contrast, margin: float, comparisons: int = 1) -> stats.Verdict | None:
    """Survivors prove little: who misses the target or diverges is no matter of chance. Only a drop at the fixed budget
    stands where seeds of the cell alone are lost, since those that diverged would add to it."""
    if c.estimate is None:
        return None
    verdict = stats.verdict(c.estimate, margin, comparisons)
    stands = c.protocol != "B" and verdict.direction > 0 and not any(lost.reference for lost in c.lost if lost.chosen)
    if not c.survivors or stands or verdict.word == "undecided":
        return verdict
    return stats.Verdict("undecided", f"undecided ({'; '.join(lost.text for lost in c.lost)})")


def points_per_nat(runs: pd.DataFrame, reference: Reference) -> float:
    """Test accuracy (units of 1) per nat of training loss: the reference cell's own slope between its ends at the fixed budget and
    at matched loss. NaN where one of them is missing, has several settings, or both lie within SAME_LOSS."""
    ends = []
    for protocol in (fixed_budget(runs), "B"):
        if protocol is None:
            return np.nan
        arm = reference.arm if ARM in runs else None
        found = cell(runs, protocol, reference.optimizer, reference.batch_size, arm)
        good = found[comparable(found)]
        if good.empty or settings(good) > 1:
            return np.nan
        ends.append((good.train_loss.mean(), good.test_acc.mean()))
    (loss_a, accuracy_a), (loss_b, accuracy_b) = ends
    return float((accuracy_a - accuracy_b) / (loss_b - loss_a)) if abs(loss_b - loss_a) >= SAME_LOSS else np.nan
