"""SIGKILL to a command and all of its workers at random moments, and whether what comes of it in the end is the same."""

import random
import shutil

IN_A_ROW = 5  # kills of a trial
DRAWS = 4  # moments for each kill at most: a resumed call has less to do, and may have ended


def trial(prepared, folder, seed, kills=IN_A_ROW):
    """One row: a command that is killed and started again `kills` times, then left alone, and what differs from the undisturbed one.

    The moments are uniform over the duration of the undisturbed call. Where a call ends before its moment, its results are compared,
    and the next one begins from the inputs.
    """
    moments, drawn, problems = random.Random(seed), [], []
    begin(prepared, folder)
    while sum(draw["met"] for draw in drawn) < kills and len(drawn) < DRAWS * kills and not problems:
        call, at = prepared.call(folder), moments.uniform(0, prepared.seconds)
        met = call.kill_after(at)
        drawn.append({"at": round(at, 3), "met": met})
        if not met:
            problems += problems_of(prepared, folder, call.wait())
            if not problems:
                begin(prepared, folder)
    if not problems:
        problems = problems_of(prepared, folder, prepared.call(folder).wait())
    return {"kills": drawn, "resumes": sum(draw["met"] for draw in drawn), "problems": problems}


def begin(prepared, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared.inputs, folder)


def problems_of(prepared, folder, ended):
    """What went wrong with a call that nobody killed, a line each. A result that was whole before the kill is not made again."""
    said = ended.code != 0 and prepared.case.kept not in ended.last_line
    return [f"it ended with {ended.code}: {ended.last_line}"] * said + prepared.differences(folder)
