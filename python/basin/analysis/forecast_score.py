"""A prediction file of `basin forecast` scored against the runs that were made afterwards.

The outcome of a cell (one optimiser at one batch size) is the updates to the target of a seed at the fastest rate, chosen by the other
seeds (by all where there is one): least mean of log min(S, cap). A seed that didn't reach the target there counts as the cap. Scored is
z = min(log S, log cap) against quantiles that are cut at log cap too, so a prediction beyond the cap is right where the target was missed.

    IS_α(l, u; z) = (u − l) + 2/α (l − z)₊ + 2/α (z − u)₊                      interval score (Gneiting and Raftery 2007, eq. 43)
    WIS = [|z − m|/2 + 0.05 IS_0.1 + 0.25 IS_0.5] / 2.5                         weighted over both intervals and the median (Bracher
                                                                                et al. 2021, eq. 1), in nat: less is better

Both are proper: the least mean is that of the true quantiles. A cell's score is the mean over its seeds, a setting's over its cells.
A baseline is beaten where the mean over settings of (its WIS − the forecast's) is positive; the interval is Student's over settings (a
bootstrap of so few would be too narrow). A model that has no number for a cell (NaN) has no score there, and none of the setting.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..reader.fault import ReadError, SchemaError
from ..reader.questions import flat
from . import student

FORECAST = "limits"  # the model that has to be better than the others
ENDED = ("finished", "target_not_reached", "diverged")


# What a prediction file holds: tables, lists of one kind of entry, and values with what is expected of them. A TOML file can hold any
# number; these can be counted, converted and printed in one line.
TEXT = ("a text in one line", lambda v: isinstance(v, str) and v.isprintable())
TEXTS = ("a list of texts", lambda v: isinstance(v, list) and all(TEXT[1](text) for text in v))
FLAG = ("true or false", lambda v: isinstance(v, bool))
COUNT = ("a whole number from 1", lambda v: isinstance(v, int) and not isinstance(v, bool) and 1 <= v < 2**53)
NUMBER = ("a number", lambda v: isinstance(v, float) or (isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**53))
SHARE = ("a share of 1, or nan", lambda v: NUMBER[1](v) and not (v < 0 or v > 1))
SEEDS = ("a whole number from 1 to 10,000", lambda v: COUNT[1](v) and v <= 10_000)
MODEL = {"name": TEXT, "quantiles": [NUMBER], "not_reached": SHARE}
CELL = {"optimizer": TEXT, "batch_size": COUNT, "target_loss": NUMBER, "cap": COUNT, "learning_rates": [NUMBER], "model": [MODEL]}
CONTENT = {
    "created_utc": TEXT,
    "git_commit": TEXT,
    "git_dirty": FLAG,
    "test": {"study": TEXT, "sha256": TEXT, "set": TEXTS, "seeds": SEEDS},
    "probes": {"cost": NUMBER},
    "cell": [CELL],
}


@dataclass(frozen=True)
class Forecast:
    path: Path
    sha256: str
    content: dict

    @property
    def models(self) -> list[str]:
        return [model["name"] for model in self.content["cell"][0]["model"]]


def read_prediction(path: str | Path) -> Forecast:
    path = Path(path)
    try:
        text = path.read_bytes()
        content = tomllib.loads(text.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ReadError(f"{path}: no prediction file: {error}") from None
    if content.get("schema_name") != "basin/prediction":
        raise SchemaError(f"{path}: schema_name is {content.get('schema_name')!r}, not 'basin/prediction'")
    if not str(content.get("schema_version")).startswith("1."):
        raise SchemaError(f"{path}: schema_version {content.get('schema_version')!r}, this reader knows 1.x")
    if mistake := _mistake(content, CONTENT, "") or _mistake_in_models(content["cell"]):
        raise ReadError(f"{path}: {mistake}")
    return Forecast(path, hashlib.sha256(text).hexdigest(), content)


def _mistake(value: Any, kind: Any, key: str) -> str:
    """How a value differs from its line in CONTENT; empty where it doesn't."""
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return f"{key} is no table"
        parts = ((value.get(name), part, f"{key}.{name}".lstrip(".")) for name, part in kind.items())
    elif isinstance(kind, list):
        if not isinstance(value, list) or not value:
            return f"{key} is no list, or empty"
        parts = ((entry, kind[0], f"{key}[{i}]") for i, entry in enumerate(value))
    else:
        wanted, holds = kind
        return "" if holds(value) else f"{key} = {value!r:.80}, expected: {wanted}"
    return next(filter(None, (_mistake(*part) for part in parts)), "")


