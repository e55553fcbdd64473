"""basin.measure() on networks of PyTorch, transformers and JAX against the same networks within Basin, exported by basin.export() and
measured by `basin probe --script` and `basin landscape`, in float64, PyTorch's in float32 too; then a language model, whose labels no
file holds, against PyTorch and scipy.

Loss, gradient and what follows from them by the same draws are compared to 1e-8 of themselves (in float32 1e-4), eigenvalues to their
stored residuals.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn

import basin
from _oracle import compare, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROBES = ["top_eigenvalues", "sharpness_sam", "noise_scale", "sharpness_keskar", "gradient_statistics", "sharpness_adaptive"]
OPTIONS = {"top_eigenvalues.tolerance": 1e-7, "sharpness_sam.group_size": 8, "sharpness_adaptive.logits": ["plain"]}
N, CLASSES = 40, 4
RTOL = {"float64": 1e-8, "float32": 1e-4}
SUMS = "sums in another order"


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.GroupNorm(2, width)

    def forward(self, x):
        return F.softplus(x + self.norm(self.conv(x)))


def group_norm_net():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8), nn.AvgPool2d(2), Residual(8), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, CLASSES))  # fmt: skip


class Logits(nn.Module):
    """What basin.export() takes of a model whose outputs are an object."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        for part in list(model.modules()):  # a trace would fix their mode, and basin.export() refuses it
            for name, child in part.named_children():
                if isinstance(child, nn.Dropout):
                    setattr(part, name, nn.Identity())

    def forward(self, pixels):
        return self.model(pixels).logits


def vision_transformer():
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(
        ViTConfig(image_size=8, patch_size=4, num_channels=3, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                  intermediate_size=32, num_labels=CLASSES)
    )  # fmt: skip


def examples():
    random = np.random.default_rng(2)
    return random.normal(size=(N, 3, 8, 8)).astype(np.float32), np.arange(N) % CLASSES


def within_basin(network, folder, dtype):
    """Tables of the probes and the loss, measured on the network's file."""
    x, y = examples()
    np.savez(folder / "data.npz", train_inputs=x, train_targets=y)
    basin.export(network, x[:5], folder / "net.pt")
    command = [os.environ["BASIN_BINARY"], "probe", "--script", str(folder / "net.pt"), "--data", str(folder / "data.npz")]
    command += [
        "--only",
        ",".join(PROBES),
        "--subset",
        "0",
        "--dtype",
        dtype,
        "--micro-batch",
        "16",
        "--out",
        str(folder / "out"),
    ]
    for key, value in OPTIONS.items():
        command += ["--set", f"{key}={value}".replace("'", '"')]
    subprocess.run(command, check=True, capture_output=True)
    return {probe: basin.read_probe(path) for probe in PROBES for path in folder.glob(f"out/runs/*/probes/end.{probe}.h5")}


PLANE = {"plane.alpha_points": 5, "plane.beta_points": 5}


def compare_planes(name, problem, folder, dtype):
    """`folder` has what within_basin() left. The directions are drawn by the same seed."""
    [run] = folder.glob("out/runs/*")
    command = [os.environ["BASIN_BINARY"], "landscape", str(run), "--kind", "plane", "--out", str(folder / "within.h5")]
    settings = PLANE | {"landscape.subset": 0, "landscape.micro_batch": 16, "landscape.dtype": f'"{dtype}"'}
    command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    subprocess.run(command, check=True, capture_output=True)
    ours, theirs = basin.surface(folder / "within.h5").plot, basin.landscape(problem, options=PLANE, progress=False).plot
    compare(f"{name}: losses of a plane", theirs["train_loss"], ours["train_loss"], rtol=RTOL[dtype], why=SUMS)
    lengths = [surface.attributes["length_alpha"] for surface in (theirs, ours)]
    compare(f"{name}: a plane's length", *lengths, rtol=RTOL[dtype], why=SUMS)


def compare_tables(name, within, folder, dtype):
    rtol = RTOL[dtype]
    for probe, ours in within.items():
        theirs = basin.read_probe(folder / f"probes/end.{probe}.h5")
        compare(f"{name}: loss of {probe}", theirs.attributes["subset_loss"], ours.attributes["subset_loss"], rtol=rtol, why=SUMS)
        compare(f"{name}: names of {probe}", list(theirs.table.entry) == list(ours.table.entry), True, why="the same numbers")
        for (_, a), (_, b) in zip(theirs.table.iterrows(), ours.table.iterrows()):
            if np.isnan(b.value):
                continue
            allowed, why = {"rtol": rtol}, SUMS
            if a.uncertainty_kind == "residual" and a.units.startswith("loss"):
                allowed, why = {"atol": a.uncertainty + b.uncertainty, "rtol": rtol}, "both residuals"
            compare(f"{name}: {a.entry} of {probe}", a.value, b.value, **allowed, why=why)


