"""A new probe, model, optimiser, data set, hook of the trainer or kind of landscape is one file and one line in its room's registry, and
everything picks it up: a copy of the tree gets a toy of each (tests/extension), is built, and its own tests of contracts, documents and
the report are run, then a sweep."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import h5py
import pytest

ROOT = pathlib.Path(os.environ["BASIN_SOURCE_DIR"])
TOYS = {
    "probes": "toy_mean_weight",
    "models": "toy_linear",
    "optim": "toy_sign",
    "data": "toy_stripes",
    "trainers/hooks": "toy_shrink",
    "runs/surfaces": "toy_scale",
}
LISTS = {
    "probes": "probes",
    "models": "models",
    "optim": "optimizers",
    "data": "datasets",
    "trainers/hooks": "hooks",
    "runs/surfaces": "landscapes",
}
PARAGRAPHS = {
    "probes": ("docs/probes.md", "### toy-mean-weight\nThe mean size of a weight, by the probe `toy_mean_weight`."),
    "models": ("docs/models.md", "Model `toy_linear`: one linear map."),
    "optim": ("docs/optimizers.md", "Optimiser `toy_sign`: steps by the gradient's sign."),
    "data": ("docs/data.md", "Data set `toy_stripes`: four classes of stripes."),
    "trainers/hooks": ("docs/optimizers.md", "### toy-shrunk\nThe length that the last update took, by the hook `toy_shrink`."),
    "runs/surfaces": ("docs/landscape.md", "Kind of landscape `toy_scale`: scaled weights."),
}
# What holds over registries, and what reads them: contracts, documents, the report. The rest doesn't know what is registered.
TESTS = r"^(data|models|optim|probes|runs|study|sweep|trainers|docs|python\.(commands|docs|extension|figures|pages)$)"
STUDY = """
model = "toy_linear"
protocol = "A-updates"
updates = 4
learning_rate = 0.01
micro_batch = 32
toy_shrink = 1e-6
[data]
set = "toy_stripes"
train_examples = 64
test_examples = 16
[probes]
run = ["toy_mean_weight", "weight_norms"]
[sweep]
optimizer = ["sgd", "toy_sign"]
batch_size = [16, 64]
"""


def run(*command, cwd, **environment):
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-6000:]}\n{result.stderr[-6000:]}"
    return result.stdout


def copy_of_the_tree(folder):
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in tracked.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(".venv"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")


def add_one_file_and_one_line(tree, room):
    toy = TOYS[room]
    shutil.copy(ROOT / "tests/extension" / room / f"{toy}.cpp", tree / room)
    registry = tree / room / "registry.cpp"
    lines = registry.read_text().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if re.fullmatch(r"  entry\(\w+\) \\\n", line))
    registry.write_text("".join([*lines[: first + 1], f"  entry({toy}) \\\n", *lines[first + 1 :]]))


def add_paragraph(tree, room):
    page, paragraph = PARAGRAPHS[room]
    with open(tree / page, "a") as file:
        file.write(f"\n{paragraph}\n")


@pytest.mark.parametrize("room", TOYS)
def test_a_toy_is_one_file_and_one_line(tmp_path, room):
    (tmp_path / room).mkdir(parents=True)
    shutil.copy(ROOT / room / "registry.cpp", tmp_path / room)
    before = (ROOT / room / "registry.cpp").read_text().splitlines()
    add_one_file_and_one_line(tmp_path, room)
    after = (tmp_path / room / "registry.cpp").read_text().splitlines()
    added = f"  entry({TOYS[room]}) \\"
    assert len(after) == len(before) + 1
    assert [line for line in after if line != added] == before
    assert sorted(path.name for path in (tmp_path / room).iterdir()) == ["registry.cpp", f"{TOYS[room]}.cpp"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    tree = tmp_path_factory.mktemp("extended") / "basin"
    copy_of_the_tree(tree)
    for room in TOYS:
        add_one_file_and_one_line(tree, room)
        add_paragraph(tree, room)
    cache = os.environ.get("CCACHE_DIR", ROOT / ".cache/ccache")
    run("cmake", "--preset", "release", f"-DBASIN_CCACHE_DIR={cache}", "-DBASIN_BENCH=OFF", cwd=tree)
    run("cmake", "--build", "build/release", "-j", "2", cwd=tree)
    return tree


@pytest.fixture(scope="module")
def sweep(extended):
    (extended / "toy.toml").write_text(STUDY)
    run(program(extended), "sweep", "toy.toml", "--out", "out/toy", cwd=extended)
    return extended / "out/toy"


def program(tree):
    return tree / "build/release/bin/basin"


def said_by_python(tree, *lines):
    """What these lines print with the copy's package, without a screen."""
    script = "\n".join(["import matplotlib; matplotlib.use('Agg')", *lines])
    return run(tree / ".venv/bin/python", "-c", script, cwd=tree, PYTHONPATH=str(tree / "python"))


