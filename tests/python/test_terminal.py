"""What is drawn on a terminal and what is left of it where there is none: no colour anywhere, cursor movements on terminals alone."""

import os
import pty
import re
import select
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASIN = os.environ.get("BASIN_BINARY")
pytestmark = pytest.mark.skipif(not BASIN, reason="BASIN_BINARY names the program under test")
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def arguments(out: Path) -> list[str]:
    return [BASIN, "sweep", str(ROOT / "configs" / "tiny.toml"), "--out", str(out), "--jobs", "1", "--set", "batch_size=128",
            "--set", "optimizer=sgd", "--set", "protocol=A-epochs"]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM", "CLICOLOR_FORCE")}
    return plain | more


def on_terminal(command: list[str], **more: str) -> bytes:
    """What a program writes whose stdin, stdout and stderr are a terminal."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**more), close_fds=True)
    os.close(theirs)
    written = b""
    while True:
        ready, _, _ = select.select([mine], [], [], 120)
        assert ready, "nothing for two minutes"
        try:
            piece = os.read(mine, 65536)
        except OSError:  # EIO: the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(mine)
    assert process.wait() == 0, written
    return written


def test_a_pipe_gets_plain_lines(tmp_path):
    done = subprocess.run(arguments(tmp_path / "out"), capture_output=True, env=environment(TERM="xterm-256color"))
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr and b"\r" not in done.stdout + done.stderr
    refused = subprocess.run([BASIN, "sweeep"], capture_output=True, env=environment(TERM="xterm-256color"))
    assert refused.returncode == 2 and b"\x1b" not in refused.stderr


def test_a_terminal_gets_lines_redrawn_in_place_without_colour(tmp_path):
    written = on_terminal(arguments(tmp_path / "out"), TERM="xterm-256color")
    assert b"\x1b[" in written and not COLOUR.search(written)


def test_no_color_holds_on_a_terminal(tmp_path):
    assert not COLOUR.search(on_terminal(arguments(tmp_path / "out"), TERM="xterm-256color", NO_COLOR="1"))


@pytest.mark.parametrize("term", [{"TERM": "dumb"}, {}])
def test_a_terminal_that_can_redraw_nothing_gets_plain_lines(tmp_path, term):
    assert b"\x1b" not in on_terminal(arguments(tmp_path / "out"), **term)
