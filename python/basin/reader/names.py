"""What optimisers, models, data sets and probes are called, in which order they come, and which of their numbers stand in tables and
figures: from /names of sweep.h5, else from the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import h5py
import pandas as pd

from .program import find_program, list_registered
from .schema import strings

KINDS = {"optimizers": "optimizers", "models": "models", "data_sets": "datasets", "probes": "probes"}  # in /names: with --list
MEASURE = ["probe", "quantity", "column", "label", "heading", "companion"]
FINITE = "_finite"  # tail of the numbers of the finite set: ratios and copies as those without


def no_measures() -> pd.DataFrame:
    return pd.DataFrame(columns=MEASURE)


@dataclass(frozen=True)
class Names:
    """`members`: of each kind (optimizers, models, data_sets, probes) the label by name, in order. `measures`: what tables and figures
    show, in order: the quantity in the long table (a vector's name), its column in `runs` behind the probe, label of an axis with the
    unit, heading in tables, and whether it is the companion of another, in figures alone. `ratios`: the two quantities whose means over
    runs make the ratio. `copies`: quantities that say the same as another. What nobody knows is empty: a name is then its own label."""

    members: dict[str, dict[str, str]] = field(default_factory=dict)
    measures: pd.DataFrame = field(default_factory=no_measures)
    ratios: dict[str, tuple[str, str]] = field(default_factory=dict)
    copies: frozenset[str] = frozenset()

    def label(self, kind: str, name: str) -> str:
        return self.members.get(kind, {}).get(name, name)

    def place(self, kind: str, name: str) -> int:
        """From 0; of a name that isn't there the one behind all others."""
        known = list(self.members.get(kind, {}))
        return known.index(name) if name in known else len(known)

    def in_order(self, kind: str, names: Iterable[str]) -> list[str]:
        """Each once."""
        return sorted(dict.fromkeys(names), key=lambda name: self.place(kind, name))

    def ratio(self, quantity: str) -> tuple[str, str] | None:
        """Numerator and denominator; None where it is no ratio."""
        found = self.ratios.get(quantity.removesuffix(FINITE))
        tail = FINITE if quantity.endswith(FINITE) else ""
        return (found[0] + tail, found[1] + tail) if found else None

    def is_copy(self, quantity: str) -> bool:
        return quantity.removesuffix(FINITE) in self.copies

    def seen(self, kind: str, names: Iterable[str]) -> Names:
        """With those that a file has and nobody has named, behind the others by first appearance."""
        known = self.members.get(kind, {})
        more = {name: name for name in names if isinstance(name, str) and name and name not in known}
        return replace(self, members=self.members | {kind: known | more})

    def with_columns(self, runs: pd.DataFrame) -> Names:
        """With the columns of measures that the runs alone know."""
        columns = [m.column or column_of(m.probe, m.quantity, runs) for m in self.measures.itertuples()]
        return replace(self, measures=self.measures.assign(column=columns))


def column_of(probe: str, quantity: str, runs: pd.DataFrame) -> str:
    """Its column behind the probe's name; of a vector that of its first entry."""
    first = f"{quantity}_1"
    return first if any(column.endswith(f".{probe}.{first}") for column in runs) else quantity


def names_in(file: h5py.File) -> Names | None:
    """From an open sweep.h5; None of a file from before it had them."""
    if "names" not in file:
        return None
    group = file["names"]
    members = {kind: dict(_rows(group[kind], "name", "label")) for kind in KINDS if kind in group}
    texts = {name: strings(group["measures"][name]) for name in MEASURE[:-1]}
    measures = pd.DataFrame(texts | {"companion": group["measures/companion"][()].astype(bool)}, columns=MEASURE)
    ratios = {q: (above, below) for q, above, below in _rows(group["ratios"], "quantity", "numerator", "denominator")}
    return Names(members, _companions_last(measures), ratios, frozenset(strings(group["copies/quantity"])))


def names_of_program() -> Names | None:
    """From `basin inspect --list ... --json`; None where there is no program, or one that can't say. Columns are for with_columns()."""
    program = find_program()
    lists = {kind: list_registered(program, listed) or [] for kind, listed in KINDS.items()} if program else {}
    if not lists or not all(lists.values()):
        return None
    try:
        members = {kind: {entry["name"]: entry["label"] for entry in found} for kind, found in lists.items()}
        probes = lists["probes"]
        rows = [
            (p["name"], m["quantity"], "", m["label"], m["heading"], not m["heading"]) for p in probes for m in p["headlines"]
        ]
        ratios = {r["quantity"]: (r["numerator"], r["denominator"]) for p in probes for r in p["ratios"]}
        copies = frozenset(quantity for p in probes for quantity in p["copies"])
    except (KeyError, TypeError):
        return None
    return Names(members, _companions_last(pd.DataFrame(rows, columns=MEASURE).astype({"companion": bool})), ratios, copies)


def known_names() -> Names:
    """For files that have no names of their own, as a run's and a tuning's."""
    return names_of_program() or Names()


def _rows(group: h5py.Group, *columns: str) -> Iterator[tuple]:
    return zip(*(strings(group[column]) for column in columns))


def _companions_last(measures: pd.DataFrame) -> pd.DataFrame:
    return measures.sort_values("companion", kind="stable", ignore_index=True)
