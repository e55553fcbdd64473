"""Golden traces of the optimisers, in numpy from the printed formulas alone.

    optim_golden.py            compares tests/optim/golden_traces.h with what this program computes, and that with torch.optim
                               and pytorch-optimizer
    optim_golden.py --write    writes that file

Four tensors: an ordinary weight whose gradient is zero in the second step, a weight that starts at zero, a bias and a norm
weight. Three steps, a different learning rate in each, so that a rate on the wrong side of the momentum buffer shows.
Where tensors have factors, each goes its way with a rate and a decay of its own.
torch.optim is left out where torch cannot be imported.
"""

import copy
import fnmatch
import hashlib
import pathlib

import numpy as np

from _oracle import compare, golden_header, keep_file

HEADER = pathlib.Path(__file__).resolve().parents[1] / "optim" / "golden_traces.h"

NAMES = ["fc.weight", "zero.weight", "fc.bias", "norm.weight"]
KINDS = ["weight", "weight", "bias", "norm_weight"]
START = [[0.5, -1.25, 2.0], [0.0, 0.0], [0.25, -0.75], [1.0, 1.5]]
GRADIENTS = [
    [[0.3, 0.2, -0.6], [0.05, -0.4], [-1.0, 0.5], [0.125, -0.25]],
    [[0.0, 0.0, 0.0], [0.3, 0.1], [0.2, 0.0], [-0.5, 0.75]],
    [[-1.5, 0.7, 0.1], [-0.2, 0.2], [0.0, -0.3], [0.0, 0.0]],
]
RATES = [0.02, 0.1, 0.05]
USUAL = ["bias", "norm_weight", "norm_bias"]

CASES = [
    ("sgd", {"momentum": 0.9, "weight_decay": 0.01}),
    ("sgd", {"momentum": 0.0, "weight_decay": 0.01, "exclude_from_decay": []}),
    ("sgd", {"momentum": 0.8, "nesterov": True}),
    ("sgd", {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1}),
    ("adamw", {}),
    ("adamw", {"weight_decay": 0.0, "beta1": 0.5, "beta2": 0.75, "eps": 0.01}),
    ("adamw", {"eps": 0.0, "exclude_from_decay": []}),
    ("lars", {"trust_coefficient": 0.1, "weight_decay": 0.05}),
    ("lars", {"trust_coefficient": 0.1, "weight_decay": 0.0}),
    ("lars", {"trust_coefficient": 0.1, "weight_decay": 0.05, "exclude_from_trust": [], "exclude_from_decay": []}),
    ("lars", {"trust_coefficient": 0.1, "weight_decay": 0.05, "eps": 0.2, "momentum": 0.5}),
    ("lamb", {}),
    ("lamb", {"weight_decay": 0.0}),
    ("lamb", {"exclude_from_trust": [], "exclude_from_decay": [], "weight_decay": 0.1}),
    ("lamb", {"beta1": 0.5, "beta2": 0.75, "eps": 0.01, "exclude_from_trust": ["weight"]}),
    (
        "sgd",
        {
            "momentum": 0.9,
            "nesterov": True,
            "weight_decay": 0.1,
            "exclude_from_decay": [],
            "lr_factors": ["bias=64", "norm_weight=0.3"],
            "decay_factors": ["bias=0.015625"],
        },
    ),
    (
        "adamw",
        {
            "weight_decay": 0.1,
            "exclude_from_decay": [],
            "lr_factors": ["weight=2.5", "name:zero*=0.5"],
            "decay_factors": ["weight=0.25", "norm_weight=3"],
        },
    ),
    (
        "lars",
        {
            "trust_coefficient": 0.1,
            "weight_decay": 0.05,
            "exclude_from_trust": [],
            "lr_factors": ["weight=2.5", "name:zero*=0.5", "bias=3"],
            "decay_factors": ["name:fc.*=0.25"],
        },
    ),
    (
        "lamb",
        {
            "weight_decay": 0.1,
            "exclude_from_decay": [],
            "lr_factors": ["dim<=1=2", "weight=0.3"],
            "decay_factors": ["norm_weight=3", "weight=0.5"],
        },
    ),
    ("lion", {}),
    ("lion", {"beta1": 0.5, "beta2": 0.75, "weight_decay": 0.1, "exclude_from_decay": []}),
    ("lion", {"weight_decay": 0.1, "lr_factors": ["bias=8", "name:zero*=0.5"], "decay_factors": ["weight=0.25"]}),
    ("signsgd", {"momentum": 0.0}),
    ("signsgd", {"weight_decay": 0.1}),
    ("signsgd", {"momentum": 0.5, "weight_decay": 0.1, "exclude_from_decay": [], "lr_factors": ["norm_weight=3"]}),
    # What stands in the place of trust ratios. The last two of the four tensors have none by default.
    ("lars", {"trust_coefficient": 0.1, "trust": "frozen", "trust_ratios": ["fc.weight=0.3", "zero.weight=0.05"]}),
    ("lars", {"trust_coefficient": 0.1, "trust": "mean", "exclude_from_trust": [], "weight_decay": 0.05}),
    ("lars", {"trust_coefficient": 0.1, "trust": "shuffled", "exclude_from_trust": [], "momentum": 0.5}),
    ("lars", {"trust_coefficient": 0.1, "trust": "shuffled", "trust_shuffle": 5, "exclude_from_trust": []}),
    ("lamb", {"trust": "frozen", "trust_ratios": ["zero.weight=0.5", "fc.weight=2.25"], "lr_factors": ["weight=0.3"]}),
    ("lamb", {"trust": "mean"}),
    ("lamb", {"trust": "shuffled", "exclude_from_trust": [], "weight_decay": 0.1}),
    ("lamb", {"trust": "frozen_mean", "trust_ratios": ["fc.weight=3", "zero.weight=0.5"]}),
    (
        "lamb",
        {
            "trust": "frozen_shuffled",
            "trust_ratios": ["fc.weight=3", "zero.weight=0.5", "fc.bias=0.25", "norm.weight=7"],
            "trust_shuffle": 3,
            "exclude_from_trust": [],
        },
    ),
]


