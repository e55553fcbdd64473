"""Calls by forks of one process (tests/fork_server) end as those of a process from its beginning."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from basin_program import BASIN, fork_server, needs_program, program, surroundings

pytestmark = [
    needs_program,
    pytest.mark.skipif(not os.environ.get("BASIN_FORK_SERVER"), reason="calls are no forks in this build"),
]


@pytest.mark.parametrize("words", [["--version"], ["nonsense"], ["inspect", "/nonexistent"]])
def test_output_and_exit_code_are_those_of_a_process(words, tmp_path):
    alone = subprocess.run([BASIN, *words], env=surroundings(), cwd=tmp_path, capture_output=True, text=True)
    forked = program(*words, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def endless(folder):
    (folder / "study.toml").write_text(
        'model = "mlp"\nprotocol = "A-updates"\nupdates = 100000000\nlearning_rate = 0.1\n[data]\nset = "synthetic"\n'
    )
    return ["train", str(folder / "study.toml"), "--out", str(folder / "out")]


def test_a_call_that_takes_too_long_is_killed_and_the_next_has_its_own_answer(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        program(*endless(tmp_path), timeout=1)
    assert program("nonsense").returncode == 2
    assert program("--version").returncode == 0


def test_a_signal_is_the_return_code(tmp_path):
    found = []
    caller = threading.Thread(target=lambda: found.append(program(*endless(tmp_path))))
    caller.start()
    while not list(tmp_path.glob("out/runs/*/journal")):
        assert caller.is_alive()
        time.sleep(0.01)
    server = fork_server().process.pid
    os.kill(int(Path(f"/proc/{server}/task/{server}/children").read_text()), signal.SIGKILL)
    caller.join()
    assert found[0].returncode == -signal.SIGKILL
