"""The report as a file, and every way in which making it can fail."""

import os
import re
import subprocess
import sys

import pytest

from basin.pages import report
from basin.pages.output import KEPT_IN_HOME
from basin.reader.fault import ReadError
from documents import ROOT
from surface_files import bowl
from surface_files import make as make_surface
from synthetic_sweep import Plan, make_sweep


def test_report_is_one_file_with_every_figure(whole_report):
    path, first, lines = whole_report
    html = path.read_text()
    assert html.count("data:image/png;base64,") == 8
    assert not re.findall(r'(?:src|href)="(?!#|data:|figures/)', html), "a report that opens without a network"
    for said in (
        "cifar10-5k (official)",
        "3 target not reached",
        "3 diverged",
        "3 of the finished overshot",
        "What this does not show",
    ):
        assert said in html
    alts = re.findall(r'<img [^>]*alt="([^"]*)"', html)
    assert len(alts) == 8 and len(set(alts)) == 8 and alts[0].startswith("Test accuracy against batch size, a line per optimiser")
    assert "test accuracy (%) against batch size (examples), from" in alts[0] and "SGD; LARS; LAMB" in alts[0]
    assert len(lines) == 1 and lines[0].startswith("report: 11 parts, ")
    assert "warning: Not compared at the fixed budget: LARS at 65,536 (3 of 3 seeds diverged)." in first
    assert "SGD        256" in first and "*" not in first
    assert [p.name for p in path.parent.iterdir() if p.suffix == ".tmp"] == []


@pytest.fixture(scope="module")
def small_report(tmp_path_factory):
    return report.make_report(small(tmp_path_factory.mktemp("small") / "s"), progress=lambda line: None)[0]


def test_figures_are_files_too(small_report):
    figures = small_report.parent / "figures"
    names = sorted(path.name for path in figures.iterdir())
    assert "accuracy.pdf" in names and "accuracy.svg" in names and len(names) == 2 * len({n.rsplit(".")[0] for n in names})
    assert (figures / "accuracy.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (figures / "accuracy.svg").read_text()


def test_what_a_sweep_lacks_is_named_and_not_drawn(small_report):
    """SGD alone has no trust ratios, and no run was probed with the ledger or kept one."""
    html = small_report.read_text()
    missing = "test accuracy and loss along the runs, what limits the runs, what limits the runs on the way, "
    missing += "trust ratios by layer"
    assert f"This sweep has nothing for: {missing}." in html and "Trust ratios by layer" not in html


def test_the_measures_are_a_page_of_their_own(tmp_path, capsys):
    """A tiny sweep: nothing may be claimed of one seed, and the page says so; every figure is there."""
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 256, 2048), optimizers=("sgd", "lamb"), seeds=(1,), images=60, updates=3))
    (tmp_path / "s" / "landscape").mkdir()
    make_surface(tmp_path / "s" / "landscape" / "plane.0123456789ab.end.h5", bowl())
    (tmp_path / "s" / "landscape" / "torn.h5").write_bytes(b"")
    assert report.main([str(tmp_path / "s"), "--page", "measures"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("0 of 7 measures") and said.endswith(f"{tmp_path / 's' / 'measures.html'}\n")
    assert not (tmp_path / "s" / "report.html").exists()
    html = (tmp_path / "s" / "measures.html").read_text()
    assert html.count('src="data:image/png;base64,') == 3 + 2
    for said in ("0 of 7 measures", "nothing is claimed: one seed each", "folder has no audit", "plane.0123456789ab.end",
                 "torn.h5: truncated", "What this does not show"):  # fmt: skip
        assert said in html


@pytest.mark.parametrize("name", ["study", "measures"])
def test_a_notebook_runs(tmp_path, name):
    """They import what the pages do."""
    import jupytext
    from nbclient import NotebookClient

    make_sweep(tmp_path / "s", Plan(batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), images=20, updates=3))
    book = jupytext.read(ROOT / f"notebooks/{name}.py")
    environment = os.environ | {"BASIN_SWEEP": str(tmp_path / "s"), "PYTHONPATH": str(ROOT / "python")}
    NotebookClient(book, timeout=300, kernel_name="python3", extra_arguments=["--log-level=40"]).execute(env=environment)
    kinds = [kind for cell in book.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert "image/png" in kinds and "text/markdown" in kinds


def test_command_line_ends_with_one_line_and_an_exit_code(tmp_path, capsys):
    assert report.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("basin.report: ") and "neither sweep.h5 nor runs/" in said and said.count("\n") == 1


def test_the_home_folder_stays_empty_and_the_margin_reaches_the_page(tmp_path):
    """As called by hand, with nothing in the environment; a picture draws in this process too."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    kept = {k: v for k, v in os.environ.items() if k not in KEPT_IN_HOME and not k.startswith("XDG_")}
    done = subprocess.run(
        [sys.executable, "-m", "basin.report", str(small(tmp_path / "s")), "--picture", str(tmp_path / "a.png"), "--margin", "37.5"],
        env=kept | {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT / "python")},
        capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    left = [p for name in ("home", "tmp") for p in (tmp_path / name).rglob("*")]
    assert left == [] and (tmp_path / "a.png").is_file()
    said = (tmp_path / "s" / "report.html").read_text()
    assert "37.5 points" in said and "±2 points" not in said


def small(folder):
    make_sweep(folder, Plan(batch_sizes=(32, 1024), optimizers=("sgd",), images=20, updates=3))
    return folder


@pytest.mark.parametrize(
    "picture, message",
    [
        ("nowhere/a.png", "a.png: cannot be written: No such file"),
        ("a.jpeg", "a picture is a .png file"),
        ("", "a picture is a .png file"),
    ],
)
def test_a_picture_that_cannot_be_written_is_one_line(tmp_path, capsys, monkeypatch, picture, message):
    monkeypatch.setattr(report, "make_report", lambda folder, *_, **__: (folder, ""))
    assert report.main([str(small(tmp_path / "s")), "--picture", str(tmp_path / picture)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("basin.report: ") and message in said and said.count("\n") == 1


@pytest.mark.parametrize("margin", ["0", "-2", "100", "nan"])
def test_a_margin_that_makes_no_sense_is_one_line(tmp_path, capsys, margin):
    assert report.main([str(small(tmp_path / "s")), "--margin", margin]) == 1
    said = capsys.readouterr().err
    assert said.startswith("basin.report: margin = ") and said.count("\n") == 1


def test_a_missing_folder_is_one_line(tmp_path):
    with pytest.raises(ReadError, match="no such file or folder"):
        report.make_report(tmp_path / "nowhere")
