"""selection.toml: the learning rates that a tuning tried and the ones that it chose."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from .fault import ReadError
from .questions import flat

CELL = ("model", "optimizer", "batch_size", "protocol")


@dataclass(frozen=True)
class Trial:
    rate: float
    seeds: int
    ended: int
    reached: int
    overshot: int
    validation_loss: float
    gradients: float


@dataclass(frozen=True)
class Choice:
    protocol: str
    optimizer: str
    batch_size: int
    rate: float
    at_edge: bool
    searched: bool  # in ranges; else from a list
    trials: list[Trial]
    others: dict[str, object] = field(default_factory=dict)  # options that its group goes by, all but CELL
    arm: str = ""  # those in which it differs from most groups: "noise.batch=32"

    @property
    def chosen(self) -> Trial:
        return next(t for t in self.trials if t.rate == self.rate)


def read_choices(path: str | Path) -> list[Choice]:
    try:
        table = tomllib.loads(Path(path).read_text())
        return _with_arms([_choice(entry, "sampler_seed" in table) for entry in table["choice"]])
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise ReadError(f"{path}: not a selection.toml of a tuning sweep ({error})") from None


def _choice(entry: dict, searched: bool) -> Choice:
    group = flat(entry.get("when")) or dict(part.split("=", 1) for part in entry["group"].split())
    trials = [Trial(*row[:7]) for row in entry["tried"]]  # what follows is for people
    choice = Choice(
        entry["protocol"],
        group["optimizer"],
        int(group["batch_size"]),
        entry["learning_rate"],
        entry["at_edge"],
        searched,
        trials,
        {key: value for key, value in group.items() if key not in CELL},
    )
    choice.chosen  # noqa: B018  a rate that was never tried is an error here
    return choice


def _with_arms(choices: list[Choice]) -> list[Choice]:
    keys = list(dict.fromkeys(key for choice in choices for key in choice.others))
    plain = {key: Counter(str(c.others.get(key)) for c in choices).most_common(1)[0][0] for key in keys}
    return [
        replace(
            c, arm=", ".join(f"{key}={c.others[key]}" for key in keys if key in c.others and str(c.others[key]) != plain[key])
        )
        for c in choices
    ]
