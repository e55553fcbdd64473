"""The report's sentences, each made from the numbers. Markdown."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pandas as pd

from ..analysis import stats
from ..analysis.branches import without_branches
from ..analysis.cell_answers import CellAnswer
from ..analysis.matched import OVERSHOT, comparable, fixed_budget, points_per_nat, reference_of
from ..analysis.names import optimizers_of
from ..analysis.pooled import Pooled
from ..reader.sweep import STATUS_WORDS, Sweep
from .phrases import cell_names, distance_text, share_text


def _one(runs: pd.DataFrame, column: str, default: str = "unknown") -> str:
    if column not in runs:
        return default
    values = [v for v in runs[column].unique() if not (isinstance(v, float) and np.isnan(v)) and v != ""]
    return ", ".join(f"{v:g}" if isinstance(v, (float, np.floating)) else str(v) for v in values) or default


def about_data(sweep: Sweep) -> str:
    """What was trained on what, and what the test set alone can resolve."""
    runs = sweep.runs
    text = (
        f"**Data.** {_one(runs, 'dataset.name')} ({_one(runs, 'dataset.pixels')}), {_one(runs, 'dataset.n_train')} "
        f"training and {_one(runs, 'dataset.n_test')} test examples. Model {_one(runs, 'model')}; seeds "
        f"{_seed_counts(runs)}."
    )
    images = _number(runs, "dataset.n_test")
    best = runs[comparable(runs)].test_acc.max() if "test_acc" in runs else np.nan
    if images and np.isfinite(best):
        error = 100 * stats.image_error(best, int(images))
        text += (
            f" {int(images):,} test examples alone give one accuracy near {100 * best:.0f} % a standard error of ±{error:.1f} points; "
            "differences are taken example by example and seed by seed, which narrows them."
        )
    return text


def _seed_counts(runs: pd.DataFrame) -> str:
    counts = runs.groupby(["protocol", "optimizer", "batch_size"]).seed.nunique() if "seed" in runs else pd.Series(dtype=int)
    if counts.empty:
        return "unknown"
    low, high = int(counts.min()), int(counts.max())
    return f"{high} per cell" if low == high else f"{low} to {high} per cell"


def _number(runs: pd.DataFrame, column: str) -> float | None:
    values = pd.to_numeric(runs[column], errors="coerce").dropna().unique() if column in runs else []
    return float(values[0]) if len(values) == 1 else None


def about_large_batches(sweep: Sweep) -> str:
    """What the batch axis means from the size of the training set on (design, section 3)."""
    n = _number(sweep.runs, "dataset.n_train")
    sizes = sorted(int(b) for b in sweep.runs.batch_size.dropna().unique())
    beyond = [b for b in sizes if n and b >= n]
    if not n or not beyond:
        return ""
    return (
        f"**Batches of {int(n):,} and more.** The training set has {int(n):,} images, so from there on "
        f"({', '.join(f'{b:,}' for b in beyond)}) the gradient is almost that of the whole set: the batch axis counts updates, "
        "not noise. Below it, batches are drawn from reshuffled epochs laid end to end, whose noise is "
        "Σ/B · (N − B)/(N − 1)."
    )


def about_status(sweep: Sweep) -> str:
    """How the runs ended; nothing is left out."""
    runs = sweep.runs
    counts = runs.status.value_counts()
    known = [f"{counts[w]} {w.replace('_', ' ')}" for w in STATUS_WORDS if w in counts]
    text = f"**Runs.** {len(runs)} in all: {', '.join(known)}."
    overshot = int(((runs.status == "finished") & ~comparable(runs)).sum())
    if overshot:
        text += f" {overshot} of the finished overshot the target loss."
    return text + " Runs that diverged, missed the target or overshot it enter no comparison; figures of cells have them hollow."


def about_branches(sweep: Sweep) -> str:
    rest = len(without_branches(sweep).runs)
    if rest == len(sweep.runs):
        return ""
    return (
        f"**Branches.** {len(sweep.runs) - rest} of the runs begin from checkpoints of the others. They are in the contrasts of the study "
        "and in sections of their own, and in no comparison of batch sizes."
    )


NOTHING_MATCHED = "Nothing was run to the same training loss, so nothing is known of generalisation there."


def answer(found: list[CellAnswer], together: Pooled | None = None, margin: float = stats.MARGIN) -> list[str]:
    """The answer in at most five sentences, of plain cells: arms are in the tables. Says "missing optimisation" only where a drop is
    resolved at the fixed budget and, at matched loss, either equivalence or the reverse is; what is undecided is called undecided."""
    found = [a for a in found if not a.arm] or found
    if not found:
        return ["No cell beyond the reference: there is nothing to compare."]
    drops = [a for a in found if a.drop and a.drop.verdict and a.drop.verdict.word == "gap" and a.drop.verdict.direction > 0]
    sentences = _pooled_sentences(together, margin) if together else []
    sentences.append(_drops_sentence(found, drops))
    if drops:
        sentences.append(_cells_sentence(drops, margin) if any(a.gap for a in found) else NOTHING_MATCHED)
    sentences.append(_other_gaps(found, drops))
    return [s for s in sentences if s]


def _pooled_sentences(p: Pooled, margin: float) -> list[str]:
    """The mean over cells, and what it says; a single cell's resolved gap forbids the plain words."""
    share = f", {share_text(p.share)} of it" if p.share and p.share.resolved else ""
    numbers = (
        f"Averaged over {cell_names(p.cells)} ({len(p.seeds)} seeds), large batches lose {_lost(p.drop)} points of test "
        f"accuracy at the fixed budget and {_lost(p.gap)} at matched training loss{share}"
    )
    return [numbers + (f"; {distance_text(p.ends)}." if p.apart else "."), _pooled_verdict(p, margin)]


