"""basin.pages.board on a made sweep, against means and intervals computed here from its columns."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from basin.analysis.board import Board
from basin.pages import board
from basin.pages.paste import passage
from basin.reader.fault import ReadError
from branched_sweep import branch
from planned import open_planned

STUDY = """
[sweep]
batch_size = [32, 2048]
optimizer = ["sgd", "lamb"]
[[contrast]]
name = "lamb-test"
base = { optimizer = "sgd", batch_size = 2048 }
arm = { optimizer = "lamb" }
outcome = "test_acc"
[[hypothesis]]
name = "same"
claim = "Both are as accurate."
contrasts = ["lamb-test"]
expect = "equivalent"
margin = 5.0
"""
PLAN = dict(
    batch_sizes=(32, 2048), optimizers=("sgd", "lamb"), protocols=("B",), updates=40, images=500, study=STUDY,
    endings={("B", "lamb", 32, 2): "target_not_reached"},
)  # fmt: skip
STEPS = {1: 30.0, 2: 40.0, 3: 60.0}  # of SGD at 2,048, by seed


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    found = open_planned(tmp_path_factory.mktemp("board") / "s", PLAN)
    mine = (found.runs.optimizer == "sgd") & (found.runs.batch_size == 2048)
    found.runs.loc[mine, "steps_to_target"] = found.runs.seed[mine].map(STEPS)
    return found


def test_means_are_geometric_and_intervals_students(sweep):
    mean = Board(sweep).updates("sgd", 2048)
    assert mean.value == pytest.approx((30 * 40 * 60) ** (1 / 3))
    half = student.ppf(0.975, 2) * np.std(np.log([30, 40, 60]), ddof=1) / np.sqrt(3)
    assert (mean.low, mean.high) == pytest.approx((mean.value * np.exp(-half), mean.value * np.exp(half)))
    assert mean.seeds == 3


def test_a_cell_that_lost_a_seed_has_no_mean(sweep):
    """The two that are left would be the quick ones."""
    mean = Board(sweep).updates("lamb", 32)
    assert np.isnan(mean.value) and "1 of 3 seeds" in mean.why
    assert "1 of 3 seeds" in board.markdown(sweep)


def test_loss_at_a_budget_lies_between_two_evaluations(sweep, monkeypatch):
    ends = sweep.runs.set_index("run_id").seed / 10  # by run: 1.1, 1.2, 1.3
    curves = {run: pd.DataFrame({"update": [10.0, 20.0], "train_loss": [2.0, 1 + end]}) for run, end in ends.items()}
    monkeypatch.setattr(sweep, "curve", lambda run_id, table: curves[run_id])
    found = Board(sweep).loss_after("sgd", 2048, 2048 * 15)
    assert found.value == pytest.approx((2 + 1.2) / 2)
    assert found.high - found.value == pytest.approx(student.ppf(0.975, 2) * 0.05 / np.sqrt(3))
    assert Board(sweep).loss_after("sgd", 2048, 2048 * 21).why == "at the target before"


def test_the_page_has_a_row_per_optimiser_epochs_and_verdicts(sweep, tmp_path):
    text = board.markdown(sweep)
    lines = text.splitlines()
    assert lines[2] == "| updates | B = 32 | B = 2,048 |"
    sgd = next(line for line in lines if line.startswith("| SGD |"))
    assert sgd.split(" | ")[1].startswith("40 [40, 40]") and "41.6 [" in sgd
    epochs = [line for line in lines if line.startswith("| SGD |")][1]
    assert f"{(30 * 40 * 60) ** (1 / 3) * 2048 / 5000:.3g} [" in epochs
    assert "Both are as accurate." in text
    page = tmp_path / "page.md"
    page.write_text("# Board\n\n<!-- board -->\n<!-- end of board -->\n")
    assert board.main([str(sweep.path.parent if sweep.path.is_file() else sweep.path), "--into", str(page)]) == 0
    assert "| LAMB |" in passage(page, "board")


def test_what_was_probed_at_the_lowest_level_is_shown_at_both_ends(sweep):
    level = board.level_of(sweep)
    assert level == min({c for c in sweep.probes.checkpoint if c.startswith("loss-")}, key=lambda c: float(c[5:]))
    head, _, sgd, lamb = board.probed(Board(sweep), level)[:4]
    place = head.split(" | ").index("λ₁ (loss / weight²)")
    runs = sweep.runs[(sweep.runs.optimizer == "sgd")]
    ends = [runs[runs.batch_size == b][f"probe.{level}.top_eigenvalues.lambda_1"].astype(float) for b in (32, 2048)]
    small, large = (np.exp(np.log(values).mean()) for values in ends)
    assert sgd.split(" | ")[place] == f"{small:.3g} → {large:.3g}"
    assert lamb.split(" | ")[place].startswith("– → "), "one seed missed the target and wasn't probed"


def test_a_number_is_that_of_its_column_and_of_all_seeds(sweep, monkeypatch):
    level, name = board.level_of(sweep), ("top_eigenvalues", "lambda_1")
    of_cell = sweep.runs[(sweep.runs.optimizer == "sgd") & (sweep.runs.batch_size == 2048)]
    in_column = np.exp(np.log(of_cell[f"probe.{level}.top_eigenvalues.lambda_1"].astype(float)).mean())
    assert Board(sweep).measured("sgd", 2048, level, *name).value == pytest.approx(in_column)
    assert board.ledger(Board(sweep), level) == []  # wasn't asked for
    monkeypatch.setattr(board, "PROBE", name[0])
    monkeypatch.setattr(board, "SHOWN", [name[1]])
    head, _, sgd = board.ledger(Board(sweep), level)[:3]
    assert head == "| optimiser | lambda_1 |" and sgd.endswith(f" → {in_column:.3g} |")
    again = sweep.probes.assign(value=7.0, study=False)  # `basin probe` with settings of its own
    monkeypatch.setattr(sweep, "probes", pd.concat([sweep.probes, again], ignore_index=True))
    assert Board(sweep).measured("sgd", 2048, level, *name).value == pytest.approx(in_column)
    one = of_cell.run_id.iloc[0]
    monkeypatch.setattr(sweep, "probes", sweep.probes[sweep.probes.run_id != one])
    assert Board(sweep).measured("sgd", 2048, level, *name).why == "not measured"


CHOICE = """
[[choice]]
protocol = "B"
when = {{ optimizer = "{optimizer}", batch_size = 32 }}
learning_rate = 0.1
at_edge = false
tried = [[0.05, 1, 1, 1, 0, 1.5, 3000.0], [0.1, 1, 1, 1, 0, 1.5, 2000.0]{higher}]
"""


def test_a_rate_at_an_end_of_those_tried_is_marked(sweep):
    assert "0.1*" not in board.markdown(sweep)
    selection = sweep.folder / "selection.toml"
    higher = ", [0.2, 1, 1, 1, 0, 1.5, 2500.0]"
    selection.write_text(CHOICE.format(optimizer="sgd", higher="") + CHOICE.format(optimizer="lamb", higher=higher))
    said = board.markdown(sweep)
    selection.unlink()
    assert "| SGD | 0.1* | 0.1 |" in said and "| LAMB | 0.1 | 0.1 |" in said and "an upper bound" in said


def test_branches_are_no_seeds(tmp_path):
    """From every run one, which reaches the target too, after three updates."""

    def branches(rows, curves):
        return [branch(row, dict(curves[row["run_id"]]), "u2", protocol="B", steps_to_target=3.0) for row in rows]

    sweep = open_planned(tmp_path / "s", PLAN | dict(endings={}, more=branches))
    found = Board(sweep)
    assert [(found.cell("sgd", b).run_id.size, found.updates("sgd", b).value) for b in (32, 2048)] == [(3, pytest.approx(40))] * 2


def test_a_sweep_of_a_fixed_budget_is_refused(tmp_path):
    with pytest.raises(ReadError, match="no run of protocol B"):
        Board(open_planned(tmp_path / "s", PLAN | dict(protocols=("A-epochs",), endings={})))


def test_the_figure_has_a_line_for_each_optimiser(sweep):
    left, right = board.figure(sweep).axes[:2]
    assert len(left.containers) == 2 and len(right.containers) == 2
    assert left.get_ylabel() == "updates to a training loss of 1"
