"""What the oracle scripts share: comparisons that print both numbers, the exit code, and files that an oracle writes.

from _oracle import compare, finish
compare("loss of small_cnn", ours, theirs, rtol=1e-6, why="float32 sums in another order")
finish()
"""

import argparse
import re
import sys

import numpy as np

_verdicts = []
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


def compare(what, ours, theirs, *, rtol=0.0, atol=0.0, why):
    """Prints the largest difference, absolute and relative to theirs, and what was allowed: |ours - theirs| <= atol + rtol |theirs|,
    everywhere, with `why` as the reason for that. NaN never agrees, nor do different shapes."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape:
        _record(what, False, f"shapes {ours.shape} and {theirs.shape}")
        return
    difference = np.abs(ours - theirs)
    agrees = bool(np.all(difference <= atol + rtol * np.abs(theirs)))
    numbers = f"{float(ours):.9g} and {float(theirs):.9g}, " if ours.ndim == 0 else f"{ours.size} numbers, "
    largest = float(difference.max()) if difference.size else 0.0
    comparable = (theirs != 0) & np.isfinite(difference)
    relative = float((difference[comparable] / np.abs(theirs[comparable])).max()) if comparable.any() else 0.0
    found = f"largest difference {largest:.3g}, relative {relative:.2g}"
    _record(what, agrees, f"{numbers}{found} (allowed: {atol:g} + {rtol:g} relative; {why})")


def stored(file, group):
    """Every dataset of a group of an HDF5 file by its path there; nothing where there is no such group."""
    found = {}
    if group in file:
        file[group].visititems(lambda name, item: found.update({name: item[...]}) if hasattr(item, "shape") else None)
    return found


def _record(what, agrees, text):
    print(f"{'ok  ' if agrees else 'FAIL'} {what}: {text}", flush=True)
    _verdicts.append(agrees)


def keep_file(description, path, text, comparisons, peers=None):
    """An oracle's main where `text` is to stand in the file `path`: --write writes it; without, the two are compared (their numbers
    as numbers, since BLAS rounds differently on another processor), then `comparisons` are made and, with --peers, `peers` too."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if peers:
        parser.add_argument("--peers", action="store_true")
    flags = vars(parser.parse_args())
    if flags["write"]:
        path.write_text(text)
        return
    there = path.read_text()
    same = _NUMBER.sub("#", there) == _NUMBER.sub("#", text)
    compare(f"{path.name} is what this program writes, its numbers aside", same, True, why="the same text")
    if same:
        numbers = [[float(number) for number in _NUMBER.findall(t)] for t in (there, text)]
        compare(f"numbers of {path.name}", *numbers, rtol=1e-12, atol=1e-12, why="float64 sums in another order")
    comparisons()
    if flags.get("peers"):
        peers()
    finish()


def golden_header(what, program, body, includes=("cmath", "string", "vector")):
    """Text of a C++ header in basin::golden that tests/oracles/<program> writes."""
    lines = [
        f"// defines: {what}. Written by tests/oracles/{program}; don't edit.",
        "#pragma once",
        "",
        *(f"#include <{name}>" for name in includes),
        "",
        "namespace basin::golden {",
        "",
        *body,
        "",
        "}  // namespace basin::golden",
        "",
    ]
    return "\n".join(lines)


def finish():
    print(f"{sum(_verdicts)} of {len(_verdicts)} comparisons agree")
    sys.exit(0 if _verdicts and all(_verdicts) else 1)
