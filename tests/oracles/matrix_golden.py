"""Golden traces of the methods that know matrices or averages from the printed formulas: Adafactor, Shampoo, SOAP, schedule-free ones.

    matrix_golden.py            compares tests/optim/golden_matrices.h with what this program computes, and that with torch.optim
                                and pytorch-optimizer 4.1.0
    matrix_golden.py --write    writes that file

A matrix, filters of a convolution, a bias and a norm weight whose gradient is zero in one step; five steps at different rates.
Shampoo's roots are powers of the dense Kronecker product here. Where those packages have another formula, says the comparison.
"""

import functools
import pathlib

import numpy as np

from _oracle import compare, golden_header, keep_file
from optim_golden import braces, lines_of_traces

HEADER = pathlib.Path(__file__).resolve().parents[1] / "optim" / "golden_matrices.h"

NAMES = ["fc.weight", "conv.weight", "fc.bias", "norm.weight"]
KINDS = ["weight", "weight", "bias", "norm_weight"]
SIZES = [(3, 2), (2, 3, 2, 2), (3,), (2,)]
RATES = [0.02, 0.1, 0.05, 0.05, 0.03]
CONSTANT = [0.05] * 5
LARGE = [0.2, 1.0, 0.5, 0.9, 0.3]  # two of them above 1/sqrt(t)
USUAL = ["bias", "norm_weight", "norm_bias"]
random = np.random.default_rng(5)
START = [random.normal(size=sizes).round(3) for sizes in SIZES]
GRADIENTS = [[random.normal(size=sizes).round(3) for sizes in SIZES] for _ in RATES]
GRADIENTS[1][3] = np.zeros(2)

CASES = [
    ("adafactor", {}),
    ("adafactor", {"factored": "last_two", "relative_step": True, "weight_decay": 0.1}),
    (
        "adafactor",
        {"scale_parameter": False, "clip_threshold": 0.5, "decay_rate": 0.5, "exclude_from_decay": [], "weight_decay": 0.2},
    ),
    ("adafactor", {"beta1": 0.8, "eps1": 1e-3, "eps2": 2.0, "clip_threshold": 0.0}),
    ("adafactor", {"beta1": 0.8, "factored": "last_two", "scale_parameter": False}),
    ("shampoo", {"momentum": 0.0}),
    ("shampoo", {"weight_decay": 0.1, "eps": 0.01, "precondition_frequency": 2}),
    ("shampoo", {"accumulation": "average", "beta2": 0.8, "exponent": 0.5, "eps": 0.1, "momentum": 0.5}),
    ("shampoo", {"momentum": 0.0, "max_dimension": 2, "exclude_from_decay": [], "weight_decay": 0.2}),
    ("soap", {"skip_first": True, "weight_decay": 0.0, "precondition_frequency": 2}),
    ("soap", {"eps": 0.01, "weight_decay": 0.1, "precondition_frequency": 1, "beta1": 0.5, "beta2": 0.75}),
    (
        "soap",
        {"eps": 0.01, "max_dimension": 2, "precondition_vectors": True, "precondition_frequency": 3, "exclude_from_decay": []},
    ),
    ("schedule_free_sgd", {}),
    (
        "schedule_free_sgd",
        {"momentum": 0.7, "averaging_power": 1.5, "rate_power": 1.0, "weight_decay": 0.2, "exclude_from_decay": []},
    ),
    ("schedule_free_adamw", {}),
    ("schedule_free_adamw", {"beta1": 0.7, "beta2": 0.75, "eps": 0.01, "rate_power": 0.0, "weight_decay": 0.1}),
]


def rms(x):
    return float(np.sqrt(np.mean(x * x)))


def adafactor(
    w,
    g,
    state,
    lr,
    t,
    wd,
    beta1=0.0,
    decay_rate=0.8,
    eps1=1e-30,
    eps2=1e-3,
    clip_threshold=1.0,
    scale_parameter=True,
    relative_step=False,
    factored="matrix",
):
    """Shazeer & Stern 2018, algorithm 4, with the row and column sums of its algorithm 3."""
    beta2 = 1 - t**-decay_rate
    squares = g * g + eps1
    if w.ndim > 1:
        m = squares.reshape(len(w), -1) if factored == "matrix" else squares
        rows, columns = m.sum(axis=-1), m.sum(axis=-2)
        state["r"] = beta2 * state.get("r", 0) + (1 - beta2) * rows
        state["c"] = beta2 * state.get("c", 0) + (1 - beta2) * columns
        v = state["r"][..., :, None] * state["c"][..., None, :] / state["r"].sum(axis=-1)[..., None, None]
        v = v.reshape(w.shape)
    else:
        v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * squares
    u = g / np.sqrt(v)
    scale = max(eps2, rms(w)) if scale_parameter else 1.0
    clip = max(1.0, rms(u) / clip_threshold) if clip_threshold else 1.0
    step = u / clip
    if beta1:
        step = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * step
    rho = min(lr, 1 / np.sqrt(t)) if relative_step else lr
    return w - rho * scale * step - lr * wd * w, scale / clip


