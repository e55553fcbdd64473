"""The noisy quadratic model in closed form: the expected training loss after t updates, and what follows from it.

The model is Zhang et al.'s (2019, arXiv 1907.04164): curvatures h_i = i^-power, gradient noise of covariance diag(h), SGD with rate α,
heavy-ball momentum β and preconditioner diag(h^p). In φ = h^(p/2) θ each direction, of curvature k = h^(1-p), goes by itself:

    v ← β v + k φ - √k x̄,    φ ← φ - α v,    x̄ the batch's mean of the direction's x.

With the roots a, b of z² - (1 + β - α k) z + β = 0 and K_j = (a^j - b^j) / (a - b) this is, after t updates,

    φ_t = φ_0 (K_(t+1) - β K_t) + α √k Σ_(s<t) K_(t-s) x̄_s,

and the expected loss above its minimum is Σ k E[φ_t²] / 2. Over N examples in reshuffled epochs laid end to end, with batches of B | N,

    Cov(x̄_s, x̄_s') = (N δ_ss' / B - [same epoch]) / (N - 1)

exactly, so E[φ_t²] needs sums of K and K² alone. Zhang et al. have independent batches, N = ∞. docs/noisy-quadratic.md says
what is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

REPLICATES = 64  # runs drawn for a cell: their mean is known to an eighth of a run's scatter
MOST_EXAMPLES = 2**19  # a target that isn't reached after so many, and MORE_UPDATES, is out of reach
MORE_UPDATES = 4096


@dataclass(frozen=True)
class Cell:
    """What the expected loss of a run depends on. `examples` is N; infinite for independent batches."""

    batch: int
    rate: float
    momentum: float
    precondition: float
    power: float = 1.0
    dimensions: int = 256
    examples: float = 8192

    @property
    def h(self) -> np.ndarray:
        return np.arange(1.0, self.dimensions + 1) ** -self.power

    @property
    def curvature(self) -> np.ndarray:
        return self.h ** (1 - self.precondition)

    @property
    def cap(self) -> float:
        return MOST_EXAMPLES / self.batch + MORE_UPDATES

    def roots(self) -> tuple[np.ndarray, np.ndarray]:
        middle = 1 + self.momentum - self.rate * self.curvature
        discriminant = middle**2 - 4 * self.momentum
        discriminant[abs(discriminant) < 1e-10] = 1e-10  # a double root, moved apart by 1e-5: 1e-10 of what follows
        root = np.sqrt(discriminant.astype(complex))
        return (middle + root) / 2, (middle - root) / 2

    def excess(self, updates: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation over data orders of the training loss above its minimum, after each of these numbers of updates.

        The mean is exact. The deviation takes x̄ as Gaussian and directions as independent: to some per cent for coin flips.
        """
        t = np.asarray(updates, float)[:, None]
        k, (a, b) = self.curvature, self.roots()
        with np.errstate(over="ignore", invalid="ignore"):  # rates beyond the limit of stability
            at, bt = _power(a, t), _power(b, t)
            mean = ((a * at - b * bt - self.momentum * (at - bt)) / (a - b)).real
            signal, noise = self.h * mean**2, (self.rate * k) ** 2 * self._variance(a, b, t, at, bt)
            return (signal + noise).sum(1) / 2, np.sqrt((signal * noise + noise**2 / 2).sum(1))

    def _variance(self, a: np.ndarray, b: np.ndarray, t: np.ndarray, at: np.ndarray, bt: np.ndarray) -> np.ndarray:
        """The variance of Σ_(s<t) K_(t-s) x̄_s."""
        sums = [q * (1 - qt) / (1 - q) for q, qt in ((a * a, at * at), (a * b, at * bt), (b * b, bt * bt))]  # q + ... + q^t
        squares = ((sums[0] - 2 * sums[1] + sums[2]) / (a - b) ** 2).real
        n = self.examples
        if np.isinf(n):
            return squares / self.batch
        if self.batch >= n and self.batch % n == 0:
            return np.zeros_like(squares)  # whole epochs, whose mean is 0
        if n % self.batch:
            raise ValueError(f"batch_size = {self.batch} and {n:g} training examples: neither divides the other")
        length = n // self.batch  # of an epoch in updates
        return (n / self.batch * squares - self._epochs(a, b, t, length)) / (n - 1)

    def _epochs(self, a: np.ndarray, b: np.ndarray, t: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Σ over epochs of (the sum of K_(t-s) over the epoch's updates s)²."""
        done = t // length * length  # updates of whole epochs
        ar, br, ad, bd, al, bl = (_power(q, u) for u in (t - done, done, length) for q in (a, b))
        # An epoch that ended u updates ago has A a^u - B b^u, and u = t - done, t - done + length, ...
        big_a, big_b = a * (1 - al) / (1 - a) / (a - b), b * (1 - bl) / (1 - b) / (a - b)
        whole = [qr * (1 - qd) / (1 - ql) for qr, qd, ql in (
            (ar * ar, ad * ad, al * al), (ar * br, ad * bd, al * bl), (br * br, bd * bd, bl * bl))]  # fmt: skip
        current = (a * (1 - ar) / (1 - a) - b * (1 - br) / (1 - b)) / (a - b)
        return (big_a**2 * whole[0] - 2 * big_a * big_b * whole[1] + big_b**2 * whole[2] + current**2).real

    def updates_to(self, excess: float, most: float = np.inf) -> float:
        """The first update at which the expected loss is at most `excess` above its minimum; infinity where that is not within `most`.

        Every update is looked at up to the 64th, then 64 of each doubling: within 1.6 %, and a shorter dip may be missed.
        """
        first = 1
        while first <= min(most, self.cap):
            updates = np.unique(np.linspace(first, max(64, 2 * first), 64).round())
            mean, _ = self.excess(updates)
            reached = np.flatnonzero(mean <= excess)
            if reached.size:
                return float(updates[reached[0]])
            first = int(updates[-1])
        return np.inf

    def checks(self, check_every: int) -> Iterator[int]:
        """The updates at which protocol B looks at the training loss, where it is near the target from the start."""
        dense = -(-max(1, check_every // 4) // self.batch)
        return count(-(-check_every // self.batch), dense)

    def check_at(self, excess: float, check_every: int) -> float:
        """The first check at which the expected loss is at most `excess` above its minimum."""
        checks = self.checks(check_every)
        while True:
            block = np.array([next(checks) for _ in range(64)])
            mean, _ = self.excess(block)
            reached = np.flatnonzero(mean <= excess)
            if reached.size:
                return float(block[reached[0]])
            if block[-1] > self.cap:
                return np.inf

    def drawn_stops(self, excess: float, check_every: int, replicates: int = REPLICATES, seed: int = 1) -> np.ndarray:
        """The updates at which `replicates` runs stop, with the recursion run as it stands on Gaussian x̄ of the batches' covariance.

        A run stops when its own loss is at the target, not when the mean over runs is, so it may well stop earlier.
        """
        random = np.random.default_rng(seed)
        k, root = self.curvature, np.sqrt(self.curvature)
        phi = np.tile(self.h ** (self.precondition / 2), (replicates, 1))
        velocity, epoch_sum = np.zeros_like(phi), np.zeros_like(phi)
        stops = np.full(replicates, np.nan)
        length = max(1, int(self.examples) // self.batch)
        deviation = np.sqrt(self.examples / (self.examples - 1) / self.batch)
        checks = self.checks(check_every)
        due = next(checks)
        for update in count(1):
            # The epoch's batches sum to 0: given those before it, one of `left` has mean -sum / left.
            left = length - (update - 1) % length
            mean = deviation * np.sqrt(1 - 1 / left) * random.standard_normal(phi.shape) - epoch_sum / left
            epoch_sum = epoch_sum + mean if left > 1 else np.zeros_like(phi)
            velocity = self.momentum * velocity + k * phi - root * mean
            phi = phi - self.rate * velocity
            if update < due:
                continue
            due = next(checks)
            stops[np.isnan(stops) & ((phi**2 * k).sum(1) / 2 <= excess)] = update
            if not np.isnan(stops).any() or update > self.cap:
                return stops


def _power(q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """q^t of complex q and t >= 0, several times as fast as numpy's."""
    return np.exp(t * np.log(np.where(q == 0, 1e-300, q)))


def best_rate(cell: Cell, excess: float) -> float:
    """The stable rate 2^(j/4), to two digits, with the fewest updates to the target in the closed form; the smaller of equals."""
    limit = 2 * (1 + cell.momentum) / cell.curvature[0]
    best, fewest = np.nan, np.inf
    for j in range(20, -57, -1):
        rate = float(f"{2 ** (j / 4):.2g}")
        updates = replace(cell, rate=rate).updates_to(excess, fewest) if rate < limit else np.inf
        if updates <= fewest and np.isfinite(updates):
            best, fewest = rate, updates
        elif np.isfinite(fewest) and rate < best / 3:
            break  # ever slower from here
    return best
