"""Time of an optimiser's update in PyTorch.

    optimizers_pytorch.py THREADS DEVICE

answers each line METHOD TOOL SIZES SECONDS of its input by one of JSON, like bench_optimizers.

TOOL is torch-foreach, torch-fused (torch.optim) or torch_optimizer (jettify's LARS and LAMB, tensor by tensor).
"""

import json
import statistics
import sys
import time

import torch

WARM_UP = 3


def small():
    shapes, channels = [], 3
    for width in (16, 32, 64):
        shapes += [(width, channels, 3, 3), (width,)]
        channels = width
    return [*shapes, (10, 1024), (10,)]


def large():
    """ResNet-50's convolutions, norms and last layer."""
    shapes = []

    def conv(out, channels, side):
        shapes.extend([(out, channels, side, side), (out,), (out,)])

    conv(64, 3, 7)
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            conv(width, channels, 1)
            conv(width, width, 3)
            conv(4 * width, width, 1)
            if block == 0:
                conv(4 * width, channels, 1)
            channels = 4 * width
    return [*shapes, (1000, 2048), (1000,)]


def optimizer_of(method, tool, parameters):
    if tool == "torch_optimizer":
        import torch_optimizer

        return {"lars": torch_optimizer.LARS, "lamb": torch_optimizer.Lamb}[method](
            parameters, lr=1e-4, weight_decay=1e-2, **({"momentum": 0.9} if method == "lars" else {})
        )
    how = {"foreach": True} if tool == "torch-foreach" else {"fused": True}
    if method == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **how)
    return torch.optim.AdamW(parameters, lr=1e-4, **how)


def measured(method, tool, sizes, seconds, device):
    parameters = []
    for shape in small() if sizes == "small" else large():
        parameter = torch.randn(shape).mul_(0.1).to(device).requires_grad_(True)
        parameter.grad = torch.full_like(parameter, 0.01)
        parameters.append(parameter)
    optimizer = optimizer_of(method, tool, parameters)
    times, start = [], time.perf_counter()
    while len(times) < WARM_UP + 5 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - before)
    return {
        "method": method,
        "steps": len(times) - WARM_UP,
        "step_s": statistics.median(times[WARM_UP:]),
        "parameters": sum(p.numel() for p in parameters),
        "tensors": len(parameters),
        "torch": torch.__version__,
    }


def main():
    threads, device = sys.argv[1:]
    torch.set_num_threads(int(threads))
    for line in sys.stdin:
        method, tool, sizes, seconds = line.split()
        print(json.dumps(measured(method, tool, sizes, float(seconds), device)), flush=True)


if __name__ == "__main__":
    main()
