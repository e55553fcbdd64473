"""The verdicts as files, in the report and on a terminal."""

import shutil

import h5py
import numpy as np
import pytest

import basin
from asked_study import PLAN
from basin.analysis.number_text import p_text
from basin.analysis.verdict_tables import CONTRAST, verdicts_of
from basin.figures.effects import MARKS, effects
from basin.pages import report, verdict_text, verdicts
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


def test_the_report_prints_and_colours_them(folder, draw_only, capsys):
    draw_only("effects")
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


def test_the_answer_counts_the_hypotheses(folder):
    v = verdicts_of(basin.open_sweep(folder))
    [sentence] = verdict_text.in_all(v)
    for answer in v.answers:
        assert answer.verdict == "undecided" or answer.plan.name in sentence
    counts = [int(word) for word in sentence.split() if word.isdigit()]
    assert sum(counts) == len(v.answers) and sentence.startswith("The study's hypotheses: ")


def test_the_figure_has_a_row_for_each_contrast_of_a_hypothesis(folder):
    sweep = basin.open_sweep(folder)
    v = verdicts_of(sweep)
    shown = effects(v, sweep)
    parts = {p.contrast: p for a in v.answers for p in a.parts}
    for ax in filter(lambda ax: ax.axison, shown.axes):
        rows = [tick.get_text() for tick in ax.get_yticklabels()]
        marked = {rows[int(line.get_ydata()[0])]: line for line in ax.lines if line.get_linestyle() == "None"}
        for name, line in marked.items():
            effect = v.found[name].effect
            ratio = v.found[name].plan.scale == "ratio"
            factor = 100 if v.found[name].plan.outcome == "test_acc" else 1
            assert line.get_xdata()[0] == pytest.approx(np.exp(effect.value) if ratio else factor * effect.value)
            assert line.get_color() == MARKS[parts.pop(name).verdict][1]
    assert parts == {}


def test_the_command_pastes_table_and_picture(folder, tmp_path, capsys):
    page, picture = tmp_path / "page.md", tmp_path / "effects.png"
    page.write_text("before\n<!-- mine -->\nold\n<!-- end of mine -->\nafter\n")
    write_verdicts(folder, verdicts_of(basin.open_sweep(folder)))
    assert verdicts.main([str(folder), "--into", str(page), "--passage", "mine", "--picture", str(picture)]) == 0
    text_now = page.read_text()
    assert "| hypothesis | contrast |" in text_now and "old" not in text_now and text_now.endswith("after\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert verdicts.main([str(folder), "--into", str(tmp_path / "none.md")]) == 1
    assert "none.md" in capsys.readouterr().err


def test_several_studies_have_a_row_for_each_hypothesis_and_a_table_each(folder, tmp_path, capsys):
    sweep = basin.open_sweep(folder)
    v = verdicts_of(sweep)
    write_verdicts(folder, v)
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    assert verdicts.main([str(folder), str(other)]) == 0
    overview, *studies = capsys.readouterr().out.split("\n## ")
    answers = v.answers
    rows = overview.splitlines()[2:]
    assert len([row for row in rows if row]) == 2 * len(answers) and len(studies) == 2
    for row, answer in zip(rows, answers, strict=False):
        cells = row.strip("| ").split(" | ")
        counts = dict(reversed(count.split()) for count in cells[5].split(", "))
        words = [part.verdict for part in answer.parts]
        more = f" ({answer.more} seeds would decide it)" if answer.verdict == "undecided" and answer.more else ""
        assert cells[1] == answer.plan.claim and cells[7] == answer.verdict + more
        assert cells[6] == p_text(answer.p_holm)
        assert counts == {word: str(words.count(word)) for word in set(words)}
    assert [study.split("]")[0] for study in studies] == ["[s", "[other"]
    odd = sum(s.verdict != "nothing" for s in v.same)
    assert all(f"A/A contrasts: {len(v.same)}, of which {odd} came" in study for study in studies)
    of_effects = verdict_text.hypothesis_rows(v).set_index("contrast")["effect [95 %]"]
    for line in studies[0].splitlines():
        if line.count(" | ") == 8 and "effect" not in line:
            cells = [cell.strip() for cell in line.split("|")]
            assert of_effects[cells[2]].startswith(cells[4].split(", R")[0]), "from the file as from the sweep"
    with pytest.raises(SystemExit):
        verdicts.main([str(folder), str(other), "--picture", str(tmp_path / "a.png")])
    assert "give one OUT" in capsys.readouterr().err


def test_a_study_without_hypotheses_is_one_line(tmp_path, capsys):
    make_sweep(tmp_path / "s", Plan(batch_sizes=(32,), optimizers=("sgd",), images=20, updates=3))
    assert verdicts.main([str(tmp_path / "s")]) == 1
    assert "verdicts.h5: no such file: write it with python -m basin.report" in capsys.readouterr().err
