"""What a study asks: its [[contrast]] and [[hypothesis]] tables (docs/study.md), and what was registered of them before the runs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .fault import ReadError
from .program import known_options

TWIN = "@twin"  # behind the name of a checkpoint: measured at the equal-norm twin
SCALES = ("difference", "ratio")
RULES = ("all", "any")
EXPECTED = ("greater", "less", "different", "equivalent")
BY_DIFFERENCE = ("test_acc", "test_loss")  # outcomes whose scale is a difference where none is given


@dataclass(frozen=True)
class ContrastPlan:
    """One of three kinds: arm less base; `minuend` less `subtrahend`, names of two others; or the part of the contrast `recovers` that
    its arm brings back."""

    name: str
    base: dict[str, Any] = field(default_factory=dict)
    arm: dict[str, Any] = field(default_factory=dict)
    outcome: str = "test_acc"
    at: str = "end"
    scale: str = "difference"
    minuend: str = ""
    subtrahend: str = ""
    recovers: str = ""


@dataclass(frozen=True)
class HypothesisPlan:
    """`expect` and `margins`: one for each contrast; a margin in points of accuracy, as a factor of ratios, as a part of the gap for
    a recovered fraction, else in the outcome's unit; NaN: none is given."""

    name: str
    claim: str
    source: str
    contrasts: tuple[str, ...]
    rule: str
    expect: tuple[str, ...]
    margins: tuple[float, ...]


@dataclass(frozen=True)
class Registered:
    hash: str
    utc: str
    exploratory: bool  # runs existed, or a study marks it so


@dataclass(frozen=True)
class Questions:
    contrasts: dict[str, ContrastPlan] = field(default_factory=dict)
    hypotheses: list[HypothesisPlan] = field(default_factory=list)
    registered: dict[str, Registered] = field(default_factory=dict)  # hypotheses by name
    axes: tuple[str, ...] = ()  # of the sweep, as the study has them
    arms: dict[str, list] = field(default_factory=dict)  # what only [[sweep.arm]] sets, and to which values
    plain: dict[str, list] = field(default_factory=dict)  # of the same, plain_values()
    hash: str = ""

    def status(self, hypothesis: str) -> str:
        """ "registered" before the first run, else "exploratory"."""
        known = self.registered.get(hypothesis)
        return "registered" if known and not known.exploratory else "exploratory"


def read_questions(study: str, folder: Path, where: str | Path) -> Questions:
    """From the text of a study; the registration lies in `folder`. `where` is named in messages."""
    try:
        tree = tomllib.loads(study)
    except tomllib.TOMLDecodeError as error:
        raise ReadError(f"{where}: the study isn't TOML ({error})") from None
    tables = {table["name"]: table for table in _tables(tree, "contrast", where)}
    contrasts = {name: _contrast(tables, name, (), where) for name in tables}
    hypotheses = [_hypothesis(table, contrasts, where) for table in _tables(tree, "hypothesis", where)]
    total, registered = _registration(folder / "registration.toml")
    exploratory = {t["name"] for t in _tables(tree, "hypothesis", where) if t.get("exploratory")}
    registered = {name: known for name, known in registered.items() if name not in exploratory}
    listed, arms = _axes(tree)
    plain = {key: plain_values(study, key) for key in arms}
    return Questions(contrasts, hypotheses, registered, (*listed, *arms), arms, plain, total)


def _tables(tree: dict, key: str, where: str | Path) -> list[dict]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
        raise ReadError(f"{where}: {key} is not a list of tables, [[{key}]]")
    for table in found:
        if not isinstance(table.get("name"), str) or not table["name"]:
            raise ReadError(f"{where}: a [[{key}]] without a name")
    names = [t["name"] for t in found]
    if len(set(names)) < len(names):
        raise ReadError(f'{where}: {key} "{next(n for n in names if names.count(n) > 1)}" twice')
    return found


