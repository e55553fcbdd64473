"""What a sweep of many runs costs besides the runs: planning it, looking at it, collecting it, its files.

    .venv/bin/python bench/many_cells.py build/release/bin/basin OUT [RUNS...]

Makes sweeps of 100, 1,000 and 10,000 runs of one update each (or as many as asked for) in OUT, which goes on where it was stopped, and
counts each command's processor seconds, in a process of its own. 10,000 runs take about half an hour.
"""

import os
import pathlib
import subprocess
import sys

STUDY = """model = "mlp"
protocol = "A-updates"
updates = 1
batch_size = 16
micro_batch = 16
learning_rate = 0.05
[data]
set = "synthetic"
train_examples = 64
test_examples = 64
[mlp]
hidden = [4]
[probes]
run = []
at = ["end"]
[sweep]
optimizer = ["sgd", "lamb"]
seed = {seeds}
"""


def measured(arguments):
    """Seconds of a processor, and the largest memory in MB."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{' '.join(arguments)}: status {status}"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    basin, folder, *counts = sys.argv[1:]
    print("| runs | --dry-run | status | collect | files |\n|---|---|---|---|---|")
    for count in map(int, counts or [100, 1_000, 10_000]):
        study = pathlib.Path(folder) / f"{count}.toml"
        out = study.with_suffix("")
        study.parent.mkdir(parents=True, exist_ok=True)
        study.write_text(STUDY.format(seeds=list(range(1, count // 2 + 1))))
        planned = measured([basin, "sweep", str(study), "--out", str(out), "--dry-run"])
        subprocess.run([basin, "sweep", str(study), "--out", str(out)], stdout=subprocess.DEVNULL, check=True)
        looked, collected = (measured([basin, command, str(out)]) for command in ("status", "collect"))
        files = sum(len(names) for _, _, names in os.walk(out))
        cells = [f"{seconds:.1f} s, {megabytes:.0f} MB" for seconds, megabytes in (planned, looked, collected)]
        print(f"| {count:,} | {' | '.join(cells)} | {files:,} |", flush=True)


if __name__ == "__main__":
    main()
