"""basin.pages.keskar on numbers written by hand, and on a made sweep."""

import numpy as np
import pandas as pd
import pytest

import basin
from basin.pages import keskar
from basin.pages.paste import passage
from documents import ROOT, results_named_in
from planned import open_planned

PHI = "probe.end.sharpness_keskar.phi_full_1e-3"


def by_hand():
    """Seeds 1 to 3 at two batch sizes: φ 2, 4, 8 and, in another order, 4, 16, 64; a fourth seed of the larger didn't converge."""
    rows = [(25, seed, phi, "ok") for seed, phi in ((1, 2.0), (2, 4.0), (3, 8.0))]
    rows += [(500, 3, 64.0, "ok"), (500, 1, 4.0, "ok"), (500, 2, 16.0, "ok"), (500, 4, 1e9, "nonfinite")]
    runs = pd.DataFrame(rows, columns=["batch_size", "seed", PHI, f"{PHI}.status"])
    return runs.assign(test_acc=[0.5, 0.52, 0.54, 0.4, 0.4, 0.4, 0.4])


def test_means_and_deviations_are_over_seeds_with_a_value():
    found = keskar.table(by_hand()).set_index(["column", "batch"])
    phi = found.loc[(PHI, 500)]
    assert phi["mean"] == pytest.approx(28) and phi.deviation == pytest.approx(np.sqrt((24**2 + 12**2 + 36**2) / 2))
    assert (phi.runs, phi["of"]) == (3, 4)
    accuracy = found.loc[("test_acc", 25)]
    assert accuracy["mean"] == pytest.approx(52) and accuracy.deviation == pytest.approx(2)


def test_ratios_are_paired_by_seed():
    """2, 4 and 8: logarithms ln 4 ± ln 2, an error of ln 2/√3, and Student's 4.3027 for two degrees of freedom."""
    value, low, high, seeds = keskar.ratio(by_hand(), PHI, 500)
    assert value == pytest.approx(4) and seeds == 3
    assert np.log(high / value) == pytest.approx(4.302653 * np.log(2) / np.sqrt(3), rel=1e-6)
    assert low * high == pytest.approx(16)
    assert np.isnan(keskar.ratio(by_hand().assign(**{PHI: -1.0}), PHI, 500)[0])


def test_the_page_of_a_sweep(tmp_path):
    sweep = open_planned(
        tmp_path / "s", dict(batch_sizes=(32, 1024), optimizers=("sgd",), seeds=(1, 2, 3), images=200, updates=4)
    )
    text = keskar.markdown(sweep)
    head, _, accuracy = text.splitlines()[:3]
    assert head.startswith("| at training loss 1 | B = 32 | B = 1,024 |") and head.count("|") == accuracy.count("|")
    wanted = 100 * sweep.runs[(sweep.runs.protocol == "B") & (sweep.runs.batch_size == 32)].test_acc.mean()
    line = next(line for line in text.splitlines() if line.startswith("| test accuracy"))
    assert f"| {wanted:.4g} ±" in line and line.endswith("| 80.04 ± 0.12 | 77.26 ± 0.42 |")
    assert "3 seeds, 200 images" in text
    assert "| phi_full_1e-3 |" in text and "| lambda_1_w2 |" in text  # as the file has them, whose units are 1
    assert [ax.get_ylabel() for ax in keskar.figure(sweep).axes] == [
        "φ, full space, ε = 1e-3 (%)",
        "φ, box relative to |w| (%)",
        "λ₁ (loss / weight²)",
    ]


def test_the_pages_tables_are_those_of_its_results():
    folder = results_named_in("docs/keskar.md", r"results/[0-9-]+keskar(?=\))")
    assert passage(ROOT / "docs/keskar.md", keskar.PASSAGE) == keskar.markdown(basin.open_sweep(folder / "sweep.h5")).strip()


def test_what_it_is_not_of_is_one_line(tmp_path, capsys):
    open_planned(
        tmp_path / "s", dict(batch_sizes=(32,), optimizers=("sgd",), seeds=(1,), protocols=("A-epochs",), images=20, updates=4)
    )
    assert keskar.main([str(tmp_path / "s")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("basin.pages.keskar: ") and "no run of protocol B" in error and error.count("\n") == 1
