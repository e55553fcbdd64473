"""LARS as thirteen code bases and papers have it, each written for itself from what its source does.

A rule takes the tensors, the rate of this update and settings, and changes the tensors: `w`, the memory it
keeps in them and `ratio`, the factor on the step apart from the rate as that code base defines it (None:
excluded from trust ratios). Defaults of eps and trust coefficient are the code base's; weight decay and
momentum are always given. Excluded are the tensors that the code base's own entry point excludes; where that
goes by name, class or number of dimensions, it goes by kind here.
"""

import numpy as np

from optim_golden import norm

BIAS_AND_NORM = {"bias", "norm_weight", "norm_bias"}


class Tensor:
    """One parameter: weights `w`, gradient `g`, and what a rule remembers of it."""

    def __init__(self, kind, start):
        self.kind, self.w, self.g, self.ratio = kind, np.array(start, dtype=np.float64), None, None
        self.velocity = self.m = self.v = np.zeros_like(self.w)  # TensorFlow, JAX and Caffe begin at zero
        self.buffer = None  # PyTorch begins with the first gradient


def paper(tensors, lr, weight_decay, momentum, trust_coefficient=0.001):
    """You 2017, algorithm 1. Nothing excluded; a fraction with a zero in it counts as 1, Basin's choice."""
    for x in tensors:
        below = norm(x.g) + weight_decay * norm(x.w)
        x.ratio = trust_coefficient * (norm(x.w) / below if norm(x.w) * below > 0 else 1.0)
        x.velocity = momentum * x.velocity + lr * x.ratio * (x.g + weight_decay * x.w)
        x.w = x.w - x.velocity


def mlperf(tensors, lr, weight_decay, momentum, trust_coefficient=0.001, eps=0.0):
    """mlcommons/training, resnet-tf2/lars_optimizer.py. The skip list has neither ratio nor decay."""
    eps = eps or 1e-7  # Keras' default: this code base cannot have 0
    for x in tensors:
        scaled_rate, gradient, x.ratio = lr, x.g, None
        if x.kind not in BIAS_AND_NORM:
            x.ratio = 1.0
            if norm(x.w) > 0 and norm(x.g) > 0:
                x.ratio = trust_coefficient * norm(x.w) / (norm(x.g) + weight_decay * norm(x.w) + eps)
            scaled_rate = lr * x.ratio
            gradient = x.g + weight_decay * x.w
        x.velocity = x.velocity * momentum - gradient * scaled_rate
        x.w = x.w + x.velocity


def tpu(tensors, lr, weight_decay, momentum, trust_coefficient=0.001, eps=0.0):
    """tensorflow/tpu, resnet, until August 2019: the loss has the decay of all but batch norm, biases
    included, so the optimiser (tf.contrib) sees it in the gradient, and counts it once more in the
    denominator."""
    for x in tensors:
        of_the_loss = x.g if x.kind.startswith("norm") else x.g + weight_decay * x.w
        rate, x.ratio = lr, None
        if x.kind == "weight":
            w_norm, g_norm = norm(x.w), norm(of_the_loss)
            trusted = w_norm > 0 and g_norm > 0
            x.ratio = trust_coefficient * w_norm / (g_norm + weight_decay * w_norm + eps) if trusted else 1.0
            rate *= x.ratio
        x.velocity = momentum * x.velocity + rate * of_the_loss
        x.w = x.w - x.velocity


def tf_models(tensors, lr, weight_decay, momentum, trust_coefficient=0.001):
    """tensorflow/models, classic momentum, both exclusion lists None as by default: the norm is that of the
    decayed gradient."""
    for x in tensors:
        decayed = x.g + weight_decay * x.w
        x.ratio = 1.0
        if norm(x.w) > 0 and norm(decayed) > 0:
            x.ratio = trust_coefficient * norm(x.w) / norm(decayed)
        x.velocity = momentum * x.velocity + lr * x.ratio * decayed
        x.w = x.w - x.velocity


def optax(tensors, lr, weight_decay, momentum, trust_coefficient=0.001, eps=0.0):
    """google-deepmind/optax: a chain of decay, ratio, rate, trace; masks default to every leaf."""
    for x in tensors:
        update = x.g + weight_decay * x.w
        parameter_norm, update_norm = norm(x.w), norm(update)
        if parameter_norm == 0.0 or update_norm == 0.0:
            x.ratio = 1.0
        else:
            x.ratio = trust_coefficient * parameter_norm / (update_norm + eps)
        update = -lr * (x.ratio * update)
        x.velocity = update + momentum * x.velocity
        x.w = x.w + x.velocity


def nvcaffe(tensors, lr, weight_decay, momentum, trust_coefficient=0.001):
    """NVIDIA/caffe, larc on, else the prototxt's defaults: policy "scale", regularization "L2", on the GPU
    (the CPU path takes the norm of the decayed gradient)."""
    for x in tensors:
        x.ratio = 1.0
        if norm(x.w) > 0 and norm(x.g) > 0:
            x.ratio = (1 - momentum) * trust_coefficient * norm(x.w) / norm(x.g)
        local_rate = lr * x.ratio
        x.velocity = momentum * x.velocity + local_rate * (x.g + weight_decay * x.w)
        x.w = x.w - x.velocity