def power(matrix, p):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(np.maximum(values, 0) ** p) @ vectors.T


def grams(g):
    return [np.tensordot(g, g, axes=[[i for i in range(g.ndim) if i != d]] * 2) for d in range(g.ndim)]


def shampoo(
    w,
    g,
    state,
    lr,
    t,
    wd,
    momentum=0.9,
    accumulation="sum",
    beta2=0.95,
    exponent=0.0,
    eps=1e-6,
    precondition_frequency=1,
    max_dimension=512,
):
    """Gupta et al. 2018, algorithms 1 and 2, on vec(W): the Kronecker product of the factors, as one matrix."""
    old = state.get("s", [0] * w.ndim)
    if accumulation == "sum":
        state["s"], correction = [s + new for s, new in zip(old, grams(g))], 1
    else:
        state["s"], correction = [beta2 * s + (1 - beta2) * new for s, new in zip(old, grams(g))], 1 - beta2**t
    state["m"] = momentum * state.get("m", 0) + (1 - momentum) * g
    if (t - 1) % precondition_frequency == 0:
        kept = [s / correction * (np.eye(len(s)) if len(s) > max_dimension else 1) + eps * np.eye(len(s)) for s in state["s"]]
        state["p"] = power(functools.reduce(np.kron, kept), -(exponent or 1 / (2 * w.ndim)))
    return w - lr * (state["p"] @ state["m"].ravel()).reshape(w.shape) - lr * wd * w, None


def soap(
    w,
    g,
    state,
    lr,
    t,
    wd,
    beta1=0.95,
    beta2=0.95,
    eps=1e-8,
    precondition_frequency=10,
    max_dimension=2048,
    precondition_vectors=False,
    skip_first=False,
):
    """Vyas et al. 2024, algorithm 3, with the bases as one matrix on vec(W)."""
    wanted = [(w.ndim > 1 or precondition_vectors) and n <= max_dimension for n in w.shape]
    n = t - 1 if skip_first else t
    if t == 1:
        state["s"] = [(1 - beta2) * s for s in grams(g)]
        state["q"] = [np.linalg.eigh(s)[1][:, ::-1] if has else np.eye(len(s)) for s, has in zip(state["s"], wanted)]
        state["m"], state["v"] = np.zeros_like(w), np.zeros_like(w)
    elif n > 1 and (n - 1) % precondition_frequency == 0:
        for d, has in enumerate(wanted):
            if has:
                product = state["s"][d] @ state["q"][d]
                order = np.argsort(-(state["q"][d] * product).sum(axis=0), kind="stable")
                state["v"] = np.take(state["v"], order, axis=d)
                state["q"][d] = np.linalg.qr(product[:, order])[0]
    if n > 0:
        q = functools.reduce(np.kron, state["q"])
        state["m"] = beta1 * state["m"] + (1 - beta1) * g
        state["v"] = beta2 * state["v"] + (1 - beta2) * ((q.T @ g.ravel()) ** 2).reshape(w.shape)
        below = (np.sqrt(state["v"].ravel()) + eps) / np.sqrt(1 - beta2**n)
        step = q @ (q.T @ state["m"].ravel() / (1 - beta1**n) / below)
        w = w - lr * step.reshape(w.shape) - lr * wd * w
    if t > 1:
        state["s"] = [beta2 * s + (1 - beta2) * new for s, new in zip(state["s"], grams(g))]
    return w, None


