"""The report's tables of arms, outcomes and mediators (analysis/mediators.py)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..analysis.mediators import MEDIATORS, OUTCOMES, PLACES, ArmEffects, Association
from ..analysis.number_text import estimate_text, p_text
from .verdict_text import effect_text

ABOUT = (
    "Every arm in one plane: what it does to the outcome against what it does to λ₁, φ, batch sharpness and the distance from the start "
    "(arm over base), at the end and, hollow, at the function-preserving twin of equal norms. An intervention's base is the plain setting "
    "at its batch size, a large batch's the smallest, an optimiser's the first one. A mediator explains if arms that move the outcome "
    "move it, arms that move it move the outcome, and both hold at the twin. τ is Kendall's over the arms; the placebo assigns a "
    "mediator's effects to the arms at random, and its p is how often that is as far from 0. Arms are few, chosen and share bases: "
    "τ is a description, and no share of an effect is given."
)
FIGURE = "Effect of each arm on test accuracy and test loss against its effect on mediators"
WHERE = dict(zip(PLACES, ("end", "twin")))
TITLES = {"test_acc": "test accuracy", "test_loss": "test loss"}


def arm_table(arms: list[ArmEffects]) -> pd.DataFrame:
    shown = [label for label in MEDIATORS if any((label, place) in a.mediators for a in arms for place in PLACES)]
    rows = [
        {
            "": str(i), "arm": a.name, "base": a.base,
            **{TITLES[o]: effect_text(a.outcomes.get(o), o, "difference") for o in OUTCOMES},
            **{label: _mediator(a, label) for label in shown},
            "seeds": str(max(e.seeds for e in a.outcomes.values())),
        }
        for i, a in enumerate(arms, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _mediator(arm: ArmEffects, label: str) -> str:
    texts = [
        ("twin " if place != PLACES[0] else "") + effect_text(arm.mediators[label, place], "", "ratio")
        for place in PLACES if (label, place) in arm.mediators
    ]  # fmt: skip
    return "; ".join(texts) or "–"


def association_table(found: list[Association]) -> pd.DataFrame:
    rows = [
        {
            "mediator": a.mediator, "at": WHERE[a.place], "outcome": TITLES[a.outcome], "arms": str(a.arms),
            "τ [95 %]": estimate_text(a.tau), "placebo's p": p_text(a.tau.p), "after Holm": p_text(a.holm),
        }
        for a in found if np.isfinite(a.tau.value)
    ]  # fmt: skip
    return pd.DataFrame(rows)
