"""`basin tune` from outside: what it writes, against numpy and scipy; that it goes on after a kill; what a sweep makes of it."""

import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

import h5py
import numpy as np
import pytest
from scipy.stats import qmc

import basin
from basin_program import BASIN, needs_program, program, surroundings

pytestmark = needs_program
ROOT = pathlib.Path(__file__).parents[3]

BASE = """
model = "mlp"
protocol = "A-updates"
updates = 24
micro_batch = 64
checkpoint_seconds = 0.2
target_loss = 1.6
max_gradients = 2000
check_every = 400
learning_rate = "tuned"
[data]
set = "synthetic"
train_examples = 200
test_examples = 60
validation = 0.25
[mlp]
hidden = [8]
[probes]
run = []
[tune]
trials = 4
seeds = [7]
{tune}
[[tune.range]]
key = "learning_rate"
low = 0.002
high = 2.0
{more}
[sweep]
optimizer = ["sgd", "lamb"]
batch_size = [16, 64]
seed = [1, 2]
"""
MOMENTUM = """
[[tune.range]]
when = { optimizer = "sgd" }
key = "sgd.momentum"
low = 0.5
high = 0.99
scale = "one_minus_log"
"""


def study(folder, tune="", more=""):
    (folder / "study.toml").write_text(BASE.replace("{tune}", tune).replace("{more}", more))
    return folder / "study.toml"


def tuned(folder, tune="", more="", sets=()):
    path = study(folder, tune, more)
    done = program("tune", path, "--out", folder / "out", "--jobs", 2, *(part for s in sets for part in ("--set", s)))
    assert done.returncode == 0, done.stderr
    return done, basin.load_tuning(folder / "out")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return folder, *tuned(folder, "sampler_seed = 0", MOMENTUM)


def test_budgets_are_equal_and_said(plain):
    _, done, tuning = plain
    assert "4 trials at 1 seed for each of 4 groups, an equal budget" in done.stdout
    assert len(tuning.winners) == 4 and set(tuning.winners.trials) == {4}
    for _, runs in tuning.runs.groupby("group"):
        assert sorted(runs.trial) == [0, 1, 2, 3] and set(runs.seed) == {7} and set(runs.budget) == {1.0}
    assert (
        tuning.attributes["trials"] == 4
        and tuning.attributes["sampler"] == "halton"
        and tuning.attributes["candidates"] == "ranges"
    )


def test_points_are_scipys_and_the_same_in_every_group(plain):
    _, _, tuning = plain
    points = qmc.Halton(2, scramble=False).random(4)
    for (optimizer, _), runs in tuning.runs.groupby(["optimizer", "batch_size"]):
        runs = runs.sort_values("trial")
        np.testing.assert_allclose(runs["unit.learning_rate"], points[:, 0], atol=1e-15)  # order of sums
        np.testing.assert_allclose(runs.learning_rate, 0.002 * 1000 ** points[:, 0], rtol=1e-5)  # six digits are kept
        if optimizer == "sgd":
            np.testing.assert_allclose(runs["unit.sgd.momentum"], points[:, 1], atol=1e-15)
            # Six digits of 1 - m as well.
            np.testing.assert_allclose(1 - runs["sgd.momentum"], 0.5 * (0.01 / 0.5) ** points[:, 1], rtol=1e-5)
        else:
            assert runs["sgd.momentum"].isna().all()


def outcome_losses(out, run_id):
    folder = next(p for p in (out / "tuning" / run_id, out / "runs" / run_id) if p.is_dir())
    with h5py.File(folder / "run.h5") as file:
        return file["outcomes/validation/loss"][()].astype(float), dict(file["summary"].attrs)


def test_losses_errors_and_winners_are_those_of_the_runs(plain):
    folder, _, tuning = plain
    for _, scores in tuning.scores.groupby("group"):
        runs = tuning.runs[tuning.runs.group == scores.group.iloc[0]].set_index("trial")
        losses = {}
        for trial, run in runs.iterrows():
            losses[trial], summary = outcome_losses(folder / "out", run.run_id)
            assert run.validation_loss == summary["validation_loss"] and run.gradients == summary["gradients"]
            # Losses are stored as float32, the mean was taken of the same numbers.
            assert run.validation_loss == pytest.approx(losses[trial].mean(), rel=1e-6)
            assert run.validation_loss_error == pytest.approx(losses[trial].std(ddof=1) / len(losses[trial]) ** 0.5, rel=1e-9)
        order = runs.validation_loss.sort_values().index
        assert list(scores.sort_values("place").trial) == list(order)
        winner = tuning.winners[tuning.winners.group == scores.group.iloc[0]].iloc[0]
        assert winner.trial == order[0] and winner.second_trial == order[1] and winner.second_status == "paired"
        differences = losses[order[1]] - losses[order[0]]
        error = differences.std(ddof=1) / len(differences) ** 0.5
        # The difference is of float64 means, numpy's of float32 losses.
        assert winner.second_difference == pytest.approx(differences.mean(), abs=1e-6)
        assert winner.second_difference_error == pytest.approx(error, rel=1e-9)
        like = [t for t in order[1:] if runs.validation_loss[t] - runs.validation_loss[order[0]] <=
                1.959964 * (losses[t] - losses[order[0]]).std(ddof=1) / len(differences) ** 0.5]  # fmt: skip
        assert winner.like_winner == len(like)
        rates = runs.learning_rate[[order[0], *like]]
        assert (winner["learning_rate.low"], winner["learning_rate.high"]) == (rates.min(), rates.max())
        place = runs["unit.learning_rate"][order[0]]
        assert winner["learning_rate.edge"] == ("low" if place < 0.1 else "high" if place > 0.9 else "none")


