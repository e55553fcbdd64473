"""A/A contrasts: two halves of the seeds of one setting, between which there is nothing to find.

With every other seed in the second half, effect = mean of the second less mean of the first. The halves are not paired: the variance
is the pooled one of the seeds' means within the halves, times 1/S1 + 1/S2, with S - 2 degrees of freedom. It holds the seeds' part and
what is neither seed nor image; the images are the same in both halves, so their own part falls out.

With m of them, each is judged at 1 - 5 %/m: about one study in twenty has one that comes out as something.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..reader.questions import Questions
from ..reader.sweep import Sweep
from .arms import ARM, with_arms
from .contrasts import Found
from .effects import Effect, between
from .outcome_values import values_of
from .settings import Setting

FEWEST = 4  # seeds, two in each half
ALPHA = 0.05


@dataclass(frozen=True)
class SameCell:
    name: str
    outcome: str
    at: str
    scale: str
    effect: Effect
    verdict: str  # "nothing" | "something"


def same_cells(sweep: Sweep, questions: Questions, found: dict[str, Found]) -> list[SameCell]:
    """Test accuracy at the end in every setting that has seeds enough, and what the study's contrasts ask of theirs."""
    runs = with_arms(sweep)
    known = runs[(runs.config_id.fillna("") != "") & runs.batch_size.notna()]
    asked = {(str(c), "test_acc", "end", "difference"): Setting("", group) for c, group in known.groupby("config_id", sort=False)}
    for f in found.values():
        at = "end" if f.plan.at == "budget" else f.plan.at
        for _, setting in f.terms:
            asked.setdefault((setting.config_id, f.plan.outcome, at, f.plan.scale), Setting("", known.loc[setting.runs.index]))
    made = [(key, setting, e) for key, setting in asked.items() if (e := _halves(sweep, setting, *key[1:])) is not None]
    return [SameCell(_name(s), key[1], key[2], key[3], e, _verdict(e, len(made))) for key, s, e in made]


def _halves(sweep: Sweep, setting: Setting, outcome: str, at: str, scale: str) -> Effect | None:
    values = values_of(sweep, setting, outcome, at)
    seeds = sorted(values.numbers)
    numbers = values.column(seeds) if seeds else np.array([])
    if scale == "ratio" and (numbers <= 0).any():
        return None
    if len(seeds) < FEWEST:
        return None
    numbers = np.log(numbers) if scale == "ratio" else numbers
    effect = between(numbers[::2], numbers[1::2])
    return effect if np.isfinite(effect.error) else None


def _verdict(e: Effect, count: int) -> str:
    low, high = e.interval(1 - ALPHA / count)
    return "nothing" if low <= 0 <= high else "something"


def _name(setting: Setting) -> str:
    run = setting.runs.iloc[0]
    arm = f" {run[ARM]}" if run[ARM] else ""
    return f"{run.optimizer} B={int(run.batch_size)} {run.protocol}{arm}"