def _mistake_in_models(cells: list[dict]) -> str:
    names = [model["name"] for model in cells[0]["model"]]
    if FORECAST not in names or len(names) < 2 or len(set(names)) < len(names):
        return f"cell[0] has the models {', '.join(names)}; expected: {FORECAST} and others, each once"
    for i, cell in enumerate(cells):
        for model in cell["model"]:
            if len(model["quantiles"]) != 5:
                return f"cell[{i}] has {len(model['quantiles'])} quantiles of {model['name']}, not 5"
        if [model["name"] for model in cell["model"]] != names:
            return f"cell[{i}] has other models than cell[0]"
    return ""


def seeds_of(sha256: str, count: int) -> list[int]:
    """The seeds that a prediction's test runs have (docs/forecast.md)."""
    return [int(hashlib.sha256(f"{sha256}:{i}".encode()).hexdigest()[:8], 16) % 2**31 + 1 for i in range(1, count + 1)]


def wrong_seeds(forecast: Forecast, runs: pd.DataFrame) -> list[int]:
    """Seeds of the runs that don't follow from the file."""
    used = sorted(set(runs.seed.astype(int)))
    allowed = set(seeds_of(forecast.sha256, max(len(used), int(forecast.content["test"]["seeds"]))))
    return [seed for seed in used if seed not in allowed]


def require_study(forecast: Forecast, study: str, where: str | Path) -> None:
    """ReadError unless the runs are of the study that was predicted: its text, by SHA-256, and behind it at most what --set said then and
    other seeds."""
    lines = study.splitlines(keepends=True)
    texts = ("".join(lines[:count]) for count in range(len(lines), 0, -1))
    known = forecast.content["test"]
    text = next((t for t in texts if hashlib.sha256(t.encode()).hexdigest() == known["sha256"]), None)
    if text is None:
        raise ReadError(f"{where}: its study isn't {known['study']} as it was when {forecast.path} was made")
    then, now = dict(_setting(entry) for entry in known["set"]), added_to(text, study)
    if others := sorted(key for key in {*then, *now} - {"seed"} if then.get(key) != now.get(key)):
        raise ReadError(f"{where}: its study sets {', '.join(others)} otherwise than {forecast.path} has it")


def added_to(text: str, study: str) -> dict[str, Any]:
    """What a sweep wrote behind the text of a study: values of --set, or of a selection."""
    added = flat(tomllib.loads(study[len(text) :]))
    overrides = [flat(rule["set"]) for rule in added.pop("sweep.override", [])]
    return {key: value for rule in overrides for key, value in rule.items()} | added


def _setting(text: str) -> tuple[str, Any]:
    """key=value, the value in TOML or a bare text."""
    key, _, value = text.partition("=")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return key.strip(), value.strip()


def cell_runs(cell: dict, runs: pd.DataFrame, where: str | Path) -> pd.DataFrame:
    """The runs of this cell. ReadError where one has another target, cap or rate than was predicted, where a rate wasn't tried, or a run is
    not there."""
    mine = runs[(runs.protocol == "B") & (runs.optimizer == cell["optimizer"]) & (runs.batch_size == cell["batch_size"])]
    name = f"{where}: {cell['optimizer']} at batch size {cell['batch_size']}"
    if mine.empty:
        raise ReadError(f"{name}: no runs")
    if (mine.target_loss != cell["target_loss"]).any():
        raise ReadError(f"{name}: target_loss = {mine.target_loss.iloc[0]}, predicted was {cell['target_loss']}")
    if (~mine.status.isin(ENDED)).any():
        raise ReadError(f"{name}: run {mine[~mine.status.isin(ENDED)].run_id.iloc[0]} has not ended")
    tried, wanted = set(mine.learning_rate.astype(float)), {float(rate) for rate in cell["learning_rates"]}
    if tried != wanted:
        raise ReadError(f"{name}: learning rates {sorted(tried)}, predicted were {sorted(wanted)}")
    if len(mine) != len(tried) * mine.seed.nunique():
        raise ReadError(f"{name}: not every rate has every seed")
    over = mine.steps_to_target[mine.steps_to_target > cell["cap"]]
    if len(over):
        raise ReadError(f"{name}: a run reached the target after {over.iloc[0]:g} updates, beyond the cap of {cell['cap']}")
    return mine