def norm(x):
    return float(np.sqrt(np.sum(x * x)))


def adam_r(state, g, t, beta1, beta2, eps):
    """Kingma & Ba, algorithm 1: corrected first moment over the root of the corrected second."""
    state["m"] = beta1 * state.get("m", np.zeros_like(g)) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", np.zeros_like(g)) + (1 - beta2) * g**2
    m_hat = state["m"] / (1 - beta1**t)
    v_hat = state["v"] / (1 - beta2**t)
    r = np.zeros_like(g)
    moved = m_hat != 0
    r[moved] = m_hat[moved] / (np.sqrt(v_hat[moved]) + eps)
    return r


def sgd(w, g, state, lr, t, kind, momentum=0.9, nesterov=False, dampening=0.0, weight_decay=0.0, exclude_from_decay=USUAL):
    d = g + (0.0 if kind in exclude_from_decay else weight_decay) * w
    v = state["v"] = momentum * state.get("v", np.zeros_like(w)) + (1 - dampening) * d
    return w - lr * (d + momentum * v if nesterov else v), None


def adamw(w, g, state, lr, t, kind, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, exclude_from_decay=USUAL):
    wd = 0.0 if kind in exclude_from_decay else weight_decay
    return w - lr * wd * w - lr * adam_r(state, g, t, beta1, beta2, eps), None


def lars(
    w,
    g,
    state,
    lr,
    t,
    kind,
    trust_coefficient=0.001,
    momentum=0.9,
    weight_decay=5e-4,
    eps=0.0,
    exclude_from_decay=USUAL,
    exclude_from_trust=USUAL,
    instead=None,
):
    beta = 0.0 if kind in exclude_from_decay else weight_decay
    below = norm(g) + beta * norm(w) + eps
    trusted = kind not in exclude_from_trust
    lam = trust_coefficient
    if trusted and norm(w) > 0 and below > 0:
        lam = trust_coefficient * norm(w) / below
    if trusted and instead is not None:
        lam = instead
    v = state["v"] = momentum * state.get("v", np.zeros_like(w)) + lr * lam * (g + beta * w)
    return w - v, lam if trusted else None


def lamb(
    w,
    g,
    state,
    lr,
    t,
    kind,
    beta1=0.9,
    beta2=0.999,
    eps=1e-6,
    weight_decay=0.01,
    exclude_from_decay=USUAL,
    exclude_from_trust=USUAL,
    instead=None,
):
    wd = 0.0 if kind in exclude_from_decay else weight_decay
    u = adam_r(state, g, t, beta1, beta2, eps) + wd * w
    trusted = kind not in exclude_from_trust
    ratio = 1.0
    if trusted and norm(w) > 0 and norm(u) > 0:
        ratio = norm(w) / norm(u)
    if trusted and instead is not None:
        ratio = instead
    return w - lr * ratio * u, ratio if trusted else None


