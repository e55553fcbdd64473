"""The whole way from a study to the figure on a problem with a known answer: the noisy quadratic model (docs/noisy-quadratic.md).

The expectation is basin.analysis.closed_form's, numpy's powers of the recursion's roots (checked in
python/tests/analysis/test_closed_form.py).
"""

from dataclasses import replace

import numpy as np
import pytest

import basin
from basin.analysis import noisy_quadratic
from basin.analysis.closed_form import REPLICATES, Cell, best_rate
from basin.figures import steps_against_batch
from basin.pages import quadratic
from basin_program import needs_program, program

pytestmark = needs_program
EXAMPLES, DIMENSIONS, EXCESS, SEEDS = 2048, 256, 0.1, 4
BATCHES = [16, 128, EXAMPLES]
METHODS = [(0.0, 0.0), (0.9, 0.0), (0.0, 0.5)]  # momentum, p

STUDY = f"""
model = "noisy_quadratic"
loss = "mse"
protocol = "B"
target_loss = {DIMENSIONS / 2 + EXCESS}
check_every = 256
micro_batch = 512
schedule = "constant"
warmup = 0.0
dtype = "float64"
[data]
set = "coin_flips"
train_examples = {EXAMPLES}
[probes]
run = []
subset = 0
at = ["start"]
[top_eigenvalues]
count = 1
smallest = 0
[noise_scale]
estimator = "per_example"
[sweep]
batch_size = {BATCHES}
sgd.momentum = [0.0, 0.9]
noisy_quadratic.precondition = [0.0, 0.5]
seed = {list(range(1, SEEDS + 1))}
[[sweep.skip]]
when = {{ sgd.momentum = 0.9, noisy_quadratic.precondition = 0.5 }}
[[sweep.skip]]
when = {{ batch_size = {EXAMPLES}, seed = [3, 4] }}
[[sweep.set]]
when = {{ batch_size = 128, seed = 1 }}
set = {{ probes.run = ["top_eigenvalues", "noise_scale"] }}
"""


