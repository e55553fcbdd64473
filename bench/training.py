"""`make bench-training`: training speed, Basin against PyTorch eager: one run of small_cnn 16-32-64 on two threads, and a sweep
of eight runs by two workers against two PyTorch processes; with --device cuda one run of small_cnn and of davidnet. Both sides
run in turn, several times over, so that what else the machine does falls on both; medians, spreads and ratios go to stdout and
to a JSON file, one row per case and tool. Exit code 1 where a ratio is below the wanted one.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

from programs import cell, finish, measure, ratio_cell, row, start, with_ratios

HERE = pathlib.Path(__file__).resolve().parent
# Times PyTorch's images per second.
WANTED = {
    "cpu": {"small_cnn B=128": 1.6, "small_cnn B=1024": 2.2, "sweep": 2.5},
    "cuda": {"small_cnn B=1024": 1.3, "davidnet B=512": 1.3, "davidnet B=2048": 1.3},
}
SWEEP = [(batch, 20480 // batch, seed) for batch in (128, 1024) for seed in (1, 2, 3, 4)]  # as in sweep.toml
IMAGES_OF_SWEEP = sum(batch * updates for batch, updates, _ in SWEEP)


def one_run(args, case):
    """Rows of one training run on args.threads threads."""
    network, batch = case.split(" B=")
    basin, pytorch = [], []
    for repeat in range(args.repeats):
        basin.append(
            measure(
                [args.bin / "bench_training", network, batch, args.threads, args.seconds, args.micro_batch or batch, args.device]
            )
        )
        pytorch.append(
            measure(
                [args.python, HERE / "training_pytorch.py", network, batch, args.threads, args.seconds, args.data, args.device]
            )
        )
        print(
            f"{case} repeat {repeat + 1}/{args.repeats}: Basin {basin[-1]['images_per_second']:.0f} images/s, "
            f"PyTorch {pytorch[-1]['images_per_second']:.0f} images/s",
            flush=True,
        )
    if basin[0]["parameters"] != pytorch[0]["parameters"]:
        sys.exit(f"not the same network: {basin[0]['parameters']} and {pytorch[0]['parameters']} parameters")
    return with_ratios(
        [
            row(
                case,
                tool,
                runs[0].get("torch", "here"),
                "images_per_s",
                [run["images_per_second"] for run in runs],
                threads=args.threads,
                device=args.device,
            )
            for tool, runs in (("Basin", basin), ("PyTorch eager", pytorch))
        ],
        "images_per_s",
    )


def seconds_of_basin(args):
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        finish(start([args.bin / "basin", "sweep", HERE / "sweep.toml", "--jobs", 2, "--out", pathlib.Path(out) / "sweep"]))
        return time.perf_counter() - begin


def seconds_of_pytorch(args):
    """Two processes on one thread each, with as much of each batch size."""
    begin = time.perf_counter()
    halves = [
        start([args.python, HERE / "sweep_pytorch.py", args.data, *(":".join(map(str, run)) for run in SWEEP[first::2])])
        for first in (0, 1)
    ]
    version = next(json.loads(finish(half))["torch"] for half in halves)
    return time.perf_counter() - begin, version


def sweep(args):
    """Rows of a whole sweep, from the command to its end."""
    seconds = {"Basin": [], "PyTorch eager": []}
    for repeat in range(args.repeats):
        seconds["Basin"].append(seconds_of_basin(args))
        took, version = seconds_of_pytorch(args)
        seconds["PyTorch eager"].append(took)
        print(f"sweep repeat {repeat + 1}/{args.repeats}: Basin {seconds['Basin'][-1]:.1f} s, PyTorch {took:.1f} s", flush=True)
    return with_ratios(
        [
            row(
                "sweep",
                tool,
                "here" if tool == "Basin" else version,
                "images_per_s",
                [IMAGES_OF_SWEEP / t for t in times],
                runs_per_hour=3600 * len(SWEEP) / sorted(times)[len(times) // 2],
                threads=2,
                device="cpu",
            )
            for tool, times in seconds.items()
        ],
        "images_per_s",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of basin and bench_training")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="a Python that can import torch")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu", choices=list(WANTED))
    parser.add_argument("--cases", nargs="+", help="some of them alone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6.0, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--micro-batch", type=int, default=0, help="Basin's; 0: the whole batch at once, as PyTorch takes it")
    args = parser.parse_args()
    args.data = args.bin.resolve().parent / "share/basin/data/cifar10-5k"

    rows = []
    for case in args.cases or WANTED[args.device]:
        rows += sweep(args) if case == "sweep" else one_run(args, case)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rows, indent=2) + "\n")

    print("\n| case | Basin, images/s | PyTorch eager, images/s | ratio (of single repeats) |\n|---|---|---|---|")
    missed = []
    for ours, theirs in zip(rows[::2], rows[1::2]):
        print(
            f"| {ours['case']} | {cell(ours['images_per_s_all'], 4)} | {cell(theirs['images_per_s_all'], 4)} | {ratio_cell(theirs)} |"
        )
        wanted = WANTED[args.device][ours["case"]]
        if theirs["ratio"] < wanted:
            missed.append(f"{ours['case']}: {theirs['ratio']:.2f} x PyTorch, below the wanted {wanted} x")
    print("\n".join(missed), end="\n" if missed else "", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
