"""basin.pages.keskar on a made sweep with an arm, twins and questions, against its own columns."""

import numpy as np
import pytest
from scipy.stats import t as student

import basin
from basin.pages import keskar
from basin.pages.paste import passage
from documents import ROOT
from planned import open_planned

PHI = "probe.sharpness_keskar.phi_full_1e-3"
STUDY = """
[sweep]
batch_size = [32, 256, 1024]
[[sweep.arm]]
when = { batch_size = 1024 }
set = { ghost_batch = 500 }
[[contrast]]
name = "gap"
base = { batch_size = 32 }
arm = { batch_size = 1024 }
outcome = "test_acc"
[[contrast]]
name = "twin"
base = { batch_size = 32 }
arm = { batch_size = 1024 }
outcome = "probe.sharpness_keskar.phi_full_1e-3"
at = "end@twin"
[[hypothesis]]
name = "large-is-worse"
claim = "Large batches are worse."
contrasts = ["gap"]
expect = "less"
margin = 1.0
[[hypothesis]]
name = "sharper-at-the-twin"
claim = "And sharper as functions."
contrasts = ["twin"]
expect = "greater"
margin = 2.0
"""
# 2 points of accuracy for each of five doublings; of these the arm brings back half. Sharpness grows, at the twin it doesn't.
PLAN = dict(
    batch_sizes=(32, 256, 1024), optimizers=("sgd",), seeds=(1, 2, 3, 4, 5), protocols=("B",), images=1500, updates=4, drop_b=0.02,
    seed_error=0.003, arms=(("ghost_batch", 500, (1024,), 0.5),), twin=True, study=STUDY,
)  # fmt: skip


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return open_planned(tmp_path_factory.mktemp("keskar") / "s", PLAN)


def of(sweep, column, batch, ghost=0):
    """By seed, from the file's columns."""
    runs = sweep.runs[(sweep.runs.batch_size == batch) & (sweep.runs.ghost_batch == ghost)]
    return runs.set_index("seed")[column].sort_index()


def row(text, start):
    """The cells of the first row that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_an_arm_has_a_column_of_its_own_behind_the_plain_setting(sweep):
    found = keskar.columns_of(sweep)
    assert [c.label for c in found] == ["B = 32", "B = 256", "B = 1,024", "B = 1,024, ghost batch 500"]
    assert [c.plain for c in found] == [True, True, True, False] and {len(c.setting.runs) for c in found} == {5}


def test_means_and_deviations_are_over_seeds(sweep):
    text = keskar.markdown(sweep)
    accuracy = 100 * of(sweep, "test_acc", 1024, 500)
    assert row(text, "test accuracy (%)")[3] == f"{accuracy.mean():.4g} ± {accuracy.std(ddof=1):.2g}"
    assert row(text, "test accuracy (%)")[-2:] == ["80.04 ± 0.12", "77.26 ± 0.42"]
    assert row(text, "learning rate") == ["0.1"] * 4 + ["–", "–"]
    lines = text.splitlines()
    phi = next(i for i, line in enumerate(lines) if line.startswith("| phi_full_1e-3"))
    twin = of(sweep, "probe.end@twin.sharpness_keskar.phi_full_1e-3", 256)
    assert lines[phi + 1].startswith("| – the same at the twin |") and f"| {twin.mean():.4g} ± " in lines[phi + 1]
    relative = next(i for i, line in enumerate(lines) if line.startswith("| phi_relative_1e-3"))
    assert "twin" not in lines[relative + 1]


@pytest.mark.parametrize("at", ["end", "end@twin"])
def test_ratios_are_paired_by_seed(sweep, at):
    """The geometric mean, and Student's interval of the mean logarithm."""
    base, _, _, arm = keskar.columns_of(sweep)
    column = PHI.replace("probe.", f"probe.{at}.")
    logs = np.log(of(sweep, column, 1024, 500) / of(sweep, column, 32))
    half = student.ppf(0.975, 4) * logs.std(ddof=1) / np.sqrt(5)
    effect = keskar.compared(sweep, base, arm, PHI, at).effect
    # Rounding alone: the same formula.
    assert [effect.value, *effect.interval()] == pytest.approx([logs.mean(), logs.mean() - half, logs.mean() + half], rel=1e-9)


