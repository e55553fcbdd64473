"""Logits and gradients of the models, rebuilt in PyTorch's functional operations from their papers.

    model_golden.py            compares tests/models/golden_logits.h with what this program computes
    model_golden.py --write    writes that file

Every tensor is filled by a formula both sides know (`fill`), so padding, pooling, shortcuts, the order of layers and of the
flattened features all show; nothing random is shared. The gradient's norm is that of the mean cross entropy.
"""

import argparse
import math
import pathlib
import re

import torch
import torch.nn.functional as F

from _oracle import compare, finish, golden_header

HEADER = pathlib.Path(__file__).resolve().parents[1] / "models" / "golden_logits.h"
torch.set_default_dtype(torch.float64)
EXAMPLES, CLASSES, CHANNELS = 3, 4, 3


def fill(name, shape):
    """Weights of order 1/sqrt(fan-in), norm weights and variances around 1, the rest small."""
    count = math.prod(shape)
    j = torch.arange(count, dtype=torch.float64)
    if name.endswith("running_var"):
        values = 1 + 0.5 * torch.sin(j)
    elif len(shape) == 1:
        values = 0.1 * torch.cos(2.3 * j) + (1 if "norm" in name and name.endswith("weight") else 0)
    else:
        values = 1.5 / math.sqrt(count / shape[0]) * torch.sin(0.7 * j + 0.1 * count)
    return values.reshape(shape)


class Net:
    """Makes the tensors a network asks for, by name."""

    def __init__(self, norm):
        self.norm_kind, self.parameters = norm, {}

    def parameter(self, name, *shape):
        return self.parameters.setdefault(name, fill(name, shape).requires_grad_())

    def conv(self, x, name, out, kernel, bias=True, **options):
        weight = self.parameter(name + ".weight", out, x.shape[1], kernel, kernel)
        return F.conv2d(x, weight, self.parameter(name + ".bias", out) if bias else None, **options)

    def linear(self, x, name, out, bias=True):
        weight = self.parameter(name + ".weight", out, x.shape[1])
        return F.linear(x, weight, self.parameter(name + ".bias", out) if bias else None)

    def norm(self, x, name, scale=True, eps=1e-5):
        size = x.shape[1]
        if self.norm_kind == "none":
            return x
        weight = self.parameter(name + ".weight", size) if scale else torch.ones(size)
        bias = self.parameter(name + ".bias", size)
        if self.norm_kind == "group":
            return F.group_norm(x, 2, weight, bias, eps)
        mean, variance = fill(name + ".running_mean", (size,)), fill(name + ".running_var", (size,))
        return F.batch_norm(x, mean, variance, weight, bias, training=False, eps=eps)


def mlp(net, x):
    x = x.flatten(1)
    for i, width in enumerate((6, 4), start=1):
        x = F.relu(net.norm(net.linear(x, f"fc{i}", width), f"norm{i}"))
    return net.linear(x, "fc3", CLASSES)


def small_cnn(net, x, stride=1):
    for i, width in enumerate((4, 6), start=1):
        x = F.relu(net.norm(net.conv(x, f"conv{i}", width, 3, padding=1, stride=stride), f"norm{i}"))
        if stride == 1:
            x = F.max_pool2d(x, 2)
    return net.linear(x.flatten(1), "fc", CLASSES)


def keskar_c1(net, x):
    for i in (1, 2):
        x = F.relu(net.norm(net.conv(x, f"conv{i}", 4, 5, padding=2), f"norm{i}"))
        x = F.max_pool2d(x, 3, stride=2, padding=1)
    x = x.flatten(1)
    for i, width in enumerate((6, 4), start=1):
        x = F.relu(net.norm(net.linear(x, f"fc{i}", width), f"norm{i + 2}"))
    return net.linear(x, "fc3", CLASSES)


