"""What things are called: by the file, else by the program, else by the names themselves. No way ends in an exception."""

import json
import os

import h5py
import pandas as pd
import pytest

import basin
from basin.reader import program
from basin.reader.names import Names, known_names
from names_tables import COPIES, IN_ORDER, MEMBERS, RATIOS, listed, make_program
from synthetic_sweep import Plan, make_sweep

SMALL = dict(batch_sizes=(32, 1024), optimizers=("lamb", "sgd"), seeds=(1,), images=20, updates=3)


BASIN = os.environ.get("BASIN_BINARY")


@pytest.fixture(autouse=True)
def no_program(tmp_path, monkeypatch):
    monkeypatch.setenv("BASIN_BINARY", str(tmp_path / "nowhere"))


def sweep_of(folder, source="file", **plan):
    make_sweep(folder, Plan(**SMALL | plan), write_runs=source == "runs")
    return basin.open_sweep(folder, source)


def expect_the_tables(names):
    for kind, labels in MEMBERS.items():
        assert [names.label(kind, name) for name in labels] == list(labels.values())
        assert [names.place(kind, name) for name in labels] == list(range(len(labels)))
    rows = names.measures[["probe", "quantity", "column", "label", "heading"]].itertuples(index=False, name=None)
    assert list(rows)[: len(IN_ORDER) - 1] == IN_ORDER[:-1]  # the last is of a probe that was not run
    assert list(names.measures.companion) == [False] * 3 + [True] * 3
    assert names.ratios == {quantity: (above, below) for quantity, above, below in RATIOS} and names.copies == set(COPIES)


def test_names_of_the_file(tmp_path, recwarn):
    names = sweep_of(tmp_path / "s").names
    expect_the_tables(names)
    assert names.in_order("optimizers", ["lamb", "sgd", "lamb"]) == ["sgd", "lamb"]
    assert names.ratio("b_simple_finite") == ("tr_sigma_finite", "g2_finite") and names.ratio("lambda") is None
    assert names.is_copy("batch_bound_finite") and not names.is_copy("b_simple")
    assert not recwarn.list


@pytest.mark.parametrize("source, names", [("file", False), ("runs", True)])
def test_names_of_the_program_where_the_file_has_none(tmp_path, monkeypatch, recwarn, source, names):
    """An older file, and run folders that are not collected."""
    monkeypatch.setenv("BASIN_BINARY", str(make_program(tmp_path / "bin")))
    expect_the_tables(sweep_of(tmp_path / "s", source, names=names).names)
    assert not recwarn.list


def lacking(key):
    return lambda kind: [{k: v for k, v in entry.items() if k != key} for entry in listed(kind)]


@pytest.mark.parametrize(
    "says", [None, lacking("label"), lacking("headlines"), lambda kind: {}, lambda kind: [], lambda kind: [1]]
)
def test_bare_names_where_no_program_can_say(tmp_path, monkeypatch, says):
    """None at all, an older one, one that says something else. Labels of measures are the file's."""
    if says:
        monkeypatch.setenv("BASIN_BINARY", str(make_program(tmp_path / "bin", says)))
    sweep = sweep_of(tmp_path / "s", names=False)
    with h5py.File(tmp_path / "s" / "sweep.h5", "r+") as file:
        about = file["runs/probe.end.top_eigenvalues.lambda_1"].attrs
        about["long_name"], about["units"] = "largest Hessian eigenvalues", "loss/weight^2"
    with pytest.warns(UserWarning, match="no /names in it, and no program"):
        names = sweep.names
    assert names.members["optimizers"] == {"lamb": "lamb", "sgd": "sgd"}  # as they come in the file
    assert names.in_order("optimizers", ["sgd", "lamb"]) == ["lamb", "sgd"]
    assert names.members["data_sets"] == {"cifar10-5k": "cifar10-5k"}
    firsts = [("top_eigenvalues", "lambda", "lambda_1"), ("sharpness_keskar", "phi_full_1e-3", "phi_full_1e-3"),
              ("noise_scale", "b_simple", "b_simple")]  # fmt: skip
    assert list(names.measures[["probe", "quantity", "column"]].itertuples(index=False, name=None)) == firsts
    assert list(names.measures.label) == ["phi_full_1e-3" if "phi" in c else "b_simple" if "b_" in c else
                                          "largest Hessian eigenvalues (loss/weight^2)" for _, _, c in firsts]  # fmt: skip
    assert not names.measures.companion.any() and names.ratio("b_simple") is None and not names.is_copy("coherence")


