"""Networks that Basin doesn't know, exported by basin.export(), trained and measured by the program and by PyTorch itself.

    torchscript.py           ($BASIN_BINARY is the program)
    torchscript.py --write   writes tests/python/networks/script_net.pt and what PyTorch makes of it, script_net.json

For each network (of classes, of numbers to predict, of a class for each token): five full-batch updates of SGD with momentum in float64
and the weights they end at; then loss and the largest Hessian eigenvalue there, ours from the probes, theirs from double backward products
and scipy's eigsh, and the variance of single gradients. Examples and files come from here, the running statistics of batch norm from
Basin's checkpoint. Then what basin.export() refuses.

script_net.pt is such a network in small, for tests without PyTorch: 10 classes, pictures of any size, batch norm whose running statistics
are those of one batch. Its examples are a formula's (`sine_examples`).
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn

from _oracle import compare, finish, stored

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("exporting", ROOT / "python/basin/exporting.py")
exporting = importlib.util.module_from_spec(SPEC)
sys.modules["exporting"] = exporting  # dataclasses look there
SPEC.loader.exec_module(exporting)

FIXTURE = ROOT / "tests/python/networks/script_net"
N, CLASSES, RATE, MOMENTUM, UPDATES = 40, 4, 0.05, 0.9, 5
STUDY = """
model = "torchscript"
optimizer = "sgd"
sgd.momentum = {momentum}
schedule = "constant"
warmup = 0.0
protocol = "A-updates"
updates = {updates}
loss = "{loss}"
batch_size = {n}
ghost_batch = {n}
micro_batch = {n}
learning_rate = {rate}
dtype = "float64"
data.set = "arrays"
data.path = "{data}"
runtime.progress = false
[torchscript]
file = "{file}"
[probes]
run = ["top_eigenvalues", "gradient_statistics"]
dtype = "float64"
micro_batch = 16
[top_eigenvalues]
count = 1
tolerance = 1e-6
[sweep]
seed = [1]
"""


class Residual(nn.Module):
    def __init__(self, width, norm):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), norm(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), norm(width)

    def forward(self, x):
        y = F.softplus(self.norm1(self.conv1(x)))
        return F.softplus(x + self.norm2(self.conv2(y)))


def resnet(norm):
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8, norm), nn.AvgPool2d(2), Residual(8, norm), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, CLASSES))  # fmt: skip


class Transformer(nn.Module):
    """Rows of the picture as tokens; scaled_dot_product_attention as it comes."""

    def __init__(self, width=12, heads=3):
        super().__init__()
        self.heads = heads
        self.embed, self.position = nn.Linear(24, width), nn.Parameter(0.1 * torch.randn(1, 8, width))
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.embed(x.transpose(1, 2).flatten(2)) + self.position
        q, k, v = [t.view(t.size(0), t.size(1), self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=2)]
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(y)
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(1))


class Recurrent(nn.Module):
    """A class for each of six tokens, by a recurrence written out."""

    def __init__(self, width=7):
        super().__init__()
        self.embed, self.step, self.head = nn.Embedding(CLASSES, width), nn.Linear(2 * width, width), nn.Linear(width, CLASSES)

    def forward(self, x):
        state, outputs = torch.zeros_like(self.embed(x[:, 0])), []
        for t in range(6):
            state = torch.tanh(self.step(torch.cat([self.embed(x[:, t]), state], 1)))
            outputs.append(self.head(state))
        return torch.stack(outputs, 1)


def squares(outputs, numbers):
    return (outputs - numbers).square().sum(1).mean() / 2


def of_tokens(outputs, labels):
    return F.cross_entropy(outputs.flatten(0, 1), labels.flatten())


def networks():
    """Name, module, loss by its name and as a function, examples."""
    torch.manual_seed(1)
    yield "ResNet with group norm", resnet(lambda width: nn.GroupNorm(2, width)), "cross_entropy", F.cross_entropy, pictures()
    yield "ResNet with batch norm", resnet(nn.BatchNorm2d), "cross_entropy", F.cross_entropy, pictures()
    yield "transformer", Transformer(), "cross_entropy", F.cross_entropy, pictures()
    regression = nn.Sequential(nn.Flatten(), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))
    random = np.random.default_rng(3)
    numbers = {"train_inputs": random.normal(size=(N, 5)), "train_targets": random.normal(size=(N, 2))}
    yield "regression", regression, "mse", squares, numbers
    tokens = random.integers(CLASSES, size=(N, 7))
    yield (
        "tokens",
        Recurrent(),
        "token_cross_entropy",
        of_tokens,
        {"train_inputs": tokens[:, :-1], "train_targets": tokens[:, 1:]},
    )


def pictures():
    random = np.random.default_rng(2)
    return {"train_inputs": random.normal(size=(N, 3, 8, 8)).astype(np.float32), "train_targets": np.arange(N) % CLASSES}


def as_tensor(array):
    tensor = torch.tensor(array)
    return tensor.double() if tensor.is_floating_point() else tensor


def trained_by_basin(folder, file, loss):
    (folder / "study.toml").write_text(
        STUDY.format(momentum=MOMENTUM, updates=UPDATES, n=N, rate=RATE, data=folder / "set.npz", file=file, loss=loss)
    )
    command = [os.environ["BASIN_BINARY"], "sweep", str(folder / "study.toml"), "--out", str(folder / "out")]
    subprocess.run(command, check=True, capture_output=True)
    [path] = folder.glob("out/runs/*")
    return path


def trained_by_torch(net, loss_of, x, y):
    net = net.double().train()
    velocity = [torch.zeros_like(p) for p in net.parameters()]
    for _ in range(UPDATES):
        loss = loss_of(net(x), y)
        for p, v, g in zip(net.parameters(), velocity, torch.autograd.grad(loss, list(net.parameters()))):
            v.mul_(MOMENTUM).add_(g)
            p.data.sub_(RATE * v)
    return net.eval()


def largest_eigenvalue(net, x, y, loss_of=F.cross_entropy):
    parameters = list(net.parameters())
    gradient = torch.autograd.grad(loss_of(net(x), y), parameters, create_graph=True)
    size = sum(p.numel() for p in parameters)

    def product(v):
        parts = torch.tensor(v.ravel()).split([p.numel() for p in parameters])
        dot = sum((g * part.view_as(g)).sum() for g, part in zip(gradient, parts))
        return torch.cat([h.ravel() for h in torch.autograd.grad(dot, parameters, retain_graph=True)]).numpy()

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return eigsh(LinearOperator((size, size), matvec=product, dtype=np.float64), k=1, which="LA")[0][0]


def gradient_variance(net, x, y, loss_of=F.cross_entropy):
    """tr Sigma of single examples' gradients, unbiased; one backward pass each."""
    rows = []
    for i in range(len(x)):
        gradient = torch.autograd.grad(loss_of(net(x[i : i + 1]), y[i : i + 1]), list(net.parameters()))
        rows.append(torch.cat([g.ravel() for g in gradient]))
    return torch.stack(rows).var(0).sum().item()


