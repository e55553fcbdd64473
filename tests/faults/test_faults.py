"""The campaign's own machinery: one kill and one fault of short commands; what is planted in a result or a message is found."""

import json
import os
import pathlib
import subprocess
import sys

import h5py
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "scripts", "tests/cluster")]

import kills  # noqa: E402
import long_sweep  # noqa: E402
from calls import Ended  # noqa: E402
from cases import Prepared, first_run  # noqa: E402
from compare import broken_rules  # noqa: E402
from faults import FAULTS  # noqa: E402
from judge import problems_of  # noqa: E402
from plan import Settings, plan  # noqa: E402
from table import tables  # noqa: E402

BASIN = os.environ.get("BASIN_BINARY")
pytestmark = pytest.mark.skipif(not BASIN, reason="BASIN_BINARY names the program under test")


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    return Prepared("train", pathlib.Path(BASIN).resolve(), tmp_path_factory.mktemp("prepared"))


@pytest.fixture(scope="module")
def killed(training, tmp_path_factory):
    """The folder of a run that was killed once and resumed, and its row."""
    folder = tmp_path_factory.mktemp("trials") / "train"
    return folder, kills.trial(training, folder, "1", kills=1)


def test_a_killed_run_ends_with_the_same_numbers(killed):
    _, row = killed
    assert row["problems"] == [] and sum(draw["met"] for draw in row["kills"]) == row["resumes"] == 1, row


def test_a_number_that_changed_and_a_file_that_is_left_are_found(training, killed):
    folder, _ = killed
    with h5py.File(first_run(folder) / "run.h5", "r+") as file:
        file["train/loss"][7] = np.nextafter(file["train/loss"][7], np.inf)
    (folder / "out/left.tmp").touch()
    found = training.differences(folder)
    assert len(found) == 2 and "left.tmp" in found[0] and "/train/loss[7]: " in found[1], found


ARRIVALS = {
    "update": [1, 2, 3, 4],
    "worker": [0, 1, 0, 1],
    "worker_batch": [0, 1, 3, 2],
    "staleness": [0, 1, 3, 1],
    "worker_lead": 4 * [1],
}


@pytest.mark.parametrize(
    "column, values, words",
    [
        ("update", [1, 2, 2, 4], "updates are not"),
        ("worker_batch", [0, 1, 1, 2], "a batch made two"),
        ("worker", [0, 1, 2, 1], "a worker that"),
        ("staleness", [0, 1, 4, 1], "staleness"),
        ("worker_lead", [0, 1, 3, 1], "a lead"),
    ],
)
def test_a_record_of_arrivals_that_breaks_a_rule_is_found(tmp_path, column, values, words):
    with h5py.File(tmp_path / "run.h5", "w") as file:
        for name, column_values in {**ARRIVALS, column: values}.items():
            file[name] = column_values
        (found,) = broken_rules(file, workers=2, bound=1, updates=4)
        assert words in found
        file[column][...] = ARRIVALS[column]
        assert broken_rules(file, workers=2, bound=1, updates=4) == []


LINE = "basin: cannot write out/sweep.h5.tmp: No space left on device\n"
FAILED = "FAILED  0123456789ab: {} (log: out/runs/0123456789ab/run.log)\n1 run without a result\n"


@pytest.mark.parametrize(
    "code, said, fault, wrong",
    [
        (0, "", "disk", None),
        (4, f"some progress\n{LINE}", "disk", None),
        (1, FAILED.format("no memory"), "disk", None),
        (1, FAILED.format("killed by signal 11 (Segmentation fault)"), "memory-0.6", None),
        (1, FAILED.format("killed by signal 11 (Segmentation fault)"), "disk", "Segmentation"),
        (-11, "", "memory-0.6", "SIGSEGV"),
        (134, LINE, "disk", "exit code 134"),
        (1, "terminate called after throwing an instance\n", "disk", "no line of basin"),
        (4, 2 * LINE, "disk", "more than one line"),
        (4, "basin: No space left on device\n", "disk", "names no file"),
    ],
)
def test_what_is_no_clear_end_is_found(code, said, fault, wrong):
    found = list(problems_of(Ended(code, said, 0.1), FAULTS[fault], kept="exists already"))
    assert wrong in found[0] if wrong else not found, found


