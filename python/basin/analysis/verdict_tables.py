"""The verdicts of a study as tables: of its contrasts, of its hypotheses, and of each contrast under each hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..reader.questions import Questions, read_questions
from ..reader.sweep import Sweep
from .contrasts import Found, evaluate
from .effects import Effect
from .same_cell import SameCell, same_cells
from .verdicts import Answer, answers

CONTRAST = {
    "name": "", "kind": "", "outcome": "", "at": "", "scale": "", "status": "", "verdict": "", "reason": "", "lost": "", "differs": "",
    "hypotheses": "", "effect": np.nan, "low": np.nan, "high": np.nan, "error": np.nan, "freedom": np.nan, "p": np.nan, "seeds": 0,
    "images": 0, "var_seed": np.nan, "var_image": np.nan, "var_rest": np.nan, "share": np.nan, "share_low": np.nan,
    "share_high": np.nan, "loss_base": np.nan, "loss_arm": np.nan, "seeds_to_decide": 0,
}  # fmt: skip
HYPOTHESIS = {
    "name": "", "claim": "", "source": "", "rule": "", "verdict": "", "alone": "", "status": "", "reason": "", "contrasts": "",
    "p": np.nan, "p_holm": np.nan, "seeds_to_decide": 0, "hash": "", "utc": "",
}  # fmt: skip
PART = {
    "hypothesis": "", "contrast": "", "expect": "", "verdict": "", "reason": "", "margin": np.nan, "low": np.nan, "high": np.nan,
    "equal_low": np.nan, "equal_high": np.nan, "p_confirmed": np.nan, "p_refuted": np.nan, "seeds_to_decide": 0,
}  # fmt: skip


@dataclass
class Verdicts:
    """All that a study's questions come to."""

    questions: Questions
    found: dict[str, Found]
    answers: list[Answer]
    same: list[SameCell]

    @property
    def empty(self) -> bool:
        return not self.found and not self.same


def verdicts_of(sweep: Sweep) -> Verdicts:
    questions = read_questions(sweep.study, sweep.folder, sweep.path)
    found = evaluate(sweep, questions)
    return Verdicts(questions, found, answers(found, questions), same_cells(sweep, questions, found))


def contrast_table(v: Verdicts) -> pd.DataFrame:
    """One row each, A/A last. `effect`, `low`, `high` in the outcome's unit, of a ratio as factors; variances of logarithms there. For a
    recovery they are arm less large, and `share` is R."""
    rows = [_contrast_row(v, f) for f in v.found.values()] + [_same_row(s) for s in v.same]
    return pd.DataFrame([CONTRAST | row for row in rows], columns=list(CONTRAST))


def _contrast_row(v: Verdicts, f: Found) -> dict:
    parts = [(a.plan.name, part) for a in v.answers for part in a.parts if part.contrast == f.plan.name]
    row = {
        "name": f.plan.name, "kind": f.kind, "outcome": f.plan.outcome, "at": f.plan.at, "scale": f.plan.scale, "status": f.status,
        "verdict": _word(f), "reason": f.reason or f.claims, "lost": "; ".join(f.lost), "differs": f.differs,
        "hypotheses": ", ".join(name for name, _ in parts), "seeds": len(f.seeds),
        "loss_base": f.losses.get("base", f.losses.get("small", np.nan)), "loss_arm": f.losses.get("arm", np.nan),
        "seeds_to_decide": max((part.more for _, part in parts), default=0),
    }  # fmt: skip
    if f.plan.minuend:  # of several bases and arms
        row |= {"loss_base": np.nan, "loss_arm": np.nan}
    if f.effect is not None:
        row |= _effect_columns(f.effect, f.plan.scale)
    if f.share is not None:
        row |= {"share": f.share.value, "share_low": f.share.low, "share_high": f.share.high}
    return row


def _effect_columns(e: Effect, scale: str) -> dict:
    back = np.exp if scale == "ratio" else float
    low, high = e.interval()
    return {
        "effect": float(back(e.value)), "low": float(back(low)), "high": float(back(high)), "error": e.error, "freedom": e.freedom,
        "p": e.p_different(), "images": e.images, "var_seed": e.var_seed, "var_image": e.var_image, "var_rest": e.var_rest,
    }  # fmt: skip


def _word(f: Found) -> str:
    """By itself, at 5 %: greater, less or undecided."""
    e = f.estimate
    if e is None or f.claims:
        return "undecided"
    low, high = e.interval()
    return "greater" if low > 0 else "less" if high < 0 else "undecided"


def _same_row(s: SameCell) -> dict:
    about = {"name": f"A/A {s.name}", "kind": "same_cell", "outcome": s.outcome, "at": s.at, "scale": s.scale}
    return about | {"status": "ok", "verdict": s.verdict, "seeds": s.effect.seeds} | _effect_columns(s.effect, s.scale)


def hypothesis_table(v: Verdicts) -> pd.DataFrame:
    rows = []
    for a in v.answers:
        known = v.questions.registered.get(a.plan.name)
        rows.append(HYPOTHESIS | {
            "name": a.plan.name, "claim": a.plan.claim, "source": a.plan.source, "rule": a.plan.rule, "verdict": a.verdict,
            "alone": a.alone, "status": a.status, "reason": a.reason, "contrasts": ", ".join(a.plan.contrasts), "p": a.p,
            "p_holm": a.p_holm, "seeds_to_decide": a.more, "hash": known.hash if known else "", "utc": known.utc if known else "",
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(HYPOTHESIS))


def part_table(v: Verdicts) -> pd.DataFrame:
    """Intervals and margin as the effect is judged: of a ratio logarithms, of a recovery parts of the gap."""
    rows = [
        PART | {
            "hypothesis": a.plan.name, "contrast": p.contrast, "expect": p.expect, "verdict": p.verdict, "reason": p.reason,
            "margin": p.margin, "low": p.low, "high": p.high, "equal_low": p.equal_low, "equal_high": p.equal_high,
            "p_confirmed": p.p_confirmed, "p_refuted": p.p_refuted, "seeds_to_decide": p.more,
        }
        for a in v.answers for p in a.parts
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(PART))