def check(name, network, problem, folder, dtype="float64"):
    """`problem` is of the network's weights and the examples."""
    within = within_basin(network, folder, dtype)
    basin.measure(problem, PROBES, out=folder, options=OPTIONS, progress=False)
    compare_tables(name, within, folder, dtype)
    compare_planes(name, problem, folder, dtype)


def torch_problem(by_example, graph_bytes):
    def make(net):
        x, y = examples()
        dtype = next(net.parameters()).dtype
        batches = [(torch.tensor(x[i : i + 16], dtype=dtype), torch.tensor(y[i : i + 16])) for i in range(0, N, 16)]

        def loss(net, batch):
            return F.cross_entropy(net(batch[0]), batch[1], reduction="none" if by_example else "mean")

        return basin.torch_problem(net, loss, batches, graph_bytes=graph_bytes)

    return make


def check_torch():
    for by_example in (True, False):
        torch.manual_seed(1)
        net = group_norm_net().train()
        with tempfile.TemporaryDirectory() as folder:
            double = group_norm_net().double()
            double.load_state_dict(net.state_dict())
            make = torch_problem(by_example, graph_bytes=1 << 20 if by_example else 0)
            check(f"torch, {'losses by example' if by_example else 'a mean'}", net, make(double), pathlib.Path(folder))
            compare("weights afterwards", all(torch.equal(a.double(), b) for a, b in zip(net.parameters(), double.parameters())), True,
                    why="they are put back")  # fmt: skip
            compare("mode afterwards", double.training, True, why="it is put back")
    with tempfile.TemporaryDirectory() as folder:
        problem = torch_problem(by_example=True, graph_bytes=0)(net)
        check("torch in float32", net, problem, pathlib.Path(folder), "float32")


def check_weighted_batches():
    """Any weights, which the engine may ask for: examples twice, weights below 0. By hand: the gradient of the weighted sum."""
    torch.manual_seed(8)
    net = group_norm_net().double().eval()
    x, y = torch.tensor(examples()[0]).double(), torch.tensor(examples()[1])
    index, share = np.array([3, 21, 3, 39, 17]), np.array([0.5, -0.2, 1.5, 0.1, 0.3])
    loss = F.cross_entropy(net(x[index]), y[index], reduction="none") @ torch.tensor(share)
    gradient = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
    v = torch.randn(sum(g.numel() for g in gradient), dtype=torch.float64)
    flat = torch.cat([g.flatten() for g in gradient])
    product = torch.cat([h.flatten() for h in torch.autograd.grad(flat @ v, list(net.parameters()))])
    for by_example in (True, False):
        problem, name = torch_problem(by_example, graph_bytes=0)(net), "by example" if by_example else "a mean"
        w = problem.weights()
        value, found = problem.batch_gradient(w, index, share)
        compare(f"weighted batch, {name}: loss", value, loss.item(), rtol=1e-12, why=SUMS)
        compare(f"weighted batch, {name}: gradient", found, flat.detach().numpy(), atol=1e-12, why=SUMS)
        found = problem.batch_product(w, v.numpy(), index, share)
        compare(f"weighted batch, {name}: product", found, product.numpy(), atol=1e-12, why=SUMS)
        problem.restore()


def check_transformers():
    torch.manual_seed(2)
    model = vision_transformer()
    x, y = examples()
    double = vision_transformer().double()
    double.load_state_dict(model.state_dict())
    batches = [
        {"pixel_values": torch.tensor(x[i : i + 16], dtype=torch.float64), "labels": torch.tensor(y[i : i + 16])}
        for i in range(0, N, 16)
    ]
    with tempfile.TemporaryDirectory() as folder:
        check("transformers", Logits(model), basin.transformers_problem(double, batches), pathlib.Path(folder))


class Shuffled(list):
    """In another order each time."""

    def __iter__(self):
        self.reverse()
        return super().__iter__()


