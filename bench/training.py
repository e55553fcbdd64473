"""`make bench-training`: training speed, Basin against PyTorch: one run of small_cnn 16-32-64 and of gpt on two threads, and a sweep of
eight runs by two workers against two PyTorch processes; with --device cuda one run of small_cnn and of davidnet. The peers are
PyTorch as it comes (eager), on a CPU as a careful user writes it (channels-last, ReLU in place, fused optimiser, Basin's settings of
the allocator), and that compiled, for the sweep the first two: bench/training_pytorch.py.

All run in turn, several times over, so that what else the machine does falls on all; medians, spreads and Basin's ratio to each peer go
to stdout and to a JSON file, one row per case and tool. Exit code 1 where a ratio is below the wanted one: on a CPU 1.3 times the best of
the peers, the one with the highest median, where the goal for a single run is 1.5; in the sweep 2.5 times eager too.
"""

import argparse
import functools
import json
import pathlib
import sys
import tempfile
import time

from programs import ALLOCATOR, cell, finish, measure, ratio_cell, row, start, with_ratios

HERE = pathlib.Path(__file__).resolve().parent
BEST = "the best peer"
# Times the images per second of a tool.
WANTED = {
    "cpu": {
        "small_cnn B=128": {BEST: 1.3},
        "small_cnn B=1024": {BEST: 1.3},
        "gpt B=12": {},  # reported alone: attention by products, which has second derivatives, against fused attention
        "sweep": {"PyTorch eager": 2.5, BEST: 1.3},
    },
    "cuda": {"small_cnn B=1024": {BEST: 1.3}, "davidnet B=512": {BEST: 1.3}, "davidnet B=2048": {BEST: 1.3}},
}
MANNERS = {"cpu": ("eager", "careful", "compiled"), "cuda": ("eager", "deterministic", "compiled")}
SWEEP = [(batch, 20480 // batch, seed) for batch in (128, 1024) for seed in (1, 2, 3, 4)]  # as in sweep.toml
IMAGES_OF_SWEEP = sum(batch * updates for batch, updates, _ in SWEEP)


def in_turn(args, case, threads, tools):
    """Rows of a case. A tool is a function that runs once and returns what it measured: images_per_second and, where it has them,
    torch (the version) and parameters (how many)."""
    said = {tool: [] for tool in tools}
    for repeat in range(args.repeats):
        for tool, run in tools.items():
            said[tool].append(run())
        speeds = ", ".join(f"{tool} {runs[-1]['images_per_second']:,.0f}" for tool, runs in said.items())
        print(f"{case} repeat {repeat + 1}/{args.repeats}, images/s: {speeds}", flush=True)
    parameters = {tool: runs[0].get("parameters") for tool, runs in said.items()}
    if len(set(parameters.values())) > 1:
        sys.exit(f"not the same network, by its number of parameters: {parameters}")
    rows = [
        row(
            case,
            tool,
            runs[0].get("torch", "here"),
            "images_per_s",
            [run["images_per_second"] for run in runs],
            threads=threads,
            device=args.device,
            **{key: runs[0][key] for key in ("execution",) if key in runs[0]},
        )
        for tool, runs in said.items()
    ]
    return with_ratios(rows, "images_per_s")


def settings(args, manner):
    """The environment of a peer."""
    if manner == "deterministic":
        return {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    return {} if manner == "eager" else {**ALLOCATOR, "TORCHINDUCTOR_CACHE_DIR": args.compiled}


def one_run(args, case):
    """Rows of one training run on args.threads threads."""
    network, batch = case.split(" B=")
    what = [network, batch, args.threads, args.seconds]
    basin = [args.bin / "bench_training", *what, args.micro_batch or batch, args.device]
    tools = {"Basin": functools.partial(measure, basin)}
    for manner in MANNERS[args.device]:
        peer = [args.python, HERE / "training_pytorch.py", *what, args.data, manner, args.device]
        tools[f"PyTorch {manner}"] = functools.partial(measure, peer, **settings(args, manner))
    return in_turn(args, case, args.threads, tools)


def sweep_of_basin(args):
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        finish(start([args.bin / "basin", "sweep", HERE / "sweep.toml", "--jobs", 2, "--out", pathlib.Path(out) / "sweep"]))
        return {"images_per_second": IMAGES_OF_SWEEP / (time.perf_counter() - begin)}


def sweep_of_pytorch(args, manner):
    """Two processes on one thread each, with as much of each batch size."""
    begin = time.perf_counter()
    halves = [
        start(
            [
                args.python,
                HERE / "sweep_pytorch.py",
                args.data / "cifar10-5k",
                manner,
                *(":".join(map(str, run)) for run in SWEEP[first::2]),
            ],
            **settings(args, manner),
        )
        for first in (0, 1)
    ]
    said = [finish(half) for half in halves]
    return {"images_per_second": IMAGES_OF_SWEEP / (time.perf_counter() - begin), "torch": json.loads(said[0])["torch"]}


def sweep(args):
    """Rows of a whole sweep, from the command to its end."""
    tools = {"Basin": functools.partial(sweep_of_basin, args)}
    for manner in ("eager", "careful"):
        tools[f"PyTorch {manner}"] = functools.partial(sweep_of_pytorch, args, manner)
    rows = in_turn(args, "sweep", 2, tools)
    return [{**entry, "runs_per_hour": 3600 * len(SWEEP) * entry["images_per_s"] / IMAGES_OF_SWEEP} for entry in rows]


def report(wanted, rows):
    """Prints the lines of a case; what it missed."""
    ours, *peers = rows
    best = max(peers, key=lambda peer: peer["images_per_s"])
    print(f"| {ours['case']} | Basin | {cell(ours['images_per_s_all'], 4)} | | {ratio_cell(best)} |")
    for peer in peers:
        print(f"| | {peer['tool']} | {cell(peer['images_per_s_all'], 4)} | {ratio_cell(peer)} | |")
    ratios = {BEST: best["ratio"], **{peer["tool"]: peer["ratio"] for peer in peers}}
    return [
        f"{ours['case']}: {ratios[tool]:.2f} x {tool}, below the wanted {least} x"
        for tool, least in wanted.items()
        if ratios[tool] < least
    ]


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
    args.data = args.bin.resolve().parent / "share/basin/data"

    args.out.parent.mkdir(parents=True, exist_ok=True)
    wanted, rows = WANTED[args.device], {}
    # A new folder each time: code compiled for one number of threads would be taken for another.
    with tempfile.TemporaryDirectory() as args.compiled:
        for case in args.cases or wanted:
            rows[case] = sweep(args) if case == "sweep" else one_run(args, case)
            args.out.write_text(json.dumps([entry for of_case in rows.values() for entry in of_case], indent=2) + "\n")

    print(f"\n| case | tool | images/s | Basin / tool (of single repeats) | Basin / {BEST} |\n|---|---|---|---|---|")
    missed = [line for case, of_case in rows.items() for line in report(wanted[case], of_case)]
    print("\n".join(missed), end="\n" if missed else "", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
