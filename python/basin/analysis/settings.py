"""Which setting the conditions of a contrast pick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..reader.questions import Questions
from ..reader.sweep import ASKED_FOR, Sweep, option_text
from .arms import different_texts, value_text


@dataclass(frozen=True)
class Setting:
    """One configuration with all its seeds. `runs`: whatever became of them."""

    role: str  # base | arm, of a recovery small | large | arm
    runs: pd.DataFrame

    @property
    def config_id(self) -> str:
        return str(self.runs.config_id.iloc[0])


class Unpicked(ValueError):
    """Conditions that pick no setting, or several, in words."""


def pick(sweep: Sweep, role: str, conditions: dict[str, Any], questions: Questions, like: Setting | None = None) -> Setting:
    """Where several settings meet the conditions, those that agree with `like` in the axes of the sweep that the conditions don't name;
    without `like`, or where it has no such option, those that no arm of the study made."""
    runs = sweep.runs[sweep.runs.config_id.fillna("") != ""]
    for key, value in conditions.items():
        runs = runs[_holds(sweep, runs, key, value)]
        if runs.empty:
            raise Unpicked(f"{role}: no run has {_said(conditions)}")
    for axis in questions.axes if like is not None else questions.arms:
        column = _option(runs, axis)
        if axis in conditions or column is None or runs.config_id.nunique() < 2:
            continue
        texts = column.map(value_text)
        wanted = None if like is None else _option(like.runs, axis)
        text = "" if wanted is None else value_text(wanted.iloc[0])
        same = runs[texts == text if text else _plain(texts, questions, axis)]
        runs = same if len(same) else runs
    if runs.config_id.nunique() > 1:
        raise Unpicked(f"{role}: {runs.config_id.nunique()} settings have {_said(conditions)}{_differ(sweep, runs)}")
    return Setting(role, runs)


def _plain(texts: pd.Series, questions: Questions, axis: str) -> pd.Series:
    """Which have the value of settings that no arm made, where an arm may list that too; else those without any arm's value."""
    likely = (value_text(option_text(value)) for value in questions.plain.get(axis, []))
    plain = next((text for text in likely if (texts == text).any()), None)
    if plain is not None:
        return texts == plain
    return ~texts.isin([value_text(option_text(value)) for value in questions.arms.get(axis, [])])


def _holds(sweep: Sweep, runs: pd.DataFrame, key: str, value: Any) -> pd.Series:
    column = _option(runs, key)
    if column is None:
        raise Unpicked(f'no run has an option "{key}"')
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        wanted = float(value)
        # A text of 15 digits reads back to within one part in 1e15.
        return pd.Series(np.isclose(pd.to_numeric(column, errors="coerce"), wanted, rtol=1e-12, atol=0), index=runs.index)
    return column.map(value_text) == value_text(option_text(value))


def _option(runs: pd.DataFrame, key: str) -> pd.Series | None:
    """As it was asked for: `updates` and `epochs` of a finished run are the work done."""
    return runs[ASKED_FOR + key] if ASKED_FOR + key in runs else runs.get(key)


def _said(conditions: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value_text(option_text(value))}" for key, value in conditions.items())


def _differ(sweep: Sweep, runs: pd.DataFrame) -> str:
    """ " and differ in warmup": three at most."""
    firsts = runs.drop_duplicates("config_id")
    keys = [o for o in sweep.options if o != "seed" and firsts[o].map(value_text).nunique() > 1]
    return f", which differ in {', '.join(key.removeprefix(ASKED_FOR) for key in keys[:3])}" if keys else ""


def also_differs(sweep: Sweep, one: Setting, two: Setting, named: dict[str, Any]) -> str:
    """Options besides those named in which two settings differ, as a tuned rate does: "learning_rate 0.1 / 0.02"."""
    first, second = one.runs.iloc[0], two.runs.iloc[0]
    texts = []
    for option in sweep.options:
        found, name = different_texts(first[option], second[option]), option.removeprefix(ASKED_FOR)
        if name not in named and option != "seed" and found and all(found):
            texts.append(f"{name} {found[0]} / {found[1]}")
    return ", ".join(texts)
