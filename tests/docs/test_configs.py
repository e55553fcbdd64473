"""The study and its tuning must train alike, or the rates were chosen for other runs."""

import functools
import itertools
import json
import os
import subprocess
import tomllib

import numpy as np
import pytest

from documents import ROOT

CONFIGS = ROOT / "configs"

# Keys of the base options that may differ between a study and its tuning, each with its reason.
MAY_DIFFER = {
    "quick.toml": {
        "micro_batch": "affects only memory; no number depends on it",
        "max_gradients": "the same passes over a smaller training set: compared below",
        "check_every": "looks at the training loss cost more than tuning needs",
        "loss_levels": "checkpoints of the study alone",
        "data.validation": "tuning holds a tenth back to choose by",
    },
    "keskar-small.toml": {
        "loss_levels": "checkpoints of the study alone",
        "data.path": "tuning has it from the command line",
        "max_gradients": "the cap: slow seeds may go on in the study",
    },
    "explain-matched.toml": {
        "loss_levels": "checkpoints of the study alone",
        "max_gradients": "the cap: slow seeds may go on in the study",
        "data.set": "the study's are embedded by default; to confirm, it gets those of the tuning from the command line",
        "data.path": "the same",
        "data.train_examples": "the same",
        "data.validation": "tuning holds other images back to choose by",
    },
    "explain-cifar10.toml": {
        "loss_levels": "where the ledger is kept, in the study alone",
        "check_every": "the same",
        "data.validation": "tuning holds a tenth back to choose by",
    },
    "explain.toml": {
        "data.validation": "tuning holds a tenth back to choose by",
        "lars.trust_from": "frozen arms are in the study alone, at the rate of the run that they take their ratios from",
        "lamb.trust_from": "the same",
    },
    "staleness.toml": {
        "loss_levels": "where runs are compared, in the study alone",
        "outcomes_at_levels": "the same",
        "check_every": "the same",
        "data.validation": "tuning holds a tenth back to choose by",
    },
    "shards.toml": {
        "data.validation": "tuning holds a tenth back to choose by",
    },
    "explain-rules.toml": {
        "data.validation": "tuning holds a tenth back to choose by",
        "base_batch": "of the rules, which take the rate of another setting",
    },
    "explain-budget.toml": {},
    "critical-regimes.toml": {
        "base_batch": "of the rules, which take the rate of another setting",
    },
}
BINARY = os.environ.get("BASIN_BINARY")
NOT_TRAINING = ("probes", "sweep", "tune", "runtime", "contrast", "hypothesis")  # and the tables of probes
TUNING = "quick-tune.toml"


def study(name):
    return tomllib.loads((CONFIGS / name).read_text())


def flat(tree, prefix=""):
    found = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def training(name):
    listed = subprocess.run([BINARY, "inspect", "--list", "probes", "--json"], check=True, capture_output=True).stdout
    left_out = {*NOT_TRAINING, *(probe["name"] for probe in json.loads(listed)["entries"])}
    return flat({key: value for key, value in study(name).items() if key not in left_out})


@pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")
@pytest.mark.parametrize("name", MAY_DIFFER)
def test_every_training_key_is_stated_in_both_and_equal(name):
    chosen, tuning = training(name), training(name.replace(".toml", "-tune.toml"))
    assert chosen.keys() ^ tuning.keys() <= MAY_DIFFER[name].keys(), "a key that one of them leaves to its default"
    differ = {key for key in chosen if chosen[key] != tuning.get(key)}
    assert differ <= MAY_DIFFER[name].keys(), {key: (chosen[key], tuning.get(key)) for key in differ - MAY_DIFFER[name].keys()}


def test_the_two_studies_choices_for_their_methods_are_stated():
    """By name, for it is these studies that take no decay and one momentum."""
    for name in ("quick.toml", TUNING):
        options = flat(study(name))
        assert options["lars.weight_decay"] == options["lamb.weight_decay"] == 0.0, name
        assert options["sgd.momentum"] == options["lars.momentum"] == 0.9, name


def test_the_cap_is_the_same_number_of_passes():
    # 471 of the 5,000 images are held out by the hash of their bytes (docs/tuning.md).
    quick, tuning = study("quick.toml"), study(TUNING)
    assert quick["max_gradients"] / 5000 == tuning["max_gradients"] / (5000 - 471) == 100


AXES = ("batch_size", "optimizer", "protocol", "epochs", "noise.batch")


def grid(name):
    """The values of AXES, and the cells that no rule skips."""
    table = study(name)["sweep"]
    values = {key: value for key, value in flat({k: v for k, v in table.items() if k != "set"}).items() if key in AXES}
    cells = [dict(zip(AXES, point)) for point in itertools.product(*(values[axis] for axis in AXES))]
    return values, [cell for cell in cells if not any(holds(rule["when"], cell) for rule in table["skip"])]


def holds(when, cell):
    return all(cell[key] in np.atleast_1d(value).tolist() for key, value in flat(when).items())


