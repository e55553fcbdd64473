"""A Python process that has a problem of its own measured: the case `measure` of cases.py."""

import sys

import basin
from numpy_problems import Quadratic

CURVATURES = tuple(rank / 300 for rank in range(1, 300))  # as many as make it last for seconds

try:
    basin.measure(Quadratic(CURVATURES), out="out", progress=False)
except basin.MeasureError as error:
    sys.exit(f"basin.measure: {error}")
