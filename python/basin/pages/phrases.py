"""Building blocks for the sentences and tables of pages: a contrast, a share, names of cells."""

from __future__ import annotations

import numpy as np

from ..analysis import stats
from ..analysis.cell_answers import CellAnswer, ends_apart
from ..analysis.effects import Effect
from ..analysis.matched import Contrast
from ..analysis.number_text import interval, points
from ..analysis.pooled import Pooled

NOT_RUN = "not run"


def cell_names(found: list[CellAnswer]) -> str:
    """ "SGD at 256, 2,048; LARS and LAMB at 256": optimisers that have the same cells are named together."""
    by_optimizer: dict[str, list[str]] = {}
    for a in found:
        by_optimizer.setdefault(a.label, []).append(f"{a.batch_size:,}" + (f" ({a.arm})" if a.arm else ""))
    by_sizes: dict[str, list[str]] = {}
    for name, sizes in by_optimizer.items():
        by_sizes.setdefault(", ".join(sizes), []).append(name)
    return "; ".join(f"{_all_of(names)} at {sizes}" for sizes, names in by_sizes.items())


def _all_of(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def left_out_text(p: Pooled) -> str:
    """ "SGD and LARS at 256 (1 seed); SGD at 512 (2 of 5 seeds diverged)"."""
    by_reason: dict[str, list[CellAnswer]] = {}
    for a, why in p.left_out:
        by_reason.setdefault(why, []).append(a)
    return "; ".join(f"{cell_names(cells)} ({why})" for why, cells in by_reason.items())


def contrast_text(c: Contrast | None) -> str:
    if c is None:
        return NOT_RUN
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


def effect_text(e: Effect | None) -> str:
    """Points of accuracy."""
    return "–" if e is None else f"{points(e.value)} {interval(*e.interval())}"


def phase_text(c: Contrast | None) -> str:
    """ "0.99 : 0.80", learning rate at the stop over its peak, the reference's first."""
    known = c is not None and c.estimate is not None and np.isfinite(c.phases).all()
    return f"{c.phases[0]:.2f} : {c.phases[1]:.2f}" if c and known else "–"


def test_loss_text(c: Contrast | None) -> str:
    """Cell less reference, in nats."""
    e = c.test_loss if c else None
    if e is None:
        return "–"
    low, high = e.interval()
    known = f" [{low:+.3f}, {high:+.3f}]" if np.isfinite(low) else ""
    return f"{e.value:+.3f}{known}".replace("-", "−")


def share_text(s: stats.Share | None, ends: tuple[float, float] = (np.nan, np.nan)) -> str:
    """`ends`: where the reference's training loss is at the fixed budget and at matched loss; where these are apart there is no share."""
    if ends_apart(ends):
        return f"no share: losses {ends[0]:.2f} and {ends[1]:.2f}"
    if s is None:
        return "–"
    if not s.resolved:
        return "no drop resolved"
    return f"{100 * s.value:.0f} % [{100 * s.low:.0f}, {100 * s.high:.0f}]".replace("-", "−")


def distance_text(ends: tuple[float, float]) -> str:
    """Why there is no share: a clause."""
    return (
        f"the references end at a training loss of {ends[0]:.2f} at the fixed budget and of {ends[1]:.2f} at matched loss, "
        f"{abs(ends[1] - ends[0]):.2f} nat apart, so no share of the drop is given"
    )
