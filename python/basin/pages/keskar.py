"""python -m basin.pages.keskar OUT_DIR [--picture FILE.png] [--into FILE.md [--passage NAME]]: a study of Keskar et al.'s protocol
(ICLR 2017, arXiv 1609.04836) next to the numbers that they published for their network C1 (docs/keskar.md).

Only runs that stopped at the target loss count. Means are over seeds, with the standard deviation of one run as in the paper. Every setting
is compared with the plain one of the smallest batch, seed by seed, as the study's own contrasts are; verdicts are those of its hypotheses.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from scipy.stats import kendalltau

from ..analysis.arms import ARM, arms_of, with_arms
from ..analysis.contrasts import Found, estimate
from ..analysis.matched import comparable
from ..analysis.outcome_values import values_of
from ..analysis.settings import Setting
from ..analysis.verdict_tables import verdicts_of
from ..reader.fault import ReadError
from ..reader.questions import TWIN, ContrastPlan
from ..reader.sweep import Sweep, open_sweep
from .command import command, draw_picture, picture_link, publish, run, takes_page, takes_picture
from .verdict_text import effect_text, how_decided, hypothesis_rows, same_text, table

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

PASSAGE = "keskar"
PHI, SUBSPACE = "probe.sharpness_keskar.phi", "subspace_gaussian_p100"
# The tables' rows, outcomes as contrasts name them, with what the paper has for C1 at batches of 256 and of 5,000 (its tables 2 to 4).
PUBLISHED = {
    "epochs": ("–", "–"),
    "train_loss": ("–", "–"),
    "train_acc": ("99.89 ± 0.02", "99.66 ± 0.2"),
    "test_acc": ("80.04 ± 0.12", "77.26 ± 0.42"),
    "test_loss": ("–", "–"),
    f"{PHI}_full_1e-3": ("28.58 ± 3.13", "707.23 ± 43.04"),
    f"{PHI}_full_5e-4": ("7.08 ± 0.88", "227.31 ± 23.23"),
    f"{PHI}_{SUBSPACE}_1e-3": ("2.18 ± 0.23", "137.25 ± 21.60"),
    f"{PHI}_{SUBSPACE}_5e-4": ("0.71 ± 0.15", "29.50 ± 7.48"),
    f"{PHI}_relative_1e-3": ("–", "–"),
    f"{PHI}_relative_5e-4": ("–", "–"),
    "probe.top_eigenvalues.lambda_1": ("–", "–"),
    "probe.top_eigenvalues.lambda_1_w2": ("–", "–"),
    "probe.batch_sharpness.batch_sharpness": ("–", "–"),
    "probe.weight_norms.weight_norm": ("–", "–"),
    "probe.weight_norms.distance_from_start": ("–", "–"),
}
PERCENT = {"train_acc": "training accuracy (%)", "test_acc": "test accuracy (%)"}  # the paper's unit
RESULTS = {"epochs": "epochs to the target", "train_loss": "training loss", "test_loss": "test loss", **PERCENT}
COMPARED = {"test_acc": "test accuracy", "test_loss": "test loss"}  # by difference, probes' numbers by ratio
ON_THE_WAY = [("sharpness_keskar", "phi_full_1e-3"), ("sharpness_keskar", "phi_relative_1e-3"), ("top_eigenvalues", "lambda")]
AT_THE_END = [ON_THE_WAY[0], ON_THE_WAY[2]]  # the relative box is the same at the twin


@dataclass(frozen=True)
class Column:
    """A setting, with all its runs. `plain`: it differs from the smallest batch in nothing but batch size and rate."""

    label: str
    batch: int
    plain: bool
    setting: Setting


def columns_of(sweep: Sweep) -> list[Column]:
    """The smallest batch first, arms behind the plain setting of their size. ReadError where no run stopped at the target, and where runs
    differ in more than batch size, seed and what makes an arm."""
    runs = with_arms(sweep)
    runs = runs[(runs.protocol == "B") & runs.batch_size.notna()]
    if not comparable(runs).any():
        raise ReadError(f"{sweep.path}: no run of protocol B that stopped at its target")
    for key in ("optimizer", "target_loss"):
        if runs[key].nunique() > 1:
            raise ReadError(f"{sweep.path}: several values of {key}; this page is of one")
    arms, found = arms_of(runs), []
    for (batch, arm), group in runs.groupby(["batch_size", ARM]):
        words = f", {arm}".replace("_", " ").replace("=", " ") if arm else ""
        found.append((batch, arms.index(arm), Column(f"B = {int(batch):,}{words}", int(batch), not arm, Setting("", group))))
    return [column for _, _, column in sorted(found, key=lambda c: c[:2])]


def places(sweep: Sweep, outcome: str) -> list[str]:
    """ "end", then its twin where the number was measured there. A relative box changes along with the weights: the same φ."""
    twin = outcome.replace("probe.", f"probe.end{TWIN}.", 1)
    moves = outcome.startswith("probe.") and not outcome.startswith(f"{PHI}_relative")
    return ["end", f"end{TWIN}"] if moves and twin in sweep.runs else ["end"]


def numbers(sweep: Sweep, column: Column, outcome: str, at: str = "end") -> pd.Series:
    """By seed, of runs that count; accuracies in per cent."""
    return (100 if outcome in PERCENT else 1) * pd.Series(values_of(sweep, column.setting, outcome, at).numbers, dtype=float)


def means_table(sweep: Sweep, columns: list[Column]) -> pd.DataFrame:
    head = f"at training loss {columns[0].setting.runs.target_loss.iloc[0]:g}"
    rows = [{head: "learning rate"} | {c.label: _rate(c) for c in columns} | {"paper": "–", "large": "–"}]
    for outcome, published in PUBLISHED.items():
        for at in places(sweep, outcome):
            cells = {c.label: _cell(numbers(sweep, c, outcome, at), len(c.setting.runs)) for c in columns}
            if set(cells.values()) != {"–"}:
                paper = published if at == "end" else ("–", "–")
                rows.append({head: _label(sweep, outcome, at, True)} | cells | dict(zip(("paper", "large"), paper)))
    return pd.DataFrame(rows).rename(columns={"paper": "C1 of the paper, B = 256", "large": "B = 5,000"})


def _rate(column: Column) -> str:
    return ", ".join(f"{rate:.3g}" for rate in sorted(column.setting.runs.learning_rate.dropna().unique()))


def _cell(values: pd.Series, of: int) -> str:
    if values.empty:
        return "–"
    lost = f" ({len(values)} of {of})" if len(values) < of else ""
    spread = f" ± {values.std(ddof=1):.2g}" if len(values) > 1 else ""
    return f"{values.mean():.4g}{spread}{lost}"


def _label(sweep: Sweep, outcome: str, at: str, with_unit: bool) -> str:
    if at.endswith(TWIN):
        return "– the same at the twin"
    if not outcome.startswith("probe."):
        return RESULTS[outcome] if with_unit else COMPARED[outcome]
    column = outcome.replace("probe.", "probe.end.", 1)
    return sweep.label(column) if with_unit else str(sweep.about(column).get("long_name", column))


def compared(sweep: Sweep, base: Column, arm: Column, outcome: str, at: str = "end") -> Found:
    """As a contrast of the study would be: arm less base, of a probe's number arm over base."""
    plan = ContrastPlan(arm.label, outcome=outcome, at=at, scale="difference" if outcome in COMPARED else "ratio")
    found = Found(plan, [(1.0, arm.setting), (-1.0, base.setting)])
    estimate(sweep, found)
    return found


