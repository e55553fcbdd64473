"""The hyper-parameters that a sweep varies, and what Jiang et al. (ICLR 2020) and Dziugaite et al. (NeurIPS 2020) make of them.

An axis is an option (Sweep.options) that differs between configurations and doesn't follow from the others: a learning rate tuned for
each batch size and optimiser is none, and goes along where its axis varies.

Groups of an axis: configurations alike in all other axes (for rank.granulated).

Robust sign error: an environment is an axis and two of its levels; its sign error is the share of its pairs of configurations, alike but
for these levels, that the measure puts in the other order than the target does (a tie of the measure: half), each weighted by how
sure the target's order is: erf(|y_i - y_j| / sqrt(2 (e_i^2 + e_j^2))), e its standard errors (the paper: Hoeffding's bound). The
statistic is the greatest over environments that have FEWEST_PAIRS, for x or for -x, whichever does better throughout (a measure of
flatness falls where one of sharpness rises): 1 means that in some environment the measure is wrong throughout. By chance it is near 1
too where environments are small, which the placebo, with the same choice of direction, shows.

Conditional mutual information: V = sign of a pair's difference, U = the pair's values of the axes in S; the least of
I(V_x; V_y | U) / H(V_y | U) over all S of at most two axes, the empty one included. 0: once some axes are known the measure tells
nothing; 1: all. It is taken from counts as they are, so with few configurations it is far too high, the placebo's too: only
their difference says anything. An S in which U determines V_y is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import erf

from .rank import Estimate, dealt, in_chunks, pair_signs, placebo_p, placebos

FIRST = ("optimizer", "model", "dataset.name", "batch_size")
LAST = ("learning_rate",)  # where one of two options follows from the other, it is this one that does
FEWEST_PAIRS = 3
FEWER = 499  # placebos, of a statistic from which nothing is claimed
NO_AXES = ("seed", "protocol")  # configurations are repeated over seeds, and compared under one protocol


def axes_of(configs: pd.DataFrame, options: Iterable[str]) -> list[str]:
    """Names of the axes; `configs` has one row per configuration and these options among its columns."""
    codes = {c: _codes(configs[c]) for c in options if c not in NO_AXES}
    varied = [c for c in codes if codes[c].max(initial=0) > 0]
    varied.sort(key=lambda c: (c in LAST, FIRST.index(c) if c in FIRST else len(FIRST)))
    kept = list(varied)
    for name in reversed(varied):
        rest = [c for c in kept if c != name]
        if rest and _follows(codes[name], [codes[c] for c in rest]):
            kept = rest
    return kept


def _levels(column: pd.Series) -> pd.Series:
    """As texts; an option that a configuration doesn't have is a level too."""
    return column.astype(object).where(column.notna(), "").map(str)


def _codes(column: pd.Series) -> np.ndarray:
    return pd.factorize(_levels(column), sort=True)[0]


def _follows(codes: np.ndarray, rest: list[np.ndarray]) -> bool:
    """Whether configurations alike in the rest are alike in this."""
    return _number(rest).max() == _number([codes, *rest]).max()


def _number(codes: list[np.ndarray]) -> np.ndarray:
    """One number per configuration, from 0 without gaps, the same where all of `codes` are."""
    return np.unique(np.array(codes), axis=1, return_inverse=True)[1].ravel()


def _keys(configs: pd.DataFrame, names: list[str]) -> np.ndarray:
    return _number([_codes(configs[n]) for n in names]) if names else np.zeros(len(configs), int)


def groups(configs: pd.DataFrame, axes: list[str]) -> dict[str, list[np.ndarray]]:
    """By axis the groups of at least two configurations that differ in it, with what follows from it, alone."""
    found = {}
    for axis in axes:
        keys = _keys(configs, [a for a in axes if a != axis])
        found[axis] = [g for k in np.unique(keys) if len(g := np.flatnonzero(keys == k)) > 1]
    return {axis: some for axis, some in found.items() if some}


def environments(configs: pd.DataFrame, axes: list[str]) -> dict[tuple[str, str, str], np.ndarray]:
    """(axis, level, other level) -> pairs of configurations [pair, 2] that differ in that alone; those with enough pairs."""
    found: dict[tuple[str, str, str], list] = {}
    for axis, some in groups(configs, axes).items():
        levels = _levels(configs[axis]).to_numpy()
        for group in some:
            for i, j in combinations(group, 2):
                if levels[i] != levels[j]:
                    one, two = sorted((i, j), key=lambda k: levels[k])
                    found.setdefault((axis, levels[one], levels[two]), []).append((one, two))
    return {name: np.array(pairs) for name, pairs in found.items() if len(pairs) >= FEWEST_PAIRS}