def resnet20(net, x):
    bias = net.norm_kind == "none"
    x = F.relu(net.norm(net.conv(x, "conv1", 4, 3, bias, padding=1), "norm1"))
    for stage in (1, 2, 3):
        out = 4 * 2 ** (stage - 1)
        for block in (1, 2):
            name, stride = f"stage{stage}.block{block}", 2 if stage > 1 and block == 1 else 1
            y = net.conv(x, name + ".conv1", out, 3, bias, padding=1, stride=stride)
            y = net.conv(F.relu(net.norm(y, name + ".norm1")), name + ".conv2", out, 3, bias, padding=1)
            new = out - x.shape[1]
            shortcut = F.pad(x[:, :, ::stride, ::stride], (0, 0, 0, 0, new // 2, new - new // 2))
            x = F.relu(net.norm(y, name + ".norm2") + shortcut)
    return net.linear(x.mean((2, 3)), "fc", CLASSES)


def davidnet(net, x):
    """cifar10-fast's dawn_utils.net, with its pooling after the activation."""

    def conv_bn(x, name, out):
        return F.relu(net.norm(net.conv(x, name + ".conv", out, 3, net.norm_kind == "none", padding=1), name + ".norm"))

    x = conv_bn(x, "prep", 2)
    for i, out in enumerate((4, 8, 16), start=1):
        x = F.max_pool2d(conv_bn(x, f"layer{i}", out), 2)
        if i != 2:
            x = x + conv_bn(conv_bn(x, f"layer{i}.res1", out), f"layer{i}.res2", out)
    return net.linear(x.amax((2, 3)), "fc", CLASSES, bias=False) * 0.125


def airbench(net, x):
    """legacy/airbench94.py's network, its frozen weights filled like any others."""

    def norm(x, name):
        return net.norm(x, name, scale=False, eps=1e-12)

    bias = net.norm_kind == "none"
    filters = 2 * CHANNELS * 2 * 2
    x = F.conv2d(x, fill("whiten.weight", (filters, CHANNELS, 2, 2)), net.parameter("whiten.bias", filters))
    x = F.gelu(x)
    for i, out in enumerate((4, 6), start=1):
        x = F.max_pool2d(net.conv(x, f"block{i}.conv1", out, 3, bias, padding=1), 2)
        x = F.gelu(norm(x, f"block{i}.norm1"))
        x = F.gelu(norm(net.conv(x, f"block{i}.conv2", out, 3, bias, padding=1), f"block{i}.norm2"))
    return net.linear(x.amax((2, 3)), "fc", CLASSES, bias=False) / 9


def gpt(tied, bias):
    """nanoGPT's model.py, by the formulas of its paper: tokens [n, T] to logits [n, T, V]."""

    def network(net, x):
        width, heads, layers = 6, 2, 2
        steps = x.shape[1]

        def norm(y, name):
            scale = net.parameter(name + ".weight", width)
            centred = y - y.mean(-1, keepdim=True)
            y = scale * centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5)
            return y + net.parameter(name + ".bias", width) if bias else y

        def linear(y, name, out):
            y = torch.einsum("nti,oi->nto", y, net.parameter(name + ".weight", out, y.shape[2]))
            return y + net.parameter(name + ".bias", out) if bias else y

        tokens = net.parameter("tokens.weight", CLASSES, width)
        h = tokens[x] + net.parameter("positions.weight", steps, width)
        past = torch.tril(torch.ones(steps, steps)).bool()
        for block in (f"block{i + 1}" for i in range(layers)):
            q, k, v = linear(norm(h, block + ".norm1"), block + ".attention", 3 * width).split(width, 2)
            mixed = []
            for part in (slice(i * width // heads, (i + 1) * width // heads) for i in range(heads)):
                scores = torch.einsum("nsc,ntc->nst", q[..., part], k[..., part]) / math.sqrt(width // heads)
                weights = torch.where(past, scores, torch.full_like(scores, -math.inf)).softmax(2)
                mixed.append(torch.einsum("nst,ntc->nsc", weights, v[..., part]))
            h = h + linear(torch.cat(mixed, 2), block + ".projection", width)
            y = linear(norm(h, block + ".norm2"), block + ".expand", 4 * width)
            y = y * 0.5 * (1 + torch.erf(y / math.sqrt(2)))
            h = h + linear(y, block + ".shrink", width)
        head = tokens if tied else net.parameter("head.weight", CLASSES, width)
        return torch.einsum("ntc,vc->ntv", norm(h, "norm"), head)

    return network


SIZES = {
    "mlp": ["hidden=[6, 4]"],
    "small_cnn": ["widths=[4, 6]"],
    "keskar_c1": ["width=4", "hidden=[6, 4]"],
    "resnet20": ["width=4", "blocks=2"],
    "davidnet": ["width=2"],
    "airbench": ["widths=[4, 6]"],
}
CASES = [
    (name, [*size, f"norm={norm}", "groups=2"], globals()[name], norm, side)
    for name, size in SIZES.items()
    for norm in ("none", "batch", "group")
    for side in (8, 11)
]
CASES.append(("small_cnn", ["widths=[4, 6]", "downsample=stride"], lambda net, x: small_cnn(net, x, 2), "none", 11))


CASES += [
    (
        "gpt",
        ["layers=2", "heads=2", "width=6", f"tied={str(tied).lower()}", f"bias={str(bias).lower()}"],
        gpt(tied, bias),
        "tokens",
        5,
    )
    for tied, bias in ((True, False), (False, True))
]


def inputs_and_labels(norm, side):
    """Pictures of that side, or that many tokens."""
    if norm == "tokens":
        j = torch.arange(EXAMPLES * side).reshape(EXAMPLES, side)
        return (j * j) % CLASSES, (3 * j + 1) % CLASSES
    images = torch.sin(0.37 * torch.arange(EXAMPLES * CHANNELS * side * side)).reshape(EXAMPLES, CHANNELS, side, side)
    return images, torch.arange(EXAMPLES) % CLASSES


def compute(network, norm, side):
    """Logits, flat, and the norm of the mean cross entropy's gradient."""
    net = Net(norm)
    inputs, labels = inputs_and_labels(norm, side)
    logits = network(net, inputs)
    loss = F.cross_entropy(logits.reshape(-1, CLASSES), labels.reshape(-1))
    gradients = torch.autograd.grad(loss, [*net.parameters.values()])
    return logits.flatten().tolist(), math.sqrt(sum(float((g * g).sum()) for g in gradients))


def header(results):
    lines = [
        "struct Logits {",
        "  std::string model;",
        "  std::vector<std::string> settings;",
        "  int64_t side;  // of the images, or the number of tokens",
        "  std::vector<double> logits;",
        "  double gradient_norm;",
        "};",
        f"inline constexpr int64_t examples = {EXAMPLES}, classes = {CLASSES}, channels = {CHANNELS};",
        "",
        "inline const std::vector<Logits> logits{",
    ]
    for (name, settings, _, _, side), (logits, gradient_norm) in zip(CASES, results):
        lines.append(f'    {{"{name}",')
        lines.append("     {" + ", ".join(f'"{s}"' for s in settings) + "},")
        lines.append(f"     {side},")
        rows = [", ".join(f"{v:.17g}" for v in logits[i : i + CLASSES]) for i in range(0, len(logits), CLASSES)]
        lines.append("     {" + ",\n      ".join(rows) + "},")
        lines.append(f"     {gradient_norm:.17g}}},")
    return golden_header("golden logits of tiny models", "model_golden.py", [*lines, "};"], ("cstdint", "string", "vector"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    results = [compute(network, norm, side) for _, _, network, norm, side in CASES]
    if parser.parse_args().write:
        HEADER.write_text(header(results))
        return
    number = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"
    table = HEADER.read_text().split("logits{", 1)[1]
    rows = [line for line in table.splitlines() if re.match(rf" +\{{?{number}[,}}]", line)]
    stored = [float(v) for row in rows for v in re.findall(number, row)]
    ours = [v for (_, _, _, _, side), (logits, norm) in zip(CASES, results) for v in (side, *logits, norm)]
    compare(HEADER.name, stored, ours, rtol=1e-10, atol=1e-12, why="float64 sums in another order on another machine")
    finish()


if __name__ == "__main__":
    main()
