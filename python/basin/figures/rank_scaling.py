"""How many times faster than one rank the time to a target is, by a model, and the batch size that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..reader.names import Names
from . import style


def figure(tables: dict[str, pd.DataFrame], names: Names) -> Figure:
    """`tables` of analysis.rank_scaling.scaling_table, by optimiser."""
    picture, axes = style.panels(1, 2, 5.4, 4.0)
    left, right = axes[0]
    ranks = np.array(sorted({n for table in tables.values() for n in table.ranks}), float)
    left.plot(ranks, ranks, color="0.7", linewidth=1, label="nothing lost")
    for name, table in tables.items():
        label = names.label("optimizers", name)
        how: dict[str, Any] = {"color": style.colour(name, names), "marker": style.marker(name, names), "markersize": 4}
        left.plot(table.ranks, table.faster, label=label, **how)
        left.fill_between(table.ranks, table.low, table.high, color=how["color"], alpha=0.2, linewidth=0)
        right.plot(table.ranks, table.batch, label=label, **how)
    for axis, what in ((left, "times faster than one rank, to the target"), (right, "best batch size")):
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        style.plain_log(axis.yaxis)
        axis.set_xticks(ranks, [f"{int(n):,}" for n in ranks], rotation=45, fontsize=7)
        axis.set_xlabel("ranks")
        axis.set_ylabel(what)
        axis.legend(fontsize=8)
    left.set_title("a model; band: 95 % of S(B) alone", fontsize=8.5)
    return picture
