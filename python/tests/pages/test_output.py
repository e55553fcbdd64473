"""Pictures and files are there whole, or one line says why not."""

import pytest

from basin.figures import accuracy, style
from basin.pages.command import command, run
from basin.pages.output import ReportError, save_picture, write_atomically
from basin.pages.page import CANVASES, Section
from basin.reader.sweep import open_sweep
from synthetic_sweep import Plan, make_sweep


def test_a_report_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(ReportError, match="report.html: cannot be written: No such file"):
        write_atomically(tmp_path / "nowhere" / "report.html", b"")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ReportError, match="cannot be written: Is a directory"):
        write_atomically(tmp_path / "report.html", b"")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_memory_that_is_out_is_one_line(capsys):
    def work(options):
        raise MemoryError

    assert run(command("basin.report", "how: what"), [], work) == 1
    assert capsys.readouterr().err == "basin.report: out of memory\n"


def test_a_file_of_which_the_system_speaks_comes_first(tmp_path, capsys):
    def work(options):
        (tmp_path / "nowhere" / "figures").mkdir()

    assert run(command("basin.report", "how: what"), [], work) == 1
    assert capsys.readouterr().err == f"basin.report: {tmp_path}/nowhere/figures: No such file or directory\n"


def test_picture_is_a_png(tmp_path):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 1024), optimizers=("sgd",), images=20, updates=3))
    save_picture(accuracy.accuracy_against_batch, tmp_path / "s", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_drawn_again_has_the_same_bytes(tmp_path):
    """A report made again, or after a kill, can be compared with the first."""
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 1024), optimizers=("sgd",), images=20, updates=3))
    style.use()
    drawn = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made = accuracy.accuracy_against_batch(open_sweep(tmp_path / "s"))
        assert Section("accuracy").figure(made, "accuracy", "accuracy", tmp_path / name)
        drawn.append({path.suffix: path.read_bytes() for path in (tmp_path / name / "figures").iterdir()})
    assert drawn[0] == drawn[1] and set(drawn[0]) == {f".{kind}" for kind in CANVASES if kind != "png"}
