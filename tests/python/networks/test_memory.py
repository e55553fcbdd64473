"""The logical batch is an experiment's variable, not a memory limit: B = 65,536 runs in the memory of one micro-batch."""

import os
import pathlib
import subprocess
import time

import pytest

from basin_program import BASIN, needs_program

pytestmark = needs_program

STUDY = """
model = "small_cnn"
optimizer = "sgd"
protocol = "A-updates"
micro_batch = 128
learning_rate = 0.01
[small_cnn]
widths = [8, 16, 32]
[data]
set = "cifar10-5k"
test_examples = 250
augmentation = "{augmentation}"
"""


def peak_memory(*arguments):
    """Largest private memory of one process in MiB, read every 2 ms from /proc (RssAnon).

    The kernel's own peak (ru_maxrss) also counts the pages of libtorch and of the embedded images that happen to be mapped: 13 MiB
    more or less from one run to the next.
    """
    # Holes in glibc's heap don't count: large blocks go back to the kernel, and no cache of small ones pins the top of the heap.
    # With the defaults a path that is one letter longer has cost 15 MiB.
    tunables = "glibc.malloc.mmap_threshold=65536:glibc.malloc.tcache_count=0"
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLIBC_TUNABLES=tunables)
    process = subprocess.Popen(
        [BASIN, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    peak = 0
    while process.poll() is None:
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                peak = max(peak, int(line.split()[1]))
        time.sleep(0.002)
    assert process.returncode == 0, arguments
    return peak / 1024


@pytest.mark.parametrize("augmentation", ["none", pytest.param("crop_flip", marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_batch(tmp_path: pathlib.Path, augmentation):
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(augmentation=augmentation))
    idle = peak_memory("inspect", "--list", "models")
    above = {}
    # A last micro-batch of another size alone costs some 10 MiB: equal ones in both.
    for batch, updates in ((256, 40), (65536, 2)):
        out = tmp_path / f"{augmentation}-{batch}"
        above[batch] = (
            peak_memory("train", study, "--out", out, "--set", f"batch_size={batch}", "--set", f"updates={updates}") - idle
        )
    print(f"idle {idle:.0f} MiB; above idle: {above}")
    assert above[256] > 20, "the training set alone is 15 MiB: the measurement missed the run"
    # The stated bound. Indices and counts of 65,536 examples take 1.5 MiB.
    assert above[65536] <= 1.10 * above[256]
