"""python -m basin.pages.ledger OUT_DIR [--into FILE.md]: whether twice the batch helps where the probe `ledger` finds more noise
than gradient, by branches of a sweep, checkpoint by checkpoint, and the score (docs/probes.md#ledger-score)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ..analysis.ledger_score import BRANCHES, CHANGED, MARGIN, NOISE, THRESHOLD, Checkpoint, Help, Score, checkpoints_of, score
from ..reader.fault import ReadError
from ..reader.names import Names
from ..reader.sweep import Sweep, open_sweep
from .command import command, publish, run, takes_page

PASSAGE = "ledger"
COLUMNS = ["checkpoint", "optimiser", "B", "rate", "loss", "updates", "seeds", "noise ≥ gradient", "η/2", "2B", "both", "outcome"]
MARKS = {"helps": "**helps**", "doesn't help": "no", "unresolved": "?"}


def markdown(sweep: Sweep) -> str:
    points = checkpoints_of(sweep)
    if not points:
        names = ", ".join(BRANCHES)
        raise ReadError(f"{sweep.path}: no branches of its own runs that are {names} (docs/probes.md#ledger-score)")
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    lines += [f"| {' | '.join(_cells(point, sweep.names))} |" for point in points]
    about = (
        f"Help in nat, half width of the 95 % interval behind it: the loss of the unchanged branch less that of the branch. A branch "
        f"helps if the interval lies above {100 * MARGIN:g} % of the loss, and doesn't (no) if it lies below."
    )
    whole = score(points)
    verdict = f"**{whole.verdict[0].upper()}{whole.verdict[1:]}.**"
    return "\n".join([*lines, "", about, "", _in_words(points, whole), "", verdict])


def _cells(point: Checkpoint, names: Names) -> list[str]:
    helped = [_help(point.helped[branch]) if branch in point.helped else "–" for branch in CHANGED]
    outcome = f"{point.outcome} ({point.reason})" if point.reason else point.outcome
    return [
        point.at, names.label("optimizers", point.optimizer), f"{point.batch_size:,}", f"{point.rate:.3g}", f"{point.loss:.3f}",
        f"{point.updates:g}", str(point.seeds), "yes" if point.above else "–", *helped, outcome,
    ]  # fmt: skip


def _help(help: Help) -> str:
    if not np.isfinite(help.value):
        return MARKS[help.word]
    width = f" ± {(help.high - help.low) / 2:.3f}" if np.isfinite(help.high) else ""
    return f"{MARKS[help.word]} {help.value:+.3f}{width}".replace("-", "−")


def _in_words(points: list[Checkpoint], s: Score) -> str:
    resolved = s.borne_out + s.refuted
    share = f", {100 * s.share:.0f} % [{100 * s.low:.0f}, {100 * s.high:.0f}]" if resolved else ""
    left_out = {o: sum(p.outcome == o for p in points) for o in ("not above", "incomplete")}
    return (
        f"Twice the batch helps where `{NOISE}` is above {THRESHOLD:g}: "
        f"borne out at {s.borne_out} of {resolved} resolved checkpoints{share}; {s.unresolved} unresolved, "
        f"{left_out['not above']} not above, {left_out['incomplete']} incomplete."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.ledger", __doc__)
    parser.add_argument("folder", type=Path)
    takes_page(parser, PASSAGE)
    return run(parser, arguments, lambda options: publish(options, markdown(open_sweep(options.folder))))


if __name__ == "__main__":
    sys.exit(main())
