#!/usr/bin/env python3
"""The constants of `basin forecast`, from the quick setting alone (docs/forecast.md#calibration).

forecast_calibration.py           prints what the trials say, and the constants
forecast_calibration.py --write   writes forecast/calibration.h and tests/forecast/golden_quick.h, which hold them

It reads results/2026-11-22-quick-tune/selection.toml (protocol B: the image gradients of every trial) and
results/2026-11-22-quick/sweep.h5 (rates and probes of the runs at batch size 256). The laws and the schedule are written out here a
second time, so that tests/forecast/calibration_test.cpp compares two computations.
"""

import argparse
import math
import statistics
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import basin  # noqa: E402

N, CAP, WARMUP = 4529, 362_320, 0.05  # of the tuning runs: a tenth of the 5,000 images held out, 80 passes, then a cosine
MOMENTUM = 0.9  # of SGD and LARS, and beta_1 of LAMB
SMALL, LARGE = (32, 256), (2048, 16384, 65536)
LIMIT = {"sgd": 2 * (1 + MOMENTUM), "lars": 2 * (1 + MOMENTUM), "lamb": 2 * (1 + MOMENTUM) / (1 - MOMENTUM)}


@dataclass
class Quick:
    """One optimiser: by batch size its trials as (rate, updates; infinite where the target was missed), and F and B_simple at 256."""

    optimizer: str
    trials: dict[int, list[tuple[float, float]]]
    floor: float
    noise_scale: float

    def fastest(self, batch: int) -> tuple[float, int]:
        rate, updates = min(self.trials[batch], key=lambda trial: trial[1])
        return rate, round(updates)

    def effective(self, batch: int) -> float:
        return effective(batch, self.fastest(batch)[1])


def effective(batch: int, updates: int) -> float:
    """Sum of the schedule's factors over the first updates."""
    planned = math.ceil(CAP / min(batch, N))
    warm = math.floor(WARMUP * planned + 0.5)
    factors = [
        (t + 1) / warm if t < warm else (1 + math.cos(math.pi * (t - warm) / (planned - warm))) / 2 for t in range(updates)
    ]
    return math.fsum(factors)


def read() -> list[Quick]:
    choices = tomllib.loads((ROOT / "results/2026-11-22-quick-tune/selection.toml").read_text())["choice"]
    sweep = basin.open_sweep(ROOT / "results/2026-11-22-quick/sweep.h5")
    found = []
    for optimizer in LIMIT:
        mine = [c for c in choices if c["protocol"] == "B" and c["when"]["optimizer"] == optimizer]
        trials = {
            c["when"]["batch_size"]: [(row[0], row[6] / min(c["when"]["batch_size"], N)) for row in c["tried"]] for c in mine
        }
        runs = sweep.runs.query("protocol == 'B' and batch_size == 256 and optimizer == @optimizer")
        (run_id,) = runs.run_id
        probes = sweep.probes.query("run_id == @run_id and checkpoint == 'end' and index == 0 and status == 'ok'")
        number = probes.set_index(["probe", "quantity"]).value
        rates = sweep.curve(run_id).learning_rate.sum()
        found.append(Quick(optimizer, trials, rates * number["preconditioned_curvature", "lambda"] / LIMIT[optimizer],
                           number["noise_scale", "b_simple_finite"]))  # fmt: skip
    return found


def share(batch: int) -> float:
    return max(0.0, 1 / batch - 1 / N)


def laws(quick: Quick, batch: int, median: float) -> dict[str, float]:
    """Updates at the best rate, in effective updates: the laws of forecast/laws.h."""
    b = max(SMALL)
    anchor, other = quick.effective(b), quick.effective(min(SMALL))
    quiet = anchor / (1 + quick.noise_scale * share(b))
    full = min(anchor, math.sqrt(quick.floor * max(quick.floor, quiet)))
    slope = (other - anchor) / (share(min(SMALL)) - share(b))  # two sizes: the line is through both
    toward = share(batch) / share(b)
    return {
        "limits": full + (anchor - full) * toward,
        "inverse": max(anchor * b / min(batch, N), quick.floor),
        "noise_scale": quiet + (anchor - quiet) * toward,
        "fit": max(1.0, anchor + slope * (share(batch) - share(b))),
        "quick_median": median,
    }


