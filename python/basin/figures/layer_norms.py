"""What the updates did to each layer over training: norms of weights, gradients and updates, and trust ratios.

`of_run(run)` or, one run per optimiser, `of_sweep(sweep)`; `trust_ratios(sweep)` by layer, over all seeds."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..analysis.arms import ARM, with_arms
from ..analysis.matched import cell, comparable, fixed_budget, settings
from ..analysis.names import optimizers_of, protocol_name
from ..reader.layers import Layers
from ..reader.names import known_names
from ..reader.run import Run
from ..reader.sweep import Sweep
from . import style

NONE = "no norms by layer are recorded in this file"
MOST_NAMES = 8  # in a legend; deeper networks get a colour bar
PANELS = [
    ("‖w‖ (weight)", lambda layers: layers.weight_norm),
    ("‖g‖ (loss / weight)", lambda layers: layers.gradient_norm),
    ("‖Δw‖ / ‖w‖ (1)", lambda layers: layers.update_norm / layers.weight_norm),
    ("trust ratio (1)", lambda layers: layers.trust_ratio),
]


def of_run(run: Run) -> Figure:
    """Four panels, a line for each layer's weights; biases and norms are not drawn."""
    if not run.layers:
        figure, axes = style.grid(0, 1, 4.4, 2.9)
        style.nothing(axes[0], NONE)
        return figure
    title = f"{known_names().label('optimizers', run.config.get('optimizer', ''))}, run {run.run_id}"
    return _draw([(title, run.layers)], (2, 2))


def of_sweep(sweep: Sweep) -> Figure | None:
    """A row per optimiser: at matched loss (else the fixed budget), its largest batch size with a comparable run, smallest seed. Columns
    share their y axis, so that optimisers compare."""
    found = []
    for run in shown(sweep).itertuples():
        layers = sweep.layers(run.run_id)
        if layers is not None:
            label = sweep.names.label("optimizers", run.optimizer)
            found.append((f"{label}, batch size {style.batch_label(run.batch_size)}", layers))
    return _draw(found, (len(found), len(PANELS))) if found else None


def shown(sweep: Sweep) -> pd.DataFrame:
    """The runs that `of_sweep` draws, one row per optimiser."""
    runs = sweep.runs
    part = runs[runs.protocol == ("B" if (runs.protocol == "B").any() else fixed_budget(runs))]
    order = part.assign(good=comparable(part)).sort_values(["good", "batch_size", "seed"], ascending=[False, False, True])
    return order.drop_duplicates("optimizer").sort_values(
        "optimizer", key=lambda column: column.map(optimizers_of(runs, sweep.names).index)
    )


def _draw(found: list[tuple[str, Layers]], shape: tuple[int, int]) -> Figure:
    one = shape == (2, 2)
    figure, axes = style.panels(*shape, 4.4 if one else 3.1, 2.9 if one else 2.5, sharey=False if one else "col")
    for row, (title, layers) in zip([axes.flatten()] if one else axes, found):
        row[0].set_title(title)
        for ax, (label, of) in zip(row, PANELS):
            _panel(ax, of(layers), layers)
            ax.set_ylabel(label)
            ax.set_xlabel("update")
        if not layers.has_trust_ratios:  # the method has none: its place stays empty, without a letter
            row[-1].set_visible(False)
    style.letters_in_order(axes)
    _explain(figure, axes, [layers for _, layers in found])
    return figure


def _panel(ax: Axes, values: pd.DataFrame, layers: Layers) -> None:
    """What is not above zero has no place on a logarithmic axis: a gap. Dashed: excluded from trust ratios."""
    for name, colour in _colours(layers.weights).items():
        drawn = values[name].where(np.isfinite(values[name]) & (values[name] > 0))
        excluded = layers.has_trust_ratios and layers.trust_ratio[name].isna().all()
        ax.plot(drawn.index, drawn, color=colour, linewidth=1.1, alpha=0.9, linestyle=(0, (4, 2)) if excluded else "-",
                marker="o" if len(drawn) < 6 else "", markersize=3.5)  # fmt: skip
    ax.set_yscale("log")
    style.plain_log(ax.yaxis)


def _colours(names: list[str]) -> dict:
    return {name: mpl.colormaps["plasma"](0.88 * i / max(1, len(names) - 1)) for i, name in enumerate(names)}


def _explain(figure: Figure, axes: np.ndarray, shown_layers: list[Layers]) -> None:
    names = shown_layers[0].weights
    if len(names) <= MOST_NAMES and all(layers.weights == names for layers in shown_layers):
        handles = [Line2D([], [], color=colour, linewidth=2.4, label=name) for name, colour in _colours(names).items()]
        style.legend(figure, handles, columns=4)
        return
    colours = ListedColormap(list(_colours([str(i) for i in range(256)]).values()))
    bar = figure.colorbar(ScalarMappable(cmap=colours), ax=axes, location="bottom", shrink=0.4, aspect=40, ticks=[0, 1])
    bar.ax.set_xticklabels(["first layer", "last layer"])


def trust_ratios(sweep: Sweep) -> Figure | None:
    """Median over recorded updates and seeds, with the middle 80 %, by parameter; a panel per layer-wise optimiser. Plain
    settings alone; cells of several are left out."""
    runs = with_arms(sweep)
    runs = runs[runs[ARM] == ""]
    protocol = "B" if (runs.protocol == "B").any() else fixed_budget(runs) or ""
    found: dict[str, dict[float, list[pd.DataFrame]]] = {}
    for run in runs[runs.protocol == protocol].itertuples():
        layers = sweep.layers(run.run_id)
        if settings(cell(runs, protocol, run.optimizer, run.batch_size)) > 1:
            continue  # never averaged
        if layers is not None and layers.has_trust_ratios:
            found.setdefault(run.optimizer, {}).setdefault(float(run.batch_size), []).append(layers.trust_ratio)
    if not found:
        return None
    figure, axes = style.panels(1, len(found), 5.4, 3.4)
    colours = style.batch_colours(size for by_size in found.values() for size in by_size)
    for ax, optimizer in zip(axes[0], sweep.names.in_order("optimizers", found)):
        _trust_panel(ax, found[optimizer], colours)
        ax.set_title(f"{sweep.names.label('optimizers', optimizer)}, {protocol_name(protocol)}")
        ax.set_ylabel("trust ratio (factor on the step)")
    style.legend(figure, style.batch_legend(colours), title="bars: 10th to 90th percentile")
    return figure


def _trust_panel(ax: Axes, by_size: dict, colours: style.Colours) -> None:
    names = [
        c
        for c in next(iter(by_size.values()))[0].columns
        if any(f[c].notna().any() for fs in by_size.values() for f in fs if c in f)
    ]
    sizes = sorted(by_size)
    for i, size in enumerate(sizes):
        pooled = pd.concat(by_size[size])
        if not names:
            continue
        low, middle, high = (pooled[names].quantile(q).to_numpy(float) for q in (0.1, 0.5, 0.9))
        x = np.arange(len(names)) + 0.6 * ((i + 0.5) / len(sizes) - 0.5)
        ax.errorbar(
            x, middle, [middle - low, high - middle], color=colours[size], marker="o", markersize=4.5, linestyle="", capsize=2
        )
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=8.5)
    ax.grid(axis="x", visible=False)
    ax.set_yscale("log")
    style.plain_log(ax.yaxis)
