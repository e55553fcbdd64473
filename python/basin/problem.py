"""Problem: a loss that Basin can't compute itself, answered by Python code; the base class of what basin.measure() takes."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


class MeasureError(Exception):
    """Why a problem can't be measured, in one line."""


ANSWERS = ("loss", "gradient", "product", "batch_gradient", "batch_product", "losses")
KINDS = ("weight", "bias", "norm_weight", "norm_bias")


@dataclass(frozen=True)
class Parameter:
    """One array of the weights. `kind` is one of KINDS; `layer`, where it is empty, is the name without what follows its last dot."""

    name: str
    shape: tuple[int, ...]
    kind: str = "weight"
    layer: str = ""


def chosen_kind(name: str, kinds: Mapping[str, str]) -> str | None:
    """By the first pattern that the name matches; None where there is none."""
    for pattern, kind in kinds.items():
        if kind not in KINDS:
            raise MeasureError(f'kinds: no kind "{kind}"; known: {", ".join(KINDS)}')
        if fnmatch.fnmatchcase(name, pattern):
            return kind
    return None


def refuse_unused(kinds: Mapping[str, str], names: Sequence[str]) -> None:
    """MeasureError for a pattern that no name matches: a slip, which would otherwise leave a guess standing."""
    for pattern in kinds:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise MeasureError(f'kinds: "{pattern}" is the name of no parameter')


class Problem:
    """The mean loss L(w) = 1/n sum_i l_i(w) over n fixed examples, at any weights w.

    A subclass sets the attributes, has weights(), and those of the six answers that it knows; what it leaves out makes the probes that
    need it `unavailable` (docs/your-network.md has the table). Weights, gradients and products are flat arrays of `dtype`, each
    parameter row by row, in the order of `parameters`.

    >>> class Bowl(basin.Problem):
    ...     parameters = (basin.Parameter("w", (3,)),)
    ...     examples = 1
    ...     scale = np.array([1.0, 2.0, 5.0])
    ...     def weights(self):
    ...         return np.ones(3)
    ...     def gradient(self, w):
    ...         return 0.5 * (self.scale * w * w).sum(), self.scale * w
    ...     def product(self, w, v):
    ...         return self.scale * v
    >>> basin.measure(Bowl(), ["top_eigenvalues", "sharpness_keskar"])

    The same w has to give the same answers: no shuffling, no augmentation, no dropout. `w` can't be written to, and is the same object
    until Basin moves, so that `w is self.at` tells whether what was made of it still holds. `v`, `index` and `share` are memory that
    is written to between two calls: copy what is kept, and what goes to a library that keeps arrays without a copy (JAX). Away from
    the problem's own weights an answer may be infinite or NaN; there it may not.
    """

    parameters: Sequence[Parameter]
    examples: int
    dtype: str = "float64"
    """Or "float32": of weights, gradients and products. Losses are always float64."""
    loss_units: str = "1"
    """"nat" for cross entropy."""
    by_example: bool = True
    """Whether losses() takes about a pass over its examples. Where it takes a pass for each of them it is asked for no more than is
    needed."""

    place: np.ndarray | None = None
    """While Basin waits for a gradient or a product: the memory that it reads the answer from. One that is made there and returned
    spares a copy."""

    def weights(self) -> np.ndarray:
        """The problem's own weights. Called once, before everything else."""
        raise NotImplementedError

    def restore(self) -> None:
        """Puts back what the answers have changed (a network's weights, its mode). Called at the end whatever happens: after an
        exception and Ctrl-C too."""

    def loss(self, w: np.ndarray) -> float:
        """L(w)."""
        raise NotImplementedError

    def gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """L(w) and dL/dw."""
        raise NotImplementedError

    def product(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        """H v with the Hessian H of L at w."""
        raise NotImplementedError

    def batch_gradient(self, w: np.ndarray, index: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """sum_k share_k l_{index_k}(w) and its gradient. `index` counts from 0 in an order that never changes."""
        raise NotImplementedError

    def batch_product(self, w: np.ndarray, v: np.ndarray, index: np.ndarray, share: np.ndarray) -> np.ndarray:
        """The product of v with the Hessian of that sum."""
        raise NotImplementedError

    def losses(self, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        """l_i(w) of each example of `index`."""
        raise NotImplementedError

    def answers(self) -> list[str]:
        """Those that the class has."""
        return [name for name in ANSWERS if getattr(type(self), name) is not getattr(Problem, name)]
