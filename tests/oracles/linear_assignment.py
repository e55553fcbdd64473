"""A golden assignment problem of 20 x 20, solved by scipy.

    linear_assignment.py            compares tests/landscape/golden_assignment.h with what this program computes
    linear_assignment.py --write    writes that file

The scores are the sine numbers of tests/support/analytic_models.h, 20 x 20, to be maximised.
"""

import pathlib

import numpy as np
from scipy.optimize import linear_sum_assignment

from _oracle import compare, golden_header, keep_file

HEADER = pathlib.Path(__file__).resolve().parents[1] / "landscape" / "golden_assignment.h"
SIZE = 20
SCORE = (0.5 * np.sin(1 + 3 * np.arange(SIZE * SIZE, dtype=np.float64))).reshape(SIZE, SIZE)


def golden_text():
    rows, columns = linear_sum_assignment(SCORE, maximize=True)
    return golden_header(
        "kAssignment, the best assignment of 20 x 20 sine numbers, and its score", "linear_assignment.py",
        [f"inline constexpr int kAssignment[] = {{{', '.join(map(str, columns))}}};",
         f"inline constexpr double kAssignmentScore = {float(SCORE[rows, columns].sum())!r};"], includes=())  # fmt: skip


def comparisons():
    rows, columns = linear_sum_assignment(SCORE, maximize=True)
    shuffled = np.random.default_rng(1).permutation(SIZE)
    _, again = linear_sum_assignment(SCORE[shuffled], maximize=True)
    compare("the same assignment from rows in another order", again, columns[shuffled], why="the best one is unique")
    assert (rows == np.arange(SIZE)).all()


if __name__ == "__main__":
    keep_file(__doc__, HEADER, golden_text(), comparisons)