def test_a_run_of_the_long_sweep_lasts_as_long_as_asked():
    # 20,000 updates in 4 s besides 2 s to start: a second is 5,000, however long starting takes.
    assert long_sweep.updates_for(1.0, short=2.0, long=6.0) == pytest.approx(5_000, rel=1e-3)
    with pytest.raises(RuntimeError, match="too much else"):
        long_sweep.updates_for(1.0, short=2.0, long=1.9)


def test_growth_is_found():
    assert long_sweep.grown({"sweep_kib": 100}, {"sweep_kib": 109}) == []
    assert long_sweep.grown({"sweep_kib": 100}, {"sweep_kib": 111}) == ["sweep_kib grew from 100 to 111"]


def test_a_slower_host_is_no_growth_and_more_time_between_runs_is():
    """Forty runs of 0.9 s, two at a time, whose ends lie 0.5 s apart. Then a host that is half as fast: 1.8 s and 1.0. Then runs that last
    as long as before, with ends that lie 12 % further apart: that is growth."""

    def quarters(slow_between, slow_own):
        own = [0.9] * 20 + [slow_own] * 20
        ends = [0.5 * done if done < 20 else 10 + slow_between * (done - 20) for done in range(40)]
        looks = [{"seconds": at, "done": done, "sweep_kib": 1, "worker_kib": 1, "sweep_handles": 1, "worker_handles": 1}
                 for done, at in enumerate(ends)]  # fmt: skip
        return [long_sweep.quarter(looks, own, number) for number in (0, 3)]

    first, last = quarters(1.0, 1.8)
    assert first["time_over_own"] == pytest.approx(1.0 / 0.9) and last["seconds_per_cell"] == pytest.approx(1.0)
    assert long_sweep.grown(first, last) == []
    first, last = quarters(0.56, 0.9)
    assert [line.split(" grew ")[0] for line in long_sweep.grown(first, last)] == ["time_over_own"]


def test_a_campaign_goes_on_where_it_was_and_has_tables(tmp_path):
    def campaign():
        command = [
            sys.executable,
            ROOT / "tests/faults/campaign.py",
            "--out",
            tmp_path,
            "--only",
            "handles-6",
            "--cases",
            "init",
        ]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    for printed in ("[1/1] handles-6 init 0: ok", "1 trials, all well"):
        done = campaign()
        assert done.returncode == 0 and printed in done.stdout, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 2 and rows[1]["case"] == "init"
    assert "| init | handles-6 | 0 |" in (tmp_path / "table.md").read_text()


def test_kills_of_an_array_and_of_the_command_that_submitted_it_are_counted_apart():
    def row(trial, what, met):
        return {"part": "slurm", "case": "slurm-array", "trial": trial, "kills": [{"at": 1.0, "what": what, "met": met}],
                "resumes": 1, "problems": []}  # fmt: skip

    found = tables([row(0, "node1", True), row(1, "command", True), row(2, "node2", False)])
    assert "| slurm-array, node | 1 | 1 | 2 | 2 | 0 |" in found and "| slurm-array, command | 1 | 0 | 1 | 1 | 0 |" in found, found


def test_what_a_tuning_tried_besides_is_excused_after_a_fault_alone(training, monkeypatch):
    besides, lost, other = (
        "out/tuning/runs/0123456789ab: (not there) -> there",
        "out/tuning/runs/ba9876543210: there -> (not there)",
        "out/runs/0123456789ab: (not there) -> there",
    )
    monkeypatch.setattr(training, "case", training.case._replace(compare=lambda *_: [besides, lost, other]))
    assert training.differences(pathlib.Path()) == [besides, lost, other]
    assert training.differences(pathlib.Path(), runs_failed=True) == [lost, other]


def test_the_plan_has_all_kills():
    with plan(Settings(pathlib.Path("basin"), pathlib.Path("out"), kills=200)) as jobs:
        counts = {}
        for job in jobs:
            counts[job.part] = counts.get(job.part, 0) + 1
    assert counts["slurm"] == 23 and counts["kills"] == 8 * 5 and counts["cells"] == 1
    with plan(Settings(pathlib.Path("basin"), pathlib.Path("out"), cases=("measure",))) as jobs:
        assert {job.case for job in jobs} == {"measure"}
    skipped = {"part": "slurm", "case": "slurm-array", "trial": 0, "skipped": "not installed", "seconds": 0}
    assert "Not tested, slurm: not installed." in tables([skipped])
