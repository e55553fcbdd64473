"""python -m basin.report OUT_DIR: the command of basin.pages.report by a short name."""

import sys

from .pages.report import main

if __name__ == "__main__":
    sys.exit(main())
