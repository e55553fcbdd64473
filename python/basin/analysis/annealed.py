"""Outcomes in the same phase: branches whose rate fell to zero, or whose weights were averaged, at equal training loss.

Where a run at a high rate first crosses a loss it still has the noise of that rate, and a large batch has less of it. So from several
levels of each run a branch is annealed (docs/study.md#branches), and the outcomes of a large and the smallest batch are compared where
the *annealed* losses are equal, by linear interpolation between a run's branches, paired by seed. Nothing is extrapolated: the losses
compared are those that the branches of every seed of both span, its ends and its middle.

With outcomes of single test images the effect has the crossed variance of effects.py: an interpolated outcome of an image is the weighted
mean of two branches'. The outcomes of averaged weights are one number per run, and paired by seed alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from .arms import ARM, with_arms, without_rate
from .branches import branches_of, without_branches
from .effects import Effect, by_seed, crossed

OUTCOMES = ("test_acc", "test_loss")
LOSSES = 3  # at which a pair of batch sizes is compared
LEAST_LEVELS = 2
AVERAGED = 0.0  # in the place of a share: branches that aren't annealed, by their averaged weights


@dataclass(frozen=True)
class SamePhase:
    """`effect`: outcome of the batch less that of the reference at the loss; None where there is none, and `reason` says why. `asked`:
    seeds of both with a branch; those whose branches ended are `effect.seeds`."""

    optimizer: str
    arm: str
    batch_size: int
    reference: int
    share: float
    outcome: str
    loss: float
    effect: Effect | None
    asked: int
    reason: str = ""


@dataclass(frozen=True)
class Course:
    """One seed's branches, losses rising; values [branch] or [branch, image]."""

    losses: np.ndarray
    values: np.ndarray

    def at(self, loss: float) -> np.ndarray:
        above = int(np.clip(np.searchsorted(self.losses, loss), 1, len(self.losses) - 1))
        weight = (loss - self.losses[above - 1]) / (self.losses[above] - self.losses[above - 1])
        return np.asarray((1 - weight) * self.values[above - 1] + weight * self.values[above])


def kind_text(arm: str, share: float) -> str:
    """ "annealed over 20 %, ghost_batch=25"."""
    how = "averaged weights" if share == AVERAGED else f"annealed over {100 * share:g} %"
    return f"{how}, {arm}" if arm else how


def annealed_branches(sweep: Sweep) -> pd.DataFrame:
    """A row per branch that changes nothing but its phase, with `share` (AVERAGED where it isn't annealed), the parent's arm, and loss and
    outcomes at its end. Empty unless some branches of a setting begin at several places."""
    rows = _unchanged(branches_of(sweep))
    labels = with_arms(without_branches(sweep)).drop_duplicates("config_id").set_index("config_id")[ARM]
    runs = sweep.runs.set_index("run_id").loc[rows.run_id]
    arms = rows.parent_config.map(labels).fillna("").map(without_rate)
    rows = rows.assign(share=rows.anneal, arm=arms.to_numpy())
    for column in ("train_loss", *OUTCOMES):
        mine, averaged = (
            pd.to_numeric(runs[c], errors="coerce").to_numpy(float) if c in runs else np.full(len(rows), np.nan)
            for c in (column, f"average_{column}")
        )
        rows[column] = np.where(rows.share > 0, mine, averaged)
    rows = rows[np.isfinite(rows.train_loss) | (rows.share > 0)]
    places = rows.groupby(["parent_config", "share"])["at"].nunique()
    return rows if (places >= LEAST_LEVELS).any() else rows.head(0)


def _unchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Branches that change nothing but their phase."""
    return rows[(rows.k == 1) & (rows.rate_factor == 1) & (rows.differs == "")]


@dataclass(frozen=True)
class Mix:
    """The branches of one run between whose annealed losses a loss lies, by linear weight. Where there are none `word` says why."""

    weights: dict[str, float]
    word: str = ""


def annealed_mixes(sweep: Sweep, run_ids: Collection[str], loss: float) -> dict[str, Mix]:
    """By run. None of a run without branches from two places that ended, or whose branches the loss doesn't lie between."""
    rows = _unchanged(branches_of(sweep, run_ids))
    rows = rows[rows.anneal > 0]
    return {run_id: _mix(rows[rows.parent == run_id], loss) for run_id in run_ids}


