"""The limit of stability, and levels against it, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from basin.analysis import stability_limit
from edge_sweep import CONSTANT, Made


def test_limits_are_those_of_the_quadratic():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, **CONSTANT}
    assert stability_limit.limit(pd.Series(run)) == pytest.approx(20)
    assert stability_limit.limit(pd.Series({**run, "sgd.momentum": 0.9})) == pytest.approx(38)
    assert stability_limit.limit(pd.Series({**run, "sgd.momentum": 0.9, "sgd.nesterov": True})) == pytest.approx(3.8 / 2.8 / 0.1)
    assert np.isnan(stability_limit.limit(pd.Series({**run, "optimizer": "lamb"})))


def test_the_rate_is_the_one_used():
    """With momentum 0.9 an effective rate of 0.5 is a rate of 0.05: heavy-ball descent is stable to 2 (1 + 0.9)/0.05."""
    run = {"optimizer": "sgd", "learning_rate": 0.5, "sgd.momentum": 0.9, "effective_rate": True, **CONSTANT}
    given = pd.Series({**run, "peak_learning_rate": 0.05})
    assert (
        stability_limit.limit(given) == pytest.approx(76)
        and stability_limit.named(given) == "η = 0.05"
        and not stability_limit.why_no_limit(given)
    )
    assert np.isnan(stability_limit.limit(pd.Series(run))) and "effective_rate" in stability_limit.why_no_limit(pd.Series(run))
    assert np.isnan(stability_limit.limit(pd.Series({**run, "peak_learning_rate": np.nan})))  # of a run that was never begun


def test_files_without_the_rate_used_have_a_limit_where_no_rule_changed_it():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "batch_size": 1000, "base_batch": 256, **CONSTANT}
    assert stability_limit.limit(pd.Series({**run, "scaling_rule": "none"})) == pytest.approx(20)
    assert stability_limit.limit(pd.Series({**run, "scaling_rule": "linear", "base_batch": 1000})) == pytest.approx(20)
    beside_newer = {"scaling_rule": "none", "effective_rate": np.nan, "peak_learning_rate": np.nan}
    assert stability_limit.limit(pd.Series({**run, **beside_newer})) == pytest.approx(20)
    scaled = pd.Series({**run, "scaling_rule": "linear"})
    assert np.isnan(stability_limit.limit(scaled)) and "scaling_rule" in stability_limit.why_no_limit(scaled)
    assert stability_limit.named(scaled) == "learning_rate = 0.1"
    assert stability_limit.limit(pd.Series({**scaled, "peak_learning_rate": 0.4})) == pytest.approx(5)


def test_rates_by_parameter_leave_no_limit_of_the_hessian():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "peak_learning_rate": 0.1, **CONSTANT}
    for none in ("[]", "", np.nan):  # the second and third of files from before there were any
        assert stability_limit.limit(pd.Series({**run, "learning_rate_factors": none})) == pytest.approx(20)
    own = pd.Series({**run, "learning_rate_factors": '["norm1.bias=64"]'})
    assert np.isnan(stability_limit.limit(own)) and "rates of their own" in stability_limit.why_no_limit(own)


def test_lookahead_leaves_no_limit_of_the_rate_alone():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "peak_learning_rate": 0.1, **CONSTANT}
    assert stability_limit.limit(pd.Series({**run, "lookahead_every": 0})) == pytest.approx(20)
    assert "Lookahead" in stability_limit.why_no_limit(pd.Series({**run, "lookahead_every": 1}))


def test_levels_are_means_over_seeds_of_the_last_third_of_the_cadence():
    table = stability_limit.levels(Made())
    assert list(table.learning_rate) == [0.1, 0.2]
    assert table.level.to_numpy() == pytest.approx([1.0, 1.0])  # (1.05 + 0.95) / 2; the checkpoint "end" is no part of it
    assert table.error.to_numpy() == pytest.approx([0.05, 0.05])
    assert table.start.to_numpy() == pytest.approx([0.25, 0.25])
    assert list(table.seeds) == [2, 2]
