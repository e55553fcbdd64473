"""The edge of stability in words and in a figure, of a sweep made by hand."""

import numpy as np
import pytest

from basin.analysis.stability_limit import levels, limit, named
from basin.figures import edge_of_stability
from basin.pages import edge
from edge_sweep import Made


@pytest.mark.parametrize("change", [{"schedule": "cosine"}, {"warmup": 0.05}])
def test_a_rate_that_changes_has_no_limit_but_a_reason(change):
    sweep = Made(**change, peak_learning_rate=0.1)
    run = sweep.runs.iloc[0]
    assert np.isnan(limit(run)) and named(run) == "η ≤ 0.1"
    axes = edge_of_stability.figure(sweep).axes[0]
    assert not [line for line in axes.lines if line.get_linestyle() == "--"]
    assert axes.get_legend().get_title().get_text().startswith("no limit: the rate changes over the run (schedule ")
    table = levels(sweep)
    assert table.level.isna().all() and table.late.to_numpy() == pytest.approx([20, 10]) and list(table.seeds) == [2, 2]
    assert all("no limit: the rate changes" in line and "nan" not in line for line in edge.in_words(sweep))


def test_figure_and_words():
    sweep = Made()
    picture = edge_of_stability.figure(sweep)
    dashed = [line for line in picture.axes[0].lines if line.get_linestyle() == "--"]
    assert {line.get_ydata()[0] for line in dashed} == {20.0, 10.0}
    legend = picture.axes[0].get_legend()
    assert legend.get_title().get_text() == "one line per seed; dashed: limit of stability"
    assert [t.get_text() for t in legend.get_texts()] == ["η = 0.1", "η = 0.2"]
    assert "1.000 ± 0.050" in edge.in_words(sweep)[0]


def test_a_sweep_without_a_cadence_is_one_line(tmp_path, capsys):
    assert edge.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("basin.pages.edge: ")
