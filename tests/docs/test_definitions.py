"""Every `definition` in a file that is one word is an anchor in docs: an id or a heading. Looked at are the files of tiny runs, and
the source."""

import os
import re
import subprocess
from pathlib import Path

import h5py
import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("BASIN_BINARY")
needs_binary = pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")

STUDY = """
model = "small_cnn"
optimizer = "lamb"
protocol = "A-updates"
updates = 8
batch_size = 64
micro_batch = 32
checkpoint_every = 2
clip_gradient = 1.0
weight_average = 0.9
test_time_augmentation = "flip"
noise_scale_every = 2
learning_rate = %s
[data]
set = "synthetic"
train_examples = 128
test_examples = 32
validation = 0.25
[small_cnn]
widths = [4, 4]
[probes]
run = %s
subset = 32
micro_batch = 32
[top_eigenvalues]
tolerance = 0.1
[curvature]
tolerance = 0.1
[noise_curvature]
tolerance = 0.1
[sweep]
seed = [1, 2]
%s
"""
TUNE = """
[tune]
trials = 2
[[tune.range]]
key = "learning_rate"
low = 0.01
high = 0.1
scale = "log"
"""


def slug(heading):
    """GitHub's name for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")


def anchors():
    found = set()
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text()
        found |= set(re.findall(r'<a id="([^"]+)">', text))
        found |= {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, flags=re.M)}
    return found


def basin(*words, sets=()):
    command = [BINARY, *words, *(part for s in sets for part in ("--set", s))]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def probes():
    """As `basin inspect --list` has them: the first word of each line that isn't indented."""
    return [line.split()[0] for line in basin("inspect", "--list", "probes").splitlines() if line[:1].strip()]


def kinds_of_landscape(end):
    """As the error for an unknown one lists them."""
    done = subprocess.run([BINARY, "landscape", end, "--kind", "none"], capture_output=True, text=True)
    listed = re.search(r"\{(.*)\}", done.stderr)
    assert listed, done.stderr
    return listed[1].split(",")


def landscape(kind, ends):
    """A landscape of one checkpoint, or of two where the kind asks for two."""
    options = ["--kind", kind, "--set", "landscape.subset=32", "--set", "landscape.test_subset=32"]
    for checkpoints in (ends[:1], ends):
        done = subprocess.run([BINARY, "landscape", *checkpoints, *options], capture_output=True, text=True)
        if done.returncode == 0:
            return
    raise AssertionError(done.stderr)


def definitions(path):
    """Attributes `definition` of a file's objects, and the entries of its columns of that name."""
    found = set()

    def look(name, item):
        if "definition" in item.attrs:
            found.add(str(item.attrs["definition"]))
        if isinstance(item, h5py.Dataset) and name.split("/")[-1] == "definition":
            found.update(text.decode() for text in item[()])

    with h5py.File(path) as file:
        file.visititems(look)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What each kind of command writes, with every probe and every kind of landscape."""
    out = tmp_path_factory.mktemp("definitions")
    (out / "study.toml").write_text(STUDY % (0.02, str(probes()).replace("'", '"'), ""))
    (out / "tune.toml").write_text(STUDY % ('"tuned"', "[]", TUNE))
    basin("sweep", str(out / "study.toml"), "--out", str(out / "sweep"))
    basin("tune", str(out / "tune.toml"), "--out", str(out / "tune"))
    ends = [str(path) for path in sorted(out.glob("sweep/runs/*/ckpt/end.h5"))]
    for kind in kinds_of_landscape(ends[0]):
        landscape(kind, ends)
    basin("audit", ends[0], "--only", "weight_norms")
    return [path for path in out.rglob("*.h5") if "ckpt" not in path.parts]


@needs_binary
def test_every_definition_in_fresh_files_is_an_anchor(files):
    known, schemas, lost = anchors(), set(), set()
    for path in files:
        with h5py.File(path) as file:
            schemas.add(file.attrs["schema_name"])
        lost |= {(path.name, word) for word in definitions(path) if " " not in word and word not in known}
    assert lost == set()
    assert schemas >= {"basin/run", "basin/probe", "basin/sweep", "basin/tune", "basin/surface", "basin/audit"}


ID = r'"([a-z0-9_]+(?:-[a-z0-9_]+)*)"'
PLACES = [  # rooms, and what stands around a definition there
    ("io sweep runs landscape", rf"describe\(\w+,[^;]*?{ID}\}}?\);"),  # dataset, units, long_name, id
    ("io", rf"\badd\(group\.write.*?{ID}\);"),  # what is handed on to describe()
    ("sweep", rf'\{{"[^"]*",\s*"[^"]*"[^{{}}"]*,\s*{ID}\}}'),  # a Meaning: units, long_name, id
    ("runs landscape", r'"((?:landscape|direction|eval|cell)-[a-z-]+)"'),  # axes and columns of surfaces
]


def test_every_definition_in_the_source_is_an_anchor():
    """Also of columns that no tiny run has, as those of a scaling rule."""
    found = set()
    for rooms, place in PLACES:
        for path in (path for room in rooms.split() for path in (ROOT / room).rglob("*.cpp")):
            found |= set(re.findall(place, path.read_text(), flags=re.S))
    assert {"scaled-eps", "sensitivity", "log-level", "landscape-rise", "parameter-offset", "outcome-margin"} <= found
    assert found - anchors() == set()
