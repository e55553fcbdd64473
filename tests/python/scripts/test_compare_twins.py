"""scripts/gpu_campaign/compare_twins.py against differences by hand."""

import csv
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/gpu_campaign/compare_twins.py"


def write(folder, **quantities):
    folder.mkdir()
    with h5py.File(folder / "end.thing.h5", "w") as file:
        for name, (value, uncertainty) in quantities.items():
            file[f"quantities/{name}/value"], file[f"quantities/{name}/uncertainty"] = np.array(value), np.array(uncertainty)


def test_differences_by_hand(tmp_path):
    nan = np.nan
    write(tmp_path / "cpu", same=([2.0], [0.1]), two=([1.0, -4.0], [0.01, 0.02]), none=([nan], [nan]), lost=([1.0], [0.1]))
    write(tmp_path / "gpu", same=([2.0], [0.3]), two=([1.0, -4.1], [0.01, 0.02]), none=([nan], [nan]), lost=([nan], [0.1]))
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "cpu", tmp_path / "gpu"], capture_output=True, text=True, check=True
    )
    rows = {row["quantity"]: row for row in csv.DictReader(done.stdout.splitlines())}
    assert [rows["same"][key] for key in ("difference", "relative", "of_uncertainty")] == ["0.0e+00"] * 3
    assert [rows["two"][key] for key in ("values", "difference", "relative", "of_uncertainty")] == [
        "2",
        "1.0e-01",
        "2.5e-02",
        "5.0e+00",
    ]
    assert rows["none"]["difference"] == "no value"
    assert rows["lost"]["difference"] == "not the same values are finite"
