"""Arms: settings of one protocol, optimiser and batch size that differ in some option, each by a label ("ghost_batch=25").

An option counts where settings of one such cell differ in it, and not where its value follows from the cell and the options before it;
those that the study sweeps come first. The plain setting, whose label is empty, has the value of the smallest
batch size where that has one value alone, else the study's own, else the commonest. A learning rate, which is tuned for each arm, is
part of a label only where nothing else tells two settings apart; then so is the number of planned updates.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..reader.questions import axes_of, flat, rated_conditions
from ..reader.sweep import ASKED_FOR, Sweep, option_text

CELL = ["protocol", "optimizer", "batch_size"]
NO_ARM = (*CELL, "seed", "learning_rate")
LAST = ("learning_rate", "planned_updates")  # part of a label only where nothing else differs
ARM = "_arm"  # column of labels


def with_arms(sweep: Sweep) -> pd.DataFrame:
    """The runs with the column ARM; of a run that doesn't know its options it is empty."""
    return sweep.runs.assign(**{ARM: arm_labels(sweep)})


SLIM = (
    "run_id",
    "config_id",
    "status",
    *CELL,
    "seed",
    "overshot",
    "train_loss",
    "test_acc",
    "test_loss",
    "learning_rate",
    "steps_to_target",
)


def slim_with_arms(sweep: Sweep) -> pd.DataFrame:
    """The same with the columns that comparing takes: hundreds of others make every selection slow."""
    return sweep.runs[[c for c in SLIM if c in sweep.runs]].assign(**{ARM: arm_labels(sweep)})


def arm_labels(sweep: Sweep) -> pd.Series:
    runs = sweep.runs
    labels = pd.Series("", index=runs.index, dtype=object)
    if "config_id" not in runs or not all(key in runs for key in CELL):
        return labels
    candidates = [o for o in sweep.options if o not in NO_ARM]
    named = (runs.config_id.fillna("") != "") & runs.batch_size.notna()
    configs = runs.loc[named, ["config_id", *CELL, *candidates]].drop_duplicates("config_id")
    several = [group for _, group in configs.groupby(CELL) if len(group) > 1]
    if not several:
        return labels
    study = _study_values(sweep.study)
    axes = {axis: place for place, axis in enumerate(axes_of(sweep.study))}
    options = [o for o in candidates if any(_texts(g[o]).nunique() > 1 for g in several)]
    options.sort(key=lambda option: axes.get(option.removeprefix(ASKED_FOR), len(axes)))
    for option in _telling(configs, options):
        name = option.removeprefix(ASKED_FOR)
        plain, mine = _plain(configs, option, study.get(name)), _texts(runs[option])
        labels += np.where((mine != plain) & (mine != ""), f", {name}=" + mine, "")
    labels = labels.str.removeprefix(", ")
    for option in LAST:
        labels = _told_apart(runs, labels, option)
    return labels


def without_rate(label: str) -> str:
    """What is left of a label where the rate, which is tuned for each setting, is no part of it."""
    return ", ".join(part for part in label.split(", ") if part.split("=")[0] not in LAST)


def _telling(configs: pd.DataFrame, options: list[str]) -> list[str]:
    """Those that tell settings apart which the cell and the options before don't."""
    classes = configs.groupby(CELL).ngroup()
    telling = []
    for option in options:
        finer = pd.DataFrame({"class": classes, "as_text": _texts(configs[option])}).groupby(["class", "as_text"]).ngroup()
        if finer.nunique() > classes.nunique():
            telling.append(option)
        classes = finer
    return telling


def _told_apart(runs: pd.DataFrame, labels: pd.Series, option: str) -> pd.Series:
    """With the option's value where settings of a cell have the same label and differ in it."""
    if option not in runs:
        return labels
    mine, labels = _texts(runs[option]), labels.copy()
    known = runs.loc[runs.config_id.fillna("") != "", ["config_id", *CELL]]
    for _, group in known.groupby([*(known[key] for key in CELL), labels[known.index]]):
        firsts = group.drop_duplicates("config_id")
        if len(firsts) > 1 and mine[firsts.index].nunique() > 1:
            told = f"{option}=" + mine[group.index]
            labels[group.index] = labels[group.index].map(lambda label: f"{label}, " if label else "") + told
    return labels


def _plain(configs: pd.DataFrame, option: str, of_study: str | None) -> str:
    texts = _texts(configs[option])
    texts = texts[texts != ""]
    smallest = texts[configs.batch_size[texts.index] == configs.batch_size[texts.index].min()]
    if smallest.nunique() == 1:
        return str(smallest.iloc[0])
    if of_study in set(texts):
        return str(of_study)
    return str(texts.value_counts(sort=True).index[0])


def _study_values(study: str) -> dict[str, str]:
    try:
        return {key: value_text(option_text(value)) for key, value in flat(tomllib.loads(study)).items()}
    except tomllib.TOMLDecodeError:
        return {}


def _texts(column: pd.Series) -> pd.Series:
    """A missing one is empty."""
    return column.astype(object).map(value_text)


def value_text(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, float, np.integer, np.floating)):
        return f"{float(value):.15g}" if float(value) == int(value) else f"{float(value):g}"
    return str(value)


def nearest_arm(arm: str, there: Iterable[str]) -> str | None:
    """The arm there that has most of this arm's changes and none that it lacks: for "norm=batch, warmup=0" it is "norm=batch" before
    the plain setting. None where each has a change of its own."""
    mine = _changes(arm)
    nested = [other for other in there if _changes(other) <= mine]
    return max(nested, key=lambda other: len(_changes(other)), default=None)


def has_own_rate(arm: str, base: str, study: str) -> bool:
    """Whether the study gives a learning rate for what the arm changes."""
    rated = {f"{key}={value_text(option_text(value))}" for key, value in rated_conditions(study)}
    return _changes(arm) - _changes(base) <= rated


def _changes(arm: str) -> set[str]:
    return set(arm.split(", ")) - {""}


def arms_of(runs: pd.DataFrame) -> list[str]:
    """Labels of arms, the plain first, the others in order of appearance."""
    return sorted(dict.fromkeys(runs[ARM]), key=lambda label: label != "")
