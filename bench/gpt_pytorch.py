"""nanoGPT's network as its users write it in PyTorch: one product for queries, keys and values, fused causal attention."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attention = nn.Linear(width, 3 * width, bias=False)
        self.projection = nn.Linear(width, width, bias=False)
        self.expand = nn.Linear(width, 4 * width, bias=False)
        self.shrink = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        n, steps, width = x.shape
        parts = self.attention(self.norm1(x)).split(width, dim=2)
        q, k, v = (part.view(n, steps, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(n, steps, width))
        return x + self.shrink(F.gelu(self.expand(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, count, context=64, layers=4, heads=4, width=128):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(count, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                ends_on_the_sum = name.endswith(("projection.weight", "shrink.weight"))
                nn.init.normal_(p, 0, 0.02 / (math.sqrt(2 * layers) if ends_on_the_sum else 1))

    def forward(self, x):
        y = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            y = block(y)
        return F.linear(self.norm(y), self.tokens.weight)


def mean_loss(model, inputs, labels):
    return F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