def robust_sign_error(configs: pd.DataFrame, axes: list[str], x: ArrayLike, y: ArrayLike, y_error: ArrayLike) -> Estimate:
    """p: how often a placebo does as well or better."""
    x, y, y_error = (np.asarray(v, float) for v in (x, y, y_error))
    found = list(environments(configs, axes).values())
    sure = order_certainty(y, y_error)
    worth = np.array([_at(sure, pairs) for pairs in found]).reshape(len(found), len(x) ** 2)
    worth = worth[worth.sum(1) >= 1]  # of one pair that is certain
    if not len(worth):
        return Estimate(why=f"no two levels of an axis with {FEWEST_PAIRS} pairs of which the target's order is known")
    sx, shares = pair_signs(x), worth / worth.sum(1, keepdims=True)

    def statistic(order: np.ndarray) -> np.ndarray:
        agreement = (dealt(sx, order) * pair_signs(y)).reshape(len(order), -1) @ shares.T
        wrong = 0.5 * (1 - agreement)
        return np.minimum(wrong.max(1), 1 - wrong.min(1))  # of x, of -x

    value, null = _with_placebos(statistic, len(x))
    return Estimate(value, p=placebo_p(-value, -null, one_sided=True), band=_band(null))


def _at(table: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The table with nothing but these pairs in it."""
    kept = np.zeros_like(table)
    kept[tuple(pairs.T)] = table[tuple(pairs.T)]
    return kept


def order_certainty(y: np.ndarray, error: np.ndarray) -> np.ndarray:
    """2 P(the order of i and j is the true one) - 1 for normal errors: erf(|y_i - y_j| / sqrt(2 (e_i^2 + e_j^2)))."""
    spread = np.sqrt(2 * (error[:, None] ** 2 + error[None, :] ** 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, erf(np.abs(y[:, None] - y[None, :]) / spread), np.abs(pair_signs(y)))


def conditional_information(configs: pd.DataFrame, axes: list[str], x: ArrayLike, y: ArrayLike) -> Estimate:
    """p: how often a placebo has as much."""
    sx, n = pair_signs(x), len(x)
    pairs = tuple(np.argwhere(~np.eye(n, dtype=bool)).T)
    vy = (pair_signs(y)[pairs] + 1).astype(int)
    strata = [_strata(configs, names, pairs) for size in range(3) for names in combinations(axes, size)]
    strata = [u for u in strata if _entropy((u * 3 + vy)[None])[0] - _entropy(u[None])[0] > 1e-12]
    if not strata:
        return Estimate(why="not resolved")

    def statistic(order: np.ndarray) -> np.ndarray:
        vx = (dealt(sx, order)[:, pairs[0], pairs[1]] + 1).astype(int)
        return np.min([_share_told(u[None], vx, vy[None]) for u in strata], axis=0)

    value, null = _with_placebos(statistic, n)
    return Estimate(value, p=placebo_p(value, null, one_sided=True), band=_band(null))


def _strata(configs: pd.DataFrame, names: tuple[str, ...], pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """U: one number per pair, the same where both configurations' levels of all of `names` are."""
    keys = _keys(configs, list(names))
    return np.unique(keys[pairs[0]] * len(keys) + keys[pairs[1]], return_inverse=True)[1]


def _share_told(u: np.ndarray, vx: np.ndarray, vy: np.ndarray) -> np.ndarray:
    """I(Vx; Vy | U) / H(Vy | U) by draw, where I = H(Vx, U) + H(Vy, U) - H(Vx, Vy, U) - H(U)."""
    alone, with_y = _entropy(u), _entropy(u * 3 + vy)
    information = _entropy(u * 3 + vx) + with_y - _entropy(u * 9 + vx * 3 + vy) - alone
    return np.maximum(information, 0.0) / (with_y - alone)


def _entropy(labels: np.ndarray) -> np.ndarray:
    """The entropy of each row of labels [draw, pair], in nats."""
    draws, width = len(labels), int(labels.max()) + 1
    counts = np.bincount((labels + width * np.arange(draws)[:, None]).ravel(), minlength=draws * width).reshape(draws, width)
    shares = counts / labels.shape[1]
    return -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(1)


def _with_placebos(statistic: Callable[[np.ndarray], np.ndarray], n: int) -> tuple[float, np.ndarray]:
    return float(statistic(np.arange(n)[None])[0]), in_chunks(statistic, placebos(n)[:FEWER])


def _band(null: np.ndarray) -> tuple[float, float]:
    return tuple(np.percentile(null, [2.5, 97.5]))
