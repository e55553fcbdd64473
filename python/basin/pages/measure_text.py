"""The tables and sentences about measures and the gap, each made from the numbers. Markdown."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..analysis import grid, stats
from ..analysis.attenuation import LEAST_KEPT, order_kept
from ..analysis.audit_verdict import Audit
from ..analysis.correlation import CONFIGURATIONS, LEVEL, Correlation, other_statistics
from ..analysis.names import protocol_name
from ..analysis.number_text import estimate_text, p_text
from ..analysis.rank import Estimate
from ..analysis.sweep_measures import COVARIATES, Basis, Measure


def table(found: list[Correlation]) -> pd.DataFrame:
    """A row per measure, 95 % intervals in brackets."""
    return pd.DataFrame([{
        "measure": c.name, "configurations": _configurations(c), "τ": estimate_text(c.tau), "placebo's p": p_text(c.tau.p),
        "after Holm": p_text(c.holm), "Ψ": estimate_text(c.psi), "ρ given covariates": estimate_text(c.partial),
        "τ without errors": estimate_text(c.corrected), "what it says": c.says,
    } for c in found])  # fmt: skip


def second_table(found: list[Correlation], basis: Basis) -> pd.DataFrame:
    """The other statistics, those without a sign next to the middle 95 % of placebos."""
    rows = []
    for c in found:
        sign_error, information = other_statistics(c, basis)
        rows.append({
            "measure": c.name, "placebo's p of Ψ": p_text(c.psi.p), "placebo's p of ρ given covariates": p_text(c.partial.p),
            "robust sign error": _beside_placebos(sign_error), "conditional information": _beside_placebos(information),
            "numbers left out": _left_out(c.measure, c.dropped),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _configurations(c: Correlation) -> str:
    seeds = c.measure.configs.seeds
    low, high = int(seeds.min()), int(seeds.max())
    return f"{c.n} ({low if low == high else f'{low} to {high}'} seed{'s' * (high > 1)})"


def _left_out(m: Measure, dropped: int) -> str:
    parts = [f"{n} {word.replace('_', ' ')}" for word, n in m.dropped.items()] + ([m.aside] if m.aside else [])
    return "; ".join(parts + ([f"{dropped} without a target"] if dropped else [])) or "–"


def _beside_placebos(e: Estimate) -> str:
    if not np.isfinite(e.value):
        return e.why or "–"
    return f"{e.value:.2f} (placebos {e.band[0]:.2f} to {e.band[1]:.2f}, p {p_text(e.p)})"


def about_basis(basis: Basis, measures: list[Measure]) -> str:
    """Which runs, and at which loss."""
    if not measures:
        return "**Nothing to compare**: no comparable run of this sweep has a measure at its end."
    configurations = basis.runs.config_id.nunique()
    text = f"**Runs.** {len(basis.runs)} in {configurations} configurations, {protocol_name(basis.protocol)} (protocol {basis.protocol})"
    text += f"; {basis.left_out} more are not comparable and left out" if basis.left_out else ""
    if basis.matched:
        return text + ". Measures are compared at that loss alone."
    return text + (
        ". **Their training losses differ**, and measures of sharpness follow the loss before anything else. So nothing is claimed from "
        "a plain τ here; what is claimed is given the training loss. Protocol B would be the better basis."
    )


def about_target(measures: list[Measure], target: str) -> str:
    """How far apart the configurations are, in the light of what is known of each."""
    if not measures:
        return ""
    configs = max(measures, key=lambda m: len(m.configs)).configs
    values, errors = configs[target].to_numpy(float), configs[f"{target}_error"].to_numpy(float)
    what = {"gap": "Training less test accuracy", "test_error": "The test error"}[target]
    text = f"**The target.** {what} is {np.nanmin(values):.1f} to {np.nanmax(values):.1f} % over {len(configs)} configurations"
    if not np.isfinite(errors).all():
        return text + ". With one seed each, nothing tells how much of that is chance."
    text += f", the standard error of one over seeds {np.median(errors):.1f} (median). "
    kept = max(order_kept(values, errors), 0.0)
    text += f"Their order is known to {100 * kept:.0f} % (100: no errors, 0: nothing but errors)"
    if kept < LEAST_KEPT:
        text += ": **mostly noise**, so that no measure can be seen to go with it, nor seen not to. More seeds would help"
    images = pd.to_numeric(configs["dataset.n_test"], errors="coerce").max() if "dataset.n_test" in configs else np.nan
    if np.isfinite(images):
        error = 100 * stats.image_error(1 - np.nanmedian(configs.test_error) / 100, int(images))
        text += (
            f". The drawing of the {int(images):,} test images, ±{error:.1f} points on one accuracy and much of it shared by all "
            "configurations, is in no interval here"
        )
    return text + "."


def about_axes(basis: Basis) -> str:
    """What Ψ varies."""
    configs = basis.runs.drop_duplicates("config_id").reset_index(drop=True)
    found = grid.groups(configs, basis.axes)
    if not found:
        return "**Hyper-parameters.** No two configurations differ in a single one: no Ψ."
    parts = [f"{axis} ({len(some)} group{'s' * (len(some) > 1)})" for axis, some in found.items()]
    text = f"**Hyper-parameters** that Ψ varies one at a time: {', '.join(parts)}."
    if "learning_rate" in configs and configs.learning_rate.nunique() > 1 and "learning_rate" not in basis.axes:
        text += " The learning rate follows from them (it was chosen for each), and varies along with them."
    return text


def about_placebo(found: list[Correlation]) -> str:
    """What τ chance gives, and how many measures were tried."""
    bands = [c.tau.band[1] for c in found if np.isfinite(c.tau.band[1])]
    if not bands:
        return ""
    low, high = min(bands), max(bands)
    reach = f"±{high:.2f}" if high - low < 0.005 else f"±{low:.2f} to ±{high:.2f}"
    return (
        f"A measure that knows nothing comes to |τ| within {reach} in 95 of 100 cases (the more configurations the narrower). "
        f"{len(found)} measures are looked at, many of them kin; Holm's correction counts all."
    )


def answer(found: list[Correlation]) -> str:
    """What may be claimed, in one paragraph."""
    if not found:
        return ""
    claimed = [c for c in found if not c.why_not and c.says.startswith(("rises", "falls"))]
    refused = [c for c in found if c.why_not]
    text = [f"**{len(claimed)} of {len(found)} measures** show an association"
            + ("." if not claimed else ": " + "; ".join(f"{c.name} {c.says}" for c in claimed) + ".")]  # fmt: skip
    if refused:
        text.append(f"Nothing is claimed of {len(refused)}, for want of configurations or seeds.")
    if len(claimed) < len(found) - len(refused):
        text.append("Where none is shown, none is excluded: see how wide the intervals are.")
    return " ".join(text)


def about_audit(audit: Audit, found: list[Correlation]) -> str:
    if audit.table.empty:
        return (
            "This sweep's folder has no audit (`basin audit`), so it is not known which measures move where the function doesn't; "
            "nothing is greyed."
        )
    moved = [c.measure.label for c in found if c.moved]
    known = [c for c in found if audit.verdict(c.measure.definition, c.measure.quantity)]
    text = f"{len(known)} of {len(found)} measures were audited"
    if not moved:
        return text + "; none moves where the function doesn't."
    return text + f". These move where the function doesn't, and are greyed and marked *: {', '.join(moved)}."


def audit_table(audit: Audit, found: list[Correlation]) -> pd.DataFrame:
    rows = [(c.measure.definition, c.measure.quantity) for c in found]
    return pd.DataFrame({"measure": [c.name for c in found], "where the function stays": [audit.in_words(*r) for r in rows],
                         "where the decisions stay": [audit.in_words_of_decisions(*r) for r in rows]})  # fmt: skip


def limits() -> str:
    return (
        f"**What this does not show.** A claim needs {CONFIGURATIONS} configurations with a second seed each, a placebo's p below "
        f"{LEVEL:g} after Holm's correction, and an interval without 0. Even then it is a correlation in this sweep, over the "
        "hyper-parameters that were varied, among configurations that were picked and not drawn. Sharpness follows the learning rate, "
        f"and whatever else follows it goes with sharpness; τ given {', '.join(COVARIATES.values())} holds their order, not their "
        "values, and leaves a part behind. "
        "The literature finds weak correlations of adaptive sharpness with test error, often negative ones (Andriushchenko et al., ICML "
        "2023), and that what holds on average fails in some environment (Dziugaite et al., NeurIPS 2020)."
    )