def _lost(d: stats.Difference) -> str:
    """ "**4.2** [3.1, 5.3]": what is lost has no plus."""
    low, high = d.interval()
    return f"**{100 * d.value:.1f}** [{100 * low:.1f}, {100 * high:.1f}]".replace("-", "−")


def _pooled_verdict(p: Pooled, margin: float) -> str:
    if p.withheld:
        return f"**No verdict is given over this mean**: {p.withheld}."
    if p.drop_verdict.word != "gap" or p.drop_verdict.direction < 0:
        return "No drop at the fixed budget is resolved on average."
    if p.gap_verdict.word == "gap" and p.gap_verdict.direction > 0:
        return f"**On average a gap remains at matched training loss** ({p.gap_verdict.text})."
    if p.gap_verdict.word == "undecided":
        text = f"Whether anything within ±{100 * margin:g} points remains is **undecided**"
        if p.share and p.share.resolved and p.share.high < 0.5:
            gone = f"at least {100 * (1 - p.share.high):.0f} % of the drop is gone at matched loss"
            text += f", but {gone}: **most of it is missing optimisation**"
        return text + "."
    how = f"no gap within ±{100 * margin:g} points" if p.gap_verdict.word == "no gap" else "the large batch is the better one"
    one_gap = [a for a in p.cells if _kind(a) == "gap"]
    if one_gap:
        return f"On average {how} at matched loss, but not everywhere: see {cell_names(one_gap)}."
    if p.apart:
        return f"**At a training loss of {p.ends[1]:.2f}** there is, on average, {how}; nothing was compared at the loss where the drop is."
    return f"**Here the drop is missing optimisation**: at the same training loss, on average, {how}."


def _drops_sentence(found: list[CellAnswer], drops: list[CellAnswer]) -> str:
    if not any(a.drop for a in found):
        return "Nothing was run at a fixed budget, so there is no drop to explain: runs are compared at the same training loss."
    seeds = [len(a.drop.seeds) for a in found if a.drop]
    if 0 < max(seeds, default=0) < stats.VERDICT_SEEDS:
        return (
            f"**Nothing is claimed about single cells**: a verdict needs {stats.VERDICT_SEEDS} seeds, and no cell has as many; with one "
            "seed an interval is that of the test images alone."
        )
    if not drops:
        return (
            "**In no single cell is a drop resolved at the fixed budget**, so there is none to explain cell by cell; "
            "that is not to say that there is none."
        )
    return (
        f"Cell by cell, {len(drops)} of {len(found)} {'shows' if len(drops) == 1 else 'show'} a resolved drop from the small-batch "
        "reference at the fixed budget."
    )


