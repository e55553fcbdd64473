"""basin.edge on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from basin.pages import edge

CONSTANT = {"schedule": "constant", "warmup": 0.0}


class Made:
    """Two rates, two seeds; λ₁ climbs linearly to 1.05 and 0.95 times 2/rate, the limit of plain descent, and stays."""

    def __init__(self, **options):
        rows, probes = [], []
        for rate in (0.1, 0.2):
            for seed, share in ((1, 1.05), (2, 0.95)):
                run_id = f"{rate}-{seed}"
                rows.append({"run_id": run_id, "config_id": str(rate), "optimizer": "sgd", "learning_rate": rate, "updates": 600,
                             "sgd.momentum": 0.0, **CONSTANT, **options})  # fmt: skip
                limit = 2 / rate
                for update in range(100, 601, 100):
                    value = share * limit * min(1.0, update / 400)
                    probes.append({"run_id": run_id, "checkpoint": f"u{update:06d}", "probe": "top_eigenvalues", "quantity": "lambda",
                                   "index": 0, "update": update, "value": value, "uncertainty": 0.01, "status": "ok"})  # fmt: skip
                probes.append({**probes[-1], "checkpoint": "end", "value": 1e9})
        self.runs, self.probes = pd.DataFrame(rows), pd.DataFrame(probes)

    def curve(self, run_id, table="train"):
        return pd.DataFrame({"update": [1, 2], "loss": [1.0, 0.5]})


def test_limits_are_those_of_the_quadratic():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, **CONSTANT}
    assert edge.limit(pd.Series(run)) == pytest.approx(20)
    assert edge.limit(pd.Series({**run, "sgd.momentum": 0.9})) == pytest.approx(38)
    assert edge.limit(pd.Series({**run, "sgd.momentum": 0.9, "sgd.nesterov": True})) == pytest.approx(3.8 / 2.8 / 0.1)
    assert np.isnan(edge.limit(pd.Series({**run, "optimizer": "lamb"})))


def test_the_rate_is_the_one_used():
    """With momentum 0.9 an effective rate of 0.5 is a rate of 0.05: heavy-ball descent is stable to 2 (1 + 0.9)/0.05."""
    run = {"optimizer": "sgd", "learning_rate": 0.5, "sgd.momentum": 0.9, "effective_rate": True, **CONSTANT}
    given = pd.Series({**run, "peak_learning_rate": 0.05})
    assert edge.limit(given) == pytest.approx(76) and edge.named(given) == "η = 0.05" and not edge.why_no_limit(given)
    assert np.isnan(edge.limit(pd.Series(run))) and "effective_rate" in edge.why_no_limit(pd.Series(run))
    assert np.isnan(edge.limit(pd.Series({**run, "peak_learning_rate": np.nan})))  # of a run that was never begun


def test_files_without_the_rate_used_have_a_limit_where_no_rule_changed_it():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "batch_size": 1000, "base_batch": 256, **CONSTANT}
    assert edge.limit(pd.Series({**run, "scaling_rule": "none"})) == pytest.approx(20)
    assert edge.limit(pd.Series({**run, "scaling_rule": "linear", "base_batch": 1000})) == pytest.approx(20)
    beside_newer = {"scaling_rule": "none", "effective_rate": np.nan, "peak_learning_rate": np.nan}
    assert edge.limit(pd.Series({**run, **beside_newer})) == pytest.approx(20)
    scaled = pd.Series({**run, "scaling_rule": "linear"})
    assert np.isnan(edge.limit(scaled)) and "scaling_rule" in edge.why_no_limit(scaled)
    assert edge.named(scaled) == "learning_rate = 0.1"
    assert edge.limit(pd.Series({**scaled, "peak_learning_rate": 0.4})) == pytest.approx(5)


@pytest.mark.parametrize("change", [{"schedule": "cosine"}, {"warmup": 0.05}])
def test_a_rate_that_changes_has_no_limit_but_a_reason(change):
    sweep = Made(**change, peak_learning_rate=0.1)
    run = sweep.runs.iloc[0]
    assert np.isnan(edge.limit(run)) and edge.named(run) == "η ≤ 0.1"
    axes = edge.figure(sweep).axes[0]
    assert not [line for line in axes.lines if line.get_linestyle() == "--"]
    assert axes.get_legend().get_title().get_text().startswith("no limit: the rate changes over the run (schedule ")
    table = edge.levels(sweep)
    assert table.level.isna().all() and table.late.to_numpy() == pytest.approx([20, 10]) and list(table.seeds) == [2, 2]
    assert all("no limit: the rate changes" in line and "nan" not in line for line in edge.in_words(sweep))


def test_rates_by_parameter_leave_no_limit_of_the_hessian():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "peak_learning_rate": 0.1, **CONSTANT}
    for none in ("[]", "", np.nan):  # the second and third of files from before there were any
        assert edge.limit(pd.Series({**run, "learning_rate_factors": none})) == pytest.approx(20)
    own = pd.Series({**run, "learning_rate_factors": '["norm1.bias=64"]'})
    assert np.isnan(edge.limit(own)) and "rates of their own" in edge.why_no_limit(own)


def test_lookahead_leaves_no_limit_of_the_rate_alone():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "peak_learning_rate": 0.1, **CONSTANT}
    assert edge.limit(pd.Series({**run, "lookahead_every": 0})) == pytest.approx(20)
    assert "Lookahead" in edge.why_no_limit(pd.Series({**run, "lookahead_every": 1}))


def test_levels_are_means_over_seeds_of_the_last_third_of_the_cadence():
    table = edge.levels(Made())
    assert list(table.learning_rate) == [0.1, 0.2]
    assert table.level.to_numpy() == pytest.approx([1.0, 1.0])  # (1.05 + 0.95) / 2; the checkpoint "end" is no part of it
    assert table.error.to_numpy() == pytest.approx([0.05, 0.05])
    assert table.start.to_numpy() == pytest.approx([0.25, 0.25])
    assert list(table.seeds) == [2, 2]


def test_figure_and_words():
    sweep = Made()
    picture = edge.figure(sweep)
    dashed = [line for line in picture.axes[0].lines if line.get_linestyle() == "--"]
    assert {line.get_ydata()[0] for line in dashed} == {20.0, 10.0}
    legend = picture.axes[0].get_legend()
    assert legend.get_title().get_text() == "dashed: limit of stability"
    assert [t.get_text() for t in legend.get_texts()] == ["η = 0.1", "η = 0.2"]
    assert "1.000 ± 0.050" in edge.in_words(sweep)[0]


def test_a_sweep_without_a_cadence_is_one_line(tmp_path, capsys):
    assert edge.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("basin.edge: ")
