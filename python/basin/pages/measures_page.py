"""Measures of sharpness and noise and the generalisation gap: what correlates with it, and how placebos do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..analysis.audit_verdict import load_audit
from ..analysis.branches import without_branches
from ..analysis.correlation import correlate
from ..analysis.sweep_measures import basis_of, collect
from ..figures import measures_and_gap as figures
from ..reader.fault import ReadError
from ..reader.sweep import Sweep
from . import landscapes, measure_text
from .page import Page, Section
from .report_text import plain

TITLE = "Measures of sharpness and noise: do they go with the generalisation gap?"
COLUMNS = (
    "τ: Kendall's τ-b over configurations (means over seeds), 95 % interval from a bootstrap over configurations. Placebo's p: how often "
    "the same numbers, dealt out at random, are as far from 0; then Holm's correction for the number of measures. Ψ: τ with one "
    "hyper-parameter varied at a time. ρ given covariates: the correlation left when these are held: learning rate, updates, training "
    "loss. τ without errors: what it would be if the means of measure and gap had no errors. *: moves where the function doesn't."
)
OTHERS = (
    "They are about the gap. Robust sign error: the share of pairs put in the wrong order in the worst environment (two levels of a "
    "hyper-parameter), 0 to 1. Conditional information: what the measure says about the order once hyper-parameters are known, 0 to 1, "
    "and far too high with few configurations, as that of placebos shows."
)


def measures_page(sweep: Sweep, folder: Path, step: Callable[[str], object]) -> tuple[Page, str]:
    """The page, and its answer as plain text. Calls `step` with what it did."""
    sweep = without_branches(sweep)
    basis, audited = basis_of(sweep), load_audit(sweep)
    measures = collect(sweep, basis)
    gap = correlate(measures, basis, audited, "gap")
    step("the gap")
    error = correlate(measures, basis, audited, "test_error")
    step("the test error")

    page = Page(TITLE)
    first = page.section("The answer", folded=False)
    first.text(measure_text.answer(gap))
    about = (
        measure_text.about_basis(basis, measures),
        measure_text.about_target(measures, "gap"),
        measure_text.about_axes(basis),
    )
    first.text("\n\n".join(filter(None, about)))
    table = page.section("The generalisation gap", folded=False)
    table.text(f"{COLUMNS}\n\n{measure_text.about_placebo(gap)}")
    table.table(measure_text.table(gap))
    forest = page.section("Rank correlations", folded=False)
    forest.text(
        "Grey band: 95 % of placebos. Grey names: nothing may be claimed, or the measure moves where the function doesn't."
    )
    forest.figure(
        figures.forest(gap, error), "Rank correlation of every measure with the gap and with the test error", "forest", folder
    )
    each = page.section("Each measure against the gap")
    each.text("One mark per configuration: the mean over its seeds with standard errors.")
    each.figure(figures.against_gap(gap, basis), "The generalisation gap against each measure", "measures-gap", folder)
    step("figures of the gap")
    tests = page.section("The test error")
    tests.text(f"{measure_text.about_target(measures, 'test_error')}\n\n{measure_text.answer(error)}")
    tests.table(measure_text.table(error))
    others = page.section("Other statistics")
    others.text(OTHERS)
    others.table(measure_text.second_table(gap, basis))
    step("other statistics")
    batch = page.section("Measures against batch size")
    batch.figure(figures.against_batch(gap, basis), "Each measure against batch size", "measures-batch", folder)
    audit = page.section("Which measures mean anything")
    audit.text(measure_text.about_audit(audited, gap))
    if len(audited.table):
        audit.table(measure_text.audit_table(audited, gap))
    if landscapes.beside(sweep):
        _landscapes(page.section("Landscapes"), sweep, folder)
    step("landscapes")
    page.section("What this does not show").text(measure_text.limits())
    return page, plain(measure_text.answer(gap))


def _landscapes(section: Section, sweep: Sweep, folder: Path) -> None:
    section.text("What `basin landscape` measured on runs of this sweep. One plane through one network says little of any other.")
    for path in landscapes.beside(sweep):
        try:
            surface, drawn = landscapes.draw(path)
        except ReadError as unreadable:
            section.text(str(unreadable))
            continue
        section.text(landscapes.in_words(surface))
        for i, figure in enumerate(drawn):
            section.figure(figure, f"Landscape {path.stem}", f"{path.stem}-{i + 1}", folder)
