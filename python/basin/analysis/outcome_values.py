"""What an outcome was in the runs of one setting: one number for each seed, and where test images are stored a row for each.

Which runs count: at the end those of matched.comparable; at a loss level those that reached it and didn't fall below 0.8 of it. Protocol B
with that level as its target ends there; a number of a probe is that of the level's checkpoint where a run has one, as the program has
it, else that of its end. A level's outcomes are those stored at its checkpoint; a sweep that has none there is read
at the first evaluation at or below the level, without single images. At an annealed loss those with annealed branches on both sides of it
(annealed.py), whose outcomes are mixed by linear interpolation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..reader.questions import TWIN, annealed_loss
from ..reader.sweep import Sweep
from .annealed import annealed_mixes
from .matched import OVERSHOT, UNFINISHED, Lost, comparable
from .settings import Setting

IMAGES = {"test_acc": "correct", "test_loss": "loss"}
AT_THE_TARGET = {"updates": "steps_to_target", "examples": "examples"}


@dataclass(frozen=True)
class Values:
    """`numbers`: by seed, of the runs that count; `mixes` likewise, the runs that a seed's outcome is made of with their weights.
    `stored`: where single images are looked for ("end", a level); empty: nowhere. `reason`: why there is none."""

    role: str
    mixes: dict[int, dict[str, float]]
    numbers: dict[int, float]
    outcome: str
    stored: str = ""
    lost: Lost | None = None
    reason: str = ""

    def table(self, sweep: Sweep, seeds: list[int]) -> np.ndarray | None:
        """[seed, image]: right or wrong, or losses; None where they aren't stored."""
        return _mixed(sweep, [self.mixes[s] for s in seeds], self.outcome, self.stored) if self.stored else None

    def column(self, seeds: list[int]) -> np.ndarray:
        return np.array([self.numbers[s] for s in seeds])


def values_of(sweep: Sweep, setting: Setting, outcome: str, at: str) -> Values:
    """`at`: as in a contrast."""
    at, twin = at.removesuffix(TWIN), TWIN if at.endswith(TWIN) else ""
    runs = setting.runs
    level = float(at[5:]) if at.startswith("loss-") else np.nan
    ends_there = (runs.protocol == "B") & np.isclose(pd.to_numeric(runs.get("target_loss", np.nan), errors="coerce"), level)
    if at == "budget" and (runs.protocol == "B").any():
        return Values(setting.role, {}, {}, outcome, reason=f"{setting.role}: protocol B has no fixed budget")
    if (annealed := annealed_loss(at)) is not None:
        return _at_annealed(sweep, setting, outcome, annealed, twin)
    if np.isnan(level) or bool(ends_there.all()):
        return _at_end(setting, outcome, at if ends_there.all() else "end", twin)
    return _at_level(sweep, setting, outcome, at, level, twin)


def _at_end(setting: Setting, outcome: str, at: str, twin: str) -> Values:
    """`at`: "end", or the level that is the target of these runs."""
    runs = setting.runs
    good = comparable(runs)
    words = runs.status.where(runs.status != "finished", "overshot")
    numbers, at_level = (_numbers(runs, outcome, f"{place}{twin}", at.startswith("loss-")) for place in ("end", at))
    numbers = at_level.where(at_level.status != "", numbers)
    return _found(setting, outcome, numbers, good, words, "end")


def _numbers(runs: pd.DataFrame, outcome: str, checkpoint: str, at_target: bool) -> pd.DataFrame:
    """Columns value and status ("ok", what a probe says, "" where it didn't measure)."""
    column = AT_THE_TARGET.get(outcome, outcome) if at_target else outcome
    if outcome.startswith("probe."):
        column = outcome.replace("probe.", f"probe.{checkpoint}.", 1)
    value = pd.to_numeric(runs[column], errors="coerce") if column in runs else pd.Series(np.nan, index=runs.index)
    status = pd.Series(np.where(np.isfinite(value), "ok", ""), index=runs.index)
    if f"{column}.status" in runs:
        status = runs[f"{column}.status"].fillna("")
    return pd.DataFrame({"value": value, "status": status})


def _at_level(sweep: Sweep, setting: Setting, outcome: str, at: str, level: float, twin: str) -> Values:
    runs = setting.runs
    if outcome.startswith("probe."):
        numbers = _numbers(runs, outcome, at + twin, False)
        good, words = _reached_by_probe(sweep, runs, at, level)
        return _found(setting, outcome, numbers, good, words, "")
    rows = [_at_first_look(sweep, run_id, outcome, level) for run_id in runs.run_id]
    numbers = pd.DataFrame(rows, columns=["value", "status", "word"], index=runs.index)
    words = runs.status.where(runs.status.isin(UNFINISHED) | (runs.status == "failed"), numbers.word)
    good = numbers.word == ""
    stored = at if good.any() and _images(sweep, list(runs.run_id[good]), outcome, at) is not None else ""
    if stored:
        table = _images(sweep, list(runs.run_id[good]), outcome, at)
        numbers.loc[good, "value"] = np.nan if table is None else table.mean(1)
        numbers.loc[good, "status"] = "ok"
    return _found(setting, outcome, numbers, good, words, stored)