def _cells_sentence(drops: list[CellAnswer], margin: float) -> str:
    """What remains at matched loss in the cells whose drop is resolved. Those with a gap are named, the others counted. Optimisation is
    what is missing only where the comparison is at the loss at which the reference ends."""
    kinds = ("gap", "equal", "better", "undecided", "uncompared")
    groups: dict[str, list[CellAnswer]] = {kind: [a for a in drops if _kind(a) == kind] for kind in kinds}
    says = {
        "gap": f"**a gap remains** for {cell_names(groups['gap'])}",
        "equal": f"there is no gap within ±{100 * margin:g} points in {len(groups['equal'])}{_missing(groups['equal'])}",
        "better": f"the large batch is the better one in {len(groups['better'])}{_missing(groups['better'])}",
        "undecided": f"{len(groups['undecided'])} {_are(groups['undecided'])} undecided",
        "uncompared": f"{len(groups['uncompared'])} can't be compared",
    }
    return f"At matched training loss, of these, {', '.join(says[kind] for kind in kinds if groups[kind])}."


def _missing(cells: list[CellAnswer]) -> str:
    return "" if any(a.apart for a in cells) else " (missing optimisation)"


def _are(cells: list[CellAnswer]) -> str:
    return "is" if len(cells) == 1 else "are"


def _other_gaps(found: list[CellAnswer], drops: list[CellAnswer]) -> str:
    """Gaps at matched loss in cells whose drop is not resolved or not known must not go unsaid."""
    others = [a for a in found if a not in drops and _kind(a) == "gap"]
    return (
        f"**A gap at matched training loss is resolved** also for {cell_names(others)}, where no drop at the fixed budget is."
        if others
        else ""
    )


def _kind(a: CellAnswer) -> str:
    verdict = a.gap.verdict if a.gap else None
    if verdict is None:
        return "uncompared"
    if verdict.word == "gap":
        return "gap" if verdict.direction > 0 else "better"
    return "equal" if verdict.word == "no gap" else "undecided"


def chance(found: list[CellAnswer]) -> str:
    """How many intervals there are, and what the verdicts make of that."""
    compared = sum(1 for a in found if a.gap and a.gap.verdict and len(a.gap.seeds) >= stats.VERDICT_SEEDS)
    if compared < 2:
        return ""
    return (
        f"{compared} cells were compared at matched loss with at least {stats.VERDICT_SEEDS} seeds. Each interval is at 95 % on its "
        f"own: about one in twenty would exclude zero by chance. Verdicts take their number into account (5 %/{compared} each), so an "
        "interval without 0 can be undecided."
    )


SPEED = (
    "Updates to the target are not a measure of speed here, unless the rates were tuned for speed and not for validation loss."
)
CHURN = (
    "The share of test images, in percent, on which two runs predict different classes: two seeds of the reference, two seeds of the cell, "
    "and a seed of each (never the same seed). The excess is the last less the mean of the first two: above 0 the two batch sizes find "
    "functions that differ by more than their seeds do. Means over pairs of runs; 95 % intervals by the jackknife over seeds, with the "
    "test images taken as given. Compare at matched loss: networks of different accuracy disagree in any case."
)
AGAINST = (
    "Each optimiser with its own rate against the first, at the same batch size: points of test accuracy with 95 % intervals, a plus "
    "where the optimiser is better. *Drop less*: its drop from the smallest batch size less the first's, negative where it loses less. "
    "Verdicts are of the accuracy, at 5 % over the lines of a protocol that have three seeds."
)
PHASE = (
    "Matched loss isn't matched phase: a run that stops while its rate is high has noise that an annealed one has lost. The details "
    "give the learning rate at the stop over its peak, reference first."
)


