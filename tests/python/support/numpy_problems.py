"""Problems in numpy, with derivatives by hand: for tests/python/networks/test_measure.py."""

import numpy as np

import basin


class Quadratic(basin.Problem):
    """l_i(w) = 1/2 (w - c_i)' A (w - c_i), so that H = A, and the gradients' covariance is A Cov(c) A."""

    def __init__(self, eigenvalues=(9.0, 4.0, 2.5, 1.0, 0.5, -0.25), examples=64, dtype="float64"):
        draw = np.random.default_rng(1)
        size = len(eigenvalues)
        q = np.linalg.qr(draw.normal(size=(size, size)))[0]
        self.matrix = (q * np.array(eigenvalues)) @ q.T
        self.centres = draw.normal(size=(examples, size))
        self.dtype = dtype
        self.examples = examples
        self.parameters = (basin.Parameter("first.weight", (2, 2)), basin.Parameter("second", (size - 4,), "bias"))
        self.own = np.linspace(0.5, 1.5, size).astype(dtype)
        self.restored = 0

    def weights(self):
        return self.own

    def restore(self):
        self.restored += 1

    def losses(self, w, index):
        off = w - self.centres[index]
        return 0.5 * np.einsum("ij,jk,ik->i", off, self.matrix, off)

    def loss(self, w):
        return self.losses(w, np.arange(self.examples)).mean()

    def gradient(self, w):
        return self.loss(w), self.matrix @ (w - self.centres.mean(0))

    def product(self, w, v):
        return self.matrix @ v

    def batch_gradient(self, w, index, share):
        return self.losses(w, index) @ share, self.matrix @ (share @ (w - self.centres[index]))

    def batch_product(self, w, v, index, share):
        return share.sum() * self.matrix @ v


class TwoLayers(basin.Problem):
    """l_i = 1/2 |V tanh(U x_i) - y_i|^2, with products by differentiating the gradient along v (Pearlmutter 1994)."""

    parameters = (basin.Parameter("hidden.weight", (5, 3)), basin.Parameter("out.weight", (2, 5)))
    examples = 40

    def __init__(self):
        draw = np.random.default_rng(2)
        self.x, self.y = draw.normal(size=(40, 3)), draw.normal(size=(40, 2))
        self.own = draw.normal(size=25)

    def weights(self):
        return self.own

    def forward(self, w, index):
        u, v = w[:15].reshape(5, 3), w[15:].reshape(2, 5)
        hidden = np.tanh(self.x[index] @ u.T)
        return u, v, hidden, hidden @ v.T - self.y[index]

    def losses(self, w, index):
        return 0.5 * (self.forward(w, index)[3] ** 2).sum(1)

    def loss(self, w):
        return self.losses(w, np.arange(self.examples)).mean()

    def batch_gradient(self, w, index, share):
        _, v, hidden, off = self.forward(w, index)
        off_share = off * share[:, None]
        back = off_share @ v * (1 - hidden**2)
        return self.losses(w, index) @ share, np.concatenate([(back.T @ self.x[index]).ravel(), (off_share.T @ hidden).ravel()])

    def batch_product(self, w, v, index, share):
        _, out, hidden, off = self.forward(w, index)
        x, du, dout = self.x[index], v[:15].reshape(5, 3), v[15:].reshape(2, 5)
        slope = 1 - hidden**2
        d_hidden = slope * (x @ du.T)
        d_off = (d_hidden @ out.T + hidden @ dout.T) * share[:, None]
        off_share = off * share[:, None]
        d_back = (d_off @ out + off_share @ dout) * slope + off_share @ out * (-2 * hidden * d_hidden)
        return np.concatenate([(d_back.T @ x).ravel(), (d_off.T @ hidden + off_share.T @ d_hidden).ravel()])

    def whole(self):
        return np.arange(self.examples), np.full(self.examples, 1 / self.examples)

    def gradient(self, w):
        return self.batch_gradient(w, *self.whole())

    def product(self, w, v):
        return self.batch_product(w, v, *self.whole())