def _contrast(tables: dict[str, dict], name: str, through: tuple[str, ...], where: str | Path) -> ContrastPlan:
    """`through`: those that it is a part of. A derived contrast has outcome, place and scale of what it is made from."""
    start = f'{where}: contrast "{name}"'
    if name in through:
        raise ReadError(f"{start} is made from itself")
    table = tables[name]
    for key in ("minuend", "subtrahend", "recovers", "outcome", "at", "scale"):
        if not isinstance(table.get(key, ""), str):
            raise ReadError(f"{start}: {key} = {table[key]!r}: a text is needed")
    if ("minuend" in table) != ("subtrahend" in table):
        raise ReadError(f"{start}: minuend and subtrahend come together")
    parts = {key: table[key] for key in ("minuend", "subtrahend", "recovers") if key in table}
    for other in parts.values():
        if other not in tables:
            raise ReadError(f'{start}: no contrast "{other}"')
    made = [_contrast(tables, other, (*through, name), where) for other in parts.values()]
    if len({(part.outcome, part.scale) for part in made}) > 1:
        raise ReadError(f"{start}: {made[0].name} and {made[1].name} have another outcome or scale")
    if any(part.recovers for part in made) or ("recovers" in parts and made[0].minuend):
        raise ReadError(f"{start}: {made[0].name} has no base and arm of its own")
    outcome = made[0].outcome if made else table.get("outcome", "test_acc")
    scale = made[0].scale if made else table.get("scale", "difference" if outcome in BY_DIFFERENCE else "ratio")
    _one_of(scale, SCALES, f"{start}: scale")
    at = made[0].at if made else table.get("at", "end")
    place = at.removesuffix(TWIN)
    known = place in ("end", "budget") or _loss_in(place, "loss-") is not None
    known = known or annealed_loss(place) is not None
    if not known or (place != at and not outcome.startswith("probe.")):
        raise ReadError(
            f"{start}: at = {at!r} is none of end, budget, loss-LEVEL, annealed-LOSS, or for a probe's number one of these with {TWIN}"
        )
    if annealed_loss(place) is not None and outcome in ("updates", "examples"):
        raise ReadError(f"{start}: at = {at!r}: {outcome} of annealed branches say nothing")
    plan = ContrastPlan(name, flat(table.get("base", {})), flat(table.get("arm", {})), outcome, at, scale, **parts)
    if not plan.minuend and not plan.arm:
        raise ReadError(f"{start}: no arm: nothing differs from base")
    if not made and not plan.base:
        raise ReadError(f"{start}: no base")
    return plan


def annealed_loss(at: str) -> float | None:
    """0.15 of "annealed-0.15": outcomes where annealed branches end at that training loss."""
    return _loss_in(at, "annealed-")


def _loss_in(at: str, start: str) -> float | None:
    try:
        loss = float(at.removeprefix(start)) if at.startswith(start) else 0.0
    except ValueError:
        return None
    return loss if loss > 0 else None


def _hypothesis(table: dict, contrasts: dict[str, ContrastPlan], where: str | Path) -> HypothesisPlan:
    start = f'{where}: hypothesis "{table["name"]}"'
    names = table.get("contrasts", [])
    if not isinstance(names, list) or not names:
        raise ReadError(f"{start}: contrasts = {names!r}: a list of names is needed")
    for name in names:
        if name not in contrasts:
            raise ReadError(f'{start}: no contrast "{name}"')
    rule, expect, margin = table.get("rule", "all"), table.get("expect", "different"), table.get("margin", float("nan"))
    _one_of(rule, RULES, f"{start}: rule")
    expected, margins = _spread(expect, len(names)), _spread(margin, len(names))
    for key, values in (("expect", expected), ("margin", margins)):
        if len(values) != len(names):
            raise ReadError(f"{start}: {key} has {len(values)} entries for {len(names)} contrasts")
    for word in expected:
        _one_of(word, EXPECTED, f"{start}: expect")
    if not all(isinstance(m, (int, float)) and not m <= 0 for m in margins):
        raise ReadError(f"{start}: margin = {margin!r}: a positive number is needed")
    return HypothesisPlan(table["name"], str(table.get("claim", "")), str(table.get("source", "")), tuple(names), rule, expected,
                          tuple(float(m) for m in margins))  # fmt: skip


