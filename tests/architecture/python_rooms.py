"""Holds the Python package to its line, reader <- analysis <- figures <- pages; rooms.py calls it.

A module of a room imports from its own room and from those before it. Modules right in basin/ are doors: they may import
from every room, and no room imports them, nor the package itself. Imports within functions count as all others do.
"""

import ast
import pathlib
import tempfile

PACKAGE = "python/basin"
LINE = ["reader", "analysis", "figures", "pages"]
DOOR = len(LINE)  # where a module right in basin/ stands


def python_violations(root: pathlib.Path):
    """(path, line, what) of each import against the line, and of one import of each cycle of modules."""
    modules = {module_name(root, path): path for path in sorted((root / PACKAGE).rglob("*.py"))}
    graph = {name: imports(name, path, modules) for name, path in modules.items()}
    for name, path in modules.items():
        if stands_at(name) is None:
            yield path, 1, f"{name} is in no room of the package: {', '.join(LINE)}"
            continue
        for target, number in graph[name].items():
            there = stands_at(target)
            if there is not None and there > stands_at(name):
                yield path, number, f"{name} must not import {target}: it stands above it"
    for cycle in python_cycles(graph):
        yield modules[cycle[0]], graph[cycle[0]][cycle[1]], "a cycle of modules: " + " -> ".join(cycle)


def module_name(root: pathlib.Path, path: pathlib.Path) -> str:
    parts = path.relative_to(root / PACKAGE).with_suffix("").parts
    return ".".join(["basin", *parts]).removesuffix(".__init__")


def stands_at(module: str) -> int | None:
    """Its place in the line; None for a folder that is no room."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in LINE:
        return LINE.index(parts[1])
    return DOOR if len(parts) < 3 else None


def imports(name: str, path: pathlib.Path, modules: dict[str, pathlib.Path]) -> dict[str, int]:
    """The package's modules that `name` imports, each with the line that does it first."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            targets = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names]
        else:
            continue
        for target in targets:
            if target in modules and target != name:
                found[target] = min(node.lineno, found.get(target, node.lineno))
    return found


def python_cycles(graph: dict[str, dict[str, int]]) -> list[list[str]]:
    """What leads back to where a depth-first walk stands, one way per round."""
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(node: str, way: list[str]) -> None:
        for target in sorted(graph[node]):
            if target in way:
                found.append([*way[way.index(target) :], target])
            elif target not in done:
                walk(target, [*way, target])
        done.add(node)

    for node in sorted(graph):
        if node not in done:
            walk(node, [node])
    return found


def self_test() -> int:
    planted = {
        "reader/upward.py": "from ..analysis import stats\n",
        "analysis/upward.py": "from ..figures.style import grey\n",
        "figures/later.py": "def draw():\n    from ..pages import text\n",
        "figures/by_its_name.py": "import basin.pages.text\n",
        "pages/through_the_door.py": "from basin import load_run\n",
        "pages/a_door.py": "from ..report import main\n",
        "analysis/one.py": "from .two import b\n",  # in a cycle with two
        "attic/old.py": "",
    }
    clean = {
        "__init__.py": "from .reader.run import load_run\nfrom .training import train\n",
        "training.py": "from .reader import run\n",
        "report.py": "from .pages.text import main\n",
        "reader/run.py": "import json\nfrom .schema import text\n",
        "reader/schema.py": "import h5py\n",
        "analysis/stats.py": "from ..reader import run, schema\n",
        "analysis/two.py": "import numpy\nfrom . import one, stats\n",
        "figures/style.py": "from ..analysis.stats import mean\n",
        "pages/text.py": "from basin.reader.run import load_run\nfrom ..figures import style\n",
        **{f"{room}/__init__.py": "" for room in LINE},
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**planted, **clean}.items():
            path = root / PACKAGE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = {str(path.relative_to(root / PACKAGE)) for path, _, _ in python_violations(root)}
    for name in sorted(set(planted) ^ found):
        print(f"{PACKAGE}/{name}: {'not found' if name in planted else 'found, but nothing is wrong with it'}")
    return 0 if found == set(planted) else 1
