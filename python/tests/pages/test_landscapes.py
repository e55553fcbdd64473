"""A landscape is drawn by the axes of its grid, of whatever kind it is."""

import numpy as np
import pytest

from basin.pages import landscapes
from surface_files import ALPHA, bowl, make

pytestmark = pytest.mark.usefixtures("drawing")


def test_a_kind_that_nobody_knows_is_drawn_by_its_axes(tmp_path):
    found, figures = landscapes.draw(make(tmp_path / "plane.h5", bowl(), kind="new"))
    assert (found.kind, len(figures)) == ("new", 2)
    found, figures = landscapes.draw(make(tmp_path / "line.h5", bowl()[0], kind="newer", axes=[("alpha", ALPHA)]))
    np.testing.assert_array_equal(figures[0].axes[0].lines[0].get_xdata(), ALPHA)
    assert len(figures) == 1 and landscapes.in_words(found) == "**line** (newer)"


def test_a_grid_without_a_figure_has_none(tmp_path):
    _, figures = landscapes.draw(make(tmp_path / "s.h5", bowl()[0], axes=[("angle", np.linspace(0, 1, 7))]))
    assert figures == []
