"""Every `definition` in a file that is one word is an anchor in docs: an id or a heading. Looked at are the files of tiny runs, and
the source."""

import json
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


def registered(name):
    return json.loads(basin("inspect", "--list", name, "--json"))["entries"]


def landscape(kind, ends):
    """A landscape of as few checkpoints as the kind takes."""
    checkpoints = ends[: kind["traits"]["least_checkpoints"]]
    basin("landscape", *checkpoints, "--kind", kind["name"], sets=("landscape.subset=32", "landscape.test_subset=32"))


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
    probes = json.dumps([probe["name"] for probe in registered("probes")])
    (out / "study.toml").write_text(STUDY % (0.02, probes, ""))
    (out / "tune.toml").write_text(STUDY % ('"tuned"', "[]", TUNE))
    basin("sweep", str(out / "study.toml"), "--out", str(out / "sweep"))
    basin("tune", str(out / "tune.toml"), "--out", str(out / "tune"))
    ends = [str(path) for path in sorted(out.glob("sweep/runs/*/ckpt/end.h5"))]
    for kind in registered("landscapes"):
        landscape(kind, ends)
    basin("audit", ends[0], "--only", "weight_norms")
    basin("scaling", str(out / "sweep"), "--ranks", "2", "--rounds", "1", "--seconds", "0.01")
    return [path for path in out.rglob("*.h5") if "ckpt" not in path.parts]


@needs_binary
def test_every_definition_in_fresh_files_is_an_anchor(files):
    known, schemas, lost = anchors(), set(), set()
    for path in files:
        with h5py.File(path) as file:
            schemas.add(file.attrs["schema_name"])
        lost |= {(path.name, word) for word in definitions(path) if " " not in word and word not in known}
    assert lost == set()
    assert schemas >= {"basin/run", "basin/probe", "basin/sweep", "basin/tune", "basin/surface", "basin/audit", "basin/scaling"}


@needs_binary
def test_what_hooks_write_into_the_summary_is_defined():
    said = {number["definition"] for hook in registered("hooks") for number in hook["summary"]}
    assert said and said - anchors() == set()


ID = r'"([a-z0-9_]+(?:-[a-z0-9_]+)*)"'
PLACES = [  # rooms, and what stands around a definition there
    ("io sweep runs landscape", rf"describe\(\w+,[^;]*?{ID}\}}?\);"),  # dataset, units, long_name, id
    ("io", rf"\badd\(group\.write.*?{ID}\);"),  # what is handed on to describe()
    ("sweep", rf'\{{"[^"]*",\s*"[^"]*"[^{{}}"]*,\s*{ID}\}}'),  # a Meaning: units, long_name, id
    ("trainers/hooks", rf'\bcolumn\((?:"[^"]*",\s*){{3}}{ID}\)'),  # HookEntry::summary
    ("runs landscape", r'"((?:landscape|direction|eval|cell)-[a-z-]+)"'),  # axes and columns of surfaces
]


def test_every_definition_in_the_source_is_an_anchor():
    """Also of columns that no tiny run has, as those of a scaling rule."""
    found = set()
    for rooms, place in PLACES:
        for path in (path for room in rooms.split() for path in (ROOT / room).rglob("*.cpp")):
            found |= set(re.findall(place, path.read_text(), flags=re.S))
    assert {"scaled-eps", "sensitivity", "log-level", "landscape-rise", "tta-loss", "parameter-offset", "outcome-margin"} <= found
    assert found - anchors() == set()
