"""`basin forecast` from outside: a study whose answer is known in closed form, and what it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pytest

from basin.analysis.closed_form import Cell
from basin.pages.forecast import main as score
from basin_program import needs_program, program
from forecast_studies import CHECK, EXCESS, RATES, SMALL, TEST, N

ROOT = Path(__file__).resolve().parents[3]
pytestmark = needs_program


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small sweep, done, and its test study."""
    folder = tmp_path_factory.mktemp("forecast")
    (folder / "small.toml").write_text(SMALL)
    (folder / "test.toml").write_text(TEST)
    done = program("sweep", folder / "small.toml", "--out", folder / "small", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def prediction(folder):
    done = program(
        "forecast", folder / "small", "--test", folder / "test.toml", "--prediction", folder / "p.toml", "--count", "3"
    )
    assert done.returncode == 0, done.stderr
    return tomllib.loads((folder / "p.toml").read_text())


def test_the_noisy_quadratics_forecast_is_right(prediction):
    """The stability limit is 2 / λ₁ = 2 exactly and curvature never moves. The fastest of these rates is 0.85 of it, which the law does not
    know: log(1/0.85) = 0.16. Its own calibration is -0.07, and the noise at B = 256 lengthens the way by about as much: 0.3 in all."""
    for cell in prediction["cell"]:
        truth = min(Cell(cell["batch_size"], rate, 0, 0, examples=N).check_at(EXCESS, CHECK) for rate in RATES)
        limits = next(model for model in cell["model"] if model["name"] == "limits")
        assert limits["quantiles"][2] == pytest.approx(np.log(truth), abs=0.3), cell["batch_size"]
        assert limits["quantiles"][0] < np.log(truth) < limits["quantiles"][4]
        assert limits["not_reached"] < 0.05  # the cap is 293 updates or more, the truth about 80


def test_the_evidence_is_the_closed_forms(prediction):
    """F = S η λ₁ / 2 with λ₁ = 1, of the fastest rate at 256; S as the run measured it, within its scatter of the expectation."""
    (evidence,) = prediction["evidence"]
    anchor = evidence["sizes"][-1]
    assert anchor["batch_size"] == evidence["probed_batch_size"] == 256
    # The curvature is resolved to 1e-3, the probe's tolerance.
    assert evidence["floor"] == pytest.approx(anchor["updates"] * anchor["learning_rate"] / 2, rel=2e-3)
    assert anchor["effective"] == anchor["updates"]  # constant rate
    expected = Cell(256, anchor["learning_rate"], 0, 0, examples=N).check_at(EXCESS, CHECK)
    assert anchor["updates"] == pytest.approx(expected, rel=0.25)  # one run: 10 % of scatter, stopped at its own first crossing


def test_the_file_names_code_inputs_and_cost(prediction, folder):
    assert prediction["schema_name"] == "basin/prediction"
    assert len(prediction["git_commit"]) in (7, 40)
    paths = [entry["path"] for entry in prediction["input"]]
    assert sum(path.endswith("run.h5") for path in paths) == 6
    assert sum("/probes/" in path for path in paths) == 6 * 3 * 2
    assert prediction["probes"]["share"] == pytest.approx(prediction["probes"]["cost"] / prediction["probes"]["test_cost"])
    assert {model["name"] for model in prediction["cell"][0]["model"]} == {
        "limits",
        "inverse",
        "noise_scale",
        "fit",
        "quick_median",
    }


def test_a_prediction_is_a_function_of_its_inputs_and_made_once(prediction, folder):
    again = program("forecast", folder / "small", "--test", folder / "test.toml", "--prediction", folder / "p.toml")
    assert again.returncode == 2
    assert again.stderr.strip().endswith("a prediction is made once; name a file that isn't there")
    done = program(
        "forecast", folder / "small", "--test", folder / "test.toml", "--prediction", folder / "q.toml", "--count", "3"
    )
    assert done.returncode == 0
    assert tomllib.loads((folder / "q.toml").read_text())["cell"] == prediction["cell"]


def test_seeds_are_those_of_the_script(prediction, folder):
    script = [sys.executable, ROOT / "scripts/forecast_seeds.py", folder / "p.toml"]
    mine = program("forecast", "--seeds", folder / "p.toml", "--count", "4").stdout.split()
    assert len(set(mine)) == 4
    assert mine == subprocess.run([*script, "--count", "4"], capture_output=True, text=True).stdout.split()
    for seed, code in ((mine[0], 0), ("17", 1)):
        run = folder / f"out-{code}" / "runs" / "0123456789ab"
        run.mkdir(parents=True)
        (run / "config.toml").write_text(f"seed = {seed}\n")
        assert subprocess.run([*script, folder / f"out-{code}"], capture_output=True).returncode == code
    (folder / "out-none").mkdir()
    assert subprocess.run([*script, folder / "out-none"], capture_output=True).returncode == 1


@pytest.mark.parametrize(
    "results", sorted(str(p.relative_to(ROOT / "results"))[: -len(".toml")] for p in ROOT.glob("results/*-forecast/*.toml"))
)
def test_seeds_of_published_forecasts_follow_from_their_files(results):
    script, at = ROOT / "scripts/forecast_seeds.py", ROOT / "results" / results
    done = subprocess.run([sys.executable, script, f"{at}.toml", f"{at}-test"], capture_output=True, text=True)
    assert done.returncode == 0 and "3 of 3 are among" in done.stdout, done.stdout + done.stderr
    other = subprocess.run([sys.executable, script, ROOT / "README.md", f"{at}-test"], capture_output=True, text=True)
    assert other.returncode == 1 and "doesn't follow from" in other.stdout


def test_the_runs_of_the_study_are_scored_and_no_others(prediction, folder, tmp_path, capsys):
    """The whole way: seeds of the file, the test runs, the score."""
    seeds = program("forecast", "--seeds", folder / "p.toml", "--count", "3").stdout.split()
    for name, count, more in (("test", 3, []), ("other", 1, ["--set", "max_gradients=3000"])):
        done = program(
            "sweep",
            folder / "test.toml",
            "--out",
            tmp_path / name,
            "--jobs",
            "2",
            "--no-probes",
            "--set",
            f"seed=[{', '.join(seeds[:count])}]",
            *more,
        )
        assert done.returncode == 0, done.stderr
    assert score([str(folder / "p.toml"), str(tmp_path / "test")]) == 0
    said = capsys.readouterr().out
    assert "don't follow from the file" not in said and "limits is better than" in said
    assert score([str(folder / "p.toml"), str(tmp_path / "other")]) == 1
    assert "its study sets max_gradients otherwise than" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (TEST.replace("[512, 1024]", "[512, 1024, 4096]"), "are one experiment with 1024 training examples"),
        (TEST.replace("momentum = 0.0", "momentum = 0.9"), "differ in sgd.momentum (0.0 and 0.9)"),
        (TEST.replace("[512, 1024]", "[256, 1024]"), "a forecast is of sizes above 256"),
        (TEST.replace("target_loss = 128.1", "target_loss = 128.2"), "differ in target_loss (128.1 and 128.2)"),
        (TEST.replace("train_examples = 1024", "train_examples = 2048"), "differ in data.train_examples (1024 and 2048)"),
        (TEST.replace('protocol = "B"', 'protocol = "A-epochs"'), "protocol B"),
        ('optimizer = "lamb"\n' + TEST, 'no run with optimizer = "lamb" reached the target'),
        (TEST.replace("warmup = 0.0", 'warmup = 0.0\nscaling_rule = "linear"'), "the rates of the trials have to be those used"),
    ],
)
def test_a_test_study_of_something_else_is_one_clear_line(folder, prediction, tmp_path, study, message):
    (tmp_path / "test.toml").write_text(study)
    done = program("forecast", folder / "small", "--test", tmp_path / "test.toml", "--prediction", tmp_path / "p.toml")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "p.toml").exists()