def rate_rule(momentum, precondition, batch):
    rate = best_rate(Cell(batch, np.nan, momentum, precondition, examples=EXAMPLES), EXCESS)
    when = f"sgd.momentum = {momentum}, noisy_quadratic.precondition = {precondition}, batch_size = {batch}"
    return f"[[sweep.set]]\nwhen = {{ {when} }}\nset = {{ learning_rate = {rate} }}\n"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadratic")
    rules = [rate_rule(*method, batch) for method in METHODS for batch in BATCHES]
    (folder / "study.toml").write_text(STUDY + "".join(rules))
    done = program("sweep", folder / "study.toml", "--out", folder / "out", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    return basin.open_sweep(folder / "out", "file")


@pytest.fixture(scope="module")
def table(sweep):
    return noisy_quadratic.table(sweep.runs)


def test_every_run_reached_the_target(sweep, table):
    assert set(sweep.runs.status) == {"finished"} and len(sweep.runs) == 6 * SEEDS + 3 * 2
    assert len(table) == 9 and (table.reached == table.seeds).all()


def test_whole_epochs_stop_where_the_closed_form_does(table):
    """At B = N there is no noise: the very update, for both seeds."""
    exact = table[table.batch == EXAMPLES]
    assert list(exact.measured) == list(exact.closed) == list(exact.drawn)
    assert (exact.error == 0).all()


def test_losses_follow_the_expectation(sweep):
    losses = noisy_quadratic.losses(sweep)
    # A mean over four seeds. Some hundred looks, many of them at the same runs: one of a hundred independent Gaussians is beyond 4.5
    # standard errors once in 1,500 times; the loss is a sum of squares, a little more skew than that.
    noisy = losses[losses.batch < EXAMPLES]
    assert (noisy.checks >= 1).all() and noisy.checks.sum() > 60
    assert (noisy.worst < 4.5).all()
    # Weights that start preconditioned are rounded to float32 once (6e-8, squared); the loss is 128 + its excess in float64.
    exact = losses[losses.batch == EXAMPLES]
    assert (exact.checks > 4).all() and (exact.relative < 3e-7).all()


def tolerance(row):
    """Four standard errors of the difference between a mean over the seeds and one over the runs drawn."""
    return 4 * row.scatter * np.sqrt(1 / SEEDS + 1 / REPLICATES)


def test_runs_stop_where_theirs_should(table):
    for row in table[table.batch < EXAMPLES].itertuples():
        # The 128 and 64 examples between checks are in the runs drawn too.
        assert abs(row.measured - row.drawn) <= tolerance(row), row
        assert 0.6 < row.measured / row.closed < 1.2, row  # they stop when their own loss gets there, not the mean over runs


def test_another_place_for_the_rate_or_for_momentum_would_show(table):
    """Momentum that takes in 1 - β of a gradient, momentum left out, a preconditioner left out, batches drawn independently."""
    rows = {(r.method, r.batch): r for r in table.itertuples()}
    stops = lambda cell: cell.drawn_stops(EXCESS, 256).mean()  # noqa: E731
    for batch in BATCHES:
        momentum, preconditioned = rows["momentum 0.9", batch], rows["preconditioned, p = 0.5", batch]
        cell = Cell(batch, momentum.rate, 0.9, 0.0, examples=EXAMPLES)
        for wrong in (replace(cell, rate=cell.rate * 0.1), replace(cell, momentum=0.0)):
            assert abs(momentum.measured - stops(wrong)) > 3 * tolerance(momentum) + 1
        cell = Cell(batch, preconditioned.rate, 0.0, 0.5, examples=EXAMPLES)
        assert abs(preconditioned.measured - stops(replace(cell, precondition=0.0))) > 3 * tolerance(preconditioned) + 1
    sgd = rows["SGD", 16]
    assert abs(sgd.measured - stops(Cell(16, sgd.rate, 0.0, 0.0, examples=2**22))) > tolerance(sgd)


def test_probes_measure_the_curvature_and_the_noise_of_the_quadratic(sweep):
    h = 1 / np.arange(1, DIMENSIONS + 1)
    probed = sweep.runs[sweep.runs["probe.start.noise_scale.b_simple_finite"].notna()]
    assert len(probed) == 3
    for run in probed.to_dict("records"):
        p = run["noisy_quadratic.precondition"]
        found = {key.removeprefix("probe.start."): value for key, value in run.items()}
        # Rayleigh quotients err by the square of the residual over the gap, h_1 - h_2 or more than a quarter.
        residual = found["top_eigenvalues.lambda_1.uncertainty"]
        assert found["top_eigenvalues.lambda_1"] == pytest.approx(1, abs=4 * residual**2 + 1e-6)
        # Over the training set the covariance's trace and the gradient P^-1/2 H theta, theta = +-1, hold without any error; float32 probes.
        assert found["noise_scale.tr_sigma_finite"] == pytest.approx((h ** (1 - p)).sum(), rel=1e-5)
        assert found["noise_scale.b_simple_finite"] == pytest.approx((h ** (1 - p)).sum() / (h ** (2 - p)).sum(), rel=1e-4)


def test_the_figure_and_the_words_show_the_table(sweep, table):
    picture = steps_against_batch.figure(sweep)
    left = picture.axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in left.lines}
    for method, rows in table.groupby("method", sort=False):
        np.testing.assert_array_equal(drawn[method], rows.closed)
    marks = [bars.lines[0].get_ydata() for bars in left.containers]
    np.testing.assert_array_equal(np.concatenate(marks), table.measured)
    page = quadratic.markdown(table)
    assert page.count("exact") == 3 and len([line for line in page.splitlines() if line.startswith("|")]) == 11


def test_a_sweep_of_another_model_is_refused_in_one_line(sweep, tmp_path, capsys):
    run = sweep.runs.iloc[0].copy()
    run["optimizer"] = "lamb"
    with pytest.raises(basin.ReadError, match="has optimizer = lamb; the closed form is that of optimizer = sgd"):
        noisy_quadratic.cell_of(run, "here")
    assert quadratic.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("basin.pages.quadratic: ")
