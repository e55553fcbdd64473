"""The tables of a campaign, in Markdown, from its rows."""

from faults import FAULTS

HEADINGS = {
    "kills": "| command | kills | nothing met | resumes | trials | differences |",
    "faults": "| command | fault | exit code | what it said | problems |",
    "cells": "| runs | measure | first quarter | last quarter |",
}


def tables(rows):
    parts = {"kills": [*kill_lines(rows)], "faults": [*fault_lines(rows)], "cells": [*cell_lines(rows)]}
    skipped = sorted({f"Not tested, {row['part']}: {row['skipped']}.\n" for row in rows if "skipped" in row})
    made = ["\n".join([HEADINGS[name], rule(HEADINGS[name]), *lines, ""]) for name, lines in parts.items() if lines]
    return "\n".join([*made, *skipped])


def rule(heading):
    return "|" + "---|" * (heading.count("|") - 1)


def tested(rows, parts):
    return [row for row in rows if row["part"] in parts and "skipped" not in row]


def kill_lines(rows):
    chosen = tested(rows, ("kills", "slurm"))
    for case in dict.fromkeys(map(killed_thing, chosen)):
        trials = [row for row in chosen if killed_thing(row) == case]
        draws = [draw for row in trials for draw in row.get("kills", [])]
        met = sum(draw["met"] for draw in draws)
        resumes = sum(row.get("resumes", 0) for row in trials)
        problems = sum(len(row["problems"]) for row in trials)
        yield f"| {case} | {met} | {len(draws) - met} | {resumes} | {len(trials)} | {problems} |"


def killed_thing(row):
    """The command; of an array apart, whether it was the submitting command or a node."""
    what = {"command" if draw["what"] == "command" else "node" for draw in row.get("kills", []) if "what" in draw}
    return ", ".join([row["case"], *what])


def fault_lines(rows):
    for row in sorted(tested(rows, FAULTS), key=lambda row: (list(FAULTS).index(row["part"]), row["case"])):
        line = row.get("line", "").replace("|", "\\|")
        problems = "; ".join(row["problems"]).replace("|", "\\|").replace("\n", " ")
        yield f"| {row['case']} | {row['part']} | {row.get('code', '')} | {line} | {problems} |"


def cell_lines(rows):
    for row in tested(rows, ("cells",)):
        for measure, first in row.get("first", {}).items():
            yield f"| {row['case']} | {measure} | {first:.4g} | {row['last'].get(measure, float('nan')):.4g} |"
