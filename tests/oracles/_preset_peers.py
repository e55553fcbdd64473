"""The packages themselves, against the rules written after them: optim_presets.py --peers. What cannot be
imported is skipped.

Exclusions that a package leaves to its user are given as two groups, or by the number of dimensions where it
goes by that.
"""

import importlib
import importlib.metadata

import numpy as np

from _lars_presets import BIAS_AND_NORM
from _oracle import compare


def renamed(settings, **names):
    """Settings as a package calls them: beta1 and beta2 become betas, `names` maps the others."""
    given = {names.get(key, key): value for key, value in settings.items() if key not in ("beta1", "beta2")}
    if "beta1" in settings:
        given["betas"] = (settings["beta1"], settings["beta2"])
    return given


def excluded_by_decay(kinds, parameters, settings):
    """Two groups: biases and norms have no decay."""
    return [
        {
            "params": [p for p, kind in zip(parameters, kinds) if (kind in BIAS_AND_NORM) == excluded],
            "weight_decay": 0.0 if excluded else settings["weight_decay"],
        }
        for excluded in (False, True)
    ]


def of_timm(name, **fixed):
    def make(kinds, parameters, settings):
        optimizer = getattr(importlib.import_module("timm.optim"), name)
        groups = [g for g in excluded_by_decay(kinds, parameters, settings) if g["params"]]
        return optimizer(groups, lr=1.0, **renamed(settings, trust_coefficient="trust_coeff"), **fixed)

    return make


def of_torch_optimizer(name):
    def make(kinds, parameters, settings):
        optimizer = getattr(importlib.import_module("torch_optimizer"), name)
        return optimizer(parameters, lr=1.0, **renamed(settings))

    return make


def of_pytorch_optimizer(name):
    def make(kinds, parameters, settings):
        module = importlib.import_module("pytorch_optimizer")
        version = importlib.metadata.version("pytorch_optimizer")
        if tuple(map(int, version.split(".")[:2])) > (3, 10):
            raise ImportError(f"pytorch_optimizer {version} has another LARS; 3.10 is the last with this one")
        return getattr(module, name)(parameters, lr=1.0, **renamed(settings))

    return make


TORCH_PEERS = {
    ("lars", "timm"): of_timm("Lars"),
    ("lamb", "timm"): of_timm("Lamb"),
    ("lamb", "timm_clip"): of_timm("Lamb", trust_clip=True),
    ("lars", "jettify"): of_torch_optimizer("LARS"),
    ("lamb", "jettify"): of_torch_optimizer("Lamb"),
    ("lars", "kozistr"): of_pytorch_optimizer("LARS"),
    ("lamb", "kozistr"): of_pytorch_optimizer("Lamb"),
}


def torch_trace(make, scene, settings):
    """The weights of all tensors after each step. Weights have two dimensions, as code bases go by that."""
    import torch

    parameters = [
        torch.tensor(start, dtype=torch.float64).reshape([-1, 1] if kind == "weight" else [-1]).requires_grad_(True)
        for kind, start in zip(scene.kinds, scene.start)
    ]
    optimizer = make(scene.kinds, parameters, settings)
    steps = []
    for gradients, lr in zip(scene.gradients, scene.rates):
        for group in optimizer.param_groups:
            group["lr"] = lr
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = torch.tensor(gradient, dtype=torch.float64).reshape(parameter.shape)
        optimizer.step()
        steps.append(torch.cat([p.detach().reshape(-1) for p in parameters]).numpy().copy())
    return np.concatenate(steps)


def optax_trace(optimizer, scene, settings):
    """The same with optax."""
    import jax
    import optax

    jax.config.update("jax_enable_x64", True)
    rates = jax.numpy.array(scene.rates)
    names = renamed(settings)
    if "betas" in names:
        names["b1"], names["b2"] = names.pop("betas")
    chain = getattr(optax, optimizer)(lambda count: rates[count], **names)
    parameters = [jax.numpy.array(start) for start in scene.start]
    state, steps = chain.init(parameters), []
    for gradients in scene.gradients:
        updates, state = chain.update([jax.numpy.array(g) for g in gradients], state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        steps.append(np.concatenate(parameters))
    return np.concatenate(steps)


def compare_all(cases, scenes, trace):
    for number, (optimizer, preset, scene, settings) in enumerate(cases):
        make = TORCH_PEERS.get((optimizer, preset))
        if make is None and preset != "optax":
            continue
        try:
            theirs = torch_trace(make, scenes[scene], settings) if make else optax_trace(optimizer, scenes[scene], settings)
        except ImportError as error:
            print(f"skip {optimizer} {preset}: {error}")
            continue
        steps = trace(optimizer, preset, scenes[scene], settings)
        ours = np.concatenate([np.concatenate(weights) for weights, _ in steps])
        compare(
            f"{optimizer} {preset}, trace {number}, and the package",
            ours,
            theirs,
            atol=1e-13,
            rtol=1e-13,
            why="float64, three steps of some twenty operations each",
        )
