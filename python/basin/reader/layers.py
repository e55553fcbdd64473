"""What each update did to each parameter: /layers of run.h5, and its thinned copy in sweep.h5."""

from __future__ import annotations

from dataclasses import dataclass

import h5py
import numpy as np
import pandas as pd

from .schema import attributes, strings, text

COLUMNS = ("weight_norm", "gradient_norm", "update_norm", "trust_ratio")


@dataclass
class Layers:
    """Four frames [update x parameter]. Weight norms are those before the update; a trust ratio is NaN where the parameter is excluded,
    and everywhere where the method has none. `every`: updates between rows as recorded (the first and the last are there anyway)."""

    weight_norm: pd.DataFrame
    gradient_norm: pd.DataFrame
    update_norm: pd.DataFrame
    trust_ratio: pd.DataFrame
    kinds: dict[str, str]  # by parameter: weight, bias, norm_weight, norm_bias
    every: int
    trust_ratio_definition: str

    @property
    def has_trust_ratios(self) -> bool:
        return bool(self.trust_ratio.notna().any(axis=None))

    @property
    def weights(self) -> list[str]:
        """The parameters of kind weight, from the input to the output."""
        return [name for name, kind in self.kinds.items() if kind == "weight"]


def layers_of_run(file: h5py.File) -> Layers | None:
    """From an open run.h5; None where it has none, or no update yet."""
    if "layers" not in file or file["layers/update"].shape[0] == 0:
        return None
    group = file["layers"]
    kinds = dict(zip(strings(file["params/name"]), strings(file["params/kind"])))
    definition = text(group["trust_ratio"].attrs["definition"])
    return _layers(group, (), list(strings(group["parameter"])), kinds, int(attributes(group)["every"]), definition)


def layers_of_sweep(file: h5py.File, run_id: str) -> Layers | None:
    """From an open sweep.h5: at most 50 rows; norms and ratios were rounded to float32, updates were not."""
    for group in file["layers"].values() if "layers" in file else ():
        found = np.flatnonzero(strings(group["run_id"]) == run_id)
        if found.size:
            i, names = int(found[0]), list(strings(group["parameter"]))
            kinds = dict(zip(names, strings(group["kind"])))
            return _layers(group, (i,), names, kinds, int(group["every"][i]), text(group["trust_ratio_definition"][i]))
    return None


def _layers(group: h5py.Group, run: tuple, names: list[str], kinds: dict[str, str], every: int, definition: str) -> Layers:
    update = group["update"][(*run, slice(None))]
    there = np.isfinite(update)  # a sweep's rows are padded

    def frame(column: str) -> pd.DataFrame:
        values = group[column][(*run, slice(None))][there].astype(float)
        return pd.DataFrame(values, index=pd.Index(update[there].astype(int), name="update"), columns=names)

    return Layers(**{column: frame(column) for column in COLUMNS}, kinds=kinds, every=every, trust_ratio_definition=definition)
