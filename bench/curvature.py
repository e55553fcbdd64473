"""`make bench-curvature`: top eigenvalues of one network by Basin and its peers, in one run on the same examples and threads. Each repeat
runs every tool in turn, a process each, seeds 0, 1, 2 in a circle. Products and true residuals first; wall time as median with its
spread, and a ratio to Basin whose spread holds 1 is a tie. Rows go to a JSON file, the table to stdout.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from programs import measure

# What the C library otherwise does with large blocks costs every tool alike, and more than some of them compute.
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}
PEERS = ("eigsh", "pyhessian", "curvlinops", "eigenthings")
NAMES = {
    "eigsh": "eigsh, retained graph",
    "pyhessian": "PyHessian",
    "curvlinops": "curvlinops + eigsh",
    "eigenthings": "eigenthings power",
    "basin": "Basin",
}


def run_all(args, setting):
    here = pathlib.Path(__file__).resolve().parent
    rows, lost = [], set()
    for repeat in range(args.repeats):
        seed = repeat % 3
        for tool in ("basin", *args.tools):
            words = [setting, args.examples, seed, args.threads, args.device]
            command = [args.basin, *words] if tool == "basin" else [args.python, here / "curvature_peers.py", tool, *words]
            same = {
                "tool": tool,
                "seed": seed,
                "repeat": repeat,
                "threads": args.threads,
                "device": args.device,
                "n": args.examples,
            }
            try:
                rows += [{**same, **one} for one in measure(command, **MALLOC)]
            except SystemExit as failed:
                if tool == "basin":
                    raise
                lost.add(tool)  # the other tools' figures stand
                print(failed, file=sys.stderr)
            print(f"repeat {repeat + 1}/{args.repeats}: {NAMES[tool]} done", flush=True)
        summary = summarise(rows)
        args.out.write_text(json.dumps(summary, indent=2) + "\n")  # what is measured is worth having
    return summary, lost


def key_of(row):
    return row["case"], row["tool"], row.get("ncv")


def summarise(rows):
    groups = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    result = []
    for (case, tool, ncv), group in groups.items():
        one = {
            "case": case,
            "tool": tool,
            "version": group[0]["version"],
            **{name: group[0][name] for name in ("threads", "device", "n")},
        }
        if ncv:
            one["ncv"] = ncv
        for field in sorted(
            {name for row in group for name in row} - set(one) - {"seed", "repeat", "eigenvalues", "ncv", "status"}
        ):
            values = [row[field] for row in group]
            one[field] = statistics.median(values)
            one[field + "_all"] = values
        one["residual_worst"] = max(row.get("residual", 0) for row in group)
        one["eigenvalues"] = group[0].get("eigenvalues", [])
        result.append(one)
    return result


def best_ncv(rows, case):
    """eigsh as a user who knows the best basis size would call it: fewest products among those that meet the tolerance, then time."""
    candidates = [r for r in rows if r["case"] == case and r["tool"] == "eigsh" and r["residual_worst"] <= 1.1e-3]
    return min(candidates, key=lambda r: (r["wall_s"], r["hvps"])) if candidates else None


def ratio(basin, peer):
    """Basin's time over the peer's, with the smallest and largest of the pairs that ran side by side."""
    pairs = [b / p for b, p in zip(basin["wall_s_all"], peer["wall_s_all"])]
    return basin["wall_s"] / peer["wall_s"], min(pairs), max(pairs)


def show(rows):
    print("\n| case | tool | products | largest residual | wall, s (spread) | Basin / tool (spread) |\n|---|---|---|---|---|---|")
    for case in dict.fromkeys(r["case"] for r in rows if r["case"] not in ("spectrum", "hvp")):
        basin = next(r for r in rows if r["case"] == case and r["tool"] == "basin")
        shown = [basin]
        best = best_ncv(rows, case)
        shown += [best] if best else []
        shown += [r for r in rows if r["case"] == case and r["tool"] not in ("basin", "eigsh")]
        for r in shown:
            name = NAMES[r["tool"]] + (f", ncv {r['ncv']}" if "ncv" in r else "")
            middle, low, high = ratio(basin, r)
            against = "" if r is basin else f"{middle:.2f} ({low:.2f} to {high:.2f}{', a tie' if low <= 1 <= high else ''})"
            spread = f"{min(r['wall_s_all']):.3g} to {max(r['wall_s_all']):.3g}"
            print(
                f"| {case} | {name} | {'/'.join(map(str, sorted(set(r['hvps_all']))))} | {r['residual_worst']:.1e} | "
                f"{r['wall_s']:.3g} ({spread}) | {against} |"
            )
    for r in rows:
        if r["case"] == "spectrum":
            print(
                f"\nTop-5, lambda_min, density from {r['starts']:.0f} starts and trace together: {max(r['hvps_all'])} products at most; "
                f"trace {r['trace']:.4g} +- {r['trace_error']:.3g}, Hutchinson at as many products +- "
                f"{r['hutchinson_error_at_equal_hvps']:.3g} (ratio {r['trace_error'] / r['hutchinson_error_at_equal_hvps']:.2f})"
            )
        if r["case"] == "hvp":
            print(
                f"A product after the first: {r['retained_gradients']:.2f} gradients with the graph kept "
                f"({r['graph_bytes'] / 2**20:.0f} MiB), {r['rebuilt_gradients']:.2f} rebuilt"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--basin", type=pathlib.Path, required=True, help="the program bench_curvature")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="a Python with torch, scipy and the peers")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--examples", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tools", nargs="*", default=PEERS, choices=PEERS)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    setting = args.out.parent / "curvature_setting.h5"
    if not setting.exists():
        subprocess.run(
            [str(args.python), str(pathlib.Path(__file__).resolve().parent / "curvature_setting.py"), str(setting)], check=True
        )
    rows, lost = run_all(args, setting)
    show(rows)
    if lost:
        sys.exit(f"failed, and not in all repeats of the table: {', '.join(sorted(lost))}")


if __name__ == "__main__":
    main()