def _spread(value: Any, count: int) -> tuple:
    """One for all, or one each."""
    values = tuple(value) if isinstance(value, list) else (value,)
    return values * count if len(values) == 1 else values


def _one_of(value: Any, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise ReadError(f"{what} = {value!r} is none of {', '.join(known)}")


def flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    found: dict[str, Any] = {}
    for key, value in tree.items() if isinstance(tree, dict) else ():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def axes_of(study: str) -> list[str]:
    """What a study sweeps, in its order; nothing of a text that isn't TOML."""
    listed, arms = _axes(_tree(study))
    return [*listed, *arms]


def plain_values(study: str, option: str) -> list[Any]:
    """What settings have that change nothing, the surest first: the study's own value, the first of its list in [sweep], the default."""
    tree = _tree(study)
    own = {key: value for key, value in flat(tree).items() if not key.startswith("sweep.")}
    first = {key: values[0] for key, values in _lists(tree).items() if values}
    default = {key: about["default"] for key, about in known_options().items() if "default" in about}
    return [where[option] for where in (own, first, default) if option in where]


def set_by_rules(study: str) -> set[str]:
    """Options that rules or arms of a study set."""
    sweep = _tree(study).get("sweep", {})
    return {key for rule in (*sweep.get("set", []), *sweep.get("arm", [])) for key in flat(rule.get("set", {}))}


def rated_conditions(study: str) -> list[tuple[str, Any]]:
    """Options with their values that a rule goes by which gives a learning rate, as the choices of a search do."""
    return [
        (key, value)
        for rule in _tree(study).get("sweep", {}).get("set", [])
        if "learning_rate" in rule.get("set", {})
        for key, values in flat(rule.get("when", {})).items()
        for value in (values if isinstance(values, list) else [values])
    ]


def _tree(study: str) -> dict[str, Any]:
    try:
        return tomllib.loads(study)
    except tomllib.TOMLDecodeError:
        return {}


def _axes(study: dict) -> tuple[list[str], dict[str, list]]:
    """In the order of the study: lists of [sweep], then what only [[sweep.arm]] sets, with its values."""
    listed = [key for key in _lists(study) if key != "seed"]
    arms: dict[str, list] = {}
    for arm in study.get("sweep", {}).get("arm", []):
        for key, values in flat(arm.get("set", {})).items():
            if key not in listed:
                arms.setdefault(key, []).extend(values if isinstance(values, list) else [values])
    return listed, arms


def _lists(study: dict) -> dict[str, list]:
    """The lists of [sweep] by option, in its order; rules and arms are none."""
    rows = {
        key: value
        for key, value in study.get("sweep", {}).items()
        if not (isinstance(value, list) and any(isinstance(v, dict) for v in value))
    }
    return {key: value for key, value in flat(rows).items() if isinstance(value, list)}


def _registration(path: Path) -> tuple[str, dict[str, Registered]]:
    if not path.is_file():
        return "", {}
    try:
        tree = tomllib.loads(path.read_text())
        rows = [row for row in tree.get("registered", []) if row.get("kind") == "hypothesis"]
        return str(tree.get("hash", "")), {
            row["name"]: Registered(str(row.get("hash", "")), str(row.get("utc", "")), _is_exploratory(row)) for row in rows
        }
    except (OSError, KeyError, AttributeError, tomllib.TOMLDecodeError) as error:
        raise ReadError(f"{path}: not a registration of a sweep ({error})") from None


def _is_exploratory(row: dict) -> bool:
    return bool(row.get("exploratory", False)) or bool(row.get("runs_before", True))
