"""The report's table of outcomes in the same phase (analysis/annealed.py)."""

from __future__ import annotations

import pandas as pd

from ..analysis.annealed import SamePhase, kind_text
from ..reader.names import Names
from .verdict_text import effect_text

ABOUT = (
    "Where a run first crosses a loss it still has the noise of its rate, and more of it at small batches. Here branches from several "
    "levels of the runs had their rate fall to zero, or are taken by their averaged weights, and a batch size is compared with the "
    "smallest where the losses *after* that are equal: a run's branches are interpolated linearly, at the ends and the middle of what "
    "the branches of all seeds span. Effects are the batch size less the smallest, paired by seed, and by test image for annealed "
    "branches, with 95 % intervals; more lines than one say how far the answer depends on the share."
)
FIGURE = "Test accuracy and test loss of annealed branches against their training loss, a column per optimiser"


def phase_table(found: list[SamePhase], names: Names) -> pd.DataFrame:
    """A row per batch size, kind of branch and loss."""
    about = {(s.optimizer, s.arm, s.batch_size, s.share): s.reference for s in found}
    rows = []
    for optimizer, arm, batch, share in about:
        mine = [s for s in found if (s.optimizer, s.arm, s.batch_size, s.share) == (optimizer, arm, batch, share)]
        accuracy, loss = ([s for s in mine if s.outcome == outcome] for outcome in ("test_acc", "test_loss"))
        for a, b in zip(accuracy, loss):
            seeds = f"{a.effect.seeds} of {a.asked}" if a.effect else f"0 of {a.asked}"
            rows.append({
                "optimiser": names.label("optimizers", optimizer), "batch size": f"{batch:,} less {about[optimizer, arm, batch, share]:,}",
                "branches": kind_text(arm, share), "at training loss": f"{a.loss:.3f}" if a.effect else a.reason,
                "test accuracy": effect_text(a.effect, "test_acc", "difference"),
                "test loss": effect_text(b.effect, "test_loss", "difference"), "seeds": seeds,
            })  # fmt: skip
    return pd.DataFrame(rows)
