"""python -m basin.pages.keskar OUT_DIR [--picture FILE.png] [--into FILE.md]: a study of Keskar et al.'s protocol (ICLR 2017,
arXiv 1609.04836) next to the numbers that they published for their network C1 (docs/keskar.md).

Only runs that stopped at the target loss count. Means are over seeds, with the standard deviation of one run as in the paper. Ratios are of
the larger batch to the smallest, seed by seed: geometric mean and Student's interval of the mean logarithm.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import t as student

from ..analysis.cell_answers import answers, comparisons
from ..analysis.matched import comparable
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .output import ReportError, nothing_in_home, save_picture
from .paste import PasteError, paste

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure

PASSAGE = "keskar"
END = "probe.end."
PHI, SUBSPACE = END + "sharpness_keskar.phi", "subspace_gaussian_p100"
# The tables' rows, columns of the runs, with what the paper has for C1 at batches of 256 and of 5,000 (its tables 2 to 4).
PUBLISHED = {
    "epochs": None,
    "train_loss": None,
    "train_acc": ("99.89 ± 0.02", "99.66 ± 0.2"),
    "test_acc": ("80.04 ± 0.12", "77.26 ± 0.42"),
    f"{PHI}_full_1e-3": ("28.58 ± 3.13", "707.23 ± 43.04"),
    f"{PHI}_full_5e-4": ("7.08 ± 0.88", "227.31 ± 23.23"),
    f"{PHI}_{SUBSPACE}_1e-3": ("2.18 ± 0.23", "137.25 ± 21.60"),
    f"{PHI}_{SUBSPACE}_5e-4": ("0.71 ± 0.15", "29.50 ± 7.48"),
    f"{PHI}_relative_1e-3": None,
    f"{PHI}_relative_5e-4": None,
    END + "top_eigenvalues.lambda_1": None,
    END + "top_eigenvalues.lambda_1_w2": None,
    END + "weight_norms.weight_norm": None,
    END + "weight_norms.distance_from_start": None,
}
PERCENT = {"train_acc": "training accuracy (%)", "test_acc": "test accuracy (%)"}  # the paper's unit
RESULTS = {"epochs": "epochs to the target", "train_loss": "training loss", **PERCENT}  # what files call otherwise
FIGURE = [("sharpness_keskar", "phi_full_1e-3"), ("sharpness_keskar", "phi_relative_1e-3"), ("top_eigenvalues", "lambda")]


def ended(sweep: Sweep) -> pd.DataFrame:
    """The runs that stopped at the target. ReadError where there are none, or where more than the batch size and the seed differs
    between runs."""
    runs = sweep.runs[(sweep.runs.protocol == "B") & comparable(sweep.runs)]
    if runs.empty:
        raise ReadError(f"{sweep.path}: no run of protocol B that stopped at its target")
    if runs.groupby("batch_size").config_id.nunique().max() > 1:
        raise ReadError(f"{sweep.path}: several settings at one batch size; this page is of one")
    return runs


def table(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per quantity and batch size: mean, standard deviation of one run, and how many runs have a value with status ok."""
    rows = []
    for column in PUBLISHED:
        if column not in runs:
            continue
        for size, group in runs.groupby("batch_size"):
            values = (100 if column in PERCENT else 1) * _values(group, column)
            mean, deviation = values.mean() if len(values) else np.nan, values.std(ddof=1) if len(values) > 1 else np.nan
            about = {"column": column, "batch": int(size), "mean": mean, "deviation": deviation}
            rows.append({**about, "runs": len(values), "of": len(group)})
    return pd.DataFrame(rows)


def _values(runs: pd.DataFrame, column: str) -> pd.Series:
    """By seed; of a probe's number only where it is ok."""
    values = pd.to_numeric(runs.set_index("seed")[column], errors="coerce")
    status = f"{column}.status"
    if status in runs:
        values = values[(runs.set_index("seed")[status] == "ok")]
    return values[np.isfinite(values)]


