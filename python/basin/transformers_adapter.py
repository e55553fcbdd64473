"""transformers_problem(): a Hugging Face model, whose outputs have the loss, as a Problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .problem import MeasureError
from .torch_adapter import GRAPH_BYTES, TorchProblem, torch_problem


def transformers_problem(
    model: Any, loader: Iterable[Any], *, kinds: Mapping[str, str] | None = None, graph_bytes: int = GRAPH_BYTES
) -> TorchProblem:
    """The mean of `model(**batch).loss` over the examples of `loader`, batches that are mappings with labels.

    >>> model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=64))
    >>> problem = basin.transformers_problem(model, [{"input_ids": tokens, "labels": tokens}])
    >>> basin.measure(problem, ["top_eigenvalues", "noise_scale"])

    The model's loss is a mean over tokens: it is a mean over examples too where all have as many tokens that count. Where they don't
    (padding), measure() says so; then torch_problem() with a loss_fn that returns losses by example is the way. The rest is as of
    torch_problem(): parameters that don't require a gradient are no part of it, attention runs by matrix products.
    """

    def loss(model: Any, batch: Mapping[str, Any]) -> Any:
        found = model(**batch).loss
        if found is None:
            raise MeasureError("the model's outputs have no loss: its batches need labels")
        return found

    return torch_problem(model, loss, loader, kinds=kinds, graph_bytes=graph_bytes)
