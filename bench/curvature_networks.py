"""What eigenvalues cost on whole networks: seconds, products and memory of `basin probe --only top_eigenvalues` on three
networks after a few updates on the embedded images. Memory is the largest of the process that probes, data and network included.
The table goes to stdout.
"""

import argparse
import os
import pathlib
import shutil
import subprocess

from basin import load_run

NETWORKS = {
    "resnet20, 1,000 images": {"model": "resnet20", "subset": 1000, "count": 5},
    "keskar_c1, 5,000 images": {"model": "keskar_c1", "subset": 0, "count": 5},
    "mlp, 1,000 images": {"model": "mlp", "subset": 1000, "count": 10, "more": ["mlp.hidden=[2560, 850]"]},
}
STUDY = """model = "mlp"
protocol = "A-updates"
updates = 40
batch_size = 256
learning_rate = 0.02
[data]
set = "cifar10-5k"
"""


def run(command):
    """Exit code 0 or an end of it all; largest resident memory in MiB."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {errors}")
    return usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--basin", required=True)
    parser.add_argument("--out", default="out/bench/networks")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "study.toml").write_text(STUDY)
    print(
        "| network | parameters | eigenvalues | products | largest residual | s | s per product | memory, MiB |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for name, about in NETWORKS.items():
        folder = out / about["model"]
        settings = [f'model="{about["model"]}"', f"runtime.threads={args.threads}", *about.get("more", [])]
        run([args.basin, "train", out / "study.toml", "--out", folder, *(word for s in settings for word in ("--set", s))])
        (path,) = (folder / "runs").iterdir()
        memory = run(
            [
                args.basin,
                "probe",
                path,
                "--only",
                "top_eigenvalues",
                "--subset",
                about["subset"],
                *(
                    word
                    for s in (f"top_eigenvalues.count={about['count']}", "top_eigenvalues.smallest=0")
                    for word in ("--set", s)
                ),
            ]
        )
        record = load_run(path)
        (kept,) = record.probes()
        found = record.probe(kept.probe, kept.checkpoint, kept.settings).attributes
        products, seconds = int(found["hvps"]), float(found["seconds"])
        print(
            f"| {name} | {found['parameters']:,} | {about['count']} | {products} | {max(found['relative_residuals']):.1e} | "
            f"{seconds:.3g} | {seconds / products:.2g} | {memory:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