def limits(sweep: Sweep) -> str:
    """What the report does not show."""
    runs = sweep.runs
    budget = fixed_budget(runs)
    target = _one(runs[runs.protocol == "B"], "target_loss") if (runs.protocol == "B").any() else None
    text = f"**What this does not show.** {_scope(runs)}, one way of setting the learning rate"
    text += "; intervals hold for new seeds and new test images of the same kind, not for another training set."
    if target:
        text += f" Protocol B stops at a training loss of {target}; another target may answer otherwise." + _band(sweep)
    if not budget:
        text += " No protocol with a fixed budget was run, so the size of the drop is not known."
    return text + " An undecided cell is no evidence for the absence of a gap."


def _scope(runs: pd.DataFrame) -> str:
    """ "One data set (cifar10-5k), 2 networks (small_cnn, resnet20)"."""
    parts = []
    for column, one, many in (("dataset.name", "one data set", "data sets"), ("model", "one network", "networks")):
        values = [v for v in (runs[column].dropna().unique() if column in runs else []) if v != ""]
        parts.append(f"{one if len(values) <= 1 else f'{len(values)} {many}'}" + (f" ({', '.join(values)})" if values else ""))
    text = ", ".join(parts)
    return text[0].upper() + text[1:]


def _band(sweep: Sweep) -> str:
    """How loosely protocol B matches, and what that is worth."""
    runs = sweep.runs
    target = _number(runs[runs.protocol == "B"], "target_loss")
    by_method = {o: 100 * points_per_nat(runs, reference_of(sweep, o)) for o in optimizers_of(runs, sweep.names)}
    slopes = {o: slope for o, slope in by_method.items() if np.isfinite(slope)}
    if not target or not slopes:
        return ""
    low, high = min(slopes.values()), max(slopes.values())
    per_nat = f"{low:.0f}" if round(low) == round(high) else f"{low:.0f} to {high:.0f}"
    of = "" if len(slopes) == len(by_method) else f" of {', '.join(sweep.names.label('optimizers', o) for o in slopes)}"
    rest = "" if not of else " (of the others there are no two ends far enough apart)"
    return (
        f" It takes any end between {OVERSHOT * target:g} and {target:g} as matched. In the references{of}, from their ends at the "
        f"fixed budget to those at matched loss, test accuracy falls by {per_nat} points per nat{rest}, so the width of that band "
        f"alone is worth up to {(1 - OVERSHOT) * target * high:.1f} points. Each comparison therefore gives the mean training losses "
        "of both sides (reference first) and, where its reference has such a slope, what their distance is worth; nothing is "
        "corrected for it."
    )


def reference_sentence(sweep: Sweep) -> str:
    """Which cell everything is compared with."""
    by_reference: dict[str, list[str]] = {}
    names = sweep.names
    for optimizer in optimizers_of(sweep.runs, names):
        r = reference_of(sweep, optimizer)
        reference = f"{names.label('optimizers', r.optimizer)} at batch {r.batch_size:,}"
        by_reference.setdefault(reference, []).append(names.label("optimizers", optimizer))
    parts = [f"{reference} for {', '.join(labels)}" for reference, labels in by_reference.items()]
    return (
        f"Reference: {'; '.join(parts)}. Numbers are points of test accuracy, reference less cell, with 95 % intervals "
        "over seeds and test images together (t quantiles for few seeds); a plus means that the reference is better. "
        "Verdicts: a gap (the 95 % interval excludes 0), no gap within the margin (equivalence test at 5 %), or undecided. Contrasts "
        "of the study count the other way, arm less base, and are corrected for those of their hypothesis, not for the cells here."
    )


def in_a_terminal(said: list[str], warned: list[str], table: pd.DataFrame) -> str:
    """What stands first in the report, as plain text."""
    columns = [[str(name), *map(str, table[name])] for name in table]
    widths = [max(map(len, column)) for column in columns]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in zip(*columns)]
    return "\n".join([plain(" ".join(said)), *(plain(f"warning: {w}") for w in warned), "", *rows])


def plain(markdown: str) -> str:
    """A paragraph for a terminal."""
    return textwrap.fill(re.sub(r"\*\*|`", "", markdown), 100, subsequent_indent="  ")
