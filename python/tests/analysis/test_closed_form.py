"""basin.analysis.closed_form against the recursion written out, and against what the paper says follows from it."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from basin.analysis.closed_form import Cell, best_rate
from basin.analysis.noisy_quadratic import critical_batch
from documents import ROOT

STUDY = ROOT / "configs" / "noisy-quadratic.toml"
METHODS = [(0.0, 0.0), (0.9, 0.0), (0.0, 0.5)]


def expected_excess(cell, updates):
    """The same number by the whole covariance matrix of the batches' means, with SGD's recursion step by step on the responses."""
    k, n, order = cell.curvature, cell.examples, np.arange(updates)
    batches = np.repeat(order, cell.batch)  # the batch that an example of the stream is in
    epoch = np.arange(updates * cell.batch) // n
    shares = np.zeros((updates, epoch[-1] + 1))
    np.add.at(shares, (batches, epoch), 1)  # examples of each epoch in each batch
    covariance = (n * np.diag(np.full(updates, cell.batch)) - shares @ shares.T) / (n - 1) / cell.batch**2
    start = cell.h ** (cell.precondition / 2)
    total = 0.0
    for i in range(cell.dimensions):
        phi, velocity = np.zeros(updates + 1), np.zeros(updates + 1)  # response to the start (last) and to each batch's mean
        phi[-1] = start[i]
        for s in range(updates):
            noise = np.zeros(updates + 1)
            noise[s] = 1
            velocity = cell.momentum * velocity + k[i] * phi - np.sqrt(k[i]) * noise
            phi = phi - cell.rate * velocity
        total += k[i] * (phi[-1] ** 2 + phi[:-1] @ covariance @ phi[:-1]) / 2
    return total


@pytest.mark.parametrize("momentum, precondition, rate", [(0.0, 0.0, 0.3), (0.9, 0.0, 0.05), (0.0, 0.5, 1.9), (0.5, 0.3, 0.7)])
@pytest.mark.parametrize("batch", [1, 8, 16, 32])
def test_the_expectation_is_that_of_the_recursion(momentum, precondition, rate, batch):
    cell = Cell(batch, rate, momentum, precondition, power=1.3, dimensions=5, examples=16)
    for updates in (1, 2, 15, 16, 17, 40):
        mean, deviation = cell.excess([updates])
        assert mean[0] == pytest.approx(expected_excess(cell, updates), rel=1e-11)  # float64, some hundred operations
        assert (deviation[0] == 0) == (batch >= 16)


def test_independent_batches_are_the_limit_of_many_examples():
    cell = Cell(16, 0.1, 0.9, 0.0, dimensions=20, examples=2**30)
    many, independent = cell.excess([1, 10, 100])[0], replace(cell, examples=np.inf).excess([1, 10, 100])[0]
    np.testing.assert_allclose(many, independent, rtol=1e-5)  # 1,600 of 2^30 examples are used


def test_zhangs_formula_without_momentum():
    """Their equation for a direction: (1 - α h)^2t E[θ_0²] + (1 - (1 - α h)^2t) α h c / (B (2 - α h) h²), c = h."""
    cell, t = Cell(8, 0.6, 0.0, 0.0, dimensions=10, examples=np.inf), 7
    h = 1 / np.arange(1, 11)
    shrunk = (1 - 0.6 * h) ** (2 * t)
    second_moment = shrunk + (1 - shrunk) * 0.6 / (8 * (2 - 0.6 * h))
    assert cell.excess([t])[0][0] == pytest.approx((h * second_moment).sum() / 2, rel=1e-12)


def test_runs_drawn_have_the_mean_and_the_scatter_of_the_closed_form():
    """Their losses at one update: a target is passed by as many runs as a Gaussian of that mean and deviation has below it."""
    cell = Cell(32, 0.4, 0.9, 0.0, examples=1024)
    updates = 20
    mean, deviation = (float(v[0]) for v in cell.excess([updates]))
    # One check alone: at 20 x 32 examples, or not before much later.
    share = [np.mean(cell.drawn_stops(target, updates * cell.batch, replicates=400) == updates) for target in
             (mean - 3 * deviation, mean, mean + 3.5 * deviation)]  # fmt: skip
    # 400 runs: standard error 0.025. The loss is skew (squares of Gaussians): its median is some tenths of a deviation below its mean.
    assert share[0] < 0.02 and 0.42 < share[1] < 0.72 and share[2] > 0.97


def test_checks_are_those_of_protocol_b():
    first = lambda batch, n: [u for u, _ in zip(Cell(batch, 0.1, 0, 0).checks(200), range(n))]  # noqa: E731
    assert first(1, 3) == [200, 250, 300]
    assert first(16, 3) == [13, 17, 21]  # 208, 272, 336 examples
    assert first(8192, 3) == [1, 2, 3]


def test_the_study_has_the_closed_forms_best_rates():
    table = tomllib.loads(STUDY.read_text())
    for momentum, precondition in METHODS:
        for batch in table["sweep"]["batch_size"][2:]:  # the smaller two take a minute
            found = None
            for rule in table["sweep"]["set"]:
                batches = rule["when"]["batch_size"]
                wanted = (rule["when"]["sgd"]["momentum"], rule["when"]["noisy_quadratic"]["precondition"])
                if wanted == (momentum, precondition) and batch in (batches if isinstance(batches, list) else [batches]):
                    found = rule["set"]["learning_rate"]
            excess = table["target_loss"] - 256 / 2
            assert found == best_rate(
                Cell(batch, np.nan, momentum, precondition, examples=table["data"]["train_examples"]), excess
            )


def test_momentum_and_preconditioning_move_the_critical_batch_size_up():
    """The paper's claim, of independent batches at the best rates: the same examples at small batches under SGD and momentum, later
    diminishing returns under momentum, and again later under preconditioning."""
    batches, found = [16, 64, 256, 1024, 4096], {}
    for momentum, precondition in METHODS:
        cells = [Cell(b, np.nan, momentum, precondition, examples=np.inf) for b in batches]
        found[momentum, precondition] = [replace(c, rate=best_rate(c, 0.1)).updates_to(0.1) for c in cells]
    sgd, momentum, preconditioned = (found[m] for m in METHODS)
    assert 0.85 < momentum[0] / sgd[0] < 1.1
    assert sgd[-1] > 2 * momentum[-1] > 4 * preconditioned[-1]
    critical = [critical_batch(batches, updates) for updates in (sgd, momentum, preconditioned)]
    assert critical[0] < critical[1] / 1.5 < critical[2] / 2


def test_critical_batch_by_hand():
    assert critical_batch([1, 4, 16], [80, 20, 10]) == pytest.approx(4)
    assert critical_batch([1, 4, 16], [160, 40, 10]) == pytest.approx(8)
    assert np.isnan(critical_batch([1, 4], [10, 10]))
