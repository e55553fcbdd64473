"""Churn: the share of test images on which two runs predict different classes.

Two runs of one cell with different seeds disagree on some images. If the function that large batches find were another one, runs of
two cells with the same seed would disagree on more: `between` exceeds `within`. Rates alone can't say so, since two networks of
accuracies a and b disagree on at least |a - b| of the images whatever they are, so cells are best compared at matched loss, where
accuracies are alike.

Means over pairs of runs. Pairs that share a run are not independent, so intervals are from the jackknife over seeds (one seed is left out
with all its pairs) with Student's t for seeds - 1 degrees of freedom; images are taken as given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..reader.sweep import Sweep
from . import student
from .cell_answers import CellAnswer
from .matched import Contrast


@dataclass
class Churn:
    """A share of images and its 95 % interval; NaN where there are too few seeds."""

    value: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class CellChurn:
    """One cell against its reference, over the seeds of `contrast`."""

    label: str
    contrast: Contrast
    reference: Churn
    cell: Churn
    between: Churn
    excess: Churn


def cell_churn(sweep: Sweep, found: list[CellAnswer]) -> list[CellChurn]:
    """Cells whose predicted classes are stored, at matched loss, and at the fixed budget those that were not run there."""
    rows = []
    for answer in found:
        contrast = answer.gap or answer.drop
        if contrast is None or len(contrast.seeds) < 2:
            continue
        one, two = sweep.predicted(contrast.reference_runs), sweep.predicted(contrast.runs)
        if one is None or two is None or one.shape != two.shape:
            continue
        rows.append(CellChurn(answer.label, contrast, within(one), within(two), between(one, two), excess(one, two)))
    return rows


def disagreement(one: np.ndarray, two: np.ndarray) -> float:
    """The share of images of which the predicted classes differ."""
    return float(np.mean(one != two))


def within(predicted: np.ndarray) -> Churn:
    """Between the seeds of one cell; `predicted` is [seed, image]."""
    return _jackknife(
        lambda seeds: _mean(disagreement(predicted[i], predicted[j]) for i, j in combinations(seeds, 2)), len(predicted), 3
    )


def between(one: np.ndarray, two: np.ndarray) -> Churn:
    """Between two cells with the same seeds in the same order, over pairs of *different* seeds, as within() has them: a pair of one seed
    shares its initial weights and order of examples."""
    return _jackknife(lambda seeds: _between(one, two, seeds), len(one), 3)


def excess(one: np.ndarray, two: np.ndarray) -> Churn:
    """between() less the mean of the two cells' within(): above 0 where the cells differ by more than their seeds do."""

    def value(seeds: list[int]) -> float:
        own = [_mean(disagreement(cell[i], cell[j]) for i, j in combinations(seeds, 2)) for cell in (one, two)]
        return _between(one, two, seeds) - sum(own) / 2

    return _jackknife(value, len(one), 3)


def _between(one: np.ndarray, two: np.ndarray, seeds: list[int]) -> float:
    return _mean(disagreement(one[i], two[j]) for i in seeds for j in seeds if i != j)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return float(np.mean(found)) if found else np.nan


def _jackknife(value: Callable[[list[int]], float], seeds: int, least: int) -> Churn:
    """`least`: with one seed left out there still has to be a pair."""
    everyone = list(range(seeds))
    whole = value(everyone) if seeds > 1 else np.nan
    if seeds < least:
        return Churn(whole, np.nan, np.nan, seeds)
    left_out = np.array([value(everyone[:k] + everyone[k + 1 :]) for k in everyone])
    error = np.sqrt((seeds - 1) / seeds * np.sum((left_out - left_out.mean()) ** 2))
    reach = student.ppf(0.975, seeds - 1) * error
    return Churn(whole, whole - reach, whole + reach, seeds)
