"""tune.h5, what `basin tune` and a sweep that tunes write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from .names import Names, known_names
from .questions import plain_values, set_by_rules
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

    def option(self, key: str, default: Any = None) -> pd.Series | None:
        """Its value in each tuning run: what groups or candidates have, else the study's own, else the program's default, or that given
        here. None where a rule sets it, or nothing says it."""
        if key in self.runs:
            return self.runs[key]
        study = str(self.attributes.get("study", ""))
        known = [*plain_values(study, key), *([] if default is None else [default])]
        if key in set_by_rules(study) or not known:
            return None
        return pd.Series([known[0]] * len(self.runs), index=self.runs.index)

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