@pytest.mark.parametrize("line", ["batch_size = 512", 'batch_size = 128\nprotocol = "A-epochs"\nbatch_milestones = [0.5]'])
def test_a_forecast_that_would_see_its_own_test_runs_is_refused(folder, tmp_path, line):
    """Begun or not, in runs/ or in tuning/: a configuration is enough."""
    run = tmp_path / "out" / "tuning" / "0123456789ab"
    run.mkdir(parents=True)
    (run / "config.toml").write_text(line + "\n")
    done = program("forecast", tmp_path / "out", "--test", folder / "test.toml", "--prediction", tmp_path / "p.toml")
    assert done.returncode == 2
    assert "a forecast that would see its own test runs" in done.stderr
    assert done.stderr.count("\n") == 1


def refusal(folder: Path, out: Path, tmp_path: Path) -> str:
    """The one line."""
    done = program("forecast", out, "--test", folder / "test.toml", "--prediction", tmp_path / "p.toml")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "p.toml").exists()
    return done.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ('batch_size = 64\n[branch]\nfrom = "ba9876543210"\nat = "end"\n', 'branch.from = "ba9876543210"'),
        # A parent in another folder, which needn't be there any more.
        (f'batch_size = 64\n[branch]\nfrom = "sha256:{"0" * 64}"\nat = "end"\npath = "/gone/end.h5"\n', "branch.from"),
        (
            'batch_size = 64\noptimizer = "lamb"\n[lamb]\ntrust = "frozen"\ntrust_from = "/gone/run.h5"\n'
            'trust_ratios = ["weight=0.1"]\n',
            'trust_from = "/gone/run.h5"',
        ),
        ('batch_size = 64\noptimizer = "lars"\n[lars]\ntrust = "frozen_mean"\ntrust_ratios = ["weight=0.1"]\n', "lars.trust"),
    ],
)
def test_a_run_that_took_something_from_another_is_no_small_run(folder, tmp_path, options, named):
    """That other one may be a test run, or have grown its batch, wherever it lies."""
    run = tmp_path / "out" / "runs" / "0123456789ab"
    run.mkdir(parents=True)
    (run / "config.toml").write_text('protocol = "B"\n' + options)
    line = refusal(folder, tmp_path / "out", tmp_path)
    assert named in line and "may have had large batches" in line


