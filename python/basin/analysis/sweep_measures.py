"""The measures of a sweep by configuration, with the generalisation gap: what correlation.py works on.

A configuration is a config_id: runs that differ in the seed alone. Its measure is the mean over the runs that have it with status ok at
the end of training, its targets those of the same runs, in per cent: the gap, test error less training error, and the test error.

Only numbers that are comparable are put together: one definition, one number and choice of examples, one set of the probe's settings, by
the study itself. Where there are several such lots the one with the most configurations with two seeds counts, and the others are named.

Runs: those of protocol B that stopped at the target (matched.comparable). A sweep without them is read at its fixed budget, where
measures of sharpness follow the training loss before anything else: there only what is left given the loss is claimed.

Errors: standard errors over seeds, or of a measure the runs' own uncertainty where that is greater; of a configuration with one seed the
spread of the others (pooled; relative to the value where a measure is positive throughout). All runs see the same test images, so
the images' part of an error moves all configurations together and is in no error here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..reader.names import Names
from ..reader.probe import NO_ERROR_BAR
from ..reader.sweep import Sweep
from . import grid, stats
from .matched import comparable, fixed_budget
from .noise_scale import pooled_noise_scale
from .stability_limit import rates_used

TARGETS = {"gap": "generalisation gap (% of images)", "test_error": "test error (%)"}
COVARIATES = {"rate": "learning rate", "updates": "updates", "train_loss": "training loss"}
LOT = ["definition", "units", "n_examples", "subset_hash", "settings"]
FREEDOM = 10  # degrees of freedom that the correlation of errors is estimated from, at least; else it is taken to be 0


@dataclass
class Basis:
    """Which runs are compared. `matched`: at the same training loss. `axes`: in which hyper-parameters they differ (grid.py)."""

    protocol: str
    runs: pd.DataFrame
    matched: bool
    left_out: int  # runs of the protocol that are not comparable
    names: Names
    axes: list[str]


@dataclass
class Measure:
    """`configs`: a row per configuration, with the options of its first run, value, seeds, targets and covariates, and value_error,
    gap_error, .... `common`: correlation between the errors of value and target, by target. `positive`: errors of values are
    relative. `dropped`: how many numbers had another status than ok, by status. `aside`: numbers of other lots, and which."""

    probe: str
    quantity: str
    definition: str
    units: str
    configs: pd.DataFrame
    common: dict[str, float]
    positive: bool
    dropped: dict[str, int]
    aside: str
    label: str = ""

    @property
    def repeated(self) -> int:
        """Configurations with at least two seeds."""
        return int((self.configs.seeds > 1).sum())


def basis_of(sweep: Sweep) -> Basis:
    for protocol in filter(None, ("B", fixed_budget(sweep.runs))):
        runs = sweep.runs[sweep.runs.protocol == protocol]
        good = runs[comparable(runs)]
        if len(good) and good.run_id.isin(_at_end(sweep).run_id).any():
            axes = grid.axes_of(good.drop_duplicates("config_id"), sweep.options)
            return Basis(protocol, good, protocol == "B", len(runs) - len(good), sweep.names, axes)
    return Basis("B", sweep.runs[:0], True, 0, sweep.names, [])


def _at_end(sweep: Sweep) -> pd.DataFrame:
    """One row per number: of a vector its first entry, and nothing of what is by layer."""
    rows = sweep.probes
    rows = rows[(rows.checkpoint == "end") & rows.study.astype(bool) & ~rows.quantity.str.startswith("layer_")]
    return rows[rows["index"] == 0]


def collect(sweep: Sweep, basis: Basis | None = None) -> list[Measure]:
    """In the order of probes, by the names of quantities; without those that say the same as another. Ratios are ratios of means."""
    basis = basis or basis_of(sweep)
    if basis.runs.empty or "test_acc" not in basis.runs:
        return []
    runs = _with_targets(basis.runs)
    rows = _at_end(sweep)
    rows = rows[rows.run_id.isin(runs.run_id)]
    found = []
    names = sweep.names
    for (probe, quantity), mine in sorted(rows.groupby(["probe", "quantity"]), key=lambda lot: names.place("probes", lot[0][0])):
        if names.is_copy(quantity):
            continue
        measure = _measure(probe, quantity, mine, rows[rows.probe == probe], runs, names.ratio(quantity))
        if measure is not None:
            found.append(measure)
    quantities = pd.Series([m.quantity for m in found], dtype=object)
    for measure, doubled in zip(found, quantities.duplicated(keep=False)):
        measure.label = f"{measure.quantity} ({names.label('probes', measure.probe)})" if doubled else measure.quantity
    return found


def _with_targets(runs: pd.DataFrame) -> pd.DataFrame:
    runs = runs[[c for c in runs if not c.startswith("probe.")]]
    accuracy = pd.to_numeric(runs.test_acc, errors="coerce")
    gap = 100 * (pd.to_numeric(runs.train_acc, errors="coerce") - accuracy)
    return runs.assign(test_error=100 * (1 - accuracy), gap=gap, rate=pd.to_numeric(rates_used(runs), errors="coerce"))


def _measure(
    probe: str, quantity: str, rows: pd.DataFrame, siblings: pd.DataFrame, runs: pd.DataFrame, ratio: tuple[str, str] | None
) -> Measure | None:
    """None where no configuration has a number. `ratio`: the two of its `siblings` that it is one of."""
    rows = rows.merge(runs[["run_id", "config_id"]], on="run_id")
    usable = (rows.status == "ok") | (bool(ratio) & (rows.status == "not_resolved"))
    lots = sorted(rows[usable & np.isfinite(rows.value.astype(float))].groupby(LOT, dropna=False), key=lambda lot: _size(lot[1]))
    if not lots:
        return None
    lot = lots[-1][1]
    own = np.where(lot.uncertainty_kind.isin(NO_ERROR_BAR), np.nan, lot.uncertainty.astype(float))
    numbers = pd.DataFrame({"run_id": lot.run_id, "value": lot.value.astype(float), "own": own, "resolved": lot.status == "ok"})
    table = numbers.merge(runs, on="run_id")
    configs = _by_config(table)
    dropped = {str(word): int(n) for word, n in rows.status[~usable].value_counts().items()}
    if ratio:
        _pool_ratios(configs, table, siblings, ratio)
        resolved = np.isfinite(configs.value)
        configs, lost = configs[resolved].reset_index(drop=True), int((~resolved).sum())
        if lost:
            dropped["configurations not resolved"] = lost
    if configs.empty:
        return None
    positive = bool((configs.value > 0).all())
    common = {target: _fill_errors(configs, table, target, positive) for target in TARGETS}
    others = ", ".join(f"{len(other)} by settings {key[LOT.index('settings')]}" for key, other in lots[:-1])
    return Measure(probe, quantity, lot.definition.iloc[0], lot.units.iloc[0], configs, common, positive, dropped, others)


def _size(lot: pd.DataFrame) -> tuple[int, int, int]:
    seeds = lot.groupby("config_id").run_id.nunique()
    return int((seeds > 1).sum()), len(seeds), len(lot)


def _by_config(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for _, lot in table.groupby("config_id", sort=True):
        row = lot.iloc[0].to_dict()
        row["value"], row["value_error"], row["seeds"] = stats.mean_and_larger_error(lot.value, lot.own)
        for name in (*TARGETS, *COVARIATES):
            row[name], row[f"{name}_error"], _ = stats.mean_and_error(pd.to_numeric(lot[name], errors="coerce"))
        rows.append(row)
    return pd.DataFrame(rows)


def _pool_ratios(configs: pd.DataFrame, table: pd.DataFrame, siblings: pd.DataFrame, names: tuple[str, str]) -> None:
    """A noise scale of several runs is the ratio of means, those not resolved by themselves in it (docs/probes.md), and NaN where
    it is not resolved; its error is that of the delta method over runs, or their own where that is greater. One run has its own
    number, if that is resolved."""
    parts = [siblings[siblings.quantity == name].set_index("run_id").value for name in names]
    for i, config in configs.iterrows():
        runs = table.run_id[table.config_id == config.config_id]
        above, below = (part.reindex(runs).to_numpy(float) for part in parts)
        if config.seeds > 1:
            pooled = pooled_noise_scale(above, below)
            own = table.own[(table.config_id == config.config_id) & table.resolved].mean()
            numbers = (pooled.value, np.fmax(pooled.error, own)) if pooled.resolved else (np.nan, np.nan)
            configs.loc[i, ["value", "value_error"]] = numbers
        elif not config.resolved:
            configs.loc[i, "value"] = np.nan


def _fill_errors(configs: pd.DataFrame, table: pd.DataFrame, target: str, positive: bool) -> float:
    """Gives configurations with one seed the spread of the others; returns the correlation of the errors of value and target."""
    table = table[table.config_id.isin(configs.config_id) & ((table.value > 0) | (not positive))]
    values = pd.DataFrame({"x": np.log(table.value) if positive else table.value, "y": table[target]})
    deviations = values - values.groupby(table.config_id).transform("mean")
    freedom = len(table) - table.config_id.nunique()
    if freedom < 1:
        return 0.0
    spread = np.sqrt((deviations**2).sum() / freedom)
    alone = configs.seeds < 2
    value_error = np.fmax(configs.value_error, spread.x * (configs.value if positive else 1.0))
    configs["value_error"] = configs.value_error.where(~alone, value_error)
    configs[f"{target}_error"] = configs[f"{target}_error"].where(~alone, spread.y)
    if freedom < FREEDOM or not (spread > 0).all():
        return 0.0
    return float((deviations.x * deviations.y).sum() / freedom / (spread.x * spread.y))
