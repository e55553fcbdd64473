"""What a campaign on a GPU does where things go wrong: scripts/gpu_campaign/run.py with stand-ins for the programs and for torch."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[3] / "scripts/gpu_campaign/run.py"

# A test program of four cases: the second crashes, the third fails with an error that CUDA doesn't recover from, what comes after it
# in the same process would fail too.
CASES = """#!/usr/bin/env python3
import os, signal, sys, time
if "--gtest_list_tests" in sys.argv:
    print("GpuThings.\\n  Adds\\n  Crashes\\n  Loses\\n  Multiplies")
    sys.exit()
poisoned = False
for case in sys.argv[1].removeprefix("--gtest_filter=").split(":"):
    print("[ RUN      ]", case, flush=True)
    if case.endswith("Crashes"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if case.endswith("Loses"):
        poisoned = True
        print("CUDA error: an illegal memory access was encountered")
    print("[  FAILED  ]" if poisoned else "[       OK ]", case, "(1 ms)", flush=True)
    if poisoned:
        time.sleep(1)
"""
# A sweep that writes one run and would go on for ever, and says so when it is asked to stop; collect makes something of it.
BASIN = """#!/usr/bin/env python3
import pathlib, signal, sys, time
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1] if "--out" in sys.argv else sys.argv[2])
if sys.argv[1] == "collect":
    (out / "sweep.h5").write_text("collected")
    sys.exit()
out.mkdir()
(out / "run.h5").write_text("a run")
(out / "weights.h5").write_bytes(bytes(4 << 20))
signal.signal(signal.SIGTERM, lambda *_: (print("state written", flush=True), sys.exit(143)))
while True:
    time.sleep(0.1)
"""
TORCH = """
__version__ = "2.11.0"
class cuda:
    device_count = staticmethod(lambda: 0)
    is_available = staticmethod(lambda: False)
"""


@pytest.fixture
def campaign(tmp_path):
    """A function that runs the steps named and returns the folder of results."""
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    for name, text in (("test_things", CASES), ("basin", BASIN)):
        (work / "bin" / name).write_text(text)
        (work / "bin" / name).chmod(0o755)
    (work / "datasets/cifar10").mkdir(parents=True)
    packages = tmp_path / "packages/torch"
    packages.mkdir(parents=True)
    (packages / "__init__.py").write_text(TORCH)

    def run(seconds, *steps):
        command = [sys.executable, RUN, "--seconds", seconds, "--out", tmp_path / "out", "--work", work, "--only", *steps]
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True, text=True, timeout=120, check=False, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(packages.parent)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return tmp_path / "out"

    return run


def test_a_crash_costs_its_own_case_alone(campaign):
    out = campaign(90, "tests")
    assert json.loads((out / "tests.json").read_text())["test_things"] == {
        "GpuThings.Adds": "OK",
        "GpuThings.Crashes": "ended with -11",
        "GpuThings.Loses": "FAILED",
        "GpuThings.Multiplies": "OK",
    }


def test_a_study_ends_with_the_budget_and_what_it_has_is_kept(campaign):
    out = campaign(57, "airbench", "cifar10")
    rows = {row["step"]: row for row in json.loads((out / "steps.json").read_text())}
    assert rows["airbench"]["code"] == "stopped at its limit"
    assert "state written" in (out / "airbench.log").read_text()
    assert rows["airbench-collect"]["code"] == 0
    assert rows["cifar10"]["skipped"] == "no time"
    assert rows["end"]["seconds"] < 57
    with tarfile.open(out / "campaign.tar.xz") as archive:
        names = archive.getnames()
    assert {"airbench/run.h5", "airbench/sweep.h5", "airbench.log", "steps.json"} <= set(names)
    assert "airbench/weights.h5" not in names
