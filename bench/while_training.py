"""What measuring and noise cost while training: small_cnn, 60 updates of 512 images in micro-batches of 128.

    python bench/while_training.py BASIN [ROUNDS]      # needs h5py; BASIN: the program

Runs without and with each option in turn, in another order each round; prints how much longer the updates took than in the run
of the same round without it, in percent: median and quartiles.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

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


def one_round(basin, turn):
    arms = list(dict.fromkeys([*OPTIONS.values(), *OPTIONS]))
    turn %= len(arms)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY)
        return {arm: seconds_in_updates(basin, folder, i, arm) for i, arm in enumerate(arms[turn:] + arms[:turn])}


def main():
    basin, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    found = [one_round(basin, turn) for turn in range(rounds)]
    for option, plain in OPTIONS.items():
        longer = [100 * (seconds[option] / seconds[plain] - 1) for seconds in found]
        low, middle, high = statistics.quantiles(longer, n=4)
        print(f"{' '.join(option)}: {middle:+.1f} % ({low:+.1f} to {high:+.1f}), {rounds} rounds")


if __name__ == "__main__":
    main()
