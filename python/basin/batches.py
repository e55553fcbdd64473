"""Batches of any structure: arrays or tensors, in lists, tuples and mappings, with the examples along the first dimension."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def leaves_of(batch: Any) -> Iterator[Any]:
    if isinstance(batch, Mapping):
        for item in batch.values():
            yield from leaves_of(item)
    elif isinstance(batch, (list, tuple)):
        for item in batch:
            yield from leaves_of(item)
    else:
        yield batch


def arrays_of(batch: Any) -> Iterator[Any]:
    return filter(is_array, leaves_of(batch))


def count_of(batch: Any) -> int:
    """How many examples there are."""
    counts = {int(array.shape[0]) for array in arrays_of(batch)}
    if len(counts) != 1 or 0 in counts:
        raise MeasureError(f"the arrays of a batch have {sorted(counts) or 'no'} examples; one number is expected")
    return counts.pop()


def read_twice(loader: Iterable[Any]) -> list[Any]:
    """Its batches, which have to be the same the second time."""
    if iter(loader) is loader:
        raise MeasureError("the loader can be read once only: pass a list or a DataLoader")
    batches = list(loader)
    if not batches:
        raise MeasureError("the loader has no batches")
    if not all(equal(first, second) for first, second in itertools.zip_longest(batches, loader)):
        raise MeasureError("the loader gives other examples when it is read again: no shuffling, augmentation or other draws")
    return batches


def equal(first: Any, second: Any) -> bool:
    """The same arrays with the same numbers, NaN at the same places, and the same other things."""
    ours, theirs = list(leaves_of(first)), list(leaves_of(second))
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(a: Any, b: Any) -> bool:
    if is_array(a) != is_array(b):
        return False
    if is_array(a):
        return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
    return a is b or bool(a == b)


def take(batch: Any, index: Sequence[int] | np.ndarray) -> Any:
    """The examples `index` alone."""
    places = np.asarray(index)
    return mapped(lambda array: array[places], batch)


def as_one(batches: Sequence[Any]) -> Any | None:
    """All batches as one; None where they don't fit, as padded sequences of different lengths, or have other things than arrays that
    differ."""
    shapes = [[tuple(array.shape[1:]) for array in arrays_of(batch)] for batch in batches]
    others = [[leaf for leaf in leaves_of(batch) if not is_array(leaf)] for batch in batches]
    if any(shape != shapes[0] for shape in shapes) or not all(equal(other, others[0]) for other in others):
        return None
    return mapped(lambda *arrays: joined(arrays), *batches)


def parts(whole: Any, counts: Sequence[int]) -> list[Any]:
    """The batches again, as views."""
    ends = np.cumsum(counts)
    return [mapped(lambda array, a=end - count, b=end: array[a:b], whole) for count, end in zip(counts, ends)]


def joined(arrays: Sequence[Any]) -> Any:
    """By the library that they are of."""
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    if hasattr(arrays[0], "devices"):  # JAX
        import jax.numpy

        return jax.numpy.concatenate(arrays)
    import torch

    return torch.cat(list(arrays))
