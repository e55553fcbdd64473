"""Training speed of the same network in PyTorch, in one of four manners; prints one line of JSON like bench_training.

    training_pytorch.py MODEL BATCH THREADS SECONDS DATA_FOLDER MANNER DEVICE

MODEL is small_cnn or davidnet on the images of cifar10-5k, or gpt on the characters of moby_dick (bench/gpt_pytorch.py), both within
DATA_FOLDER.

eager       the loop that most people write: on a CPU as it comes, in the default memory format; on a GPU as it is fast: images resident
            there, channels-last, bfloat16 autocast
deterministic  the eager one with kernels that give the same bits each time, as Basin's
careful     images and weights channels-last, ReLU in place, the fused optimiser (gpt: that alone); who starts it sets the allocator
compiled    the careful one, with forward pass and loss compiled as one function for this one shape; on a GPU in CUDA graphs
"""

import json
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn

from gpt_pytorch import Gpt, mean_loss

WARM_UP = 3  # updates, of which the first compiles
CAREFUL = ("careful", "compiled")
CONTEXT = 64


def windows(folder):
    """Characters of the first nine tenths in windows without overlap, and the character after each."""
    text = (pathlib.Path(folder) / "moby_dick/moby_dick.txt").read_text()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([number[c] for c in text[: len(text) * 9 // 10]])
    count = (len(tokens) - 1) // CONTEXT
    return tokens[: count * CONTEXT].view(count, CONTEXT), tokens[1 : count * CONTEXT + 1].view(count, CONTEXT), len(number)


def load(folder, name):
    records = np.fromfile(pathlib.Path(folder) / name, np.uint8).reshape(-1, 3073)
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255)
    mean, std = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
    return (images - mean) / std, torch.from_numpy(records[:, 0].astype(np.int64))


def small_cnn():
    layers, channels = [], 3
    for width in (16, 32, 64):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))


def block(channels, width):
    return [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(*block(width, width), *block(width, width))

    def forward(self, x):
        return x + self.body(x)


class Scaled(nn.Module):
    def forward(self, x):
        return 0.125 * x


def davidnet():
    def layer(channels, width, residual):
        return [*block(channels, width), nn.MaxPool2d(2), *([Residual(width)] if residual else [])]

    return nn.Sequential(
        *block(3, 64),
        *layer(64, 128, True),
        *layer(128, 256, False),
        *layer(256, 512, True),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10, bias=False),
        Scaled(),
    )


def batches(count, size):
    """Reshuffled epochs laid end to end, in slices of `size`, as Basin's example stream."""
    rest = torch.empty(0, dtype=torch.int64)
    while True:
        while len(rest) < size:
            rest = torch.cat([rest, torch.randperm(count)])
        yield rest[:size]
        rest = rest[size:]


def layout_of(manner, device):
    return {"memory_format": torch.channels_last} if manner in CAREFUL or device.type == "cuda" else {}


def make_model(network, manner, device, count=10):
    made = Gpt(count, CONTEXT) if network == "gpt" else {"small_cnn": small_cnn, "davidnet": davidnet}[network]()
    model = made.to(device, **({} if network == "gpt" else layout_of(manner, device)))
    for layer in model.modules():
        if isinstance(layer, nn.ReLU):
            layer.inplace = manner in CAREFUL
    return model


def make_optimizer(model, manner):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True if manner in CAREFUL else None)


def loss_function(model, manner):
    def loss(inputs, labels):
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda):
            return mean_loss(model, inputs, labels) if labels.dim() > 1 else nn.functional.cross_entropy(model(inputs), labels)

    mode = "reduce-overhead" if next(model.parameters()).is_cuda else None
    return torch.compile(loss, dynamic=False, mode=mode) if manner == "compiled" else loss


def update(loss_of, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = loss_of(inputs, labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    network, batch, threads, seconds, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
    manner, device = sys.argv[6], torch.device(sys.argv[7])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    if manner == "deterministic":
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
    inputs, labels, count = windows(folder) if network == "gpt" else (*load(folder, "cifar10-5k/data_batch_1.bin"), 10)
    images, labels = inputs.to(device), labels.to(device)
    if images.dim() == 4:
        images = images.contiguous(**layout_of(manner, device))  # and so is what an index takes of them
    model = make_model(network, manner, device, count)
    optimizer, loss_of = make_optimizer(model, manner), loss_function(model, manner)
    updates, start = 0, 0.0
    for index in batches(len(images), batch):
        index = index.to(device)
        value = update(loss_of, optimizer, images[index], labels[index])
        updates += 1
        if updates == WARM_UP:
            start = time.perf_counter()
        elapsed = time.perf_counter() - start
        if updates > WARM_UP and elapsed > seconds:
            break
    timed = updates - WARM_UP
    print(
        json.dumps(
            {
                "batch": batch,
                "updates": timed,
                "images_per_second": round(timed * batch / elapsed, 1),
                "parameters": sum(p.numel() for p in model.parameters()),
                "loss": round(value, 4),
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
