"""Reads what the program `basin` writes: sweeps, tunings, runs, checkpoints, probes and landscapes, as pandas tables and numpy
arrays; `train` runs the program, and `measure` and `landscape` have it measure a network of yours.

>>> import basin
>>> runs = basin.load_sweep("out/quick")          # one row per run
>>> run = basin.load_run("out/quick/runs/0123456789ab")
>>> run.probe("top_eigenvalues").value("lambda_1")  # as in the column probe.end.top_eigenvalues.lambda_1
"""

from .asked import contrasts
from .exporting import Exported, ExportError, export
from .jax_adapter import jax_problem
from .measuring import landscape, measure
from .problem import MeasureError, Parameter, Problem
from .reader.fault import ReadError, SchemaError
from .reader.landscape import Surface, surface
from .reader.layers import Layers
from .reader.probe import ProbeName, ProbeResult, read_probe
from .reader.run import Outcomes, Run, load_run
from .reader.scaling import RankTimes, load_scaling
from .reader.sweep import Sweep, load_sweep, open_sweep
from .reader.tune import Tuning, load_tuning
from .torch_adapter import torch_problem
from .training import TrainError, train
from .transformers_adapter import transformers_problem

__all__ = [
    "ExportError", "Exported", "Layers", "MeasureError", "Outcomes", "Parameter", "ProbeName", "ProbeResult", "Problem", "RankTimes",
    "ReadError", "Run", "SchemaError", "Surface", "Sweep", "TrainError", "Tuning",
    "contrasts", "export", "jax_problem", "landscape", "load_run", "load_scaling", "load_sweep", "load_tuning", "measure", "open_sweep",
    "read_probe", "surface", "torch_problem", "train", "transformers_problem",
]  # fmt: skip
