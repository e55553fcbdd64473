"""torch_problem(): a PyTorch module with its loss and its examples as a Problem.

torch is imported when a problem is made, from the environment that the module comes from, whatever the engine is linked with: 2.6 and
2.11 are tested.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .batches import as_one, count_of, mapped, parts, read_twice, take
from .exporting import attention_with_second_derivatives
from .problem import MeasureError, Parameter, Problem, chosen_kind, refuse_unused

if TYPE_CHECKING:
    import torch

GRAPH_BYTES = 1 << 30


def torch_problem(
    module: torch.nn.Module,
    loss_fn: Callable[[Any, Any], Any],
    loader: Iterable[Any],
    *,
    kinds: Mapping[str, str] | None = None,
    graph_bytes: int = GRAPH_BYTES,
) -> TorchProblem:
    """The mean of `loss_fn(module, batch)` over the examples of `loader`, by the parameters that require a gradient: all of them, or
    those of an adapter like LoRA.

    >>> loader = torch.utils.data.DataLoader(examples, batch_size=250)  # shuffle=False
    >>> problem = basin.torch_problem(net, lambda net, batch: F.cross_entropy(net(batch[0]), batch[1]), loader)
    >>> basin.measure(problem, ["top_eigenvalues", "sharpness_keskar", "noise_scale"])

    `loss_fn` returns the mean loss of a batch, or [n] losses by example, which is faster for `sharpness_sam` and other measures of single
    examples. Batches are tensors, or lists, tuples and mappings of them, with the examples along the first dimension; other things in them
    are passed on as they are. They are read twice, to see that nothing shuffles or augments, and kept in memory, on the module's device.

    The module is in eval mode while it is measured: batch norm by its running statistics, no dropout. Weights, modes and `requires_grad`
    are as before when measure() returns. Weights are measured in their own type, float32 or float64: `module.double()` for the latter.
    Attention runs by matrix products, the only kernel that has second derivatives.

    `kinds`: patterns of names with the kinds of those parameters, where the guess by the module's class is wrong ({"*.gamma": "bias"}).
    `graph_bytes`: the graphs of as many batches as hold no more than that (1 GiB) are kept between products at the same weights, which
    makes these a third faster. 0 keeps none.
    """
    return TorchProblem(module, loss_fn, loader, kinds or {}, graph_bytes)


class TorchProblem(Problem):
    def __init__(
        self, module: torch.nn.Module, loss_fn: Callable, loader: Iterable[Any], kinds: Mapping[str, str], graph_bytes: int
    ) -> None:
        self.module = module
        self.loss_fn = loss_fn
        self.graph_bytes = graph_bytes
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise MeasureError("no parameter requires a gradient")
        self.tensors = [p for _, p in named]
        refuse_unused(kinds, [name for name, _ in named])
        self.parameters = [Parameter(name, tuple(p.shape), _kind(module, name, p, kinds)) for name, p in named]
        self.dtype = _dtype(named)
        batches = read_twice(loader)
        self.batches = [_to(batch, self.tensors[0].device) for batch in batches]
        self.counts = [count_of(batch) for batch in self.batches]
        self.examples = sum(self.counts)
        # Batches of one shape are one array, of which any examples make a batch; others are cut each by itself.
        self.whole = as_one(self.batches)
        if self.whole is not None:
            self.batches = parts(self.whole, self.counts)
        self.at: np.ndarray | None = None
        self.saved: list[torch.Tensor] = []
        self.modes: list[tuple[torch.nn.Module, bool]] = []
        self.graphs: dict[int, list[torch.Tensor]] = {}  # of batches, at the weights as they are
        self.held: dict[int, int] = {}  # bytes in a batch's graph
        self.warned = False
        self.by_example = self._gives_losses_by_example()

    # ---- what measure() asks for

    def weights(self) -> np.ndarray:
        self.saved = [p.detach().clone() for p in self.tensors]
        self.modes = [(part, part.training) for part in self.module.modules()]
        self.module.eval()
        return self._total([self.saved])

    def restore(self) -> None:
        import torch

        with torch.no_grad():
            for p, saved in zip(self.tensors, self.saved):
                p.copy_(saved)
        _set_modes(self.modes)
        self.at, self.saved, self.modes = None, [], []
        self.graphs.clear()

    def loss(self, w: np.ndarray) -> float:
        import torch

        self._move(w)
        with torch.no_grad(), attention_with_second_derivatives():
            return sum(self._mean(batch).item() * self._part(i) for i, batch in enumerate(self.batches))

    def gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self._move(w)
        return self._summed((self._mean, batch, self._part(i)) for i, batch in enumerate(self.batches))

    def product(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        self._move(w)
        pieces = self._pieces(v)

        def of_batch(i: int, batch: Any) -> Sequence[torch.Tensor | None]:
            gradients = self.graphs.get(i) or self._graph_of(i, batch)
            return self._product(gradients, pieces, again=i in self.graphs)

        with attention_with_second_derivatives():
            return self._total(of_batch(i, batch) for i, batch in enumerate(self.batches))

    def batch_gradient(self, w: np.ndarray, index: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        self._move(w)
        return self._summed((self._weighted(shares), batch, 1.0) for batch, shares, _ in self._chosen(index, share))

    def batch_product(self, w: np.ndarray, v: np.ndarray, index: np.ndarray, share: np.ndarray) -> np.ndarray:
        self._move(w)
        pieces = self._pieces(v)
        with attention_with_second_derivatives():
            return self._total(
                self._product(self._graph(self._weighted(shares)(batch)), pieces)
                for batch, shares, _ in self._chosen(index, share)
            )

    def losses(self, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        import torch

        self._move(w)
        found = np.empty(index.size)
        with torch.no_grad(), attention_with_second_derivatives():
            for batch, _, places in self._chosen(index, np.ones(index.size)):
                found[places] = [value.item() for value in self._by_example(batch)]
        return found

    # ---- losses of a batch

    def _gives_losses_by_example(self) -> bool:
        import torch

        modes = [(part, part.training) for part in self.module.modules()]
        self.module.eval()
        try:
            with torch.no_grad():
                value = self.loss_fn(self.module, self.batches[0])
        finally:
            _set_modes(modes)
        if not isinstance(value, torch.Tensor) or value.dim() > 1 or (value.dim() == 1 and len(value) != self.counts[0]):
            what = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise MeasureError(f"loss_fn returns {what}; one mean loss, or [{self.counts[0]}] losses by example, is expected")
        return value.dim() == 1

    def _part(self, i: int) -> float:
        return self.counts[i] / self.examples

    def _mean(self, batch: Any) -> torch.Tensor:
        return self.loss_fn(self.module, batch).mean()

    def _by_example(self, batch: Any) -> Iterable[torch.Tensor]:
        if self.by_example:
            return self.loss_fn(self.module, batch)
        return (self.loss_fn(self.module, take(batch, [i])) for i in range(count_of(batch)))

    def _weighted(self, shares: np.ndarray) -> Callable[[Any], torch.Tensor]:
        """Where all weights are equal the mean will do."""

        def loss(batch: Any) -> torch.Tensor:
            if np.all(shares == shares[0]):
                return self._mean(batch) * float(shares.sum())
            return sum(value * float(share) for value, share in zip(self._by_example(batch), shares))

        return loss

    def _chosen(self, index: np.ndarray, share: np.ndarray) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Batches of these examples, each with its weights and its places in `index`."""
        if self.whole is not None:
            most = max(self.counts)
            for first in range(0, index.size, most):
                places = np.arange(first, min(first + most, index.size))
                yield take(self.whole, index[places]), share[places], places
            return
        ends = np.cumsum(self.counts)
        owner = np.searchsorted(ends, index, side="right")
        for i in np.unique(owner):
            places = np.flatnonzero(owner == i)
            yield take(self.batches[i], index[places] - (ends[i] - self.counts[i])), share[places], places

    # ---- derivatives

    def _summed(self, terms: Iterable[tuple[Callable[[Any], torch.Tensor], Any, float]]) -> tuple[float, np.ndarray]:
        import torch

        losses = []

        def gradient(function: Callable[[Any], torch.Tensor], batch: Any, factor: float) -> Sequence[torch.Tensor | None]:
            value = function(batch) * factor
            losses.append(value.item())
            found = torch.autograd.grad(value, self.tensors, allow_unused=True)
            self._warn_of_unused(found)
            return found

        with attention_with_second_derivatives():
            total = self._total(gradient(*term) for term in terms)
        return sum(losses), total

    def _warn_of_unused(self, found: Sequence[torch.Tensor | None]) -> None:
        """Once, by the first batch: no derivative is no error, but often not what was meant."""
        unused = [p.name for p, gradient in zip(self.parameters, found) if gradient is None]
        if unused and not self.warned:
            self.warned = True
            warnings.warn(
                f"the loss doesn't depend on {', '.join(unused)}: derivatives by them are 0 (a layer that merges weights in eval mode?)",
                stacklevel=2,
            )

    def _graph(self, loss: torch.Tensor) -> list[torch.Tensor]:
        import torch

        return list(torch.autograd.grad(loss, self.tensors, create_graph=True, allow_unused=True))

    def _graph_of(self, i: int, batch: Any) -> list[torch.Tensor]:
        """Kept where there is room."""
        with counted_bytes(self.tensors) as held:
            gradients = self._graph(self._mean(batch) * self._part(i))
        self.held[i] = sum(held.values())
        if sum(self.held[k] for k in [*self.graphs, i]) <= self.graph_bytes:
            self.graphs[i] = gradients
        return gradients

    def _product(
        self, gradients: Sequence[torch.Tensor], pieces: Sequence[torch.Tensor], again: bool = False
    ) -> Sequence[torch.Tensor | None]:
        """`again`: the graph is of use after this."""
        import torch

        pairs = [(g, piece) for g, piece in zip(gradients, pieces) if g is not None and g.requires_grad]
        if not pairs:  # a loss that is linear in the weights
            return [None] * len(self.tensors)
        outputs, weights = zip(*pairs)
        return torch.autograd.grad(outputs, self.tensors, weights, retain_graph=again, allow_unused=True)

    # ---- weights

    def _move(self, w: np.ndarray) -> None:
        import torch

        if w is self.at:
            return
        self.graphs.clear()
        with torch.no_grad():
            for p, piece in zip(self.tensors, self._pieces(w)):
                p.copy_(piece)
        self.at = w

    def _pieces(self, flat: np.ndarray) -> list[torch.Tensor]:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it can't be written to; nobody does
            whole = torch.from_numpy(flat)
        parts = whole.split([p.numel() for p in self.tensors])
        return [part.view(p.shape).to(p.device) for part, p in zip(parts, self.tensors)]

    def _total(self, terms: Iterable[Sequence[torch.Tensor | None]]) -> np.ndarray:
        """Terms of a tensor for each parameter, added up, in the place that Basin reads where there is one."""
        total = np.empty(sum(p.numel() for p in self.tensors), self.dtype) if self.place is None else self.place
        for i, tensors in enumerate(terms):
            first = 0
            for tensor, p in zip(tensors, self.tensors):
                piece = total[first : first + p.numel()]
                first += p.numel()
                values = 0 if tensor is None else tensor.detach().cpu().numpy().reshape(-1)
                if i == 0:
                    piece[:] = values
                else:
                    piece += values
        return total


