"""What measuring and noise cost while training: small_cnn, 60 updates of 512 images in micro-batches of 128.

    python bench/while_training.py BASIN [ROUNDS [WORD]]   # needs h5py and scipy; BASIN: the program; WORD: only options with it

Runs without and with each option in turn, in another order each round; prints how much longer the updates took than in the run
of the same round without it, in percent: median, its 95 % interval by order statistics, and quartiles.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
from scipy.stats import binom

STUDY = """model = "small_cnn"
protocol = "A-updates"
updates = 60
batch_size = 512
micro_batch = 128
[data]
set = "cifar10-5k"
test_examples = 10
"""
PLAIN = ()
NORMALISED = ("small_cnn.norm=batch", "ghost_batch=32")
# What is set, and what the run is compared with.
OPTIONS = {
    ("noise_scale_every=1",): PLAIN,
    ("noise_scale_every=10",): PLAIN,
    ("noise.batch=32",): PLAIN,
    (*NORMALISED, "noise.batch=32"): NORMALISED,
    ("ledger_every=10",): PLAIN,
}


def seconds_in_updates(basin, folder, number, settings):
    out = folder / str(number)
    sets = [word for setting in settings for word in ("--set", setting)]
    subprocess.run([basin, "train", folder / "study.toml", "--out", out, *sets], check=True, capture_output=True)
    (run,) = out.glob("runs/*/run.h5")
    with h5py.File(run) as file:
        return float(file["summary"].attrs["update_seconds"])


def one_round(basin, options, turn):
    arms = list(dict.fromkeys([*options.values(), *options]))
    turn %= len(arms)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY)
        return {arm: seconds_in_updates(basin, folder, i, arm) for i, arm in enumerate(arms[turn:] + arms[:turn])}


def interval_of_median(values):
    """[x_(k), x_(n+1-k)] with the largest k that leaves at most 2.5 % beyond each end; distribution-free."""
    k = int(binom.ppf(0.025, len(values), 0.5))
    return sorted(values)[max(k, 1) - 1], sorted(values)[len(values) - max(k, 1)]


def main():
    basin, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    options = {option: plain for option, plain in OPTIONS.items() if any(word in setting for setting in option)}
    found = [one_round(basin, options, turn) for turn in range(rounds)]
    for option, plain in options.items():
        longer = [100 * (seconds[option] / seconds[plain] - 1) for seconds in found]
        low, middle, high = statistics.quantiles(longer, n=4)
        least, most = interval_of_median(longer)
        print(
            f"{' '.join(option)}: {middle:+.1f} % [{least:+.1f}, {most:+.1f}] (quartiles {low:+.1f} to {high:+.1f}), {rounds} rounds"
        )


if __name__ == "__main__":
    main()