def ratio(runs: pd.DataFrame, column: str, batch: int, level: float = 0.95) -> tuple[float, float, float, int]:
    """That batch over the smallest, by the seeds that both have: geometric mean, interval, seeds. NaN where a value isn't positive."""
    small, large = (_values(runs[runs.batch_size == b], column) for b in (runs.batch_size.min(), batch))
    seeds = small.index.intersection(large.index)
    if len(seeds) < 2 or (small[seeds] <= 0).any() or (large[seeds] <= 0).any():
        return np.nan, np.nan, np.nan, len(seeds)
    logs = np.log(large[seeds] / small[seeds])
    half = student.ppf(0.5 + level / 2, len(seeds) - 1) * logs.std(ddof=1) / np.sqrt(len(seeds))
    value, low, high = (float(np.exp(v)) for v in (logs.mean(), logs.mean() - half, logs.mean() + half))
    return value, low, high, len(seeds)


def markdown(sweep: Sweep) -> str:
    runs = ended(sweep)
    found = table(runs)
    sizes = sorted(found.batch.unique())
    columns = [f"at training loss {runs.target_loss.iloc[0]:g}", *(f"B = {size:,}" for size in sizes)]
    columns += ["C1 of the paper, B = 256", "B = 5,000"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for column, published in PUBLISHED.items():
        mine = found[found.column == column].set_index("batch")
        if len(mine):
            cells = (*(_cell(mine.loc[size]) for size in sizes), *(published or ("–", "–")))
            lines.append(f"| {_label(sweep, column)} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_ratio_table(sweep, runs, sizes), "", *(f"- {line}" for line in accuracy_in_words(sweep))])


def _label(sweep: Sweep, column: str) -> str:
    return RESULTS.get(column, sweep.label(column)).replace("|", "\\|")


def _cell(row: pd.Series) -> str:
    lost = f" ({row.runs} of {row.of})" if row.runs < row.of else ""
    return f"{row['mean']:.4g} ± {row.deviation:.2g}{lost}"


def _ratio_table(sweep: Sweep, runs: pd.DataFrame, sizes: list[int]) -> list[str]:
    large = sizes[1:]
    lines = [
        f"| ratio to B = {sizes[0]:,} (95 %) | {' | '.join(f'B = {size:,}' for size in large)} |",
        "|---" * (len(large) + 1) + "|",
    ]
    for column in PUBLISHED:
        if column.startswith(END) and column in runs:
            cells = [_ratio_cell(*ratio(runs, column, size), (runs.batch_size == size).sum()) for size in large]
            lines.append(f"| {sweep.about(column).get('long_name', column)} | {' | '.join(cells)} |")
    return lines


def _ratio_cell(value: float, low: float, high: float, seeds: int, of: int) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.3g} ({low:.3g} to {high:.3g}{f'; {seeds} of {of} seeds' if seeds < of else ''})"


def accuracy_in_words(sweep: Sweep) -> list[str]:
    """Test accuracy of the smallest batch less that of each other, over seeds and test images."""
    lines = []
    found = answers(sweep)
    count = comparisons([a.gap for a in found if a.gap and a.gap.estimate], "B")
    corrected = f" (verdicts at 5 %/{count})" if count > 1 else ""
    for answer in found:
        gap = answer.gap
        if gap is None:
            continue
        if gap.estimate is None or gap.verdict is None:
            lines.append(f"Test accuracy at B = {answer.batch_size:,}: {gap.reason}.")
            continue
        value, (low, high) = 100 * gap.estimate.value, (100 * v for v in gap.estimate.interval())
        lines.append(
            f"Test accuracy at B = {gap.reference.batch_size:,} less that at B = {answer.batch_size:,}: {value:.2f} points "
            f"({low:.2f} to {high:.2f}; {gap.estimate.seeds} seeds, {gap.estimate.examples:,} images): {gap.verdict.text}{corrected}."
        )
    return lines


def figure(sweep: Sweep) -> Figure:
    """φ and λ₁ against the training loss on the way down (the paper's figure 6)."""
    from ..figures import sharpness

    return sharpness.sharpness_against_loss(sweep, sweep.measures(FIGURE))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m basin.pages.keskar", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--into", type=Path, help=f"a Markdown file with a place for the tables, <!-- {PASSAGE} -->")
    args = parser.parse_args(arguments)
    try:
        text = markdown(open_sweep(args.folder))
        print(text)
        if args.into:
            paste(args.into, PASSAGE, text)
        if args.picture:
            with nothing_in_home():
                save_picture(figure, args.folder, args.picture)
    except (PasteError, ReadError, ReportError) as error:
        print(f"basin.pages.keskar: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
