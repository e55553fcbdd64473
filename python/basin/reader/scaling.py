"""scaling.h5, what `basin scaling` writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from .names import Names, known_names
from .schema import attributes, reading
from .tables import table_of

NAME = "scaling.h5"


@dataclass
class RankTimes:
    """scaling.h5 (docs/file-format.md): one row per number of ranks and round, of updates with their batch sizes, of Hessian products,
    and of sums with their sizes."""

    path: Path
    attributes: dict
    provenance: dict
    updates: pd.DataFrame
    products: pd.DataFrame
    sums: pd.DataFrame

    @cached_property
    def names(self) -> Names:
        """Labels and order of the optimisers, from the program where there is one."""
        return known_names().seen("optimizers", self.updates.optimizer)


def load_scaling(path: str | Path, verify: bool = True) -> RankTimes:
    """Reads scaling.h5, or that of a sweep's folder."""
    path = Path(path)
    path = path / NAME if path.is_dir() else path
    with reading(path, "scaling", verify) as file:
        return RankTimes(path, attributes(file), attributes(file["provenance"]),
                         *(table_of(file[name]) for name in ("updates", "products", "sums")))  # fmt: skip
