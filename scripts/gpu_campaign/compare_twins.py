#!/usr/bin/env python3
"""Measurements of one run on two devices (OUT/twin-cpu and OUT/twin-cuda of a campaign), one row per quantity, as CSV on stdout:

    compare_twins.py twin-cpu/probes twin-cuda/probes

difference: the largest |a - b| of its values; relative: that over the largest |a|; of_uncertainty: that over the largest uncertainty.
"""

import csv
import pathlib
import sys

import h5py
import numpy as np


def rows(here, there):
    for file in sorted(here.glob("*.h5")):
        with h5py.File(file) as a, h5py.File(there / file.name) as b:
            for name in a["quantities"]:
                x, y = (f[f"quantities/{name}/value"][()].astype(float).ravel() for f in (a, b))
                uncertainty = a[f"quantities/{name}/uncertainty"][()].astype(float).ravel()
                yield file.name.split(".")[1], name, x, y, uncertainty


def largest(values):
    return np.abs(values[np.isfinite(values)]).max(initial=0.0)


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["probe", "quantity", "values", "difference", "relative", "of_uncertainty"])
    for probe, name, x, y, uncertainty in rows(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])):
        if x.shape != y.shape or (np.isfinite(x) != np.isfinite(y)).any():
            out.writerow([probe, name, x.size, "not the same values are finite", "", ""])
            continue
        if not np.isfinite(x).any():
            out.writerow([probe, name, x.size, "no value", "", ""])
            continue
        apart = largest(x - y)
        parts = [f"{apart / of:.1e}" if of > 0 else "" for of in (largest(x), largest(uncertainty))]
        out.writerow([probe, name, x.size, f"{apart:.1e}", *parts])


if __name__ == "__main__":
    main()
