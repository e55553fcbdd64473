#!/usr/bin/env python3
"""Whether a refactoring changed a number: both programs run the same short cases, and all that they wrote is compared to the bit.

    .venv/bin/python scripts/same_numbers.py BEFORE_BINARY AFTER_BINARY [--only CASE,...] [--allow PATTERN]... [--keep DIR]

Each difference is a line `file:dataset[index]: before -> after`; the exit code is 1 where there is one, or nothing was compared.
The cases are in number_cases.py, how results are compared in tree_difference.py. One thread, so that numbers repeat.
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import sys
import tempfile
import time

from number_cases import CASES, Failed, Program
from tree_difference import Tally, compare_trees, matches

# What may differ between two runs of one program. Patterns are of addresses as in tree_difference.py, * stands for anything; only the
# value is left out: file, name, type and shape are compared.
MAY_DIFFER = {
    "*/journal:content": "binary, with times; compared is its snapshot run.h5, and what `basin recover` makes of it (case recovered)",
    "*/run.log:content": "what a worker printed: progress, with times",
    "*/status.json:updated_utc": "time",
    "*/status.json:images_per_second": "rate",
    "*/status.json:pid": "process",
    "*.h5:/@created_utc": "time",
    "*.h5:/@updated_utc": "time",
    "*.h5:/provenance@started_utc": "time",
    "*.h5:/provenance@ended_utc": "time",
    "*.h5:/provenance@pid": "process",
    "*.h5:/provenance@argv": "path of the binary",
    "*.h5:/provenance@cwd": "path of the temporary folder",
    "*.h5:/provenance@git_commit": "the build",
    "*.h5:/provenance@git_dirty": "the build",
    "*.h5:/provenance@compiler": "the build",
    "*.h5:/provenance@flags": "the build",
    "*.h5:/provenance@libraries": "the build",
    "*/seconds": "wall time: a column of /train, /eval, /log, /curves and /runs",
    "*@seconds": "wall time",
    "*/update_seconds": "wall time",
    "*@update_seconds": "wall time",
    "*/images_per_second": "rate",
    "*@images_per_second": "rate",
    "*.h5:/log/time": "time",
    "*/ckpt/*.h5:/progress@branch_sha256": "of the parent's file, with wall times in it",
    "*/run.h5:/provenance@branch_parent_sha256": "the same",
    "*/ckpt/*.h5:/@journal_offset": "the journal has command line and folder as text",
}


def main() -> int:
    arguments = parsed()
    start = time.monotonic()
    with folder_for_results(arguments.keep) as folder:
        failures = run_all(arguments, folder)
        tally = compare_trees(folder / "before", folder / "after", MAY_DIFFER, jobs=os.cpu_count())
    code = report(tally, failures, arguments.allow)
    print(f"{len(arguments.only)} cases in {time.monotonic() - start:.0f} s")
    return code


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=program)
    parser.add_argument("after", type=program)
    parser.add_argument("--only", type=cases, default=list(CASES), metavar="CASE,...", help=f"of {', '.join(CASES)}")
    parser.add_argument("--allow", action="append", default=[], metavar="PATTERN",
                        help="differences that are meant, by address: dropout/*; they are listed and not counted")  # fmt: skip
    parser.add_argument("--keep", type=empty_folder, metavar="DIR", help="leave the results in DIR/before and DIR/after")
    parser.add_argument("--configs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "configs", metavar="DIR",
                        help="where tiny.toml lies")  # fmt: skip
    return parser.parse_args()


def program(text):
    path = pathlib.Path(text).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no program")
    return path


def cases(text):
    names = text.split(",")
    for name in set(names) - set(CASES):
        raise argparse.ArgumentTypeError(f"no case {name}; known: {', '.join(CASES)}")
    return names


def empty_folder(text):
    path = pathlib.Path(text)
    if path.exists() and any(path.iterdir()):
        raise argparse.ArgumentTypeError(f"{text} isn't empty")
    return path


@contextlib.contextmanager
def folder_for_results(keep):
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="same-numbers-") as folder:
            yield pathlib.Path(folder)


def run_all(arguments, folder):
    """Every case with both programs, as many at once as there are cores. What went wrong, a line each."""

    def run(job):
        name, side = job
        try:
            CASES[name](Program(getattr(arguments, side), folder / side / name, arguments.configs))
        except Failed as error:
            return f"{name} ({side}): {error}"

    jobs = [(name, side) for name in arguments.only for side in ("before", "after")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [failure for failure in pool.map(run, jobs) if failure]


def report(tally: Tally, failures, allow) -> int:
    """Prints the differences and the summary; the exit code."""
    for failure in failures:
        print(failure)
    differences, allowed = len(failures), 0
    for change in tally.changes:
        pattern = matches(change.address, allow)
        mark = f"allowed by {pattern}: " if pattern else ""
        for line in change.lines:
            print(mark + line)
        if change.count > len(change.lines):
            print(f"{mark}{change.address}: and {change.count - len(change.lines)} more")
        allowed += change.count if pattern else 0
        differences += 0 if pattern else change.count
    allowed = f" ({allowed} more allowed)" if allow else ""
    print(f"{tally.files} files, {tally.datasets} datasets, {tally.numbers} numbers compared, {differences} differences{allowed}")
    return 1 if differences or tally.numbers == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
