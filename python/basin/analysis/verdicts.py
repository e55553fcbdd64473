"""Confirmed, refuted or undecided: what a study's hypotheses come to.

Within a hypothesis of m contrasts, fixed when it was registered, with alpha = 5 %:
  rule "any"  a difference by the interval at 1 - alpha/m, equivalence by that at 1 - 2 alpha/m (two one-sided tests at alpha/m).
              Confirmed where one part is, refuted where all are.
  rule "all"  a conjunction: confirmed where each part is at 5 %. Refuted where one part is, which is a union: at alpha/m.
A part is confirmed where its interval lies on the side expected (for "equivalent": within the margin), and refuted by equivalence or
reversal, never by a failure to confirm. Where a difference is resolved and lies within the margin too, it is a difference.
"Equivalent" is refuted where the interval lies outside of the margin.

Across hypotheses: Holm (1979) on the p-values of the verdicts that they would have alone.

Simulated for m = 12 (python -m basin.pages.simulations): at most 5 % of families have a false verdict. Holm on the differences with
unadjusted tests of equivalence would have far more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..reader.questions import ContrastPlan, HypothesisPlan, Questions
from . import stats
from .contrasts import Found
from .effects import Effect, Recovered, crossed, seeds_to_decide
from .effects import by_seed as effect_by_seed

ALPHA = 0.05
SIGNS = {"greater": 1, "less": -1}


@dataclass(frozen=True)
class Part:
    """One contrast under one hypothesis. `low`, `high`: at 1 - alpha/m (conjunction: 95 %). `p_confirmed`, `p_refuted`: unadjusted.
    `more`: seeds that would decide it; 0: not known, or not by seeds alone."""

    contrast: str
    expect: str
    margin: float  # in units of the effect; NaN: none
    verdict: str
    low: float = np.nan
    high: float = np.nan
    equal_low: float = np.nan
    equal_high: float = np.nan
    p_confirmed: float = 1.0
    p_refuted: float = 1.0
    reason: str = ""
    more: int = 0


@dataclass(frozen=True)
class Answer:
    """`alone`: the verdict before Holm's correction over hypotheses, `p_holm` after it."""

    plan: HypothesisPlan
    parts: list[Part] = field(default_factory=list)
    verdict: str = "undecided"
    alone: str = "undecided"
    p: float = 1.0
    p_holm: float = 1.0
    status: str = "exploratory"
    reason: str = ""

    @property
    def more(self) -> int:
        """Seeds that would decide all undecided parts; 0 where one isn't known."""
        open_parts = [part.more for part in self.parts if part.verdict == "undecided"]
        return max(open_parts) if open_parts and all(open_parts) else 0


def unit_margin(plan: ContrastPlan, margin: float) -> float:
    """A study's margin in units of the effect. Without one, test accuracy has the usual margin."""
    if plan.recovers:
        return margin
    if plan.scale == "ratio":
        return abs(float(np.log(margin)))
    if plan.outcome == "test_acc":
        return stats.MARGIN if np.isnan(margin) else margin / 100
    return margin


def answers(found: dict[str, Found], questions: Questions) -> list[Answer]:
    alone = [replace(judge(found, plan), status=questions.status(plan.name)) for plan in questions.hypotheses]
    adjusted = holm([a.p for a in alone])
    return [_across(a, p, len(alone)) for a, p in zip(alone, adjusted)]


def _across(a: Answer, p: float, count: int) -> Answer:
    if a.alone == "undecided" or p <= ALPHA:
        return replace(a, p_holm=p, verdict=a.alone)
    return replace(a, p_holm=p, verdict="undecided", reason=f"{a.alone} alone, not after Holm over {count} hypotheses")


def holm(p: list[float]) -> list[float]:
    """Holm's step-down adjusted p-values."""
    order, adjusted, most = np.argsort(p, kind="stable"), np.ones(len(p)), 0.0
    for place, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - place) * p[i]))
        adjusted[i] = most
    return [float(a) for a in adjusted]