def errors(quick: list[Quick]) -> tuple[float, dict[str, tuple[float, float]]]:
    """The median of the large cells, and of each law the mean and the standard deviation of log(measured/predicted) over them."""
    median = statistics.median(q.effective(batch) for q in quick for batch in LARGE)
    by_law: dict[str, list[float]] = {}
    for q in quick:
        for batch in LARGE:
            for law, predicted in laws(q, batch, median).items():
                by_law.setdefault(law, []).append(math.log(q.effective(batch) / predicted))
    return median, {law: (statistics.mean(e), statistics.stdev(e)) for law, e in by_law.items()}


def trial_constants(quick: list[Quick]) -> dict[str, float]:
    """What the trials have in common. Curvature: the median of 2 log(S/S*)/log²(rate/best) over the trials below the best rate. Error of
    the rate: the standard deviation, over the large cells, of log(best rate) against what a constant rate × S predicts from 256. Edge:
    between the last rate that reached the target and the first that missed it, in the large cells, over the best rate; its mean and its
    spread, each bracket counting as uniform."""
    curvatures, rates, middles, widths = [], [], [], []
    for q in quick:
        rate_time = math.log(q.fastest(max(SMALL))[0] * q.effective(max(SMALL)))
        for batch, trials in q.trials.items():
            best, least = q.fastest(batch)
            away = [(math.log(rate / best), math.log(updates / least)) for rate, updates in trials if math.isfinite(updates)]
            curvatures += [2 * slower / d**2 for d, slower in away if d < 0]
            if batch not in LARGE:
                continue
            rates.append(math.log(best * q.effective(batch)) - rate_time)
            last = max(d for d, _ in away)
            first = min(math.log(rate / best) for rate, updates in trials if rate > best and math.isinf(updates))
            middles.append((last + first) / 2)
            widths.append(first - last)
    spread = math.sqrt(statistics.variance(middles) + statistics.mean(w**2 for w in widths) / 12)
    return {
        "kCurvatureInRate": statistics.median(curvatures), "kRateError": statistics.stdev(rates),
        "kEdge": math.exp(statistics.mean(middles)), "kEdgeError": spread,
    }  # fmt: skip


HEAD = "// Made by scripts/forecast_calibration.py --write out of results/2026-11-22-quick and -quick-tune: not to be edited.\n"


def constants_header(quick: list[Quick]) -> str:
    median, of_laws = errors(quick)
    lines = [
        HEAD
        + "// defines: the constants of laws and trials, calibrated on the quick setting (docs/forecast.md#calibration).\n#pragma once\n",
        "namespace basin {\n",
        "/// Mean and standard deviation of log(measured/predicted) over the nine large-batch cells.",
        "struct LawError {\n  double shift, deviation;\n};",
    ]
    for law, (shift, deviation) in of_laws.items():
        name = "".join(part.capitalize() for part in law.split("_"))
        lines.append(f"inline constexpr LawError k{name}Error = {{{shift:.3f}, {deviation:.3f}}};")
    lines.append(f"\ninline constexpr double kQuickMedian = {median:.3g};  // effective updates\n")
    lines.append("/// Each as in forecast/trials.h.")
    lines += [f"inline constexpr double {name} = {value:.2g};" for name, value in trial_constants(quick).items()]
    return "\n".join([*lines, "\n}  // namespace basin\n"])


def golden_header(quick: list[Quick]) -> str:
    lines = [HEAD + "#pragma once\n\n#include <cstdint>\n#include <map>\n#include <string>\n#include <vector>\n"]
    lines.append(
        "namespace basin {\n\nstruct QuickSetting {\n  std::string optimizer;\n  double rate, floor, noise_scale;  // at 256"
    )
    lines.append("  std::map<int64_t, int64_t> updates;  // of the fastest trial, by batch size\n};\n")
    lines.append(
        f"inline constexpr int64_t kQuickExamples = {N};\ninline constexpr double kQuickCap = {CAP};  // image gradients\n"
    )
    lines.append("inline const std::vector<QuickSetting> kQuickSetting = {")
    for q in quick:
        updates = ", ".join(f"{{{batch}, {q.fastest(batch)[1]}}}" for batch in (*SMALL, *LARGE))
        lines.append(f'    {{"{q.optimizer}", {q.fastest(256)[0]!r}, {q.floor:.5g}, {q.noise_scale:.5g}, {{{updates}}}}},')
    return "\n".join([*lines, "};\n\n}  // namespace basin\n"])


def headers() -> dict[str, str]:
    quick = read()
    return {"forecast/calibration.h": constants_header(quick), "tests/forecast/golden_quick.h": golden_header(quick)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the two headers")
    write = parser.parse_args().write
    for path, text in headers().items():
        if write:
            (ROOT / path).write_text(text)
        print(path if write else text)


if __name__ == "__main__":
    main()
