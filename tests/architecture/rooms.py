"""Holds the sources to the plan: rooms point one way, headers stay cheap, files stay short.

    rooms.py [ROOT]        prints each violation as file:line: what, and exits with 1 if there is one
    rooms.py --self-test   plants one violation of each kind in a temporary tree and expects it to be found
"""
import pathlib
import re
import sys
import tempfile

import python_rooms

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = {"core"}
MIDDLE = {"core", "io", "data", "models", "optim"}
MAY_INCLUDE = {
    "core": BASE,
    "io": BASE | {"io"},
    "data": BASE | {"data"},
    "models": BASE | {"models"},
    "optim": BASE | {"optim"},
    "hessian": MIDDLE | {"hessian"},
    "landscape": MIDDLE | {"hessian", "landscape"},
    "probes": MIDDLE | {"hessian", "landscape", "probes"},
    "trainers": MIDDLE | {"trainers"},
    "apps": MIDDLE | {"hessian", "landscape", "probes", "trainers", "apps"},
}
LONGEST_FILE = 500
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
# Headers that cost half a minute of compile time each, or drag one of those in.
DEAR_IN_HEADERS = re.compile(r"torch/(torch|types|all|nn|data|optim)\.h|ATen/ATen\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def violations_in_source(path: pathlib.Path, room: str):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, target = match.groups()
        included = target.split("/")[0]
        if included in MAY_INCLUDE and bracket == '"' and included not in MAY_INCLUDE[room]:
            yield number, f"{room} must not include {target}: {included} stands above it or beside it"
        if path.suffix == ".h" and path.name != "precompiled.h" and DEAR_IN_HEADERS.search(target):
            yield number, f"a header must not include {target}: include ATen/core/Tensor.h or declare forward"
        if target == "torch/torch.h":
            yield number, "torch/torch.h costs half a minute a file: include what is used"


def violations(root: pathlib.Path):
    for room in MAY_INCLUDE:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in SOURCES:
                yield from ((path, number, what) for number, what in violations_in_source(path, room))
    for folder in [*MAY_INCLUDE, "tests", "notebooks", "python", "bench", "cmake", "scripts"]:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SOURCES | {".py", ".cmake"}:
                count = len(path.read_text().splitlines())
                if count > LONGEST_FILE:
                    yield path, count, f"{count} lines; a file has one idea and at most {LONGEST_FILE}"
    yield from python_rooms.python_violations(root)


def report(root: pathlib.Path) -> int:
    found = list(dict.fromkeys(violations(root)))
    for path, number, what in found:
        print(f"{path.relative_to(root)}:{number}: {what}")
    checked = sum(1 for room in MAY_INCLUDE for path in (root / room).rglob("*") if path.suffix in SOURCES)
    print(f"{checked} sources in {len(MAY_INCLUDE)} rooms, {len(found)} violations")
    return 1 if found or checked == 0 else 0


def self_test() -> int:
    planted = {
        "core/upward.cpp": '#include "io/h5.h"\n',
        "models/sideways.cpp": '#include "data/dataset.h"\n',
        "hessian/upward.h": '#include "probes/probe.h"\n',
        "probes/trainer.cpp": '#include "trainers/trainer.h"\n',
        "optim/dear.h": "#include <torch/torch.h>\n",
        "data/dear.h": "#include <ATen/ATen.h>\n",
        "apps/dear.cpp": "#include <torch/torch.h>\n",
        "io/long.cpp": "\n" * (LONGEST_FILE + 1),
    }
    clean = {"trainers/fine.cpp": '#include "optim/sgd.h"\n#include <ATen/ATen.h>\n', "probes/fine.h": '#include "hessian/o.h"\n'}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**planted, **clean}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = {str(path.relative_to(root)) for path, _, _ in violations(root)}
    for name in sorted(set(planted) ^ found):
        print(f"{name}: {'not found' if name in planted else 'found, but nothing is wrong with it'}")
    return 0 if found == set(planted) else 1


if __name__ == "__main__":
    if "--self-test" in sys.argv[1:]:
        sys.exit(self_test() or python_rooms.self_test())
    sys.exit(report(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
