"""Which numbers are put together."""

import numpy as np
import pandas as pd
import pytest

from basin.analysis.noise_scale import pooled_noise_scale
from basin.analysis.sweep_measures import basis_of, collect
from clear_sweep import CLEAR, only
from planned import open_planned


def test_configurations_are_means_over_seeds(clear):
    found = {m.label: m for m in collect(clear)}
    runs = clear.runs[clear.runs.protocol == "B"]
    by_config = runs.groupby("config_id")
    configs = found["lambda"].configs.set_index("config_id")
    assert len(configs) == 12 and (configs.seeds == 3).all() and found["lambda"].repeated == 12
    np.testing.assert_allclose(configs.value, by_config["probe.end.top_eigenvalues.lambda_1"].mean())
    np.testing.assert_allclose(configs.value_error, by_config["probe.end.top_eigenvalues.lambda_1"].sem())  # above the residual
    np.testing.assert_allclose(configs.gap, 100 * (by_config.train_acc.mean() - by_config.test_acc.mean()))
    np.testing.assert_allclose(configs.gap_error, 100 * by_config.test_acc.sem())
    np.testing.assert_allclose(configs.test_error, 100 * (1 - by_config.test_acc.mean()))


def test_the_noise_scale_is_a_ratio_of_means(clear):
    """Docs: a mean of ratios over runs is worthless. LAMB's largest batch is not resolved and has none."""
    found = {m.label: m for m in collect(clear)}["b_simple"].configs.set_index("config_id")
    runs = clear.runs[clear.runs.protocol == "B"]
    unresolved = runs.config_id[(runs.optimizer == "lamb") & (runs.batch_size == 65536)].iloc[0]
    assert len(found) == 11 and unresolved not in found.index
    assert {m.label: m for m in collect(clear)}["b_simple"].dropped == {"configurations not resolved": 1}
    one = runs[runs.config_id == found.index[0]]
    expected = pooled_noise_scale(one["probe.end.noise_scale.tr_sigma"], one["probe.end.noise_scale.g2"])
    assert found.value.iloc[0] == pytest.approx(expected.value)
    rows = clear.probes[
        clear.probes.run_id.isin(one.run_id) & (clear.probes.checkpoint == "end") & (clear.probes.quantity == "b_simple")
    ]
    assert found.value_error.iloc[0] == pytest.approx(max(expected.error, rows.uncertainty.astype(float).mean()))


def test_copies_of_the_noise_scale_are_left_out(tmp_path):
    """batch_bound is 1 + B; by itself it would be a mean of ratios, and B counted again."""
    sweep = open_planned(tmp_path / "s", CLEAR)
    again = sweep.probes[sweep.probes.quantity == "b_simple"]
    sweep.probes = pd.concat([sweep.probes, again.assign(quantity="batch_bound", value=again.value + 1)], ignore_index=True)
    assert "b_simple" in labels(sweep) and "batch_bound" not in labels(sweep)


def test_the_hessians_noise_scale_is_a_ratio_of_means_too(tmp_path):
    sweep = open_planned(tmp_path / "s", CLEAR)
    names = {"b_simple": "b_hessian", "tr_sigma": "tr_h_sigma", "g2": "g_h_g"}
    simple = {m.label: m for m in collect(sweep)}["b_simple"].configs
    sweep.probes["quantity"] = sweep.probes.quantity.replace(names)
    weighted = {m.label: m for m in collect(sweep)}["b_hessian"].configs
    pd.testing.assert_series_equal(weighted.value, simple.value)
    pd.testing.assert_series_equal(weighted.value_error, simple.value_error)


def labels(sweep):
    return [m.label for m in collect(sweep)]


def test_only_comparable_runs_and_numbers_are_taken(tmp_path):
    endings = {("B", "sgd", 32): "overshot", ("B", "lars", 2048, 2): "target_not_reached"}
    sweep = open_planned(tmp_path / "s", CLEAR | dict(endings=endings))
    first = sweep.runs[(sweep.runs.protocol == "B") & (sweep.runs.optimizer == "lamb")].run_id.iloc[0]
    sweep.probes.loc[(sweep.probes.run_id == first) & (sweep.probes.quantity == "phi_full_1e-3"), "status"] = "not_converged"
    found = {m.label: m for m in collect(sweep)}
    assert basis_of(sweep).left_out == 4
    configs = found["lambda"].configs
    assert len(configs) == 11 and not ((configs.optimizer == "sgd") & (configs.batch_size == 32)).any()
    assert sorted(configs.seeds) == [2] + 10 * [3]
    assert found["phi_full_1e-3"].dropped == {"not_converged": 1} and sorted(found["phi_full_1e-3"].configs.seeds) == [
        2,
        2,
    ] + 9 * [3]


@pytest.mark.parametrize("key, value", [("settings", "07he2"), ("subset_hash", "other"), ("n_examples", 500.0)])
def test_numbers_measured_otherwise_are_never_put_together(clear, key, value):
    seeds = clear.runs.set_index("run_id").seed
    other = clear.probes.run_id.map(seeds) == 3
    clear.probes.loc[other, key] = value
    clear.probes.loc[other, "value"] *= 1e6
    for measure in collect(clear):
        assert (measure.configs.seeds <= 2).all() and measure.aside
        assert measure.configs.value.abs().max() < 1e6
    clear.probes["study"] = clear.probes[key] != value
    assert all(not measure.aside for measure in collect(clear))


def test_a_lone_seed_has_the_spread_of_the_others(clear):
    configs = {m.label: m for m in collect(clear)}["lambda"].configs
    alone = configs.run_id.iloc[0]
    twins = clear.runs.run_id[clear.runs.config_id == configs.config_id.iloc[0]]
    only(clear, lambda p: ~p.run_id.isin(set(twins) - {alone}))
    found = {m.label: m for m in collect(clear)}["lambda"]
    got = found.configs[found.configs.seeds == 1].iloc[0]
    runs = clear.runs[clear.runs.run_id.isin(clear.probes.run_id) & (clear.runs.run_id != alone)]
    spread = {c: np.sqrt(np.mean([group.var() for _, group in values.groupby(runs.config_id)]))
              for c, values in (("log", np.log(runs["probe.end.top_eigenvalues.lambda_1"])), ("gap", 100 * runs.test_acc))}  # fmt: skip
    assert got.value_error == pytest.approx(spread["log"] * got.value) and got.gap_error == pytest.approx(spread["gap"])
