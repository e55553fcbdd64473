"""The verdicts of a study's hypotheses in words and tables: verdicts.md, the report's section, and what a terminal shows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..analysis.contrasts import Found
from ..analysis.effects import Effect
from ..analysis.number_text import interval, p_said, p_text, points
from ..analysis.same_cell import SameCell
from ..analysis.verdict_tables import Verdicts
from ..analysis.verdicts import Answer

FIGURE = "The effect of each contrast of a hypothesis with its interval, coloured by verdict"
COLOURS = {"confirmed": "equal", "refuted": "gap", "undecided": "open"}


def effect_text(e: Effect | None, outcome: str, scale: str) -> str:
    """ "+2.1 [0.3, 3.9] points", "×0.29 [0.16, 0.53]"."""
    if e is None:
        return "–"
    value, low, high = (float(np.exp(x)) if scale == "ratio" else x for x in (e.value, *e.interval()))
    return numbers_text(value, low, high, outcome, scale)


def numbers_text(value: float, low: float, high: float, outcome: str, scale: str) -> str:
    """The same from numbers, of a ratio the factors."""
    if not np.isfinite(value):
        return "–"
    if scale == "ratio":
        return f"×{value:.3g}" + (f" [{low:.3g}, {high:.3g}]" if np.isfinite(low) else "")
    if outcome == "test_acc":
        return points(value) + (f" {interval(low, high)}" if np.isfinite(low) else "") + " points"
    known = f" [{low:+.3g}, {high:+.3g}]" if np.isfinite(low) else ""
    return f"{value:+.3g}{known}{' nat' if outcome == 'test_loss' else ''}".replace("-", "−")


def share_of_gap(f: Found) -> str:
    if f.share is None:
        return ""
    if not np.isfinite(f.share.low):
        return f.share.why
    text = f"R = {f.share.value:.2f} [{f.share.low:.2f}, {f.share.high:.2f}]".replace("-", "−")
    return text + (f" ({f.share.why})" if f.share.why else "")


def contrast_rows(v: Verdicts) -> pd.DataFrame:
    rows = [
        {
            "contrast": f.plan.name, "outcome": f"{f.plan.outcome}, {f.plan.at}",
            "effect [95 %]": effect_text(f.effect, f.plan.outcome, f.plan.scale), "recovered": share_of_gap(f) or "–",
            "seeds": str(len(f.seeds)), "paired by": _paired_by(f), "also differs": f.differs or "–",
            "what forbids a verdict": f.reason or f.claims or "–",
        }
        for f in v.found.values()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _paired_by(f: Found) -> str:
    return "–" if f.effect is None else f"seed and {f.effect.images:,} images" if f.effect.images else "seed"


def hypothesis_rows(v: Verdicts) -> pd.DataFrame:
    """A row for each contrast of each hypothesis, under the hypothesis' own words; the last column is the hypothesis' verdict."""
    rows = []
    for a in v.answers:
        for i, part in enumerate(a.parts):
            f = v.found[part.contrast]
            rows.append({
                "claim": (f"{a.plan.claim} ({a.status})" if a.plan.claim else a.plan.name) if i == 0 else "",
                "source": (a.plan.source or "–") if i == 0 else "", "contrast": part.contrast,
                "effect [95 %]": " ".join(filter(None, (effect_text(f.effect, f.plan.outcome, f.plan.scale), share_of_gap(f)))),
                "expected": part.expect + margin_text(part.margin, f.kind, f.plan.outcome, f.plan.scale),
                "seeds": str(len(f.seeds)), "this part": part.verdict,
                "p (Holm)": p_text(a.p_holm) if i == 0 else "", "verdict": verdict_words(a.verdict, a.more or 0) if i == 0 else "",
            })  # fmt: skip
    return pd.DataFrame(rows)


def margin_text(margin: float, kind: str, outcome: str, scale: str) -> str:
    if not np.isfinite(margin):
        return ""
    if kind == "recovery":
        return f", margin {margin:g} of the gap"
    if scale == "ratio":
        return f", margin ×{np.exp(margin):.3g}"
    return f", margin {100 * margin:g} points" if outcome == "test_acc" else f", margin {margin:g}"


def verdict_words(verdict: str, more: int) -> str:
    """`more`: seeds that would decide it, 0 where that isn't known."""
    return verdict + (f" ({more} seeds would decide it)" if verdict == "undecided" and more else "")


