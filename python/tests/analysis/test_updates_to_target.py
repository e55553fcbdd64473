"""Trials of S(B) out of a sweep and a tuning: which count, and the updates that they took, counted by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from basin.analysis.updates_to_target import trials_of_sweep, trials_of_tuning
from basin.pages.critical import trials_by_optimizer
from basin.reader import questions
from basin.reader.fault import ReadError
from basin.reader.tune import Tuning
from planned import open_planned

PLAN = dict(
    batch_sizes=(32, 256), optimizers=("sgd",), seeds=(1, 2), protocols=("B",), images=20, updates=40,
    arms=(("warmup", 0.1, (32, 256), 0.0),), study="[sweep]\nwarmup = [0.0, 0.1]\n",
)  # fmt: skip
DEFAULTS = {"perturbation.kind": "none", "noise.batch": 0, "noise.control": "none", "noise.preconditioner": "noisy",
            "data.validation": 0.0}  # fmt: skip


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(questions, "known_options", lambda: {key: {"default": value} for key, value in DEFAULTS.items()})
    found = open_planned(tmp_path / "s", PLAN)
    found.runs = found.runs.assign(**{"check_every": 256, "data.set": "cifar10-5k", "data.validation": 0.0})
    found.options += ["check_every", "data.set", "data.validation"]
    return found


def tuning(study="", **columns):
    """Three trials at a batch of 256; the last missed the target. 20,480 gradients are 80 updates of one for each example."""
    runs = {
        "model": "small_cnn", "protocol": "B", "optimizer": "sgd", "batch_size": 256, "budget": 1.0, "seed": [11, 11, 11],
        "learning_rate": [0.1, 0.2, 0.4], "status": ["finished", "finished", "target_not_reached"],
        "gradients": [20480.0, 10240.0, 51200.0],
    }  # fmt: skip
    study = "target_loss = 1.0\ndata.set = 'cifar10-5k'\n" + study
    return Tuning(Path("tune.h5"), {"study": study}, pd.DataFrame(runs | columns), pd.DataFrame(), pd.DataFrame())


def test_only_plain_settings_are_trials(sweep):
    """The arms have other updates: one law through both would be of neither."""
    arm = sweep.runs.warmup == 0.1
    sweep.runs.loc[arm, "steps_to_target"] = 5.0
    trials = trials_of_sweep(sweep, "sgd")
    assert list(zip(trials.batch, trials.seed)) == [(32, 1), (32, 2), (256, 1), (256, 2)] and set(trials.high) == {40.0}
    assert len(trials_by_optimizer(sweep)[0]["sgd"]) == 4


def test_rates_are_those_used(sweep):
    """With scaling_rule = "linear" one `learning_rate` stands for rates that grow with the batch."""
    sweep.runs["peak_learning_rate"] = sweep.runs.learning_rate * sweep.runs.batch_size / 32
    trials = trials_of_sweep(sweep, "sgd")
    assert list(trials.rate / trials.batch) == pytest.approx([trials.rate.iloc[0] / 32] * 4)
    with pytest.raises(ReadError, match="scaling_rule changes the rates"):
        trials_of_tuning(tuning("scaling_rule = 'linear'\n"), sweep, "sgd")


def test_updates_are_gradients_over_the_batch(sweep):
    trials = trials_of_tuning(tuning(), sweep, "sgd")
    assert list(trials.high) == [80, 40, np.inf] and list(trials.rate) == [0.1, 0.2, 0.4]
    assert list(trials.low) == [79, 39, 200]  # a check every 64 examples near the target is one each update
    assert len(trials_by_optimizer(sweep, tuning())[0]["sgd"]) == 4 + 3


@pytest.mark.parametrize(
    "study, passes",
    [
        ("perturbation.kind = 'sam'\n", 2),
        ("noise.batch = 32\n", 1),
        ("noise.batch = 32\nnoise.control = 'isotropic'\n", 2),
        ("noise.batch = 32\nnoise.preconditioner = 'clean'\nperturbation.kind = 'asam'\n", 4),
    ],
)
def test_updates_of_several_gradients_for_each_example(sweep, study, passes):
    trials = trials_of_tuning(tuning(study), sweep, "sgd")
    assert list(trials.high) == [80 / passes, 40 / passes, np.inf]


def test_groups_have_gradients_of_their_own(sweep):
    """Without a column in the sweep all of these are its plain setting."""
    trials = trials_of_tuning(tuning(**{"perturbation.kind": ["none", "sam", "sam"]}), sweep, "sgd")
    assert list(trials.high) == [80, 20, np.inf] and trials.low[2] == 100


def test_trials_of_arms_are_left_out(sweep):
    trials = trials_of_tuning(tuning(warmup=[0.0, 0.1, np.nan]), sweep, "sgd")
    assert list(trials.rate) == [0.1, 0.4]


RULE = "[[sweep.set]]\nwhen = { batch_size = 256 }\nset = "


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(study="data.validation = 0.1\n"), r"^data.validation is 0.1 in tune.h5 and 0 in .*: S\(B\) is of one task$"),
        (dict(target_loss=[1.0, 1.0, 0.9]), r"^target_loss is 0.9, 1 in tune.h5 and 1 in "),
        (
            dict(study=RULE + "{ perturbation.kind = 'sam' }\n"),
            "^tune.h5: a rule of its study sets perturbation.kind: no updates",
        ),
    ],
)
def test_trials_of_another_task_are_refused(sweep, change, words):
    with pytest.raises(ReadError, match=words) as error:
        trials_of_tuning(tuning(**change), sweep, "sgd")
    assert "\n" not in str(error.value)


def test_gradients_of_an_overlap_are_refused(sweep):
    sweep.runs = sweep.runs.assign(optimizer="lbfgs")
    with pytest.raises(ReadError, match="tune.h5: lbfgs computes more gradients than a batch has examples"):
        trials_of_tuning(tuning(optimizer="lbfgs"), sweep, "lbfgs")


def test_what_a_rule_sets_is_not_known_and_no_reason_to_refuse(sweep):
    assert len(trials_of_tuning(tuning(RULE + "{ data.validation = 0.1 }\n"), sweep, "sgd")) == 3
