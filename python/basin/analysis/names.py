"""Protocols, their names and their order; and the optimisers of a table of runs in theirs."""

from __future__ import annotations

import pandas as pd

from ..reader.names import Names

PROTOCOL_TITLES = {
    "A-epochs": "A: the same number of epochs",
    "A-updates": "A: the same number of updates",
    "B": "B: stopped at the same training loss",
}


def optimizers_of(runs: pd.DataFrame, names: Names) -> list[str]:
    return names.in_order("optimizers", runs.optimizer.dropna())


def protocols_of(runs: pd.DataFrame) -> list[str]:
    return [p for p in ("A-epochs", "A-updates", "B") if (runs.protocol == p).any()]


def protocol_name(protocol: str) -> str:
    return {"A-epochs": "a fixed number of epochs", "A-updates": "a fixed number of updates", "B": "matched training loss"}.get(
        protocol, protocol
    )
