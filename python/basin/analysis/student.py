"""Student's t: functions and numbers of scipy.stats.t. Its import takes a second, and a call of it a hundred times as long as these."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit


def sf(value: float | np.ndarray, freedom: float | np.ndarray) -> Any:
    """The tail above `value`."""
    return stdtr(freedom, -value)


def ppf(share: float | np.ndarray, freedom: float | np.ndarray) -> Any:
    """The value below which `share` lies, above 0."""
    return stdtrit(freedom, share)


def isf(tail: float | np.ndarray, freedom: float | np.ndarray) -> Any:
    """The value above which `tail` lies, above 0."""
    return -stdtrit(freedom, tail)
