"""Trials of S(B) and branches with known numbers."""

import numpy as np
import pandas as pd

N = 5000
SIZES = (16, 32, 64, 128, 256, 512, 1024, 5000)


def drawn(random, critical=200.0, least=40.0, sizes=SIZES, sigma=0.08, seeds=2, cap=20000, exponent=1.0):
    """Trials at seven rates around the best, which moves as McCandlish et al. have it; checks at the cadence of 50 examples."""
    rows = []
    for batch in sizes:
        x = max(0, 1 / batch - 1 / N)
        best = np.log(least * (1 + (critical * x) ** exponent))
        rates = 0.3 * least / np.exp(best) * 2.0 ** np.arange(-3, 4)
        every = max(1, np.ceil(50 / batch))
        for seed in range(seeds):
            for rate in rates:
                log_s = best + 0.4 * np.log(rate / (0.3 * least / np.exp(best))) ** 2 + sigma * random.standard_normal()
                high = np.ceil(np.exp(log_s) / every) * every
                rows.append((batch, rate, seed, *((cap, np.inf) if high > cap else (high - every, high))))
    return pd.DataFrame(rows, columns=["batch", "rate", "seed", "low", "high"])


def branches(progress, seeds=5, scatter=0.0, random=None, factors=(0.5, 1.0), point="u100"):
    """Branches of each k: the progress at the best of its rate factors, the last; the others make 0.9 of that."""
    rows = []
    for seed in range(seeds):
        shift = scatter * random.standard_normal() if random is not None else 0.0
        for k, share in progress.items():
            for factor in (1.0,) if k == 1 else factors:
                own = scatter / 3 * random.standard_normal() if random is not None else 0.0
                gain = (0.1 + shift) * share * (1 if factor == factors[-1] else 0.9) + own
                rows.append((point, k, seed, factor, 1.0, 1.0 - gain, False))
    return pd.DataFrame(rows, columns=["branch_point", "k", "seed", "rate_factor", "loss_before", "loss_after", "censored"])
