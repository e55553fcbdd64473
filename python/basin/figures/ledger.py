"""What limits the runs, against the training loss: the numbers of the probe `ledger`, a column per optimiser, coloured by batch size."""

from __future__ import annotations

from matplotlib.figure import Figure

from ..reader.sweep import Sweep
from .sharpness import sharpness_against_loss

PROBE = "ledger"
SHOWN = ("curvature_over_limit", "critical_over_limit", "noise_over_gradient", "first_order_share")


def ledger_against_loss(sweep: Sweep) -> Figure | None:
    """None where no run was probed with it. Compare at equal loss, that is, vertically. At 1 the first two say that the rate is at the
    method's stability limit, the third that a batch's noise is as long as the gradient; the fourth is 1 for a straight line and 1/2 at
    the bottom of a parabola."""
    if not (sweep.probes.probe == PROBE).any():
        return None
    return sharpness_against_loss(sweep, sweep.measures((PROBE, quantity) for quantity in SHOWN))
