"""The report's sentences, each made from the numbers. Markdown."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..analysis import stats
from ..analysis.matched import OVERSHOT, CellAnswer, Contrast, Pooled, comparable, fixed_budget, points_per_nat, reference_of
from ..analysis.names import optimizers_of, protocol_name
from ..analysis.number_text import interval, points
from ..reader.sweep import STATUS_WORDS, Sweep
from .phrases import cell_names, contrast_text, left_out_text, losses_text, lost_text, share_text, shift_text


def _one(runs: pd.DataFrame, column: str, default: str = "unknown") -> str:
    if column not in runs:
        return default
    values = [v for v in runs[column].unique() if not (isinstance(v, float) and np.isnan(v)) and v != ""]
    return ", ".join(f"{v:g}" if isinstance(v, (float, np.floating)) else str(v) for v in values) or default


def about_data(sweep: Sweep) -> str:
    """What was trained on what, and what the test set alone can resolve."""
    runs = sweep.runs
    text = (
        f"**Data.** {_one(runs, 'dataset.name')}, {_one(runs, 'dataset.pixels')} pixels: {_one(runs, 'dataset.n_train')} "
        f"training and {_one(runs, 'dataset.n_test')} test images. Model {_one(runs, 'model')}; seeds "
        f"{_seed_counts(runs)}."
    )
    images = _number(runs, "dataset.n_test")
    best = runs[comparable(runs)].test_acc.max() if "test_acc" in runs else np.nan
    if images and np.isfinite(best):
        error = 100 * stats.image_error(best, int(images))
        text += (
            f" {int(images):,} test images alone give one accuracy near {100 * best:.0f} % a standard error of ±{error:.1f} points; "
            "differences are taken image by image and seed by seed, which narrows them."
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
    return text + " Runs that diverged, missed the target or overshot it are drawn hollow and enter no comparison."


def answer_table(found: list[CellAnswer]) -> pd.DataFrame:
    """Differences in points of test accuracy, reference less cell, with 95 % intervals."""
    rows = []
    for a in found:
        rows.append({
            "optimiser": a.label, "batch size": f"{a.batch_size:,}",
            "drop at fixed budget": contrast_text(a.drop), "left at matched loss": contrast_text(a.gap),
            "share that is left": share_text(a.share), "mean training losses matched": losses_text(a.gap),
            "seeds": len(a.gap.seeds) if a.gap and a.gap.estimate else 0, "seeds left out": _left_out(a),
            "verdict at matched loss": a.gap.verdict.text if a.gap and a.gap.verdict else "not compared",
        })  # fmt: skip
    return pd.DataFrame(rows)


def _left_out(a: CellAnswer) -> str:
    drop, gap = lost_text(a.drop), lost_text(a.gap)
    parts = ([f"fixed budget: {drop}"] if drop else []) + ([f"matched loss: {gap}"] if gap else [])
    return "; ".join(parts) or "–"


def cell_sentence(a: CellAnswer) -> str:
    """One batch size and optimiser in words."""
    who = f"**{a.label}, batch {a.batch_size:,}**"
    drop, gap = a.drop, a.gap
    parts = []
    if drop is None or drop.verdict is None:
        parts.append("the drop at a fixed budget is not known" + (f" ({drop.reason})" if drop else ""))
    else:
        parts.append(
            f"the drop at {protocol_name(drop.protocol)} is {contrast_text(drop)} points ({_words(drop.verdict)})"
            f"{_without(drop, drop.verdict)}"
        )
    if gap is None or gap.verdict is None:
        parts.append("at matched training loss there is nothing to compare" + (f" ({gap.reason})" if gap else ""))
    else:
        left = f"at matched training loss {contrast_text(gap)} points are left"
        if a.share and a.share.resolved:
            left += f", {share_text(a.share)} of the drop"
        parts.append(f"{left} ({shift_text(gap.losses, gap.shift)}): **{gap.verdict.text}**{_without(gap, gap.verdict)}")
    return f"{who}: {'; '.join(parts)}."


def _without(c: Contrast, verdict: stats.Verdict) -> str:
    """Who is not in it, unless the verdict has said so."""
    said = lost_text(c)
    return f" ({said})" if said and said not in verdict.text else ""


def _words(verdict: stats.Verdict) -> str:
    if verdict.word == "gap":
        return "resolved" if verdict.direction > 0 else "resolved, the other way: better than the reference"
    return verdict.text


def overall(found: list[CellAnswer], together: Pooled | None = None, margin: float = stats.MARGIN) -> str:
    """The answer in one paragraph. Says "missing optimisation" only where a drop is resolved at the fixed budget and, at
    matched loss, either equivalence or the reverse is; what is undecided is called undecided."""
    if not found:
        return "No cell beyond the reference: there is nothing to compare."
    drops = [a for a in found if a.drop and a.drop.verdict and a.drop.verdict.word == "gap" and a.drop.verdict.direction > 0]
    groups: dict[str, list[CellAnswer]] = {"explained": [], "gap": [], "undecided": [], "uncompared": []}
    for a in drops:
        groups[_kind(a)].append(a)
    sentences = [_pooled_sentence(together, margin)] if together else []
    if not drops:
        sentences.append(
            "**In no single cell is a drop resolved at the fixed budget**, so there is none to explain cell by cell; "
            "that is not to say that there is none."
        )
    else:
        sentences.append(
            f"Cell by cell: at the fixed budget {len(drops)} of {len(found)} {'shows' if len(drops) == 1 else 'show'} a resolved drop "
            "from the small-batch reference."
        )
    if groups["explained"]:
        sentences.append(
            f"**Here the drop is missing optimisation** for {cell_names(groups['explained'])}: at the same training loss "
            + _explained_how(groups["explained"], margin)
        )
    if groups["gap"]:
        sentences.append(
            f"**A gap at matched training loss is resolved** for {cell_names(groups['gap'])}: part of the drop there is not missing "
            "optimisation as training loss measures it."
        )
    if groups["undecided"]:
        sentences.append(_undecided_sentence(groups["undecided"]))
    if groups["uncompared"]:
        sentences.append(f"No comparison at matched loss is possible for {_names_and_reasons(groups['uncompared'])}.")
    sentences.append(_other_gaps(found, drops))
    compared = sum(1 for a in found if a.gap and a.gap.verdict and len(a.gap.seeds) >= stats.VERDICT_SEEDS)
    if compared > 1:
        sentences.append(
            f"{compared} cells were compared at matched loss with at least {stats.VERDICT_SEEDS} seeds, each interval at 95 % on its "
            "own: about one in twenty would exclude zero by chance."
        )
    return " ".join(filter(None, sentences))


def _pooled_sentence(p: Pooled, margin: float) -> str:
    """The mean over cells, and what it says; a single cell's resolved gap forbids the plain words."""
    text = (
        f"**Taken together** (mean over {cell_names(p.cells)}; {len(p.seeds)} seeds): the drop is {points(p.drop.value)} "
        f"{interval(*p.drop.interval())} points at the fixed budget and {points(p.gap.value)} {interval(*p.gap.interval())} at matched "
        f"training loss"
    )
    text += f", {share_text(p.share)} of it" if p.share.resolved else ""
    text += f" ({shift_text(p.losses, p.shift)}). "
    if p.left_out:
        text += f"Not in this mean: {left_out_text(p)}. "
    if p.drop_verdict.word != "gap" or p.drop_verdict.direction < 0:
        return text + "No drop at the fixed budget is resolved on average."
    one_gap = [a for a in p.cells if _kind(a) == "gap"]
    if p.gap_verdict.word == "gap" and p.gap_verdict.direction > 0:
        return text + f"**On average a gap remains at matched training loss** ({p.gap_verdict.text})."
    if p.gap_verdict.word == "undecided":
        text += f"Whether anything within ±{100 * margin:g} points remains is **undecided**"
        if p.share.resolved and p.share.high < 0.5:
            gone = f"at least {100 * (1 - p.share.high):.0f} % of the drop is gone at matched loss"
            text += f", but {gone}: **most of it is missing optimisation**"
        return text + "."
    how = f"no gap within ±{100 * margin:g} points" if p.gap_verdict.word == "no gap" else "the large batch is the better one"
    if one_gap:
        return text + f"On average {how} at matched loss, but not everywhere: see {cell_names(one_gap)}."
    return text + f"**Here the drop is missing optimisation**: at the same training loss, on average, {how}."


