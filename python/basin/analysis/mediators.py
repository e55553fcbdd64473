"""Mediation by manipulation: what each arm of a study does to the outcome, next to what it does to sharpness, noise and distance.

An arm is a setting that differs from its base in one respect, the base being, by the first that applies,
    an intervention   the plain setting of the same optimiser and batch size, or the arm that it is one change away from,
    a large batch     the plain setting of the same optimiser at its smallest batch size,
    an optimiser      the first optimiser's plain setting at that batch size.
At matched loss where the sweep has it (protocol B), else at the fixed budget. Effects are arm less base, paired by seed, the outcome's also
by test image; a mediator's effect is the logarithm of arm over base. Each mediator is taken also at the function-preserving twin of
equal norms (docs/probes.md#twins), where the length of the weights can fake nothing.

A mediator explains if arms that move the outcome move it, arms that move it move the outcome, and both hold at the twin. There is no path
coefficient here: arms are chosen and not sampled, and what moves both by another route looks the same. The placebo deals the mediator's
effects out to the arms at random: p is how often Kendall's tau of these is as far from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..reader.sweep import Sweep
from . import rank, stats
from .arms import ARM, nearest_arm, slim_with_arms
from .branches import without_branches
from .effects import Effect, by_seed, crossed
from .matched import cell, comparable, fixed_budget, settings
from .names import optimizers_of
from .number_text import p_said

OUTCOMES = ("test_acc", "test_loss")
PLACES = ("end", "end@twin")
# By label: the probe, and which of its numbers, the first of those that begin so.
MEDIATORS = {
    "λ₁": ("top_eigenvalues", "lambda_1"),
    "φ": ("sharpness_keskar", "phi_full_"),
    "batch sharpness": ("batch_sharpness", "batch_sharpness"),
    "distance": ("weight_norms", "distance_from_start"),
}
LEAST_ARMS = 5  # of a rank correlation
Key = tuple[str, str]  # mediator and place


@dataclass
class ArmEffects:
    """`outcomes`: differences; `mediators`: by label and place, of logarithms. Those that can't be computed are missing."""

    name: str
    base: str
    optimizer: str
    outcomes: dict[str, Effect] = field(default_factory=dict)
    mediators: dict[Key, Effect] = field(default_factory=dict)


@dataclass(frozen=True)
class Association:
    """Over all arms that have both effects. `holm`: the placebo's p corrected for the number of associations."""

    mediator: str
    place: str
    outcome: str
    arms: int
    tau: rank.Estimate
    holm: float

    @property
    def text(self) -> str:
        if not np.isfinite(self.tau.value):
            return f"{self.arms} arms"
        return f"τ = {self.tau.value:+.2f}, placebo {p_said(self.tau.p)}".replace("-", "−")


def arm_effects(sweep: Sweep) -> list[ArmEffects]:
    """Arms with an effect on an outcome and on a mediator."""
    sweep = without_branches(sweep)
    runs = slim_with_arms(sweep)
    runs = runs[runs.batch_size.notna()]
    there = runs[comparable(runs)]
    protocol = "B" if (there.protocol == "B").any() else fixed_budget(there)
    if protocol is None:
        return []
    columns = _columns(sweep)
    found = [_effects(sweep, *pair, columns) for pair in _pairs(sweep, runs[runs.protocol == protocol], protocol)]
    return [arm for arm in found if arm.outcomes and arm.mediators]


def _pairs(sweep: Sweep, runs: pd.DataFrame, protocol: str) -> Iterator[tuple[ArmEffects, pd.DataFrame, pd.DataFrame]]:
    """Each arm with its runs and those of its base."""
    optimizers = optimizers_of(runs, sweep.names)
    places = sorted({(str(o), int(b), str(a)) for o, b, a in zip(runs.optimizer, runs.batch_size, runs[ARM])},
                    key=lambda place: (optimizers.index(place[0]), *place[1:]))  # fmt: skip
    cells = {place: found for place in places if len(found := _good(cell(runs, protocol, *place)))}
    for place, arm in cells.items():
        base = _base(cells, optimizers, place)
        if base in cells:
            yield ArmEffects(_name(sweep, place), _name(sweep, base), place[0]), arm, cells[base]


Place = tuple[str, int, str]  # optimiser, batch size, arm


