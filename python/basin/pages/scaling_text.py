"""What more ranks bring, for the report and docs/scaling.md: tables and sentences of analysis/rank_scaling.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..analysis.critical_batch import CriticalBatch
from ..analysis.rank_scaling import (
    PRODUCTS,
    UpdateCost,
    check,
    fitted_sizes,
    measured,
    ring_cost,
    scaling_table,
    update_costs,
)
from ..reader.names import Names
from ..reader.scaling import RankTimes

RANKS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
ABOUT = (
    "`basin scaling` timed this study's runs on several processes. Strong scaling keeps the batch, weak scaling the part of it that a rank "
    "has; n ranks that lose nothing are n times one rank. Each round has every number of ranks once; brackets are the quartiles over "
    "rounds. Waiting: the share of the updates' time in which rank 0 waited for sums, also for a slower rank."
)
MODEL = (
    "**A model, not a measurement**: the updates to the target that this study's runs need, S(B), times what an update takes, at the best "
    "batch size for each number of ranks. The time of an update comes from one rank and the time of a sum from those that were "
    "measured; sums that go on behind the backward pass, slower ranks and shared memory are left out. Intervals are those of S(B) alone."
)
FIGURE = "Times faster than one rank, and best batch size, against ranks, by a model"


@dataclass(frozen=True)
class Model:
    """The time to the target, by optimiser."""

    costs: dict[str, UpdateCost]
    laws: dict[str, CriticalBatch]  # of those that have one
    tables: dict[str, pd.DataFrame]


def model_of(times: RankTimes, laws: dict[str, CriticalBatch]) -> Model:
    costs = update_costs(times)
    known = {name: law for name, law in laws.items() if law.status == "ok" and name in costs}
    return Model(costs, known, {name: scaling_table(costs[name], law, RANKS) for name, law in known.items()})


def where(times: RankTimes) -> str:
    hosts = times.attributes["hosts"]
    threads, rounds = times.attributes["threads"], times.updates["round"].max()
    return (
        f"Measured on {times.provenance['started_utc'][:10]}: {len(hosts)} ranks of {threads} thread{'s' * (threads > 1)} each on "
        f"{len(set(hosts))} host{'s' * (len(set(hosts)) > 1)} ({times.provenance['cpu']}), {rounds} rounds."
    )


def measured_table(times: RankTimes) -> pd.DataFrame:
    rows = []
    for r in measured(times).itertuples():
        products = r.scaling == PRODUCTS
        rows.append({
            "what": "Hessian products" if products else f"{times.names.label('optimizers', r.optimizer)}, {r.scaling}",
            "ranks": r.ranks, "batch size": "–" if products else f"{r.batch_size:,.0f}",
            "per second": f"{r.rate:.3g}" if products else f"{r.rate:,.0f} images",
            "times one rank": "–" if r.ranks == 1 else f"{r.times_one:.2f} [{r.low:.2f}, {r.high:.2f}]",
            "efficiency": f"{100 * r.times_one / r.ranks:.0f} %", "waiting": share(r.waiting),
            "bytes summed": f"{r.bytes:,.0f}" if np.isfinite(r.bytes) else "–",
            "sent, over a ring's": f"{r.over_ring:.2f}" if np.isfinite(r.over_ring) else "–",
        })  # fmt: skip
    return pd.DataFrame(rows)


def share(value: float) -> str:
    return f"{100 * value:.0f} %" if np.isfinite(value) else "–"


def costs_text(model: Model, times: RankTimes) -> str:
    ring = ring_cost(times.sums)
    names = times.names
    lines = [
        f"- {names.label('optimizers', name)}: an update takes {cost.per_update * 1e3:.2f} ms and {cost.per_image * 1e6:.0f} µs for each "
        f"example; {cost.bytes / 1e3:,.1f} kB are summed in {cost.number:,.0f} sums."
        for name, cost in model.costs.items()
    ]
    lines += [
        f"- A step of a ring takes {ring.latency * 1e6:.0f} µs and moves {ring.bandwidth / 1e9:.2f} GB/s; the worst of the sums "
        f"measured is {100 * ring.misfit:.0f} % off."
    ]
    return "\n".join(lines)


def check_table(model: Model, times: RankTimes) -> pd.DataFrame:
    rows = []
    for r in check(model.costs, times).itertuples():
        rows.append({
            "optimiser": times.names.label("optimizers", r.optimizer), "ranks": r.ranks, "scaling": r.scaling,
            "batch size": f"{r.batch:,}", "measured, ms": f"{r.seconds * 1e3:.1f}", "model, ms": f"{r.model * 1e3:.1f}",
            "measured / model": f"{r.seconds / r.model:.2f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def model_table(model: Model, names: Names) -> pd.DataFrame:
    rows = []
    for name, table in model.tables.items():
        for r in table.itertuples():
            rows.append({
                "optimiser": names.label("optimizers", name), "ranks": f"{r.ranks:,}",
                "best batch size": f"{r.batch:,.0f}{'' if r.fitted else ' †'}", "updates": f"{r.updates:,.0f}",
                "examples": f"{r.examples:,.0f}", "seconds": f"{r.seconds:.3g}",
                "faster than one rank [95 %]": f"{r.faster:.2g} [{r.low:.2g}, {r.high:.2g}]", "share of sums": share(r.sums),
            })  # fmt: skip
    return pd.DataFrame(rows)


def beyond_text(model: Model, names: Names) -> str:
    """What † means, where a row has it."""
    sizes = [
        f"{names.label('optimizers', name)} from {low:,.0f} to {high:,.0f}"
        for name, law in model.laws.items()
        if not model.tables[name].fitted.all()
        for low, high in [fitted_sizes(law)]
    ]
    return f"† outside the batch sizes that S(B) was fitted to: {', '.join(sizes)}." if sizes else ""