def schedule_free(w, g, state, lr, t, wd, momentum, direction, averaging_power=0.0, rate_power=2.0):
    """Defazio et al. 2024, equations 1 to 3. w is x; the gradients are those at y."""
    z = state.get("z", w)
    y = (1 - momentum) * z + momentum * w
    state["z"] = z - lr * (direction + wd * y)
    state["most"] = max(state.get("most", 0), lr)
    weight = t**averaging_power * state["most"] ** rate_power
    state["sum"] = state.get("sum", 0) + weight
    share = weight / state["sum"]
    return (1 - share) * w + share * state["z"], None


def schedule_free_sgd(w, g, state, lr, t, wd, momentum=0.9, **averaging):
    return schedule_free(w, g, state, lr, t, wd, momentum, g, **averaging)


def schedule_free_adamw(w, g, state, lr, t, wd, beta1=0.9, beta2=0.999, eps=1e-8, **averaging):
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    r = np.zeros_like(g)
    moved = g != 0
    r[moved] = g[moved] / (np.sqrt(state["v"][moved] / (1 - beta2**t)) + eps)
    return schedule_free(w, g, state, lr, t, wd, beta1, r, **averaging)


METHODS = {m.__name__: m for m in (adafactor, shampoo, soap, schedule_free_sgd, schedule_free_adamw)}
DECAYS = {"soap": 0.01}  # by default; the others have none


def decays_of(method, options):
    wd = options.get("weight_decay", DECAYS.get(method, 0.0))
    return [0.0 if kind in options.get("exclude_from_decay", USUAL) else wd for kind in KINDS]


def trace(method, options, rates=RATES):
    own = {key: value for key, value in options.items() if key not in ("weight_decay", "exclude_from_decay")}
    weights, states, steps = list(START), [{} for _ in START], []
    for t, (gradients, lr) in enumerate(zip(GRADIENTS, rates), start=1):
        moved = [
            METHODS[method](w, g, state, lr, t, wd, **own)
            for w, g, state, wd in zip(weights, gradients, states, decays_of(method, options))
        ]
        weights = [w for w, _ in moved]
        steps.append((np.concatenate([w.ravel() for w in weights]).tolist(), [ratio for _, ratio in moved]))
    return steps


def flat(tensors):
    return "{" + ", ".join(braces(t.ravel().tolist()) for t in tensors) + "}"


def header():
    sizes = "{" + ", ".join("{" + ", ".join(map(str, s)) + "}" for s in SIZES) + "}"
    lines = [
        "struct MatrixStep {",
        "  std::vector<double> weights, trust_ratios;",
        "};",
        "struct MatrixTrace {",
        "  std::string optimizer;",
        "  std::vector<std::string> settings;",
        "  std::vector<MatrixStep> steps;",
        "};",
        "",
        "inline const std::vector<std::string> matrix_names{" + ", ".join(f'"{n}"' for n in NAMES) + "};",
        "inline const std::vector<std::string> matrix_kinds{" + ", ".join(f'"{k}"' for k in KINDS) + "};",
        f"inline const std::vector<std::vector<int64_t>> matrix_sizes{sizes};",
        f"inline const std::vector<std::vector<double>> matrix_start{flat(START)};",
        "inline const std::vector<std::vector<std::vector<double>>> matrix_gradients{",
        *(f"    {flat(g)}," for g in GRADIENTS),
        "};",
        f"inline const std::vector<double> matrix_rates{braces(RATES)};",
        "",
        "inline const std::vector<MatrixTrace> matrix_traces{",
    ]
    lines += lines_of_traces(CASES, trace)
    includes = ("cmath", "cstdint", "string", "vector")
    return golden_header("golden traces of optimisers on matrices", "matrix_golden.py", [*lines, "};"], includes)


# ---- the packages ----------------------------------------------------------------------------------------------------------


def followed(torch, make, rates, shown=None):
    """Weights after the steps of make(parameter groups); `shown` is called before they are read."""
    parameters = [torch.tensor(w, requires_grad=True) for w in START]
    optimizer = make([{"params": [p], "name": name} for p, name in zip(parameters, NAMES)])
    for gradients, lr in zip(GRADIENTS, rates):
        for group in optimizer.param_groups:
            group["lr"] = lr
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = torch.tensor(gradient)
        optimizer.step()
    if shown:
        shown(optimizer)
    return [p.detach().numpy() for p in parameters]


