#!/usr/bin/env python3
"""Campaigns that show that nothing is lost: kills at random moments, machines at fault, thousands of runs (docs/reliability.md).

    BASIN_BINARY=build/release/bin/basin .venv/bin/python tests/faults/campaign.py --out out/faults [--dry-run]

Each trial is a line of OUT/results.jsonl as soon as it has ended, and the same command goes on from there. The first line says
which program it was. OUT/table.md has the tables. The folder of a trial that found something stays in OUT/trials, and the exit
code is then 1.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("python", "scripts", "bench", "tests/cluster", "tests/python/support")]

from faults import FAULTS  # noqa: E402
from plan import PARTS, Settings, plan  # noqa: E402
from table import tables  # noqa: E402


def main():
    arguments = parsed()
    out = arguments.out.resolve()
    binary = pathlib.Path(os.environ.get("BASIN_BINARY", "")).resolve()
    if not arguments.dry_run and not binary.is_file():
        sys.exit("campaign: BASIN_BINARY names no program")
    settings = Settings(
        binary, out, arguments.only, arguments.cases, arguments.kills, arguments.seed, arguments.cells, arguments.cell_seconds
    )
    with plan(settings) as jobs:
        if arguments.dry_run:
            return show(jobs)
        out.mkdir(parents=True, exist_ok=True)
        program = program_row(binary)
        rows = known_rows(out, program)
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            run_all(jobs, rows, out)
        except KeyboardInterrupt:
            print("\ncampaign: interrupted; the same command goes on from here", file=sys.stderr)
            return 130
    return report(program, rows, out)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/faults"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--cases", nargs="+", metavar="COMMAND", help="those of tests/faults/cases.py alone")
    parser.add_argument("--kills", type=int, default=200, help="over all commands that are killed (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--cells", type=int, default=2_000, help="runs of the long sweep (2,000)")
    parser.add_argument("--cell-seconds", type=float, default=1.0, help="and how long each takes (1)")
    parser.add_argument("--dry-run", action="store_true", help="print the trials with their expected time, and end")
    return parser.parse_args()


def show(jobs):
    """A line for each part; of the kills for each command."""
    groups = {}
    for job in jobs:
        groups.setdefault((job.part, "every command" if job.part in FAULTS else job.case), []).append(job)
    for (part, what), members in groups.items():
        minutes = sum(job.seconds for job in members) / 60
        skipped = f"  SKIPPED: {members[0].skipped}" if members[0].skipped else ""
        print(f"{part:14} {what:14} {len(members):3} trials  {minutes:5.1f} min{skipped}")
    print(f"{len(jobs)} trials, about {sum(job.seconds for job in jobs if not job.skipped) / 60:.0f} minutes")
    return 0


def program_row(binary):
    said = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    return {"part": "program", "version": said, "sha256": hashlib.sha256(binary.read_bytes()).hexdigest()}


def known_rows(out, program):
    """What an earlier call with this program has found."""
    results = out / "results.jsonl"
    if not results.exists():
        results.write_text(json.dumps(program) + "\n")
        shutil.rmtree(out / "prepared", ignore_errors=True)
    # A line that a stop cut short is of a trial that is made again.
    whole = [line for line in results.read_text().splitlines(keepends=True) if line.endswith("\n")]
    results.write_text("".join(whole))
    rows = [json.loads(line) for line in whole]
    if rows[:1] != [program]:
        sys.exit(f"campaign: {results} is of another program; choose another --out")
    return rows[1:]


def run_all(jobs, rows, out):
    """Those that have no row yet; each row is on disk before the next job begins."""
    done = {(row["part"], row["case"], row["trial"]) for row in rows if "skipped" not in row}
    left = [job for job in jobs if job.key not in done]
    rows[:] = [row for row in rows if "skipped" not in row]
    began, made, expected = time.monotonic(), 0.0, sum(job.seconds for job in left)
    for number, job in enumerate(left, 1):
        row = job.row(out / "trials")
        rows.append(row)
        with (out / "results.jsonl").open("a") as results:
            results.write(json.dumps(row) + "\n")
        made += job.seconds
        took = time.monotonic() - began
        pace = f"{60 * number / took:.1f} trials/min, {took * (expected - made) / made / 60:.0f} min left"
        print(
            f"[{number}/{len(left)}] {job.part} {job.case} {job.trial}: {in_words(row)}  {row['seconds']} s  ({pace})", flush=True
        )


def in_words(row):
    if "skipped" in row:
        return f"SKIPPED, nothing was tested: {row['skipped']}"
    if row["problems"]:
        return "\n  ".join([f"FAILED, kept in {row['folder']}", *row["problems"]])
    return f"ok, {row['line']}" if row.get("line") else "ok"


def report(program, rows, out):
    text = f"{program['version']}, SHA-256 {program['sha256'][:16]}\n\n{tables(rows)}"
    (out / "table.md").write_text(text)
    failed = [row for row in rows if row.get("problems")]
    skipped = sorted({f"{row['part']}: {row['skipped']}" for row in rows if "skipped" in row})
    print(
        f"{text}\nin {out / 'table.md'}: {len(rows)} trials, {len(failed)} FAILED"
        if failed
        else f"{text}\n{len(rows)} trials, all well"
    )
    print("".join(f"SKIPPED {line}\n" for line in skipped), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
