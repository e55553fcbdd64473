"""export: a PyTorch network as a file that `model = "torchscript"` trains and measures.

torch is imported when a network is exported, from the environment that made it; reading what Basin wrote needs none.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import platform
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

RECORD = "basin.json"  # in the file, next to torch's own
# Float32: a script's sums run in another order than the module's.
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


class ExportError(Exception):
    """A network that can't be measured as it is, and why."""


@dataclass(frozen=True)
class Exported:
    """`unused`: parameters that don't enter the output, whose derivatives are zero."""

    path: str
    sha256: str
    method: str
    parameters: int
    unused: tuple[str, ...]

    def __str__(self) -> str:
        return f'model = "torchscript"\n\n[torchscript]\nfile = "{self.path}"\nsha256 = "{self.sha256}"\n'


def export(module: torch.nn.Module, example: Any, path: str | os.PathLike[str]) -> Exported:
    """Writes `module` to `path` and returns what a study file says to use it; print() shows that. `example`: inputs [n, ...] with n > 1
    as the network takes them, normalised; a tensor or a numpy array. The module itself stays as it is; the file has its weights, in
    float32, on the CPU.

    The network is scripted (torch.jit.script) where that works, else traced, unless it has batch norm or dropout, whose mode a trace
    would fix. Tried before anything is written: the same outputs in eval mode, another batch size, training mode, and derivatives of the
    second order. ExportError says which of these failed.
    """
    import torch

    if len(example) < 2:
        raise ExportError("example has one input; two or more are needed to see whether the network takes any number of them")
    net = copy.deepcopy(module).float().cpu().eval()
    example = torch.as_tensor(example).detach().cpu()
    example = example.float() if example.is_floating_point() else example
    with attention_with_second_derivatives():
        expected = _outputs(net, example)
        script, method = _script_of(net, example)
        _compare(script, example, expected)
        unused = _unused_after_double_backward(script, example)
        _train_mode(script, example)
    script.eval()
    versions = {"torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()}
    record = {"class": type(module).__qualname__, "method": method, "example": list(example.shape)} | versions
    torch.jit.save(script, os.fspath(path), _extra_files={RECORD: json.dumps(record)})
    if unused:
        warnings.warn(f"these parameters don't enter the output: {', '.join(unused)}", stacklevel=2)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    count = sum(p.numel() for p in script.parameters() if p.requires_grad)
    return Exported(os.fspath(path), digest, method, count, tuple(unused))


@contextlib.contextmanager
def attention_with_second_derivatives() -> Iterator[None]:
    """Attention by matrix products; the other kernels have no second derivatives. In the engine they are off always."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before 2.3
        from torch.backends.cuda import sdp_kernel

        with sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_math=True):
            yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield


def _outputs(net: torch.nn.Module, example: torch.Tensor) -> torch.Tensor:
    import torch

    try:
        with torch.no_grad():
            outputs = net(example)
    except RuntimeError as fault:
        kind = str(example.dtype).removeprefix("torch.")
        raise ExportError(f"the network fails on example ({kind} {list(example.shape)}): {_last_line(fault)}") from None
    if not isinstance(outputs, torch.Tensor):
        raise ExportError(
            f"the network returns {type(outputs).__name__}, not one tensor of logits: wrap it in a module that picks them"
        )
    if outputs.dim() not in (2, 3) or outputs.shape[0] != example.shape[0]:
        raise ExportError(
            f"the network returns {list(outputs.shape)} for {example.shape[0]} inputs; [{example.shape[0]}, classes] is expected, or "
            f"[{example.shape[0]}, tokens, classes]"
        )
    return outputs


def _script_of(net: torch.nn.Module, example: torch.Tensor) -> tuple[Any, str]:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return torch.jit.script(net), "script"
        except Exception as fault:  # torch raises many kinds
            why = str(fault).strip().splitlines()[0]
        moded = [name for name, part in net.named_modules() if "Dropout" in type(part).__name__ or hasattr(part, "running_mean")]
        if moded:
            raise ExportError(f"torch.jit.script fails ({why}), and a trace would fix the mode of {moded[0]}")
        if not _modes_agree(net, example):
            raise ExportError(f"torch.jit.script fails ({why}), and a trace would fix the mode: training and eval mode differ")
        return torch.jit.trace(net, example, check_trace=False), "trace"


def _modes_agree(net: torch.nn.Module, example: torch.Tensor) -> bool:
    import torch

    with torch.no_grad():
        return torch.allclose(copy.deepcopy(net).train()(example), net(example), **CLOSE)


def _compare(script: Any, example: torch.Tensor, expected: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        if not torch.allclose(script(example), expected, **CLOSE):
            raise ExportError("the script's outputs are not the network's")
        try:
            fewer = script(example[:-1])
        except RuntimeError as fault:
            raise ExportError(f"fails on another number of inputs: {_last_line(fault)}") from None
        if fewer.shape != expected[:-1].shape or not torch.allclose(fewer, expected[:-1], **CLOSE):
            raise ExportError("in eval mode an input's output depends on the others, or is drawn at random")


def _unused_after_double_backward(script: Any, example: torch.Tensor) -> list[str]:
    import torch

    named = [(name, p) for name, p in script.named_parameters() if p.requires_grad]
    if not named:
        raise ExportError("no parameter requires a gradient")
    parameters = [p for _, p in named]
    try:
        with torch.jit.optimized_execution(False):
            first = torch.autograd.grad(script(example).square().sum(), parameters, create_graph=True, allow_unused=True)
            norm = sum(g.square().sum() for g in first if g is not None and g.requires_grad)
            if isinstance(norm, torch.Tensor):
                torch.autograd.grad(norm, parameters, allow_unused=True)
    except RuntimeError as fault:
        raise ExportError(f"no second derivatives: {_last_line(fault)}") from None
    return [name for (name, _), gradient in zip(named, first) if gradient is None]


def _train_mode(script: Any, example: torch.Tensor) -> None:
    import torch

    trial = copy.deepcopy(script).train()
    try:
        with torch.no_grad():
            trial(example)
    except RuntimeError as fault:
        raise ExportError(f"fails in training mode: {_last_line(fault)}") from None


def _last_line(fault: Exception) -> str:
    return str(fault).strip().splitlines()[-1].removeprefix("RuntimeError: ")
