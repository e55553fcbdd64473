"""Scores against values worked out by hand."""

import hashlib
import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from basin.analysis.forecast_score import (
    comparisons,
    outcomes,
    read_prediction,
    require_study,
    score_setting,
    scores_of,
    seeds_of,
    wrong_seeds,
)
from basin.pages.forecast import in_words, main, table
from basin.reader.fault import ReadError

LOGS = [float(np.log(v)) for v in (10, 20, 40, 80, 160)]
STUDY = 'protocol = "B"\nmax_gradients = 100\n[sweep]\nseed = [1]\n'
FILE = f"""schema_name = "basin/prediction"
schema_version = "1.0.0"
created_utc = "2026-11-24T00:00:00Z"
git_commit = "0123456789abcdef"
git_dirty = false
[test]
study = "test.toml"
sha256 = "{hashlib.sha256(STUDY.encode()).hexdigest()}"
set = ["sgd.momentum=0.9", "schedule=constant"]
seeds = 3
[probes]
cost = 100.0
[[cell]]
optimizer = "sgd"
batch_size = 512
target_loss = 0.5
cap = 100
learning_rates = [0.1, 0.2]
[[cell.model]]
name = "limits"
quantiles = [2.302585093, 2.995732274, 3.688879454, 4.382026635, inf]
not_reached = 0.25
[[cell.model]]
name = "fit"
quantiles = [4.0, 4.1, 4.2, 4.3, 4.4]
not_reached = 0.0
"""


def runs(updates: dict, seeds=None) -> pd.DataFrame:
    """{rate: [updates of each seed, or None]}."""
    rows = []
    for rate, values in updates.items():
        for i, value in enumerate(values):
            rows.append({"run_id": f"{rate}{i}", "protocol": "B", "optimizer": "sgd", "batch_size": 512, "seed": (seeds or [1, 2, 3])[i],
                         "learning_rate": rate, "target_loss": 0.5, "status": "finished" if value else "target_not_reached",
                         "steps_to_target": value or np.nan, "gradients": 1000})  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def forecast(tmp_path):
    (tmp_path / "p.toml").write_text(FILE)
    return read_prediction(tmp_path / "p.toml")


def test_scores_by_hand():
    ln2 = np.log(2)
    # z at the median: 90 % interval of width 4 ln 2, 50 % of 2 ln 2: (0 + 0.05 * 4 ln 2 + 0.25 * 2 ln 2) / 2.5 = 0.28 ln 2.
    at_median = scores_of(LOGS, 1000, np.log(40))
    assert at_median["wis"] == pytest.approx(0.28 * ln2)
    assert (at_median["in90"], at_median["in50"]) == (1, 1)
    # z = log 5, ln 2 below the 5 % quantile: IS_0.1 = 4 ln 2 + 20 ln 2, IS_0.5 = 2 ln 2 + 4 * 2 ln 2, median 3 ln 2 away:
    # (1.5 + 0.05 * 24 + 0.25 * 10) / 2.5 ln 2 = 2.08 ln 2.
    below = scores_of(LOGS, 1000, np.log(5))
    assert below["wis"] == pytest.approx(2.08 * ln2)
    assert below["is90"] == pytest.approx(24 * ln2)
    assert (below["in90"], below["in50"]) == (0, 0)


def test_what_is_beyond_the_cap_is_cut_on_both_sides():
    ln2 = np.log(2)
    # Cap 40: quantiles 10, 20, 40, 40, 40; the target was missed: within both, widths 2 ln 2 and ln 2.
    missed = scores_of([*LOGS[:4], np.inf], 40, np.log(40))
    assert missed["wis"] == pytest.approx((0.05 * 2 + 0.25 * 1) / 2.5 * ln2)
    # All predicted beyond the cap, and missed: nothing to pay.
    assert scores_of([5.0, 6.0, 7.0, np.inf, np.inf], 40, np.log(40))["wis"] == 0


def test_the_mean_of_the_five_quantiles_losses_is_the_same():
    """WIS is 2/5 of the sum of the quantiles' (pinball) losses: an identity that the formula in use has to meet."""
    for z in (1.0, 2.6, 3.3, 3.9, 6.0):
        pinball = [(z - q) * level if z >= q else (q - z) * (1 - level) for q, level in zip(LOGS, (0.05, 0.25, 0.5, 0.75, 0.95))]
        assert scores_of(LOGS, 1e9, z)["wis"] == pytest.approx(2 * np.mean(pinball))


