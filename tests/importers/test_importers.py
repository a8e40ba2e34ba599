"""Predictions made elsewhere: each layout and its oddities, and the join with a task's
documents.
"""

from __future__ import annotations

import csv
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.verify.commands import commands

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.records import Where
from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.importers.matching import MatchedPredictions, join
from medtasks.importers.prediction_files import LAYOUTS, read_predictions, recognise
from medtasks.importers.predictions import Prediction
from medtasks.scoring.verified_runs import scored_record

TASK = "kvasir_vqa_x1_level1"
ANSWER = 'Ein Polyp, „rund“,\nmit "Rand"; naïve 息肉 \U0001f600\u2028'


def said(document: Mapping[str, Any]) -> str:
    """A response of its own for each document, with commas, quotes and line breaks."""
    return f"{document['sample_id']}: {ANSWER}"


def swift(img_id: str = "a", question: str = "Why?", response: str = "So.") -> dict[str, Any]:
    user = {"role": "user", "content": f"<image>{question}"}
    assistant = {"role": "assistant", "content": response}
    return {"images": [{"path": f"/data/{img_id}.jpg"}], "messages": [user, assistant]}


def lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_swift(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    return lines(
        folder / "p.jsonl", [swift(one["img_id"], one["question"], said(one)) for one in documents]
    )


def write_jsonl(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    return lines(
        folder / "p.jsonl",
        [{"sample_id": one["sample_id"], "response": said(one)} for one in documents],
    )


def write_csv(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    with (folder / "p.csv").open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(["img_id", "question", "response", "task"])
        table.writerows([one["img_id"], one["question"], said(one), TASK] for one in documents)
    return folder / "p.csv"


def write_harness(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    """As lmms-eval itself writes them."""
    from lmms_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.model_name_sanitized = "model"
    tracker.date_id = "20260101_000000"
    common = {"arguments": ("Prompt?",), "filtered_resps": ["cut short"], "doc_hash": "0"}
    numbers = {one["sample_id"]: number for number, one in enumerate(task_documents(TASK))}
    tracker.save_results_samples(
        TASK,
        [
            {
                **common,
                "doc_id": numbers[one["sample_id"]],
                "doc": one,
                "target": one["target"],
                "resps": [[said(one)]],
                "input_media": one["media"],
            }
            for one in documents
        ],
    )
    return folder / "model" / f"20260101_000000_samples_{TASK}.jsonl"


def write_json(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    """As the authors of Kvasir-VQA-x1 publish judged predictions."""
    (folder / "p_eval.json").write_text(
        json.dumps([judged(one) for one in documents]), encoding="utf-8"
    )
    return folder / "p_eval.json"


def judged(document: Mapping[str, Any], score: int = 1, **changes: Any) -> dict[str, Any]:
    fields = ("img_id", "question", "complexity", "answer", "question_class")
    verdict = {
        name: {"score": score, "reason": f"About {name}."} for name in document["question_class"]
    }
    told = {name: document[name] for name in fields} | {
        "original": json.dumps(document["original"])
    }
    return {"response": said(document), **told, "eval_json": verdict, **changes}


def test_cells_beyond_the_header_cost_no_memory(tmp_path: Path) -> None:
    """A cell in the last column makes every row 16,384 wide: kept whole, a small workbook takes
    gigabytes.
    """
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.worksheets[0]
    half = [[1, "Where?", "there"]] * 50
    for number, row in enumerate([["index", "question", "prediction"], *half, [], *half], start=1):
        sheet.append(row)
        sheet.cell(number, 16_384, "x" if row else None)
    book.save(tmp_path / "wide.xlsx")
    tracemalloc.start()
    predictions = read_predictions(tmp_path / "wide.xlsx", "vlmevalkit", {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [one.response for one in predictions] == ["there"] * 100
    assert peak < 8 * 2**20


def write_vlmevalkit(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    book.worksheets[0].append(["index", "image_path", "question", "answer", "prediction"])
    for number, one in enumerate(documents):
        image = f"LMUData/images/{one['img_id']}.jpg"
        book.worksheets[0].append([number, image, one["question"], one["answer"], said(one)])
    book.save(folder / "model_dataset.xlsx")
    return folder / "model_dataset.xlsx"


def inspect_sample(document: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    content = [
        {"type": "text", "text": document["question"]},
        {"type": "image", "image": "data:image/png;base64,"},
    ]
    message = {"role": "assistant", "content": said(document)}
    return {
        "id": document["sample_id"],
        "epoch": 1,
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}],
        "target": document["target"],
        "output": {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}]},
        "scores": {"match": {"value": "C"}},
        **changes,
    }


def write_inspect(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    log = {
        "version": 2,
        "status": "success",
        "eval": {"model": "m"},
        "samples": list(map(inspect_sample, documents)),
    }
    (folder / "log.json").write_text(json.dumps(log, indent=2), encoding="utf-8")
    return folder / "log.json"


def write_inspect_archive(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for one in map(inspect_sample, documents):
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
    return folder / "log.eval"


def write_inspect_zstandard(folder: Path, documents: Sequence[dict[str, Any]]) -> Path:
    """As newer versions pack: each member Zstandard (method 93), here put together by hand."""
    import pyarrow as pa

    path = folder / "log.eval"
    packed = {
        f"samples/{one['id']}_epoch_1.json": json.dumps(one).encode()
        for one in map(inspect_sample, documents)
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in packed.items():
            archive.writestr(name, pa.compress(data, "zstd", asbytes=True))
    raw = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = raw.find(signature)
        while place >= 0:
            raw[place + offset : place + offset + 2] = (93).to_bytes(2, "little")
            place = raw.find(signature, place + 4)
    path.write_bytes(bytes(raw))
    return path


WRITERS: dict[str, Callable[[Path, Sequence[dict[str, Any]]], Path]] = {
    "ms-swift": write_swift,
    "jsonl": write_jsonl,
    "json": write_json,
    "csv": write_csv,
    "lmms-eval": write_harness,
    "vlmevalkit": write_vlmevalkit,
    "inspect": write_inspect,
    "inspect eval": write_inspect_archive,
    "inspect zstandard": write_inspect_zstandard,
}


def read(path: Path, layout: Any, **columns: str) -> list[Prediction]:
    return read_predictions(path, layout, columns)


def responses(joined: MatchedPredictions) -> dict[str, str]:
    return {
        sample_id: predictions[0].response for sample_id, predictions in joined.answered.items()
    }


def one_line(folder: Path, layout: str, row: object, **columns: str) -> Prediction:
    (found,) = read(lines(folder / "p.jsonl", [row]), layout, **columns)
    return found


@pytest.mark.parametrize("written", WRITERS)
def test_each_layout_is_recognised_and_joins_completely_in_any_order(
    written: str, tmp_path: Path
) -> None:
    documents = task_documents(TASK)
    path = WRITERS[written](tmp_path, documents[::-1])
    layout = recognise(path)
    assert layout == written.partition(" ")[0]
    joined = join(read(path, layout), documents)
    assert joined == MatchedPredictions([], [], [], [], [], joined.answered, [])
    assert list(responses(joined).items()) == [(one["sample_id"], said(one)) for one in documents]


def test_ms_swift_gives_image_question_and_response_in_several_forms(tmp_path: Path) -> None:
    found = one_line(tmp_path, "ms-swift", swift("img.7", " Is it?\n", "Yes."))
    assert found == Prediction(
        Where("p.jsonl", 1), {"img_id": "img.7", "question": "Is it?"}, "Yes."
    )
    for image in ("a.jpg", {"path": "C:\\x\\a.png"}, {"bytes": None, "path": "/y/a.jpg"}):
        assert one_line(tmp_path, "ms-swift", {**swift(), "images": [image]}).keys["img_id"] == "a"
    assert (
        one_line(tmp_path, "ms-swift", {**swift(), "response": "", "labels": "So."}).response == ""
    )
    row = swift()
    row["messages"].insert(0, {"role": "system", "content": "Be brief."})
    assert one_line(tmp_path, "ms-swift", row).keys["question"] == "Why?"


def test_columns_can_have_other_names_and_must_be_there_and_known(tmp_path: Path) -> None:
    row = {"image": "a", "q": "Why?", "out": ["So."], "sample_id": None, "score": 0.5}
    found = one_line(tmp_path, "jsonl", row, img_id="image", question="q", response="out")
    assert found == Prediction(Where("p.jsonl", 1), {"img_id": "a", "question": "Why?"}, "So.")
    with pytest.raises(
        DataError, match="`part` is missing, expected it among 'response', 'sample_id'"
    ):
        one_line(tmp_path, "jsonl", {"sample_id": "s", "response": "x"}, task="part")
    with pytest.raises(
        DataError, match=r"--column task=NAME \(in Python: columns=\{'task': 'NAME'\}\)"
    ):
        one_line(tmp_path, "jsonl", {"sample_id": "s", "response": "x"}, task="part")
    with pytest.raises(DataError, match=r"`sample_id` is missing, .* with --column sample_id=id "):
        one_line(tmp_path, "jsonl", {"id": "s", "response": "x"})
    with pytest.raises(DataError, match=r"`image` is missing, .* with --column img_id=NAME "):
        one_line(tmp_path, "jsonl", {"id": "s", "picture": "p", "response": "x"}, img_id="image")
    with pytest.raises(
        UsageError, match=r"column 'sampleid' is unknown \(did you mean 'sample_id'\?\)"
    ):
        read(tmp_path, "csv", sampleid="x")
    with pytest.raises(UsageError, match="column 'answer' is unknown"):
        read(tmp_path, "csv", answer="x")
    with pytest.raises(UsageError, match="ms-swift has its own fields"):
        read(tmp_path, "ms-swift", response="x")


@pytest.mark.parametrize(
    ("layout", "row", "message"),
    [
        ("ms-swift", {"images": []}, "`images` is .*expected a list of one image"),
        ("ms-swift", {"images": ["a.jpg", "b.jpg"]}, "list of one image"),
        ("ms-swift", {"images": [{"path": None}]}, r"`images\[0\]`"),
        ("ms-swift", {"messages": None}, "`messages` is null, expected a list"),
        (
            "ms-swift",
            {"messages": [{"role": "user", "content": "Why?"}]},
            "assistant's message at the end",
        ),
        (
            "ms-swift",
            {"messages": [{"role": "user", "content": "<image> "}]},
            "user's message with a question",
        ),
        (
            "ms-swift",
            {"messages": [{"role": "bot", "content": "x"}]},
            r"`messages\[0\].role` is 'bot'",
        ),
        ("ms-swift", {"messages": ["Why?"]}, r"`messages\[0\]` is 'Why\?'"),
        ("ms-swift", {"response": 7}, "`response` is 7, expected the text of a response"),
        (
            "ms-swift",
            {"messages": [{"role": "user", "content": 7}]},
            r"`messages\[0\].content` is 7",
        ),
        ("ms-swift", {"images": [{"path": "\ud800.jpg"}]}, r"`images\[0\]`"),
        ("jsonl", {"sample_id": "s"}, "`response` is missing"),
        (
            "jsonl",
            {"sample_id": None, "response": "x"},
            "`sample_id` is null, expected a sample id, or both",
        ),
        ("jsonl", {"sample_id": "s", "response": ["a", "b"]}, "one response for the sample, not 2"),
        ("jsonl", {"sample_id": 7.5, "response": "x"}, "`sample_id` is 7.5"),
        ("jsonl", {"sample_id": " ", "response": "x"}, "`sample_id` is ' '"),
        (
            "jsonl",
            {"img_id": "a", "response": "x"},
            "expected it, or both `img_id` and `question`, among 'img_id'",
        ),
        ("jsonl", {"sample_id": "s", "response": "x", "task": 3}, "`task` is 3"),
        ("lmms-eval", {"doc_id": 0, "target": "B"}, "`filtered_resps` is missing"),
        (
            "lmms-eval",
            {"doc_id": 0, "target": "B", "resps": [[7]]},
            "`resps` is 7, expected the text of a response",
        ),
        ("lmms-eval", {"doc_id": True, "target": "B", "resps": "a"}, "`doc_id` is True"),
        ("lmms-eval", {"doc_id": 0, "resps": "a"}, "`target` is missing"),
        (
            "lmms-eval",
            {"doc_id": 0, "target": "B", "resps": "a", "input_media": "x"},
            "`input_media` is 'x'",
        ),
    ],
)
def test_errors_name_line_and_field(
    layout: str, row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"p.jsonl, line 1: .*{message}"):
        one_line(tmp_path, layout, {**swift(), **row} if layout == "ms-swift" else row)


def table(folder: Path, text: str | bytes) -> Path:
    (folder / "p.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / "p.csv"


def test_csv_rows_keep_their_first_line_and_empty_and_very_long_responses(tmp_path: Path) -> None:
    long, before = "x" * 200_000, csv.field_size_limit()
    path = table(
        tmp_path,
        f'sample_id,response,task\r\ns1,"two\r\nlines, ""quoted""",\r\n\r\ns2,,t\r\ns3,{long},\r\n',
    )
    assert read(path, "csv") == [
        Prediction(Where("p.csv", 2), {"sample_id": "s1"}, 'two\r\nlines, "quoted"'),
        Prediction(Where("p.csv", 5), {"sample_id": "s2", "task": "t"}, ""),
        Prediction(Where("p.csv", 6), {"sample_id": "s3"}, long),
    ]
    assert csv.field_size_limit() == before
    path = table(tmp_path, 'sample_id;response\ns1;"A, or B; C"\n')
    assert [one.response for one in read(path, recognise(path))] == ["A, or B; C"]


@pytest.mark.parametrize(
    ("name", "layout", "content", "message"),
    [
        ("p.csv", "csv", "", "p.csv: the file is empty"),
        ("p.csv", "csv", "sample_id,response\n", "only a header"),
        (
            "p.csv",
            "csv",
            "sample_id|response\ns|x\n",
            "`response` is missing, expected it among 'sample_id|response'",
        ),
        (
            "p.csv",
            "csv",
            "response,response\n",
            "line 1: column 'response' is duplicated in the header",
        ),
        ("p.csv", "csv", "sample_id,response\ns,x\ns,x,y\n", "line 3: found 3 cells, expected 2"),
        ("p.csv", "csv", 'sample_id,response\ns,"x\ny', "line 2: not CSV"),
        ("p.csv", "csv", b"sample_id,response\ns,\xff\n", "line 2: byte 0xff is not UTF-8"),
        (
            "p.csv",
            "csv",
            "sample_id,response\n,x\n",
            "line 2: field `sample_id` is '', expected a sample id, or both",
        ),
        (
            "p.tsv",
            "vlmevalkit",
            "index\tquestion\n1\tWhy?",
            "line 2: .*`prediction` is missing, .* 'index', 'question'",
        ),
        (
            "p.tsv",
            "vlmevalkit",
            "prediction\tcategory\nx\ty",
            "line 2: .*`index` is missing, .* or `sample_id`",
        ),
    ],
)
def test_errors_of_whole_files_name_the_place(
    name: str, layout: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=message):
        read(path, layout)


def test_a_harness_line_gives_the_raw_response_and_the_document_s_place(tmp_path: Path) -> None:
    row = {"doc_id": 3, "target": "B", "resps": [["(A)"]], "filtered_resps": ["A"]}
    assert one_line(tmp_path, "lmms-eval", row).response == "(A)"
    row = {"doc_id": 10**9, "target": "B", "filtered_resps": "A", "input_media": ["x.jpg", "y.jpg"]}
    found = one_line(tmp_path, "lmms-eval", row)
    assert (found.keys, found.response) == (
        {"doc_id": str(10**9), "target": "B", "input_media": "x.jpg"},
        "A",
    )
    assert join([found], task_documents(TASK)).unmatched == [found]


@pytest.mark.parametrize(
    ("field", "value"), [("target", "Another."), ("input_media", ["other.jpg"])]
)
def test_a_harness_line_of_other_documents_is_refused(
    field: str, value: object, tmp_path: Path
) -> None:
    documents = task_documents(TASK)
    first = documents[0]
    row = {
        "doc_id": 0,
        "target": first["target"],
        "filtered_resps": "x",
        "input_media": first["media"],
    }
    assert list(responses(join([one_line(tmp_path, "lmms-eval", row)], documents))) == [
        first["sample_id"]
    ]
    with pytest.raises(
        DataError,
        match=f"line 1: field `{field}` is .* of document 0 .* another task or to other data",
    ):
        join([one_line(tmp_path, "lmms-eval", {**row, field: value})], documents)


def eval_json(folder: Path, rows: Sequence[object]) -> list[Prediction]:
    (folder / "p_eval.json").write_text(json.dumps(rows), encoding="utf-8")
    return read(folder / "p_eval.json", "json")


def test_rows_of_the_authors_merge_are_told_apart_by_their_reference(tmp_path: Path) -> None:
    one, other = (
        {**task_documents(TASK)[0], "sample_id": name, "target": name, "answer": name}
        for name in "ab"
    )
    rows = [
        judged(document, response=f"to {document['target']}")
        for document in (one, one, other, other)
    ]
    joined = join(eval_json(tmp_path, rows), [one, other])
    assert responses(joined) == {"a": "to a", "b": "to b"}
    assert [one.where.line for one in joined.duplicates] == [2, 4]
    assert joined.ambiguous == joined.unmatched == joined.strange == []


def test_a_row_of_another_reference_is_counted_and_not_scored(tmp_path: Path) -> None:
    documents = task_documents(TASK)[:2]
    rows = [judged(documents[0]), judged(documents[1], answer="Another reference.")]
    joined = join(eval_json(tmp_path, rows), documents)
    assert list(responses(joined)) == [documents[0]["sample_id"]]
    assert [one.where.line for one in joined.strange] == [2]


def test_a_failed_request_of_vlmevalkit_is_no_answer(tmp_path: Path) -> None:
    failed = "Failed to obtain answer via API."
    documents = task_documents(TASK)
    rows = [f"{one['img_id']}\t{one['question']}\t{one['answer']}" for one in documents[:-1]]
    rows.append(f"{documents[-1]['img_id']}\t{documents[-1]['question']}\t{failed}")
    (tmp_path / "p.tsv").write_text("\n".join(["img_id\tquestion\tprediction", *rows]))
    scored = score_predictions(
        PredictionFile(tmp_path / "p.tsv", recognise(tmp_path / "p.tsv"), TASK)
    )
    facts = scored.manifest.tasks[TASK]
    assert (facts.asked, facts.answered, facts.failed) == (
        len(documents),
        len(documents) - 1,
        {failed: 1},
    )


def test_a_sample_that_ended_in_an_error_has_failed(tmp_path: Path) -> None:
    sample = inspect_sample(
        task_documents(TASK)[0], error={"message": "Timed out."}, output={"choices": []}
    )
    (tmp_path / "log.json").write_text(json.dumps({"eval": {}, "samples": [sample]}))
    (found,) = read(tmp_path / "log.json", "inspect")
    assert (found.response, found.failed) == ("", "Timed out.")


@pytest.mark.parametrize("written", ["vlmevalkit", "inspect eval", "inspect zstandard"])
def test_a_damaged_archive_is_one_error(written: str, tmp_path: Path) -> None:
    path = WRITERS[written](tmp_path, task_documents(TASK)[:3])
    whole = path.read_bytes()
    for place in range(30, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            found: list[Prediction] | str = read(path, written.partition(" ")[0])
        except DataError as error:
            found = str(error)
        assert path.name in found if isinstance(found, str) else len(found) <= 3


def imported(folder: Path, rows: Sequence[object], judge: str = "Qwen3-30B-A3B") -> Any:
    (folder / "p_eval.json").write_text(json.dumps(rows), encoding="utf-8")
    file = PredictionFile(folder / "p_eval.json", "json", TASK, model="m", verdicts_of=judge)
    return score_predictions(file)


def test_verdicts_are_taken_over_under_the_judges_own_identity(tmp_path: Path) -> None:
    documents = task_documents(TASK)
    run = imported(
        tmp_path, [judged(one, score=number % 2) for number, one in enumerate(documents)]
    )
    (facts,) = run.manifest.judge.values()
    assert facts.judges == {"Qwen3-30B-A3B": {"model": "Qwen3-30B-A3B", "imported": "json"}}
    assert (facts.asked, facts.judged, facts.rubric_hash) == (
        len(documents),
        len(documents),
        "imported",
    )
    right = sum(number % 2 for number in range(len(documents)))
    metric = next(name for name, key in facts.rubric.metrics.items() if key == "strict")
    assert run.tasks[TASK].metrics[metric].value == pytest.approx(right / len(documents))
    (other,) = imported(
        tmp_path, [judged(one) for one in documents], "Another judge"
    ).manifest.judge.values()
    assert other.judge_hash != facts.judge_hash
    assert scored_record(run.manifest, run.samples, own=True, whole=True).changes == ()
    lines = commands(run.manifest, "folder")
    assert any("--verdicts-of Qwen3-30B-A3B" in line for line in lines)
    assert not any(line.startswith("medtasks judge") for line in lines)


def test_verdicts_that_are_none_are_counted_by_reason(tmp_path: Path) -> None:
    documents = task_documents(TASK)
    several = {name: {"score": 2, "reason": ""} for name in documents[1]["question_class"]}
    without = judged(documents[0], error="no JSON")
    del without["eval_json"]
    rows = [without, judged(documents[1], eval_json=several), *map(judged, documents[2:])]
    rows.append(judged(documents[2], score=0))  # contradicts the row before
    (facts,) = imported(tmp_path, rows).manifest.judge.values()
    assert facts.unjudged == {
        "the file has contradicting verdicts": 1,
        "the file has no valid verdict": 1,
        "the file has no verdict": 1,
    }
    assert facts.judged == len(documents) - 3


def test_a_file_without_verdicts_or_a_task_without_a_judge_is_wrong_usage(tmp_path: Path) -> None:
    rows = [{"sample_id": one["sample_id"], "response": "x"} for one in task_documents(TASK)]
    with pytest.raises(UsageError, match="no prediction of the file has a verdict"):
        imported(tmp_path, rows)


def test_a_file_of_no_layout_is_one_sentence(tmp_path: Path) -> None:
    for name, data in {
        "a": b"hello",
        "b": b"\x89PNG",
        "c.xml": b"<a/>",
        "d.csv": b"sample_id|response",
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(
            UsageError, match=r"JSONL, CSV, .* name its layout with --from \(ms-swift, "
        ):
            recognise(tmp_path / name)
    (tmp_path / "empty").write_bytes(b"\n\n")
    with pytest.raises(DataError, match="the file is empty"):
        recognise(tmp_path / "empty")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "content", [None, b"", b"\n\n", b"\xff\xfe", b"{", b"[1]", b"[" * 100_000, b"9" * 5000, b"\0"]
)
def test_a_file_that_holds_no_predictions_is_one_error(
    layout: str, content: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "p"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"p(:|,)"):
        read(path, layout)


def document(sample_id: str, img_id: str = "a", question: str = "Why?") -> dict[str, Any]:
    return {
        "sample_id": sample_id,
        "img_id": img_id,
        "question": question,
        "media": [],
        "target": "So.",
    }


def named(line: int, sample_id: str, response: str = "x", **keys: str) -> Prediction:
    return Prediction(Where("p.jsonl", line), {"sample_id": sample_id, **keys}, response)


def keyed(line: int, img_id: str, question: str, response: str = "x") -> Prediction:
    return Prediction(Where("p.jsonl", line), {"img_id": img_id, "question": question}, response)


TWO = [document("s1", "a"), document("s2", "b")]
SHARED = [document("s1"), document("s2")]
ASKED_TWICE = [document("tel-1", "a"), document("tel-2", "b")]


@pytest.mark.parametrize(
    ("predictions", "documents", "expected"),
    [
        ([keyed(1, "a", "Is it\u00a0 nai\u0308ve?\n")],
         [document("s1", "a", "Is it na\u00efve?"), document("s2", "a", "is it na\u00efve?")],
         {"responses": {"s1": "x"}, "missing": ["s2"]}),
        ([named(1, "s1"), named(2, "s3"), keyed(3, "a", "Who?"), keyed(4, "c", "Why?")], TWO,
         {"responses": {"s1": "x"}, "missing": ["s2"], "unmatched": [2, 3, 4]}),
        ([named(1, "s2", img_id="a", question="Why?")], TWO, {"responses": {"s2": "x"}}),
        ([named(1, "s1"), named(2, "s1"), keyed(3, "a", "Why?")], TWO,
         {"responses": {"s1": "x"}, "duplicates": [2, 3]}),
        ([keyed(1, "a", "Why?", "first"), keyed(2, "a", "Why?", "second")], [*SHARED, document("s3", "b")],
         {"responses": {"s1": "first", "s2": "second"}, "ambiguous": ["s1", "s2"], "missing": ["s3"]}),
        ([keyed(line, "a", "Why?") for line in range(1, 5)], SHARED,
         {"responses": {"s1": "x", "s2": "x"}, "duplicates": [3, 4]}),
        ([Prediction(Where("p", 1), {"id": "2", "question": "Why?"}, "x")], ASKED_TWICE,
         {"responses": {"tel-2": "x"}}),
    ],
    ids=["words", "unmatched", "id-first", "repeats", "in-order", "merged", "id-of-several"],
)  # fmt: skip
def test_predictions_are_joined_with_documents(
    predictions: list[Prediction], documents: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    joined = join(predictions, documents)
    for field, value in expected.items():
        found = responses(joined) if field == "responses" else getattr(joined, field)
        lines_of = field in ("unmatched", "duplicates")
        assert ([one.where.line for one in found] if lines_of else found) == value


@pytest.mark.parametrize(
    ("predictions", "documents", "message"),
    [
        ([named(1, "s1"), named(9, "s1", "y")], TWO,
         r"p\.jsonl, line 9: the response to sample s1 differs from that in p\.jsonl, line 1;"),
        *(([keyed(line, "a", "Why?", f"x{line}") for line in range(1, count + 1)], SHARED,
           rf"line 1: {count} prediction\(s\) .* expected 2, .*\(s1, s2\)") for count in (1, 3)),
        ([keyed(1, "a", "Why?")], [{"sample_id": "s1", "question": "Why?", "media": []}],
         "line 1: no sample_id, and the task's documents have no img_id"),
        ([Prediction(Where("p", 1), {"id": "7", "question": "Why?"}, "x")], ASKED_TWICE,
         r"its question is asked in 2 samples \(tel-1, tel-2, …\)"),
        ([], [TWO[0], TWO[0]], "one task at a time"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(
    predictions: list[Prediction], documents: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(MedtasksError, match=message):
        join(predictions, documents)


def test_predictions_for_a_group_score_the_groups_within_it(tmp_path: Path) -> None:
    """As in a run of the harness: a board's columns are often inner groups."""
    path = tmp_path / "all.jsonl"
    documents = [document for task in leaf_tasks("mi_cxr") for document in task_documents(task)]
    path.write_text(
        "".join(
            json.dumps({"sample_id": one["sample_id"], "response": one["target"]}) + "\n"
            for one in documents
        )
    )
    scored = score_predictions(PredictionFile(path, "jsonl", "mi_cxr"))
    assert (
        list(scored.groups)
        == list(scored.manifest.groups)
        == ["mi_cxr", "mi_cxr_tel", "mi_cxr_gts"]
    )
    assert scored.groups["mi_cxr_tel"].items == 33
