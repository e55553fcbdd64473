"""The Python package and the notebooks name no registered optimiser, model, data set or probe: they learn names, labels, order and what
is shown from the files or from the program. Pages about one study may name what it is of."""

import ast
import json
import re
from pathlib import Path

import pytest

from basin_program import BASIN, output

ROOT = Path(__file__).resolve().parents[3]
ROOMS = {"optimizers": "optim", "models": "models", "datasets": "data", "probes": "probes"}  # by the name of the list
SOURCES = sorted(path for room in ("python/basin", "notebooks") for path in (ROOT / room).rglob("*.py"))

# The names that each file may have, and why.
MAY_NAME = {
    "python/basin/analysis/noisy_quadratic.py": ({"noisy_quadratic", "coin_flips", "sgd"}, "the closed form is of this model alone"),
    "python/basin/analysis/stability_limit.py": ({"top_eigenvalues"}, "one study: the edge of stability, seen in λ₁"),
    "python/basin/pages/edge.py": ({"top_eigenvalues"}, "the page of that study"),
    "python/basin/pages/keskar.py": (
        {"sharpness_keskar", "top_eigenvalues", "batch_sharpness", "weight_norms"},
        "one study: Keskar et al.'s tables",
    ),
    "python/basin/analysis/updates_to_target.py": ({"lbfgs"}, "its overlap makes gradients that no option of a tuning counts"),
    "python/basin/reader/program.py": ({"torchscript"}, "its file's option, where no program says which are outside of identity"),
    "python/basin/reader/run.py": ({"noise_scale", "ledger"}, "the tables of these names in run.h5, which are no probe's"),
    "python/basin/figures/ledger.py": ({"ledger"}, "the figure of that probe alone"),
    "python/basin/figures/ledger_on_the_way.py": ({"ledger"}, "the table of that name in run.h5, which is no probe's"),
    "python/basin/pages/study_page.py": ({"ledger"}, "the file name of that figure"),
    "python/basin/analysis/ledger_score.py": ({"ledger"}, "the score of that probe's noise over gradient"),
    "python/basin/pages/ledger.py": ({"ledger"}, "the page of that score"),
    "python/basin/analysis/mediators.py": (
        {"top_eigenvalues", "sharpness_keskar", "batch_sharpness", "weight_norms"},
        "the quantities that published explanations run through; others would be other hypotheses",
    ),
    "notebooks/optuna_search.py": ({"sgd"}, "an example of settings, as a study has them"),
}  # fmt: skip


def registered() -> set[str]:
    """By the program; without one by the lines of the registries, in which a name's hyphen is an underscore."""
    if not BASIN:
        lines = "".join((ROOT / room / "registry.cpp").read_text() for room in ROOMS.values())
        found = re.findall(r"^  entry\((\w+)\)", lines, flags=re.M)
        return {*found, *(name.replace("_", "-") for name in found)}
    said = [output("inspect", "--list", kind, "--json") for kind in ROOMS]
    return {member["name"] for text in said for member in json.loads(text)["entries"]}


def literals(source: str):
    """Texts of a module but its docstrings, those within f-strings too."""
    tree = ast.parse(source)
    owners = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body]
    docstrings = {id(node.body[0].value) for node in owners if isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def named_in(source: str, names: set[str]) -> set[str]:
    """A name that is an English word (`curvature`) counts where it is the whole text or a part of a dotted one."""
    found = set()
    for text in literals(source):
        parts = set(text.split("."))
        words = {word for word in re.findall(r"[\w-]+", text) if not word.isalpha()}
        found |= names & (parts | words)
    return found


@pytest.fixture(scope="module")
def names():
    found = registered()
    assert {"sgd", "mlp", "cifar10-5k", "top_eigenvalues"} <= found
    return found


def test_no_list_of_names_stands_in_python(names):
    told = {}
    for path in SOURCES:
        file = str(path.relative_to(ROOT))
        may, _ = MAY_NAME.get(file, (set(), ""))
        told[file] = named_in(path.read_text(), names) - may
    assert {file: found for file, found in told.items() if found} == {}


def test_every_exception_is_one(names):
    assert [file for file, (may, _) in MAY_NAME.items() if named_in((ROOT / file).read_text(), names) != may] == []


def test_names_are_found_where_they_hide(names):
    source = (
        '"""sgd"""\nA = {"lars": 1}\nB = f"probe.{A}.noise_scale.g2"\nC = "no top_eigenvalues here"\nD = "a curvature of lamb"\n'
    )
    assert named_in(source, names) == {"lars", "noise_scale", "top_eigenvalues"}