def test_the_rate_is_chosen_by_the_other_seeds(forecast):
    cell = forecast.content["cell"][0]
    # Seed 1 is lucky at 0.2; the others are faster at 0.1, so seed 1 is scored at 0.1. Seeds 2 and 3 are scored at 0.2, which
    # seed 1 and one other make best: log(5 * 60) < log(50 * 55).
    found = outcomes(cell, runs({0.1: [50, 55, 55], 0.2: [5, 60, 60]}))
    assert list(found.learning_rate) == [0.1, 0.2, 0.2]
    assert list(np.exp(found.z).round()) == [50, 60, 60]
    # Not reached counts as the cap of 100.
    found = outcomes(cell, runs({0.1: [None, 90, 95], 0.2: [None, None, None]}))
    assert list(found.learning_rate) == [0.1] * 3
    assert list(found.reached) == [False, True, True]
    assert found.z[0] == pytest.approx(np.log(100))


def test_a_setting_by_hand(forecast):
    scores = score_setting(forecast, runs({0.1: [40, 40, None], 0.2: [100, None, None]})).set_index("model")
    ln2, log_cap = np.log(2), np.log(100)
    width = log_cap - np.log(10)
    # Seeds 1 and 2 at the median; the third at the cap: the 50 % interval ends at 80, the 90 % one at the cap.
    at_median = (0.05 * width + 0.25 * 2 * ln2) / 2.5
    over = log_cap - np.log(80)
    missed = ((log_cap - np.log(40)) / 2 + 0.05 * width + 0.25 * (2 * ln2 + 4 * over)) / 2.5
    assert scores.wis["limits"] == pytest.approx((2 * at_median + missed) / 3, rel=1e-6)  # the file has ten digits
    assert scores.brier["limits"] == pytest.approx((2 * 0.0625 + 0.5625) / 3)
    assert scores.in50["limits"] == pytest.approx(2 / 3)
    assert scores.reached["limits"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_loss": 0.4}, "target_loss = 0.4, predicted was 0.5"),
        ({"learning_rate": 0.3}, "learning rates [0.3], predicted were [0.1, 0.2]"),
        ({"status": "running"}, "has not ended"),
        ({"batch_size": 600}, "sgd at batch size 512: no runs"),
        ({"steps_to_target": 101.0}, "beyond the cap of 100"),
    ],
)
def test_runs_of_something_else_are_refused(forecast, change, message):
    with pytest.raises(ReadError) as error:
        score_setting(forecast, runs({0.1: [50, 50, 50], 0.2: [60, 60, 60]}).assign(**change), "out")
    assert message in str(error.value)


def test_seeds_follow_from_the_file(forecast):
    assert forecast.sha256 == hashlib.sha256(FILE.encode()).hexdigest()
    mine = seeds_of(forecast.sha256, 3)
    assert wrong_seeds(forecast, runs({0.1: [1, 1, 1], 0.2: [1, 1, 1]}, mine)) == []
    assert wrong_seeds(forecast, runs({0.1: [1, 1, 1], 0.2: [1, 1, 1]}, [*mine[:2], 7])) == [7]


def setting(ours: float, theirs: float) -> pd.DataFrame:
    return pd.DataFrame({"model": ["limits", "fit", "limits", "fit"], "wis": [ours, theirs, ours, theirs]})


def test_the_interval_over_settings_by_hand():
    # Gains 0.1, 0.2, 0.6: mean 0.3, variance (0.04 + 0.01 + 0.09)/2 = 0.07; the 97.5 % point of t with 2 degrees of freedom is 4.302653
    # in printed tables.
    (found,) = comparisons([setting(0.1, 0.2), setting(0.1, 0.3), setting(0.1, 0.7)])
    half = 4.302653 * (0.07 / 3) ** 0.5
    assert found.gain == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - half, rel=1e-6) and found.high == pytest.approx(0.3 + half, rel=1e-6)
    assert found.beaten


def test_a_baseline_without_a_number_is_not_beaten():
    (found,) = comparisons([setting(0.1, np.nan), setting(0.1, 0.3)])
    assert not found.beaten
    assert "no score" in in_words([found])[0]


def override(text: str) -> str:
    """As a sweep writes --set behind its study."""
    return f"\n[[sweep.override]]  # --set on the command line\nset = {{ {text} }}\n"


SAID = override("sgd.momentum = 0.9") + override('schedule = "constant"')


def test_runs_of_another_study_are_refused(forecast):
    require_study(forecast, STUDY + SAID + override("seed = [7, 8]"), "OUT")
    for study, message in (
        (STUDY.replace("= 100", "= 200") + SAID, "OUT: its study isn't test.toml as it was when"),
        ("", "isn't test.toml"),
        (STUDY + SAID + override("max_gradients = 50"), "OUT: its study sets max_gradients otherwise"),
        (STUDY + SAID.replace("0.9", "0.5"), "sets sgd.momentum otherwise"),
        (STUDY + override('schedule = "constant"'), "sets sgd.momentum otherwise"),
    ):
        with pytest.raises(ReadError, match=message):
            require_study(forecast, study, "OUT")