def test_what_is_left_of_large_runs_is_seen_too(folder, tmp_path):
    """Their folders are gone; study, selection and collected rows are not."""
    study, selection, rows = (tmp_path / name for name in ("study", "selection", "rows"))
    for out in (study, selection, rows):
        shutil.copytree(folder / "small", out)
    (study / "study.toml").write_text(SMALL.replace("[64, 256]", "[64, 512]"))
    (selection / "selection.toml").write_text('[[choice]]\nwhen = { batch_size = 1024, optimizer = "sgd" }\ntried = [[0.1, 1]]\n')
    with h5py.File(rows / "tune.h5", "w") as file:
        file["runs/batch_size"] = np.array([64, 4096])
    for out, where in ((study, "study.toml: sgd B=512"), (selection, "selection.toml: "), (rows, "tune.h5: batch_size = 4096")):
        line = refusal(folder, out, tmp_path)
        assert where in line and "a forecast that would see its own test runs" in line


def test_what_isnt_a_sweep_or_isnt_said_is_one_clear_line(folder, tmp_path):
    nothing = program("forecast", tmp_path, "--test", folder / "test.toml", "--prediction", tmp_path / "p.toml")
    assert (nothing.returncode, nothing.stderr.count("\n")) == (4, 1)
    assert "not the folder of a sweep" in nothing.stderr
    assert program("forecast", folder / "small").returncode == 2
    assert program("forecast", "--seeds", tmp_path / "none.toml").returncode == 4
    study = program("forecast", "--seeds", folder / "test.toml")
    assert (study.returncode, study.stdout, study.stderr.count("\n")) == (4, "", 1)
    assert "test.toml: not a prediction file" in study.stderr
