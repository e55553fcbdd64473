"""python -m basin.pages.tuning SELECTION_TOML [--into FILE]: the tables of docs/tuning.md from what tuning wrote."""

from __future__ import annotations

import math
import sys

from ..reader.names import known_names
from ..reader.selection import Choice, read_choices
from .command import command, publish, run, takes_page

PASSAGE = "tuning"


def tables(choices: list[Choice]) -> str:
    """Both tables in Markdown. Numbers are rounded."""
    parts = []
    for protocol in sorted({c.protocol for c in choices}):
        mine = [c for c in choices if c.protocol == protocol]
        parts.append(_markdown(mine) + "\n\n" + _notes(mine))
    return "\n\n".join(parts)


def _markdown(choices: list[Choice]) -> str:
    sizes, rows = sorted({c.batch_size for c in choices}), list(dict.fromkeys((c.optimizer, c.arm) for c in choices))
    cells = {(c.optimizer, c.arm, c.batch_size): _cell(c) for c in choices}
    matched = choices[0].protocol == "B"
    lines = [
        f"### Protocol {choices[0].protocol}: rate (validation loss{', image gradients to the target' if matched else ''})", "",
        f"| optimiser | {' | '.join(f'B = {size:,}' for size in sizes)} |", "|---" * (len(sizes) + 1) + "|",
    ]  # fmt: skip
    lines += [
        f"| {_label(optimizer, arm)} | {' | '.join(cells.get((optimizer, arm, size), '–') for size in sizes)} |"
        for optimizer, arm in rows
    ]
    return "\n".join(lines)


def _label(optimizer: str, arm: str) -> str:
    return known_names().label("optimizers", optimizer) + (f", {arm}" if arm else "")


def _cell(choice: Choice) -> str:
    t = choice.chosen
    text = f"{t.rate:.3g}{'*' if choice.at_edge else ''} ({t.validation_loss:.2f}"
    if choice.protocol == "B":
        text += f", {math.floor(t.gradients / 1000 + 0.5)}k" if math.isfinite(t.gradients) else ", not reached"
        text += ", overshot" if t.overshot else ""
    return text + ")"


def _notes(choices: list[Choice]) -> str:
    """The edge of a list, and how far any rate gets at the largest batch size."""
    text = ""
    if any(c.at_edge for c in choices):
        text = "\\* within a tenth of an end of its range. " if choices[0].searched else "\\* the first or last rate tried. "
    largest = max(c.batch_size for c in choices)
    losses = [t.validation_loss for c in choices if c.batch_size == largest for t in c.trials if math.isfinite(t.validation_loss)]
    if losses:
        text += (
            f"At B = {largest:,} the validation losses of all {len(losses)} rates that came to an end lie between "
            f"{min(losses):.2f} and {max(losses):.2f}."
        )
    missed = [c for c in choices if c.protocol == "B" and not any(t.reached for t in c.trials)]
    if missed:
        names = ", ".join(f"{_label(c.optimizer, c.arm)} at {c.batch_size:,}" for c in missed)
        text += f" No rate reached the target: {names}."
    return text.strip()


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.tuning", __doc__)
    parser.add_argument("selection", help="selection.toml of a tuning sweep")
    takes_page(parser, PASSAGE)
    return run(parser, arguments, lambda options: publish(options, tables(read_choices(options.selection))))


if __name__ == "__main__":
    sys.exit(main())