def check(name, net, loss, loss_of, arrays, folder):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        np.savez(folder / "set.npz", **arrays)
        x, y = as_tensor(arrays["train_inputs"]), as_tensor(arrays["train_targets"])
        exported = exporting.export(net, x[:5].float() if x.is_floating_point() else x[:5], folder / "net.pt")
        record = {exporting.RECORD: ""}
        torch.jit.load(exported.path, _extra_files=record)
        made_by = json.loads(record[exporting.RECORD])["torch"]
        compare(f"{name}: the file says which torch made it", made_by == torch.__version__, True, why="this one")
        run = trained_by_basin(folder, exported.path, loss)
        theirs = trained_by_torch(net, loss_of, x, y)
        named = dict(theirs.named_parameters())
        with h5py.File(run / "ckpt/end.h5") as file:
            weights, buffers = stored(file, "model"), stored(file, "buffers")
        for key, value in weights.items():
            compare(f"{name}: {key} after {UPDATES} updates", value, named[key.removeprefix("self.")].detach().numpy(), atol=1e-11,
                    why="float64, some thousand roundings amplified by training")  # fmt: skip
        state = theirs.state_dict()
        for key, value in buffers.items():
            state[key].copy_(torch.tensor(value))
        if buffers:
            norm = [part for part in theirs.modules() if isinstance(part, nn.BatchNorm2d)]
            for part in norm:
                part.reset_running_stats()
                part.momentum = 1.0
            theirs.train()
            theirs(x)
            theirs.eval()
            for key, value in buffers.items():
                compare(
                    f"{name}: {key}",
                    value,
                    theirs.state_dict()[key].numpy(),
                    atol=1e-10,
                    why="float64, divided by a momentum found by trial",
                )
        with h5py.File(run / "run.h5") as file:
            loss = file["summary"].attrs["train_loss"]
        compare(f"{name}: training loss", loss, loss_of(theirs(x), y).item(), rtol=1e-10, why="float64")
        with h5py.File(run / "probes/end.top_eigenvalues.h5") as file:
            top = file["quantities/lambda"]
            found, residual = np.ravel(top["value"][()])[0], np.ravel(top["uncertainty"][()])[0]
        compare(
            f"{name}: largest eigenvalue",
            found,
            largest_eigenvalue(theirs, x, y, loss_of),
            atol=residual + 1e-9,
            why="the stored residual, and rounding",
        )
        with h5py.File(run / "probes/end.gradient_statistics.h5") as file:
            found = np.ravel(file["quantities/tr_sigma/value"][()])[0]
        compare(
            f"{name}: variance of single gradients",
            found,
            gradient_variance(theirs, x, y, loss_of),
            rtol=1e-9,
            why="float64, a difference of squares",
        )


def refuses(what, net, example, said):
    with tempfile.TemporaryDirectory() as folder:
        try:
            exporting.export(net, example, pathlib.Path(folder) / "net.pt")
            text = "nothing"
        except exporting.ExportError as fault:
            text = str(fault)
    compare(f'basin.export() refuses {what}: "{text}"', said in text, True, why=f'it must say "{said}"')


