"""Which numbers are put together, what may be claimed of them, and the figures and tables that say so."""

import numpy as np
import pandas as pd
import pytest
from audit_files import greyed, row, write_audit
from documents import results_named_in
from planned import open_planned

import basin
from basin.analysis.audit_verdict import load_audit
from basin.analysis.correlation import correlate
from basin.analysis.noise_scale import pooled_noise_scale
from basin.analysis.sweep_measures import basis_of, collect
from basin.figures import measures_and_gap as measure_figures
from basin.pages import measure_text

# Twelve configurations of three seeds; the gap grows with the batch size as sharpness does.
CLEAR = dict(images=2000, updates=3, drop_b=0.02, seed_error=0.002)


@pytest.fixture
def clear(tmp_path):
    return open_planned(tmp_path / "s", CLEAR)


def by_label(sweep, target="gap"):
    basis = basis_of(sweep)
    return {c.label: c for c in correlate(collect(sweep, basis), basis, load_audit(sweep), target)}


def only(sweep, keep):
    """The sweep with some of its numbers."""
    sweep.probes = sweep.probes[keep(sweep.probes)].reset_index(drop=True)
    return sweep


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
    rows = clear.probes[clear.probes.run_id.isin(one.run_id) & (clear.probes.checkpoint == "end") & (clear.probes.quantity == "b_simple")]
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
    assert found["phi_full_1e-3"].dropped == {"not_converged": 1} and sorted(found["phi_full_1e-3"].configs.seeds) == [2, 2] + 9 * [3]


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


def test_what_is_planted_is_found_and_no_more_is_said(clear, few_draws):
    found = by_label(clear)
    for label in ("lambda", "lambda_1_w2"):
        c = found[label]
        assert c.says == "rises with the gap" and c.tau.low > 0 and c.holm < 0.05 and c.tau.band[1] < c.tau.value
        # along batch sizes tau is near 1; along optimisers, where the gap doesn't move, near 0
        assert 0.2 < c.psi.value < c.tau.value
    assert found["tr_sigma"].says == "no association shown"  # the plan's doesn't hang on the batch size
    # the same by optimiser alone: a constant rate, updates and loss leave nothing to hold
    assert found["lambda"].partial.why == "nothing to hold"
    assert found["lambda"].corrected.value == pytest.approx(found["lambda"].tau.value, abs=0.25)


def test_a_covariate_that_orders_like_the_gap_takes_the_claim(clear, few_draws):
    clear.runs["learning_rate"] = 1e-3 * clear.runs.batch_size * clear.runs.optimizer.map({"sgd": 1.0, "lars": 1.1, "lamb": 1.2})
    c = by_label(clear)["lambda"]
    assert c.held == ["rate"] and c.says == "rises with the gap, not shown beyond learning rate"


