"""LAMB as twelve code bases and papers have it, each written for itself from what its source does.

Rules as in _lars_presets.py; `t` is the number of this update, from 1. All have betas .9 and .999 and eps
1e-6 outside the root; weight decay is always given.
"""

import math

import numpy as np

from _lars_presets import BIAS_AND_NORM
from optim_golden import norm


def average(x, gradient, beta1, beta2):
    """Moves both moments of a tensor on: Adam's running averages, which no code base changes."""
    x.m = beta1 * x.m + (1 - beta1) * gradient
    x.v = beta2 * x.v + (1 - beta2) * gradient * gradient


def paper(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """You 2019, algorithm 2, phi the identity. It excludes nothing; at a zero norm the ratio is 1, Basin's
    choice."""
    for x in tensors:
        average(x, x.g, beta1, beta2)
        r = x.m / (1 - beta1**t) / (np.sqrt(x.v / (1 - beta2**t)) + eps)
        direction = r + weight_decay * x.w
        x.ratio = norm(x.w) / norm(direction) if norm(x.w) * norm(direction) > 0 else 1.0
        x.w = x.w - lr * x.ratio * direction


def addons(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """tensorflow/addons, both exclusion lists None as by default."""
    eps = eps or 1e-7  # Keras' default: this code base cannot have 0
    beta1_power, beta2_power = beta1**t, beta2**t
    for x in tensors:
        average(x, x.g, beta1, beta2)
        m_hat, v_hat = x.m / (1.0 - beta1_power), x.v / (1.0 - beta2_power)
        update = m_hat / (np.sqrt(v_hat) + eps) + weight_decay * x.w
        x.ratio = 1.0
        if norm(x.w) > 0 and norm(update) > 0:
            x.ratio = norm(x.w) / norm(update)
        x.w = x.w - x.ratio * lr * update


def mlperf(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """mlcommons/training, bert: gradients clipped to a global norm of 1 (TensorFlow's formula), then as
    tensorflow/addons, but for LayerNorm and biases, which have neither decay nor ratio."""
    global_norm = norm(np.concatenate([x.g for x in tensors]))
    scale = min(1.0 / global_norm if global_norm > 0 else 1.0, 1.0)
    for x in tensors:
        average(x, x.g * scale, beta1, beta2)
        update = (x.m / (1.0 - beta1**t)) / (np.sqrt(x.v / (1.0 - beta2**t)) + eps)
        x.ratio = None
        if x.kind == "weight":
            update = update + weight_decay * x.w
            x.ratio = norm(x.w) / norm(update) if norm(x.w) > 0 and norm(update) > 0 else 1.0
        x.w = x.w - (1.0 if x.ratio is None else x.ratio) * lr * update


def fused(tensors, lr, t, weight_decay, beta1, beta2, eps, use_nvlamb):
    """NVIDIA/apex, multi_tensor_lamb.cu, one group of all tensors, adam_w_mode (apex itself computes in
    float32)."""
    global_norm = math.sqrt(sum(norm(x.g) ** 2 for x in tensors))
    clip = global_norm / 1.0 if global_norm > 1.0 else 1.0
    for x in tensors:
        average(x, x.g / clip, beta1, beta2)
        update = (x.m / (1 - beta1**t)) / (np.sqrt(x.v / (1 - beta2**t)) + eps) + weight_decay * x.w
        x.ratio = None
        if use_nvlamb or weight_decay != 0:
            x.ratio = norm(x.w) / norm(update) if norm(update) != 0 and norm(x.w) != 0 else 1.0
        x.w = x.w - (lr if x.ratio is None else lr * x.ratio) * update


def apex(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """FusedLAMB as it comes: a group without decay has no ratio."""
    fused(tensors, lr, t, weight_decay, beta1, beta2, eps, use_nvlamb=False)


def nvlamb(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """FusedLAMB with use_nvlamb: the ratio for all, decay or not."""
    fused(tensors, lr, t, weight_decay, beta1, beta2, eps, use_nvlamb=True)


def nus(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """NUS-HPC-AI-Lab/LARS-ImageNet-PyTorch, lamb.py through create_lamb_optimizer: no bias correction;
    torch's clip_grad_norm_ with its 1e-6; norms and biases have no decay, and what has no decay has no
    ratio."""
    coefficient = min(1.0 / (norm(np.concatenate([x.g for x in tensors])) + 1e-6), 1.0)
    for x in tensors:
        average(x, coefficient * x.g, beta1, beta2)
        step, rate, x.ratio = x.m / (np.sqrt(x.v) + eps), lr, None
        if x.kind not in BIAS_AND_NORM and weight_decay != 0:
            step = step + weight_decay * x.w
            x.ratio = norm(x.w) / norm(step) if norm(x.w) > 0 and norm(step) > 0 else 1.0
            rate = lr * x.ratio
        x.w = x.w - rate * step


def cybertron(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """cybertronai/pytorch-lamb: no bias correction, the norm of the weights at most 10, no exclusions at
    all."""
    for x in tensors:
        average(x, x.g, beta1, beta2)
        weight_norm = min(norm(x.w), 10.0)
        adam_step = x.m / (np.sqrt(x.v) + eps) + weight_decay * x.w
        adam_norm = norm(adam_step)
        x.ratio = 1.0 if weight_norm == 0 or adam_norm == 0 else weight_norm / adam_norm
        x.w = x.w - lr * x.ratio * adam_step


def jettify(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """jettify/pytorch-optimizer, debias off, clamp_value 10: a descendant of cybertronai's that computes the
    same."""
    for x in tensors:
        average(x, x.g, beta1, beta2)
        step = x.m / (np.sqrt(x.v) + eps)
        if weight_decay != 0:
            step = step + x.w * weight_decay
        clamped = float(np.clip(norm(x.w), 0, 10))
        x.ratio = clamped / norm(step) if clamped != 0 and norm(step) != 0 else 1.0
        x.w = x.w - (lr * x.ratio) * step


def kozistr(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """kozistr/pytorch_optimizer at its defaults: decay first and apart, outside the norm; eps also under the
    ratio; the first moment alone is bias-corrected, by way of the step size."""
    for x in tensors:
        average(x, x.g, beta1, beta2)
        x.w = x.w * (1.0 - weight_decay * lr)
        update = x.m / (np.sqrt(x.v) + eps)
        weight_norm, update_norm = min(norm(x.w), 10.0), norm(update)
        x.ratio = 1.0 if weight_norm == 0 or update_norm == 0 else weight_norm / (update_norm + eps)
        x.w = x.w - lr / (1.0 - beta1**t) * x.ratio * update


def of_timm(tensors, lr, t, weight_decay, beta1, beta2, eps, trust_clip):
    """huggingface/pytorch-image-models through its factory: biases and 1-d parameters have no decay, and
    whatever has no decay has no ratio; gradients divided by their global norm where that is above 1."""
    divisor = max(norm(np.array([norm(x.g) for x in tensors])) / 1.0, 1.0)
    for x in tensors:
        average(x, x.g / divisor, beta1, beta2)
        update = (x.m / (1 - beta1**t)) / (np.sqrt(x.v) / math.sqrt(1 - beta2**t) + eps)
        decay = 0.0 if x.kind in BIAS_AND_NORM else weight_decay
        x.ratio = None
        if decay != 0:
            update = update + decay * x.w
            x.ratio = norm(x.w) / norm(update) if norm(x.w) > 0 and norm(update) > 0 else 1.0
            if trust_clip:
                x.ratio = min(x.ratio, 1.0)
            update = update * x.ratio
        x.w = x.w - lr * update


def timm(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """timm's "lamb"."""
    of_timm(tensors, lr, t, weight_decay, beta1, beta2, eps, trust_clip=False)


def timm_clip(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """timm's "lambc": the ratio at most 1."""
    of_timm(tensors, lr, t, weight_decay, beta1, beta2, eps, trust_clip=True)


def optax(tensors, lr, t, weight_decay, beta1=0.9, beta2=0.999, eps=1e-6):
    """google-deepmind/optax: a chain of Adam, decay, ratio, rate; the mask defaults to every leaf."""
    for x in tensors:
        average(x, x.g, beta1, beta2)
        mu_hat, nu_hat = x.m / (1 - beta1**t), x.v / (1 - beta2**t)
        update = mu_hat / (np.sqrt(nu_hat) + eps)
        update = update + weight_decay * x.w
        x.ratio = 1.0 if norm(x.w) == 0.0 or norm(update) == 0.0 else norm(x.w) / norm(update)
        x.w = x.w + -lr * (x.ratio * update)


RULES = {
    "paper": paper,
    "addons": addons,
    "mlperf": mlperf,
    "apex": apex,
    "nvlamb": nvlamb,
    "nus": nus,
    "cybertron": cybertron,
    "timm": timm,
    "timm_clip": timm_clip,
    "jettify": jettify,
    "kozistr": kozistr,
    "optax": optax,
}
