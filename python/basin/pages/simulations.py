"""python -m basin.pages.simulations [--repeat N]: what intervals and verdicts do on made-up runs whose truth is known. Prints tables in
Markdown: coverage, power, false verdicts in a family of hypotheses, the recovered fraction, A/A contrasts.

Model. Right-or-wrong tables [seed, image]: an image's own chance, uniform in 0.3 to 0.7; a shift of each image in each arm, uniform in
±0.1; a Gaussian shift of each run with standard deviation `spread`; then coin tosses. Seeds and images are common to all arms, and
arms of a family are all compared with one base. `truth`: the arm's accuracy less the base's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from ..analysis import stats
from ..analysis.contrasts import Found
from ..analysis.effects import between, by_seed, crossed, recovered
from ..analysis.verdicts import judge_part
from ..reader.questions import ContrastPlan
from .command import command

IMAGES = 1000
FAMILY = 12


def draw(random: np.random.Generator, seeds: int, images: int, spread: float, truths: Sequence[float]) -> list[np.ndarray]:
    """One table for each of `truths`, its accuracy less that of a table with truth 0. Chances stay within 0 and 1."""
    chance = random.uniform(0.3, 0.7, images)
    tables = []
    for truth in truths:
        of_arm = chance + truth + random.uniform(-0.1, 0.1, images)
        runs = of_arm + np.clip(random.normal(0, spread, (seeds, 1)), -0.15, 0.15)
        tables.append((random.random((seeds, images)) < runs).astype(float))
    return tables


def coverage(random: np.random.Generator, repeat: int, seeds: int, spread: float, images: int = IMAGES) -> float:
    """How often the 95 % interval of one effect holds the truth."""
    held = 0
    for _ in range(repeat):
        base, arm = draw(random, seeds, images, spread, (0.0, 0.03))
        low, high = crossed(arm - base).interval()
        held += low <= 0.03 <= high
    return held / repeat


def coverage_of_ratio(random: np.random.Generator, repeat: int, seeds: int, spread: float) -> float:
    """How often that of a logarithm's mean does, from numbers by seed."""
    held = 0
    for _ in range(repeat):
        low, high = by_seed(0.5 + spread * random.standard_normal(seeds)).interval()
        held += low <= 0.5 <= high
    return held / repeat


def verdict_shares(
    random: np.random.Generator, repeat: int, seeds: int, spread: float, truth: float, images: int = IMAGES
) -> dict[str, float]:
    """How often a single contrast, expected to be less, is confirmed, refuted or undecided; margin: two points."""
    words = []
    for _ in range(repeat):
        base, arm = draw(random, seeds, images, spread, (0.0, truth))
        words.append(judge_part(_found(arm - base), "less", stats.MARGIN).verdict)
    return {word: words.count(word) / repeat for word in ("confirmed", "refuted", "undecided")}


def false_families(
    random: np.random.Generator,
    repeat: int,
    seeds: int,
    spread: float,
    truth: float,
    corrected: bool = True,
    images: int = IMAGES,
) -> float:
    """How many families of 12 contrasts with one base have a false verdict: a difference where there is none, or equivalence where the
    truth is the margin itself."""
    false, m = 0, FAMILY if corrected else 1
    for _ in range(repeat):
        base, *arms = draw(random, seeds, images, spread, (0.0, *[truth] * FAMILY))
        parts = [judge_part(_found(arm - base), "different", stats.MARGIN, m, m) for arm in arms]
        false += any(part.verdict == ("confirmed" if truth == 0 else "refuted") for part in parts)
    return false / repeat


