"""Optimisers and protocols: what they are called, and in which order they come."""

from __future__ import annotations

import pandas as pd

OPTIMIZER_NAMES = {"sgd": "SGD", "lars": "LARS", "lamb": "LAMB", "adamw": "AdamW"}
PROTOCOL_TITLES = {
    "A-epochs": "A: the same number of epochs",
    "A-updates": "A: the same number of updates",
    "B": "B: stopped at the same training loss",
}


def optimizer_name(name: str) -> str:
    return OPTIMIZER_NAMES.get(name, name)


def optimizer_order(name: str) -> tuple[int, str]:
    known = ["sgd", "lars", "lamb"]
    return (known.index(name) if name in known else len(known), name)


def protocols_of(runs: pd.DataFrame) -> list[str]:
    return [p for p in ("A-epochs", "A-updates", "B") if (runs.protocol == p).any()]


def protocol_name(protocol: str) -> str:
    return {"A-epochs": "a fixed number of epochs", "A-updates": "a fixed number of updates", "B": "matched training loss"}.get(
        protocol, protocol
    )