def test_differences_and_verdicts_are_those_of_the_studys_contrasts(sweep):
    text, contrasts = keskar.markdown(sweep), basin.contrasts(sweep.path).set_index("name")
    gap = contrasts.loc["gap"]
    assert (
        gap.effect == pytest.approx(-0.1, abs=0.02) and gap.images == 1500
    )  # five doublings at 2 points; some five errors of 0.4
    said = f"{100 * gap.effect:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}] points".replace("-", "−")
    assert row(text, "test accuracy |")[1] == said == row(text, "Large batches are worse.")[2]
    assert row(text, "Large batches are worse.")[-1] == "confirmed"
    assert row(text, "And sharper as functions.")[-1] == "refuted", "the same within a factor of two"


def test_a_seed_that_missed_the_target_is_counted_and_no_verdict_given(tmp_path):
    plan = PLAN | {"endings": {("B", "sgd", 1024, 2): "target_not_reached"}}
    text = keskar.markdown(open_planned(tmp_path / "s", plan))
    assert row(text, "test accuracy (%)")[2].endswith("(4 of 5)") and row(text, "test accuracy |")[1].endswith("(4 of 5 seeds)")
    assert "\n- large-is-worse: gap: arm: 1 of 5 seeds missed the target\n" in text


def test_what_three_sizes_say_about_a_correlation(sweep):
    """Accuracy falls and φ rises: a perfect order. Two of the 3! orders are perfect, one either way."""
    said = keskar.markdown(sweep).splitlines()[-1]
    assert said.startswith("Over the 3 batch sizes") and "−1.00 (p = 0.33)" in said and " with φ at the twin" in said
    assert said.endswith("Even a perfect order of 3 has p = 0.33: they can neither show a correlation nor exclude one.")


def test_what_five_sizes_say_about_a_correlation(tmp_path):
    plan = PLAN | dict(batch_sizes=(32, 64, 128, 256, 1024), arms=(), study="", seeds=(1, 2), drop_b=0.04)
    said = keskar.markdown(open_planned(tmp_path / "s", plan)).splitlines()[-1]
    assert "−1.00 (p = 0.02)" in said and said.endswith("p exact.")


def test_the_figure_against_the_loss_where_it_was_measured_there(sweep):
    assert [ax.get_ylabel() for ax in keskar.figure(sweep).axes] == [
        "φ, full space, ε = 1e-3 (%)",
        "φ, box relative to |w| (%)",
        "λ₁ (loss / weight²)",
    ]


def test_a_passage_with_the_picture_that_was_made(sweep, tmp_path, capsys):
    page, picture = tmp_path / "docs" / "page.md", tmp_path / "docs" / "images" / "k.png"
    picture.parent.mkdir(parents=True)
    page.write_text("before\n<!-- keskar-old -->\n<!-- end of keskar-old -->\nafter\n")
    assert keskar.main([str(sweep.path), "--into", str(page), "--passage", "keskar-old", "--picture", str(picture)]) == 0
    printed = capsys.readouterr().out.strip()
    assert passage(page, "keskar-old") == printed and printed.endswith("\n\n![φ and λ₁ of the settings](images/k.png)")
    assert picture.stat().st_size > 1000 and page.read_text().startswith("before\n<!-- keskar-old -->\n| at training loss")


RESULTS = sorted((ROOT / "results").glob("*-keskar"))


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_the_pages_tables_are_those_of_its_results(folder):
    name = "keskar-first" if folder == RESULTS[0] else keskar.PASSAGE
    assert passage(ROOT / "docs/keskar.md", name).startswith(keskar.markdown(basin.open_sweep(folder / "sweep.h5")))


OTHERS = [({"protocols": ("A-epochs",)}, "no run of protocol B"), ({"optimizers": ("sgd", "lamb")}, "optimizer")]


@pytest.mark.parametrize("plan, says", OTHERS)
def test_what_it_is_not_of_is_one_line(tmp_path, capsys, plan, says):
    open_planned(tmp_path / "s", dict(batch_sizes=(32,), optimizers=("sgd",), seeds=(1,), images=20, updates=4) | plan)
    assert keskar.main([str(tmp_path / "s")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("basin.pages.keskar: ") and says in error and error.count("\n") == 1
