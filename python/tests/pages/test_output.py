"""Pictures and files are there whole, or one line says why not."""

import pytest

from basin.figures import accuracy
from basin.pages.output import ReportError, save_picture, write_atomically
from synthetic_sweep import Plan, make_sweep


def test_a_report_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(ReportError, match="report.html: cannot be written: No such file"):
        write_atomically(tmp_path / "nowhere" / "report.html", b"")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ReportError, match="cannot be written: Is a directory"):
        write_atomically(tmp_path / "report.html", b"")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_picture_is_a_png(tmp_path):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 1024), optimizers=("sgd",), images=20, updates=3))
    save_picture(accuracy.accuracy_against_batch, tmp_path / "s", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