def effects_table(sweep: Sweep, columns: list[Column]) -> pd.DataFrame:
    """Every setting against the first, a number and its twin one below the other."""
    rows = []
    for outcome in (o for o in PUBLISHED if o in COMPARED or o.startswith("probe.")):
        for at in places(sweep, outcome):
            cells = {c.label: _effect(compared(sweep, columns[0], c, outcome, at), len(c.setting.runs)) for c in columns[1:]}
            if set(cells.values()) - {"–"}:
                rows.append({f"against {columns[0].label} [95 %]": _label(sweep, outcome, at, False)} | cells)
    return pd.DataFrame(rows)


def _effect(found: Found, of: int) -> str:
    lost = f" ({len(found.seeds)} of {of} seeds)" if found.effect and len(found.seeds) < of else ""
    return effect_text(found.effect, found.plan.outcome, found.plan.scale) + lost


def together(sweep: Sweep, columns: list[Column]) -> str:
    """Whether φ and accuracy go together over the plain settings, and what so few of them can say."""
    plain = [c for c in columns if c.plain]
    found, sizes = [], 0
    for at in places(sweep, f"{PHI}_full_1e-3"):
        pairs = [(numbers(sweep, c, f"{PHI}_full_1e-3", at), numbers(sweep, c, "test_acc")) for c in plain]
        means = [(phi.mean(), accuracy.mean()) for phi, accuracy in pairs if len(phi) and len(accuracy)]
        if len(means) > 2:
            sizes, order = len(means), kendalltau(*zip(*means), method="exact")
            where = " with φ at the twin" if at.endswith(TWIN) else ""
            found.append(f"{order.statistic:+.2f} (p = {order.pvalue:.2f}){where}".replace("+", "").replace("-", "−"))
    if not found:
        return ""
    chance = 2 / factorial(sizes)
    said = f"Over the {sizes} batch sizes the means of φ and of test accuracy have a Kendall's τ of {' and of '.join(found)}, p exact."
    if chance <= 0.05:
        return said
    return f"{said} Even a perfect order of {sizes} has p = {chance:.2f}: they can neither show a correlation nor exclude one."


def markdown(sweep: Sweep) -> str:
    columns = columns_of(sweep)
    lines = [*table(means_table(sweep, columns)), ""]
    effects = effects_table(sweep, columns)
    if len(effects):
        lines += [*table(effects), ""]
    verdicts = verdicts_of(sweep)
    if verdicts.answers:
        reasons = [f"- {a.plan.name}: {a.reason}" for a in verdicts.answers if a.reason]
        lines += [*table(hypothesis_rows(verdicts)), "", *reasons, *([""] if reasons else [])]
        lines += [how_decided(verdicts), "", same_text(verdicts.same), ""]
    return "\n".join([*lines, together(sweep, columns)]).strip()


def figure(sweep: Sweep) -> Figure:
    """φ and λ₁ against the training loss on the way down (the paper's figure 6) where they were measured there, else against the batch
    size at the end, with their twins."""
    from ..figures import sharpness, twins

    if sweep.probes.checkpoint.str.startswith("loss-").any():
        return sharpness.sharpness_against_loss(sweep, sweep.measures(ON_THE_WAY))
    return twins.ends_against_batch(sweep, sweep.measures(AT_THE_END))


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.keskar", __doc__)
    parser.add_argument("folder", type=Path)
    takes_picture(parser)
    takes_page(parser, PASSAGE, by_name=True)

    def work(options: argparse.Namespace) -> None:
        text = markdown(open_sweep(options.folder))
        draw_picture(options.picture, figure, options.folder)
        publish(options, text + picture_link(options.into, options.picture, "φ and λ₁ of the settings"))

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