def test_grids_agree_and_seeds_do_not():
    (quick, cells), (tuning, tuned) = grid("quick.toml"), grid(TUNING)
    assert quick == tuning and all(cell in tuned for cell in cells) and len(cells) > 18
    assert "registered_seeds" in study("quick.toml")["sweep"], "seeds of eight hex digits: none is 101"


def rates(cell):
    """What a cell's learning rate comes to: the last rule that holds."""
    rules = study("quick.toml")["sweep"]["set"]
    found = [rule["set"]["learning_rate"] for rule in rules if "learning_rate" in rule["set"] and holds(rule["when"], cell)]
    return found[-1]


def test_the_studys_rates_are_the_winners():
    selection = sorted((CONFIGS.parent / "results").glob("*-quick-tune/selection.toml"))[-1]
    choices = [
        (flat(choice["when"]), choice["set"]["learning_rate"]) for choice in tomllib.loads(selection.read_text())["choice"]
    ]
    cells = grid("quick.toml")[1]
    won = {json.dumps({axis: when[axis] for axis in AXES}): rate for when, rate in choices}
    for cell in cells:
        assert rates(cell) == won[json.dumps(cell | {"epochs": float(cell["epochs"])})], cell


def test_every_range_of_the_search_is_as_wide_as_the_others_and_holds_the_rates_in_use():
    ranges = study(TUNING)["tune"]["range"]
    for cell in grid("quick.toml")[1]:
        holding = [r for r in ranges if holds(r["when"], cell)]
        assert holding[-1]["high"] / holding[-1]["low"] == pytest.approx(64), cell
        assert holding[-1]["low"] <= rates(cell) <= holding[-1]["high"], cell


KESKAR, KESKAR_TUNING = study("keskar-small.toml"), study("keskar-small-tune.toml")


def keskar_settings():
    """The grid's, then those of arms, each with the ghost batch that it has."""
    sizes = [{"batch_size": size, "ghost_batch": KESKAR["ghost_batch"]} for size in KESKAR["sweep"]["batch_size"]]
    return sizes + [arm["when"] | arm["set"] for arm in KESKAR["sweep"]["arm"]]


def keskar_rate(setting):
    rules = [rule for rule in KESKAR["sweep"]["set"] if "learning_rate" in rule["set"]]
    return [rule["set"]["learning_rate"] for rule in rules if holds(rule["when"], setting)][-1]


def test_keskars_settings_are_those_that_were_tuned():
    for key in ("batch_size", "arm"):
        assert KESKAR["sweep"][key] == KESKAR_TUNING["sweep"][key]
    assert "registered_seeds" in KESKAR["sweep"], "seeds of eight hex digits: none is 101"


def test_keskars_ranges_are_as_wide_as_each_other_and_hold_the_rates_in_use():
    for setting in keskar_settings():
        held = [r for r in KESKAR_TUNING["tune"]["range"] if holds(r["when"], setting)][-1]
        assert held["high"] / held["low"] == pytest.approx(16, rel=0.03), "ends of two digits"
        assert held["low"] <= keskar_rate(setting) <= held["high"], setting


def test_keskars_rates_are_the_winners():
    selections = sorted((ROOT / "results").glob("*-keskar-tune/selection.toml"))
    choices = [(flat(choice["when"]), choice["set"]["learning_rate"]) for choice in study(selections[-1])["choice"]]
    for setting in keskar_settings():
        won = [rate for when, rate in choices if setting.items() <= when.items()]
        assert won == [keskar_rate(setting)], setting


@pytest.mark.parametrize("optimizer", study("cifar10.toml")["sweep"]["optimizer"])
def test_the_full_studys_rates_rise_with_the_batch(optimizer):
    table = study("cifar10.toml")["sweep"]
    scaled = []
    for batch in table["batch_size"]:
        options = {}
        for rule in table["set"]:
            wanted = {k: v if isinstance(v, list) else [v] for k, v in rule["when"].items()}
            if all({"batch_size": batch, "optimizer": optimizer, "protocol": "B"}.get(k) in v for k, v in wanted.items()):
                options |= rule["set"]
        ratio = batch / options["base_batch"]
        scaled.append(options["learning_rate"] * {"linear": ratio, "sqrt": ratio**0.5}[options["scaling_rule"]])
    assert all(a < b for a, b in itertools.pairwise(scaled)), scaled


def test_the_full_study_looks_for_its_data_where_git_does_not():
    path = study("cifar10.toml")["data"]["path"]
    assert path == "datasets/cifar10" and "/datasets/" in (CONFIGS.parent / ".gitignore").read_text().split()
    for file in ("README.md", "configs/cifar10.toml"):
        assert f"--out {path}" in (CONFIGS.parent / file).read_text(), file


