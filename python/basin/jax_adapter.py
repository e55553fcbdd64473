"""jax_problem(): a loss written in JAX as a Problem. jax is imported when a problem is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .batches import as_one, count_of, is_array, mapped, parts, read_twice, take
from .problem import MeasureError, Parameter, Problem, chosen_kind, refuse_unused


def jax_problem(
    loss_fn: Callable[[Any, Any], Any], params: Any, batches: Iterable[Any], *, kinds: Mapping[str, str] | None = None
) -> JaxProblem:
    """The mean of `loss_fn(params, batch)` over the examples of `batches`, by the leaves of `params` (any pytree of arrays, all float32
    or all float64).

    >>> problem = basin.jax_problem(lambda params, batch: losses(params, *batch), params, [(x, y)])
    >>> basin.measure(problem, ["top_eigenvalues", "sharpness_keskar", "noise_scale"])

    `loss_fn` is pure, and returns the mean loss of a batch or [n] losses by example; it is compiled once for each shape of a batch.
    Batches have the examples along the first dimension; they are read twice, to see that nothing shuffles or augments, and kept in
    memory. `params` stays as it is. `jax_enable_x64` is switched on: without it JAX would round the examples' weights and sums, and the
    weights of a problem in float64, to float32.

    A parameter's name is its path ("dense.kernel"). One named bias or b is a `bias`, one named scale a `norm_weight`, another vector a
    `norm_weight`, the rest `weight`; `kinds` overrules that by patterns of names ({"*.offset": "norm_bias"}).
    """
    return JaxProblem(loss_fn, params, batches, kinds or {})


class JaxProblem(Problem):
    def __init__(self, loss_fn: Callable, params: Any, batches: Iterable[Any], kinds: Mapping[str, str]) -> None:
        import jax
        from jax.flatten_util import ravel_pytree

        jax.config.update("jax_enable_x64", True)
        leaves, _ = jax.tree_util.tree_flatten_with_path(params)
        types = {str(np.asarray(leaf).dtype) for _, leaf in leaves}
        if len(types) != 1 or not types <= {"float32", "float64"}:
            raise MeasureError(
                f"all leaves of params are to be float32, or all float64: {', '.join(sorted(types)) or 'there are none'}"
            )
        self.dtype = types.pop()
        refuse_unused(kinds, [_name(path) for path, _ in leaves])
        self.parameters = [_parameter(_name(path), np.shape(leaf), kinds) for path, leaf in leaves]
        self.own, self.unravel = ravel_pytree(params)
        self.batches = read_twice(batches)
        self.counts = [count_of(batch) for batch in self.batches]
        self.examples = sum(self.counts)
        self.whole = as_one(self.batches)
        if self.whole is None:
            raise MeasureError("the batches have arrays of different shapes; only their first dimension may differ")
        self.batches = parts(self.whole, self.counts)
        self._compile(loss_fn)

    def _compile(self, loss_fn: Callable) -> None:
        import jax
        import jax.numpy as jnp

        shape = jax.eval_shape(loss_fn, self.unravel(self.own), self.batches[0]).shape
        if shape not in [(), (self.counts[0],)]:
            raise MeasureError(
                f"loss_fn returns {list(shape)}; one mean loss, or [{self.counts[0]}] losses by example, is expected"
            )

        def by_example(flat: Any, batch: Any) -> Any:
            if shape:
                return loss_fn(self.unravel(flat), batch)
            axes = jax.tree_util.tree_map(lambda leaf: 0 if is_array(leaf) else None, batch)
            single = mapped(lambda array: array[:, None], batch)
            return jax.vmap(lambda one: loss_fn(self.unravel(flat), one), in_axes=(axes,))(single)

        def weighted(flat: Any, batch: Any, share: Any) -> Any:
            return jnp.dot(by_example(flat, batch).astype(jnp.float64), share)

        def product(flat: Any, v: Any, batch: Any, share: Any) -> Any:
            return jax.jvp(lambda at: jax.grad(weighted)(at, batch, share), (flat,), (v,))[1]

        self.mean_of = None if shape else jax.jit(lambda flat, batch: loss_fn(self.unravel(flat), batch))
        self.losses_of = jax.jit(by_example)
        self.value_and_gradient = jax.jit(jax.value_and_grad(weighted))
        self.hessian_product = jax.jit(product)

    def weights(self) -> np.ndarray:
        self._check_means()
        return np.asarray(self.own)

    def _check_means(self) -> None:
        """Derivatives are those of single examples. Whether their mean is the loss shows in the loss of whole batches alone."""
        if self.mean_of is None:
            return
        rounding = 1e-6 if self.dtype == "float64" else 1e-4
        for batch, count in zip(self.batches, self.counts):
            whole = float(self.mean_of(self.own, batch))
            single = float(np.asarray(self.losses_of(self.own, batch), np.float64).mean())
            if abs(whole - single) > rounding * max(abs(whole), abs(single)):
                raise MeasureError(
                    f"loss_fn gives {whole:.9g} for a batch of {count} examples, which one by one have a mean loss of {single:.9g}: "
                    "the loss has to be the plain mean over examples"
                )

    def loss(self, w: np.ndarray) -> float:
        return float(self.losses(w, np.arange(self.examples)).mean())

    def gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        return self.batch_gradient(w, *self._all())

    def product(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.batch_product(w, v, *self._all())

    def batch_gradient(self, w: np.ndarray, index: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        loss, total = 0.0, np.zeros(w.size, w.dtype)
        for batch, shares, _ in self._chosen(index, share):
            value, gradient = self.value_and_gradient(_own(w), batch, _own(shares))
            loss += float(value)
            total += np.asarray(gradient)
        return loss, total

    def batch_product(self, w: np.ndarray, v: np.ndarray, index: np.ndarray, share: np.ndarray) -> np.ndarray:
        total = np.zeros(w.size, w.dtype)
        for batch, shares, _ in self._chosen(index, share):
            total += np.asarray(self.hessian_product(_own(w), _own(v), batch, _own(shares)))
        return total

    def losses(self, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        found = [
            np.asarray(self.losses_of(_own(w), batch), np.float64) for batch, _, _ in self._chosen(index, np.ones(index.size))
        ]
        return np.concatenate(found)

    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(self.examples), np.full(self.examples, 1 / self.examples)

    def _chosen(self, index: np.ndarray, share: np.ndarray) -> Any:
        most = max(self.counts)
        for first in range(0, index.size, most):
            places = slice(first, first + most)
            yield take(self.whole, index[places]), share[places], places


def _own(array: np.ndarray) -> Any:
    """A copy: JAX keeps arrays that it is given without one, and shared memory is written to later."""
    import jax.numpy

    return jax.numpy.array(array, copy=True)


def _name(path: Sequence[Any]) -> str:
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts) or "params"


def _parameter(name: str, shape: tuple[int, ...], kinds: Mapping[str, str]) -> Parameter:
    if kind := chosen_kind(name, kinds):
        return Parameter(name, shape, kind)
    last = name.rpartition(".")[2]
    if last in ("bias", "b"):
        return Parameter(name, shape, "bias")
    return Parameter(name, shape, "weight" if len(shape) > 1 and last != "scale" else "norm_weight")
