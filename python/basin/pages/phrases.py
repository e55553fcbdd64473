"""Building blocks for the sentences and tables of pages: a contrast, a share, names of cells."""

from __future__ import annotations

import numpy as np

from ..analysis import stats
from ..analysis.matched import CellAnswer, Contrast, Pooled
from ..analysis.number_text import interval, points


def cell_names(found: list[CellAnswer]) -> str:
    """ "SGD at 256, 2,048; LAMB at 256"."""
    by_optimizer: dict[str, list[str]] = {}
    for a in found:
        by_optimizer.setdefault(a.label, []).append(f"{a.batch_size:,}")
    return "; ".join(f"{name} at {', '.join(sizes)}" for name, sizes in by_optimizer.items())


def left_out_text(p: Pooled) -> str:
    """ "SGD at 256; LARS at 256 (1 seed), SGD at 512 (2 of 5 seeds diverged)"."""
    by_reason: dict[str, list[CellAnswer]] = {}
    for a, why in p.left_out:
        by_reason.setdefault(why, []).append(a)
    return ", ".join(f"{cell_names(cells)} ({why})" for why, cells in by_reason.items())


def contrast_text(c: Contrast | None) -> str:
    if c is None:
        return "not run"
    if c.estimate is None:
        return c.reason
    return f"{points(c.estimate.value)} {interval(*c.estimate.interval())}"


def losses_text(c: Contrast | None) -> str:
    """ "1.462 : 1.485", the reference's first."""
    return f"{c.losses[0]:.3f} : {c.losses[1]:.3f}" if c and c.estimate else "–"


def lost_text(c: Contrast | None) -> str:
    return "; ".join(lost.text for lost in c.lost) if c else ""


def shift_text(losses: tuple[float, float], shift: float) -> str:
    """What an imperfect match of the training losses would make by itself."""
    worth = f"a distance worth {points(shift)} points" if np.isfinite(shift) else "a distance of unknown worth"
    return f"mean training losses {losses[0]:.3f} and {losses[1]:.3f}, {worth}"


def share_text(s: stats.Share | None) -> str:
    if s is None:
        return "–"
    if not s.resolved:
        return "no drop resolved"
    return f"{100 * s.value:.0f} % [{100 * s.low:.0f}, {100 * s.high:.0f}]".replace("-", "−")
