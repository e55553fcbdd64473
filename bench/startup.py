"""What runs of a sweep spend outside of training and probing: python bench/startup.py LOG OUT, after
`basin sweep STUDY.toml --out OUT 2>&1 | tee LOG` of a study that tunes nothing, from nothing to its end. LOG says how long
each worker took, OUT's files how long its training and probes did.
"""

import pathlib
import re
import statistics
import sys

import h5py

ENDED = re.compile(r"^\[\d+/\d+\] ([0-9a-f]{12}) .* ([0-9.]+) s$", re.MULTILINE)


def recorded_seconds(run):
    with h5py.File(run / "run.h5") as file:
        seconds = float(file["summary"].attrs["seconds"])
    for probe in run.glob("probes/*.h5"):
        with h5py.File(probe) as file:
            seconds += float(file.attrs["seconds"])
    return seconds


def main():
    log, out = map(pathlib.Path, sys.argv[1:])
    took = {run_id: float(seconds) for run_id, seconds in ENDED.findall(log.read_text())}
    rest = {run_id: seconds - recorded_seconds(out / "runs" / run_id) for run_id, seconds in took.items()}
    shares = [rest[run_id] / took[run_id] for run_id in took]
    print(f"{len(took)} runs, {sum(took.values()):.0f} s of workers, {statistics.mean(took.values()):.1f} s per run")
    print(
        f"outside of training and probing: {100 * sum(rest.values()) / sum(took.values()):.1f} % of all; of a run "
        f"{statistics.median(rest.values()):.2f} s, {100 * statistics.median(shares):.1f} % (median), at most {100 * max(shares):.1f} %"
    )


if __name__ == "__main__":
    main()