@pytest.mark.parametrize(
    "plan, says",
    [
        (dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb")), "not enough: 4 configurations, 5 are needed"),
        (dict(batch_sizes=(32,), optimizers=("sgd",)), "not enough: 1 configuration, 5 are needed"),
        (dict(seeds=(1,)), "nothing is claimed: one seed each"),
    ],
)
def test_too_little_is_refused(tmp_path, plan, says, few_draws):
    found = by_label(open_planned(tmp_path / "s", CLEAR | plan))
    assert {found[label].says for label in ("lambda", "phi_full_1e-3")} == {says}
    assert "claimed" in measure_text.answer(list(found.values()))
    assert not any(word in measure_text.answer(list(found.values())) for word in ("rises", "falls"))


def test_four_repeated_configurations_are_too_few(clear, few_draws):
    runs = clear.runs.set_index("run_id")
    repeated = sorted(set(runs.config_id[runs.protocol == "B"]))[:4]
    only(clear, lambda p: p.run_id.map(runs.config_id).isin(repeated) | (p.run_id.map(runs.seed) == 1))
    assert by_label(clear)["lambda"].says == "nothing is claimed: 4 of 12 configurations have a second seed"


def test_a_fixed_budget_claims_nothing_that_the_loss_may_explain(clear, few_draws):
    clear.runs = clear.runs[clear.runs.protocol == "B"].assign(protocol="A-epochs")
    assert not basis_of(clear).matched
    assert by_label(clear)["lambda"].says == "nothing is claimed: training losses differ and could not be held"
    assert "nothing is claimed from" in measure_text.about_basis(basis_of(clear), collect(clear))
    # a loss that orders like the gap: nothing of tau is left
    clear.runs["train_loss"] = np.log2(clear.runs.batch_size) + clear.runs.optimizer.map({"sgd": 0.0, "lars": 0.1, "lamb": 0.2})
    c = by_label(clear)["lambda"]
    assert c.tau.low > 0 and c.says == "no association shown given the order of training loss"
    # one that has nothing to do with it: the claim stands, and says what it is given
    order = np.random.default_rng(1).permutation(len(clear.runs))
    clear.runs["train_loss"] = 1 + order / 100
    assert by_label(clear)["lambda"].says == "rises with the gap given the order of training loss"


def test_measures_that_moved_are_marked_everywhere(clear, few_draws, drawing):
    folder = clear.path.parent / "runs" / clear.runs.run_id.iloc[0] / "audit"
    write_audit(folder / "end.h5", [row("lambda", "relu_rescale", "moved", 16.0), row("tr_sigma", "permutation", "invariant")])
    basis, found = basis_of(clear), list(by_label(clear).values())
    moved = next(c for c in found if c.label == "lambda")
    assert moved.moved and moved.says == "rises with the gap, but moves where the function doesn't"
    assert "lambda *" in set(measure_text.table(found).measure) & set(measure_text.second_table(found, basis).measure)
    assert "2 of 7 measures were audited. These move" in measure_text.about_audit(load_audit(clear), found)
    told = measure_text.audit_table(load_audit(clear), found).set_index("measure")["where the function stays"]
    assert told["lambda *"] == "moves (relu_rescale, by a factor of up to 16)" and told["phi_full_1e-3"] == "not audited"
    for draw in (measure_figures.against_gap, measure_figures.against_batch):
        grey = [ax for ax in draw(found, basis).axes if greyed_axis(ax)]
        assert len(grey) == 1 and any("lambda (1)" in (ax.get_xlabel(), *TITLES(ax)) for ax in grey)
    forest = measure_figures.forest(found)
    names = {t.get_text(): t.get_color() for t in forest.axes[0].get_yticklabels()}
    assert [n for n, colour in names.items() if colour != "black"] == ["lambda *  n=12"]


def greyed_axis(ax):
    return bool(greyed(type("Figure", (), {"axes": [ax]})))


def TITLES(ax):
    return [f"{ax.get_title(loc)} (1)" for loc in ("left", "center")]


def test_figures_show_every_configuration_and_interval(clear, few_draws, drawing):
    basis, found = basis_of(clear), list(by_label(clear).values())
    figure = measure_figures.against_gap(found, basis)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == len(found) == 7
    for ax, c in zip(shown, found):
        drawn = sorted(float(x) for container in ax.containers for x in container.lines[0].get_xdata())
        assert drawn == pytest.approx(sorted(c.measure.configs.value))
        assert "(" in ax.get_xlabel()
    forest = measure_figures.forest(found, found)
    assert len(forest.axes) == 2 and "generalisation gap" in forest.axes[0].get_xlabel()
    band = forest.axes[0].collections[0].get_paths()[0].vertices[:, 0]
    assert (band.min(), band.max()) == pytest.approx(found[0].tau.band)


@pytest.mark.parametrize("ending", ["diverged", "queued"])
def test_a_sweep_with_nothing_to_compare_says_so(tmp_path, ending, drawing):
    endings = {(p, o, b): ending for p in ("A-epochs", "B") for o in ("sgd", "lamb") for b in (32, 1024)}
    sweep = open_planned(tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=30, updates=3, endings=endings))
    basis = basis_of(sweep)
    assert collect(sweep, basis) == [] and "Nothing to compare" in measure_text.about_basis(basis, [])
    for draw in (measure_figures.against_gap, measure_figures.against_batch):
        draw([], basis).canvas.draw()
    measure_figures.forest([], []).canvas.draw()


def test_many_measures_are_counted_not_dropped_in_silence(clear, few_draws, drawing):
    basis, found = basis_of(clear), list(by_label(clear).values())
    figure = measure_figures.against_gap(found * 4, basis)
    assert figure.get_suptitle() == "the first 24 of 28 measures"


def test_the_target_is_told_with_what_is_known_of_it(tmp_path, clear):
    known = measure_text.about_target(collect(clear), "gap")
    assert "over 12 configurations" in known and "mostly noise" not in known and "2,000 test images" in known
    noisy = open_planned(tmp_path / "noisy", CLEAR | dict(drop_b=0.0, images=200))
    assert "**mostly noise**" in measure_text.about_target(collect(noisy), "gap")
    lone = open_planned(tmp_path / "lone", CLEAR | dict(seeds=(1,)))
    assert "One seed" in measure_text.about_target(collect(lone), "gap").replace("one seed", "One seed")


def test_the_documents_reading_of_the_quick_study(few_draws):
    """docs/reading-results.md: no measure is seen to go with the gap; 15 configurations, 3.8 to 7.6 points, errors near 1, wide
    intervals."""
    folder = results_named_in("README.md", r"results/[0-9-]+quick(?=/)")
    found = by_label(basin.open_sweep(folder / "sweep.h5"))
    assert {c.says for c in found.values() if not c.why_not} == {"no association shown"}
    largest = max(found.values(), key=lambda c: c.n)
    gaps = largest.measure.configs
    assert largest.n == 15 and (round(gaps.gap.min(), 1), round(gaps.gap.max(), 1)) == (3.8, 7.6)
    assert gaps.gap_error.median() == pytest.approx(1.0, abs=0.15)
    assert all(0.7 < c.tau.high - c.tau.low < 1.1 for c in found.values())
