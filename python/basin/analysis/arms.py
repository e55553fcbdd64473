"""Arms: settings of one protocol, optimiser and batch size that differ in some option, each by a label ("ghost_batch=25").

An option counts where settings of one such cell differ in it, and not where its value follows from the cell and the options before it;
those that the study sweeps come first. The plain setting, whose label is empty, is no branch, and has the value of the smallest
batch size where that has one value alone, else the study's own, else the first of the study's list, else the default. A learning rate,
which is tuned for each arm, is part of a label only where nothing else tells two settings apart; then so is the number of planned updates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ..reader.program import in_identity
from ..reader.questions import axes_of, plain_values, rated_conditions
from ..reader.sweep import ASKED_FOR, Sweep, option_text

CELL = ["protocol", "optimizer", "batch_size"]
NO_ARM = (*CELL, "seed", "learning_rate")
LAST = ("learning_rate", "planned_updates")  # part of a label only where nothing else differs
ARM = "_arm"  # column of labels
FROM = "branch.from"
# What is kept and looked at on the way: a run's updates are the same without.
WATCHED = (
    "loss_levels", "outcomes_at_levels", "checkpoint_every", "evaluate_every", "layers_every", "ledger_every", "micro_batch",
    "weight_average",
)  # fmt: skip
DIGITS = range(6, 16)  # of numbers in texts: a number that was written with 15 reads back as it was
PART = re.compile(r", (?=[a-z][\w.]*=)")  # between the options of a label; a comma within a list has none behind it


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


def arm_labels(sweep: Sweep, ignored: Collection[str] = ()) -> pd.Series:
    runs = sweep.runs
    labels = pd.Series("", index=runs.index, dtype=object)
    if "config_id" not in runs or not all(key in runs for key in CELL):
        return labels
    candidates = [o for o in sweep.options if o not in (*NO_ARM, *ignored) and _of_setting(o)]
    named = (runs.config_id.fillna("") != "") & runs.batch_size.notna()
    configs = runs.loc[named, ["config_id", *CELL, *candidates]].drop_duplicates("config_id")
    several = [group for _, group in configs.groupby(CELL) if len(group) > 1]
    if not several:
        return labels
    plain_configs = _no_branches(runs, configs)
    axes = {axis: place for place, axis in enumerate(axes_of(sweep.study))}
    options = [o for o in candidates if any(_texts(g[o]).nunique() > 1 for g in several)]
    options.sort(key=lambda option: axes.get(option.removeprefix(ASKED_FOR), len(axes)))
    for option in _telling(configs, options):
        name = option.removeprefix(ASKED_FOR)
        plain, mine = _plain(plain_configs, option, plain_values(sweep.study, name)), _texts(runs[option])
        labels += np.where((mine != plain) & (mine != ""), f", {name}=" + _short_texts(runs[option]), "")
    labels = labels.str.removeprefix(", ")
    for option in LAST:
        labels = _told_apart(runs, labels, option)
    return labels


def without_rate(label: str) -> str:
    """What is left of a label where the rate, which is tuned for each setting, is no part of it."""
    return ", ".join(f"{key}={value}" for key, value in changes(label).items() if key not in LAST)


def plain_runs(sweep: Sweep) -> pd.DataFrame:
    """Those of plain settings, at any rate and whatever was looked at on the way."""
    return sweep.runs[arm_labels(sweep, WATCHED).map(without_rate) == ""]


def _of_setting(option: str) -> bool:
    """Not what differs between seeds of one setting: another run's id, or where a file lies. Which setting that run has is the same."""
    return not option.endswith((".from", ".trust_from", "parallel.order")) and (option.endswith("setting") or in_identity(option))


def _no_branches(runs: pd.DataFrame, configs: pd.DataFrame) -> pd.DataFrame:
    """All of them where there is nothing else."""
    if FROM not in runs:
        return configs
    rest = configs[_texts(runs[FROM])[configs.index] == ""]
    return rest if len(rest) else configs


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
    mine, labels = _short_texts(runs[option]), labels.copy()
    known = runs.loc[runs.config_id.fillna("") != "", ["config_id", *CELL]]
    for _, group in known.groupby([*(known[key] for key in CELL), labels[known.index]]):
        firsts = group.drop_duplicates("config_id")
        if len(firsts) > 1 and mine[firsts.index].nunique() > 1:
            told = f"{option}=" + mine[group.index]
            labels[group.index] = labels[group.index].map(lambda label: f"{label}, " if label else "") + told
    return labels


def _plain(configs: pd.DataFrame, option: str, likely: list[Any]) -> str:
    """`likely`: plain_values()."""
    texts = _texts(configs[option])
    texts = texts[texts != ""]
    if texts.empty:
        return ""
    smallest = texts[configs.batch_size[texts.index] == configs.batch_size[texts.index].min()]
    if smallest.nunique() == 1:
        return str(smallest.iloc[0])
    there = set(texts)
    for value in likely:
        if (text := value_text(option_text(value))) in there:
            return text
    # Rules alone set it, and no program is there to ask: the commonest; among several the first by text, since rows have no order.
    counts = texts.value_counts()
    return str(min(counts.index[counts == counts.max()]))


def _texts(column: pd.Series) -> pd.Series:
    """A missing one is empty."""
    return column.astype(object).map(value_text)


def _short_texts(column: pd.Series) -> pd.Series:
    """Numbers with as few digits as tell all of them apart."""
    exact, column = _texts(column), column.astype(object)
    shorter = (column.map(partial(value_text, digits=digits)) for digits in DIGITS)
    return next((texts for texts in shorter if texts.nunique() == exact.nunique()), exact)


def different_texts(one: Any, two: Any) -> tuple[str, str] | None:
    """Both values, with as few digits as tell them apart; None where they are alike."""
    if value_text(one) == value_text(two):
        return None
    texts = _short_texts(pd.Series([one, two], dtype=object))
    return texts[0], texts[1]


def value_text(value: Any, digits: int = DIGITS[-1]) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, float, np.integer, np.floating)):
        return f"{float(value):.{DIGITS[-1] if float(value).is_integer() else digits}g}"
    return str(value)


def nearest_arm(arm: str, there: Iterable[str]) -> str | None:
    """The arm there that has most of this arm's changes and none that it lacks: for "norm=batch, warmup=0" it is "norm=batch" before
    the plain setting. Among several the one with this arm's first changes. None where each has a change of its own."""
    mine = changes(arm)
    nested = [other for other in there if changes(other).items() <= mine.items()]
    return max(nested, key=lambda other: (len(changes(other)), [key in changes(other) for key in mine]), default=None)


def has_own_rate(arm: str, base: str, study: str) -> bool:
    """Whether the study gives a learning rate for what the arm changes."""
    rated = {(key, value_text(option_text(value), digits)) for key, value in rated_conditions(study) for digits in DIGITS}
    return changes(arm).items() - changes(base).items() <= rated


def changes(arm: str) -> dict[str, str]:
    """The options of a label."""
    parts = [part.partition("=") for part in PART.split(arm) if part]
    return {key: value for key, _, value in parts}


def arms_of(runs: pd.DataFrame) -> list[str]:
    """Labels of arms, the plain first, the others in order of appearance."""
    return sorted(dict.fromkeys(runs[ARM]), key=lambda label: label != "")
