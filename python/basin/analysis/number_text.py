"""Numbers as figures and pages write them."""

from __future__ import annotations

import numpy as np

from .rank import Estimate


def points(value: float) -> str:
    """0.0213 -> "+2.1"; a minus sign that typesets."""
    return f"{100 * value:+.1f}".replace("-", "−")


def interval(low: float, high: float) -> str:
    return f"[{points(low)}, {points(high)}]"


def number(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def estimate_text(e: Estimate) -> str:
    if not np.isfinite(e.value):
        return e.why or "–"
    return number(e.value) + (f" [{number(e.low)}, {number(e.high)}]" if np.isfinite(e.low) else f" ({e.why})")


def p_text(p: float) -> str:
    if not np.isfinite(p):
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_said(p: float) -> str:
    """ "p = 0.03", "p < 0.0001"."""
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
