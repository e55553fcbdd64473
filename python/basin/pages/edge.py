"""python -m basin.pages.edge OUT_DIR [--picture FILE.png]: the largest Hessian eigenvalue over training and the limit of stability.

For sweeps whose probes ran at = ["every"].
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..analysis.stability_limit import levels, sharpness
from ..reader.fault import ReadError
from ..reader.sweep import Sweep, open_sweep
from .output import ReportError, nothing_in_home, save_picture


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
    parser = argparse.ArgumentParser(prog="python -m basin.pages.edge", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args(arguments)
    try:
        sweep = open_sweep(args.folder)
        if not any(len(sharpness(sweep, run_id)) for run_id in sweep.runs.run_id):
            raise ReadError(
                f'{args.folder}: no top_eigenvalues at checkpoints of a cadence (checkpoint_every, probes.at = ["every"])'
            )
        print("\n".join(in_words(sweep)))
        if args.picture:
            with nothing_in_home():
                from ..figures import edge_of_stability

                save_picture(edge_of_stability.figure, args.folder, args.picture)
    except (ReadError, ReportError) as error:
        print(f"basin.pages.edge: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
