"""What the documents say is what the code does: their Python runs, their numbers are generated."""

import importlib
import os
import re
import subprocess
import tomllib

import h5py
import pandas as pd
import pytest

import basin
from basin.analysis import noisy_quadratic
from basin.pages import quadratic, verdicts
from basin.pages.paste import PasteError, passage, paste
from basin.pages.summary import PASSAGE as SUMMARY
from basin.pages.summary import main as summary_main
from basin.pages.summary import summary
from basin.pages.tuning import PASSAGE as TUNING
from basin.pages.tuning import main as tuning_main
from basin.pages.tuning import tables
from basin.reader.selection import read_choices
from documents import ROOT, results_named_in
from names_tables import make_program

BINARY = os.environ.get("BASIN_BINARY")


@pytest.fixture
def listing(tmp_path, monkeypatch):
    """A program that has names for results from before sweep.h5 had them, and for tunings."""
    monkeypatch.setenv("BASIN_BINARY", str(make_program(tmp_path / "program")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sweep of seconds that looks like the quick study to whoever follows the documents: one eigenvalue, a checkpoint loss-1.8."""
    out = tmp_path_factory.mktemp("docs") / "quick"
    settings = ["top_eigenvalues.count=1", "batch_size=128", "optimizer=lamb", "protocol=B", "target_loss=1.5", "loss_levels=[1.8]",
                "max_gradients=40000", "data.train_examples=64"]  # fmt: skip
    command = [BINARY, "sweep", str(ROOT / "configs" / "tiny.toml"), "--out", str(out)]
    done = subprocess.run(command + [part for s in settings for part in ("--set", s)], capture_output=True, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")
def test_the_file_formats_page_names_everything_that_is_written(folder):
    page = (ROOT / "docs" / "file-format.md").read_text()
    names = {p.name for p in [*folder.iterdir(), *folder.glob("runs/*/*")] if p.suffix != ".h5" and p.parent.name != "runs"}
    with h5py.File(next(folder.glob("runs/*/run.h5"))) as file:
        names |= set(file) | set(file.attrs) | {name for group in ("train", "eval", "layers") for name in file[group]}
        names |= {name for group in ("provenance", "data", "summary") for name in file[group].attrs}
    with h5py.File(folder / "sweep.h5") as file:
        names |= set(file) | set(file.attrs) | set(file["probes"]) | set(file["layers/1"])
    assert {name for name in names if not re.search(rf"\b{re.escape(name)}\b", page)} == set()


def python_blocks(file):
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), flags=re.S)


def docstring_block():
    return "\n".join(line[4:] for line in basin.__doc__.splitlines() if line.startswith((">>> ", "... ")))


@pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")
@pytest.mark.parametrize("where", ["README.md", "docs/reading-results.md", "basin/__init__.py"])
def test_documented_python_runs(folder, where):
    blocks = [docstring_block()] if where.endswith(".py") else python_blocks(where)
    assert blocks and blocks[0]
    run_id = next(p.name for p in (folder / "runs").iterdir())
    for block in blocks:
        if "basin.export(" in block or "basin.torch_problem(" in block:  # need PyTorch: tests/oracles
            continue
        code = block.replace("out/quick", str(folder))
        code = code.replace("<run_id>", run_id).replace("0123456789ab", run_id)
        assert code.count(str(folder)) >= 1
        exec(compile(code, where, "exec"), {})


@pytest.mark.skipif(not BINARY, reason="BASIN_BINARY names the program under test")
def test_the_page_of_the_study_names_every_option_that_no_registry_has():
    printed = subprocess.run(
        [BINARY, "train", ROOT / "configs/quick.toml", "--print-config"], check=True, capture_output=True, text=True
    )
    names = {name.split(".")[-1] for name in re.findall(r"`([\w.]+)`", (ROOT / "docs/study.md").read_text())}
    options = tomllib.loads(printed.stdout)
    shared = [options.pop(table) for table in ("perturbation", "branch", "noise", "data", "probes", "runtime")]
    top = {key: value for key, value in options.items() if not isinstance(value, dict)}
    assert len(top) > 40 and {key for table in (top, *shared) for key in table} - names == set()


def test_what_documents_name_of_the_package_is_there():
    """Commands, dotted names and the imports of examples; names right in `basin` are those of its __all__."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("configs/*.toml")]
    text = "\n".join(file.read_text() for file in files)
    commands = set(re.findall(r"python -m (basin\.[\w.]*\w)", text)) - {"basin.pages.NAME"}
    assert len(commands) > 5 and [c for c in commands if not hasattr(importlib.import_module(c), "main")] == []
    for room, module, name in set(re.findall(r"\bbasin\.(reader|analysis|figures|pages)\.([a-z_]+)(?:\.(\w+))?", text)):
        found = importlib.import_module(f"basin.{room}.{module}")
        assert not name or hasattr(found, name), f"basin.{room}.{module}.{name}"
    of_basin = set(re.findall(r"\bbasin\.([a-z_]+)\b", text)) - {"reader", "analysis", "figures", "pages", "report"}
    assert of_basin <= set(basin.__all__)
    for line in set(re.findall(r"^from basin.* import .*", text, flags=re.M)):
        exec(line, {})


def test_the_readme_links_every_document():
    page = (ROOT / "README.md").read_text()
    assert [p.name for p in (ROOT / "docs").glob("*.md") if f"](docs/{p.name})" not in page] == []


def test_the_site_has_every_document():
    navigation = (ROOT / "scripts/docs_site/mkdocs.yml").read_text()
    assert [p.name for p in (ROOT / "docs").glob("*.md") if f"- docs/{p.name}\n" not in navigation] == []


def test_the_readmes_numbers_are_those_of_the_results(listing):
    folder = results_named_in("README.md", r"results/[0-9-]+quick(?=/)")
    assert passage(ROOT / "README.md", SUMMARY) == summary(basin.open_sweep(folder / "sweep.h5"))


def test_the_verdicts_are_those_of_the_results(listing):
    page = ROOT / "docs/verdicts.md"
    folders = re.search(r"pages\.verdicts ((?:results/[\w-]+\s+)+)--into", page.read_text())[1].split()
    asked = {str(p.parent.relative_to(ROOT)) for p in (ROOT / "results").glob("*/verdicts.h5")}
    assert asked == set(folders), "every study with hypotheses is on the page"
    assert passage(page, "verdicts") == verdicts.markdown([ROOT / f for f in folders], page.parent)


def test_the_tuning_tables_are_those_of_the_results(listing):
    selection = results_named_in("docs/tuning.md", r"results/[0-9-]+quick-tune/selection.toml")
    assert passage(ROOT / "docs/tuning.md", TUNING) == tables(read_choices(selection))


def test_the_noisy_quadratics_table_is_that_of_the_results():
    page = "docs/noisy-quadratic.md"
    runs = pd.read_csv(results_named_in(page, r"results/[0-9-]+noisy-quadratic/steps.csv"))
    assert passage(ROOT / page, quadratic.PASSAGE) == quadratic.markdown(noisy_quadratic.table(runs))


SELECTION = """
select_seeds = [101]
[[choice]]
group = "batch_size=32 optimizer=sgd protocol=A-epochs"
protocol = "A-epochs"
learning_rate = 0.1
at_edge = true
tried = [[0.05, 1, 1, 1, 0, 1.6449, 36256.0], [0.1, 1, 1, 1, 0, 1.5999, 36256.0]]
[[choice]]
group = "batch_size=32 optimizer=sgd protocol=B"
protocol = "B"
learning_rate = 0.05
at_edge = false
tried = [[0.02, 1, 1, 0, 0, 1.7, inf], [0.05, 1, 1, 1, 0, 1.6149, 22560.0], [0.1, 1, 1, 1, 1, 1.9, 50272.0]]
[[choice]]
group = "batch_size=65536 optimizer=sgd protocol=B"
protocol = "B"
learning_rate = 0.05
at_edge = false
tried = [[0.02, 1, 1, 0, 0, 1.8, inf], [0.05, 1, 1, 0, 0, 1.7, inf], [0.1, 1, 0, 0, 0, inf, inf]]
"""


def test_tuning_tables_round_and_name_what_was_not_reached(tmp_path, listing):
    (tmp_path / "selection.toml").write_text(SELECTION)
    said = tables(read_choices(tmp_path / "selection.toml"))
    assert "| SGD | 0.1* (1.60) |" in said  # 1.5999 rounded, not cut
    assert "| SGD | 0.05 (1.61, 23k) | 0.05 (1.70, not reached) |" in said
    assert "No rate reached the target: SGD at 65,536." in said
    assert "At B = 65,536 the validation losses of all 2 rates that came to an end lie between 1.70 and 1.80." in said


def test_arms_have_rows_of_their_own_in_the_tuning_tables(tmp_path, listing):
    entry = """
[[choice]]
group = "-"
protocol = "A-epochs"
learning_rate = 0.1
when = {{ batch_size = {}, optimizer = "sgd", protocol = "A-epochs", noise.batch = {}, model = "mlp" }}
at_edge = false
tried = [[0.1, 1, 1, 1, 0, {}, 36256.0]]
"""
    cells = [(32, 0, 1.1), (2048, 0, 1.2), (2048, 32, 1.3)]
    (tmp_path / "selection.toml").write_text("".join(entry.format(*cell) for cell in cells))
    said = tables(read_choices(tmp_path / "selection.toml"))
    assert "| SGD | 0.1 (1.10) | 0.1 (1.20) |\n| SGD, noise.batch=32 | – | 0.1 (1.30) |" in said


def test_generated_passages_go_where_they_belong(tmp_path, capsys):
    (tmp_path / "selection.toml").write_text(SELECTION)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- tuning -->\nold\n<!-- end of tuning -->\nafter\n")
    assert tuning_main([str(tmp_path / "selection.toml"), "--into", str(page)]) == 0
    said = page.read_text()
    assert said.startswith("before\n<!-- tuning -->\n### Protocol A") and said.endswith("<!-- end of tuning -->\nafter\n")
    assert "old" not in said
    paste(page, "tuning", r"a \1 b")
    assert passage(page, "tuning") == r"a \1 b"
    with pytest.raises(PasteError, match="no place for it between <!-- other -->"):
        paste(page, "other", "x")
    assert tuning_main([str(tmp_path / "none.toml")]) == 1 and summary_main([str(tmp_path / "none")]) == 1
    (tmp_path / "bad.toml").write_text("select_seeds = 1\n")
    assert tuning_main([str(tmp_path / "bad.toml")]) == 1
    assert summary_main([str(tmp_path / "none"), "--margin", "-2"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "margin = -2: a number of points" in lines.pop()
    assert [line.split(": ")[0] for line in lines] == ["basin.pages.tuning", "basin.pages.summary", "basin.pages.tuning"]
