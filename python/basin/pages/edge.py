"""python -m basin.pages.edge OUT_DIR [--picture FILE.png]: the largest Hessian eigenvalue over training and the limit of stability.

For sweeps whose probes ran at = ["every"].
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.stability_limit import levels, sharpness
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .command import command, draw_picture, run, takes_picture

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure


def in_words(sweep: Sweep) -> list[str]:
    lines = []
    for row in levels(sweep).itertuples(index=False):
        if row.why:
            lines.append(
                f"{row.named}, no limit: {row.why}; λ₁ begins at {row.first:.4g}; over the last third of training {row.late:.4g} "
                f"(mean over {row.seeds} seeds)"
            )
            continue
        if row.seeds == 1:
            lines.append(
                f"{row.named}, limit {row.limit:g}: λ₁ begins at {row.start:.2f} of it; over the last third of training {row.level:.3f} "
                "(one seed: no error bar)"
            )
            continue
        lines.append(
            f"{row.named}, limit {row.limit:g}: λ₁ begins at {row.start:.2f} ± {row.start_error:.2f} of it; over the last third of "
            f"training {row.level:.3f} ± {row.error:.3f} (mean and standard error over {row.seeds} seeds)"
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = command("basin.pages.edge", __doc__)
    parser.add_argument("folder", type=Path)
    takes_picture(parser)

    def work(options: argparse.Namespace) -> None:
        sweep = open_sweep(options.folder)
        if not any(len(sharpness(sweep, run_id)) for run_id in sweep.runs.run_id):
            raise ReadError(
                f'{options.folder}: no top_eigenvalues at checkpoints of a cadence (checkpoint_every, probes.at = ["every"])'
            )
        print("\n".join(in_words(sweep)))
        draw_picture(options.picture, figure, options.folder)

    return run(parser, arguments, work)


def figure(sweep: Sweep) -> Figure:
    from ..figures import edge_of_stability

    return edge_of_stability.figure(sweep)


if __name__ == "__main__":
    sys.exit(main())
