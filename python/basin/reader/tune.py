"""tune.h5, what `basin tune` and a sweep that tunes write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from .names import Names, known_names
from .schema import attributes, reading
from .tables import table_of


@dataclass
class Tuning:
    """tune.h5 (docs/file-format.md): one row per run, per candidate of a group at a rung, per group's winner."""

    path: Path
    attributes: dict
    runs: pd.DataFrame
    scores: pd.DataFrame
    winners: pd.DataFrame

    @cached_property
    def names(self) -> Names:
        """Labels and order of the optimisers, from the program where there is one."""
        return known_names().seen("optimizers", self.scores.optimizer)

    @property
    def last_rung(self) -> pd.DataFrame:
        """The scores with the whole budget, which the winners were chosen by."""
        return self.scores[self.scores.rung == self.scores.rung.max()]


def load_tuning(path: str | Path, verify: bool = True) -> Tuning:
    """Reads tune.h5, or that of a folder of `basin tune` or `basin sweep`."""
    path = Path(path)
    path = path / "tune.h5" if path.is_dir() else path
    with reading(path, "tune", verify) as file:
        return Tuning(path, attributes(file), *(table_of(file[name]) for name in ("runs", "scores", "winners")))