def recovered_shares(
    random: np.random.Generator, repeat: int, seeds: int, spread: float, gap: float, images: int = IMAGES
) -> dict[str, float]:
    """For a true R of one half: coverage where there is an interval, how often there is one, its median width, how often it is narrow
    enough for a verdict."""
    held, widths = 0, []
    for _ in range(repeat):
        large, arm, small = draw(random, seeds, images, spread, (0.0, gap / 2, gap))
        found = recovered(small, large, arm)
        if np.isfinite(found.low):
            widths.append(found.high - found.low)
            held += found.low <= 0.5 <= found.high
    narrow = sum(w <= 0.5 for w in widths) / repeat
    return {"coverage": held / max(1, len(widths)), "resolved": len(widths) / repeat,
            "width": float(np.median(widths)) if widths else np.nan, "narrow": narrow}  # fmt: skip


def odd_halves(random: np.random.Generator, repeat: int, seeds: int, spread: float, images: int = IMAGES) -> float:
    """How many A/A contrasts come out as something at 5 %."""
    odd = 0
    for _ in range(repeat):
        means = draw(random, seeds, images, spread, (0.0,))[0].mean(1)
        low, high = between(means[::2], means[1::2]).interval()
        odd += not low <= 0 <= high
    return odd / repeat


def _found(d: np.ndarray) -> Found:
    return Found(ContrastPlan("simulated"), effect=crossed(d), seeds=list(range(len(d))))


def tables(repeat: int) -> Iterator[str]:
    """Markdown, section by section."""
    random = np.random.default_rng(20261124)
    known = 100 * np.sqrt(0.0475 / repeat)
    yield f"{repeat} repetitions, {IMAGES:,} test images; a share of 5 % is known to ±{known:.1f} points (standard error).\n"
    yield "| seeds | spread of runs (points) | coverage of 95 % | of a ratio, by seed | A/A: something, % |\n|---|---|---|---|---|"
    for seeds in (3, 5, 10):
        for spread in (0.0, 0.01, 0.03):
            ratio = coverage_of_ratio(random, repeat, seeds, 0.1)
            odd = f"{100 * odd_halves(random, repeat, seeds, spread):.1f}" if seeds > 3 else "–"
            yield f"| {seeds} | {100 * spread:g} | {100 * coverage(random, repeat, seeds, spread):.1f} | {100 * ratio:.1f} | {odd} |"
    yield "\n| seeds | spread | truth (points) | confirmed, % | refuted, % | undecided, % |\n|---|---|---|---|---|---|"
    for seeds in (5, 10):
        for truth in (0.0, -0.01, -0.02, -0.04):
            w = verdict_shares(random, repeat, seeds, 0.01, truth)
            yield f"| {seeds} | 1 | {100 * truth:g} | {' | '.join(f'{100 * w[k]:.0f}' for k in ('confirmed', 'refuted', 'undecided'))} |"
    yield f"\n| families of {FAMILY} with a false verdict, % | seeds | corrected | not corrected |\n|---|---|---|---|"
    for truth, name in ((0.0, "no effect anywhere"), (stats.MARGIN, "the margin everywhere")):
        for seeds, spread, images in ((5, 0.01, IMAGES), (5, 0.03, IMAGES), (10, 0.01, 4 * IMAGES)):
            yes, no = (false_families(random, repeat, seeds, spread, truth, c, images) for c in (True, False))
            yield f"| {name} | {seeds} × {images:,} images, spread {100 * spread:g} | {100 * yes:.1f} | {100 * no:.1f} |"
    yield "\n| gap (points) | seeds | R: coverage where resolved, % | resolved, % | median width | narrow enough, % |"
    yield "|---|---|---|---|---|---|"
    for gap in (0.025, 0.1, 0.24):
        for seeds in (5, 10):
            r = recovered_shares(random, repeat, seeds, 0.01, gap)
            shares = f"{100 * r['coverage']:.1f} | {100 * r['resolved']:.0f} | {r['width']:.2f} | {100 * r['narrow']:.0f}"
            yield f"| {100 * gap:g} | {seeds} | {shares} |"


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.simulations", __doc__)
    parser.add_argument("--repeat", type=int, default=400, help="repetitions of each line (default: 400)")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error(f"--repeat {options.repeat}: at least 1 is needed")
    for line in tables(options.repeat):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
