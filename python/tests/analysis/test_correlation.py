"""What may be claimed of a measure."""

import pytest

from clear_sweep import by_label, only


def test_what_is_planted_is_found_and_no_more_is_said(clear, few_draws):
    found = by_label(clear)
    for label in ("lambda", "lambda_1_w2"):
        c = found[label]
        assert c.says == "rises with the gap" and c.tau.low > 0 and c.holm < 0.05 and c.tau.band[1] < c.tau.value
        # along batch sizes tau is near 1; along optimisers, where the gap doesn't move, near 0
        assert 0.2 < c.psi.value < c.tau.value
    assert found["tr_sigma"].says == "no association shown"  # the plan's doesn't depend on the batch size
    # the same by optimiser alone: a constant rate, updates and loss leave nothing to hold
    assert found["lambda"].partial.why == "nothing to hold"
    assert found["lambda"].corrected.value == pytest.approx(found["lambda"].tau.value, abs=0.25)


def test_a_covariate_that_orders_like_the_gap_takes_the_claim(clear, few_draws):
    clear.runs["learning_rate"] = 1e-3 * clear.runs.batch_size * clear.runs.optimizer.map({"sgd": 1.0, "lars": 1.1, "lamb": 1.2})
    c = by_label(clear)["lambda"]
    assert c.held == ["rate"] and c.says == "rises with the gap, not shown beyond learning rate"


def test_four_repeated_configurations_are_too_few(clear, few_draws):
    runs = clear.runs.set_index("run_id")
    repeated = sorted(set(runs.config_id[runs.protocol == "B"]))[:4]
    only(clear, lambda p: p.run_id.map(runs.config_id).isin(repeated) | (p.run_id.map(runs.seed) == 1))
    assert by_label(clear)["lambda"].says == "nothing is claimed: 4 of 12 configurations have a second seed"
