"""The learning rates that runs used, against numpy formulas of the rules' sources; what a rule came to in the record."""

import h5py
import numpy as np
import pytest

from basin_program import needs_program, program

pytestmark = needs_program

N = 96
STUDY = """
model = "mlp"
optimizer = "{optimizer}"
batch_size = {batch}
dtype = "float64"
{lines}
[data]
set = "synthetic"
train_examples = 96
test_examples = 32
[mlp]
hidden = [4]
{tables}
"""


def train(folder, batch, lines, optimizer="sgd", tables=""):
    """Rates by update, /config and the final weights."""
    study = folder / "study.toml"
    study.write_text(STUDY.format(batch=batch, lines=lines, optimizer=optimizer, tables=tables))
    done = program("train", study, "--out", folder / f"out{len(list(folder.iterdir()))}")
    assert done.returncode == 0, done.stderr
    run = done.stdout.split()[0]
    with h5py.File(f"{run}/run.h5") as f:
        rates, config = f["train/learning_rate"][()], dict(f["config"].attrs)
    with h5py.File(f"{run}/ckpt/end.h5") as f:
        weights = []
        f["model"].visititems(lambda _, d: weights.append(d[()].ravel()) if isinstance(d, h5py.Dataset) else None)
    return rates, config, np.concatenate(weights)


def test_square_root_and_linear_epochs(tmp_path):
    # NUS LARS: 4 sqrt(B/512) and 0.15625 B/512 epochs, at 1/64 of its batch sizes and 16 times its warm-up.
    lines = """
scaling_rule = "sqrt"
base_batch = 8
learning_rate = 0.04
epochs = 20
schedule = "polynomial"
schedule_unit = "epochs"
warmup = 2.5
warmup_rule = "linear"
"""
    for batch in (8, 32):
        rates, config, _ = train(tmp_path, batch, lines, optimizer="lars")
        peak, total = 0.04 * np.sqrt(batch / 8), 20 * N // batch
        warm = round(2.5 * batch / 8 * N / batch)
        t = np.arange(total)
        expected = np.where(t < warm, peak * (t + 1) / warm, peak * ((total - t) / (total - warm)) ** 2)
        np.testing.assert_allclose(rates, expected, rtol=1e-13)  # a handful of roundings
        assert config["warmup_updates"] == warm == 30
        assert config["peak_learning_rate"] == pytest.approx(peak, rel=1e-15)
        assert "sgd_noise_scale" not in config


def test_linear_rule_from_the_base_rate_with_steps_by_epochs(tmp_path):
    # Goyal et al., whose warm-up rises from the small batch's rate; milestones at thirds.
    rates, config, _ = train(
        tmp_path, 48, 'scaling_rule = "linear"\nbase_batch = 12\nlearning_rate = 0.01\nepochs = 9\nschedule = "step"\n'
        'schedule_unit = "epochs"\nwarmup = 2\nwarmup_from = "base"\nmilestones = [3, 6]', tables="[sgd]\nmomentum = 0.9",
    )  # fmt: skip
    expected = [0.01 + 0.03 * i / 4 for i in (1, 2, 3, 4)] + 2 * [0.04] + 6 * [0.004] + 6 * [0.0004]
    np.testing.assert_allclose(rates, expected, rtol=1e-13)
    assert config["sgd_noise_scale"] == pytest.approx(0.04 * N / (48 * (1 - 0.9)), rel=1e-14)  # Smith & Le


def test_a_cosine_longer_than_the_run(tmp_path):
    # Geiping et al. at 1/100: 4 updates of warm-up, a cosine of 40, 30 updates.
    rates, _, _ = train(
        tmp_path,
        N,
        'protocol = "A-updates"\nupdates = 30\nschedule_unit = "updates"\nwarmup = 4\nhorizon = 44\nlearning_rate = 0.4',
    )
    cosine = 0.2 * (1 + np.cos(np.pi * np.arange(26) / 40))
    np.testing.assert_allclose(rates, np.concatenate([[0.1, 0.2, 0.3, 0.4], cosine]), rtol=1e-13)


