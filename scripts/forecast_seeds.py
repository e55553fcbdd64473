#!/usr/bin/env python3
"""Whether the runs of a sweep have the seeds that follow from a prediction file of `basin forecast`.

forecast_seeds.py FILE --count N    prints the first N seeds
forecast_seeds.py FILE OUT          compares with OUT/runs/*/config.toml; exits with 1 where a run has another seed

seed i = (first 8 hex digits of SHA-256(hash + ":" + i), as a number, mod 2^31) + 1, i = 1, 2, ..., where hash is the SHA-256 of FILE in 64
lower-case hex digits. It shares no code with Basin: hashlib and tomllib of Python's standard library alone.
"""

import argparse
import hashlib
import pathlib
import sys
import tomllib


def seeds(path: pathlib.Path, count: int) -> list[int]:
    whole = hashlib.sha256(path.read_bytes()).hexdigest()
    return [int(hashlib.sha256(f"{whole}:{i}".encode()).hexdigest()[:8], 16) % 2**31 + 1 for i in range(1, count + 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, nargs="?", help="folder of the sweep with the test runs")
    parser.add_argument("--count", type=int, default=5)
    args = parser.parse_args()
    if args.out is None:
        print("\n".join(map(str, seeds(args.file, args.count))))
        return 0
    configs = sorted(args.out.glob("runs/*/config.toml"))
    if not configs:
        print(f"{args.out}: no runs/*/config.toml", file=sys.stderr)
        return 1
    used = {config.parent.name: tomllib.loads(config.read_text())["seed"] for config in configs}
    allowed = seeds(args.file, len(set(used.values())))
    wrong = {run: seed for run, seed in used.items() if seed not in allowed}
    for run, seed in wrong.items():
        print(f"{run}: seed {seed} doesn't follow from {args.file}")
    print(f"{len(used) - len(wrong)} of {len(used)} runs have one of the first {len(allowed)} seeds of {args.file}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