@pytest.mark.slow
def test_contracts_documents_and_report_hold(extended):
    said = run(
        "ctest", "--test-dir", "build/release", "--output-on-failure", "-LE", "slow|oracle", "-R", TESTS, "-j", "2", cwd=extended
    )
    assert re.search(r"100% tests passed, 0 tests failed out of \d\d", said)


@pytest.mark.slow
@pytest.mark.parametrize("room", LISTS)
def test_lists_have_it(extended, room):
    listed = json.loads(run(program(extended), "inspect", "--list", LISTS[room], "--json", cwd=extended))["entries"]
    assert TOYS[room] in [member.get("name") or member["key"] for member in listed]


@pytest.mark.slow
def test_the_sweep_has_them(sweep):
    table = (sweep / "table.md").read_text()
    assert "model toy_linear" in table
    assert "toy_stripes" in table
    assert "| toy_sign |" in table
    with h5py.File(sweep / "sweep.h5") as file:
        assert (file["runs/probe.end.toy_mean_weight.mean_weight"][:] > 0).all()
        assert "Toy sign" in file["names/optimizers/label"].asstr()[:]
        assert set(file["runs/toy_shrink"][:]) == {1e-6}
        shrunk = file["runs/toy_shrunk"]
        assert len(set(shrunk[:])) == len(shrunk)  # it would pass for an axis
        assert (shrunk.attrs["units"], shrunk.attrs["definition"]) == ("weight", "toy-shrunk")
        assert file["runs/toy_shrink"].attrs["definition"] == "option"
    for path in sweep.glob("runs/*/run.h5"):
        with h5py.File(path) as file:
            assert set(file["train/toy_factor"][:]) == {1 - 1e-6}


@pytest.mark.slow
def test_the_hooks_number_is_no_axis(extended, sweep):
    found = said_by_python(
        extended,
        "import basin",
        "from basin.analysis.grid import axes_of",
        "sweep = basin.open_sweep('out/toy')",
        "print(*axes_of(sweep.runs, sweep.options))",
    )
    assert found.split() == ["optimizer", "batch_size"]


@pytest.mark.slow
def test_the_landscape_has_it(extended, sweep):
    """And its figure, by the axes of its grid."""
    checkpoint = next(sweep.glob("runs/*/ckpt/end.h5"))
    run(program(extended), "landscape", checkpoint, "--kind", "toy_scale", "--set", "landscape.subset=16", cwd=extended)
    drawn = said_by_python(
        extended,
        "import pathlib",
        "from basin.pages import landscapes",
        "(path,) = pathlib.Path('out/toy/landscape').glob('*.h5')",
        "surface, figures = landscapes.draw(path)",
        "print(surface.kind, len(figures))",
    )
    assert drawn.split() == ["toy_scale", "1"]


@pytest.mark.slow
def test_a_table_and_a_figure_have_the_probe(extended):
    """Measures stand in the table and in the figure of matched losses."""
    study = STUDY.replace('"A-updates"\nupdates = 4', '"B"\ntarget_loss = 1.38\nmax_gradients = 20000\ncheck_every = 64')
    (extended / "matched.toml").write_text(study)
    run(program(extended), "sweep", "matched.toml", "--out", "out/matched", cwd=extended)
    assert "| toy heading |" in (extended / "out/matched/table.md").read_text()
    labels = said_by_python(
        extended,
        "import basin",
        "from basin.figures import sharpness",
        "figure = sharpness.sharpness_against_batch(basin.open_sweep('out/matched'))",
        "print([axes.get_ylabel() for axes in figure.axes])",
    )
    assert "toy mean |w| (weight)" in labels


@pytest.mark.slow
def test_the_sweep_brings_labels_to_figures(extended, sweep):
    """A figure of accuracy has a curve for each optimiser; networks and data sets are named in the sweep's file alike."""
    drawn = said_by_python(
        extended,
        "import basin",
        "from basin.figures import accuracy",
        "sweep = basin.open_sweep('out/toy')",
        "(legend,) = accuracy.accuracy_against_batch(sweep).legends",
        "print([text.get_text() for text in legend.get_texts()])",
        "print(sweep.names.label('models', 'toy_linear'), 'and', sweep.names.label('data_sets', 'toy_stripes'))",
    )
    assert "'Toy sign'" in drawn
    assert "toy and toy stripes" in drawn


@pytest.mark.slow
def test_the_audit_has_it(extended, sweep):
    """It needs a network that allows transformations; the toy linear map has no hidden units."""
    study = 'optimizer = "toy_sign"\n' + STUDY.replace('"toy_linear"', '"mlp"').split("[sweep]")[0] + "[mlp]\nhidden = [8]\n"
    (extended / "audit.toml").write_text(study)
    run(program(extended), "train", "audit.toml", "--out", "out/audited", cwd=extended)
    (checkpoint,) = (extended / "out/audited/runs").glob("*/ckpt/end.h5")
    said = run(program(extended), "audit", checkpoint, "--only", "toy_mean_weight", "--subset", "16", cwd=extended)
    assert "(toy-mean-weight)" in said
    assert "changed although the function didn't: toy-mean-weight" in said