def _name(sweep: Sweep, place: Place) -> str:
    optimizer, batch, label = place
    return f"{sweep.names.label('optimizers', optimizer)} {batch:,}" + (f", {label}" if label else "")


def _base(cells: Iterable[Place], optimizers: list[str], place: Place) -> Place | None:
    """What the cell differs from in one respect."""
    optimizer, batch, label = place
    if label:
        nearest = nearest_arm(label, (a for o, b, a in cells if (o, b) == (optimizer, batch) and a != label))
        return None if nearest is None else (optimizer, batch, nearest)
    smallest = min(b for o, b, a in cells if o == optimizer and not a)
    if batch != smallest:
        return optimizer, smallest, ""
    first = next(o for o in optimizers if (o, batch, "") in cells)
    return (first, batch, "") if first != optimizer else None


def _good(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that count; none where several settings have one label."""
    good = runs[comparable(runs)]
    return good if settings(good) == 1 else good.head(0)


def _columns(sweep: Sweep) -> dict[Key, str]:
    """Which column of the runs has each mediator. The distance at the end is known of every run."""
    found = {}
    for label, (probe, start) in MEDIATORS.items():
        for place in PLACES:
            stem = f"probe.{place}.{probe}.{start}"
            columns = [c for c in sweep.runs if c.startswith(stem) and f"{c}.status" in sweep.runs]
            if columns:
                found[label, place] = min(columns, key=len)  # lambda_1 and not lambda_1_w2; the first of equals
    if "distance_from_start" in sweep.runs:
        found.setdefault(("distance", "end"), "distance_from_start")
    return found


def _effects(sweep: Sweep, about: ArmEffects, arm: pd.DataFrame, base: pd.DataFrame, columns: dict[Key, str]) -> ArmEffects:
    one, two, _ = stats.paired_runs(base, arm)
    rows = sweep.runs.set_index("run_id")
    for outcome in OUTCOMES:
        effect = _outcome(sweep, rows, one, two, outcome)
        if effect is not None:
            about.outcomes[outcome] = effect
    for key, column in columns.items():
        values = [_ok(rows, ids, column) for ids in (one, two)]
        with np.errstate(invalid="ignore", divide="ignore"):
            d = np.log(values[1]) - np.log(values[0])
        d = d[np.isfinite(d)]
        if d.size:
            about.mediators[key] = by_seed(d)
    return about


def _outcome(sweep: Sweep, rows: pd.DataFrame, one: list[str], two: list[str], outcome: str) -> Effect | None:
    read = sweep.correct if outcome == "test_acc" else sweep.losses
    tables = (read(one), read(two)) if one else (None, None)
    if tables[0] is not None and tables[1] is not None and tables[0].shape == tables[1].shape:
        return crossed(tables[1] - tables[0])
    if outcome not in rows:
        return None
    d = rows[outcome].loc[two].to_numpy(float) - rows[outcome].loc[one].to_numpy(float)
    return by_seed(d) if d.size and np.isfinite(d).all() else None


def _ok(rows: pd.DataFrame, ids: list[str], column: str) -> np.ndarray:
    """Positive values that the probe calls ok; φ is a search's lower bound, and its own error is none of the value."""
    values = pd.to_numeric(rows[column].loc[ids], errors="coerce").to_numpy(float)
    good = rows[f"{column}.status"].loc[ids].to_numpy() == "ok" if f"{column}.status" in rows else np.full(len(ids), True)
    return np.where(good & (values > 0), values, np.nan)


def associations(arms: list[ArmEffects]) -> list[Association]:
    """Every mediator and place that an arm has, with each outcome."""
    keys = [key for key in ((label, place) for label in MEDIATORS for place in PLACES) if any(key in a.mediators for a in arms)]
    found = []
    for key in keys:
        for outcome in OUTCOMES:
            both = [
                (a.mediators[key].value, a.outcomes[outcome].value) for a in arms if key in a.mediators and outcome in a.outcomes
            ]
            x, y = np.array(both).reshape(-1, 2).T
            tau = rank.estimate(rank.tau, x, y) if len(both) >= LEAST_ARMS else rank.Estimate(why="few arms")
            found.append((key, outcome, len(both), tau))
    adjusted = rank.holm([tau.p for *_, tau in found])
    return [Association(*key, outcome, n, tau, float(p)) for (key, outcome, n, tau), p in zip(found, adjusted)]
