"""What a reader must know before believing the report: references that aren't tuned or are bad themselves, lost and single seeds."""

from __future__ import annotations

import pandas as pd

from ..analysis import stats
from ..analysis.arms import ARM, has_own_rate, nearest_arm, with_arms
from ..analysis.cell_answers import CellAnswer
from ..analysis.matched import reference_of
from ..analysis.names import optimizers_of
from ..analysis.number_text import interval, points
from ..analysis.pooled import Pooled, beaten_by_others
from ..reader.sweep import Sweep
from .phrases import cell_names, left_out_text, lost_text


def warnings_of(sweep: Sweep, found: list[CellAnswer], together: Pooled | None) -> list[str]:
    """A sentence each; Markdown."""
    return [
        *(_untuned(sweep, o) for o in _one_rate(sweep)),
        *_arms_of_one_rate(sweep),
        *_beaten_references(sweep, found),
        *_beaten_by_another(sweep),
        *_not_compared(found),
        *_lost_seeds(found),
        *_few_seeds(found),
        *([f"Not in the average over cells: {left_out_text(together)}."] if together and together.left_out else []),
    ]


def _one_rate(sweep: Sweep) -> list[str]:
    """Optimisers whose rate is one, or one by a rule, for all of several batch sizes."""
    runs = sweep.runs
    return [
        optimizer
        for optimizer in optimizers_of(runs, sweep.names)
        if runs[runs.optimizer == optimizer].batch_size.nunique() > 1
        and all(_rates(part).nunique() == 1 for _, part in runs[runs.optimizer == optimizer].groupby("protocol"))
    ]


def _arms_of_one_rate(sweep: Sweep) -> list[str]:
    """Arms that have the rate of what they are an arm of, and none that the study gives them: the arm that was tuned least loses."""
    runs = with_arms(sweep)
    shared: dict[tuple[str, str], list[str]] = {}
    for (_, optimizer, size), group in runs[runs.batch_size.notna()].groupby(["protocol", "optimizer", "batch_size"]):
        rates = {str(arm): set(_rates(mine)) for arm, mine in group.groupby(ARM)}
        for arm, mine in rates.items():
            base = nearest_arm(arm, (other for other in rates if other != arm))
            if base is None or "learning_rate" in arm or has_own_rate(arm, base, sweep.study):
                continue
            if rates[base] and mine == rates[base]:
                place = f"{sweep.names.label('optimizers', optimizer)} at {int(size):,}"
                shared.setdefault((arm, base), []).append(place)
    whose = {"": "the plain setting's learning rate"}
    return [
        f"**The arm {arm} has {whose.get(base, f'the learning rate of {base}')}** for {', '.join(dict.fromkeys(places))}: its effect is "
        "that of the option at this rate, not at its own best."
        for (arm, base), places in shared.items()
    ]


def _beaten_by_another(sweep: Sweep) -> list[str]:
    """References that are worse than another optimiser's."""
    return [f"**{text[0].upper()}{text[1:]}**: drops from it are too small." for text in beaten_by_others(sweep).values()]


def _rates(runs: pd.DataFrame) -> pd.Series:
    return pd.to_numeric(runs.get("learning_rate", pd.Series(dtype=float)), errors="coerce").dropna()


def _untuned(sweep: Sweep, optimizer: str) -> str:
    mine = sweep.runs[sweep.runs.optimizer == optimizer]
    rules = sorted({str(rule) for rule in mine.get("scaling_rule", pd.Series(dtype=str)).dropna()} - {"", "none"})
    how = f", scaled by the rule {' or '.join(rules)}" if rules else ""
    rate = ", ".join(f"{rate:g}" for rate in sorted(_rates(mine).unique()))
    return (
        f"**{sweep.names.label('optimizers', optimizer)} has one learning rate for all batch sizes** ({rate}{how}): a drop may be a rate "
        "that suits one size and not another (`basin tune`)."
    )


def _beaten_references(sweep: Sweep, found: list[CellAnswer]) -> list[str]:
    """Where a larger batch is better at the fixed budget beyond chance, the reference is no best of its optimiser."""
    beaten: dict[str, list[CellAnswer]] = {}
    for a in found:
        if a.drop and a.drop.verdict and a.drop.verdict.word == "gap" and a.drop.verdict.direction < 0:
            beaten.setdefault(_reference_name(sweep, a.drop.reference.optimizer), []).append(a)
    return [
        f"**The reference {name} is beaten** at the fixed budget by {cell_names(cells)} (by up to {_most(cells)} points): drops from it "
        "are too small, and shares of them mean little."
        for name, cells in beaten.items()
    ]


def _most(cells: list[CellAnswer]) -> str:
    best = min((a.drop.estimate for a in cells if a.drop and a.drop.estimate), key=lambda e: e.value)
    low, high = best.interval()
    return f"{points(-best.value)} {interval(-high, -low)}"


def _reference_name(sweep: Sweep, optimizer: str) -> str:
    r = reference_of(sweep, optimizer)
    return f"{sweep.names.label('optimizers', r.optimizer)} at {r.batch_size:,}"


def _not_compared(found: list[CellAnswer]) -> list[str]:
    """What has no estimate at all, and why."""
    said = []
    for where, contrasts in (("the fixed budget", [(a, a.drop) for a in found]), ("matched loss", [(a, a.gap) for a in found])):
        without = [f"{cell_names([a])} ({c.reason})" for a, c in contrasts if c and c.estimate is None]
        said += [f"**Not compared at {where}**: {', '.join(without)}."] if without else []
    return said


def _lost_seeds(found: list[CellAnswer]) -> list[str]:
    lost = [
        f"{cell_names([a])}: {text}"
        for a in found
        if (text := "; ".join(dict.fromkeys(filter(None, map(lost_text, (a.drop, a.gap))))))
    ]
    return (
        [
            f"**Seeds are missing**: {'. '.join(lost)}. Where outcomes chose the seeds that are left, nothing is concluded from them."
        ]
        if lost
        else []
    )


def _few_seeds(found: list[CellAnswer]) -> list[str]:
    few = [a for a in found if a.gap and a.gap.estimate and len(a.gap.seeds) < stats.VERDICT_SEEDS]
    return [f"**Fewer than {stats.VERDICT_SEEDS} seeds**: nothing is claimed of {cell_names(few)}."] if few else []
