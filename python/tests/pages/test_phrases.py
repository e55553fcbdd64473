"""Numbers in words."""

import numpy as np

from basin.analysis import stats
from basin.analysis.number_text import points
from basin.pages.phrases import share_text


def test_points_and_shares():
    assert points(0.0213) == "+2.1" and points(-0.0213) == "−2.1"
    assert share_text(stats.Share(0.25, -0.1, 0.6, True)) == "25 % [−10, 60]"
    assert share_text(stats.Share(0.25, np.nan, np.nan, False)) == "no drop resolved"
