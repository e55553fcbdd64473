"""`make bench-optimizers`: time of one update, Basin against torch.optim (foreach, fused) and torch_optimizer's LARS and LAMB.
All run in turn, a process for Basin and one for the others, several times over; medians, spreads and ratios go to stdout and to a JSON
file, one row per case and tool.
"""

import argparse
import json
import pathlib

from programs import Answering, cell, ratio_cell, row, with_ratios

PEERS = {
    "sgd": ["torch-foreach", "torch-fused"],
    "adamw": ["torch-foreach", "torch-fused"],
    "lars": ["torch_optimizer"],
    "lamb": ["torch_optimizer"],
}


def measure_case(args, basin, pytorch, method, sizes):
    tools = {"Basin": lambda: basin(method, sizes, args.seconds, 0)}
    if sizes == "large":  # where the trainer takes norms at a cadence
        tools["Basin, norms at every step"] = lambda: basin(method, sizes, args.seconds, 1)
    for tool in PEERS[method]:
        tools[tool] = lambda tool=tool: pytorch(method, tool, sizes, args.seconds)
    runs = {tool: [] for tool in tools}
    for _ in range(args.repeats):
        for tool, run in tools.items():
            runs[tool].append(run())
    counts = {run["parameters"] for of_tool in runs.values() for run in of_tool}
    assert len(counts) == 1, f"not the same parameters: {counts}"
    rows = [
        row(
            f"{method}-{sizes}",
            tool,
            of_tool[0].get("torch", "here"),
            "step_s",
            [run["step_s"] for run in of_tool],
            parameters=of_tool[0]["parameters"],
            threads=args.threads,
            device=args.device,
        )
        for tool, of_tool in runs.items()
    ]
    return with_ratios(rows, "step_s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--basin", type=pathlib.Path, required=True, help="the program bench_optimizers")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="a Python with torch and torch_optimizer")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()

    here = pathlib.Path(__file__).resolve().parent
    basin = Answering([args.basin, args.threads, args.device])
    pytorch = Answering([args.python, here / "optimizers_pytorch.py", args.threads, args.device])
    rows = []
    print("| case | tool | a step, s (spread) | Basin / tool (spread) |\n|---|---|---|---|", flush=True)
    for sizes in ("large", "small"):
        for method in PEERS:
            for entry in measure_case(args, basin, pytorch, method, sizes):
                rows.append(entry)
                print(
                    f"| {entry['case']} | {entry['tool']} | {cell(entry['step_s_all'])} | "
                    f"{'' if entry['tool'] == 'Basin' else ratio_cell(entry)} |",
                    flush=True,
                )
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