def test_selection_says_the_same(plain):
    folder, _, tuning = plain
    choices = tomllib.loads((folder / "out" / "selection.toml").read_text())["choice"]
    for choice, (_, winner) in zip(choices, tuning.winners.iterrows(), strict=True):
        assert choice["group"] == winner.group and choice["when"]["batch_size"] == winner.batch_size
        assert choice["set"]["learning_rate"] == choice["learning_rate"] == winner.learning_rate
        assert choice["standard_error"] == winner.validation_loss_error and choice["like_winner"] == winner.like_winner
        assert choice["second"]["distance"] == winner.second_distance and len(choice["tried"]) == 4
        assert choice["at_edge"] == (
            choice["edge"]["learning_rate"] != "none" or choice["edge"].get("sgd", {}).get("momentum", "none") != "none"
        )


def test_every_column_says_what_it_is_and_the_page_names_it(plain):
    folder, _, _ = plain
    page = (ROOT / "docs" / "file-format.md").read_text()
    with h5py.File(folder / "out" / "tune.h5") as file:
        names = set(file) | set(file.attrs)
        for group in file.values():
            for name, data in group.items():
                assert data.attrs["long_name"] and data.attrs["definition"] and "units" in data.attrs, name
                assert data.is_scale or data.dims[0].values()
                names.add(name)
    options = {"model", "optimizer", "batch_size", "protocol", "learning_rate", "sgd.momentum"}
    names = {re.sub(r"^unit\..*", "unit", re.sub(r".*\.(low|high|edge)$", r"\1", n)) for n in names - options}
    assert {n for n in names if not re.search(rf"\b{re.escape(n)}\b", page)} == set()


def test_halving_keeps_the_right_number_in_each_rung(tmp_path):
    done, tuning = tuned(tmp_path, "halving = 2\nrungs = 3")
    assert (
        "rungs: 4 trials with 1/4 of the budget, 2 trials with 1/2 of the budget, 1 trials with all of the budget" in done.stdout
    )
    for _, runs in tuning.runs.groupby("group"):
        assert list(runs.groupby("rung").size()) == [4, 2, 1] and list(runs.groupby("rung").budget.first()) == [0.25, 0.5, 1.0]
        assert len(set(runs.run_id)) == 7
    for (_, rung), scores in tuning.scores.groupby(["group", "rung"]):
        kept = set(scores[scores.promoted].trial)
        assert kept == set(scores.sort_values("validation_loss").trial[: {0: 2, 1: 1, 2: 1}[rung]])
        later = tuning.scores[(tuning.scores.group == scores.group.iloc[0]) & (tuning.scores.rung == rung + 1)]
        assert rung == 2 or set(later.trial) == kept
    for run in tuning.runs.itertuples():
        updates = outcome_losses(tmp_path / "out", run.run_id)[1]["updates"]
        assert updates == 24 * run.budget


def content(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()].tobytes() if item.dtype.kind in "fiu" else list(item[()])})
                        if isinstance(item, h5py.Dataset) else None)  # fmt: skip
    return found