def _at_annealed(sweep: Sweep, setting: Setting, outcome: str, loss: float, twin: str) -> Values:
    runs = setting.runs
    mixes = annealed_mixes(sweep, list(runs.run_id), loss)
    ends = _numbers(sweep.runs, outcome, f"end{twin}", False).set_axis(sweep.runs.run_id)
    parts = [ends.loc[list(mixes[run].weights)] for run in runs.run_id]
    numbers = pd.DataFrame({
        "value": pd.Series([part.value @ list(mixes[run].weights.values()) for run, part in zip(runs.run_id, parts)], dtype=float),
        "status": [next((s for s in part.status if s != "ok"), "ok") for part in parts],
    }).set_axis(runs.index)  # fmt: skip
    word = pd.Series([mixes[run].word for run in runs.run_id], index=runs.index)
    good = word == ""
    used = [mixes[run].weights for run in runs.run_id[good]]
    stored = "end" if used and _mixed(sweep, used, outcome, "end") is not None else ""
    words = runs.status.where(runs.status.isin(UNFINISHED), word)
    return _found(setting, outcome, numbers, good, words, stored, {run: mixes[run].weights for run in runs.run_id})


def _mixed(sweep: Sweep, mixes: list[dict[str, float]], outcome: str, at: str) -> np.ndarray | None:
    """[mix, image], weighted sums of outcomes; None where they aren't stored."""
    run_ids = list(dict.fromkeys(run for mix in mixes for run in mix))
    table = _images(sweep, run_ids, outcome, at)
    if table is None:
        return None
    row = {run: i for i, run in enumerate(run_ids)}
    return np.array([np.sum([w * table[row[run]] for run, w in mix.items()], axis=0) for mix in mixes])


def _images(sweep: Sweep, run_ids: list[str], outcome: str, at: str) -> np.ndarray | None:
    """[run, image]: right or wrong, or losses; None where they aren't stored."""
    if outcome not in IMAGES:
        return None
    return sweep.correct(run_ids, at) if IMAGES[outcome] == "correct" else sweep.losses(run_ids, at)


def _at_first_look(sweep: Sweep, run_id: str, outcome: str, level: float) -> tuple[float, str, str]:
    """Value, status, and what became of the run if it doesn't count."""
    curve = sweep.curve(run_id, "eval")
    if curve.empty or "train_loss" not in curve:
        return np.nan, "", "level_not_reached"
    below = curve[curve.train_loss <= level]
    if below.empty:
        return np.nan, "", "level_not_reached"
    row = below.iloc[0]
    if row.train_loss < OVERSHOT * level:
        return np.nan, "", "overshot"
    value = float(row.get("update" if outcome == "updates" else outcome, np.nan))
    return value, "ok" if np.isfinite(value) else "", ""


def _reached_by_probe(sweep: Sweep, runs: pd.DataFrame, at: str, level: float) -> tuple[pd.Series, pd.Series]:
    """Which runs were probed there and didn't fall below the level, and what became of the others. A finished run that wasn't probed,
    by the study, is no lost one."""
    there = sweep.probes[(sweep.probes.checkpoint == at) & sweep.probes.run_id.isin(runs.run_id)]
    loss = there.groupby("run_id").train_loss.first().astype(float)
    reached, overshot = runs.run_id.isin(there.run_id), runs.run_id.map(loss).astype(float) < OVERSHOT * level
    word = pd.Series("level_not_reached", index=runs.index)
    word = word.mask(runs.status.isin([*UNFINISHED, "failed", "finished"]), runs.status).mask(overshot, "overshot")
    return reached & ~overshot, word


def _found(
    setting: Setting, outcome: str, numbers: pd.DataFrame, good: pd.Series, words: pd.Series, stored: str,
    mixes: dict[str, dict[str, float]] | None = None,
) -> Values:  # fmt: skip
    """Runs whose outcome is not ok are lost, runs in which it wasn't measured are not there. Without `mixes` a run's outcome is its own."""
    runs = setting.runs
    measured = good & (numbers.status != "")
    ok = measured & (numbers.status == "ok") & np.isfinite(numbers.value)
    counted = runs[ok]
    why = words.where(~measured, numbers.status.where(numbers.status != "ok", "nonfinite"))
    left_out = why[(~good & (why != "finished") & (why != "")) | (measured & ~ok)]
    counts = {str(word): int(n) for word, n in left_out.value_counts().items()}
    lost = Lost(setting.role in ("base", "small"), len(runs), counts) if counts else None
    reason = ""
    if counted.empty:
        measured_at_all = bool((numbers.status != "").any())
        reason = f"{setting.role}: " + (
            lost.text if lost else f"{outcome} was never measured there" if not measured_at_all else "no run"
        )
    seeds = counted.seed.astype(int)
    return Values(
        setting.role, {s: mixes[run] if mixes else {run: 1.0} for s, run in zip(seeds, counted.run_id)},
        dict(zip(seeds, numbers.value[ok].astype(float))), outcome, stored, lost, reason,
    )  # fmt: skip
