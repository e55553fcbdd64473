"""What is drawn on a terminal and what is left of it where there is none: colour and cursor movements on terminals alone, no colour where
NO_COLOR is set."""

import os
import pty
import re
import select
import subprocess
from pathlib import Path

import pytest

from basin_program import BASIN, needs_program

ROOT = Path(__file__).resolve().parents[3]
pytestmark = needs_program
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
RED, GREEN, YELLOW, PLAIN = b"\x1b[31m", b"\x1b[32m", b"\x1b[33m", b"\x1b[0m"


def arguments(out: Path) -> list[str]:
    return [BASIN, "sweep", str(ROOT / "configs" / "tiny.toml"), "--out", str(out), "--jobs", "1", "--set", "batch_size=128",
            "--set", "optimizer=sgd", "--set", "protocol=A-epochs"]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM", "CLICOLOR_FORCE")}
    return plain | more


def on_terminal(command: list[str], exit_code: int = 0, **more: str) -> bytes:
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
    assert process.wait() == exit_code, written
    return written


def test_a_pipe_gets_plain_lines(tmp_path):
    done = subprocess.run(arguments(tmp_path / "out"), capture_output=True, env=environment(TERM="xterm-256color"))
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr and b"\r" not in done.stdout + done.stderr
    refused = subprocess.run([BASIN, "sweeep"], capture_output=True, env=environment(TERM="xterm-256color"))
    assert refused.returncode == 2 and b"\x1b" not in refused.stderr


def test_a_terminal_gets_lines_redrawn_in_place_and_the_outcome_in_green(tmp_path):
    written = on_terminal(arguments(tmp_path / "out"), TERM="xterm-256color")
    assert b"\x1b[J" in written
    assert set(COLOUR.findall(written)) == {GREEN, PLAIN} and GREEN + b"finished" + PLAIN in written


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["learning_rate=1e8", "epochs=20"], RED + b"diverged" + PLAIN),
        (["protocol=B", "target_loss=1e-6", "max_gradients=64"], YELLOW + b"target_not_reached" + PLAIN),
    ],
)
def test_an_outcome_has_its_colour(tmp_path, sets, said):
    command = [BASIN, "train", str(ROOT / "configs" / "tiny.toml"), "--out", str(tmp_path / "out")]
    command += [word for one in ["protocol=A-epochs", *sets] for word in ("--set", one)]
    assert said in on_terminal(command, TERM="xterm-256color")
    assert not COLOUR.search(on_terminal([*command, "--set", "seed=2"], TERM="xterm-256color", NO_COLOR="1"))


def test_errors_are_red_and_warnings_yellow(tmp_path):
    assert RED + b"basin:" + PLAIN in on_terminal([BASIN, "sweeep"], 2, TERM="xterm-256color")
    command = [BASIN, "sweep", str(ROOT / "configs" / "tiny.toml"), "--dry-run", "--out", str(tmp_path / "out")]
    assert YELLOW + b"warning:" + PLAIN in on_terminal(command, TERM="xterm-256color")
    piped = subprocess.run(command, capture_output=True, env=environment(TERM="xterm-256color"))
    assert b"warning:" in piped.stderr and b"\x1b" not in piped.stdout + piped.stderr


def test_no_color_holds_on_a_terminal(tmp_path):
    written = on_terminal(arguments(tmp_path / "out"), TERM="xterm-256color", NO_COLOR="1")
    assert b"\x1b[J" in written and not COLOUR.search(written)
    assert not COLOUR.search(on_terminal([BASIN, "sweeep"], 2, TERM="xterm-256color", NO_COLOR="1"))


@pytest.mark.parametrize("term", [{"TERM": "dumb"}, {}])
def test_a_terminal_that_can_redraw_nothing_gets_plain_lines(tmp_path, term):
    assert b"\x1b" not in on_terminal(arguments(tmp_path / "out"), **term)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="SKIPPED: no /dev/full on this system")
@pytest.mark.parametrize(
    "command",
    [["help"], ["completion", "zsh"], ["sweep", str(ROOT / "configs" / "tiny.toml"), "--dry-run"]],
    ids=["short", "longer than a buffer", "with a warning"],
)
def test_output_that_cannot_be_written_is_no_success(command, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BASIN, *command], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, env=environment())
    assert done.returncode == 4 and b"warning" not in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1] == b"basin: cannot write standard output: No space left on device"


def test_a_closed_output_is_no_fault(tmp_path):
    closed = subprocess.run(
        ["bash", "-c", '"$@" >&-', "-", *arguments(tmp_path / "closed")], stderr=subprocess.PIPE, env=environment()
    )
    assert closed.returncode == 0, closed.stderr
    assert subprocess.run(arguments(tmp_path / "open"), capture_output=True, env=environment()).returncode == 0
    files = [sorted(str(p.relative_to(tmp_path / name)) for p in (tmp_path / name).rglob("*")) for name in ("closed", "open")]
    assert files[0] == files[1]


def test_a_reader_that_leaves_is_no_fault():
    done = subprocess.run(
        ["bash", "-c", '"$1" help sweep | head -1; exit "${PIPESTATUS[0]}"', "-", BASIN], capture_output=True, env=environment()
    )
    assert done.returncode in (0, 141) and done.stdout.count(b"\n") == 1 and done.stderr == b""
