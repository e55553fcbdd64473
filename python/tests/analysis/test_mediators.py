"""Arms in the plane of outcome and mediator: known effects, bases, the twin, and the placebo."""

import numpy as np
import pandas as pd
import pytest

from basin.analysis.mediators import arm_effects, associations
from basin.pages import mediator_text, mediators, report
from planned import open_planned
from synthetic_sweep import Plan, make_sweep

LAMBDA, TWIN = "probe.end.top_eigenvalues.lambda_1", "probe.end@twin.top_eigenvalues.lambda_1"
PLAN = dict(
    batch_sizes=(32, 256, 2048), optimizers=("sgd", "lamb"), protocols=("B",), images=400, updates=3, drop_b=0.02,
    arms=(("ghost_batch", 25, (2048,), 0.5), ("warmup", 0.2, (2048,), 0.0)),
)  # fmt: skip


def known(sweep):
    """λ₁ as √B, half of that with small ghost batches; at the twin there is nothing but scatter of 1 %."""
    runs = sweep.runs
    scatter = np.exp(0.01 * np.random.default_rng(1).standard_normal((2, len(runs))))
    runs[LAMBDA] = np.sqrt(runs.batch_size) * np.where(runs.ghost_batch == 25, 0.5, 1.0) * scatter[0]
    sweep.runs = pd.concat([runs, pd.DataFrame({TWIN: 7.0 * scatter[1], f"{TWIN}.status": "ok"}, index=runs.index)], axis=1)
    return sweep


@pytest.fixture
def sweep(tmp_path):
    return known(open_planned(tmp_path / "s", PLAN))


def test_each_arm_has_one_base_that_it_differs_from_in_one_respect(sweep):
    found = {arm.name: arm.base for arm in arm_effects(sweep)}
    sgd, lamb = (sweep.names.label("optimizers", o) for o in ("sgd", "lamb"))
    assert found == {
        f"{sgd} 256": f"{sgd} 32", f"{sgd} 2,048": f"{sgd} 32", f"{sgd} 2,048, ghost_batch=25": f"{sgd} 2,048",
        f"{sgd} 2,048, warmup=0.2": f"{sgd} 2,048", f"{lamb} 32": f"{sgd} 32", f"{lamb} 256": f"{lamb} 32",
        f"{lamb} 2,048": f"{lamb} 32", f"{lamb} 2,048, ghost_batch=25": f"{lamb} 2,048", f"{lamb} 2,048, warmup=0.2": f"{lamb} 2,048",
    }  # fmt: skip


def test_effects_are_those_of_the_runs(sweep):
    arms = {arm.name: arm for arm in arm_effects(sweep)}
    label = sweep.names.label("optimizers", "sgd")
    large, ghost = arms[f"{label} 2,048"], arms[f"{label} 2,048, ghost_batch=25"]
    # Means of three seeds' scatter of 1 % in arm and base: 5 standard errors are 4 %.
    assert np.exp(large.mediators["λ₁", "end"].value) == pytest.approx(8, rel=0.04)
    assert np.exp(ghost.mediators["λ₁", "end"].value) == pytest.approx(0.5, rel=0.04)
    assert np.exp(large.mediators["λ₁", "end@twin"].value) == pytest.approx(1, rel=0.04)
    mine = sweep.runs[(sweep.runs.optimizer == "sgd") & (sweep.runs.ghost_batch == 0) & (sweep.runs.warmup == 0)]
    means = mine.groupby("batch_size").test_acc.mean()
    assert large.outcomes["test_acc"].value == pytest.approx(means[2048] - means[32])
    assert large.outcomes["test_acc"].images == 400 and large.outcomes["test_loss"].images == 0
    low, high = large.outcomes["test_acc"].interval()
    assert low < large.outcomes["test_acc"].value < high and ("φ", "end") in large.mediators


def test_a_mediator_that_is_not_ok_is_no_number(sweep):
    lost = (sweep.runs.optimizer == "sgd") & (sweep.runs.batch_size == 2048)
    sweep.runs.loc[lost, f"{LAMBDA}.status"] = "not_converged"
    arms = {arm.name: arm for arm in arm_effects(sweep)}
    label = sweep.names.label("optimizers", "sgd")
    assert ("λ₁", "end") not in arms[f"{label} 2,048"].mediators and ("λ₁", "end@twin") in arms[f"{label} 2,048"].mediators


def test_the_placebo_finds_what_goes_together_and_nothing_at_the_twin(sweep, few_draws):
    arms = arm_effects(sweep)
    for arm in arms:  # λ₁'s effects in the order of the outcome's
        arm.outcomes["test_acc"] = arm.outcomes["test_acc"].less(
            arm.outcomes["test_acc"].value - arm.mediators["λ₁", "end"].value
        )
    found = {(a.mediator, a.place, a.outcome): a for a in associations(arms)}
    one = found["λ₁", "end", "test_acc"]
    assert one.arms == 9 and one.tau.value == pytest.approx(1) and one.tau.p < 0.01 and one.tau.p <= one.holm
    assert found["λ₁", "end@twin", "test_acc"].tau.p > 0.05
    few = associations(arms[:4])
    assert all(not np.isfinite(a.tau.value) for a in few) and few[0].text == "4 arms"


def test_the_figure_draws_both_places(sweep, drawing):
    from basin.figures.mediators import plane

    arms = arm_effects(sweep)
    figure = plane(arms, associations(arms), sweep.names)
    first = figure.axes[0]
    drawn = [container[0] for container in first.containers]
    assert len(drawn) == 2 * len(arms)
    hollow = [line for line in drawn if line.get_markerfacecolor() == "white"]
    assert len(hollow) == len(arms) and "placebo p" in first.get_title(loc="left") + first.get_title()
    values = sorted(float(line.get_xdata()[0]) for line in drawn if line not in hollow)
    assert values == pytest.approx(sorted(np.exp(a.mediators["λ₁", "end"].value) for a in arms))
    assert plane(arms[:1], [], sweep.names) is None


def test_tables_and_the_report(tmp_path, few_draws, draw_only):
    draw_only("mediators")
    make_sweep(tmp_path / "s", Plan(**PLAN))
    assert report.main([str(tmp_path / "s")]) == 0
    page = (tmp_path / "s/report.html").read_text()
    assert "Mediators by manipulation" in page and "placebo&#x27;s p" in page
    sweep = known(open_planned(tmp_path / "t", PLAN))
    arms = arm_effects(sweep)
    rows = mediator_text.arm_table(arms)
    assert (
        len(rows) == len(arms)
        and rows["λ₁"].str.contains("; twin ×").all()
        and rows["test accuracy"].str.endswith("points").all()
    )
    together = mediator_text.association_table(associations(arms))
    assert list(together["at"].unique()) == ["end", "twin"]


def test_the_command_prints_both_tables_and_refuses_a_sweep_without_mediators(tmp_path, few_draws, capsys):
    text = mediators.markdown(known(open_planned(tmp_path / "s", PLAN))).splitlines()
    assert text[0].startswith("| ") and "λ₁" in text[0] and text[text.index("") + 1].startswith("| mediator |")
    make_sweep(tmp_path / "t", Plan(batch_sizes=(32,), optimizers=("sgd",), images=40, updates=3))
    assert mediators.main([str(tmp_path / "t")]) == 1
    assert "no arm has both an outcome and a mediator" in capsys.readouterr().err
