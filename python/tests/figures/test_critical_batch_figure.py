"""The figure of critical batch sizes on a sweep with known noise scales, and the page's words."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")
from basin.analysis.critical_batch import critical_batch
from basin.figures import critical_batch as drawing
from basin.pages import critical
from basin.reader.fault import ReadError
from basin.reader.names import Names, no_measures
from branched_sweep import branch
from critical_trials import N, drawn
from planned import open_planned

FINITE, WEIGHTED = "noise-scale-finite", "noise-scale-hessian-population"


class Known:
    """As much of a Sweep as the figure asks for."""

    def __init__(self):
        self.path = Path("out")
        self.runs = pd.DataFrame({"run_id": ["a", "b"], "optimizer": ["sgd", "sgd"], "batch_size": [32, 256], "protocol": "B",
                                  "status": "finished"})  # fmt: skip
        self.probes = pd.DataFrame({"run_id": ["a", "a", "b", "b"], "quantity": ["b_simple_finite", "b_hessian", "b_simple_finite", "g2"],
                                    "definition": [FINITE, WEIGHTED, FINITE, FINITE],
                                    "study": True,
                                    "status": ["ok", "ok", "not_resolved", "ok"], "value": [150.0, 80.0, 900.0, 3.0],
                                    "uncertainty": [10.0, 5.0, np.nan, np.nan], "train_loss": [1.5, 1.5, 1.2, 1.2],
                                    "checkpoint": ["loss-1.5", "loss-1.5", "end", "end"]})  # fmt: skip
        self.names = Names(measures=no_measures())


def test_only_resolved_noise_scales_are_drawn():
    found = drawing.noise_scales(Known(), "sgd")
    assert list(found.value) == [150.0, 80.0]
    assert list(found.batch_size) == [32, 32]
    assert found.above.isna().all() and found.below.isna().all()


def test_a_noise_scale_has_what_it_is_the_ratio_of():
    sweep = Known()
    parts = pd.DataFrame({"run_id": ["a", "a", "b"], "quantity": ["tr_sigma_finite", "g2_finite", "tr_sigma_finite"], "definition": FINITE,
                          "study": True, "status": "ok", "value": [300.0, 2.0, 7.0], "uncertainty": np.nan, "train_loss": [1.5, 1.5, 1.2],
                          "checkpoint": ["loss-1.5", "loss-1.5", "end"]})  # fmt: skip
    sweep.probes = pd.concat([sweep.probes, parts], ignore_index=True)
    found = drawing.noise_scales(sweep, "sgd").set_index("quantity")
    assert list(found.loc["b_simple_finite", ["above", "below"]]) == [300.0, 2.0]
    assert found.loc["b_hessian", ["above", "below"]].isna().all()


def test_noise_scales_are_those_of_plain_settings(tmp_path):
    plan = dict(batch_sizes=(32,), optimizers=("sgd",), seeds=(1, 2), protocols=("B",), images=20, updates=4,
                arms=(("warmup", 0.1, (32,), 0.0),))  # fmt: skip
    sweep = open_planned(tmp_path / "s", plan)
    warmup = dict(zip(sweep.runs.run_id, sweep.runs.warmup))
    sweep.probes = pd.DataFrame([{"run_id": run_id, "definition": WEIGHTED, "quantity": "b_hessian", "status": "ok", "study": True,
                                  "value": 100.0 if warmup[run_id] else 50.0, "uncertainty": 1.0, "train_loss": 1.5, "checkpoint": "end"}
                                 for run_id in warmup])  # fmt: skip
    assert sorted(sweep.probes.value) == [50.0, 50.0, 100.0, 100.0]
    assert list(drawing.noise_scales(sweep, "sgd").value) == [50.0, 50.0]


@pytest.mark.parametrize("other", [{"definition": "noise-scale-hessian-finite"}, {"checkpoint": "end@twin"}, {"study": False}])
def test_numbers_of_the_same_name_of_something_else_are_no_noise_scales_here(other):
    sweep = Known()
    before = drawing.noise_scales(sweep, "sgd")
    sweep.probes = pd.concat([sweep.probes, sweep.probes.assign(value=7.0, **other)], ignore_index=True)
    pd.testing.assert_frame_equal(drawing.noise_scales(sweep, "sgd").reset_index(drop=True), before.reset_index(drop=True))


def test_runs_at_a_fixed_budget_have_no_part_in_it():
    sweep = Known()
    sweep.runs["protocol"] = ["A-epochs", "B"]
    assert drawing.noise_scales(sweep, "sgd").empty


def test_noise_scales_of_a_checkpoint_are_one_level_whatever_their_losses():
    scales = pd.DataFrame({"checkpoint": ["loss-1.4", "loss-1.4", "loss-2"], "quantity": "b_hessian", "value": [100.0, 300.0, 50.0],
                           "train_loss": [1.34, 1.39, 1.91], "above": [300.0, 300.0, 100.0], "below": [3.0, 1.0, 2.0]})  # fmt: skip
    said = critical.scales_in_words("SGD", scales)
    assert said == ["SGD: b_hessian 50 (one run) at a loss of 1.9; 150 (100 to 300, 2 runs) at a loss of 1.4"], "600 over 4"
    unknown = scales.assign(quantity="b_simple_finite", below=np.nan)
    assert critical.scales_in_words("SGD", pd.concat([scales, unknown])) == said


@pytest.mark.parametrize("critical_size", [200.0, 4000.0])
def test_the_figure_has_what_was_fitted(critical_size):
    law = critical_batch(drawn(np.random.default_rng(1), critical=critical_size), N, draws=0)
    points = pd.DataFrame({"optimizer": "sgd", "train_loss": [2.0, 1.5], "batch": [100.0, np.nan], "low": [80.0, np.nan],
                           "high": [130.0, np.nan], "bound": [np.nan, 300.0]})  # fmt: skip
    picture = drawing.figure(Known(), {"sgd": law}, points)
    left, right = picture.axes[:2]
    said = left.get_legend_handles_labels()[1][0]
    assert ("≥" in said) == (law.status == "open_above")
    bars = left.containers[0][0].get_xydata()
    assert bars == pytest.approx(np.stack([law.sizes.batch, np.exp(law.sizes.log_updates)], axis=1))
    drawn_above = [line for line in right.get_lines() if line.get_marker() == "^"]
    assert drawn_above[-1].get_ydata() == pytest.approx([300.0])
    picture.canvas.draw()  # nothing is out of the range of a logarithmic axis


def test_a_figure_of_nothing_draws():
    law = critical_batch(drawn(np.random.default_rng(1), sizes=(32, 64)).head(3), N, draws=0)
    sweep = Known()
    sweep.probes = sweep.probes.head(0)
    drawing.figure(sweep, {"sgd": law}).canvas.draw()
    assert "fewer than three batch sizes" in critical.in_words("SGD", law)


def test_the_words_of_an_open_size():
    law = critical_batch(drawn(np.random.default_rng(1), critical=4000.0), N, draws=0)
    assert critical.in_words("SGD", law).startswith("SGD: B_crit stays open above")
    good = critical_batch(drawn(np.random.default_rng(1)), N, draws=0)
    assert "S_min" in critical.in_words("SGD", good)


def test_branches_are_those_of_a_sweep(tmp_path, capsys):
    """Progress 1, 0.9 and 0.7 at k = 1, 4 and 8: 0.8 is half-way, 4 √2 times the parent's 32."""

    def more(rows, curves):
        for row in rows:
            row |= {"check_every": 4000}
            for k, share in {1: 1.0, 4: 0.9, 8: 0.7}.items():
                for factor in (1.0,) if k == 1 else (1.0, k**0.5):
                    gain = 0.1 * share * (1 if factor > 1 or k == 1 else 0.5)
                    ends = dict(train_loss=1.6, average_train_loss=1.5 - gain)  # the run's own weights say something else
                    yield branch(row, curves[row["run_id"]], "loss-1.5", k, factor, updates=480 // k, **ends)
            # Windows of another length, of 24 updates, and a branch that is annealed.
            yield branch(row, curves[row["run_id"]], "loss-1.5", 2, updates=480, average_train_loss=0.1)
            yield branch(row, curves[row["run_id"]], "loss-1.5", 20, updates=24, average_train_loss=1.4)
            yield branch(row, curves[row["run_id"]], "loss-1.5", 8, anneal=0.2, updates=60, average_train_loss=0.1)

    plan = dict(batch_sizes=(32,), optimizers=("sgd",), protocols=("B",), images=4, updates=3, more=more)
    open_planned(tmp_path / "s", plan)
    (row,) = critical.branched(tmp_path / "s").itertuples()
    assert row.batch == pytest.approx(32 * 4 * np.sqrt(2)) and row.status == "ok" and row.averaged
    assert row.train_loss == 1.5 and row.optimizer == "sgd" and row.seeds == 3
    picture = tmp_path / "critical.png"
    assert critical.main([str(tmp_path / "s"), "--branches", str(tmp_path / "s"), "--draws", "0", "--picture", str(picture)]) == 0
    assert "SGD: no B_crit" in (said := capsys.readouterr().out) and "181" in said and picture.is_file()

    open_planned(tmp_path / "t", plan | dict(more=None))
    with pytest.raises(ReadError, match="no branches of its own runs"):
        critical.branched(tmp_path / "t")
