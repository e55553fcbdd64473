"""The score of noise over gradient on branches whose ends are known."""

import numpy as np
import pytest
from scipy.stats import binom

import basin
from basin.analysis.ledger_score import BRANCHES, MARGIN, checkpoints_of, exact_interval, score
from basin.pages import ledger
from branched_sweep import branch, probe_of_noise
from planned import open_planned

L0 = 1.5  # at every checkpoint
ERROR = 0.25  # of noise over gradient, whose interval is two of them either way
# Loss of the unchanged branch less that of half, double and both, in margins; noise over gradient; what becomes of the prediction.
CASES = {
    "loss-1.9": ((-3, 0, -3), 0.25, "not above"),  # nothing is predicted
    "loss-1.8": ((4, 4, 4), 2, "borne out"),  # half may help too
    "loss-1.7": ((4, 0, 4), 1.5, "refuted"),  # half the rate helps, not twice the batch
    "loss-1.6": ((-3, 4, 0), 2, "borne out"),
    "loss-1.5": ((4, 1, 4), 2, "unresolved"),  # at the margin
    "loss-1.4": ((0, 4, 0), 2, "borne out"),
    "loss-1.3": ((4, 4, 4), 1.25, "not above"),  # may be above
}


def made(scatter=0.02, seeds=(1, 2, 3), cases=CASES, change=lambda rows: rows):
    """`scatter`: of each branch's end, in margins."""
    margin = MARGIN * L0

    def more(rows, curves):
        found = []
        for row in rows:
            random = np.random.default_rng(row["seed"])
            for at, (gains, noise, _) in cases.items():
                curves[row["run_id"]]["probes"].append(probe_of_noise(at, noise, ERROR))
                for (k, factor), gain in zip(BRANCHES.values(), (0, *gains)):
                    loss = 1.4 - margin * (gain + scatter * random.standard_normal())
                    found.append(branch(row, curves[row["run_id"]], at, k, factor, train_loss=loss))
        return change(found)

    return dict(batch_sizes=(32,), optimizers=("sgd",), seeds=seeds, protocols=("B",), images=4, updates=3, more=more)


def outcomes(sweep):
    return {point.at: point.outcome for point in checkpoints_of(sweep)}


def test_noise_over_gradient_is_judged_by_what_it_predicts(tmp_path):
    sweep = open_planned(tmp_path / "s", made(), write_runs=True)
    points = checkpoints_of(sweep)
    assert {p.at: p.outcome for p in points} == {at: case[2] for at, case in CASES.items()}
    by_label = {p.at: p for p in points}
    # The scatter is 2 % of the margin, and the difference of two ends has √2 of it; ten standard errors of three seeds.
    assert by_label["loss-1.8"].helped["double"].value == pytest.approx(4 * MARGIN * L0, abs=10 * 0.03 * MARGIN * L0 / 3**0.5)
    assert not by_label["loss-1.9"].reason and by_label["loss-1.3"].reason == "not resolved"
    whole = score(points)
    assert (whole.borne_out, whole.refuted, whole.unresolved) == (3, 1, 1)
    assert whole.share == pytest.approx(0.75) and whole.verdict.startswith("noise over gradient does not")
    assert score([p for p in points if p.at != "loss-1.7"]).verdict.startswith("noise over gradient predicts")
    # The same from the run folders, of which the file was collected.
    (tmp_path / "s/sweep.h5").unlink()
    assert outcomes(basin.open_sweep(tmp_path / "s")) == {at: case[2] for at, case in CASES.items()}


def test_two_levels_that_are_passed_at_once_are_one_checkpoint(tmp_path):
    twice = {"loss-1.9": ((4, 4, 4), 2, ""), "loss-1.8": ((4, 4, 4), 2, "")}
    found = score(checkpoints_of(open_planned(tmp_path / "s", made(cases=twice, scatter=0))))
    assert (found.borne_out, found.refuted, found.unresolved) == (1, 0, 0)


