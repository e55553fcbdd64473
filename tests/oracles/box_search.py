"""What scipy's L-BFGS-B finds in ten iterations in a cube, next to the known maximum, on the function of the test
BoxMaximum.TenIterationsReachTheMaximumOfANearlyLinearFunctionFromEverywhere (tests/landscape/landscape_test.cpp).

f(u) = g'u + u'Hu / 2 with a diagonal H of both signs and derivatives of all sizes, as a network's loss is in Keskar's box: each
coordinate's maximum is known. Three starts: the corner that the gradient names, half-way to it, and a point inside. The function is
handed over as it is, and with the derivatives scaled to a mean of 1 in units of the cube, which makes first steps proportional to
them: that is how ours was scaled until version 3 of the probe, and what it lost.
"""

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from _oracle import compare, finish

P, ITERATIONS, FIRST_STEP = 2000, 10, 100


def numbers(phase):
    return np.sin(1.7 * np.arange(P) + phase)


H = 0.05 * np.cos(17 * numbers(0.9))
G = np.sin(30 * numbers(0.2)) ** 5
G += np.sign(G) * 2 * np.maximum(H, 0)  # so that no coordinate has a second maximum
STARTS = {"corner": np.sign(G), "half-way": 0.5 * np.sign(G), "inside": np.sin(50 * numbers(0.4))}


def maximum():
    inside = (H < 0) & (np.abs(G) < -H)
    return float(np.where(inside, -0.5 * G**2 / np.where(H == 0, 1, H), np.abs(G) + 0.5 * H).sum())


def found(start, scale):
    value = fmin_l_bfgs_b(
        lambda u: (-scale * (G @ u + 0.5 * H @ u**2), -scale * (G + H * u)), start, bounds=[(-1, 1)] * P, maxiter=ITERATIONS
    )[1]
    return -value / scale


def main():
    top = maximum()
    mean = float(np.abs(G).mean())
    for name, start in STARTS.items():
        plain = found(start, 1 / mean)
        print(f"     {name}: {plain / top - 1:.2g} of the maximum away with first steps in proportion to the derivatives")
        compare(f"{name}, first steps to a corner", found(start, FIRST_STEP / mean), top, rtol=1e-5, why="ten iterations")
    finish()


if __name__ == "__main__":
    main()
