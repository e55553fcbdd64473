"""Batches of any structure: arrays or tensors, in lists, tuples and mappings, with the examples along the first dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .problem import MeasureError


def is_array(item: Any) -> bool:
    """A tensor or an array with a first dimension."""
    return hasattr(item, "shape") and len(item.shape) > 0


def mapped(function: Callable[..., Any], *batches: Any) -> Any:
    """The structure of the first with `function` of the arrays at the same place of each; what is no array stays."""
    first = batches[0]
    if is_array(first):
        return function(*batches)
    if isinstance(first, Mapping):
        return {key: mapped(function, *(batch[key] for batch in batches)) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(mapped(function, *items) for items in zip(*batches)))
    if isinstance(first, (list, tuple)):
        return type(first)(mapped(function, *items) for items in zip(*batches))
    return first


def arrays_of(batch: Any) -> Iterator[Any]:
    if is_array(batch):
        yield batch
    elif isinstance(batch, Mapping):
        for item in batch.values():
            yield from arrays_of(item)
    elif isinstance(batch, (list, tuple)):
        for item in batch:
            yield from arrays_of(item)


def count_of(batch: Any) -> int:
    """How many examples there are."""
    counts = {int(array.shape[0]) for array in arrays_of(batch)}
    if len(counts) != 1 or 0 in counts:
        raise MeasureError(f"the arrays of a batch have {sorted(counts) or 'no'} examples; one number is expected")
    return counts.pop()


def equal(first: Any, second: Any) -> bool:
    """The same arrays with the same numbers."""
    ours, theirs = list(arrays_of(first)), list(arrays_of(second))
    return len(ours) == len(theirs) and all(a.shape == b.shape and bool((a == b).all()) for a, b in zip(ours, theirs))


def take(batch: Any, index: Sequence[int] | np.ndarray) -> Any:
    """The examples `index` alone."""
    places = np.asarray(index)
    return mapped(lambda array: array[places], batch)


def as_one(batches: Sequence[Any]) -> Any | None:
    """All batches as one; None where they don't fit, as padded sequences of different lengths."""
    shapes = [[tuple(array.shape[1:]) for array in arrays_of(batch)] for batch in batches]
    if any(other != shapes[0] for other in shapes):
        return None
    return mapped(lambda *arrays: joined(arrays), *batches)


def joined(arrays: Sequence[Any]) -> Any:
    """By the library that they are of."""
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    if hasattr(arrays[0], "devices"):  # JAX
        import jax.numpy

        return jax.numpy.concatenate(arrays)
    import torch

    return torch.cat(list(arrays))
