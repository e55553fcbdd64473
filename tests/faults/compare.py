"""Whether two folders hold the same results: every bit but times, by the comparison that refactorings are checked with."""

import h5py
import numpy as np

from same_numbers import MAY_DIFFER
from tree_difference import compare_trees, matches

# What a stop may leave or change in addition. Everything else that differs is a difference.
AFTER_A_STOP = {
    "*@rank_wait_share": "a share of wall time",
    "*/rank_wait_share": "the same",
    "*.h5:/provenance@host": "a part may run on another machine",
    "*/status.json:host": "the same",
    "*/slurm": "scripts and logs of jobs",
    "*/claims": "of parts that several processes make",
    "*/common.lock": "the same",
    "*/lock": "the process that had it when it was killed",
}
TIME_IN_TEXT = "created_utc = "


def differences(reference, found, may_differ=()):
    """A line for each address that differs."""
    tally = compare_trees(reference, found, [*MAY_DIFFER, *AFTER_A_STOP, *may_differ])
    changes = [change for change in tally.changes if not matches(change.address, AFTER_A_STOP) and not is_meant(change)]
    if tally.files == 0:
        return ["nothing was compared"]
    return [change.lines[0] for change in changes]


def is_meant(change):
    """Whether all that differs in a text is when it was made."""
    return change.count == sum(TIME_IN_TEXT in line for line in change.lines)


def is_of_another_trial(line):
    """A tuning doesn't choose a trial that failed for want of something: another went on, and stays once nothing fails."""
    return line.startswith("out/tuning/") and line.endswith("(not there) -> there")


def other_shapes(reference, found):
    """Files, names, types and shapes alone, for results that are times."""
    return differences(reference, found, ["*"])


def unlike_arrivals(workers, bound, updates):
    """The comparison of a run whose order of arrivals is chance: what its record must say whatever the order was."""

    def compare(reference, found):
        from basin import load_run  # takes seconds, which no other comparison needs

        found_differences = [line for line in other_shapes(reference, found) if "/log/" not in line]
        (folder,) = (found / "out/runs").iterdir()
        load_run(folder)  # whole, by its seal
        with h5py.File(folder / "run.h5") as file:
            return found_differences + broken_rules(file["train"], workers, bound, updates)

    return compare


def broken_rules(train, workers, bound, updates):
    """No update is lost or counted twice, no batch made two of them, and nobody was further ahead than the bound allows."""
    column = {name: train[name][()] for name in ("update", "worker", "worker_batch", "staleness", "worker_lead")}
    rules = {
        "updates are not 1, 2, ... each once": np.array_equal(column["update"], np.arange(1, updates + 1)),
        "a batch made two updates": len(np.unique(column["worker_batch"])) == updates,
        "a worker that there is not": np.isin(column["worker"], np.arange(workers)).all(),
        "staleness beyond its bound": (column["staleness"] <= (workers - 1) * (2 * bound + 1)).all(),
        "a lead beyond its bound": (column["worker_lead"] <= bound + 1).all(),
    }
    return [f"run.h5:/train: {words}" for words, kept in rules.items() if not kept]
