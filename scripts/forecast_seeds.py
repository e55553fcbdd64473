#!/usr/bin/env python3
"""Whether the runs of a sweep have the seeds that follow from a prediction file of `basin forecast`.

forecast_seeds.py FILE --count N    prints the first N seeds
forecast_seeds.py FILE OUT          compares with OUT/runs/*/config.toml, or where the runs weren't kept with the seeds that OUT/study.toml
                                    was given; exits with 1 where one is another

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


def used_in(out: pathlib.Path) -> dict[str, int]:
    """The seed of each run, or each of the seeds that replaced the study's own (`--set seed=[...]`)."""
    runs = {path.parent.name: tomllib.loads(path.read_text())["seed"] for path in sorted(out.glob("runs/*/config.toml"))}
    study = out / "study.toml"
    if runs or not study.is_file():
        return runs
    given = [rule["set"].get("seed", []) for rule in tomllib.loads(study.read_text()).get("sweep", {}).get("override", [])]
    return {f"{study}, seed {i}": seed for i, seed in enumerate((seed for seeds in given for seed in seeds), start=1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, nargs="?", help="folder of the sweep with the test runs")
    parser.add_argument("--count", type=int, default=5)
    args = parser.parse_args()
    if args.out is None:
        print("\n".join(map(str, seeds(args.file, args.count))))
        return 0
    used = used_in(args.out)
    if not used:
        print(f"{args.out}: no runs/*/config.toml, and no study.toml that was given seeds", file=sys.stderr)
        return 1
    allowed = seeds(args.file, len(set(used.values())))
    wrong = {run: seed for run, seed in used.items() if seed not in allowed}
    for run, seed in wrong.items():
        print(f"{run}: seed {seed} doesn't follow from {args.file}")
    print(f"{len(used) - len(wrong)} of {len(used)} are among the first {len(allowed)} seeds of {args.file}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
