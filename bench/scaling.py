"""`make bench-scaling`: one training run on 1, 2, ... ranks of one thread each, Basin's against PyTorch's DistributedDataParallel.

small_cnn on the embedded images under SGD. Strong scaling: batches of 2,048 whatever the ranks; weak scaling: 2,048 / N for each of n
ranks, N the most. Basin's times are those of `basin scaling`; the peer (bench/scaling_pytorch.py) is written as a careful user writes
it: channels-last, ReLU in place, the fused optimiser, Basin's settings of the allocator, Gloo. Both in turn, several times over. One
row per case, number of ranks and tool goes to stdout and to a JSON file: images/s with its spread, times that of one rank, Basin's ratio
to the peer.
"""

import argparse
import json
import pathlib
import socket
import statistics
import tempfile

import h5py
import numpy as np

from programs import ALLOCATOR, cell, finish, ratio_cell, row, start, with_ratios

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 2048
STUDY = f"""model = "small_cnn"
optimizer = "sgd"
protocol = "A-updates"
updates = 10
batch_size = {BATCH}
micro_batch = 256
[data]
set = "cifar10-5k"
[probes]
subset = 256
[runtime]
threads = 1
progress = false
"""


def basin(args, folder):
    """Images per second and batch size, by case and number of ranks."""
    program = [args.bin / "basin", "scaling", folder, "--ranks", args.ranks, "--rounds", 1, "--seconds", args.seconds]
    finish(start(program, OMP_NUM_THREADS="1"))
    with h5py.File(folder / "scaling.h5") as file:
        columns = [file["updates"][name][()] for name in ("scaling", "ranks", "images_per_second", "batch_size")]
    return {(scaling.decode(), int(n)): (float(rate), int(batch)) for scaling, n, rate, batch in zip(*columns, strict=True)
            if scaling != b"small"}  # fmt: skip


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ddp(args, ranks, batch):
    """What each rank measured."""
    data = args.bin.resolve().parent / "share/basin/data"
    command = [args.python, HERE / "scaling_pytorch.py", batch, args.seconds, data]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    running = [start(command, OMP_NUM_THREADS="1", RANK=str(rank), **place, **ALLOCATOR) for rank in range(ranks)]
    return [float(finish(process)) for process in running]


def rows_of(found):
    rows = []
    for scaling, n in sorted(found["Basin"][0]):
        mine = []
        for tool, rounds in found.items():
            values = [one[scaling, n] for one in rounds]
            times = statistics.median(one[scaling, n] / one[scaling, 1] for one in rounds)
            mine.append(row(scaling, tool, "", "images_per_s", values, ranks=n, times_one_rank=times))
        rows += with_ratios(mine, "images_per_s")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of Basin's programs")
    parser.add_argument("--python", required=True, help="the Python of the peer, with torch")
    parser.add_argument("--ranks", type=int, default=2, help="the most (2)")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement (2)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, help="a JSON file")
    args = parser.parse_args()
    found = {"Basin": [], "PyTorch DDP": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "study.toml").write_text(STUDY)
        for repeat in range(args.repeats):
            ours = basin(args, folder)
            found["Basin"].append({case: rate for case, (rate, _) in ours.items()})
            found["PyTorch DDP"].append({case: float(np.mean(ddp(args, case[1], batch))) for case, (_, batch) in ours.items()})
            print(f"repeat {repeat + 1}/{args.repeats}", flush=True)
    rows = rows_of(found)
    print("| scaling | ranks | tool | images/s | times one rank | Basin over it |\n|---|---|---|---|---|---|")
    for entry in rows:
        print(f"| {entry['case']} | {entry['ranks']} | {entry['tool']} | {cell(entry['images_per_s_all'])} | "
              f"{entry['times_one_rank']:.2f} | {ratio_cell(entry)} |")  # fmt: skip
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
