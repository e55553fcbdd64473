"""What the oracle scripts share: comparisons that print both numbers, and the exit code.

    from _oracle import compare, finish
    compare("loss of small_cnn", ours, theirs, rtol=1e-6, why="float32 sums in another order")
    finish()
"""
import sys

import numpy as np

_verdicts = []


def compare(what, ours, theirs, *, rtol=0.0, atol=0.0, why):
    """Prints the largest difference and what was allowed: |ours - theirs| <= atol + rtol |theirs|, everywhere, with `why` as
    the reason for that. NaN never agrees, nor do different shapes."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape:
        _record(what, False, f"shapes {ours.shape} and {theirs.shape}")
        return
    difference = np.abs(ours - theirs)
    agrees = bool(np.all(difference <= atol + rtol * np.abs(theirs)))
    numbers = f"{float(ours):.9g} and {float(theirs):.9g}, " if ours.ndim == 0 else f"{ours.size} numbers, "
    largest = float(difference.max()) if difference.size else 0.0
    _record(what, agrees, f"{numbers}largest difference {largest:.3g} (allowed: {atol:g} + {rtol:g} relative; {why})")


def _record(what, agrees, text):
    print(f"{'ok  ' if agrees else 'FAIL'} {what}: {text}", flush=True)
    _verdicts.append(agrees)


def finish():
    print(f"{sum(_verdicts)} of {len(_verdicts)} comparisons agree")
    sys.exit(0 if _verdicts and all(_verdicts) else 1)
