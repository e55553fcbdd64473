"""python -m basin.pages.board OUT_DIR [--budget EPOCHS] [--picture FILE.png] [--ledger FILE.png] [--into FILE.md]: a board of optimisers
at large batches (docs/board.md): what each takes to the target at each batch size, what limits it on the way, and the study's verdicts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..analysis.board import Board, Mean, geometric
from ..analysis.verdict_tables import verdicts_of
from ..figures.ledger import PROBE, SHOWN
from ..reader.fault import ReadError
from ..reader.selection import read_choices
from ..reader.sweep import Sweep, open_sweep
from .command import command, draw_picture, picture_link, publish, run, takes_page, takes_picture
from .verdict_text import how_decided, hypothesis_rows, table

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

PASSAGE = "board"
BUDGET = 2.0  # epochs


def by_size(board: Board, head: str, cell: Callable[[str, int], str]) -> list[str]:
    """A row per optimiser, a column per batch size."""
    rows = [
        {head: board.sweep.names.label("optimizers", name)} | {f"B = {size:,}": cell(name, size) for size in board.sizes}
        for name in board.optimizers
    ]
    return [*table(pd.DataFrame(rows)), ""]


def mean_text(mean: Mean, unit: float = 1.0) -> str:
    if mean.why:
        return f"– ({mean.why})"
    between = f" [{mean.low / unit:.3g}, {mean.high / unit:.3g}]" if np.isfinite(mean.low) else ""
    return f"{_number(mean.value / unit)}{between}"


def _number(value: float) -> str:
    return (f"{value:,.0f}" if value >= 1000 else f"{value:.3g}").replace("-", "−")


def probed(board: Board, checkpoint: str) -> list[str]:
    """Every measure of tables that was measured there, at the smallest and at the largest batch size; the ledger's follow."""
    rows = [{"optimiser": board.sweep.names.label("optimizers", name)} for name in board.optimizers]
    for measure in board.sweep.names.measures.itertuples():
        column = f"probe.{checkpoint}.{measure.probe}.{measure.column}"
        if measure.probe == PROBE or column not in board.runs:
            continue
        for row, name in zip(rows, board.optimizers):
            ends = (board.sizes[0], board.sizes[-1])
            found = [board.measured(name, size, checkpoint, measure.probe, measure.column, geometric) for size in ends]
            row[measure.label] = " → ".join("–" if m.why else _number(m.value) for m in found)
    return [*table(pd.DataFrame(rows)), ""] if len(rows[0]) > 1 else []


def ledger(board: Board, checkpoint: str) -> list[str]:
    """What limits a run there, at the smallest and at the largest batch size; none where the probe wasn't asked."""
    rows = []
    for name in board.optimizers:
        found = {
            entry: [board.measured(name, size, checkpoint, PROBE, entry) for size in (board.sizes[0], board.sizes[-1])]
            for entry in SHOWN
        }
        numbers = {entry: " → ".join("–" if m.why else _number(m.value) for m in means) for entry, means in found.items()}
        if any(not m.why for means in found.values() for m in means):
            rows.append({"optimiser": board.sweep.names.label("optimizers", name)} | numbers)
    return [*table(pd.DataFrame(rows)), ""] if rows else []


def rates(board: Board) -> list[str]:
    """Each cell's rate, with a mark where the tuning's best is the lowest or the highest that it tried."""
    selection = board.sweep.folder / "selection.toml"
    choices = read_choices(selection) if selection.is_file() else []
    ends = {(c.optimizer, c.batch_size, c.rate) for c in choices if c.rate in _ends([t.rate for t in c.trials])}

    def cell(optimizer: str, size: int) -> str:
        rate = board.rate(optimizer, size)
        return f"{rate:.3g}{'*' if (optimizer, size, rate) in ends else ''}" if np.isfinite(rate) else "–"

    note = ["\\* the lowest or the highest rate tried: the best may lie beyond it, and updates are an upper bound.", ""]
    return [*by_size(board, "rate", cell), *(note if ends else [])]


def _ends(tried: list[float]) -> tuple[float, float]:
    return min(tried), max(tried)


def level_of(sweep: Sweep) -> str:
    """The lowest loss level that was probed, "" where none was."""
    levels = sorted({c for c in sweep.probes.checkpoint if c.startswith("loss-")}, key=lambda c: float(c[5:]))
    return levels[0] if levels else ""


def markdown(sweep: Sweep, budget: float = BUDGET) -> str:
    board = Board(sweep)
    lines = [f"**Updates to a training loss of {board.target:g}**, at each cell's own rate:", ""]
    lines += by_size(board, "updates", lambda o, b: mean_text(board.updates(o, b)))
    lines += [f"**Epochs of the {board.examples:,} training examples to it:**", ""]
    lines += by_size(board, "epochs", lambda o, b: mean_text(board.updates(o, b), board.examples / b))
    lines += [f"**Training loss after {budget:g} epochs:**", ""]
    lines += by_size(board, "loss", lambda o, b: mean_text(board.loss_after(o, b, budget * board.examples)))
    lines += ["**Test loss at the target**, at the first check at or below that training loss:", ""]
    lines += by_size(board, "test loss", lambda o, b: mean_text(board.at_end(o, b, "test_loss")))
    lines += ["**Learning rates**, tuned:", ""]
    lines += rates(board)
    if (level := level_of(board.sweep)) and (found := probed(board, level)):
        sizes = f"B = {board.sizes[0]:,} and {board.sizes[-1]:,}"
        lines += [f"**Probes at a training loss of {level[5:]}**, at {sizes}, geometric means over seeds:", "", *found]
        if found := ledger(board, level):
            lines += [f"**The ledger there** ([definitions](probes.md#ledger)), {sizes}:", "", *found]
    verdicts = verdicts_of(sweep)
    if verdicts.answers:
        reasons = [f"- {a.plan.name}: {a.reason}" for a in verdicts.answers if a.reason]
        lines += [*table(hypothesis_rows(verdicts)), "", *reasons, *([""] if reasons else []), how_decided(verdicts), ""]
    return "\n".join(lines).strip()


def figure(sweep: Sweep) -> Figure:
    from ..figures import board

    return board.figure(sweep)


def ledger_figure(sweep: Sweep) -> Figure:
    from ..figures import ledger

    if found := ledger.ledger_against_loss(sweep):
        return found
    raise ReadError(f"{sweep.path}: no run was probed with {PROBE}, and --ledger draws that")


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.board", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=float, default=BUDGET, help=f"epochs at which losses are compared ({BUDGET:g})")
    takes_picture(parser)
    parser.add_argument(
        "--ledger", type=Path, metavar="FILE.png", help=f"write the figure of {PROBE} against the training loss too"
    )
    takes_page(parser, PASSAGE, by_name=True)

    def work(options: argparse.Namespace) -> None:
        text = markdown(open_sweep(options.folder), options.budget)
        draw_picture(options.picture, figure, options.folder)
        draw_picture(options.ledger, ledger_figure, options.folder)
        text += picture_link(options.into, options.picture, "Updates and epochs to the target")
        publish(options, text + picture_link(options.into, options.ledger, "What limits the runs, against the training loss"))

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