def judge(found: dict[str, Found], plan: HypothesisPlan) -> Answer:
    m = len(plan.contrasts)
    confirm_by = 1 if plan.rule == "all" else m
    parts = [
        judge_part(found[name], expect, unit_margin(found[name].plan, margin), confirm_by, m)
        for name, expect, margin in zip(plan.contrasts, plan.expect, plan.margins)
    ]
    words = [part.verdict for part in parts]
    confirmed = [p.p_confirmed for p in parts]
    refuted = [1.0 if p.verdict == "confirmed" else p.p_refuted for p in parts]  # a difference within the margin is a difference
    if plan.rule == "all":
        yes, p_yes, no, p_no = all(w == "confirmed" for w in words), max(confirmed), "refuted" in words, m * min(refuted)
    else:
        yes, p_yes, no, p_no = "confirmed" in words, m * min(confirmed), all(w == "refuted" for w in words), m * max(refuted)
    alone = "confirmed" if yes else "refuted" if no else "undecided"
    p = min(1.0, p_yes if yes else p_no if no else min(p_yes, p_no))
    reasons = "; ".join(f"{part.contrast}: {part.reason}" for part in parts if part.reason)
    return Answer(plan, parts, alone, alone, p, p, reason=reasons if alone == "undecided" else "")


def judge_part(found: Found, expect: str, margin: float, confirm_by: int = 1, refute_by: int = 1) -> Part:
    """`confirm_by`, `refute_by`: how many comparisons alpha is shared among. More seeds don't mend that some of them were lost."""
    e, name = found.estimate, found.plan.name
    if e is None or found.claims:
        return Part(
            name,
            expect,
            margin,
            "undecided",
            reason=found.reason or found.claims,
            more=0 if found.lost else _more(found, expect, margin, confirm_by),
        )
    low, high = e.interval(1 - ALPHA / confirm_by)
    equal = e.interval(1 - 2 * ALPHA / confirm_by)
    p_confirmed, p_refuted = _p_values(e, expect, margin)
    verdict = "confirmed" if p_confirmed <= ALPHA / confirm_by else "refuted" if p_refuted <= ALPHA / refute_by else "undecided"
    more = _more(found, expect, margin, max(confirm_by, refute_by)) if verdict == "undecided" else 0
    return Part(name, expect, margin, verdict, low, high, *equal, p_confirmed, p_refuted, "", more)


def _p_values(e: Effect | Recovered, expect: str, margin: float) -> tuple[float, float]:
    """That the part isn't as expected; that it isn't otherwise."""
    sign, p = np.sign(e.value), _zero(e)
    equal = _within(e, margin) if np.isfinite(margin) else 1.0
    if expect == "equivalent":
        return equal, _outside(e, margin) if np.isfinite(margin) else 1.0
    if expect == "different":
        return p, equal
    return (p, equal) if sign == SIGNS[expect] else (1.0, min(p, equal))


def _zero(e: Effect | Recovered) -> float:
    return e.less(0.0).p_different()


def _within(e: Effect | Recovered, margin: float) -> float:
    """Two one-sided tests (Schuirmann 1987)."""
    return max(e.less(-margin).p_above(), e.less(margin).reversed().p_above())


def _outside(e: Effect | Recovered, margin: float) -> float:
    """Two-sided, since either bound may be passed."""
    return min(1.0, 2 * min(e.less(margin).p_above(), e.less(-margin).reversed().p_above()))


def _more(found: Found, expect: str, margin: float, comparisons: int) -> int:
    """None for an equivalence: no number of seeds decides it where the effect is as large as the margin."""
    if found.effect is None or len(found.seeds) < 2 or expect == "equivalent":
        return 0
    if found.share is None:
        return seeds_to_decide(found.effect, margin, comparisons)
    gap = float(found.share.gap.mean())
    if not np.isfinite(found.share.low) or not gap > 0:
        return 0
    d = found.share.part - found.share.part.mean() / gap * found.share.gap
    return seeds_to_decide(crossed(d) if d.ndim == 2 else effect_by_seed(d), margin * gap, comparisons)