def lion(w, g, state, lr, t, kind, beta1=0.9, beta2=0.99, weight_decay=0.0, exclude_from_decay=USUAL):
    """Chen et al. 2023, algorithm 2."""
    wd = 0.0 if kind in exclude_from_decay else weight_decay
    m = state.get("m", np.zeros_like(w))
    u = np.sign(beta1 * m + (1 - beta1) * g)
    state["m"] = beta2 * m + (1 - beta2) * g
    return w - lr * (u + wd * w), None


def signsgd(w, g, state, lr, t, kind, momentum=0.9, weight_decay=0.0, exclude_from_decay=USUAL):
    """Bernstein et al. 2018, algorithm 2; without momentum algorithm 1."""
    wd = 0.0 if kind in exclude_from_decay else weight_decay
    state["m"] = momentum * state.get("m", np.zeros_like(w)) + (1 - momentum) * g
    return w - lr * (np.sign(state["m"]) + wd * w), None


METHODS = {"sgd": sgd, "adamw": adamw, "lars": lars, "lamb": lamb, "lion": lion, "signsgd": signsgd}
DECAYS = {"sgd": 0.0, "adamw": 0.01, "lars": 5e-4, "lamb": 0.01, "lion": 0.0, "signsgd": 0.0}  # by default


def factors(entries):
    """Each tensor's factor; the last entry that matches counts. All tensors have one dimension."""
    found = [1.0] * len(NAMES)
    for entry, _, factor in (text.rpartition("=") for text in entries):
        for i, (name, kind) in enumerate(zip(NAMES, KINDS)):
            if kind == entry or entry == "dim<=1" or fnmatch.fnmatchcase(f"name:{name}", entry):
                found[i] = float(factor)
    return found


def own_settings(method, options):
    """Factor on the rate, and options, of each tensor by itself."""
    options = {"weight_decay": DECAYS[method], **options}
    on_rate, on_decay = factors(options.pop("lr_factors", [])), factors(options.pop("decay_factors", []))
    return [(r, {**options, "weight_decay": options["weight_decay"] * d}) for r, d in zip(on_rate, on_decay)]


def philox(counter, key):
    """Philox4x32-10 of Salmon et al. 2011."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k[0], second % 2**32, (first >> 32) ^ c[3] ^ k[1], first % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def cycle(n, number):
    """Sattolo's algorithm: one cycle through 0..n-1."""
    key = int.from_bytes(hashlib.sha256(f"basin/{number}/trust-shuffle/0".encode()).digest()[:8], "big")
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        words = philox((i, 0, 0, 0), (key % 2**32, key >> 32))
        j = (words[0] << 32 | words[1]) % i
        order[i], order[j] = order[j], order[i]
    return order


def instead_of(live, trust, trust_ratios=(), trust_shuffle=1):
    """What each tensor is stepped with, given the live ratios (None: has none)."""
    trusted = [i for i, ratio in enumerate(live) if ratio is not None]
    ratios = [live[i] for i in trusted]
    if trust.startswith("frozen"):
        given = {name: float(ratio) for name, _, ratio in (text.rpartition("=") for text in trust_ratios)}
        ratios = [given[NAMES[i]] for i in trusted]
    if trust.endswith("mean"):
        ratios = [sum(ratios) / len(ratios)] * len(ratios)
    if trust.endswith("shuffled"):
        ratios = [ratios[j] for j in cycle(len(ratios), trust_shuffle)]
    found = dict(zip(trusted, ratios))
    return [found.get(i) for i in range(len(live))]


def step(method, own, weights, gradients, states, lr, t, **arm):
    """Weights and trust ratio of each tensor after this step; of `arm` each tensor gets its own entry."""
    result = []
    for i, kind in enumerate(KINDS):
        factor, mine = own[i]
        more = {key: values[i] for key, values in arm.items()}
        result.append(METHODS[method](weights[i], np.array(gradients[i]), states[i], lr * factor, t, kind, **mine, **more))
    return result


def trace(method, options):
    """After each step: the flat weights of all tensors, and one trust ratio per tensor (None: has none)."""
    options = dict(options)
    arm = {key: options.pop(key) for key in ("trust", "trust_ratios", "trust_shuffle") if key in options}
    own = own_settings(method, options)
    weights = [np.array(w, dtype=np.float64) for w in START]
    states = [{} for _ in weights]
    steps = []
    for t, (gradients, lr) in enumerate(zip(GRADIENTS, RATES), start=1):
        changed = {}
        if arm:
            live = [ratio for _, ratio in step(method, own, weights, gradients, copy.deepcopy(states), lr, t)]
            changed = {"instead": instead_of(live, **arm)}
        moved = step(method, own, weights, gradients, states, lr, t, **changed)
        weights, ratios = [w for w, _ in moved], [ratio for _, ratio in moved]
        steps.append((np.concatenate(weights).tolist(), ratios))
    return steps


def toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(f'\\"{v}\\"' for v in value) + "]"
    return value if isinstance(value, str) else repr(value)


def braces(values):
    return "{" + ", ".join("NAN" if v is None else repr(v) for v in values) + "}"


def nested(values):
    return "{" + ", ".join(braces(v) for v in values) + "}"


def lines_of_traces(cases, trace):
    """The entries of a table of cases: method, settings, and weights and trust ratios after each step."""
    lines = []
    for method, options in cases:
        settings = ", ".join(f'"{key}={toml(value)}"' for key, value in options.items())
        lines.append(f'    {{"{method}",')
        lines.append(f"     {{{settings}}},")
        lines.append("     {")
        for weights, ratios in trace(method, options):
            lines.append(f"         {{{braces(weights)},")
            lines.append(f"          {braces(ratios)}}},")
        lines.append("     }},")
    return lines


def header():
    lines = [
        "struct Step {",
        "  std::vector<double> weights, trust_ratios;",
        "};",
        "struct Trace {",
        "  std::string optimizer;",
        "  std::vector<std::string> settings;",
        "  std::vector<Step> steps;",
        "};",
        "",
        "inline const std::vector<std::string> names{" + ", ".join(f'"{n}"' for n in NAMES) + "};",
        "inline const std::vector<std::string> kinds{" + ", ".join(f'"{k}"' for k in KINDS) + "};",
        f"inline const std::vector<std::vector<double>> start{nested(START)};",
        "inline const std::vector<std::vector<std::vector<double>>> gradients{",
        *(f"    {nested(g)}," for g in GRADIENTS),
        "};",
        f"inline const std::vector<double> rates{braces(RATES)};",
        "",
        "inline const std::vector<Trace> traces{",
    ]
    lines += lines_of_traces(CASES, trace)
    return golden_header("golden traces of the optimisers", "optim_golden.py", [*lines, "};"])


def torch_optimizer(torch, method, options, parameters):
    """The twin of a case in torch.optim or pytorch_optimizer, or None where they mean something else by the same options."""
    import pytorch_optimizer

    options, own = {"exclude_from_decay": USUAL, **options}, own_settings(method, options)
    excluded = options.pop("exclude_from_decay")
    for key in ("weight_decay", "lr_factors", "decay_factors"):
        options.pop(key, None)
    groups = [
        {"params": [p], "factor": factor, "weight_decay": 0.0 if k in excluded else mine["weight_decay"]}
        for p, k, (factor, mine) in zip(parameters, KINDS, own)
    ]
    if method == "sgd" and not options.get("dampening"):  # torch leaves dampening out of its first update
        return torch.optim.SGD(groups, lr=0.0, **{"momentum": 0.9, **options})
    if method == "adamw" and options.get("eps") != 0.0:  # torch has 0/0 where there was no gradient yet
        betas = (options.pop("beta1", 0.9), options.pop("beta2", 0.999))
        return torch.optim.AdamW(groups, lr=0.0, betas=betas, **options)
    if method == "lion":
        betas = (options.pop("beta1", 0.9), options.pop("beta2", 0.99))
        return pytorch_optimizer.Lion(groups, lr=0.0, betas=betas, **options)
    if method == "signsgd":
        return pytorch_optimizer.SignSGD(groups, lr=0.0, **{"momentum": 0.9, **options})
    return None


def compare_with_torch():
    try:
        import torch
    except ImportError:
        return
    for number, (method, options) in enumerate(CASES):
        parameters = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in START]
        optimizer = torch_optimizer(torch, method, options, parameters)
        if optimizer is None:
            continue
        for gradients, lr in zip(GRADIENTS, RATES):
            for group in optimizer.param_groups:
                group["lr"] = lr * group["factor"]
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = torch.tensor(gradient, dtype=torch.float64)
            optimizer.step()
        got = torch.cat([p.detach() for p in parameters]).numpy()
        compare(
            f"{method}, case {number}, and {type(optimizer).__module__.partition('.')[0]}",
            trace(method, options)[-1][0],
            got,
            atol=1e-13,
            why="float64, three steps of a few operations each",
        )


if __name__ == "__main__":
    keep_file(__doc__, HEADER, header(), compare_with_torch)
