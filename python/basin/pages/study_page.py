"""The report of a study: its answer, the figure of accuracy and the verdicts first, then what to be warned of, the rest folded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ..analysis.annealed import same_phase
from ..analysis.branches import without_branches
from ..analysis.cell_answers import answers
from ..analysis.churn import cell_churn
from ..analysis.mediators import arm_effects, associations
from ..analysis.optimizers_compared import compared
from ..analysis.pooled import pooled
from ..analysis.verdict_tables import Verdicts, verdicts_of
from ..figures import (
    accuracy,
    along_runs,
    annealed,
    effects,
    layer_norms,
    learning_curves,
    ledger,
    ledger_on_the_way,
    mediators,
    rank_scaling,
    sharpness,
)
from ..figures.marks import MOST_ARMS
from ..reader.fault import ReadError
from ..reader.scaling import NAME as SCALING
from ..reader.scaling import load_scaling
from ..reader.sweep import Sweep
from . import mediator_text, phase_text, scaling_text, verdict_text
from . import report_tables as tables
from . import report_text as text
from .critical import laws, trials_by_optimizer
from .page import Page, Section
from .report_warnings import warnings_of
from .verdict_files import write_verdicts

TITLE = "Batch size: what remains when training losses match"
MOST_SENTENCES = 5  # of the answer, which is read at a glance


@dataclass(frozen=True)
class Picture:
    """`draw` returns None where the sweep has nothing to draw. `about`: what it shows; `caption`: how to read it, Markdown."""

    title: str
    name: str
    draw: Callable[[Sweep], Figure | None]
    about: str
    caption: str


ACCURACY = Picture(
    "Accuracy against batch size", "accuracy", accuracy.accuracy_against_batch,
    "Test accuracy against batch size, a line per optimiser, a panel per protocol",
    "Protocol A spends the same budget on every batch size: a drop there is one of optimisation until shown otherwise. Protocol B stops "
    "every run at the same training loss, the only basis for speaking of generalisation. Filled: the mean of comparable runs, bars are "
    "standard errors over seeds. Half filled: one seed, its bar the standard error from the test images alone, with nothing known of "
    "other seeds. Hollow: runs that missed or overshot the target or diverged; a cross on the axis: no value at all. A line joins means "
    "over seeds alone. Dashed: what each optimiser is compared with. Shaded: batches as large as the training set. A sweep with more "
    f"than {MOST_ARMS} arms has its plain settings drawn alone, here and in the other figures; the arms are in the tables.",
)  # fmt: skip
PICTURES = [
    Picture(
        "Test accuracy and loss along the runs", "along-runs", along_runs.along_runs,
        "Test accuracy and test loss against training loss along runs, a column per optimiser",
        "From evaluations while training (`evaluate_every`), interpolated between them: mean over seeds at equal training loss, the band "
        "its 95 % interval over seeds. Training goes from left to right; compare vertically. Lines that lie on each other say that the "
        "batch size decides how far a run comes and not what it finds there. A run is drawn as far as it came; where seeds end, the mean "
        "ends.",
    ),
    Picture(
        "Training loss against test accuracy", "loss-accuracy", accuracy.loss_against_accuracy,
        "Test accuracy against training loss, a mark per run",
        "One mark per run, coloured by batch size, shaped by optimiser and arm. "
        "Hollow: the run missed or overshot the target, or diverged.",
    ),
    Picture(
        "Sharpness and noise at matched loss", "sharpness-batch", sharpness.sharpness_against_batch,
        "Measures of sharpness and noise against batch size at matched training loss",
        "At the end of protocol B, what this sweep measured. Optimisers end at different weight norms, so sharpness alone doesn't "
        "compare across them; what takes the length of the weights into account does better. Bars: standard error over seeds, or the "
        "value's own residual or error where that is greater; of a search's lower bound (φ) over seeds alone. A ratio of two means, as "
        "B_simple, is that of the runs' means, all probed runs in it, with Fieller's 95 % interval over seeds. Half filled: one seed "
        "with its own uncertainty. Hollow: the run is not comparable, the value did not converge, or the ratio's denominator is not "
        "resolved; a cross: it came out negative.",
    ),
    Picture(
        "Sharpness and noise against training loss", "sharpness-loss", sharpness.sharpness_against_loss,
        "Measures of sharpness and noise on the way down, against training loss, a column per optimiser",
        "Every checkpoint that was probed, of protocol B where runs trained to a loss, but for those far below the loss level they were "
        "kept for. Training goes from left to right; compare vertically, at equal loss. Bars: each value's own residual or 95 % "
        "interval, of one run.",
    ),
    Picture(
        "What limits the runs", "ledger", ledger.ledger_against_loss,
        "The ledger: curvature over its limit, noise over gradient and first-order share against training loss, a column per "
        "optimiser",
        "At 1, η λ₁(P⁻¹H) and η λ_c are at the method's stability limit (for LARS and LAMB a gauge), and the noise of a batch is as "
        "long as the gradient. Every checkpoint that the probe `ledger` measured, of protocol B where runs trained to a loss; compare "
        "vertically, at equal loss. That small batches are limited by noise and large ones by curvature is a prediction, to "
        "be tested by branches.",
    ),
    Picture(
        "What limits the runs on the way", "ledger-on-the-way", ledger_on_the_way.ledger_on_the_way,
        "The ledger kept while training: rate over the critical rate, noise over gradient, first-order share and cosine of successive "
        "updates against batch loss, a column per optimiser",
        "From the run's own batches, every `ledger_every` updates, no probe. Where η / η_c is 1, an update ends where the loss is back "
        "at its start; a share of 1 is a straight line, 1/2 the bottom of a parabola; a cosine below 0 says that updates swing. No "
        "intervals: the spread between runs of one colour shows what seeds do.",
    ),
    Picture(
        "Trust ratios by layer", "trust-ratios", layer_norms.trust_ratios,
        "Trust ratio of each layer, a panel per optimiser that has them",
        "Median over recorded updates and seeds, bars from the 10th to the 90th percentile.",
    ),
    Picture(
        "Layers over training", "layers", layer_norms.of_sweep,
        "Norms of weights, gradients and updates and trust ratios of each layer over training, a row per optimiser",
        "Norms of each layer's weights before an update, of its gradient before clipping, of the update relative to the weights, and "
        "trust ratios; one run per optimiser, at its largest batch size with a comparable run, columns on one scale. Biases and norms "
        "aren't drawn. Dashed: weights excluded from trust ratios, missing in the last panel. A gap: a norm of zero, or none that is "
        "finite.",
    ),
    Picture(
        "Learning curves", "learning-curves", learning_curves.learning_curves,
        "Training loss against image gradients computed, a panel per protocol and optimiser",
        "Batch loss (running mean) against the image gradients computed, the cost that all batch sizes share; one seed.",
    ),
]  # fmt: skip


def study_page(sweep: Sweep, margin: float, folder: Path, step: Callable[[str], object]) -> tuple[Page, str]:
    """The page, and what a terminal shows of it: the answer, the warnings and the table of verdicts. Calls `step` with what it did."""
    with_branches, sweep = sweep, without_branches(sweep)
    found = answers(sweep, margin)
    together = pooled(sweep, found, margin)
    said, warned = text.answer(found, together, margin), warnings_of(sweep, found, together)
    table = tables.verdict_table(found)
    asked = verdicts_of(with_branches)
    said += verdict_text.in_all(asked)[: MOST_SENTENCES - len(said)]
    write_verdicts(folder, asked)
    against = tables.against_table(compared(sweep), sweep.names)
    step("comparisons")

    page = Page(TITLE)
    first = page.section("The answer", folded=False)
    first.text(" ".join(said))
    _figure(first, ACCURACY, sweep, folder)
    step(ACCURACY.name)
    first.table(table, tables.verdict_class)
    first.text(text.reference_sentence(sweep))
    warned += _odd_same(asked)
    if warned:
        page.section("Warnings", folded=False).text("\n".join(f"- {w}" for w in warned))
    _verdicts(page, asked, sweep, folder)
    rest = page.section("What the verdicts rest on")
    rest.table(tables.details_table(found), tables.verdict_class)
    of_the_match = (text.PHASE, text.SPEED) if any(a.gap for a in found) else ()
    rest.text("\n\n".join(filter(None, (text.chance(found), *of_the_match, verdict_text.same_text(asked.same)))))
    rest.text(text.limits(sweep))
    _same_phase(page, with_branches, folder)
    _mediators(page, sweep, folder)
    if len(against):
        section = page.section("The optimisers compared")
        section.text(text.AGAINST)
        section.table(against, tables.verdict_class)
    churned = tables.churn_table(cell_churn(sweep, found))
    if len(churned):
        section = page.section("Churn between seeds and between batch sizes")
        section.text(text.CHURN)
        section.table(churned)
    page.section("Data and runs").text(
        "\n\n".join(
            [
                text.about_data(sweep),
                text.about_status(with_branches),
                text.about_branches(with_branches),
                text.about_large_batches(sweep),
            ]
        )
    )
    page.section("How to read the figure of accuracy").text(ACCURACY.caption)
    missing = []
    for picture in PICTURES:
        section = Section(picture.title)
        section.text(picture.caption)
        if _figure(section, picture, sweep, folder):
            page.sections.append(section)
        else:
            missing.append(picture.title.lower())
        step(picture.name)
    _ranks(page, sweep, folder)
    if missing:
        page.section("Not measured").text(f"This sweep has nothing for: {', '.join(missing)}.")
    first_words = text.in_a_terminal(said, warned, table)
    return page, "\n\n".join(filter(None, (first_words, *map(text.plain, verdict_text.sentences(asked)))))


def _verdicts(page: Page, asked: Verdicts, sweep: Sweep, folder: Path) -> None:
    """What the study asked before its runs."""
    if asked.answers:
        section = page.section("Verdicts", folded=False)
        section.text("\n".join(f"- {s}" for s in verdict_text.sentences(asked)))
        section.figure(effects.effects(asked, sweep), verdict_text.FIGURE, "effects", folder)
        section.table(verdict_text.hypothesis_rows(asked), verdict_text.verdict_colour)
        section.text(verdict_text.how_decided(asked))
    if asked.found:
        page.section("Every contrast").table(verdict_text.contrast_rows(asked))


def _same_phase(page: Page, sweep: Sweep, folder: Path) -> None:
    """Where the sweep has annealed branches, or averaged weights, from several places."""
    found = same_phase(sweep)
    if not found:
        return
    section = page.section("The same phase: annealed branches")
    section.text(phase_text.ABOUT)
    section.figure(annealed.annealed_outcomes(sweep), phase_text.FIGURE, "annealed", folder)
    section.table(phase_text.phase_table(found, sweep.names))


def _mediators(page: Page, sweep: Sweep, folder: Path) -> None:
    """Where at least two arms have a mediator."""
    arms = arm_effects(sweep)
    found = associations(arms)
    drawn = mediators.plane(arms, found, sweep.names)
    if drawn is None:
        return
    section = page.section("Mediators by manipulation")
    section.text(mediator_text.ABOUT)
    section.figure(drawn, mediator_text.FIGURE, "mediators", folder)
    section.table(mediator_text.arm_table(arms))
    together = mediator_text.association_table(found)
    if len(together):
        section.table(together)


def _ranks(page: Page, sweep: Sweep, folder: Path) -> None:
    """Where `basin scaling` timed the runs."""
    if not (folder / SCALING).exists():
        return
    times = load_scaling(folder)
    try:
        found, why = laws(*trials_by_optimizer(sweep)), "no optimiser has a best rate at enough batch sizes"
    except ReadError as error:
        found, why = {}, str(error)
    model = scaling_text.model_of(times, found)
    section = page.section("What more ranks bring")
    section.text(f"{scaling_text.where(times)} {scaling_text.ABOUT}")
    section.table(scaling_text.measured_table(times))
    section.text(scaling_text.MODEL)
    section.text(scaling_text.costs_text(model, times))
    section.table(scaling_text.check_table(model, times))
    if not model.tables:
        section.text(f"No time to a target: {why}.")
        return
    section.figure(rank_scaling.figure(model.tables, sweep.names), scaling_text.FIGURE, "rank-scaling", folder)
    section.table(scaling_text.model_table(model, sweep.names))
    section.text(scaling_text.beyond_text(model, sweep.names))


def _odd_same(asked: Verdicts) -> list[str]:
    return [verdict_text.same_text(asked.same)] if any(s.verdict != "nothing" for s in asked.same) else []


def _figure(section: Section, picture: Picture, sweep: Sweep, folder: Path) -> bool:
    return section.figure(picture.draw(sweep), picture.about, picture.name, folder)
