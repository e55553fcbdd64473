"""The effects of a study's contrasts: arm less base (of ratios: arm over base, on logarithms), differences of two of them, and the part
of one that an arm recovers. Paired by seed, and by test image where outcomes of images are stored.

A contrast is a sum of settings with weights, so one seed and one image have one number, sum of weight times outcome, whatever the kind;
effects.py makes the interval. Settings that stand on both sides fall out.

Survivors: where outcomes decided which seeds are compared, nothing is claimed, but for one case. A worse arm at a fixed budget
stands where seeds of the arm alone diverged, since these would add to it (matched.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..reader.questions import ContrastPlan, Questions
from ..reader.sweep import Sweep
from . import stats
from .effects import Effect, Recovered, by_seed, crossed, recovered
from .matched import UNFINISHED
from .outcome_values import IMAGES, Values, values_of
from .settings import Setting, Unpicked, also_differs, pick

Terms = list[tuple[float, Setting]]
RISING = ("test_acc",)  # outcomes of which more is better


@dataclass
class Found:
    """What is known of one contrast. `effect`: its own effect, of a recovery arm less large; None where there is none, and `reason` says
    why. `claims`: what forbids a verdict, empty where nothing does. `losses`: mean training loss by role, at the end."""

    plan: ContrastPlan
    terms: Terms = field(default_factory=list)
    effect: Effect | None = None
    share: Recovered | None = None
    reason: str = ""
    claims: str = ""
    seeds: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    differs: str = ""

    @property
    def kind(self) -> str:
        return "difference" if self.plan.minuend else "recovery" if self.plan.recovers else "plain"

    @property
    def estimate(self) -> Effect | Recovered | None:
        """What is judged: R of a recovery, else the effect."""
        return self.share if self.plan.recovers else self.effect

    @property
    def status(self) -> str:
        if self.effect is None:
            return "not_compared"
        if self.claims:
            return "survivors" if self.lost and "seed" in self.claims and len(self.seeds) >= stats.VERDICT_SEEDS else "no_verdict"
        return "ok"


def evaluate(sweep: Sweep, questions: Questions) -> dict[str, Found]:
    return {name: evaluate_one(sweep, questions, plan) for name, plan in questions.contrasts.items()}


def evaluate_one(sweep: Sweep, questions: Questions, plan: ContrastPlan) -> Found:
    found = Found(plan)
    try:
        found.terms = _terms(sweep, questions, plan)
    except Unpicked as error:
        found.reason = str(error)
        return found
    if not plan.minuend:
        named = plan.arm | (questions.contrasts[plan.recovers].arm if plan.recovers else {})
        found.differs = also_differs(sweep, found.terms[0][1], found.terms[1][1], named)
    estimate(sweep, found)
    return found


def _terms(sweep: Sweep, questions: Questions, plan: ContrastPlan) -> Terms:
    """Arm first, of a recovery (arm, large, small), the last of weight 0."""
    if plan.minuend:
        parts = [(sign, questions.contrasts[name]) for sign, name in ((1, plan.minuend), (-1, plan.subtrahend))]
        return [(sign * w, setting) for sign, part in parts for w, setting in _terms(sweep, questions, part)]
    gap = questions.contrasts[plan.recovers] if plan.recovers else plan
    base = pick(sweep, "small" if plan.recovers else "base", gap.base, questions)
    arm = pick(sweep, "arm", gap.base | plan.arm, questions, base)
    if not plan.recovers:
        settings: Terms = [(1.0, arm), (-1.0, base)]
    else:
        settings = [(1.0, arm), (-1.0, pick(sweep, "large", gap.base | gap.arm, questions, base)), (0.0, base)]
    ids = [setting.config_id for _, setting in settings]
    if len(set(ids)) < len(ids):
        raise Unpicked("two of its settings are the same")
    return settings


def estimate(sweep: Sweep, found: Found) -> None:
    """Fills in what follows from `plan` and `terms`."""
    plan = found.plan
    values = [values_of(sweep, setting, plan.outcome, plan.at) for _, setting in found.terms]
    found.lost = list(dict.fromkeys(f"{v.role}: {v.lost.text}" for v in values if v.lost))
    found.reason = next((v.reason for v in values if v.reason), "")
    if found.reason:
        return
    found.seeds = sorted(set.intersection(*(set(v.numbers) for v in values)))
    if not found.seeds:
        found.reason = "the settings share no seed"
        return
    columns = _columns(sweep, values, found.seeds, plan)
    if any(not np.isfinite(c).all() for c in columns):
        found.reason = "a ratio of numbers that are not all above 0"
        return
    found.losses = _losses(sweep, values, found.seeds)
    d = np.sum([w * c for (w, _), c in zip(found.terms, columns)], axis=0)
    found.effect = crossed(d) if d.ndim == 2 else by_seed(d)
    if plan.recovers:
        found.share = recovered(columns[2], columns[1], columns[0])
    found.claims = _no_claim(found, values)


def _columns(sweep: Sweep, values: list[Values], seeds: list[int], plan: ContrastPlan) -> list[np.ndarray]:
    """Tables [seed, image] where all settings have them and nothing is made a logarithm, else numbers by seed."""
    if plan.scale == "difference" and plan.outcome in IMAGES:
        tables = [v.table(sweep, seeds) for v in values]
        there = [t for t in tables if t is not None]
        if len(there) == len(tables) and len({t.shape for t in there}) == 1:
            return there
    columns = [v.column(seeds) for v in values]
    if plan.scale == "ratio":
        with np.errstate(invalid="ignore", divide="ignore"):
            return [np.log(np.where(c > 0, c, np.nan)) for c in columns]
    return columns


def _losses(sweep: Sweep, values: Iterable[Values], seeds: list[int]) -> dict[str, float]:
    if "train_loss" not in sweep.runs:
        return {}
    loss = pd.Series(sweep.runs.train_loss.to_numpy(float), index=sweep.runs.run_id)
    return {v.role: float(np.mean([sum(w * loss[run] for run, w in v.mixes[s].items()) for s in seeds])) for v in values}


def _no_claim(found: Found, values: list[Values]) -> str:
    seeds = len(found.seeds)
    if seeds < stats.VERDICT_SEEDS:
        return f"{seeds} seed{'s' * (seeds != 1)}; a verdict needs {stats.VERDICT_SEEDS}"
    if found.share is not None and found.share.why:
        return found.share.why
    if found.effect is not None and not np.isfinite(found.effect.error):
        return "all seeds are alike: no interval"
    chosen = [v for v in values if v.lost and any(word not in UNFINISHED for word in v.lost.counts)]
    if not chosen or _stands(found, chosen):
        return ""
    return "; ".join(f"{v.role}: {v.lost.text}" for v in chosen if v.lost)


def _stands(found: Found, chosen: list[Values]) -> bool:
    """A worse arm at a fixed budget of which only the arm's seeds diverged."""
    plan, effect = found.plan, found.effect
    if found.kind != "plain" or effect is None or plan.outcome not in IMAGES or plan.at.startswith(("loss-", "annealed-")):
        return False
    worse = effect.value < 0 if plan.outcome in RISING else effect.value > 0
    fixed = all((setting.runs.protocol != "B").all() for _, setting in found.terms)
    return worse and fixed and all(v.role == "arm" and set(v.lost.counts) <= {"diverged", *UNFINISHED} for v in chosen if v.lost)