def check_jax():
    import jax
    import jax.numpy as jnp

    torch.manual_seed(4)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 12), nn.Tanh(), nn.Linear(12, CLASSES))
    x, y = examples()
    # As PyTorch has them, weight before bias: JAX sorts keys. Arrays are numpy's: JAX has no float64 yet, jax_problem() switches it on.
    params = [[p.weight.detach().double().numpy(), p.bias.detach().double().numpy()] for p in (net[1], net[3])]

    def losses(params, batch):
        (w1, b1), (w2, b2) = params
        logits = jnp.tanh(batch[0].reshape(len(batch[0]), -1) @ w1.T + b1) @ w2.T + b2
        return -jax.nn.log_softmax(logits)[jnp.arange(len(logits)), batch[1]]

    batches = [(x[i : i + 16].astype(np.float64), y[i : i + 16]) for i in range(0, N, 16)]
    compare("JAX before: float64", jax.config.jax_enable_x64, False, why="jax_problem() is to switch it on")
    refuses("a generator under JAX", lambda: basin.jax_problem(losses, params, iter(batches)), "read once only")
    refuses(
        "a loader that shuffles under JAX", lambda: basin.jax_problem(losses, params, Shuffled(batches)), "gives other examples"
    )
    weights = np.arange(1.0, N + 1)
    weighted = [(*batch, weights[16 * i : 16 * i + 16]) for i, batch in enumerate(batches)]

    def masked_mean(p, b):
        return (losses(p, b) * b[2]).sum() / b[2].sum()

    said = "the loss has to be the plain mean over examples"
    refuses("a weighted mean under JAX", lambda: basin.jax_problem(masked_mean, params, weighted), said)
    for name, loss_fn in {"losses by example": losses, "a mean": lambda params, batch: losses(params, batch).mean()}.items():
        with tempfile.TemporaryDirectory() as folder:
            kinds = {"*.1": "bias"}
            check(f"JAX, {name}", net, basin.jax_problem(loss_fn, params, batches, kinds=kinds), pathlib.Path(folder))


def check_language_model():
    """A mean over tokens, tied embeddings, and parameters that aren't trained. transformers computes the loss in float32."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(5)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=29, n_positions=16, n_embd=12, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    ).double()
    model.transformer.wpe.weight.requires_grad_(False)
    tokens = torch.randint(29, (24, 16), generator=torch.Generator().manual_seed(6))
    batches = [{"input_ids": part, "labels": part} for part in tokens.split(10)]
    table = basin.measure(
        basin.transformers_problem(model, batches), ["top_eigenvalues", "noise_scale"],
        options={"top_eigenvalues.tolerance": 1e-5, "noise_scale.estimator": "per_example"}, progress=False,
    )  # fmt: skip
    parameters = [p for p in model.parameters() if p.requires_grad]
    size = sum(p.numel() for p in parameters)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        model.eval()
        gradient = torch.autograd.grad(model(tokens, labels=tokens).loss, parameters, create_graph=True)
        flat = torch.cat([g.reshape(-1) for g in gradient])

        def product(v):
            return torch.cat(
                [h.reshape(-1) for h in torch.autograd.grad(flat @ torch.tensor(v.ravel()), parameters, retain_graph=True)]
            ).numpy()

        theirs = eigsh(LinearOperator((size, size), matvec=product, dtype=np.float64), k=1, which="LA")[0][0]
        rows = []
        for one in tokens:
            single = torch.autograd.grad(model(one[None], labels=one[None]).loss, parameters)
            rows.append(torch.cat([g.reshape(-1) for g in single]))
    [ours] = table[table.entry == "lambda_1"].itertuples()
    compare(
        "GPT-2: largest eigenvalue", ours.value, theirs, atol=ours.uncertainty, rtol=1e-6, why="the stored residual, and float32"
    )
    [noise] = table[table.entry == "tr_sigma"].itertuples()
    compare("GPT-2: variance of single gradients", noise.value, torch.stack(rows).var(0).sum().item(), rtol=1e-6, why="float32")


def refuses(what, make, said):
    try:
        basin.measure(make(), ["top_eigenvalues"], progress=False)
        text = "nothing"
    except basin.MeasureError as fault:
        text = str(fault)
    compare(f'basin.measure() refuses {what}: "{text}"', said in text and "\n" not in text, True, why=f'it must say "{said}"')


def refusals():
    x, y = torch.randn(12, 6), torch.arange(12) % 3
    data = torch.utils.data.TensorDataset(x, y)
    mean = lambda net, batch: F.cross_entropy(net(batch[0]), batch[1])  # noqa: E731

    def problem(net=None, loss=mean, loader=((x, y),)):
        return basin.torch_problem(net or nn.Linear(6, 3), loss, loader)

    shuffled = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    refuses("a loader that shuffles", lambda: problem(loader=shuffled), "gives other examples when it is read again")

    def augmented(rows):
        return torch.randn(len(rows), 6), torch.zeros(len(rows), dtype=torch.long)

    noisy = torch.utils.data.DataLoader(data, batch_size=4, collate_fn=augmented)
    refuses("a loader that augments", lambda: problem(loader=noisy), "gives other examples when it is read again")
    refuses("a generator", lambda: problem(loader=iter([(x, y)])), "can be read once only")
    refuses("an empty loader", lambda: problem(loader=[]), "has no batches")
    refuses(
        "dropout that is on in eval mode",
        lambda: problem(loss=lambda net, b: F.cross_entropy(net(F.dropout(b[0], training=True)), b[1])),
        "the examples must be the same each time",
    )
    refuses("a loss of another shape", lambda: problem(loss=lambda net, b: net(b[0])), "loss_fn returns [12, 3]")
    refuses("half precision", lambda: problem(net=nn.Linear(6, 3).half()), "all parameters are to be float32")
    refuses("frozen weights", lambda: problem(net=nn.Linear(6, 3).requires_grad_(False)), "no parameter requires a gradient")
    refuses(
        "a batch of arrays of different lengths",
        lambda: problem(loader=[(x, y[:5])]),
        "the arrays of a batch have [5, 12] examples",
    )
    uneven = [{"x": x[:6], "n": torch.tensor([1, 1, 1, 1, 1, 9])}, {"x": x[6:], "n": torch.tensor([5, 1, 2, 2, 2, 2])}]
    weighted = lambda net, b: (net(b["x"]).square().mean(1) * b["n"]).sum() / b["n"].sum()  # noqa: E731
    refuses("a mean over something else than examples", lambda: problem(loss=weighted, loader=uneven), "plain mean")


def keeps_its_weights():
    """After an exception too."""
    net = nn.Linear(6, 3)
    before = [p.clone() for p in net.parameters()]

    def fails(net, batch):
        if not torch.equal(net.weight, before[0]):
            raise ArithmeticError("mine")
        return F.cross_entropy(net(batch[0]), batch[1], reduction="none")

    problem = basin.torch_problem(net.train(), fails, [(torch.randn(12, 6), torch.arange(12) % 3)])
    try:
        basin.measure(problem, ["sharpness_keskar"], progress=False)
        raised = "nothing"
    except ArithmeticError as fault:
        raised = str(fault)
    compare(f'an exception of the user\'s: "{raised}"', raised == "mine", True, why="it is raised as it is")
    compare("weights after it", all(torch.equal(a, b) for a, b in zip(before, net.parameters())), True, why="they are put back")
    compare("mode after it", net.training, True, why="it is put back")


class Folded(nn.Linear):
    """A layer with an adapter that is a part of the weight in eval mode, as merge_weights has it in Microsoft's loralib."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.weight.requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(2, inputs)), nn.Parameter(torch.randn(outputs, 2))
        self.folded = False

    def train(self, mode=True):
        super().train(mode)
        if self.folded == mode:
            self.weight.data += (-1 if mode else 1) * self.up.data @ self.down.data
            self.folded = not mode
        return self

    def forward(self, x):
        out = super().forward(x)
        return out if self.folded else out + x @ self.down.T @ self.up.T


