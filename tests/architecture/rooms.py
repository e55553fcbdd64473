"""Holds the sources to the plan: the table of rooms in CONTRIBUTING.md.

rooms.py [ROOT]        prints each violation as file:line: what, and exits with 1 if there is one
rooms.py --rooms       prints the rooms, one per line, in the table's order
rooms.py --self-test   plants one violation of each kind in a temporary tree and expects it to be found
"""

import pathlib
import re
import sys
import tempfile

import python_rooms

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST_FILE = 500
MOST_PAIRS = 25  # header/source pairs in a folder
MOST_TESTS = 30  # files in a folder of tests
MOST_FOLDERS = 23  # at the top
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
NOT_OURS = re.compile(r"\..*|build.*|install.*|out|datasets|__pycache__")  # as .gitignore has it
# Headers that cost half a minute of compile time each, or include one of those.
EXPENSIVE_IN_HEADERS = re.compile(r"torch/(torch|types|all|nn|data|optim)\.h|ATen/ATen\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ROW = re.compile(r"^\| `([a-z/]+)` \|[^|]*\|([^|]*)\|$")


def table_of_rooms(root: pathlib.Path) -> dict[str, list[str]]:
    """What each room of CONTRIBUTING.md's table uses directly, in the table's order."""
    rows = map(ROW.match, (root / "CONTRIBUTING.md").read_text().splitlines())
    return {row[1]: re.findall(r"`([a-z/]+)`", row[2]) for row in rows if row}


def may_include(table: dict[str, list[str]]) -> dict[str, set[str]]:
    """For each room itself, what it uses, and what that uses. A room may use only rooms above it in the table."""
    allowed: dict[str, set[str]] = {}
    for room, used in table.items():
        allowed[room] = {room}.union(*(allowed[below] for below in used if below in allowed))
    return allowed


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def sources(root: pathlib.Path, room: str) -> list[pathlib.Path]:
    return sorted(path for path in (root / room).glob("*") if path.suffix in SOURCES)


def in_table(root: pathlib.Path, table: dict[str, list[str]]):
    contributing = root / "CONTRIBUTING.md"
    before: set[str] = set()
    for room, used in table.items():
        if not (root / room).is_dir():
            yield contributing, 1, f"room {room} has no folder"
        for below in used:
            if below not in before:
                yield contributing, 1, f"room {room} uses {below}, which doesn't stand before it in the table"
        before.add(room)
    for top in sorted({room.split("/")[0] for room in table} | folders_at_the_top(root) - {"tests", "bench"}):
        for path in sorted((root / top).rglob("*")):
            room = str(path.parent.relative_to(root))
            if path.suffix in SOURCES and room not in table:
                yield path, 1, f"folder {room} is no room of CONTRIBUTING.md's table"
                break


def in_source(path: pathlib.Path, room: str, allowed: dict[str, set[str]]):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, target = match.groups()
        included = folder_of(target)
        if bracket == '"' and included in allowed and included not in allowed[room]:
            yield path, number, f"{room} must not include {target}: {included} doesn't stand below it"
        if path.suffix == ".h" and path.name != "precompiled.h" and EXPENSIVE_IN_HEADERS.search(target):
            yield path, number, f"a header must not include {target}: include ATen/core/Tensor.h or declare forward"
        if target == "torch/torch.h":
            yield path, number, "torch/torch.h costs half a minute per file: include what is used"


def in_includes(root: pathlib.Path):
    """What isn't named from the root would escape every check of arrows."""
    for top in sorted(folders_at_the_top(root)):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if match and match[1] == '"' and (match[2].startswith(".") or "/" not in match[2]):
                    yield path, number, f"{match[2]} is no path from the root"


def includes_by_pair(root: pathlib.Path, table: dict[str, list[str]]) -> dict[str, set[str]]:
    """A header and its source are one: path without suffix -> what it includes of ours, likewise."""
    graph: dict[str, set[str]] = {}
    for room in table:
        for path in sources(root, room):
            name = f"{room}/{path.stem}"
            found = (INCLUDE.match(line) for line in path.read_text().splitlines())
            targets = {match[2].rpartition(".")[0] for match in found if match and match[1] == '"'}
            graph.setdefault(name, set()).update(targets - {name})
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """One cycle of each strongly connected part: what leads back to where a depth-first walk stands."""
    state: dict[str, int] = {}  # 1: on the way, 2: done
    found: list[list[str]] = []

    def walk(node: str, way: list[str]) -> None:
        state[node] = 1
        for target in sorted(graph.get(node, ())):
            if state.get(target) == 1:
                found.append([*way[way.index(target) :], target])
            elif target not in state:
                walk(target, [*way, target])
        state[node] = 2

    for node in sorted(graph):
        if node not in state:
            walk(node, [node])
    return found


def in_cycles(root: pathlib.Path, table: dict[str, list[str]]):
    for cycle in cycles(includes_by_pair(root, table)):
        yield root / f"{cycle[0]}.h", 1, "a cycle of files: " + " -> ".join(cycle)


def in_sizes(root: pathlib.Path, table: dict[str, list[str]]):
    for room in table:
        pairs = {path.stem for path in sources(root, room)}
        if len(pairs) > MOST_PAIRS:
            yield root / room, len(pairs), f"{len(pairs)} header/source pairs in a folder; {MOST_PAIRS} can be looked over"
    for folder in sorted(path for path in [root / "tests", *(root / "tests").rglob("*")] if path.is_dir()):
        count = sum(path.suffix in SOURCES | {".py"} for path in folder.iterdir())
        if count > MOST_TESTS:
            yield folder, count, f"{count} files in a folder of tests, at most {MOST_TESTS}"
    top = folders_at_the_top(root)
    if len(top) > MOST_FOLDERS:
        yield root, len(top), f"{len(top)} folders at the top, at most {MOST_FOLDERS}"


def folders_at_the_top(root: pathlib.Path) -> set[str]:
    return {path.name for path in root.iterdir() if path.is_dir() and not NOT_OURS.fullmatch(path.name)}


def in_lengths(root: pathlib.Path):
    for top in sorted(folders_at_the_top(root)):
        for path in sorted((root / top).rglob("*")):
            if path.is_file() and path.suffix in SOURCES | {".py", ".cmake"}:
                count = len(path.read_text().splitlines())
                if count > LONGEST_FILE:
                    yield path, count, f"{count} lines; a file has one idea and at most {LONGEST_FILE}"


def violations(root: pathlib.Path):
    table = table_of_rooms(root)
    allowed = may_include(table)
    yield from in_table(root, table)
    for room in table:
        for path in sources(root, room):
            yield from in_source(path, room, allowed)
    yield from in_includes(root)
    yield from in_cycles(root, table)
    yield from in_sizes(root, table)
    yield from in_lengths(root)
    yield from python_rooms.python_violations(root)


def report(root: pathlib.Path) -> int:
    found = list(dict.fromkeys(violations(root)))
    for path, number, what in found:
        print(f"{path.relative_to(root)}:{number}: {what}")
    table = table_of_rooms(root)
    checked = sum(len(sources(root, room)) for room in table)
    print(f"{checked} sources in {len(table)} rooms, {len(found)} violations")
    return 1 if found or checked == 0 else 0


SELF_TEST_TABLE = """
| `core` | what everything needs | |
| `io` | files | `core` |
| `models` | networks | `core` |
| `models/big` | large ones | `models` |
| `upside` | a row above what it uses | `apps` |
| `gone` | a row without a folder | `core` |
| `apps` | the command line | `models/big` `io` |
"""


def self_test() -> int:
    planted = {
        "core/upward.cpp": '#include "io/h5.h"\n',
        "models/sideways.cpp": '#include "io/h5.h"\n',
        "models/into_sub_room.h": '#include "models/big/net.h"\n',
        "io/expensive.h": "#include <torch/torch.h>\n",
        "models/expensive.h": "#include <ATen/ATen.h>\n",
        "apps/expensive.cpp": "#include <torch/torch.h>\n",
        "io/long.cpp": "\n" * (LONGEST_FILE + 1),
        "apps/a.h": '#include "apps/b.h"\n',
        "tests/io/relative_test.cpp": '#include "../support/files.h"\n',
        "models/big/sibling.cpp": '#include "net.h"\n',
        "models/small/net.h": "",  # in no table
        "attic/old.cpp": "",
    }
    clean = {
        "CONTRIBUTING.md": SELF_TEST_TABLE,
        "apps/fine.cpp": '#include "core/error.h"\n#include "models/big/net.h"\n#include <ATen/ATen.h>\n',
        "apps/b.cpp": '#include "apps/b.h"\n#include "apps/a.h"\n',
        "apps/b.h": "",
        "models/big/net.h": '#include "models/model.h"\n',
        "upside/fine.cpp": "",
        "build-old/core/upward.cpp": '#include "io/h5.h"\n',
        **{f"core/pair{i}.{suffix}": "" for i in range(MOST_PAIRS) for suffix in ("h", "cpp")},
        **{f"tests/core/t{i}.cpp": "" for i in range(MOST_TESTS + 1)},
        **{f"folder{i}/README.md": "" for i in range(MOST_FOLDERS)},
    }
    expected = {
        *planted,
        "CONTRIBUTING.md: room gone has no folder",
        "CONTRIBUTING.md: room upside uses apps",
        "core: pairs",
        "tests/core: files",
        ".: folders",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**planted, **clean}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = set()
        for path, _, what in violations(root):
            name = str(path.relative_to(root))
            word = {"core": "pairs", "tests/core": "files", ".": "folders"}.get(name) or what.split(",")[0]
            found.add(name if name in planted else f"{name}: {word}")
    for name in sorted(expected ^ found):
        print(f"{name}: {'not found' if name in expected else 'found, but nothing is wrong with it'}")
    return 0 if found == expected else 1


def main(arguments: list[str]) -> int:
    if "--self-test" in arguments:
        return max(self_test(), python_rooms.self_test())
    if "--rooms" in arguments:
        print("\n".join(table_of_rooms(ROOT)))
        return 0
    return report(pathlib.Path(arguments[0]) if arguments else ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
