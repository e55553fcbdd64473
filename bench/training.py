"""`make bench-training`: training speed of small_cnn 16-32-64 on two threads, Basin beside PyTorch eager as it comes. Both run in
turn, a process each, several times over, so that what else the machine does falls on both; medians and their ratio go to stdout
and to a JSON file. Exit code 1 where the ratio at B = 1,024 is below the wanted one.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import sys

from programs import measure

WANTED = {1024: 1.8}  # times PyTorch's images per second


def summary(runs):
    speeds = [run["images_per_second"] for run in runs]
    return {"images_per_second": speeds, "median": statistics.median(speeds), "smallest": min(speeds), "largest": max(speeds),
            "parameters": runs[0]["parameters"]}


def compare(args, batch):
    here = pathlib.Path(__file__).resolve().parent
    data = args.basin.resolve().parent.parent / "share/basin/data/cifar10-5k"
    basin, pytorch = [], []
    for repeat in range(args.repeats):
        basin.append(measure([args.basin, batch, args.threads, args.seconds, args.micro_batch or batch]))
        pytorch.append(measure([args.python, here / "training_pytorch.py", batch, args.threads, args.seconds, data]))
        print(f"B={batch} repeat {repeat + 1}/{args.repeats}: Basin {basin[-1]['images_per_second']:.0f} images/s, "
              f"PyTorch {pytorch[-1]['images_per_second']:.0f} images/s", flush=True)
    result = {"batch": batch, "basin": summary(basin), "pytorch": summary(pytorch)}
    if result["basin"]["parameters"] != result["pytorch"]["parameters"]:
        sys.exit(f"not the same network: {result['basin']['parameters']} and {result['pytorch']['parameters']} parameters")
    result["ratio"] = result["basin"]["median"] / result["pytorch"]["median"]
    # The pair of each repeat ran side by side in time: their ratios say how steady the figure is.
    ratios = [b / p for b, p in zip(result["basin"]["images_per_second"], result["pytorch"]["images_per_second"])]
    result["ratio_smallest"], result["ratio_largest"] = min(ratios), max(ratios)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--basin", type=pathlib.Path, required=True, help="the program bench_training")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="a Python that can import torch")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6.0, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--micro-batch", type=int, default=0, help="Basin's; 0: the whole batch at once, as PyTorch takes it")
    args = parser.parse_args()

    results = [compare(args, batch) for batch in args.batches]
    load = os.getloadavg()[0]
    report = {"what": "small_cnn 16-32-64, max-pool, SGD with momentum, float32, cifar10-5k", "threads": args.threads,
              "micro_batch": args.micro_batch or "batch", "seconds": args.seconds, "repeats": args.repeats, "machine": platform.machine(),
              "cores": os.cpu_count(), "load_at_the_end": load, "results": results}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report, indent=2) + "\n")

    print("\n| batch | Basin, images/s | PyTorch eager, images/s | ratio (of single repeats) |\n|---|---|---|---|")
    for r in results:
        cells = [f"{r[who]['median']:.0f} ({r[who]['smallest']:.0f} to {r[who]['largest']:.0f})" for who in ("basin", "pytorch")]
        print(f"| {r['batch']} | {cells[0]} | {cells[1]} | {r['ratio']:.2f} ({r['ratio_smallest']:.2f} to {r['ratio_largest']:.2f}) |")
    missed = [r for r in results if r["ratio"] < WANTED.get(r["batch"], 0)]
    for r in missed:
        print(f"B={r['batch']}: {r['ratio']:.2f} x PyTorch, below the wanted {WANTED[r['batch']]} x", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
