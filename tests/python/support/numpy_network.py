"""mlp and small_cnn without normalisation in numpy alone, float64: forward pass, loss and its analytic gradient.

Written from docs and papers, not from Basin's source: what a checkpoint says can be rebuilt without the program.
"""

import hashlib

import numpy as np

RECORD = 1 + 3072  # one label byte, then 32 x 32 red, green and blue


def read_records(path):
    """CIFAR-10's binary layout -> uint8 images [n, 3, 32, 32], labels [n]."""
    raw = np.fromfile(path, np.uint8).reshape(-1, RECORD)
    return raw[:, 1:].reshape(-1, 3, 32, 32), raw[:, 0].astype(int)


def hashed_subset(images, labels, count):
    """The `count` examples with the smallest SHA-256 of pixels and label, in file order (docs/data.md)."""
    digests = [hashlib.sha256(i.tobytes() + bytes([label])).digest() for i, label in zip(images, labels)]
    order = sorted(range(len(digests)), key=lambda i: (digests[i], i))
    return np.sort(order[:count])


def normalised(images, statistics_of):
    x, reference = images / 255.0, statistics_of / 255.0
    mean, std = reference.mean((0, 2, 3)), reference.std((0, 2, 3))
    return (x - mean[:, None, None]) / std[:, None, None]


ACTIVATIONS = {  # f, and f' from f's value
    "relu": (lambda x: np.maximum(x, 0), lambda y: (y > 0).astype(float)),
    "tanh": (np.tanh, lambda y: 1 - y * y),
}


class Linear:
    def __init__(self, parameters, name):
        self.w, self.b, self.name = parameters[f"{name}.weight"], parameters[f"{name}.bias"], name

    def forward(self, x):
        self.shape = x.shape
        self.x = x.reshape(len(x), -1)
        return self.x @ self.w.T + self.b

    def backward(self, d):
        self.gradient = {f"{self.name}.weight": d.T @ self.x, f"{self.name}.bias": d.sum(0)}
        return (d @ self.w).reshape(self.shape)


class Convolution:
    """Cross-correlation, odd kernel, padding kernel // 2."""

    def __init__(self, parameters, name, stride):
        self.w, self.b, self.name, self.stride = parameters[f"{name}.weight"], parameters[f"{name}.bias"], name, stride

    def forward(self, x):
        k, s = self.w.shape[2], self.stride
        self.padded = np.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
        windows = np.lib.stride_tricks.sliding_window_view(self.padded, (k, k), (2, 3))[:, :, ::s, ::s]
        self.windows = windows  # [n, in, rows, columns, k, k]
        return np.einsum("nihwab,oiab->nohw", windows, self.w, optimize=True) + self.b[:, None, None]

    def backward(self, d):
        k, s = self.w.shape[2], self.stride
        self.gradient = {
            f"{self.name}.weight": np.einsum("nohw,nihwab->oiab", d, self.windows, optimize=True),
            f"{self.name}.bias": d.sum((0, 2, 3)),
        }
        back = np.zeros_like(self.padded)
        rows, columns = d.shape[2:]
        for a in range(k):
            for b in range(k):
                part = np.einsum("nohw,oi->nihw", d, self.w[:, :, a, b], optimize=True)
                back[:, :, a : a + s * rows : s, b : b + s * columns : s] += part
        p = k // 2
        return back[:, :, p : back.shape[2] - p, p : back.shape[3] - p]


class MaxPool:
    """2 x 2; an odd last row or column is dropped."""

    def forward(self, x):
        n, c, h, w = x.shape
        return x[:, :, : h // 2 * 2, : w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


class Activation:
    def __init__(self, name):
        self.f, self.slope = ACTIVATIONS[name]

    def forward(self, x):
        self.y = self.f(x)
        return self.y

    def backward(self, d):
        return d * self.slope(self.y)


def build(parameters, model, activation, downsample="pool"):
    """The list of layers; their number follows from the parameters' names."""
    layers = []
    if model == "mlp":
        count = sum(name.endswith(".weight") for name in parameters)
        for i in range(1, count + 1):
            layers.append(Linear(parameters, f"fc{i}"))
            if i < count:
                layers.append(Activation(activation))
        return layers
    count = sum(name.startswith("conv") and name.endswith(".weight") for name in parameters)
    for i in range(1, count + 1):
        layers.append(Convolution(parameters, f"conv{i}", 1 if downsample == "pool" else 2))
        if downsample == "pool":
            layers.append(MaxPool())
        layers.append(Activation(activation))
    return [*layers, Linear(parameters, "fc")]


def logits(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return x


def losses(outputs, labels):
    """Cross entropy of each example."""
    shifted = outputs - outputs.max(1, keepdims=True)
    return np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(labels)), labels]


def gradient(layers, x, labels):
    """The gradient of the mean loss, by parameter name."""
    outputs = logits(layers, x)
    p = np.exp(outputs - outputs.max(1, keepdims=True))
    d = p / p.sum(1, keepdims=True)
    d[np.arange(len(labels)), labels] -= 1
    d /= len(labels)
    found = {}
    for layer in reversed(layers):
        d = layer.backward(d)
        found.update(getattr(layer, "gradient", {}))
    return found


def flat(parameters, names):
    return np.concatenate([parameters[n].ravel() for n in names])


def unflat(vector, like, names):
    out, at = {}, 0
    for n in names:
        out[n] = vector[at : at + like[n].size].reshape(like[n].shape)
        at += like[n].size
    return out


def dense_hessian(parameters, x, labels, step=1e-5, **kind):
    """Central differences of the analytic gradient: error O(step^2) + rounding / step, about 1e-9 of the gradient's size."""
    names = sorted(parameters)
    theta = flat(parameters, names)

    def at(vector):
        return flat(gradient(build(unflat(vector, parameters, names), **kind), x, labels), names)

    rows = []
    for i in range(theta.size):
        e = np.zeros_like(theta)
        e[i] = step
        rows.append((at(theta + e) - at(theta - e)) / (2 * step))
    h = np.array(rows)
    return (h + h.T) / 2