def nus(tensors, lr, weight_decay, momentum, trust_coefficient=0.001, eps=1e-5):
    """NUS-HPC-AI-Lab/LARS-ImageNet-PyTorch, norms and biases apart as its README recommends, eps of its
    script. The buffer holds clamped gradients; ratio and rate of this step act on the whole of it."""
    for x in tensors:
        direction, rate, x.ratio = x.g, lr, None
        if x.kind not in BIAS_AND_NORM:
            w_norm, g_norm = norm(x.w), norm(x.g)
            x.ratio = 1.0
            if w_norm > 0 and g_norm > 0:
                x.ratio = trust_coefficient * w_norm / (g_norm + weight_decay * w_norm + eps)
            x.ratio = min(max(x.ratio, 0.0), 50.0)
            rate = lr * x.ratio
            direction = direction + weight_decay * x.w
        direction = np.clip(direction, -10.0, 10.0)
        x.buffer = direction if x.buffer is None else momentum * x.buffer + direction
        x.w = x.w - rate * x.buffer


def torch_sgd(x, gradient, lr, momentum):
    """torch.optim.SGD without decay, which several code bases wrap or repeat: the rate stands outside the
    buffer."""
    x.buffer = gradient if x.buffer is None else momentum * x.buffer + gradient
    x.w = x.w - lr * x.buffer


def apex(tensors, lr, weight_decay, momentum, trust_coefficient=0.02, eps=1e-8):
    """NVIDIA/apex, LARC.py around torch.optim.SGD, clip=True. A zero norm leaves the gradient alone, without
    decay."""
    for x in tensors:
        gradient, x.ratio = x.g, 1.0
        if norm(x.w) != 0 and norm(x.g) != 0:
            local_rate = trust_coefficient * norm(x.w) / (norm(x.g) + norm(x.w) * weight_decay + eps)
            x.ratio = min(local_rate / lr, 1.0)  # SGD multiplies by lr: min(local_rate, lr) in all
            gradient = x.ratio * (x.g + weight_decay * x.w)
        torch_sgd(x, gradient, lr, momentum)


def timm(tensors, lr, weight_decay, momentum, trust_coefficient=0.001, eps=1e-8):
    """huggingface/pytorch-image-models through its factory: biases and 1-d parameters have no decay, and
    whatever has no decay has no ratio."""
    for x in tensors:
        decay = 0.0 if x.kind in BIAS_AND_NORM else weight_decay
        gradient, x.ratio = x.g, None
        if decay != 0:
            w_norm, g_norm = norm(x.w), norm(x.g)
            x.ratio = 1.0
            if w_norm > 0 and g_norm > 0:
                x.ratio = trust_coefficient * w_norm / (g_norm + w_norm * decay + eps)
            gradient = (gradient + decay * x.w) * x.ratio
        torch_sgd(x, gradient, lr, momentum)


def torchlars(tensors, lr, weight_decay, momentum, trust_coefficient=0.001, eps=1e-8):
    """kakaobrain/torchlars around torch.optim.SGD: every tensor, whatever its decay."""
    for x in tensors:
        if norm(x.w) > 0 and norm(x.g) > 0:
            x.ratio = norm(x.w) / (norm(x.g) + weight_decay * norm(x.w) + eps) * trust_coefficient
        else:
            x.ratio = 1.0
        torch_sgd(x, (x.g + weight_decay * x.w) * x.ratio, lr, momentum)


def jettify(tensors, lr, weight_decay, momentum, trust_coefficient=0.01, eps=1e-8):
    """jettify/pytorch-optimizer, one group: decay 0 switches the ratio off, a zero norm both off."""
    for x in tensors:
        gradient, x.ratio = x.g, None
        if weight_decay != 0:
            x.ratio = 1.0
            if norm(x.w) != 0 and norm(x.g) != 0:
                x.ratio = norm(x.w) / (norm(x.g) + norm(x.w) * weight_decay + eps) * trust_coefficient
                gradient = (x.g + weight_decay * x.w) * x.ratio
        torch_sgd(x, gradient, lr, momentum)


def kozistr(tensors, lr, weight_decay, momentum, trust_coefficient=0.001):
    """kozistr/pytorch_optimizer up to 3.10 (3.11 rewrote it). The buffer is set to the raw gradient before
    the first update, which then adds to it."""
    for x in tensors:
        if x.buffer is None:
            x.buffer = x.g
        gradient, x.ratio = x.g, None
        if x.kind not in BIAS_AND_NORM:  # by ndim <= 1
            usable = norm(x.w) > 0.0 and norm(x.g) > 0.0
            x.ratio = trust_coefficient * norm(x.w) / norm(x.g) if usable else 1.0
            gradient = x.ratio * (x.g + weight_decay * x.w)
        x.buffer = momentum * x.buffer + gradient
        x.w = x.w - lr * x.buffer


def lamb_paper(tensors, lr, weight_decay, momentum):
    """LARS as the LAMB paper has it (You 2019, algorithm 1), phi the identity: an average of decayed
    gradients, normalised on its way out. It excludes nothing and has no coefficient; at a zero norm the ratio
    is 1, Basin's choice."""
    for x in tensors:
        x.m = momentum * x.m + (1 - momentum) * (x.g + weight_decay * x.w)
        x.ratio = norm(x.w) / norm(x.m) if norm(x.w) > 0 and norm(x.m) > 0 else 1.0
        x.w = x.w - lr * x.ratio * x.m


RULES = {
    "paper": paper,
    "mlperf": mlperf,
    "apex": apex,
    "nvcaffe": nvcaffe,
    "nus": nus,
    "timm": timm,
    "tf_models": tf_models,
    "tpu": tpu,
    "torchlars": torchlars,
    "jettify": jettify,
    "kozistr": kozistr,
    "optax": optax,
    "lamb_paper": lamb_paper,
}
