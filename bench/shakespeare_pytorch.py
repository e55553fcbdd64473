"""nanoGPT's smallest setting in PyTorch: what configs/shakespeare.toml has to come near (docs/language.md).

    shakespeare_pytorch.py TEXT [--seeds 5] [--updates 2000]      the validation loss of each seed, their mean and standard error

Windows of 64 characters are drawn anywhere in the first nine tenths of the text, with replacement, as nanoGPT draws them. The loss
is that of all of the last tenth, in windows without overlap.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from gpt_pytorch import Gpt, mean_loss

CONTEXT, BATCH, WARMUP, PEAK, FLOOR = 64, 12, 100, 1e-3, 1e-4


def rate(update, updates):
    if update < WARMUP:
        return PEAK * (update + 1) / (WARMUP + 1)
    share = (update - WARMUP) / (updates - WARMUP)
    return FLOOR + 0.5 * (1 + math.cos(math.pi * share)) * (PEAK - FLOOR)


def validation_loss(net, held):
    starts = range(0, len(held) - CONTEXT, CONTEXT)
    total = 0.0
    with torch.no_grad():
        for first in range(0, len(starts), 64):
            rows = [held[s : s + CONTEXT + 1] for s in starts[first : first + 64]]
            x = torch.stack(rows)
            total += mean_loss(net, x[:, :-1], x[:, 1:]).item() * len(rows)
    return total / len(starts)


def train(seed, kept, held, count, updates):
    torch.manual_seed(seed)
    net = Gpt(count, CONTEXT)
    matrices = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99))
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rate(update, updates)
        starts = torch.randint(len(kept) - CONTEXT, (BATCH,))
        x = torch.stack([kept[s : s + CONTEXT + 1] for s in starts])
        loss = mean_loss(net, x[:, :-1], x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    net.eval()
    return validation_loss(net, held)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=2000)
    options = parser.parse_args()
    text = options.text.read_text()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([number[c] for c in text])
    cut = int(0.9 * len(tokens))
    losses = []
    for seed in range(1, options.seeds + 1):
        start = time.time()
        losses.append(train(seed, tokens[:cut], tokens[cut:], len(number), options.updates))
        print(f"seed {seed}: {losses[-1]:.4f} in {time.time() - start:.0f} s", flush=True)
    error = np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else float("nan")
    print(f"mean {np.mean(losses):.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
