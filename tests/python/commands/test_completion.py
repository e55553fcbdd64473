"""`basin completion`: the script, in the shell that it is for, offers what this build of the program knows."""

import json
import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from basin_program import BASIN, needs_program, output, program

pytestmark = needs_program


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("completion") / "basin.bash"
    path.write_text(output("completion", "bash"))
    return str(path)


def replies(script: str, *words: str) -> list[str]:
    """What bash offers for the last of the words, which are what it makes of a line: "=" is a word of its own."""
    array = " ".join(shlex.quote(word) for word in ("basin", *words))
    typed = f"COMP_WORDS=({array}); COMP_CWORD={len(words)}"
    code = f"set -u; source {shlex.quote(script)}; {typed}; _basin; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "unbound" not in done.stderr, done.stderr
    return done.stdout.split()


def listed(kind: str) -> list[str]:
    return [member["name"] for member in json.loads(output("inspect", "--list", kind, "--json"))["entries"]]


def test_subcommands_are_those_of_help(script):
    help_text = output("--help").split("Subcommands:")[1].split("\nExit codes")[0]
    names = [line.split()[0] for line in help_text.splitlines() if line.startswith("  ") and line[2] != " "]
    assert replies(script, "") == names and "completion" in names and "run-cell" not in names
    assert replies(script, "sw") == ["sweep"]
    assert replies(script, "data", "") == ["describe", "check", "import", "get"]
    assert replies(script, "help", "lan") == ["landscape"]


def test_options_are_those_of_the_subcommand(script):
    for path in (["probe"], ["sweep"], ["data", "describe"], ["landscape"]):
        offered = replies(script, *path, "--")
        help_text = output(*path, "--help")
        assert "--help" in offered and offered and all(option in help_text for option in offered)
        assert all(option in offered for option in ("--json",) if option in help_text)
    assert "--worker" not in replies(script, "landscape", "--")
    assert replies(script, "sweep", "study.toml", "--dry") == ["--dry-run"]


def test_values_are_those_of_the_registries(script):
    assert replies(script, "landscape", "--kind", "") == listed("landscapes")
    assert replies(script, "landscape", "--kind", "=", "pl") == ["plane"]
    assert replies(script, "data", "describe", "") == listed("datasets")
    assert set(replies(script, "data", "get", "")) < set(listed("datasets"))
    assert replies(script, "probe", "RUN", "--only", "") == listed("probes")
    assert replies(script, "probe", "RUN", "--only", "noise_scale,top_e") == ["noise_scale,top_eigenvalues"]
    assert replies(script, "inspect", "--list", "opt") == ["optimizers", "options"]
    assert replies(script, "audit", "FILE", "--dtype", "") == ["float32", "float64"]
    assert replies(script, "completion", "") == ["bash", "zsh"]


@pytest.mark.parametrize("start", [["sweep", "s.toml"], ["train", "s.toml"], ["probe", "RUN"]])
def test_settings_are_the_options_and_their_values(script, start):
    keys = [option["key"] for option in json.loads(output("inspect", "--list", "options", "--json"))["entries"]]
    assert replies(script, *start, "--set", "") == [key + "=" for key in keys]
    assert replies(script, *start, "--set", "lamb.bet") == [key + "=" for key in keys if key.startswith("lamb.bet")]
    assert replies(script, *start, "--set", "optimizer", "=") == listed("optimizers")
    assert replies(script, *start, "--set", "optimizer", "=", "sg") == ["sgd"]
    assert replies(script, *start, "--set", "optimizer=sg") == ["optimizer=sgd"]  # where "=" cuts no words
    assert replies(script, *start, "--set", "sgd.nesterov", "=") == ["true", "false"]
    assert replies(script, *start, "--set", "learning_rate", "=") == []


def test_an_audit_and_a_landscape_have_settings_of_their_own(script):
    audit = replies(script, "audit", "FILE", "--set", "")
    assert "top_eigenvalues.count=" in audit and "batch_size=" not in audit
    landscape = replies(script, "landscape", "--set", "plane.")
    shown = output("landscape", "--kind", "plane", "--print-config")
    assert landscape and all(key.removeprefix("plane.").removesuffix("=") in shown for key in landscape)


def test_files_are_left_to_the_shell(script):
    assert replies(script, "sweep", "") == [] == replies(script, "sweep", "--out", "")
    assert "complete -o default -F _basin basin" in output("completion", "bash")


def test_another_shell_is_told_which_there_are():
    refused = program("completion", "zhs")
    assert refused.returncode == 2 and refused.stdout == ""
    assert 'unknown shell "zhs"; did you mean "zsh"? known: bash, zsh' in refused.stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="NOT CHECKED: there is no zsh on this machine")
def test_zsh_takes_its_script(tmp_path):
    path = tmp_path / "_basin"
    path.write_text(output("completion", "zsh"))
    typed = "emulate sh; COMP_WORDS=(basin sw); COMP_CWORD=1; _basin; echo $COMPREPLY"
    code = f"autoload -U compinit && compinit -u -D; source {path}; {typed}"
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["sweep"], done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh: scripts/setup tests installs it")
@pytest.mark.parametrize("typed, completed", [("basin sw", "basin sweep "), ("basin sweep --dr", "basin sweep --dry-run ")])
def test_zsh_completes_at_the_first_try(tmp_path, typed, completed):
    """As a user has it: a file of fpath, which zsh first reads when Tab is pressed."""
    (tmp_path / "_basin").write_text(output("completion", "zsh"))
    terminal, other = pty.openpty()
    environment = {**os.environ, "PATH": f"{Path(BASIN).parent}:{os.environ['PATH']}", "TERM": "dumb"}
    with subprocess.Popen(["zsh", "-f", "-i"], stdin=other, stdout=other, stderr=other, env=environment) as shell:
        os.close(other)
        os.write(
            terminal, f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; PS1='% '; print READY''NOW\n".encode()
        )
        read_until(terminal, "READYNOW")
        os.write(terminal, f"{typed}\t".encode())
        seen = read_until(terminal, completed)
        shell.kill()
    os.close(terminal)
    assert completed in seen


def read_until(terminal, wanted, seconds=20):
    """What a terminal shows until it has shown `wanted`, or for so many seconds."""
    seen, end = "", time.monotonic() + seconds
    while wanted not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    return seen