def outcomes(cell: dict, runs: pd.DataFrame, where: str | Path = "sweep") -> pd.DataFrame:
    """By seed: the rate that the others choose, and log min(updates, cap) there; `reached`."""
    mine = cell_runs(cell, runs, where)
    reached = mine.status == "finished"
    logs = np.log(mine.steps_to_target.where(reached, cell["cap"]).astype(float))
    table = mine.assign(z=logs, reached=reached).pivot_table(index="seed", columns="learning_rate", values="z")
    hit = mine.assign(reached=reached).pivot_table(index="seed", columns="learning_rate", values="reached", aggfunc="min")
    rows = []
    for seed in table.index:
        others = table.drop(index=seed) if len(table) > 1 else table
        rate = others.mean().idxmin()
        rows.append({"seed": int(seed), "learning_rate": rate, "z": table.loc[seed, rate], "reached": bool(hit.loc[seed, rate])})
    return pd.DataFrame(rows)


def interval_score(low: float, high: float, z: float, alpha: float) -> float:
    return (high - low) + 2 / alpha * max(0.0, low - z) + 2 / alpha * max(0.0, z - high)


def scores_of(quantiles: list[float], cap: float, z: float) -> dict[str, float]:
    """WIS, the interval scores at 90 and 50 % and whether z is within, all at log cap at most."""
    q05, q25, q50, q75, q95 = np.minimum(quantiles, np.log(cap))
    wide, narrow = interval_score(q05, q95, z, 0.1), interval_score(q25, q75, z, 0.5)
    return {"wis": (abs(z - q50) / 2 + 0.05 * wide + 0.25 * narrow) / 2.5, "is90": wide, "is50": narrow,
            "in90": float(q05 <= z <= q95), "in50": float(q25 <= z <= q75)}  # fmt: skip


def score_setting(forecast: Forecast, runs: pd.DataFrame, where: str | Path = "sweep") -> pd.DataFrame:
    """One row per cell and model: means over seeds of scores_of(), and `brier` of P(not reached)."""
    rows = []
    for cell in forecast.content["cell"]:
        found = outcomes(cell, runs, where)
        for model in cell["model"]:
            missed = float(model["not_reached"])
            each = [scores_of(model["quantiles"], cell["cap"], z) for z in found.z]
            rows.append({"optimizer": cell["optimizer"], "batch": cell["batch_size"], "model": model["name"], "seeds": len(found),
                         "updates": float(np.exp(found.z.median())), "reached": int(found.reached.sum()),
                         "median": float(np.exp(model["quantiles"][2])), **pd.DataFrame(each).mean(),
                         "brier": float(((missed - ~found.reached.to_numpy()) ** 2).mean())})  # fmt: skip
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Comparison:
    """Mean over settings of a baseline's WIS less the forecast's, and its 95 % interval; NaN for one setting."""

    baseline: str
    gain: float
    low: float
    high: float
    settings: int

    @property
    def beaten(self) -> bool:
        return self.gain > 0


def comparisons(settings: list[pd.DataFrame]) -> list[Comparison]:
    """The forecast against every baseline. Success: all are beaten."""
    means = pd.DataFrame([s.groupby("model").wis.agg(lambda w: w.mean(skipna=False)) for s in settings])
    found = []
    for baseline in [m for m in settings[0].model.unique() if m != FORECAST]:
        gains = (means[baseline] - means[FORECAST]).to_numpy()
        low, high = _interval(gains) if len(gains) > 1 else (np.nan, np.nan)
        found.append(Comparison(baseline, float(gains.mean()), low, high, len(gains)))
    return found


def _interval(gains: np.ndarray) -> tuple[float, float]:
    half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return float(gains.mean() - half), float(gains.mean() + half)