def _undecided_sentence(cells: list[CellAnswer]) -> str:
    text = f"**Undecided** for {cell_names(cells)}: neither a gap nor its absence within the margin is shown."
    mostly = [a for a in cells if a.share and a.share.resolved and a.share.high < 0.5]
    if mostly:
        text += f" Of these, more than half of the drop is gone at matched loss for {cell_names(mostly)} (95 % interval of the share)."
    return text


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
        return "gap" if verdict.direction > 0 else "explained"
    return "explained" if verdict.word == "no gap" else "undecided"


def _explained_how(found: list[CellAnswer], margin: float) -> str:
    reverse, equal = ([a for a in found if a.gap and a.gap.verdict and a.gap.verdict.word == word] for word in ("gap", "no gap"))
    parts = []
    if equal:
        parts.append(f"there is no gap within ±{100 * margin:g} points" + (f" ({cell_names(equal)})" if reverse else ""))
    if reverse:
        parts.append("the large batch is the better one" + (f" ({cell_names(reverse)})" if equal else ""))
    return " and ".join(parts) + "."


def _names_and_reasons(found: list[CellAnswer]) -> str:
    return ", ".join(cell_names([a]) + (f" ({a.gap.reason})" if a.gap else "") for a in found)


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
    slopes = [points_per_nat(runs, reference_of(sweep, o)) for o in runs.optimizer.dropna().unique()]
    slopes = [100 * s for s in slopes if np.isfinite(s)]
    if not target or not slopes:
        return ""
    low, high = min(slopes), max(slopes)
    per_nat = f"{low:.0f}" if round(low) == round(high) else f"{low:.0f} to {high:.0f}"
    return (
        f" It takes any end between {OVERSHOT * target:g} and {target:g} as matched. In the references, from their ends at the fixed "
        f"budget to those at matched loss, test accuracy falls by {per_nat} points per nat, so the width of that band alone is worth "
        f"up to {(1 - OVERSHOT) * target * high:.1f} points. Each comparison therefore gives the mean training losses of both sides "
        "(reference first) and what their distance is worth at that slope; nothing is corrected for it."
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
        "from a bootstrap over seeds and test images together (t quantiles for few seeds); a plus means that the reference is better. "
        "Verdicts: a gap (the 95 % interval excludes 0), no gap within the margin (equivalence test at 5 %), or undecided."
    )
