"""The program `basin` as a Python package: where it lies, and how it is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "bin" / "basin"


def main() -> None:
    """Becomes the program: signals and exit codes are its own."""
    os.execv(PROGRAM, ["basin", *sys.argv[1:]])
