"""The limit of stability, and levels against it, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from basin.analysis import stability_limit
from edge_sweep import CONSTANT, Made

RUN = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0, "sgd_noise_scale": 1.0, **CONSTANT}


def test_limits_are_those_of_the_quadratic():
    run = {**RUN, "peak_learning_rate": 0.1}
    assert stability_limit.limit(pd.Series(run)) == pytest.approx(20)
    assert stability_limit.limit(pd.Series({**run, "sgd.momentum": 0.9})) == pytest.approx(38)
    assert stability_limit.limit(pd.Series({**run, "sgd.momentum": 0.9, "sgd.nesterov": True})) == pytest.approx(3.8 / 2.8 / 0.1)


def test_a_method_that_does_not_step_along_gradients_has_none():
    """Whatever it is called: of its runs no noise scale of SGD is recorded."""
    for other in ({"optimizer": "lamb", "sgd_noise_scale": np.nan}, {"sgd_noise_scale": np.nan}):
        run = pd.Series({**RUN, "peak_learning_rate": 0.1, **other})
        assert np.isnan(stability_limit.limit(run)) and stability_limit.why_no_limit(run) == "steps are not along gradients"
    other = {"optimizer": "plain", "plain.momentum": 0.9, "peak_learning_rate": 0.1}
    assert stability_limit.limit(pd.Series({**RUN, **other})) == pytest.approx(38)
    grows = pd.Series({**RUN, "peak_learning_rate": 0.1, "sgd_noise_scale": np.nan, "batch_milestones": '["0.5=2"]'})
    assert "batch_milestones" in stability_limit.why_no_limit(grows)


def test_the_rate_is_the_one_used():
    """With momentum 0.9 an effective rate of 0.5 is a rate of 0.05: heavy-ball descent is stable to 2 (1 + 0.9)/0.05."""
    run = {**RUN, "learning_rate": 0.5, "sgd.momentum": 0.9, "effective_rate": True}
    given = pd.Series({**run, "peak_learning_rate": 0.05})
    assert (
        stability_limit.limit(given) == pytest.approx(76)
        and stability_limit.named(given) == "η = 0.05"
        and not stability_limit.why_no_limit(given)
    )
    assert np.isnan(stability_limit.limit(pd.Series(run))) and "peak_learning_rate" in stability_limit.why_no_limit(
        pd.Series(run)
    )
    assert np.isnan(stability_limit.limit(pd.Series({**run, "peak_learning_rate": np.nan})))  # of a run that was never begun


def test_files_without_the_rate_used_have_no_limit():
    run = pd.Series(RUN)
    assert np.isnan(stability_limit.limit(run)) and "peak_learning_rate" in stability_limit.why_no_limit(run)
    assert stability_limit.named(run) == "learning_rate = 0.1"


def test_rates_by_parameter_leave_no_limit_of_the_hessian():
    run = {**RUN, "peak_learning_rate": 0.1}
    for none in ("[]", "", np.nan):  # the second and third of files from before there were any
        assert stability_limit.limit(pd.Series({**run, "learning_rate_factors": none})) == pytest.approx(20)
    own = pd.Series({**run, "learning_rate_factors": '["norm1.bias=64"]'})
    assert np.isnan(stability_limit.limit(own)) and "rates of their own" in stability_limit.why_no_limit(own)


def test_lookahead_leaves_no_limit_of_the_rate_alone():
    run = {**RUN, "peak_learning_rate": 0.1}
    assert stability_limit.limit(pd.Series({**run, "lookahead_every": 0})) == pytest.approx(20)
    assert "Lookahead" in stability_limit.why_no_limit(pd.Series({**run, "lookahead_every": 1}))


@pytest.mark.parametrize("option", [{"perturbation.kind": "gradient_penalty"}, {"parallel.mode": "ssp"}, {"parallel.shards": 4}])
def test_other_gradients_than_those_of_the_weights_leave_no_limit(option):
    """A penalty's edge is at λ + α λ² = 2/η, a delay of one update has η λ < 1, and a mean of chains makes no step of its own."""
    run = {**RUN, "peak_learning_rate": 0.1, **option}
    assert np.isnan(stability_limit.limit(pd.Series(run)))
    assert next(iter(option)) in stability_limit.why_no_limit(pd.Series(run))


def test_what_was_measured_with_other_settings_is_no_part_of_a_level():
    made = Made()
    before = stability_limit.levels(made)
    made.probes = pd.concat([made.probes, made.probes.assign(value=3 * made.probes.value, study=False)], ignore_index=True)
    pd.testing.assert_frame_equal(stability_limit.levels(made), before)


def test_levels_are_means_over_seeds_of_the_last_third_of_the_cadence():
    table = stability_limit.levels(Made())
    assert list(table.learning_rate) == [0.1, 0.2]
    assert table.level.to_numpy() == pytest.approx([1.0, 1.0])  # (1.05 + 0.95) / 2; the checkpoint "end" is no part of it
    assert table.error.to_numpy() == pytest.approx([0.05, 0.05])
    assert table.start.to_numpy() == pytest.approx([0.25, 0.25])
    assert list(table.seeds) == [2, 2]