def test_a_tuning_that_was_killed_comes_to_the_same_choice(tmp_path):
    sets = ["updates=400"]
    for name in "ab":
        (tmp_path / name).mkdir()
    tuned(tmp_path / "a", "halving = 2\nrungs = 2", sets=sets)
    path = study(tmp_path / "b", "halving = 2\nrungs = 2")
    command = ["tune", str(path), "--out", str(tmp_path / "b" / "out"), "--jobs", "2", "--set", sets[0]]
    for wanted in (3, 18):  # in the first rung of 16 runs, and in the second
        process = subprocess.Popen([BASIN, *command], env=surroundings(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while len(list((tmp_path / "b" / "out").glob("tuning/*/run.h5"))) < wanted:
            assert process.poll() is None and time.monotonic() < end, "ended before it could be killed"
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "b" / "out" / "selection.toml").exists()
    dry = program(*command, "--dry-run")
    assert dry.returncode == 0 and "of them are done in" in dry.stdout and "24 runs" in dry.stdout
    done = program(*command)
    assert done.returncode == 0 and "runs were done before" in done.stderr
    one, two = (tmp_path / name / "out" for name in "ab")
    assert (one / "selection.toml").read_text() == (two / "selection.toml").read_text()
    assert content(one / "tune.h5") == content(two / "tune.h5")


def test_a_sweep_goes_on_from_a_tuning(plain, tmp_path):
    folder, _, tuning = plain
    path = study(tmp_path, "sampler_seed = 0", MOMENTUM)
    command = ["sweep", path, "--jobs", 2]
    selected = program(*command, "--out", tmp_path / "selected", "--selection", folder / "out" / "selection.toml")
    assert selected.returncode == 0, selected.stderr
    assert not (tmp_path / "selected" / "tuning").exists() and not (tmp_path / "selected" / "tune.h5").exists()
    in_place = program(*command, "--out", folder / "out")
    assert in_place.returncode == 0, in_place.stderr
    assert "tuning: 16 runs were done before" in in_place.stderr
    runs = [basin.load_sweep(out) for out in (tmp_path / "selected", folder / "out")]
    assert set(runs[0].run_id) == set(runs[1].run_id) and len(runs[0]) == 8
    winners = tuning.winners.set_index(["optimizer", "batch_size"])
    for run in runs[0].itertuples():
        assert run.learning_rate == winners.learning_rate[run.optimizer, run.batch_size]
        assert run._asdict()["status"] in ("finished", "diverged")
    # The frozen study needs the selection's file no more.
    again = program("sweep", tmp_path / "selected" / "study.toml", "--out", tmp_path / "selected")
    assert again.returncode == 0 and "8 runs were done before" in again.stderr, again.stderr


def test_a_selection_as_a_key_of_the_study(plain, tmp_path):
    folder, _, tuning = plain
    text = BASE[: BASE.index("[tune]")] + BASE[BASE.index("[sweep]") :] + f'selection = "{folder / "out" / "selection.toml"}"\n'
    (tmp_path / "study.toml").write_text(text)
    dry = program("sweep", tmp_path / "study.toml", "--out", tmp_path / "out", "--dry-run")
    assert dry.returncode == 0 and "8 runs" in dry.stdout, dry.stderr
    done = program("train", tmp_path / "study.toml", "--out", tmp_path / "train")
    assert done.returncode == 0, done.stderr
    run = basin.load_run(done.stdout.split()[0])
    assert run.config["learning_rate"] == tuning.winners.learning_rate[0]
    nothing = program("tune", tmp_path / "study.toml", "--out", tmp_path / "out")
    assert nothing.returncode == 2 and "nothing to tune" in nothing.stderr
    other = program("sweep", tmp_path / "study.toml", "--out", tmp_path / "out", "--set", "batch_size=32", "--dry-run")
    assert other.returncode == 2 and "selection.toml: no choice holds for optimizer=sgd batch_size=32" in other.stderr


def test_more_trials_extend_a_tuning(tmp_path):
    path = study(tmp_path)
    command = ["sweep", path, "--out", tmp_path / "out", "--jobs", 2]
    assert program(*command).returncode == 0
    fewer = basin.load_tuning(tmp_path / "out")
    refused = program(*command, "--set", "tune.trials=8")
    assert refused.returncode == 2 and "--extend" in refused.stderr
    more = program(*command, "--set", "tune.trials=8", "--extend")
    assert more.returncode == 0 and "tuning: 16 runs were done before" in more.stderr, more.stderr
    tuning = basin.load_tuning(tmp_path / "out")
    assert set(fewer.runs.run_id) < set(tuning.runs.run_id) and len(tuning.runs) == 32
    # Runs of winners that are none any more are in no table.
    runs = basin.load_sweep(tmp_path / "out")
    assert len(runs) == 8 == len(list((tmp_path / "out" / "runs").iterdir()))
    winners = tuning.winners.set_index("group").learning_rate
    assert (fewer.winners.set_index("group").learning_rate != winners).any(), "the same winners: nothing was tested"
    assert set(runs.learning_rate) == set(winners)


def test_diverged_trials_are_counted_and_never_win(tmp_path):
    done, tuning = tuned(tmp_path, sets=["optimizer=sgd", "batch_size=16", "divergence_loss=100.0"],
                         more='[[tune.range]]\nkey = "learning_rate"\nlow = 0.01\nhigh = 1e3\n')  # fmt: skip
    (winner,) = tuning.winners.to_dict("records")
    assert 0 < winner["diverged"] < 4 and winner["any_ended"] and f"{winner['diverged']} diverged" in done.stdout
    lost = tuning.runs[tuning.runs.status == "diverged"]
    assert (
        len(lost) == winner["diverged"]
        and lost.validation_loss.isna().all()
        and (lost.learning_rate > winner["learning_rate"]).all()
    )
    assert np.isinf(tuning.scores.set_index("trial").validation_loss[lost.trial]).all()


def test_lists_are_tuned_the_same_way(tmp_path):
    text = study(tmp_path).read_text()
    text = text.replace('learning_rate = "tuned"\n', "")
    text = text[: text.index("[tune]")] + text[text.index("[sweep]") :]
    text += 'learning_rate = [0.01, 0.1, 0.5]\nselect = "validation_loss"\nselect_seeds = [7]\n'
    (tmp_path / "study.toml").write_text(text)
    done = program("tune", tmp_path / "study.toml", "--out", tmp_path / "out", "--jobs", 2)
    assert done.returncode == 0 and "3 trials at 1 seed for each of 4 groups" in done.stdout, done.stderr
    tuning = basin.load_tuning(tmp_path / "out")
    assert tuning.attributes["candidates"] == "list" and len(tuning.runs) == 12 and tuning.runs["unit.learning_rate"].isna().all()
    edges = {0.01: "low", 0.1: "none", 0.5: "high"}
    assert all(edges[w.learning_rate] == w["learning_rate.edge"] for _, w in tuning.winners.iterrows())


def test_what_makes_no_sense_is_one_line(plain, tmp_path):
    folder, _, _ = plain
    path = study(tmp_path)
    refused = {
        ("train", path): 'learning_rate = "tuned", but no value is chosen for optimizer=sgd batch_size=16 yet',
        ("tune", ROOT / "configs" / "tiny.toml"): "nothing to tune",
        ("tune", path, "--set", "learning_rate=0.1"): "nothing to tune",
        ("tune", path, "--set", "tune.trials=one"): "tune.trials",
        ("sweep", path, "--selection", tmp_path / "none.toml"): "none.toml",
        ("sweep", ROOT / "configs" / "tiny.toml", "--selection", folder / "out" / "selection.toml"): "there is none",
    }
    for command, line in refused.items():
        done = program(*command)
        assert done.returncode in (2, 4) and line in done.stderr and done.stderr.count("\n") == 1, (command, done.stderr)
    fixed = program("train", path, "--out", tmp_path / "fixed", "--set", "learning_rate=0.05")
    assert fixed.returncode == 0, fixed.stderr


def test_a_sweep_warns_of_one_rate_for_all(tmp_path):
    (tmp_path / "study.toml").write_text('model = "mlp"\n[data]\nset = "synthetic"\n[sweep]\nbatch_size = [32, 64]\n')
    done = program("sweep", tmp_path / "study.toml", "--out", tmp_path / "out", "--dry-run")
    assert done.stderr.count("warning: ") == 1 and "sgd has the same learning rate, 0.1, at 2 batch sizes" in done.stderr


def test_inspect_and_the_figure_show_a_tuning(plain):
    import matplotlib

    matplotlib.use("Agg")
    from basin.figures.tuning_rates import loss_against_rate

    folder, _, tuning = plain
    shown = program("inspect", folder / "out" / "tune.h5")
    assert shown.returncode == 0 and "tuning: 16 runs, 4 groups" in shown.stdout
    figure = loss_against_rate(tuning)
    figure.canvas.draw()
    assert len(figure.axes) == 2 and all(ax.get_xlabel() == "learning rate" for ax in figure.axes)
    rings = [line for ax in figure.axes for line in ax.lines if line.get_markersize() == 11]
    drawn = sorted((float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in rings)
    assert drawn == sorted(zip(tuning.winners.learning_rate, tuning.winners.validation_loss))


def test_train_from_python(tmp_path):
    path = study(tmp_path)
    settings = {"optimizer": "sgd", "learning_rate": np.float64(0.05), "sgd.momentum": 0.5, "updates": np.int64(5)}
    run = basin.train(path, settings, out=tmp_path / "out")
    assert run.status == "finished" and run.summary["updates"] == 5 and np.isfinite(run.summary["validation_loss"])
    assert run.config["learning_rate"] == 0.05 and run.config["sgd.momentum"] == 0.5
    again = basin.train(path, settings, out=tmp_path / "out")
    assert again.run_id == run.run_id and repr(again.summary) == repr(run.summary)  # NaN among them
    with pytest.raises(basin.TrainError, match="learning_rate = -1"):
        basin.train(path, {"learning_rate": -1.0}, out=tmp_path / "out")


def test_the_optuna_notebook_runs_with_or_without_it(tmp_path):
    env = surroundings(BASIN_TRIALS="2", BASIN_OUT=str(tmp_path), PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run(
        [sys.executable, ROOT / "notebooks" / "optuna_search.py"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Optuna is not installed" in done.stdout or len(list(tmp_path.glob("runs/*/run.h5"))) == 2