def engine_refuses(what, script, inputs, said):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        torch.jit.save(script, folder / "net.pt")
        np.savez(folder / "data.npz", train_inputs=inputs, train_targets=np.arange(len(inputs)) % 3)
        command = [
            os.environ["BASIN_BINARY"],
            "probe",
            "--script",
            folder / "net.pt",
            "--data",
            folder / "data.npz",
            "--out",
            folder,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    text = done.stderr.strip()
    compare(f'basin refuses {what}: "{text}"', done.returncode != 0 and said in text and "\n" not in text, True, why="one line")


class Returns(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(6, 3), function

    def forward(self, x):
        return self.function(self.linear(x))


class Flash(nn.Module):
    """The kernel by its name, which no setting of attention takes away."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 8)

    def forward(self, x):
        q = self.linear(x).view(x.size(0), 1, 2, 4)
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)[0].flatten(1)


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        return self.linear(x.view(4, 6))


class Moded(Returns):
    """Dropout that no module shows, in a network that can't be scripted."""

    def forward(self, x):
        return self.function(F.dropout(self.linear(x), 0.5, self.training))


class FailsInTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        return self.linear(x.view(-1, 5) if self.training else x)


class AnotherWhenScripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        return 2 * self.linear(x) if torch.jit.is_scripting() else self.linear(x)


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(6, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)


def names_what_is_unused():
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        exported = exporting.export(Unused(), torch.randn(4, 6), pathlib.Path(folder) / "net.pt")
    compare("parameters that don't enter the output", exported.unused == ("other.weight", "other.bias"), True, why="other's")
    warned = [str(w.message) for w in said if "don't enter the output: other.weight, other.bias" in str(w.message)]
    compare("warnings of these", len(warned), 1, why="one line")


def refusals():
    x = torch.randn(4, 6)
    refuses("two outputs", Returns(lambda y: (y, y)), x, "returns tuple, not one tensor of logits")
    refuses("images", Returns(lambda y: y[:, None, None]), x, "returns [4, 1, 1, 3] for 4 inputs; [4, classes] is expected")
    refuses("a fixed batch", Fixed(), x, "fails on another number of inputs")
    refuses("outputs that depend on each other", nn.Sequential(nn.Linear(6, 3), nn.Softmax(dim=0)), x, "depends on the others")
    refuses(
        "a mode that a trace would fix",
        nn.Sequential(Returns(lambda y: y), nn.Dropout(0.5)),
        x,
        "a trace would fix the mode of 1",
    )
    refuses(
        "a mode that a trace would fix, hidden",
        Moded(lambda y: y),
        x,
        "a trace would fix the mode: training and eval mode differ",
    )
    refuses("a network that fails in training", FailsInTraining(), x, "fails in training mode: ")
    refuses("a script that does something else", AnotherWhenScripted(), x, "the script's outputs are not the network's")
    refuses("one example", nn.Linear(6, 3), x[:1], "example has one input")
    frozen = nn.Linear(6, 3).requires_grad_(False)
    refuses("frozen weights", frozen, x, "no parameter requires a gradient")
    refuses("integers where floats are meant", nn.Linear(6, 3), np.arange(24).reshape(4, 6), "fails on example (int64 [4, 6]): ")
    refuses("flash attention inside", Flash(), x, "no second derivatives: ")
    engine_refuses("a frozen script", torch.jit.freeze(torch.jit.script(nn.Linear(6, 3).eval())), x.numpy(),
                   "no parameter that is trained: a frozen script can't be measured")  # fmt: skip
    normed = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)).eval()
    engine_refuses(
        "a trace of a batch norm", torch.jit.trace(normed, x), x.numpy(), "a trace fixes the mode: use torch.jit.script"
    )
    engine_refuses("a trace for one batch size", torch.jit.trace(Fixed(), x), x.numpy(), "fails on 3 inputs [6] of Float: ")
    engine_refuses(
        "integers where floats are meant", torch.jit.script(nn.Linear(6, 3)), np.arange(24).reshape(4, 6), " of Long: "
    )


def sine_examples():
    """Also in tests/python/networks/test_torchscript.py."""
    x = np.sin(1 + 3 * np.arange(24 * 3 * 8 * 8)).reshape(24, 3, 8, 8).astype(np.float32)
    return torch.tensor(x), torch.arange(24) % 10


def write_fixture():
    torch.manual_seed(4)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), Residual(4, nn.BatchNorm2d), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)
    )
    x, y = sine_examples()
    net.train()(x)
    exporting.export(net.eval(), x, FIXTURE.with_suffix(".pt"))
    net, x = net.double(), x.double()
    numbers = {"lambda_1": largest_eigenvalue(net, x, y), "tr_sigma": gradient_variance(net, x, y)}
    FIXTURE.with_suffix(".json").write_text(json.dumps(numbers) + "\n")


def main():
    if sys.argv[1:] == ["--write"]:
        write_fixture()
        return
    for network in networks():
        with tempfile.TemporaryDirectory() as folder:
            check(*network, pathlib.Path(folder))
    refusals()
    names_what_is_unused()
    finish()


if __name__ == "__main__":
    main()