def takes_apart_what_eval_mode_folds():
    torch.manual_seed(7)
    net = nn.Sequential(Folded(6, 5), nn.Tanh(), nn.Linear(5, 3)).train()
    weight = net[0].weight.detach().clone()
    batches = [(torch.randn(12, 6), torch.arange(12) % 3)]
    problem = basin.torch_problem(net, lambda net, batch: F.cross_entropy(net(batch[0]), batch[1]), batches)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        problem.gradient(problem.weights())
        problem.restore()
    named = [str(w.message) for w in said if "0.down, 0.up" in str(w.message)]
    compare("parameters without a derivative, warnings", len(named), 1, why="they are folded into another in eval mode")
    off = float((net[0].weight - weight).abs().max())
    compare("the weight that took them up", off, 0.0, atol=1e-6, why="added and taken away in float32")
    compare("its layer's mode", (net[0].training, net[0].folded), (True, False), why="train() puts it back")


def five_lines_work():
    """As they stand in the documents, with a network and a loader of this page's."""
    x, y = examples()
    data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
    for page in ("README.md", "docs/your-network.md"):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.S)
        [lines] = [block for block in blocks if "basin.torch_problem(" in block]
        names = {"net": group_norm_net(), "loader": torch.utils.data.DataLoader(data, batch_size=16)}
        exec(lines, names)
        numbers = names["numbers"]
        found = sorted(set(numbers.probe)) == ["noise_scale", "sharpness_keskar", "top_eigenvalues"]
        compare(f"{page}: every probe has numbers", found, True, why="they are asked for")
        compare(f"{page}: a plane", names["plane"].plot["train_loss"].shape, (25, 25), why="it is asked for")
        compare(f"{page}: a failure", "failed" in set(numbers.status), False, why="the lines work")


def main():
    check_torch()
    check_weighted_batches()
    check_transformers()
    check_jax()
    check_language_model()
    refusals()
    keeps_its_weights()
    takes_apart_what_eval_mode_folds()
    five_lines_work()
    finish()


if __name__ == "__main__":
    main()
