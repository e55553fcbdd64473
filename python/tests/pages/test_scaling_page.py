"""What more ranks bring: docs/scaling.md says what the committed results give, as far as no bootstrap is in it, and the report has it where
`basin scaling` has timed a sweep."""

import re
from pathlib import Path

from basin.analysis.rank_scaling import UpdateCost
from basin.pages import report, scaling
from basin.pages.paste import passage
from rank_times import write_scaling
from synthetic_sweep import Plan, make_sweep

ROOT = Path(__file__).resolve().parents[3]
SWEEP, TIMES = ROOT / "results/2026-11-25-critical/sizes", ROOT / "results/2026-11-27-scaling/scaling.h5"
COST = UpdateCost(per_image=1e-3, per_update=4e-3, bytes=1e6, number=3, latency=50e-6, bandwidth=1e9)


def without_intervals(text):
    return [re.sub(r" \[.*?\]", "", line) for line in text.splitlines()]


def test_the_page_has_the_models_numbers(capsys, tmp_path):
    picture = tmp_path / "scaling.png"
    assert scaling.main([str(SWEEP), "--times", str(TIMES), "--draws", "3", "--picture", str(picture)]) == 0
    printed = capsys.readouterr().out.strip()
    assert without_intervals(printed) == without_intervals(passage(ROOT / "docs/scaling.md", scaling.PASSAGE).strip())
    assert picture.stat().st_size > 10_000


def test_another_file_is_one_line(capsys):
    assert scaling.main([str(SWEEP)]) == 1
    assert "scaling.h5: no such file" in capsys.readouterr().err
    assert scaling.main([str(SWEEP), "--times", str(SWEEP / "sweep.h5")]) == 1
    assert 'a "basin/sweep" file, expected "basin/scaling"; basin.load_sweep reads it' in capsys.readouterr().err


def made(folder):
    plan = Plan(batch_sizes=(32, 1024), optimizers=("sgd",), seeds=(1, 2), images=40, updates=4, protocols=("A-epochs",))
    make_sweep(folder, plan)
    write_scaling(folder / "scaling.h5", COST)
    return report.make_report(folder, progress=lambda line: None)[0].read_text()


def test_the_report_has_what_was_timed(tmp_path):
    html = made(tmp_path / "s")
    assert "What more ranks bring" in html
    assert "Measured on 2026-11-27: 4 ranks of 1 thread each on 1 host (a processor), 3 rounds." in html
    # By hand: an update of 2,048 takes 2.052 s on one rank, 518.4 ms on four.
    assert "<td>SGD, strong</td><td>4</td><td>2,048</td><td>3,951 images</td><td>3.96 [3.96, 3.96]</td><td>99 %</td>" in html
    assert "SGD: an update takes 4.00 ms and 1000 µs for each example; 1,000.0 kB are summed in 3 sums." in html
    assert "No time to a target: " in html and "no run of protocol B." in html


def test_the_model_is_drawn_where_the_sweep_has_a_law(tmp_path, monkeypatch):
    import numpy as np
    import pandas as pd

    from basin.analysis.critical_batch import CriticalBatch
    from basin.pages import study_page

    sizes = pd.DataFrame({"batch": [64.0, 512.0], "status": ["ok", "ok"]})
    law = CriticalBatch(5000.0, sizes, 400.0, 300.0, 500.0, "ok", np.nan, updates=50.0, fitted=400.0,
                        laws=np.array([[300.0, 60.0], [500.0, 40.0]]))  # fmt: skip
    monkeypatch.setattr(study_page, "trials_by_optimizer", lambda sweep: ({}, 5000))
    monkeypatch.setattr(study_page, "laws", lambda trials, examples: {"sgd": law})
    html = made(tmp_path / "s")
    assert (tmp_path / "s/figures/rank-scaling.svg").exists()
    assert "† outside the batch sizes that S(B) was fitted to: SGD from 64 to 512." in html
    assert "<td>SGD</td><td>1,024</td><td>5,000 †</td><td>50</td>" in html
