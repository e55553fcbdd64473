"""One version: project() of CMakeLists.txt. What derives from it does, and what has to repeat it equals it."""

import os
import re
import subprocess
import tomllib

import pytest

from documents import ROOT

BINARY = os.environ.get("BASIN_BINARY")
# Not the expression of the packages: a white space or a fourth number there must not go unseen here.
VERSION = re.search(r"^project\(\s*basin\s+VERSION\s+(\S+)", (ROOT / "CMakeLists.txt").read_text(), flags=re.M)[1]
RELEASE = re.search(r"^## \[(\d\S*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)


def test_it_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


@pytest.mark.parametrize("folder", ["python", "python/engine"])
def test_packages_derive_it(folder):
    """By the provider that they name, run by hand: a wheel is built by `make wheel` alone."""
    package = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    assert "version" in package["project"]["dynamic"] and "version" not in package["project"]
    (provider,) = [entry for entry in package["tool"]["dynamic-metadata"] if entry["field"] == "version"]
    source = (ROOT / folder / provider["input"]).resolve()
    assert source == ROOT / "CMakeLists.txt"
    assert re.search(provider["regex"], source.read_text())["value"] == VERSION


@pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")
def test_the_program_prints_it():
    printed = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed.split()[:2] == ["basin", VERSION]


def test_the_citation_and_the_changelog_equal_it():
    """The last release in the changelog is this one, or a later version is being worked on and nothing is released yet."""
    citation = dict(re.findall(r"^(version|date-released): (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.M))
    assert citation == {"version": VERSION, "date-released": RELEASE[2]} and RELEASE[1] == VERSION


def test_new_lines_of_the_changelog_have_a_place():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert headings[:2] == ["[Unreleased]", f"[{VERSION}]"]


def test_no_other_file_has_a_version_of_its_own():
    """`version = "1.2.3"` and `__version__ = ...` in the package, the recipes and the set-up."""
    looked_at = [*ROOT.glob("python/basin/**/*.py"), *ROOT.glob("python/engine/**/*.py"), *ROOT.glob("scripts/containers/*")]
    looked_at += [ROOT / "pyproject.toml", ROOT / "scripts/setup", ROOT / "scripts/try_wheels"]
    own = re.compile(r"(?i)\b(?:__version__|basin_version|version)\s*[=:]\s*[\"']?\d+\.\d+\.\d+")
    assert [str(path) for path in looked_at if own.search(path.read_text())] == []
