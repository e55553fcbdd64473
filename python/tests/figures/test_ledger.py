"""The ledger's figure: nothing without the probe, a panel per number and optimiser with it."""

import numpy as np

import basin
from basin.figures.ledger import SHOWN, ledger_against_loss


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
    import pandas as pd

    assert ledger_against_loss(clear) is None
    clear.probes = pd.concat([clear.probes, *rows_of(clear)], ignore_index=True)
    figure = ledger_against_loss(clear)
    drawn = [ax for ax in figure.axes if ax.containers]
    optimizers = clear.runs.optimizer.nunique()
    assert len(drawn) == len(SHOWN) * optimizers
    assert all(len(container[0].get_xdata()) == 2 for ax in drawn for container in ax.containers), "no twin among them"
    assert isinstance(clear, basin.reader.sweep.Sweep)