def test_regime_adaptation_gives_every_batch_size_its_updates(tmp_path):
    lines = 'epochs = 2\nregime_batch = 8\nschedule = "step"\nschedule_unit = "epochs"\nwarmup = 0\nmilestones = [1]\nlearning_rate = 0.01'
    for batch in (8, 32, 96):
        rates, _, _ = train(tmp_path, batch, lines)
        np.testing.assert_allclose(rates, 12 * [0.01] + 12 * [0.001], rtol=1e-13)


@pytest.mark.parametrize("momentum, rate", [(0.0, 0.1), (0.5, 0.05), (0.9, 0.01)])
def test_effective_rates_are_matched(tmp_path, momentum, rate):
    lines = 'effective_rate = true\nlearning_rate = 0.1\nschedule = "constant"\nwarmup = 0\nepochs = 1'
    rates, config, _ = train(tmp_path, 24, lines, tables=f"[sgd]\nmomentum = {momentum}")
    np.testing.assert_allclose(rates, 4 * [rate], rtol=1e-14)
    assert config["sgd_noise_scale"] == pytest.approx(0.1 * N / 24, rel=1e-14)


def test_malladis_rule_is_the_run_with_its_constants_by_hand(tmp_path):
    course = 'schedule = "constant"\nwarmup = 0\nepochs = 8\n'
    ruled = train(
        tmp_path, 48, course + 'scaling_rule = "malladi"\nbase_batch = 12\nlearning_rate = 1e-3', "adamw", "[adamw]\neps = 1e-3"
    )
    by_hand = train(tmp_path, 48, course + "learning_rate = 2e-3", "adamw", "[adamw]\nbeta1 = 0.6\nbeta2 = 0.996\neps = 5e-4")
    np.testing.assert_allclose(ruled[0], by_hand[0], rtol=1e-15)
    np.testing.assert_allclose(ruled[2], by_hand[2], rtol=1e-9)  # 1 - 4 (1 - 0.9) is 0.6 to rounding, 16 updates long
    config = ruled[1]
    assert (config["adamw.beta1"], config["adamw.eps"]) == (0.9, 1e-3)
    assert config["scaled_beta1"] == pytest.approx(0.6, rel=1e-15) and config["scaled_beta2"] == pytest.approx(0.996, rel=1e-15)
    assert config["scaled_eps"] == 5e-4
    assert "scaled_beta1" not in by_hand[1]


def test_rules_for_beta2_and_weight_decay_are_the_run_with_both_by_hand(tmp_path):
    course = 'schedule = "constant"\nwarmup = 0\nepochs = 8\n'
    rules = 'scaling_rule = "power"\nbase_batch = 12\nlearning_rate = 1e-3\nbeta2_rule = "half_life"\ndecay_rule = "linear"'
    ruled = train(tmp_path, 48, course + rules, "adamw", "[adamw]\nbeta2 = 0.5\nweight_decay = 0.125")
    rate = f"learning_rate = {1e-3 * 4**0.75!r}"
    by_hand = train(tmp_path, 48, course + rate, "adamw", "[adamw]\nbeta2 = 0.0625\nweight_decay = 0.5")
    np.testing.assert_allclose(ruled[0], by_hand[0], rtol=1e-15)
    np.testing.assert_allclose(ruled[2], by_hand[2], rtol=1e-9)  # powers of 2; the rate to rounding, 16 updates long
    assert (ruled[1]["scaled_beta2"], ruled[1]["scaled_weight_decay"], ruled[1]["adamw.beta2"]) == (0.0625, 0.5, 0.5)
    assert "scaled_weight_decay" not in by_hand[1]


def test_a_table_refuses_what_it_does_not_state(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('optimizer = "lars"\nscaling_rule = "torchlars"\nlearning_rate = 1\nwarmup = 1\nschedule_unit = "epochs"\n')
    done = program("train", study, "--out", tmp_path / "out", "--set", "batch_size=512")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert 'scaling_rule = "torchlars" has no rate for batch_size = 512; it has rates for 256, 8192, 16384, 32768' in done.stderr
