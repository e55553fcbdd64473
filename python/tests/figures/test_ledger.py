"""The ledger's figure: nothing without the probe, a panel per number and optimiser with it."""

import numpy as np
import pandas as pd
import pytest

import basin
from basin.figures.ledger import SHOWN, ledger_against_loss
from basin.figures.ledger_on_the_way import PANELS, POINTS, ledger_on_the_way, means_of


def rows_of(sweep):
    """Numbers of the probe `ledger` at two losses of every run of protocol B, and some of a twin, which isn't drawn."""
    template = sweep.probes[sweep.probes.checkpoint == "end"].groupby("run_id").first().reset_index()
    rows = []
    for quantity in SHOWN:
        for checkpoint, loss in (("loss-1.8", 1.8), ("end", 1.5), ("end@twin", 1.5)):
            rows.append(
                template.assign(
                    probe="ledger",
                    quantity=quantity,
                    entry=quantity,
                    checkpoint=checkpoint,
                    train_loss=loss,
                    value=0.5,
                    uncertainty=0.1,
                    uncertainty_kind="standard_error",
                    ci_low=np.nan,
                    ci_high=np.nan,
                    status="ok",
                    index=0,
                )
            )
    return rows


def test_a_panel_for_each_number_and_optimiser(clear, drawing):
    assert ledger_against_loss(clear) is None
    clear.probes = pd.concat([clear.probes, *rows_of(clear)], ignore_index=True)
    figure = ledger_against_loss(clear)
    drawn = [ax for ax in figure.axes if ax.containers]
    optimizers = clear.runs.optimizer.nunique()
    assert len(drawn) == len(SHOWN) * optimizers
    assert all(len(container[0].get_xdata()) == 2 for ax in drawn for container in ax.containers), "no twin among them"
    assert isinstance(clear, basin.reader.sweep.Sweep)


def test_a_negative_share_is_drawn(clear, drawing):
    """Where an update raises the loss `first_order_share` is negative, and no logarithmic axis has it."""
    clear.probes = pd.concat([clear.probes, *rows_of(clear)], ignore_index=True)
    share = (clear.probes.quantity == "first_order_share") & (clear.probes.checkpoint == "end")
    clear.probes.loc[share, "value"] = -0.4
    scales = {ax.get_ylabel(): ax.get_yscale() for ax in ledger_against_loss(clear).axes if ax.get_ylabel()}
    linear = [label for label, scale in scales.items() if scale == "linear"]
    assert len(linear) == 1 and "first" in linear[0].lower() and len(scales) == len(SHOWN)


def kept(count):
    """`count` rows of /ledger: a rate at half of the critical one, noise twice the gradient on average, two updates that don't descend."""
    rows = pd.DataFrame({
        "batch_loss": np.linspace(2.0, 1.0, count), "learning_rate": 0.1, "critical_sharpness": 10.0, "cosine": 0.25,
        "noise_square": np.where(np.arange(count) % 2, 3.0, 1.0), "gradient_square": np.where(np.arange(count) % 2, -1.0, 3.0),
        "decrease": 0.5, "first_order": 1.0, "status": "ok",
    })  # fmt: skip
    return rows


def test_parts_are_averaged_before_they_are_divided():
    means = means_of(kept(24))
    assert len(means) == POINTS
    assert means.rate_over_critical.tolist() == pytest.approx([0.5] * POINTS)
    assert means.noise_over_gradient.tolist() == pytest.approx([2.0] * POINTS)  # (1 + 3) / (3 - 1)
    assert means.first_order_share.tolist() == pytest.approx([0.5] * POINTS)
    assert means.batch_loss.iloc[0] > means.batch_loss.iloc[-1]
    assert len(means_of(kept(5))) == 5 and means_of(kept(0)).empty
    assert np.isnan(means_of(kept(24).assign(gradient_square=-1.0)).noise_over_gradient).all()


def test_runs_that_kept_a_ledger_have_a_line_in_each_panel(clear, drawing, monkeypatch):
    assert ledger_on_the_way(clear) is None
    monkeypatch.setattr(clear, "curve", lambda run_id, table: kept(30) if table == "ledger" else None)
    figure = ledger_on_the_way(clear)
    used = [ax for ax in figure.axes if ax.lines]
    assert len(used) == len(PANELS) * clear.runs.optimizer.nunique()
    assert sum(len(ax.lines) for ax in used) == len(PANELS) * len(clear.runs)
