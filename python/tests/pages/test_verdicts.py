"""The verdicts as files, in the report and on a terminal."""

import h5py
import pytest

import basin
from asked_study import PLAN
from basin.analysis.verdict_tables import CONTRAST, verdicts_of
from basin.pages import report, verdict_text
from basin.pages.verdict_files import write_verdicts
from basin.reader import seal
from basin.reader.schema import open_file, text
from synthetic_sweep import Plan, make_sweep


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("verdicts") / "s"
    make_sweep(target, Plan(**(PLAN | dict(images=400))))
    return target


def test_the_file_is_sealed_and_has_what_the_pilot_reads(folder):
    v = verdicts_of(basin.open_sweep(folder))
    md, h5 = write_verdicts(folder, v)
    assert seal.check(h5)
    with open_file(h5, "verdicts") as file:
        assert set(file) == {"contrasts", "hypotheses", "parts"}
        rows = file["contrasts"]
        assert list(rows) == list(CONTRAST) and [text(n) for n in rows["name"][:2]] == ["drop", "lamb-drop"]
        effect = v.found["drop"].effect
        variance = (rows["var_seed"][0], rows["var_image"][0], rows["var_rest"][0])
        assert variance == (effect.var_seed, effect.var_image, effect.var_rest) and rows["images"][0] == 400
        assert all("units" in rows[c].attrs for c in rows) and rows["effect"].dims[0][0].name == "/contrasts/name"
        assert [text(w) for w in file["hypotheses/verdict"]] == [a.verdict for a in v.answers]
    before = h5.read_bytes()
    write_verdicts(folder, v)
    assert h5.read_bytes() == before  # equal content, equal bytes
    broken = bytearray(before)
    broken[-1] ^= 1
    h5.write_bytes(broken)
    with pytest.raises(basin.ReadError, match="damaged or edited"):
        seal.check(h5)
    said = md.read_text()
    assert "Large batches lose (us): **confirmed**" in said and "| claim | source | contrast |" in said


def test_no_files_without_questions_and_seeds(tmp_path):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32,), optimizers=("sgd",), images=20, updates=3))
    assert write_verdicts(tmp_path / "s", verdicts_of(basin.open_sweep(tmp_path / "s"))) == []


def test_the_report_prints_and_colours_them(folder, capsys):
    assert report.main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "Large batches lose (us): confirmed. Exploratory" in said
    page = (folder / "report.html").read_text()
    for answer in verdicts_of(basin.open_sweep(folder)).answers:
        assert f'<td class="{verdict_text.COLOURS[answer.verdict]}">{answer.verdict}' in page
    assert "A/A contrasts" in page and "ghost_batch=25" in page and "The optimisers compared" in page
    assert (folder / "verdicts.md").is_file() and h5py.is_hdf5(folder / "verdicts.h5")


def test_effects_in_words(folder):
    v = verdicts_of(basin.open_sweep(folder))
    rows = verdict_text.contrast_rows(v).set_index("contrast")["effect [95 %]"]
    assert rows["drop"].endswith(" points") and rows["sharper"].startswith("×") and rows["matched-loss"].endswith(" nat")
