"""Churn on made-up predictions whose disagreement is known."""

import numpy as np
import pytest

from basin.analysis import churn
from planned import open_planned

IMAGES, CLASSES = 20_000, 10


def cell(seeds, noise, truth, rng):
    """Each run predicts `truth`, but on a share `noise` of the images, drawn by itself, any other class."""
    rows = np.tile(truth, (seeds, 1))
    wrong = rng.random(rows.shape) < noise
    return np.where(wrong, (rows + rng.integers(1, CLASSES, rows.shape)) % CLASSES, rows)


def expected(a, b):
    """P(differ) of two such runs: not both right, and not the same wrong class."""
    return 1 - (1 - a) * (1 - b) - a * b / (CLASSES - 1)


def test_within_and_between_are_the_known_shares_and_their_excess_is_0_for_one_function():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, CLASSES, IMAGES)
    one, two = cell(5, 0.2, truth, rng), cell(5, 0.2, truth, rng)
    # a share of 20,000 images has a standard error of 0.0034, and ten pairs share them: three of them
    assert churn.within(one).value == pytest.approx(expected(0.2, 0.2), abs=0.01)
    assert churn.between(one, two).value == pytest.approx(expected(0.2, 0.2), abs=0.01)
    found = churn.excess(one, two)
    assert found.low < 0 < found.high


def test_another_function_is_seen():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, CLASSES, IMAGES)
    other = np.where(rng.random(IMAGES) < 0.1, (truth + 1) % CLASSES, truth)
    found = churn.excess(cell(5, 0.2, truth, rng), cell(5, 0.2, other, rng))
    assert found.low > 0.03 and found.high < 0.1


def test_intervals_cover_over_seeds():
    """Seeds with accuracies of their own: the mean over all seeds lies in 95 % of intervals, within what 200 draws tell (± 3 %) and the
    few points that a jackknife over five seeds may lose."""
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        truth = rng.integers(0, CLASSES, 300)
        noise = rng.uniform(0.1, 0.3, 5)
        rows = np.vstack([cell(1, level, truth, rng) for level in noise])
        found = churn.within(rows)
        mean = 0.2  # of the noise; expected() is linear in each, and seeds are independent
        inside += found.low <= expected(mean, mean) <= found.high
    assert 0.86 <= inside / 200 <= 0.995


def test_too_few_seeds_give_no_interval():
    rows = np.array([[0, 1, 2, 3], [0, 1, 2, 2]])
    found = churn.within(rows)
    assert found.value == 0.25 and np.isnan(found.low)
    assert np.isnan(churn.within(rows[:1]).value)


def test_cells_of_a_sweep_against_their_reference(tmp_path):
    """Runs of the large batch predict another class on a tenth of the images, where those of the small one agree."""
    from basin.analysis.cell_answers import answers
    from basin.pages.report_tables import churn_table

    sweep = open_planned(tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=("sgd",), images=50, updates=3))
    rng = np.random.default_rng(4)
    truth = rng.integers(0, CLASSES, IMAGES)
    other = np.where(np.arange(IMAGES) < IMAGES // 10, (truth + 1) % CLASSES, truth)
    batch = sweep.runs.set_index("run_id").batch_size
    rows = {run_id: cell(1, 0.1, other if size == 1024 else truth, rng)[0] for run_id, size in batch.items()}
    sweep.predicted = lambda run_ids, at="end": np.array([rows[r] for r in run_ids])
    (found,) = churn.cell_churn(sweep, answers(sweep))
    assert found.contrast.protocol == "B" and found.excess.seeds == 3
    # On that tenth they agree where one is right and the other hits its class, or both are wrong alike; ± three standard errors.
    apart = 0.1 * (1 - 2 * 0.9 * 0.1 / 9 - 8 * (0.1 / 9) ** 2) + 0.9 * expected(0.1, 0.1)
    assert found.between.value == pytest.approx(apart, abs=0.01)
    assert found.excess.value == pytest.approx(apart - expected(0.1, 0.1), abs=0.01) and found.excess.low > 0.05
    (row,) = churn_table([found]).to_dict("records")
    assert row["batch size"] == "1,024" and row["excess"].startswith(f"{100 * found.excess.value:.1f} [")
    sweep.predicted = lambda run_ids, at="end": None
    assert churn.cell_churn(sweep, answers(sweep)) == []