@pytest.mark.parametrize("name", ["forecast-small-cnn", "forecast-batch-norm", "forecast-mlp", "forecast-characters"])
def test_the_halves_of_a_forecast_are_of_one_setting(name):
    """docs/forecast.md, Rules. `basin forecast` refuses other pairs, but only after the small runs."""
    small, test = study(f"{name}.toml"), study(f"{name}-test.toml")
    left_out = {"probes", "sweep", "preconditioned_curvature", "loss_levels", "max_gradients"}
    assert {k: v for k, v in small.items() if k not in left_out} == {k: v for k, v in test.items() if k not in left_out}
    sizes, large = small["sweep"]["batch_size"], test["sweep"]["batch_size"]
    assert max(sizes) <= 256 < min(large)
    # N/16, N/4 and N = 5,000, to 4 %: what whole ghost batches ask for.
    assert large == pytest.approx([5000 / 16, 5000 / 4, 5000], rel=0.04)
    assert all(size % small.get("ghost_batch", 1) == 0 for size in sizes + large)
    for half in (small, test):
        for optimizer in half["sweep"]["optimizer"]:
            skipped = [rate for rule in half["sweep"]["skip"] if rule["when"]["optimizer"] == optimizer
                       for rate in rule["when"]["learning_rate"]]  # fmt: skip
            rates = [rate for rate in half["sweep"]["learning_rate"] if rate not in skipped]
            assert len(rates) == 4 and np.diff(np.log(rates)) == pytest.approx(np.log(2.5), abs=0.06), (name, optimizer, rates)


def rate_rules(name):
    return [rule for rule in study(name)["sweep"]["set"] if "learning_rate" in rule["set"]]


def rate_of(rules, setting):
    """The rate that the last rule sets that holds for a setting."""
    return [rule["set"]["learning_rate"] for rule in rules if setting.items() >= flat(rule["when"]).items()][-1]


@pytest.mark.parametrize("name", ["explain-budget", "critical-regimes"])
def test_rates_are_the_winners_of_the_search(name):
    choices = study(sorted((ROOT / "results").glob(f"*-{name}/selection.toml"))[-1])["choice"]
    rules = rate_rules(f"{name}.toml")
    asked = [choice for choice in choices if choice["when"]["batch_size"] != 1024]  # searched, and not asked about
    for choice in asked:
        assert rate_of(rules, flat(choice["when"])) == choice["set"]["learning_rate"], choice["group"]
    of_rules = [rule for rule in rules if "scaling_rule" in rule["when"]]
    small = {norm: rate_of(rules, {"batch_size": 32, "small_cnn.norm": norm, "optimizer": "sgd"}) for norm in ("none", "batch")}
    assert all(rule["set"]["learning_rate"] == small[rule["when"]["small_cnn"]["norm"]] for rule in of_rules)
    assert len(rules) == len(asked) + len(of_rules)


def test_explains_rates_are_the_winners_and_frozen_arms_have_the_live_ones():
    rules = rate_rules("explain.toml")
    rate = functools.partial(rate_of, rules)
    choices = study(sorted((ROOT / "results").glob("*-explain-tune/selection.toml"))[-1])["choice"]
    won = {}
    for choice in choices:
        setting = flat(choice["when"])
        won[json.dumps(setting)] = rate(setting)
        assert rate(setting) == choice["set"]["learning_rate"], setting
        for method in ("lars", "lamb"):
            if setting["optimizer"] == method and setting["batch_size"] == 2048 and setting["lars.preset"] == "basin":
                assert rate(setting | {f"{method}.trust": "frozen"}) == rate(setting | {f"{method}.trust": "live"})
    small = next(flat(c["when"]) for c in choices if c["when"]["optimizer"] == "sgd" and c["when"]["batch_size"] == 32)
    assert rate(small | {"batch_size": 2048, "protocol": "A-updates"}) == rate(small)
    assert len(won) == len(choices) == len(rules) - 1


def test_the_rates_of_explain_rules_are_the_winners_of_two_searches():
    rate = functools.partial(rate_of, rate_rules("explain-rules.toml"))

    def won(search, **wanted):
        choices = study(sorted((ROOT / "results").glob(f"*-{search}-tune/selection.toml"))[-1])["choice"]
        found = [c["set"]["learning_rate"] for c in choices if flat(c["when"]).items() >= wanted.items()]
        assert len(found) == 1, (search, wanted)
        return found[0]

    for norm in ("none", "batch"):
        live = {"small_cnn.norm": norm, "optimizer": "sgd", "perturbation.kind": "none", "epochs": 8.0, "warmup": 0.05}
        small = won("explain", batch_size=32, **{"noise.batch": 0}, **live)
        plain = {"small_cnn.norm": norm, "batch_factor": 5, "noise.batch": 0, "scaling_rule": "none"}
        assert rate(plain | {"batch_size": 32}) == rate(plain | {"batch_size": 2048, "scaling_rule": "power"}) == small
        assert rate(plain | {"batch_size": 2048}) == won("explain", batch_size=2048, **{"noise.batch": 0}, **live)
        assert rate(plain | {"batch_size": 2048, "noise.batch": 32}) == won(
            "explain", batch_size=2048, **live | {"noise.batch": 32}
        )
        for setting in ({"batch_size": 256}, {"batch_size": 32, "batch_factor": 8}):
            assert rate(plain | setting) == won("explain-rules", **{"small_cnn.norm": norm}, **setting)
        for noise in (128, 512):
            setting = {"batch_size": 2048, "noise.batch": noise}
            assert rate(plain | setting) == won("explain-rules", **{"small_cnn.norm": norm}, **setting)
