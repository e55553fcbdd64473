"""python -m basin.pages.forecast FILE TEST_OUT [FILE TEST_OUT ...] [--into PAGE.md]: prediction files of `basin forecast` against the
runs that came after them (docs/forecast.md), one pair for each setting; a page gets the short form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from ..analysis.forecast_score import (
    FORECAST,
    Comparison,
    comparisons,
    read_prediction,
    require_study,
    score_setting,
    wrong_seeds,
)
from ..reader.sweep import open_sweep
from .command import command, run, takes_page
from .paste import paste

PASSAGE = "forecast-score"


def score_pair(prediction: Path, out: Path) -> tuple[pd.DataFrame, list[str]]:
    """Scores of a setting, and what has to be said of it first."""
    forecast, sweep = read_prediction(prediction), open_sweep(out)
    require_study(forecast, sweep.study, out)
    runs = sweep.runs
    content = forecast.content
    lines = [f"{prediction}: sha256 {forecast.sha256}, commit {content['git_commit'][:12]}, made {content['created_utc']}"]
    if content["git_dirty"] is not False:
        lines.append("warning: the program was no commit: its code was not frozen")
    if wrong := wrong_seeds(forecast, runs):
        lines.append(f"warning: seeds that don't follow from the file ({len(wrong)}): {', '.join(map(str, wrong[:5]))}")
    lines.append(f"probes: {content['probes']['cost']:.3g} image gradients, "
                 f"{100 * content['probes']['cost'] / float(runs.gradients.sum()):.1f} % of what the test runs cost")  # fmt: skip
    return score_setting(forecast, runs, out), lines


def table(scores: pd.DataFrame) -> str:
    lines = ["| optimiser | batch | model | measured | predicted | WIS | 90 % score | in 90 % | in 50 % | Brier |",
             "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for r in scores.itertuples():
        missed = f" ({r.reached} of {r.seeds} reached it)" if r.reached < r.seeds else ""
        median = "missed" if np.isinf(r.median) else f"{r.median:.0f}"
        lines.append(f"| {r.optimizer} | {r.batch:,} | {r.model} | {r.updates:.0f}{missed} | {median} | {r.wis:.3f} | {r.is90:.3f} "
                     f"| {r.in90:.0%} | {r.in50:.0%} | {r.brier:.3f} |")  # fmt: skip
    return "\n".join(lines)


def short(settings: dict[str, pd.DataFrame], said: list[str]) -> str:
    """A row for each cell with every model's median, a row for each setting with the mean scores, then what is said of them all."""
    models = list(dict.fromkeys(model for scores in settings.values() for model in scores.model))
    lines = [f"| setting | optimiser | batch | measured | {' | '.join(models)} |", f"|{'---|' * (4 + len(models))}"]
    for name, scores in settings.items():
        for (optimizer, batch), cell in scores.groupby(["optimizer", "batch"], sort=False):
            first, medians = cell.iloc[0], dict(zip(cell.model, cell["median"]))
            missed = f" ({first.reached} of {first.seeds} reached it)" if first.reached < first.seeds else ""
            texts = ["missed" if np.isinf(medians[m]) else f"{medians[m]:.0f}" for m in models]
            lines.append(f"| {name} | {optimizer} | {batch:,} | {first.updates:.0f}{missed} | {' | '.join(texts)} |")
        means = scores.groupby("model").wis.mean()
        lines.append(f"| {name} | *mean score* | | | {' | '.join(f'*{means[m]:.3f}*' for m in models)} |")
    return "\n".join([*lines, "", *(f"* {line}" for line in said)])


def in_words(found: list[Comparison]) -> list[str]:
    lines = []
    for c in found:
        interval = f" [{c.low:+.3f}, {c.high:+.3f}]" if c.settings > 1 else " (one setting: no interval)"
        lines.append(f"{c.baseline}: its score is {c.gain:+.3f}{interval} nat above the forecast's: "
                     f"{'beaten' if c.beaten else 'no score' if np.isnan(c.gain) else 'not beaten'}")  # fmt: skip
    beaten = sum(c.beaten for c in found)
    settings = "1 setting" if found[0].settings == 1 else f"{found[0].settings} settings"
    return [*lines, f"{FORECAST} is better than {beaten} of {len(found)} baselines over {settings}"]


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.forecast", __doc__)
    parser.add_argument("pairs", type=Path, nargs="+", metavar="FILE TEST_OUT")
    takes_page(parser, PASSAGE)

    def work(options: argparse.Namespace) -> None:
        if len(options.pairs) % 2:
            parser.error("a prediction file and the folder of its test runs, for each setting")
        settings = {}
        for prediction, out in zip(options.pairs[::2], options.pairs[1::2]):
            scores, lines = score_pair(prediction, out)
            print("\n".join([*lines, "", table(scores), ""]))
            settings[prediction.stem] = scores
        said = in_words(comparisons(list(settings.values())))
        print("\n".join(said))
        if options.into:
            paste(options.into, options.passage, short(settings, said))

    return run(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
