"""What noise_scale_every costs: small_cnn, 60 updates of 512 images in micro-batches of 128.

    python bench/online_noise.py BASIN [ROUNDS]      # needs h5py; BASIN: the program

Runs with the option at 0, 1 and 10 in turn, in another order each round; prints how much longer the updates took than in the run
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
EVERY = (0, 1, 10)


def seconds_in_updates(basin, folder, every):
    out = folder / f"every{every}"
    subprocess.run([basin, "train", folder / "study.toml", "--out", out, "--set", f"noise_scale_every={every}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    (run,) = out.glob("runs/*/run.h5")
    with h5py.File(run) as file:
        return float(file["summary"].attrs["update_seconds"])


def one_round(basin, turn):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY)
        order = EVERY[turn % 3 :] + EVERY[: turn % 3]
        return {every: seconds_in_updates(basin, folder, every) for every in order}


def main():
    basin, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    found = [one_round(basin, turn) for turn in range(rounds)]
    for every in EVERY[1:]:
        longer = [100 * (seconds[every] / seconds[0] - 1) for seconds in found]
        low, middle, high = statistics.quantiles(longer, n=4)
        print(f"noise_scale_every = {every}: {middle:+.1f} % ({low:+.1f} to {high:+.1f}), {rounds} rounds")


if __name__ == "__main__":
    main()
