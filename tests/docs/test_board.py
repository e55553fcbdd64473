"""docs/board.md against runs.csv and selection.toml of its results, by means and intervals taken here."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from basin.pages.paste import passage
from basin.reader.selection import read_choices
from documents import ROOT

PAGE = "docs/board.md"
BOARDS = {"board": "board-cifar10-5k", "board-characters": "board-characters"}
NUMBER = r"−?[\d,.]+"


def table_under(text, head):
    """Rows by the first column and then by batch size."""
    lines = itertools.takewhile(lambda line: line.startswith("|"), text[text.index(head) :].splitlines())
    first, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    sizes = [int(cell.removeprefix("B = ").replace(",", "")) for cell in first[1:]]
    return {(row[0].lower(), size): cell for row in body for size, cell in zip(sizes, row[1:])}


def numbers_in(cell):
    return [float(n.replace("−", "-").replace(",", "")) for n in re.findall(NUMBER, cell)]


def student(values, geometric):
    x = np.log(values) if geometric else np.asarray(values, float)
    half = stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    found = np.array([x.mean(), x.mean() - half, x.mean() + half])
    return np.exp(found) if geometric else found


@pytest.fixture(params=BOARDS)
def board(request):
    page = (ROOT / PAGE).read_text()
    folder = ROOT / max(re.findall(rf"results/[0-9-]+{BOARDS[request.param]}(?=\))", page))  # the newest that is named
    text = passage(ROOT / PAGE, request.param)
    runs = pd.read_csv(folder / "runs.csv")
    return text, dict(list(runs.groupby(["optimizer", "batch_size"]))), folder


@pytest.mark.parametrize(
    ("head", "column", "geometric"),
    [
        ("| updates |", "steps_to_target", True),
        ("| test loss |", "test_loss", False),
        ("| loss |", "train_loss_after_2_epochs", False),
    ],
)
def test_means_and_intervals_are_those_of_the_runs(board, head, column, geometric):
    text, cells, _ = board
    shown = table_under(text, head)
    assert set(shown) == set(cells)
    for key, cell in cells.items():
        if shown[key].startswith("–"):
            assert (cell.status != "finished").any() or cell[column].isna().any(), key
            continue
        # Three digits on the page, six in the table.
        assert numbers_in(shown[key]) == pytest.approx(student(cell[column], geometric), rel=6e-3), key


def test_rates_are_those_of_the_search_and_marked_at_its_ends(board):
    text, cells, folder = board
    shown = table_under(text, "| rate |")
    for choice in read_choices(folder / "selection.toml"):
        key, tried = (choice.optimizer, choice.batch_size), [t.rate for t in choice.trials]
        assert numbers_in(shown[key]) == pytest.approx([choice.rate], rel=6e-3)
        assert shown[key].endswith("*") == (choice.rate in (min(tried), max(tried))), key
        assert (cells[key].learning_rate - choice.rate).abs().max() < 1e-5 * choice.rate
