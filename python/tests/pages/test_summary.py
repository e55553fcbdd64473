"""Each number of the README's list says what it is of."""

import basin
from basin.analysis.cell_answers import answers
from basin.analysis.number_text import points
from basin.analysis.pooled import pooled
from basin.pages.summary import main, summary
from planned import open_planned
from synthetic_sweep import Plan, make_sweep


def sweep_of(folder, **plan):
    return open_planned(folder, dict(updates=4, images=3000, seed_error=0.004) | plan)


def test_means_name_their_cells_and_those_left_out(tmp_path):
    endings = {("B", "sgd", 65536, s): "target_not_reached" for s in (1, 2)}
    sweep = sweep_of(tmp_path / "s", endings=endings)
    together = pooled(sweep, answers(sweep))
    lines = summary(sweep).splitlines()
    cells = "LARS and LAMB at 65,536"
    assert lines[0].startswith(f"* Mean over {cells} (3 seeds, each cell against its own reference)")
    assert f"the drop is {points(together.drop.value)} points" in lines[0]
    assert (
        f"matched training loss: {points(together.gap.value)} points" in lines[1]
        and "mean training losses 0.980 and 0.980" in lines[1]
    )
    smaller = "SGD, LARS and LAMB at 256, 2,048 (another batch size)"
    assert lines[2] == f"* Not in these means: SGD at 65,536 (2 of 3 seeds missed the target); {smaller}."


def test_updates_to_the_target_name_who_missed_it(tmp_path):
    said = summary(
        sweep_of(tmp_path / "s", endings={("B", "sgd", 65536, 1): "target_not_reached", ("B", "lamb", 65536): "diverged"})
    )
    assert (
        "mean over the seeds that reached it: SGD 4 (1 of 3 seeds missed the target), LARS 4, LAMB (3 of 3 seeds diverged)."
        in said
    )


def test_sizes_with_one_seed_are_named(tmp_path):
    make_sweep(tmp_path / "s", Plan(updates=4, images=100))
    sweep = basin.open_sweep(tmp_path / "s")
    assert "one seed" not in summary(sweep)
    sweep.runs = sweep.runs[~((sweep.runs.batch_size == 256) & (sweep.runs.seed > 1))]
    assert "Batch sizes with one seed (256) are drawn half filled, and nothing is claimed of them." in summary(sweep)


def test_command_line(tmp_path, capsys):
    sweep = sweep_of(tmp_path / "s", images=100, optimizers=("sgd",))
    assert main([str(tmp_path / "s")]) == 0
    assert capsys.readouterr().out.strip() == summary(sweep)