def test_a_program_that_is_none_of_ours(tmp_path, monkeypatch):
    program = tmp_path / "basin"
    for text in ("#!/bin/sh\necho no JSON\n", "#!/bin/sh\nexit 2\n", "no program at all"):
        program = program.with_name(program.name + "x")  # an answer is kept
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("BASIN_BINARY", str(program))
        assert known_names().members == {}


def test_labels_of_columns_are_those_of_the_probe_files_where_nothing_is_collected(tmp_path):
    sweep = sweep_of(tmp_path / "s", "runs")
    path = next((tmp_path / "s" / "runs").glob("*/probes/end.top_eigenvalues.h5"))
    with h5py.File(path, "r+") as file:
        file["quantities/lambda"].attrs.update(long_name="largest Hessian eigenvalues", units="loss/weight^2")
    for other in path.parents[2].glob("*/probes/end.top_eigenvalues.h5"):
        if other != path:
            other.unlink()
    sweep = basin.open_sweep(tmp_path / "s", "runs")
    assert sweep.label("probe.end.top_eigenvalues.lambda_1") == "largest Hessian eigenvalues (loss/weight^2)"
    assert sweep.label("probe.end.top_eigenvalues.lambda_1_w2") == "lambda_1_w2" and sweep.label("test_acc") == "test_acc"


def test_who_is_not_in_the_tables_stands_behind_them(tmp_path):
    sweep = sweep_of(tmp_path / "s", optimizers=("new", "lamb", "newer"))
    known = len(MEMBERS["optimizers"])
    assert [sweep.names.place("optimizers", name) for name in ("lamb", "new", "newer", "?")] == [5, known, known + 1, known + 2]
    assert sweep.names.label("optimizers", "new") == "new"


def test_measures_that_are_named_come_in_that_order(tmp_path):
    sweep = sweep_of(tmp_path / "s")
    named = [("sharpness_keskar", "phi_relative_1e-3"), ("noise_scale", "g2"), ("top_eigenvalues", "lambda")]
    rows = sweep.measures(named)
    assert list(zip(rows.probe, rows.quantity)) == named and list(rows.column) == ["phi_relative_1e-3", "g2", "lambda_1"]
    assert list(rows.label) == ["φ, box relative to |w| (%)", "g2", "λ₁ (loss / weight²)"]


def test_a_tuning_has_the_programs_names(tmp_path, monkeypatch):
    scores = pd.DataFrame({"optimizer": ["lamb", "sgd", "new"]})
    bare = basin.Tuning(tmp_path, {}, pd.DataFrame(), scores, pd.DataFrame()).names
    assert bare.in_order("optimizers", ["sgd", "lamb"]) == ["lamb", "sgd"] and bare.label("optimizers", "sgd") == "sgd"
    monkeypatch.setenv("BASIN_BINARY", str(make_program(tmp_path / "bin")))
    names = basin.Tuning(tmp_path, {}, pd.DataFrame(), scores, pd.DataFrame()).names
    assert names.label("optimizers", "sgd") == "SGD" and names.in_order("optimizers", scores.optimizer) == ["sgd", "lamb", "new"]


def test_nobody_knows_anything():
    names = Names()
    assert names.label("optimizers", "sgd") == "sgd" and names.place("models", "mlp") == 0 and names.measures.empty
    assert names.in_order("optimizers", ["b", "a"]) == ["b", "a"] and names.ratio("b_simple") is None


def test_the_programs_answer_is_asked_for_once(tmp_path, monkeypatch):
    program = make_program(tmp_path / "bin")
    monkeypatch.setenv("BASIN_BINARY", str(program))
    assert known_names().label("models", "mlp") == "MLP"
    (program.parent / "models.json").write_text(json.dumps([]))
    assert known_names().label("models", "mlp") == "MLP"


def test_what_is_outside_a_runs_identity_is_known_without_a_program(monkeypatch):
    """The list in program.py is what the program says, of all options that a run is trained by."""
    assert not program.in_identity("data.path") and not program.in_identity("lamb.trust_path") and program.in_identity("warmup")
    if not BASIN:
        pytest.skip("BASIN_BINARY is not set")
    monkeypatch.setenv("BASIN_BINARY", BASIN)
    roles = {option: about["role"] for option, about in program.known_options().items()}
    monkeypatch.setattr(program, "known_options", dict)
    trained_by = {option for option, role in roles.items() if role != "measurement"}
    assert trained_by and {o for o in trained_by if not program.in_identity(o)} == {
        o for o in trained_by if roles[o] == "execution"
    }


def test_the_program_says_what_is_outside_a_runs_identity(monkeypatch):
    monkeypatch.setattr(program, "known_options", lambda: {"warmup": {"role": "execution"}, "data.path": {"role": "identity"}})
    assert not program.in_identity("warmup") and program.in_identity("data.path")
