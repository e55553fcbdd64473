"""Files without a seal: a child process reads them first, and what ends or keeps that child is one line here."""

import json
import os
import subprocess
import sys

import pytest

import basin
from basin.reader import unsealed
from documents import ROOT
from synthetic_sweep import Plan, make_sweep

SMALL = Plan(batch_sizes=(32,), optimizers=("sgd",), seeds=(1, 2), images=8, updates=2, protocols=("B",))
CRASHES = "os.kill(os.getpid(), signal.SIGSEGV)"
HANGS = "time.sleep(60)"
GIVES_UP = "os._exit(3)"


@pytest.fixture
def runs(tmp_path):
    """Two records of an older version, in a sweep's folder."""
    rows = make_sweep(tmp_path / "s", SMALL, write_runs=True)
    return [tmp_path / "s/runs" / row["run_id"] / "run.h5" for row in rows]


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """Everything that children are asked, by a child that nothing was asked before: None as it starts, then paths."""
    unsealed._surveyor.cache_clear()
    questions, ask = [], unsealed._ask

    def counted(process, question):
        questions.append(question and question[0])
        return ask(process, question)

    monkeypatch.setattr(unsealed, "_ask", counted)
    yield questions
    unsealed._surveyor.cache_clear()


@pytest.fixture
def sabotage(tmp_path, monkeypatch):
    """Makes the child do something else than open a certain file."""

    def make(path, deed):
        script = tmp_path / "child.py"
        script.write_text(
            "import os, runpy, signal, time\nimport h5py\nreal = h5py.File\n"
            f"def opened(path, *options, **more):\n    if path == {str(path)!r}:\n        {deed}\n"
            "    return real(path, *options, **more)\n"
            f"h5py.File = opened\nrunpy.run_path({str(unsealed.CHILD)!r}, run_name='__main__')\n"
        )
        monkeypatch.setattr(unsealed, "CHILD", script)

    return make


def refusal(path):
    with pytest.raises(basin.ReadError) as caught:
        basin.load_run(path)
    return str(caught.value)


def test_one_child_reads_every_file_once(runs, asked):
    folder = runs[0].parents[2]
    assert set(basin.load_sweep(folder, "runs").status) == {"finished"}
    files = sorted(str(path) for path in folder.glob("runs/*/**/*.h5") if path.parent.name != "ckpt")
    assert asked[0] is None and sorted(asked[1:]) == files
    basin.load_sweep(folder, "runs")
    assert len(asked) == 1 + len(files)
    os.utime(runs[0], (0, 0))
    basin.load_run(runs[0])
    assert asked[1 + len(files) :] == [str(runs[0])]


@pytest.mark.parametrize(
    "deed, said",
    [
        (CRASHES, "damaged: it crashes HDF5's library (Segmentation fault)"),
        (HANGS, "damaged: not read within 0.5 s"),
        (GIVES_UP, "the process that was reading it stopped (3)"),
    ],
)
def test_what_ends_or_keeps_the_child_is_one_line(runs, sabotage, monkeypatch, deed, said):
    sabotage(runs[0], deed)
    monkeypatch.setattr(unsealed, "seconds_for", lambda size: 0.5)
    assert refusal(runs[0]) == f"{runs[0]}: {said}"


def test_the_other_runs_of_a_sweep_are_read(runs, sabotage, asked):
    sabotage(runs[0], CRASHES)
    with pytest.warns(UserWarning, match="run.h5: damaged: it crashes"):
        table = basin.load_sweep(runs[0].parents[2], "runs").set_index("run_id")
    assert table.loc[runs[0].parent.name].status == "failed" and table.loc[runs[1].parent.name].status == "finished"
    assert asked.count(None) == 2


def test_damage_that_hdf5_reports_is_one_line(runs):
    content = runs[0].read_bytes()
    runs[0].write_bytes(content[: len(content) // 2])
    assert "\n" not in refusal(runs[0]) and "truncated" in refusal(runs[0])


def test_without_verify_no_child_is_asked(runs, sabotage, asked):
    sabotage(runs[0], CRASHES)
    assert basin.load_run(runs[0], verify=False).status == "finished"
    assert asked == []


@pytest.mark.parametrize("there, why", [(False, "No such file"), (True, "ended with exit code 3")])
def test_a_child_that_does_not_start_is_one_line(runs, tmp_path, monkeypatch, there, why):
    python = tmp_path / "python"
    if there:
        python.write_text("#!/bin/sh\nread line\nexit 3\n")
        python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    said = refusal(runs[0])
    assert said.startswith(f"{runs[0]}: ") and why in said and "verify=False" in said and "\n" not in said


def test_an_answer_after_ctrl_c_is_no_other_file_s(runs, sabotage, monkeypatch):
    """The child still reads the first file when the second one is asked for."""

    def interrupted(process, question):
        process.stdin.write(json.dumps(question).encode() + b"\n")
        raise KeyboardInterrupt

    sabotage(runs[1], CRASHES)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(unsealed, "_ask", interrupted)
        basin.load_run(runs[0])
    assert "crashes" in refusal(runs[1])


def test_a_script_without_a_main_guard_runs_once(runs, tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(f"import basin\nprint(basin.load_run({str(runs[0])!r}).status)\n")
    done = subprocess.run(
        [sys.executable, "-X", "dev", script],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("finished\n", "")


def test_a_forked_process_has_a_child_of_its_own(runs):
    basin.load_run(runs[0])
    mine = unsealed._surveyor(os.getpid())._process
    forked = os.fork()
    if forked == 0:
        own = False
        try:
            basin.load_run(runs[1])
            own = unsealed._surveyor(os.getpid())._process.pid != mine.pid
        finally:
            os._exit(0 if own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    os.utime(runs[0], (0, 0))
    assert basin.load_run(runs[0]).status == "finished" and mine.poll() is None
