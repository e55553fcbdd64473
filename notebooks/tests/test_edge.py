"""basin.edge on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from basin import edge


class Made:
    """Two rates, two seeds; λ₁ climbs linearly to 1.05 and 0.95 times its limit and stays."""

    def __init__(self, **options):
        rows, probes = [], []
        for rate in (0.1, 0.2):
            for seed, share in ((1, 1.05), (2, 0.95)):
                run_id = f"{rate}-{seed}"
                rows.append({"run_id": run_id, "config_id": str(rate), "optimizer": "sgd", "learning_rate": rate, "updates": 600,
                             "sgd.momentum": 0.0, **options})  # fmt: skip
                limit = edge.limit(pd.Series(rows[-1]))
                for update in range(100, 601, 100):
                    value = share * limit * min(1.0, update / 400)
                    probes.append({"run_id": run_id, "checkpoint": f"u{update:06d}", "probe": "top_eigenvalues", "quantity": "lambda",
                                   "index": 0, "update": update, "value": value, "uncertainty": 0.01, "status": "ok"})  # fmt: skip
                probes.append({**probes[-1], "checkpoint": "end", "value": 1e9})
        self.runs, self.probes = pd.DataFrame(rows), pd.DataFrame(probes)

    def curve(self, run_id, table="train"):
        return pd.DataFrame({"update": [1, 2], "loss": [1.0, 0.5]})


def test_limits_are_those_of_the_quadratic():
    run = {"optimizer": "sgd", "learning_rate": 0.1, "sgd.momentum": 0.0}
    assert edge.limit(pd.Series(run)) == pytest.approx(20)
    assert edge.limit(pd.Series({**run, "sgd.momentum": 0.9})) == pytest.approx(38)
    assert edge.limit(pd.Series({**run, "sgd.momentum": 0.9, "sgd.nesterov": True})) == pytest.approx(3.8 / 2.8 / 0.1)
    assert np.isnan(edge.limit(pd.Series({**run, "optimizer": "lamb"})))


def test_levels_are_means_over_seeds_of_the_last_third_of_the_cadence():
    table = edge.levels(Made())
    assert list(table.learning_rate) == [0.1, 0.2]
    assert table.level.to_numpy() == pytest.approx([1.0, 1.0])  # (1.05 + 0.95) / 2; the checkpoint "end" is no part of it
    assert table.error.to_numpy() == pytest.approx([0.05, 0.05])
    assert table.start.to_numpy() == pytest.approx([0.25, 0.25])
    assert list(table.seeds) == [2, 2]


def test_figure_and_words():
    sweep = Made()
    picture = edge.figure(sweep)
    dashed = [line for line in picture.axes[0].lines if line.get_linestyle() == "--"]
    assert {line.get_ydata()[0] for line in dashed} == {20.0, 10.0}
    assert "1.000 ± 0.050" in edge.in_words(sweep)[0]


def test_a_sweep_without_a_cadence_is_one_line(tmp_path, capsys):
    assert edge.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("basin.edge: ")
