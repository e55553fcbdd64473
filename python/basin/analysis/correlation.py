"""How a sweep's measures go with the generalisation gap: every statistic of rank.py, grid.py and attenuation.py, and what may be said.

A claim needs CONFIGURATIONS configurations, as many of them with a second seed, a placebo's p below LEVEL after Holm's correction for
all measures of the table, and an interval without 0. At matched training loss it is tau's; at a fixed budget, where the loss differs,
that of the partial correlation given the covariates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from . import attenuation, grid, rank
from .audit_verdict import Audit
from .rank import Estimate
from .sweep_measures import COVARIATES, Basis, Measure

CONFIGURATIONS = 5
LEVEL = 0.05


@dataclass
class Correlation:
    """One measure and one target. `held`: the covariates of the partial correlation; `unheld`: those that are the same everywhere."""

    measure: Measure
    target: str
    n: int
    dropped: int
    tau: Estimate = field(default_factory=Estimate)
    psi: Estimate = field(default_factory=Estimate)
    partial: Estimate = field(default_factory=Estimate)
    corrected: Estimate = field(default_factory=Estimate)
    held: list[str] = field(default_factory=list)
    moved: bool = False
    holm: float = np.nan
    why_not: str = ""  # nothing may be claimed, and why
    says: str = ""

    @property
    def label(self) -> str:
        return self.measure.label

    @property
    def name(self) -> str:
        """With a star where the measure moves where the function doesn't."""
        return self.label + (" *" if self.moved else "")


def correlate(measures: list[Measure], basis: Basis, audit: Audit, target: str = "gap") -> list[Correlation]:
    found = [_of_measure(m, basis.axes, audit, target) for m in measures]
    adjusted = rank.holm([_headline(c, basis).p for c in found])
    for c, p in zip(found, adjusted):
        c.holm = float(p)
        c.says = _says(c, basis)
    return found


def _of_measure(measure: Measure, axes: list[str], audit: Audit, target: str) -> Correlation:
    configs, (x, x_error, y, y_error) = _numbers(measure, target)
    moved = audit.moved(measure.definition, measure.quantity)
    c = Correlation(measure, target, len(configs), len(measure.configs) - len(configs), moved=moved)
    if c.n < CONFIGURATIONS:
        c.why_not = f"not enough: {c.n} configuration{'s' * (c.n != 1)}, {CONFIGURATIONS} are needed"
        return c
    if measure.repeated < CONFIGURATIONS:
        alone = "one seed each" if measure.repeated == 0 else f"{measure.repeated} of {c.n} configurations have a second seed"
        c.why_not = f"nothing is claimed: {alone}"
    c.tau = rank.estimate(rank.tau, x, y)
    c.psi = _psi(configs, axes, x, y)
    c.partial, c.held = _partial(configs, x, y)
    c.corrected = _corrected(measure, target, x, x_error, y, y_error)
    return c


def other_statistics(c: Correlation, basis: Basis) -> tuple[Estimate, Estimate]:
    """The robust sign error and the conditional information."""
    if c.n < CONFIGURATIONS:
        return Estimate(why=c.why_not), Estimate(why=c.why_not)
    configs, (x, _, y, y_error) = _numbers(c.measure, c.target)
    information = grid.conditional_information(configs, basis.axes, x, y)
    return grid.robust_sign_error(configs, basis.axes, x, y, y_error), information


def _numbers(measure: Measure, target: str) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """The configurations that have both, and value, its error, target, its error."""
    there = np.isfinite(measure.configs[["value", target]].astype(float)).all(axis=1)
    configs = measure.configs[there].reset_index(drop=True)
    return configs, [configs[c].to_numpy(float) for c in ("value", "value_error", target, f"{target}_error")]


def _psi(configs: pd.DataFrame, axes: list[str], x: ArrayLike, y: ArrayLike) -> Estimate:
    found = grid.groups(configs, axes)
    return (
        rank.estimate(rank.granulated(list(found.values())), x, y)
        if found
        else Estimate(why="no two configurations differ in one axis")
    )


def _partial(configs: pd.DataFrame, x: ArrayLike, y: ArrayLike) -> tuple[Estimate, list[str]]:
    held = [name for name in COVARIATES if np.isfinite(configs[name].astype(float)).all() and configs[name].nunique() > 1]
    if not held:
        return Estimate(why="nothing to hold"), held
    return rank.estimate(rank.partial([configs[name].to_numpy(float) for name in held]), x, y), held


def _corrected(measure: Measure, target: str, x: ArrayLike, x_error: ArrayLike, y: ArrayLike, y_error: ArrayLike) -> Estimate:
    if not np.isfinite(x_error + y_error).all():
        return Estimate(why="errors are not known")
    x, x_error = (np.log(x), x_error / x) if measure.positive else (x, x_error)
    return attenuation.corrected(x, x_error, y, y_error, measure.common[target])


def _headline(c: Correlation, basis: Basis) -> Estimate:
    return c.tau if basis.matched else c.partial


def _says(c: Correlation, basis: Basis) -> str:
    if c.why_not:
        return c.why_not
    what = {"gap": "gap", "test_error": "test error"}[c.target]
    given = ", ".join(COVARIATES[name] for name in c.held)
    headline, under = _headline(c, basis), "" if basis.matched else f" given the order of {given}"
    if not basis.matched and "train_loss" not in c.held:
        return "nothing is claimed: training losses differ and could not be held"
    if not shown(headline, c.holm):
        return f"no association shown{under}"
    text = f"{'rises' if headline.value > 0 else 'falls'} with the {what}{under}"
    if basis.matched and not (excludes_zero(c.partial) and c.partial.value * headline.value > 0):
        text += f", not shown beyond {given}" if given else ""
    return text + (", but moves where the function doesn't" if c.moved else "")


def shown(e: Estimate, adjusted_p: float) -> bool:
    return bool(adjusted_p < LEVEL and excludes_zero(e))


def excludes_zero(e: Estimate) -> bool:
    return bool(e.low > 0 or e.high < 0)
