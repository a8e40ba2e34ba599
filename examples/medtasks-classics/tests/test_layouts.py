"""Every benchmark is read from the layout in which it is published, and a faulty row is named."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from medtasks.api import Benchmark, DataError, Release, doc_to_messages

from medtasks_classics import PLUGIN, medxpertqa, mmmu_medical, omnimedvqa, path_vqa, pmc_vqa, slake, vqa_rad

BENCHMARKS = {one.name: one for one in PLUGIN.benchmarks}


def records(benchmark: Benchmark, source: Path) -> list:
    return list(benchmark.data.read(Release(source, keep=source / "kept")))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_the_miniature_has_the_published_layout(name: str, source: Path) -> None:
    BENCHMARKS[name].data.mini(source)
    found = records(BENCHMARKS[name], source)
    assert len({one.sample_id for one in found}) == len(found) >= 24
    assert len({one.cluster for one in found}) >= 24
    kinds = {kind for one in found for kind in (BENCHMARKS[name].counts.kinds or (lambda _: ()))(one)}
    assert kinds <= BENCHMARKS[name].counts.published.keys() | {"closed", "open"}


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_the_published_counts_add_up(name: str) -> None:
    counts = dict(BENCHMARKS[name].counts.published)
    rows = counts.pop("rows")
    assert sum(counts.values()) in (rows, 0)


def test_both_layouts_of_vqa_rad_have_the_same_questions(source: Path) -> None:
    vqa_rad.mini(source)
    osf = records(vqa_rad.BENCHMARK, source)
    hub = source / "hub" / "data"
    hub.mkdir(parents=True)
    cells = {one.media[0]: {"bytes": (source / one.media[0]).read_bytes(), "path": None} for one in osf}
    rows = [{"image": cells[one.media[0]], "question": one.question, "answer": one.answer} for one in osf]
    pq.write_table(pa.Table.from_pylist(rows), hub / "test-00000-of-00001-abc.parquet")
    same = records(vqa_rad.BENCHMARK, hub.parent)
    asked = [[(one.question, one.answer, one.closed, one.guesses) for one in found] for found in (osf, same)]
    assert asked[0] == asked[1]
    assert len({one.cluster for one in same}) == len({one.cluster for one in osf})
    assert {one.answer_type for one in osf} == {"OPEN", "CLOSED"}
    assert {one.answer_type for one in same} == {""}


def test_training_rows_and_other_languages_are_not_read(source: Path) -> None:
    vqa_rad.mini(source)
    assert "Unread" not in {one.question for one in records(vqa_rad.BENCHMARK, source)}
    slake.mini(source)
    assert all(one.question.isascii() for one in records(slake.EN, source))
    assert not any(one.question.isascii() for one in records(slake.ZH, source))


def test_answers_of_numbers_are_text(source: Path) -> None:
    vqa_rad.mini(source)
    rows = json.loads((source / vqa_rad.JSON).read_text())
    rows[1]["answer"] = 5
    (source / vqa_rad.JSON).write_text(json.dumps(rows))
    assert records(vqa_rad.BENCHMARK, source)[1].answer == "5"


def test_pmc_vqa_reads_options_without_their_letters(source: Path) -> None:
    pmc_vqa.mini(source)
    first = records(pmc_vqa.BENCHMARK, source)[0]
    assert first.choices == {"A": "circle", "B": "square", "C": "triangle", "D": "bar"}
    assert first.answer == "A"


def test_omnimedvqa_reads_two_options_and_the_odd_row(source: Path) -> None:
    omnimedvqa.mini(source)
    with ZipFile(source / "OmniMedVQA.zip") as archive:
        member = "OmniMedVQA/QA_information/Open-access/Shapes.json"
        rows = json.loads(archive.read(member))
        archive.extractall(source)
    (source / "OmniMedVQA.zip").unlink()
    rows[1]["modality"] = rows[1].pop("modality_type")
    (source / member).write_text(json.dumps(rows))
    found = records(omnimedvqa.BENCHMARK, source)
    assert found[0].choices == {"A": "circle", "B": "square"}
    assert found[1].modality == "MR"


def test_medxpertqa_does_not_list_the_options_twice(source: Path) -> None:
    medxpertqa.mini(source)
    first = records(medxpertqa.BENCHMARK, source)[0]
    assert first.question == "Which shape is shown?"
    assert len(first.media) == 2


def test_mmmu_leaves_out_open_questions_and_counts_them() -> None:
    assert mmmu_medical.rows.excluded() == {}
    assert mmmu_medical.rows.unusable({"choices": {"A": None}}) == "open question"


@pytest.mark.parametrize(
    ("benchmark", "file", "field", "value"),
    [
        (vqa_rad.BENCHMARK, vqa_rad.JSON, "image_organ", None),
        (vqa_rad.BENCHMARK, vqa_rad.JSON, "image_name", "../a.jpg"),
        (slake.EN, "test.json", "q_lang", "de"),
        (slake.EN, "test.json", "answer_type", "HALF"),
    ],
)
def test_a_faulty_row_is_named(benchmark: Benchmark, file: str, field: str, value: object, source: Path) -> None:
    benchmark.data.mini(source)
    rows = json.loads((source / file).read_text(encoding="utf-8"))
    rows[1][field] = value
    (source / file).write_text(json.dumps(rows))
    with pytest.raises(DataError, match=rf"{file}, row 2.*`{field}`"):
        records(benchmark, source)


@pytest.mark.parametrize(("column", "value"), [("Answer_label", "E"), ("Choice B", " ")])
def test_a_faulty_line_of_pmc_vqa_is_named(column: str, value: str, source: Path) -> None:
    pmc_vqa.mini(source)
    path = source / "test_clean.csv"
    lines = path.read_text().splitlines()
    cells = lines[2].split(",")
    cells[pmc_vqa.COLUMNS.index(column)] = value
    path.write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]))
    with pytest.raises(DataError, match="test_clean.csv, line 3"):
        records(pmc_vqa.BENCHMARK, source)


def test_an_answer_that_is_no_option_is_named(source: Path) -> None:
    folder = source / "QA_information" / "Open-access"
    folder.mkdir(parents=True)
    row = {"question_id": "1", "question": "?", "question_type": "x", "modality_type": "CT", "image_path": "1.png"}
    (folder / "Set.json").write_text(json.dumps([{**row, "gt_answer": "c", "option_A": "a", "option_B": "b"}]))
    with pytest.raises(DataError, match="Set.json, row 1: field `gt_answer` is 'c', expected one of the options"):
        records(omnimedvqa.BENCHMARK, source)


@pytest.mark.parametrize(
    ("rows", "template"),
    [
        (vqa_rad.closed, "short"),
        (path_vqa.open_, "short"),
        (slake.zh_open, "short_zh"),
        (omnimedvqa.rows, "choice"),
        (medxpertqa.rows, "choice"),
        (mmmu_medical.rows, "choice"),
    ],
)
def test_a_prompt_shows_question_and_options_in_the_order_of_the_release(rows, template: str) -> None:
    for document in rows.documents():
        (message,) = doc_to_messages(document, {"template": f"medtasks_classics/{template}.j2"})
        *pictures, text = message["content"]
        assert len(pictures) == len(document["media"])
        options = [f"{letter}. {option}" for letter, option in document.get("choices", {}).items()]
        lines = text["text"].split("\n")
        assert lines[0] == document["question"]
        assert [line for line in lines if line in options] == options
        assert "None" not in text["text"]
