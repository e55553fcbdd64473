"""Reads what the program `basin` writes: sweeps, tunings, runs, checkpoints, probes and landscapes, as pandas tables and numpy
arrays; `train` runs the program.

>>> import basin
>>> runs = basin.load_sweep("out/quick")          # one row per run
>>> run = basin.load_run("out/quick/runs/0123456789ab")
>>> run.probe("top_eigenvalues").value("lambda_1")  # as in the column probe.end.top_eigenvalues.lambda_1
"""

from .asked import contrasts
from .exporting import Exported, ExportError, export
from .reader.fault import ReadError, SchemaError
from .reader.landscape import Surface, surface
from .reader.layers import Layers
from .reader.probe import ProbeName, ProbeResult, read_probe
from .reader.run import Outcomes, Run, load_run
from .reader.sweep import Sweep, load_sweep, open_sweep
from .reader.tune import Tuning, load_tuning
from .training import TrainError, train

__all__ = [
    "ExportError", "Exported", "Layers", "Outcomes", "ProbeName", "ProbeResult", "ReadError", "Run", "SchemaError", "Surface", "Sweep",
    "TrainError", "Tuning",
    "contrasts", "export", "load_run", "load_sweep", "load_tuning", "open_sweep", "read_probe", "surface", "train",
]  # fmt: skip
