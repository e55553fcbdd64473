"""One run on several processes: time of its updates and of its largest Hessian eigenvalue, on 1, 2, ... ranks of one thread each.

    python bench/ranks.py BASIN [ROUNDS [RANKS]]   # needs h5py; BASIN: the program; RANKS: the most ranks, by default the cores

small_cnn on the embedded images, batches of 2,048 in micro-batches of 256; the eigenvalue over all 5,000 examples. Every number of
ranks once a round, in another order each round. Prints images per second, and the median and the quartiles of the ratio to one process of
the same round: n ranks that lose nothing have n.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

STUDY = """model = "small_cnn"
protocol = "A-updates"
updates = 30
batch_size = 2048
micro_batch = 256
schedule = "constant"
[data]
set = "cifar10-5k"
test_examples = 10
[runtime]
progress = false
threads = 1
"""
IMAGES = 30 * 2048


def measured(basin, folder, ranks):
    """Images per second in updates, products with the Hessian per second."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    share = ["--ranks", str(ranks)]
    train = [basin, "train", folder / "study.toml", "--out", folder, *share]
    subprocess.run(train, check=True, capture_output=True, env=environment)
    (run,) = folder.glob("runs/*")
    with h5py.File(run / "run.h5") as file:
        rate = IMAGES / float(file["summary"].attrs["update_seconds"])
    probe = [basin, "probe", run, "--only", "top_eigenvalues", "--subset", "0", *share]
    subprocess.run(probe, check=True, capture_output=True, env=environment)
    with h5py.File(run / "probes/end.top_eigenvalues.h5") as file:
        products = float(file.attrs["hvps"]) / float(file.attrs["seconds"])
    return rate, products


def main():
    basin = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    most = int(sys.argv[3]) if len(sys.argv) > 3 else os.cpu_count()
    numbers = list(range(1, most + 1))
    found = {n: [] for n in numbers}
    for turn in range(rounds):
        turn %= len(numbers)
        for n in numbers[turn:] + numbers[:turn]:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "study.toml").write_text(STUDY)
                found[n].append(measured(basin, folder, n))
    print(f"{'ranks':>5}  {'images/s':>9}  {'times one process':>24}  {'products/s':>10}  {'times one process':>24}")
    for n in numbers:
        words = f"{n:5}"
        for which in (0, 1):
            rates = [one[which] for one in found[n]]
            ratios = [one[which] / alone[which] for one, alone in zip(found[n], found[1], strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            words += f"  {statistics.median(rates):9.4g}  {middle:10.2f} [{low:.2f}, {high:.2f}]"
        print(words)


main()