def _mix(mine: pd.DataFrame, loss: float) -> Mix:
    if (mine.status == "diverged").any():
        return Mix({}, "diverged")
    mine = mine[np.isfinite(mine.loss_after)].sort_values("loss_after")
    losses = mine.loss_after.to_numpy(float)
    if mine.anneal.nunique() > 1:
        return Mix({}, "several_shares")
    if mine["at"].nunique() < LEAST_LEVELS or len(np.unique(losses)) < len(losses):
        return Mix({}, "too_few_branches")
    if not losses[0] <= loss <= losses[-1]:
        return Mix({}, "loss_not_spanned")
    weights = Course(losses, np.eye(len(losses))).at(loss)
    return Mix({run: float(w) for run, w in zip(mine.run_id, weights) if w > 0})


def same_phase(sweep: Sweep) -> list[SamePhase]:
    """Every batch size against the smallest of the same optimiser, arm and share; averaged weights last."""
    rows = annealed_branches(sweep)
    found: list[SamePhase] = []
    for (optimizer, arm, share), group in rows.groupby(["optimizer", "arm", "share"], sort=False):
        small, *larger = sorted(group.parent_batch.unique())
        for batch in larger:
            one, two = (group[group.parent_batch == b] for b in (small, batch))
            about = (str(optimizer), str(arm), int(batch), int(small), float(share))
            for outcome in OUTCOMES:
                found += _compared(sweep, one, two, about, outcome)
    return sorted(found, key=lambda s: s.share == AVERAGED)


def _compared(
    sweep: Sweep, one: pd.DataFrame, two: pd.DataFrame, about: tuple[str, str, int, int, float], outcome: str
) -> Iterator[SamePhase]:  # fmt: skip
    asked = len(set(one.seed) & set(two.seed))
    if max(one.parent_config.nunique(), two.parent_config.nunique()) > 1:
        yield SamePhase(*about, outcome, np.nan, None, asked, "several settings, not pooled")
        return
    sides = _courses(sweep, one, two, outcome)
    seeds = sorted(set(sides[0]) & set(sides[1]))
    if not seeds:
        yield SamePhase(*about, outcome, np.nan, None, asked, "no seed with branches from two places that ended")
        return
    courses = [side[s] for side in sides for s in seeds]
    low, high = max(c.losses[0] for c in courses), min(c.losses[-1] for c in courses)
    if not low < high:
        yield SamePhase(*about, outcome, np.nan, None, asked, "the branches end at no common loss")
        return
    for loss in np.linspace(high, low, LOSSES):
        d = np.array([sides[1][s].at(loss) - sides[0][s].at(loss) for s in seeds])
        yield SamePhase(*about, outcome, float(loss), crossed(d) if d.ndim == 2 else by_seed(d), asked)


def _courses(sweep: Sweep, one: pd.DataFrame, two: pd.DataFrame, outcome: str) -> list[dict[int, Course]]:
    """By seed, of both sides; of single images where both have them."""
    sides = [side[np.isfinite(side.train_loss) & np.isfinite(side[outcome])] for side in (one, two)]
    tables = [_images(sweep, side, outcome) for side in sides]
    there = [t for t in tables if t is not None]
    by_image = len(there) == 2 and there[0].shape[1] == there[1].shape[1]
    found: list[dict[int, Course]] = []
    for i, side in enumerate(sides):
        values = there[i] if by_image else side[outcome].to_numpy(float)
        found.append({})
        for seed in side.seed.unique():
            mine = np.flatnonzero(side.seed == seed)
            mine = mine[np.argsort(side.train_loss.to_numpy()[mine])]
            losses = side.train_loss.to_numpy()[mine]
            if len(np.unique(losses)) == len(losses) >= LEAST_LEVELS:
                found[-1][int(seed)] = Course(losses, values[mine])
    return found


def _images(sweep: Sweep, side: pd.DataFrame, outcome: str) -> np.ndarray | None:
    """[branch, image]; none for averaged weights, whose images aren't stored."""
    if side.empty or (side.share == AVERAGED).any():
        return None
    return sweep.correct(side.run_id) if outcome == "test_acc" else sweep.losses(side.run_id)