def test_scatter_between_seeds_leaves_it_unresolved(tmp_path):
    # At a scatter of five margins three seeds resolve nothing that is four margins large.
    found = outcomes(open_planned(tmp_path / "s", made(scatter=5.0)))
    assert "refuted" not in found.values() and list(found.values()).count("unresolved") >= 4
    points = checkpoints_of(open_planned(tmp_path / "t", made(scatter=5.0)))
    assert score(points).verdict.startswith("undecided")


def test_two_seeds_share_the_variance_of_their_setting(tmp_path):
    """By themselves they would need t(1) = 12.7; 5 checkpoints above 1 and 3 branches have 15 degrees of freedom."""
    found = outcomes(open_planned(tmp_path / "s", made(scatter=0.3, seeds=(1, 2))))
    assert found["loss-1.8"] == "borne out" and found["loss-1.7"] == "refuted"
    alone = {"loss-1.8": ((4, 4, 4), 2, "")}
    points = checkpoints_of(open_planned(tmp_path / "one", made(scatter=0.3, seeds=(1,), cases=alone)))
    assert points[0].outcome == "unresolved" and points[0].helped["double"].high == np.inf


def test_divergence_missing_branches_and_other_lengths(tmp_path):
    def change(found):
        kept = []
        for row, curve in found:
            at, unchanged = row["branch.at"], row["batch_size"] == 32 and row["learning_rate"] == pytest.approx(0.1)
            if at == "loss-1.6" and unchanged:  # twice the batch is help then
                row |= {"status": "diverged", "train_loss": float("nan")}
            if at == "loss-1.8" and row["batch_size"] == 64 and row["learning_rate"] == pytest.approx(0.1):
                continue
            if at == "loss-1.9" and unchanged:
                row |= {"updates": row["updates"] + 1}
            kept.append((row, curve))
        return kept

    points = {p.at: p for p in checkpoints_of(open_planned(tmp_path / "s", made(change=change)))}
    assert points["loss-1.6"].outcome == "borne out" and points["loss-1.6"].helped["half"].value == np.inf
    assert points["loss-1.8"].outcome == "incomplete" and "no seed has all four" in points["loss-1.8"].reason
    assert points["loss-1.9"].outcome == "incomplete" and "different numbers of updates" in points["loss-1.9"].reason


def test_branches_that_change_more_are_others(tmp_path):
    def change(found):
        return [(row | ({"warmup": 0.5} if row["branch.at"] == "loss-1.9" else {}), curve) for row, curve in found]

    plan = made(change=change) | dict(arms=(("warmup", 0.2, (), 0.0),))
    assert "loss-1.9" not in outcomes(open_planned(tmp_path / "s", plan))


def test_the_interval_is_exact():
    low, high = exact_interval(7, 10)
    assert binom.sf(6, 10, low) == pytest.approx(0.025) and binom.cdf(7, 10, high) == pytest.approx(0.025)
    assert exact_interval(0, 5)[0] == 0 and exact_interval(5, 5)[1] == 1


def test_the_page_prints_every_checkpoint_and_the_score(tmp_path, capsys):
    open_planned(tmp_path / "s", made())
    page = tmp_path / "page.md"
    page.write_text("<!-- ledger -->\n<!-- end of ledger -->\n")
    assert ledger.main([str(tmp_path / "s"), "--into", str(page)]) == 0
    said = capsys.readouterr().out
    assert said.strip() in page.read_text()
    assert said.count("| loss-") == len(CASES) and "**Noise over gradient does not predict it" in said
    assert "borne out at 3 of 4 resolved checkpoints, 75 % [19, 99]; 1 unresolved, 2 not above, 0 incomplete" in said
    open_planned(tmp_path / "none", made(cases={}))
    assert ledger.main([str(tmp_path / "none")]) == 1
    assert "no branches of its own runs" in capsys.readouterr().err
