"""The report's tables of cells: the verdicts, and what they rest on."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..analysis.cell_answers import CellAnswer
from ..analysis.churn import CellChurn, Churn
from ..analysis.matched import Contrast
from ..analysis.names import protocol_name
from ..analysis.number_text import points
from ..analysis.optimizers_compared import Against
from ..reader.names import Names
from .phrases import NOT_RUN, contrast_text, effect_text, losses_text, lost_text, phase_text, share_text, test_loss_text


def verdict_table(found: list[CellAnswer]) -> pd.DataFrame:
    """Differences in points of test accuracy, reference less cell, with 95 % intervals. The last column, which is coloured, has the
    verdicts at matched loss, or on the drops where nothing was run to the same loss; seeds are those of the verdict, of the drop where a
    cell has none at matched loss."""
    matched = any(a.gap for a in found)
    rows = [
        {
            **cell_columns(a, found), "drop at fixed budget": contrast_text(a.drop), **_more_drops(a, found),
            **({"left at matched loss": contrast_text(a.gap), "share left": share_text(a.share, a.ends)} if matched else {}),
            "seeds": str(_seeds(a)),
            **({"at matched loss": verdict_text(a.gap)} if matched else {"at fixed budget": verdict_text(a.drop)}),
        }
        for a in found
    ]  # fmt: skip
    return _that_were_run(pd.DataFrame(rows))


def _seeds(a: CellAnswer) -> int:
    judged = a.gap or a.drop
    return len(judged.seeds) if judged and judged.estimate else 0


def _that_were_run(table: pd.DataFrame) -> pd.DataFrame:
    """Without columns that say "not run" in every row."""
    return table[[column for column in table if not (table[column] == NOT_RUN).all()]]


def cell_columns(a: CellAnswer, found: list[CellAnswer]) -> dict[str, str]:
    """Its names; arms have a column where there are any."""
    arm = {"arm": a.arm or "–"} if any(other.arm for other in found) else {}
    return {"optimiser": a.label, "batch size": f"{a.batch_size:,}", **arm}


def _more_drops(a: CellAnswer, found: list[CellAnswer]) -> dict[str, str]:
    """Further fixed budgets, a column each where any cell has one."""
    protocols = dict.fromkeys(p for other in found for p in other.more_drops)
    return {f"drop at {protocol_name(p)}": contrast_text(a.more_drops.get(p)) for p in protocols}


def verdict_text(c: Contrast | None) -> str:
    """The verdict alone; who is not in it is in `details_table`."""
    if c is None or c.verdict is None:
        return "not compared"
    if c.verdict.word == "gap" and c.verdict.direction < 0:
        return "better than the reference"
    return c.verdict.word if c.verdict.word == "undecided" else c.verdict.text


def verdict_class(verdict: str) -> str:
    """The colour of a verdict's cell."""
    if "better than the reference" in verdict:
        return "better"
    starts = {"a gap": "gap", "no gap": "equal", "better": "better", "undecided": "open"}
    return next((name for start, name in starts.items() if verdict.startswith(start)), "")


def details_table(found: list[CellAnswer]) -> pd.DataFrame:
    """What the verdicts rest on: how well the losses match, what that is worth, and who is not in it."""
    matched = any(a.gap for a in found)
    rows = [
        {
            **cell_columns(a, found), **({"at fixed budget": _in_full(a.drop)} if matched else {}),
            **(_of_the_match(a) if matched else {}), "seeds left out": _left_out(a),
            **({"at matched loss": _in_full(a.gap)} if matched else {"at fixed budget": _in_full(a.drop)}),
        }
        for a in found
    ]  # fmt: skip
    return _that_were_run(pd.DataFrame(rows))


def _of_the_match(a: CellAnswer) -> dict[str, str]:
    return {
        "mean training losses matched": losses_text(a.gap), "their distance is worth": _worth(a.gap),
        "rate at the stop over peak": phase_text(a.gap), "test loss above the reference's (nat)": test_loss_text(a.gap),
    }  # fmt: skip


def _in_full(c: Contrast | None) -> str:
    return c.verdict.text if c and c.verdict else c.reason if c else NOT_RUN


def _worth(c: Contrast | None) -> str:
    return f"{points(c.shift)} points" if c and c.estimate and np.isfinite(c.shift) else "–"


def _left_out(a: CellAnswer) -> str:
    drop, gap = lost_text(a.drop), lost_text(a.gap)
    parts = ([f"fixed budget: {drop}"] if drop else []) + ([f"matched loss: {gap}"] if gap else [])
    return "; ".join(parts) or "–"


def churn_table(rows: list[CellChurn]) -> pd.DataFrame:
    """Percent of the test images, with 95 % intervals."""
    return pd.DataFrame([
        {
            "optimiser": row.label, "batch size": f"{row.contrast.batch_size:,}" + (f", {row.contrast.arm}" if row.contrast.arm else ""),
            "at": protocol_name(row.contrast.protocol), "seeds of the reference": _churn_text(row.reference),
            "seeds of the cell": _churn_text(row.cell), "between them": _churn_text(row.between), "excess": _churn_text(row.excess),
            "seeds": str(row.excess.seeds),
        }
        for row in rows
    ])  # fmt: skip


def _churn_text(c: Churn) -> str:
    known = f" [{100 * c.low:.1f}, {100 * c.high:.1f}]" if np.isfinite(c.low) else ""
    return f"{100 * c.value:.1f}{known}".replace("-", "−") if np.isfinite(c.value) else "–"


def against_table(rows: list[Against], names: Names) -> pd.DataFrame:
    """Points of test accuracy with 95 % intervals; a plus in the first means that the optimiser is better than the first of the sweep."""
    label = {row.optimizer: names.label("optimizers", row.optimizer) for row in rows}
    first = names.label("optimizers", rows[0].first) if rows else ""
    return pd.DataFrame([
        {
            "at": protocol_name(row.protocol), "optimiser": label[row.optimizer], "batch size": f"{row.batch_size:,}",
            f"accuracy less {first}'s": effect_text(row.effect), f"drop less {first}'s": effect_text(row.drop),
            "seeds": str(row.effect.seeds if row.effect else 0), "verdict": row.verdict,
        }
        for row in rows
    ])  # fmt: skip
