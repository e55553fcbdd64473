"""Line coverage of the rooms after `make coverage` ran the tests: one line per room, the total, exit code 1 below the wanted share.

coverage.py BUILD --at-least 85
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/architecture"))
import rooms  # noqa: E402

ROOMS = list(dict.fromkeys(room.split("/")[0] for room in rooms.table_of_rooms(ROOT)))


def gcovr(build: pathlib.Path, root: pathlib.Path) -> dict:
    report = build / "coverage.json"
    filters = [argument for room in ROOMS for argument in ("--filter", f"{room}/")]
    command = [
        sys.executable,
        "-m",
        "gcovr",
        "--root",
        root,
        "--json-summary",
        report,
        *filters,
        "--gcov-ignore-parse-errors=negative_hits.warn",
        "--gcov-suspicious-hits-threshold=0",
        "-j",
        "2",
        build,
    ]
    subprocess.run([str(part) for part in command], check=True, cwd=root)
    return json.loads(report.read_text())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--at-least", type=float, default=85.0, help="wanted share of lines in percent")
    args = parser.parse_args()

    lines = {room: [0, 0] for room in ROOMS}
    for file in gcovr(args.build.resolve(), ROOT)["files"]:
        room = lines.get(file["filename"].split("/")[0])
        if room is not None:
            room[0] += file["line_covered"]
            room[1] += file["line_total"]
    covered, total = (sum(column) for column in zip(*lines.values()))
    if total == 0:
        print("no coverage data found: were the tests run?", file=sys.stderr)
        return 1
    for room, (hit, count) in lines.items():
        if count:
            print(f"{room:10s} {100 * hit / count:5.1f} %  {hit:5d} of {count:5d} lines")
    share = 100 * covered / total
    print(f"{'total':10s} {share:5.1f} %  {covered:5d} of {total:5d} lines (wanted: {args.at_least:g} %)")
    return 0 if share >= args.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
