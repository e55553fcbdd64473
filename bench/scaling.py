"""What more ranks bring and cost on this machine: one run's updates and Hessian products on 1, 2, ... ranks of one thread each.

    python bench/scaling.py BIN [--rounds N] [--ranks N ...] [--out FILE]    # needs h5py and numpy; BIN: the folder of the programs

The network of configs/critical-sizes.toml on the embedded images, in micro-batches of 256. Strong scaling: batches of 2,048 whatever the
ranks; weak scaling: 256 for each rank. One rank has batches of 16 too, for what an update takes however small it is. The
eigenvalue is over all 5,000 examples. Every number of ranks once a round, in another order each round.

- images/s, and the ratio to one rank of the same round: n ranks that lose nothing have n
- the share of updates' time in which rank 0 waited for sums, what was computed meanwhile left out
- bytes per update on the loopback interface, all ranks together, over a ring's 2 (n - 1) times the gradients' bytes. They are what a run of
  120 updates has more than one of 60: packets' headers and acknowledgements with them, anything else that the machine sends too
- seconds of a sum by its bytes, and a + b bytes fitted to them: 2 (n - 1) latencies, and 2 (n - 1)/n bytes over the bandwidth, if it is
  a ring
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy as np

UPDATES = 60
STRONG, WEAK, SMALL = 2048, 256, 16
STUDY = """model = "small_cnn"
protocol = "A-updates"
updates = {updates}
batch_size = {batch}
micro_batch = 256
schedule = "constant"
[small_cnn]
widths = [8, 16, 32]
downsample = "stride"
[data]
set = "cifar10-5k"
test_examples = 10
[runtime]
progress = false
threads = 1
"""
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def loopback_bytes():
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[8])
    raise SystemExit("no loopback interface in /proc/net/dev")


def trained(basin, folder, ranks, batch, updates=UPDATES):
    """The run's folder, its summary, and the bytes that went over the loopback interface meanwhile."""
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY.format(updates=updates, batch=batch))
    before = loopback_bytes()
    train = [basin, "train", folder / "study.toml", "--out", folder, "--ranks", str(ranks)]
    subprocess.run(train, check=True, capture_output=True, env=ENVIRONMENT)
    sent = loopback_bytes() - before
    (run,) = folder.glob("runs/*")
    with h5py.File(run / "run.h5") as file:
        return run, dict(file["summary"].attrs), sent


def measured(basin, ranks):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, strong, sent = trained(basin, folder / "strong", ranks, STRONG)
        _, weak, _ = trained(basin, folder / "weak", ranks, WEAK * ranks, 4 * UPDATES)
        if ranks > 1:
            _, _, sent_in_more = trained(basin, folder / "longer", ranks, STRONG, 2 * UPDATES)
        else:
            _, small, _ = trained(basin, folder / "small", ranks, SMALL, 8 * UPDATES)
        probe = [basin, "probe", run, "--only", "top_eigenvalues", "--subset", "0", "--ranks", str(ranks)]
        subprocess.run(probe, check=True, capture_output=True, env=ENVIRONMENT)
        with h5py.File(run / "probes/end.top_eigenvalues.h5") as file:
            products = float(file.attrs["hvps"]) / float(file.attrs["seconds"])
    found = {
        "strong": float(strong["images_per_second"]),
        "weak": float(weak["images_per_second"]),
        "products": products,
    }
    if ranks == 1:
        found["small"] = float(small["images_per_second"])
    else:
        payload = float(strong["rank_bytes_per_update"])
        found["bytes_per_update"] = payload
        found["strong_wait"], found["weak_wait"] = float(strong["rank_wait_share"]), float(weak["rank_wait_share"])
        found["sent_over_ring"] = (sent_in_more - sent) / UPDATES / (2 * (ranks - 1) * payload)
    return found


def sums_of(program, ranks):
    done = subprocess.run([program, str(ranks), "0.3"], check=True, capture_output=True, text=True, env=ENVIRONMENT)
    sums = json.loads(done.stdout)["sums"]
    size, seconds = (np.array([one[key] for one in sums], float) for key in ("bytes", "seconds"))
    # Relative errors are alike, so each counts by its own size.
    (a, b), *_ = np.linalg.lstsq(np.stack([1 / seconds, size / seconds], 1), np.ones(len(sums)), rcond=None)
    worst = float(np.abs((a + b * size) / seconds - 1).max())
    latency, bandwidth = a / (2 * (ranks - 1)), 2 * (ranks - 1) / ranks / b
    return {"sums": sums, "a": a, "b": b, "latency": latency, "bandwidth": bandwidth, "worst_residual": worst}


def cell(values, form):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"


def show(found, sums):
    print("| ranks | strong, images/s | times one rank | weak, images/s | times one rank | products/s | times one rank |")
    print("|---|---|---|---|---|---|---|")
    for n, of_n in found.items():
        words = [str(n)]
        for what in ("strong", "weak", "products"):
            values = [one[what] for one in of_n]
            ratios = [one[what] / alone[what] for one, alone in zip(of_n, found[1], strict=True)]
            words += [f"{statistics.median(values):,.4g}", cell(ratios, ".2f")]
        print("| " + " | ".join(words) + " |")
    print(
        "\n| ranks | bytes summed | sent over a ring's | waiting, strong | waiting, weak | latency, us | bandwidth, GB/s | worst |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n, fit in sums.items():
        of_n = found[n]
        shares = [cell([one[key] for one in of_n], ".3f") for key in ("sent_over_ring", "strong_wait", "weak_wait")]
        print(
            f"| {n} | {of_n[0]['bytes_per_update']:,.0f} | {' | '.join(shares)} | {fit['latency'] * 1e6:.0f} | "
            f"{fit['bandwidth'] / 1e9:.2f} | {fit['worst_residual']:.0%} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(range(1, (os.cpu_count() or 1) + 1)))
    parser.add_argument("--out", type=Path, help="a JSON file with every round")
    args = parser.parse_args()
    if 1 not in args.ranks:
        parser.error("--ranks: the others are compared with 1")
    found = {n: [] for n in args.ranks}
    for turn in range(args.rounds):
        turn %= len(args.ranks)
        for n in args.ranks[turn:] + args.ranks[:turn]:
            found[n].append(measured(args.bin / "basin", n))
    sums = {n: sums_of(args.bin / "bench_rank_sums", n) for n in args.ranks if n > 1}
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(
            json.dumps({"strong": STRONG, "weak": WEAK, "small": SMALL, "runs": found, "sums": sums}, indent=1) + "\n"
        )
    show(found, sums)


if __name__ == "__main__":
    main()
