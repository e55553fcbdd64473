"""Whether twice the batch helps where the probe `ledger` finds more noise than gradient: docs/probes.md#ledger-score defines every
term.

From one checkpoint four branches of equally many updates: unchanged, half the rate, double the batch, both. Help is the loss of the
unchanged one less that of the branch, paired by seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import betainccinv, betaincinv

from ..reader.sweep import Sweep
from . import student
from .branches import branches_of

NOISE = "noise_over_gradient"
THRESHOLD = 1.0  # of that ratio; the interval must lie above it
BRANCHES = {"unchanged": (1.0, 1.0), "half": (1.0, 0.5), "double": (2.0, 1.0), "both": (2.0, 0.5)}  # k and factor of the rate
CHANGED = ("half", "double", "both")
PREDICTED = "double"  # the branch that is to help there
MARGIN = 0.01  # of the loss at the checkpoint
KEPT_FROM = 0.8
LEAST_RESOLVED = 0.5


@dataclass(frozen=True)
class Help:
    """What one branch gains at one checkpoint, in nat, with its 95 % interval; `word`: helps, doesn't help or unresolved."""

    value: float
    low: float
    high: float
    word: str


@dataclass
class Checkpoint:
    """A setting of the parent and a label. `outcome`: borne out, refuted, unresolved, not above or incomplete; `reason` says which."""

    optimizer: str
    batch_size: int
    rate: float
    at: str
    loss: float
    updates: float
    seeds: int
    above: bool = False  # the threshold, at every seed
    helped: dict[str, Help] = field(default_factory=dict)
    outcome: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Score:
    """How many checkpoints above the threshold bear it out. `share` has its exact 95 % interval, NaN where nothing is resolved."""

    borne_out: int
    refuted: int
    unresolved: int
    share: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What becomes of the prediction."""
        resolved = self.borne_out + self.refuted
        if not resolved or resolved < LEAST_RESOLVED * (resolved + self.unresolved):
            return "undecided: fewer than half of the checkpoints above the threshold are resolved"
        if self.share >= KEPT_FROM:
            return f"noise over gradient predicts it: at least {100 * KEPT_FROM:g} % are borne out"
        return f"noise over gradient does not predict it: fewer than {100 * KEPT_FROM:g} % are borne out"


def checkpoints_of(sweep: Sweep) -> list[Checkpoint]:
    """Every checkpoint that plain branches of the sweep begin from, in the order of optimisers, batch sizes, rates and losses."""
    rows = branches_of(sweep)
    rows = rows[(rows.anneal == 0) & (rows.differs == "")]
    rows = rows.assign(branch=[_name(k, factor) for k, factor in zip(rows.k, rows.rate_factor)])
    noise = _noise(sweep)
    found = []
    for _, of_setting in rows[rows.branch != ""].groupby(
        ["optimizer", "parent_batch", "parent_rate", "parent_config"], sort=True
    ):
        made = _distinct([_checkpoint(group, noise) for _, group in of_setting.groupby("at")])
        _judge([(point, gains) for point, gains in made if not point.outcome])
        found += sorted((point for point, _ in made), key=lambda point: -point.loss)
    return found


def _distinct(made: list[tuple[Checkpoint, pd.DataFrame]]) -> list[tuple[Checkpoint, pd.DataFrame]]:
    """Parents that pass two levels within one interval of their checks have one checkpoint for both, with the same branches to the bit."""
    kept: list[tuple[Checkpoint, pd.DataFrame]] = []
    for point, gains in made:
        if gains.empty or not any(point.loss == other.loss and gains.equals(others) for other, others in kept):
            kept.append((point, gains))
    return kept


def _name(k: float, factor: float) -> str:
    return next((name for name, (ks, fs) in BRANCHES.items() if np.isclose(k, ks) and np.isclose(factor, fs, rtol=1e-4)), "")


def _noise(sweep: Sweep) -> dict[tuple[str, str], tuple[float, float]]:
    """The interval of the ratio by run and label; its upper end is infinite where the gradient is lost in its error."""
    probes = sweep.probes
    mine = probes[(probes.probe == "ledger") & (probes.quantity == NOISE) & probes.study.astype(bool)]
    return {(row.run_id, row.checkpoint): (float(row.ci_low), float(row.ci_high)) for row in mine.itertuples()}


def _checkpoint(group: pd.DataFrame, noise: dict[tuple[str, str], tuple[float, float]]) -> tuple[Checkpoint, pd.DataFrame]:
    """With the help of each branch, a row per seed."""
    losses = group.pivot_table(index="seed", columns="branch", values="loss_after", aggfunc="first", dropna=False)
    whole = losses.reindex(columns=list(BRANCHES)).dropna()
    first = group.iloc[0]
    point = Checkpoint(str(first.optimizer), int(first.parent_batch), float(first.parent_rate), str(first["at"]),
                       float(group.loss_before.mean()), float(first.updates), len(whole))  # fmt: skip
    gains = whole[list(CHANGED)].rsub(whole.unchanged, axis=0)
    ended = group[group.status != "diverged"]
    if ended.updates.nunique() > 1:
        point.outcome, point.reason = "incomplete", "its branches have different numbers of updates"
    elif whole.empty:
        point.outcome, point.reason = "incomplete", "no seed has all four branches"
    else:
        parents = group[group.seed.isin(whole.index)].parent.unique()
        point.above, point.reason = _above([noise.get((parent, point.at), (np.nan, np.nan)) for parent in parents])
        point.outcome = "" if point.above else "not above"
    return point, gains


def _above(intervals: list[tuple[float, float]]) -> tuple[bool, str]:
    sides = {"above" if low >= THRESHOLD else "below" if high < THRESHOLD else "" for low, high in intervals}
    if sides == {"above"}:
        return True, ""
    return False, "" if sides == {"below"} else "not resolved" if "" in sides else "seeds differ"


def _judge(made: list[tuple[Checkpoint, pd.DataFrame]]) -> None:
    """All checkpoints of one setting, whose variance between seeds is one."""
    columns = [gains[branch].to_numpy(float) for _, gains in made for branch in CHANGED]
    finite = [column for column in columns if np.isfinite(column).all() and column.size > 1]
    freedom = sum(column.size - 1 for column in finite)
    variance = sum(((column - column.mean()) ** 2).sum() for column in finite) / freedom if freedom else np.nan
    for point, gains in made:
        for branch in CHANGED:
            point.helped[branch] = _help(gains[branch].to_numpy(float), variance, freedom, MARGIN * point.loss)
        _bear_out(point)


def _help(gain: np.ndarray, variance: float, freedom: int, margin: float) -> Help:
    if not np.isfinite(gain).all():
        value = gain[0] if (gain == gain[0]).all() else np.nan
        return Help(value, value, value, "helps" if value > 0 else "doesn't help" if value < 0 else "unresolved")
    value = float(gain.mean())
    half = float(student.ppf(0.975, freedom) * np.sqrt(variance / gain.size)) if freedom else np.inf
    word = "helps" if value - half > margin else "doesn't help" if value + half < margin else "unresolved"
    return Help(value, value - half, value + half, word)


def _bear_out(point: Checkpoint) -> None:
    point.outcome = {"helps": "borne out", "doesn't help": "refuted"}.get(point.helped[PREDICTED].word, "unresolved")


def score(points: list[Checkpoint]) -> Score:
    borne, refuted, unresolved = (sum(p.outcome == o for p in points) for o in ("borne out", "refuted", "unresolved"))
    low, high = exact_interval(borne, borne + refuted)
    return Score(borne, refuted, unresolved, borne / (borne + refuted) if borne + refuted else np.nan, low, high)


def exact_interval(successes: int, tried: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson (1934)."""
    if not tried:
        return np.nan, np.nan
    tail = (1 - level) / 2
    low = betaincinv(successes, tried - successes + 1, tail) if successes else 0.0
    high = betainccinv(successes + 1, tried - successes, tail) if successes < tried else 1.0
    return float(low), float(high)