def soap_with_exact_bases(torch, peer):
    """Its method with the QR decomposition in float64, where it casts to float32."""

    class Exact(peer.SOAP):
        def get_orthogonal_matrix_qr(self, state, max_precondition_dim=10000, merge_dims=False):
            bases = []
            for d, (gram, q) in enumerate(zip(state["GG"], state["Q"])):
                if len(gram) == 0:
                    bases.append([])
                    continue
                order = torch.argsort((q * (gram @ q)).sum(dim=0), descending=True)
                state["exp_avg_sq"] = state["exp_avg_sq"].index_select(d, order)
                bases.append(torch.linalg.qr((gram @ q).index_select(1, order))[0])
            return bases

    return Exact


def peers(torch, peer):
    """Rows: what, our method and options, rates, the other's optimiser, tolerance and why, more for followed()."""
    exact = (1e-12, "float64, five steps")
    relative = {"relative_step": True, "factored": "last_two"}
    ours = {"factored": "last_two"}
    free_decay = {"weight_decay": 0.1, "exclude_from_decay": []}
    evaluated = {"shown": lambda optimizer: optimizer.eval()}
    soap_options = {"skip_first": True, "weight_decay": 0.0, "precondition_frequency": 2}
    # torch bounds V^ from below where we add eps1, which nothing here comes near.
    yield "torch.optim.Adafactor", "adafactor", relative, LARGE, lambda p: torch.optim.Adafactor(p, lr=0.0), exact, {}
    yield (
        "torch.optim.Adafactor, d = 1.5, decay",
        "adafactor",
        {**relative, "clip_threshold": 1.5, "decay_rate": 0.5, "weight_decay": 0.1, "exclude_from_decay": []},
        RATES,
        lambda p: torch.optim.Adafactor(p, lr=0.0, d=1.5, beta2_decay=-0.5, weight_decay=0.1),
        exact,
        {},
    )
    # pytorch-optimizer decays by lr max(eps2, RMS(w)), so none here; its relative step is min(0.01, 1/sqrt(t)), of no rate.
    plain = {"momentum_dtype": torch.float64, "relative_step": False, "foreach": False}
    yield "AdaFactor", "adafactor", ours, RATES, lambda p: peer.AdaFactor(p, betas=(None, 0.999), **plain), exact, {}
    # ... and its average is of steps with the rate in them, which is ours where the rate is constant and the weights' scale out of it.
    yield (
        "AdaFactor with momentum at a constant rate",
        "adafactor",
        {**ours, "scale_parameter": False, "beta1": 0.8},
        CONSTANT,
        lambda p: peer.AdaFactor(p, betas=(0.8, 0.999), scale_parameter=False, **plain),
        exact,
        {},
    )
    # The momentum of its Shampoo is of preconditioned steps, and goes into the statistics.
    yield "Shampoo", "shampoo", {"momentum": 0.0}, RATES, lambda p: peer.Shampoo(p, momentum=0.0), exact, {}
    # Its SOAP makes no step of the first gradient and decays the weights after the update.
    settings = {"weight_decay": 0.0, "precondition_frequency": 2}
    yield (
        "SOAP with QR in float64",
        "soap",
        soap_options,
        RATES,
        lambda p: soap_with_exact_bases(torch, peer)(p, **settings),
        (1e-10, "float64; eps = 1e-8 below nearly nothing"),
        {},
    )
    rounded = (1e-6, "its QR is in float32")
    yield "SOAP as it is", "soap", soap_options, RATES, lambda p: peer.SOAP(p, **settings), rounded, {}
    yield (
        "ScheduleFreeSGD",
        "schedule_free_sgd",
        {"momentum": 0.8, **free_decay},
        RATES,
        lambda p: peer.ScheduleFreeSGD(p, momentum=0.8, weight_decay=0.1),
        exact,
        evaluated,
    )
    yield (
        "ScheduleFreeAdamW",
        "schedule_free_adamw",
        {"beta2": 0.95, "averaging_power": 1.0, **free_decay},
        RATES,
        lambda p: peer.ScheduleFreeAdamW(p, betas=(0.9, 0.95), r=1.0, weight_decay=0.1),
        exact,
        evaluated,
    )


def compare_with_packages():
    import pytorch_optimizer
    import torch

    for what, method, options, rates, make, (tolerance, why), more in peers(torch, pytorch_optimizer):
        theirs = followed(torch, make, rates, **more)
        theirs = np.concatenate([w.ravel() for w in theirs])
        compare(f"{method} and {what}", trace(method, options, rates)[-1][0], theirs, atol=tolerance, why=why)


if __name__ == "__main__":
    keep_file(__doc__, HEADER, header(), compare_with_packages)
