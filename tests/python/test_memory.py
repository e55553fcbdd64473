"""The logical batch is an experiment's variable, not a memory limit: B = 65,536 runs in the memory of one micro-batch."""

import os
import pathlib
import subprocess

import pytest

BASIN = os.environ.get("BASIN_BINARY")
pytestmark = pytest.mark.skipif(not BASIN, reason="BASIN_BINARY names the program under test")

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
    """Largest resident set of one process in MiB, as the kernel counted it (ru_maxrss)."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    process = subprocess.Popen(
        [BASIN, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_maxrss / 1024


@pytest.mark.parametrize("augmentation", ["none", pytest.param("crop_flip", marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_batch(tmp_path: pathlib.Path, augmentation):
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(augmentation=augmentation))
    idle = peak_memory("inspect", "--list", "models")
    above = {}
    # About the same number of equal micro-batches in both, so that the heap has had the same chances to fragment: a last
    # micro-batch of another size alone costs some 10 MiB.
    for batch, updates in ((256, 40), (65536, 2)):
        out = tmp_path / f"{augmentation}-{batch}"
        above[batch] = (
            peak_memory("train", study, "--out", out, "--set", f"batch_size={batch}", "--set", f"updates={updates}") - idle
        )
    print(f"idle {idle:.0f} MiB; above idle: {above}")
    assert above[256] > 20, "the training set alone is 15 MiB: the measurement missed the run"
    # The stated bound. Indices and counts of 65,536 examples take 1.5 MiB.
    assert above[65536] <= 1.10 * above[256]