def test_the_page(tmp_path, capsys, forecast, monkeypatch):
    good = runs({0.1: [40, 40, None], 0.2: [100, None, None]}, seeds_of(forecast.sha256, 3))
    monkeypatch.setattr("basin.pages.forecast.open_sweep", lambda _: SimpleNamespace(runs=good, study=STUDY + SAID))
    assert main([str(forecast.path), str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "warning" not in said
    assert "limits is better than" in said
    assert "of 1 baselines" in said
    assert "40 (2 of 3 reached it)" in table(score_setting(forecast, good))
    page = tmp_path / "page.md"
    page.write_text("<!-- forecast-score -->\n<!-- end of forecast-score -->\n")
    assert main([str(forecast.path), str(tmp_path), "--into", str(page)]) == 0
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in page.read_text().splitlines() if line.startswith("| ")]
    assert rows[0][3:] == ["measured", "limits", "fit"] and rows[1][1:4] == ["sgd", "512", "40 (2 of 3 reached it)"]
    mean = score_setting(forecast, good).groupby("model").wis.mean()
    assert rows[2][4:] == [f"*{mean['limits']:.3f}*", f"*{mean['fit']:.3f}*"]
    assert "* limits is better than" in page.read_text()
    (tmp_path / "other.toml").write_text("a = 1\n")
    assert main([str(tmp_path / "other.toml"), str(tmp_path)]) == 1
    assert "not 'basin/prediction'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("cap = 100", "cap = 0", "cell[0].cap = 0, expected: a whole number from 1"),
        ("cap = 100", f"cap = 1{'0' * 400}", "cell[0].cap = 1000000"),
        ("cap = 100\n", "", "cell[0].cap = None, expected"),
        ("seeds = 3", "seeds = 10001", "test.seeds = 10001, expected: a whole number from 1 to 10,000"),
        ('optimizer = "sgd"', 'optimizer = "s\\ngd"', "cell[0].optimizer = 's\\ngd', expected: a text in one line"),
        ("not_reached = 0.0", "not_reached = true", "cell[0].model[1].not_reached = True, expected: a share of 1, or nan"),
        ("learning_rates = [0.1, 0.2]", "learning_rates = []", "cell[0].learning_rates is no list, or empty"),
        ("[probes]\ncost", "probes_cost", "probes is no table"),
        ("4.3, 4.4]", "4.3]", "cell[0] has 4 quantiles of fit, not 5"),
        ('"limits"', '"other"', "cell[0] has the models other, fit; expected: limits and others, each once"),
        ("seeds = 3", f"seeds = {'[' * 5000}", "no prediction file"),
    ],
)
def test_a_prediction_that_holds_something_else_is_one_line(tmp_path, was, now, message):
    assert was in FILE
    (tmp_path / "p.toml").write_text(FILE.replace(was, now))
    with pytest.raises(ReadError) as error:
        read_prediction(tmp_path / "p.toml")
    assert message in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


VALUES = ["0", "-1", "7", "1e300", "nan", "-inf", '""', '"a\\nb"', "[]", "[[1]]", "{}", "true", "2026-11-25", "1" + "0" * 400,
          '[1, "a"]', '["x=1", "="]', '"1.9"', '"limits"', "[1, 2, 3, 4, 5]", "[nan, 0, inf, -1, 1e300]"]  # fmt: skip


def mutant(dice) -> bytes:
    """FILE with values, lines and bytes changed."""
    lines = FILE.encode().splitlines(keepends=True)
    for _ in range(dice.choice([1, 1, 2, 4])):
        at, how = dice.randrange(len(lines)), dice.randrange(5)
        if how <= 1 and b"=" in lines[at]:
            lines[at] = lines[at].split(b"=")[0] + b"= " + dice.choice(VALUES).encode() + b"\n"
        elif how == 2:
            del lines[at]
        elif how == 3:
            lines.insert(dice.randrange(len(lines)), lines[at])
        else:
            line = bytearray(lines[at])
            line[dice.randrange(len(line))] = dice.randrange(256)
            lines[at] = bytes(line)
    return b"".join(lines)


def test_mutants_of_a_prediction_are_scored_or_one_line(tmp_path, capsys, monkeypatch):
    good = SimpleNamespace(runs=runs({0.1: [40, 40, None], 0.2: [100, None, None]}), study=STUDY + SAID)
    monkeypatch.setattr("basin.pages.forecast.open_sweep", lambda _: good)
    codes = []
    for seed in range(400):
        (tmp_path / "p.toml").write_bytes(mutant(random.Random(seed)))
        codes.append(main([str(tmp_path / "p.toml"), str(tmp_path)]))
        said = capsys.readouterr().err.splitlines()
        assert len(said) == codes[-1], (seed, said)
    assert min(codes.count(0), codes.count(1)) > 30
