"""The figure of what a sweep ends at, with its twins, on a made sweep."""

import numpy as np
import pytest

from basin.figures import twins
from basin.pages.keskar import AT_THE_END
from planned import open_planned

PLAN = dict(
    batch_sizes=(32, 1024), optimizers=("sgd",), seeds=(1, 2, 3), protocols=("B",), images=200, updates=4,
    arms=(("ghost_batch", 500, (1024,), 0.5),),
)  # fmt: skip


def drawn(sweep):
    return {ax.get_ylabel(): ax for ax in twins.ends_against_batch(sweep, sweep.measures(AT_THE_END)).axes if ax.get_visible()}


def test_each_measure_stands_above_its_twin(tmp_path):
    sweep = open_planned(tmp_path / "s", PLAN | {"twin": True})
    panels = drawn(sweep)
    assert len(panels) == 6 and "λ₁ (loss / weight²)\nat the twin" in panels
    for label, column in (
        ("λ₁ (loss / weight²)", "probe.end.top_eigenvalues.lambda_1"),
        ("λ₁ (loss / weight²)\nat the twin", "probe.end@twin.top_eigenvalues.lambda_1"),
        ("test loss (nat)", "test_loss"),
    ):
        plain = sweep.runs[sweep.runs.ghost_batch == 0].groupby("batch_size")[column].mean()
        assert panels[label].lines[0].get_ydata() == pytest.approx(plain.to_numpy())
    above, below = panels["λ₁ (loss / weight²)"], panels["λ₁ (loss / weight²)\nat the twin"]
    assert above.get_ylim() == below.get_ylim() and below.get_yscale() == "log"
    heights = [np.ravel(line.get_ydata()) for line in panels["test accuracy (%)"].lines]
    assert any(len(h) and h[0] == pytest.approx(100 * sweep.runs[sweep.runs.ghost_batch == 500].test_acc.mean()) for h in heights)


def test_without_twins_only_the_test_loss_is_below(tmp_path):
    panels = drawn(open_planned(tmp_path / "s", PLAN))
    assert len(panels) == 4 and not any("twin" in label for label in panels)