@contextmanager
def counted_bytes(parameters: Sequence[torch.Tensor]) -> Iterator[dict[int, int]]:
    """Bytes that graphs made meanwhile keep for their derivatives, by storage, beyond the parameters."""
    import torch

    owned = {p.untyped_storage().data_ptr() for p in parameters}
    held: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in owned:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # itself would be a cycle of references

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield held


def _set_modes(modes: Sequence[tuple[torch.nn.Module, bool]]) -> None:
    """By train(), which layers overload that fold weights together in eval mode; parents come before their parts."""
    for part, mode in modes:
        part.train(mode)
    for part, mode in modes:
        part.training = mode


def _to(batch: Any, device: torch.device) -> Any:
    return mapped(lambda tensor: tensor.to(device), batch)


def _kind(module: torch.nn.Module, name: str, parameter: torch.Tensor, kinds: Mapping[str, str]) -> str:
    """As of a network from a file (docs/your-network.md#kinds)."""
    if kind := chosen_kind(name, kinds):
        return kind
    bias = name.endswith("bias")
    if "Norm" in type(module.get_submodule(name.rpartition(".")[0])).__name__:
        return "norm_bias" if bias else "norm_weight"
    return "bias" if bias else "weight" if parameter.dim() > 1 else "norm_weight"


def _dtype(named: Sequence[tuple[str, torch.Tensor]]) -> str:
    types = {str(p.dtype).removeprefix("torch."): name for name, p in named}
    if len(types) > 1 or not types.keys() <= {"float32", "float64"}:
        found = ", ".join(f"{name} is {kind}" for kind, name in types.items())
        raise MeasureError(f"all parameters are to be float32, or all float64 (module.float(), module.double()): {found}")
    return next(iter(types))
