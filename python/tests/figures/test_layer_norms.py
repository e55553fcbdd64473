"""The figure of layers draws the numbers of the record, a line for each layer's weights."""

import numpy as np
import pandas as pd
import pytest

import basin
from basin.figures import layer_norms
from basin.reader.layers import Layers
from planned import open_planned
from synthetic_sweep import Plan, make_sweep

SMALL = dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=60, updates=7)
WEIGHTS = ["conv1.weight", "fc.weight"]

pytestmark = pytest.mark.usefixtures("drawing")


def sweep_of(folder, **plan):
    return open_planned(folder, SMALL | plan)


def drawn(ax):
    return [(list(line.get_xdata()), np.asarray(line.get_ydata(), float)) for line in ax.lines]


def rows_of(figure):
    return np.reshape([ax for ax in figure.axes if ax.get_subplotspec() is not None], (-1, 4))


def expect_panels(axes, layers):
    wanted = [layers.weight_norm, layers.gradient_norm, layers.update_norm / layers.weight_norm, layers.trust_ratio]
    for ax, values in zip(axes, wanted):
        assert ax.get_yscale() == "log" and ax.get_xlabel() == "update" and "(" in ax.get_ylabel()
        for (x, y), name in zip(drawn(ax), WEIGHTS, strict=True):
            assert x == [1, 3, 6, 7]
            np.testing.assert_allclose(y, values[name], rtol=1e-12)


def test_a_row_an_optimizer_at_its_largest_batch(tmp_path):
    sweep = sweep_of(tmp_path / "s", endings={("B", "lamb", 1024): "target_not_reached"})
    figure = layer_norms.of_sweep(sweep)
    shown = layer_norms.shown(sweep)
    assert list(zip(shown.optimizer, shown.batch_size, shown.seed, shown.protocol)) == [
        ("sgd", 1024, 1, "B"),
        ("lamb", 32, 1, "B"),
    ]
    sgd, lamb = rows_of(figure)
    assert [sgd[0].get_title("left"), lamb[0].get_title("left")] == ["SGD, batch size 1K", "LAMB, batch size 32"]
    expect_panels(lamb, sweep.layers(shown.run_id.iloc[1]))
    assert not sgd[3].get_visible()  # an empty panel would say nothing
    assert [ax.texts[0].get_text() for ax in [*sgd, *lamb] if ax.get_visible()] == list("abcdefg")
    assert [t.get_text() for t in figure.legends[0].get_texts()] == WEIGHTS


def test_of_one_run(tmp_path):
    make_sweep(tmp_path / "s", Plan(**SMALL), write_runs=True)
    runs = basin.load_sweep(tmp_path / "s")
    run = basin.load_run(tmp_path / "s" / "runs" / runs[runs.optimizer == "lamb"].run_id.iloc[0])
    figure = layer_norms.of_run(run)
    expect_panels(rows_of(figure)[0], run.layers)
    run.layers = None
    assert "no norms by layer" in layer_norms.of_run(run).axes[0].texts[0].get_text()


def deep(depth, excluded=()):
    names = [f"block{i}.weight" for i in range(depth)] + ["block0.bias"]
    values = pd.DataFrame(np.ones((10, len(names))), index=range(1, 11), columns=names)
    ratio = values.copy()
    ratio[[*excluded, "block0.bias"]] = np.nan
    kinds = {name: name.split(".")[1] for name in names}
    return Layers(values, values, values, ratio, kinds, 1, "a definition")


def panels_of(layers):
    figure = layer_norms._draw([("a run", layers)], (2, 2))
    figure.canvas.draw()
    return figure, rows_of(figure)[0]


def test_a_deep_network_has_a_colour_bar_and_a_shallow_one_names(recwarn):
    figure, axes = panels_of(deep(60))
    assert not figure.legends and len(axes[0].lines) == 60
    assert len({line.get_color() for line in axes[0].lines}) == 60
    bar = next(ax for ax in figure.axes if ax.get_subplotspec() is None)
    assert [t.get_text() for t in bar.get_xticklabels()] == ["first layer", "last layer"]
    figure, axes = panels_of(deep(8))
    assert len(figure.legends[0].get_texts()) == 8
    assert not [w for w in recwarn if "constrained_layout" in str(w.message)]


def test_excluded_weights_are_dashed_and_have_no_ratio():
    _, axes = panels_of(deep(3, excluded=["block1.weight"]))
    assert [line.is_dashed() for line in axes[0].lines] == [False, True, False]
    assert [bool(np.isfinite(y).any()) for _, y in drawn(axes[3])] == [True, False, True]


def test_what_is_not_above_zero_is_a_gap():
    layers = deep(2)
    layers.gradient_norm = layers.gradient_norm.copy()
    layers.gradient_norm.loc[4, "block0.weight"] = 0
    layers.gradient_norm.loc[5, "block0.weight"] = np.inf
    _, axes = panels_of(layers)
    assert list(np.flatnonzero(np.isnan(drawn(axes[1])[0][1]))) == [3, 4]
