"""Numbers in words."""

import numpy as np

from basin.analysis import stats
from basin.analysis.cell_answers import CellAnswer
from basin.analysis.number_text import points
from basin.pages.phrases import cell_names, share_text


def test_points_and_shares():
    assert points(0.0213) == "+2.1" and points(-0.0213) == "−2.1"
    assert share_text(stats.Share(0.25, -0.1, 0.6, True)) == "25 % [−10, 60]"
    assert share_text(stats.Share(0.25, np.nan, np.nan, False)) == "no drop resolved"


def test_cells_that_optimisers_share_are_named_once():
    def cells(label, *sizes, arm=""):
        return [CellAnswer(label.lower(), label, size, None, None, None, arm) for size in sizes]

    assert cell_names(cells("LARS", 2048) + cells("LAMB", 2048)) == "LARS and LAMB at 2,048"
    assert (
        cell_names(cells("SGD", 256, 2048) + cells("LARS", 256) + cells("LAMB", 256)) == "SGD at 256, 2,048; LARS and LAMB at 256"
    )
    three = cells("SGD", 32) + cells("LARS", 32) + cells("LAMB", 32)
    assert cell_names(three) == "SGD, LARS and LAMB at 32"
    assert cell_names(cells("SGD", 32) + cells("LAMB", 32, arm="warmup=0")) == "SGD at 32; LAMB at 32 (warmup=0)"
