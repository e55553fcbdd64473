"""What a Hessian-vector product costs against examples and against parameters: a ResNet-20 of growing width on 128 random images, and of
width 16 on a growing number of them. Seconds (least of five), in gradients, and bytes of the graphs kept. Rows go to a JSON file, the
picture to a .png, the table to stdout.
"""

import argparse
import json
import math
import pathlib
import statistics

from programs import measure

WIDTHS = (8, 11, 16, 23, 32, 45)  # parameters double
EXAMPLES = (32, 64, 128, 256, 512, 1024)


def exponent(rows, x, y):
    """Slope of a straight line through the logarithms: 1 for a linear cost."""
    return statistics.linear_regression([math.log(row[x]) for row in rows], [math.log(row[y]) for row in rows]).slope


LINES = {"gradient_s": "gradient", "retained_s": "product, graph kept", "rebuilt_s": "product, graph rebuilt"}


def draw(by_width, by_examples, path):
    import matplotlib

    matplotlib.use("Agg")
    from basin.figures import style

    style.use()
    picture, axes = style.panels(1, 2, 3.6, 3.0)
    for axis, rows, x, label in (
        (axes[0][0], by_examples, "examples", "examples (270,000 parameters)"),
        (axes[0][1], by_width, "parameters", "parameters (128 examples)"),
    ):
        for (y, name), colour, marker in zip(LINES.items(), style.LINES, style.MARKERS):
            axis.loglog(
                [r[x] for r in rows],
                [r[y] for r in rows],
                color=colour,
                marker=marker,
                markersize=3.5,
                label=f"{name} (slope {exponent(rows, x, y):.2f})",
            )
        axis.set_xlabel(label)
        axis.set_ylabel("seconds, least of five (no bars)")
        axis.legend(fontsize=7)
    picture.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--basin", required=True, help="the program bench_curvature")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", default="out/bench/curvature_cost.json")
    parser.add_argument("--picture", default="out/bench/curvature_cost.png")
    args = parser.parse_args()

    def cost(width, examples):
        (row,) = measure([args.basin, "hvp", width, examples, args.threads])
        print(
            f"{row['parameters']:>9} parameters, {examples:>5} examples: gradient {row['gradient_s']:.3g} s, product "
            f"{row['retained_s']:.3g} s kept ({row['retained_gradients']:.2f} gradients), {row['rebuilt_s']:.3g} s rebuilt "
            f"({row['rebuilt_gradients']:.2f}), graphs {row['graph_bytes'] / 2**20:.0f} MiB",
            flush=True,
        )
        return row

    by_examples = [cost(16, n) for n in EXAMPLES]
    by_width = [cost(w, 128) for w in WIDTHS]
    pathlib.Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(args.out).write_text(json.dumps(by_examples + by_width, indent=1))
    draw(by_width, by_examples, args.picture)


if __name__ == "__main__":
    main()