def verdict_colour(cell: str) -> str:
    return next((colour for word, colour in COLOURS.items() if cell.startswith(word)), "")


def sentences(v: Verdicts) -> list[str]:
    """One for each hypothesis, Markdown."""
    return [_sentence(a) for a in v.answers]


def in_all(v: Verdicts) -> list[str]:
    """How many hypotheses came out as what, in a sentence; none without hypotheses."""
    if not v.answers:
        return []
    parts = []
    for verdict in COLOURS:
        names = [a.plan.name for a in v.answers if a.verdict == verdict]
        if names:
            parts.append(f"{len(names)} {verdict}" + (f" ({', '.join(names)})" if verdict != "undecided" else ""))
    return [f"The study's hypotheses: {', '.join(parts)}."]


def _sentence(a: Answer) -> str:
    claim = a.plan.claim.rstrip(".") or a.plan.name
    source = f" ({a.plan.source})" if a.plan.source else ""
    more = f"; {a.more} seeds would decide it" if a.verdict == "undecided" and a.more else ""
    why = f" ({a.reason})" if a.reason else ""
    return f"{claim}{source}: **{a.verdict}**{why}{more}. {_counted(a)}"


def _counted(a: Answer) -> str:
    return f"{a.status.capitalize()}, {p_said(a.p_holm)} after Holm."


def same_text(same: list[SameCell]) -> str:
    """What the A/A contrasts came out as."""
    if not same:
        return "**A/A contrasts.** None: no setting has four seeds that count."
    odd = [s for s in same if s.verdict != "nothing"]
    start = (
        f"**A/A contrasts.** {len(same)} comparisons of two halves of the seeds of one setting, unpaired, with the pooled variance of the "
        f"seeds, each at 1 − 5 %/{len(same)}"
    )
    if not odd:
        return f"{start}: all come out as nothing."
    which = ", ".join(f"{s.name} ({s.outcome}, {effect_text(s.effect, s.outcome, s.scale)})" for s in odd)
    return f"{start}: **{len(odd)} come{'s' * (len(odd) == 1)} out as something**, where there is nothing: {which}."


def how_decided(v: Verdicts) -> str:
    said = (
        "Effects are arm less base, of a ratio arm over base. Confirmed: every part of an `all`, or one part of an `any`, lies where it is "
        "expected. Refuted: by equivalence within the margin or by the reverse, never by a failure to confirm. The parts of an `any` are "
        "judged at 5 % over their number, hypotheses by Holm over each other."
    )
    exploratory = [a.plan.name for a in v.answers if a.status == "exploratory"]
    if exploratory:
        said += f" Exploratory, since not registered before the runs: {', '.join(exploratory)}."
    return said


def markdown(v: Verdicts) -> str:
    """verdicts.md."""
    parts = ["# Verdicts", ""]
    if v.answers:
        parts += [*(f"- {s}" for s in sentences(v)), "", how_decided(v), "", *table(hypothesis_rows(v)), ""]
    if v.found:
        parts += ["## Contrasts", "", *table(contrast_rows(v)), ""]
    return "\n".join([*parts, same_text(v.same), ""])


def table(rows: pd.DataFrame) -> Iterable[str]:
    """Lines of Markdown."""
    yield f"| {' | '.join(rows.columns)} |"
    yield f"|{'---|' * len(rows.columns)}"
    for row in rows.itertuples(index=False, name=None):
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
