"""What audits say about a measure, from files made by their description."""

import numpy as np
import pytest

from audit_files import audited, row, write_options
from basin.analysis.audit_verdict import load_audit


def test_the_gravest_verdict_where_the_function_stays_counts(tmp_path):
    one = [row("lambda", "relu_rescale", "moved", 16.0), row("lambda", "permutation", "invariant"),
           row("w2", "permutation", "within_error"), row("margin", "logit_scale", "moved", 4.0, kind="decisions"),
           row("margin", "permutation", "invariant"), row("kappa", "relu_rescale", "unresolved")]  # fmt: skip
    two = [row("lambda", "norm_scale", "moved", 1 / 64), row("w2", "permutation", "invariant")]
    found = load_audit(audited(tmp_path / "s", one, two))
    verdicts = {d: found.verdict(d, d) for d in ("lambda", "w2", "margin", "kappa", "other")}
    assert verdicts == {"lambda": "moved", "w2": "within_error", "margin": "invariant", "kappa": "unresolved", "other": ""}
    assert [d for d in verdicts if found.moved(d, d)] == ["lambda"]
    assert found.in_words("lambda", "lambda") == "moves (norm_scale, relu_rescale, by a factor of up to 64)"
    assert found.in_words("other", "other") == "not audited" and found.in_words("margin", "margin") == "invariant"
    assert found.in_words_of_decisions("margin", "margin") == "moves" and found.in_words_of_decisions("w2", "w2") == "not audited"


def test_a_quantity_counts_by_itself_where_it_was_audited(tmp_path):
    rows = [row("norms", "relu_rescale", "moved", quantity="frobenius"), row("norms", "relu_rescale", "invariant", quantity="product"),
            row("lambda", "relu_rescale", "invariant", quantity="lambda_1"),
            row("lambda", "relu_rescale", "moved", quantity="lambda_2")]  # fmt: skip
    found = load_audit(audited(tmp_path / "s", rows))
    assert [found.moved("norms", q) for q in ("frobenius", "product", "other")] == [True, False, True]
    assert not found.moved("lambda", "lambda")  # the vector's first entry, as in the column lambda_1


def test_unusual_options_speak_for_themselves_alone(tmp_path):
    rows = [row("asam", "relu_rescale", "moved"), row("asam", "relu_rescale", "invariant", settings="eta=0"),
            row("phi", "relu_rescale", "invariant"), row("phi", "relu_rescale", "moved", settings="eta=0"),
            row("pac", "relu_rescale", "moved", settings="eps=0")]  # fmt: skip
    found = load_audit(audited(tmp_path / "s", rows))
    assert [found.verdict(d, d) for d in ("asam", "phi", "pac")] == ["moved", "invariant", "moved"]


@pytest.mark.parametrize("options, expected", [
    ([], ["moved", "moved"]),
    ([{"eta": 0.0}], ["invariant", "moved"]),
    ([{"eta": 0.0, "scaled": "all"}], ["invariant", "invariant"]),
    ([{"eta": 0.01}], ["moved", "moved"]),
    ([{"eta": 0.01, "scaled": "all"}], ["moved", "moved"]),
    ([{"eta": 0.0}, {"eta": 0.01}], ["moved", "moved"]),  # of one run alone
    ([{"eta": 0.0}, {"eta": 0.0}], ["invariant", "moved"]),
])  # fmt: skip
def test_settings_speak_for_the_studies_that_measured_with_them(tmp_path, options, expected):
    rows = [row("asam", "relu_rescale", "moved"), row("asam", "relu_rescale", "invariant", settings="eta=0"),
            row("all", "relu_rescale", "moved"), row("all", "relu_rescale", "moved", settings="eta=0"),
            row("all", "relu_rescale", "invariant", settings="eta=0, scaled=all")]  # fmt: skip
    sweep = audited(tmp_path / "s", rows)
    write_options(sweep, "some", *options)
    write_options(sweep, "other", {"eta": 0.0, "scaled": "all"})
    found = load_audit(sweep)
    assert [found.verdict("asam", "asam"), found.verdict("all", "all")] == expected


def test_a_ratio_that_is_no_number_is_left_out_of_the_size(tmp_path):
    found = load_audit(audited(tmp_path / "s", [row("lambda", "relu_rescale", "moved", np.nan)]))
    assert found.in_words("lambda", "lambda") == "moves (relu_rescale)"


def test_a_damaged_audit_is_left_out_with_a_warning(tmp_path):
    sweep = audited(tmp_path / "s", [row("lambda", "relu_rescale", "moved")], [row("phi", "relu_rescale", "moved")])
    damaged = sorted((tmp_path / "s").glob("runs/*/audit/*.h5"))[0]
    damaged.write_bytes(damaged.read_bytes()[:500])
    with pytest.warns(UserWarning, match=damaged.name):
        found = load_audit(sweep)
    assert len(found.table) == 1


def test_a_damaged_measurement_is_left_out_with_a_warning(tmp_path):
    rows = [row("asam", "relu_rescale", "moved"), row("asam", "relu_rescale", "invariant", settings="eta=0")]
    sweep = audited(tmp_path / "s", rows)
    write_options(sweep, "some", {"eta": 0.01}, {"eta": 0.0})
    damaged = tmp_path / "s/runs" / sweep.runs.run_id[0] / "probes/end.some.h5"
    damaged.write_bytes(damaged.read_bytes()[:500])
    with pytest.warns(UserWarning, match=damaged.name):
        found = load_audit(sweep)
    assert found.verdict("asam", "asam") == "invariant"  # as the other run measured


def test_without_audits_nothing_is_known(tmp_path):
    found = load_audit(audited(tmp_path / "s"))
    assert found.table.empty and not found.moved("lambda", "lambda") and found.in_words("lambda", "lambda") == "not audited"
