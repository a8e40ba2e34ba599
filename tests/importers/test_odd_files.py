"""Files of predictions as people have them: read, or refused by what is really wrong with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import DataError, UsageError
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.importers.prediction_files import read_predictions, recognise
from medtasks.importers.predictions import End, Prediction
from medtasks.python_api.scoring import score
from medtasks.scoring.run_record import RunRecord

CHOICE, TEXT = "mi_cxr_icr", "kvasir_vqa_x1_level1"


def read(path: Path) -> list[Prediction]:
    return read_predictions(path, recognise(path), {})


def lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def scored(path: Path, task: str = CHOICE, epoch: int | None = None) -> RunRecord:
    return score_predictions(PredictionFile(path, recognise(path), task, epoch=epoch))


def right_rows(field: str = "response", null: int | None = None) -> list[dict[str, Any]]:
    """A row with the right answer to each question, but null to one of them."""
    rows = [{"sample_id": one["sample_id"], field: one["target"]} for one in task_documents(CHOICE)]
    if null is not None:
        rows[null][field] = None
    return rows


# --- null ---


def write_jsonl(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return lines(folder / "p.jsonl", rows)


def write_json(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    (folder / "p.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder / "p.json"


def write_nan(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """As Python's json writes the missing values of pandas."""
    return write_jsonl(
        folder, [{**row, "response": row["response"] or float("nan")} for row in rows]
    )


def write_nested(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return write_jsonl(folder, [{**row, "response": [[row["response"]]]} for row in rows])


def write_empty_lists(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return write_jsonl(
        folder, [{**row, "response": [row["response"]] if row["response"] else []} for row in rows]
    )


def write_parquet(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), folder / "p.parquet")
    return folder / "p.parquet"


def write_lmms_eval(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    logged = []
    for number, (row, document) in enumerate(zip(rows, task_documents(CHOICE), strict=True)):
        place = {"doc_id": number, "target": document["target"]}
        logged.append({**place, "resps": [[row["response"]]], "filtered_resps": [row["response"]]})
    return lines(folder / f"1_samples_{CHOICE}.jsonl", logged)


NULLS = [
    write_jsonl,
    write_json,
    write_nan,
    write_nested,
    write_empty_lists,
    write_parquet,
    write_lmms_eval,
]


@pytest.mark.parametrize("write", NULLS)
def test_a_null_is_no_response_and_never_wrong(write: Any, tmp_path: Path) -> None:
    run = scored(write(tmp_path, right_rows(null=2)))
    facts = run.manifest.tasks[CHOICE]
    assert facts.failed == {"none in the file": 1}
    assert facts.answered == len(task_documents(CHOICE)) - 1
    assert run.tasks[CHOICE].metrics["accuracy"].value == 1
    assert any(
        note.startswith("no response (none in the file): 1 prediction (") for note in run.notes
    )


@pytest.mark.parametrize("empty", [float("nan"), pd.NA])
@pytest.mark.parametrize("made", [list, pd.DataFrame])
def test_an_empty_cell_that_pandas_read_is_an_empty_response(empty: object, made: Any) -> None:
    rows = [
        *right_rows()[1:],
        {"sample_id": task_documents(CHOICE)[0]["sample_id"], "response": empty},
    ]
    run = score(made(rows), CHOICE)
    facts = run.manifest.tasks[CHOICE]
    assert (facts.failed, facts.status["empty"]) == ({}, 1)


def test_a_csv_file_is_scored_alike_by_pandas_and_by_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    empty, *others = right_rows()
    pd.DataFrame([{**empty, "response": ""}, *others]).to_csv(path, index=False)
    here, there = score(pd.read_csv(path), CHOICE), scored(path)
    assert here.manifest.tasks == there.manifest.tasks


@pytest.mark.parametrize("made", [list, pl.DataFrame, pa.Table.from_pylist])
def test_a_null_from_python_is_no_response(made: Any) -> None:
    rows = made(
        [*right_rows()[1:], {"sample_id": task_documents(CHOICE)[0]["sample_id"], "response": None}]
    )
    notes = score(rows, CHOICE).notes
    assert f"no response (none in the file): 1 prediction (predictions, row {len(rows)})" in notes


@pytest.mark.parametrize("where", ["response", "message"])
def test_a_null_of_ms_swift_is_no_response(where: str, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    row: dict[str, Any] = {"images": ["a.jpg"], "messages": messages}
    if where == "response":
        row["response"] = None  # the assistant's message may be the reference
    else:
        messages[1]["content"] = None  # type: ignore[assignment]
    (found,) = read(lines(tmp_path / "p.jsonl", [row]))
    assert (found.response, found.failed) == ("", "none in the file")


@pytest.mark.parametrize("response", ["", "B"])
def test_a_null_and_an_answer_for_one_sample_contradict_each_other(
    response: str, tmp_path: Path
) -> None:
    first, *others = right_rows()
    rows = [{**first, "response": response}, *others, {**first, "response": None}]
    path = lines(tmp_path / "p.jsonl", rows)
    with pytest.raises(
        DataError, match=r"line 7: the response to sample .* differs from that in p\.jsonl, line 1"
    ):
        scored(path)


# --- how a response ended ---


def test_the_reason_why_a_response_ended_is_read(tmp_path: Path) -> None:
    reasons = ["stop", "length", "content_filter", None, "abort"]
    rows = [
        {"sample_id": f"s{number}", "response": "B", "finish_reason": one}
        for number, one in enumerate(reasons)
    ]
    found = read(lines(tmp_path / "p.jsonl", rows))
    assert [one.end for one in found] == [End.WHOLE, End.TOKEN_LIMIT, None, None, None]
    assert [one.failed for one in found] == [None, None, "content_filter", None, None]


def test_a_reason_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", [{"sample_id": "s", "response": "B", "finish_reason": 0}])
    with pytest.raises(
        DataError, match="line 1: field `finish_reason` is 0, expected a reason such as stop"
    ):
        read(path)


def test_a_half_of_a_surrogate_pair_refuses_no_file(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"sample_id": "s", "response": "B \\ud83d"}\n')
    assert [one.failed for one in read(tmp_path / "p.jsonl")] == [None]


# --- rows within an object ---


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["predictions", "results", "my answers"])
def test_rows_in_the_list_of_an_object_are_read(
    name: str, indent: int | None, tmp_path: Path
) -> None:
    whole = {"model": "m", name: right_rows(), "tags": ["a"], "errors": []}
    (tmp_path / "p.json").write_text(json.dumps(whole, indent=indent), encoding="utf-8")
    run = scored(tmp_path / "p.json")
    assert run.tasks[CHOICE].metrics["accuracy"].value == 1


def test_a_wrong_row_in_a_list_of_an_object_is_named_by_list_and_row(tmp_path: Path) -> None:
    whole = {
        "predictions": [{"sample_id": "s", "response": "B"}, {"sample_id": "s", "response": 7}]
    }
    (tmp_path / "p.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"p\.json, list 'predictions', row 2: field `response` is 7"
    ):
        read(tmp_path / "p.json")


def test_several_lists_in_an_object_are_refused_by_name(tmp_path: Path) -> None:
    whole = {"first": right_rows(), "second": right_rows()}
    (tmp_path / "p.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"several lists of objects \('first', 'second'\), expected one"
    ):
        read(tmp_path / "p.json")


def test_an_object_of_answers_by_id_is_refused_with_its_fields(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"icr-33": "B", "icr-34": "C"}', encoding="utf-8")
    with pytest.raises(
        DataError, match=r"`response` is missing, expected it among 'icr-33', 'icr-34'; give"
    ):
        read(tmp_path / "p.json")


def test_results_of_lmms_eval_without_responses_are_named(tmp_path: Path) -> None:
    (tmp_path / "1_results.json").write_text(json.dumps({"results": {}, "configs": {}}, indent=2))
    with pytest.raises(
        UsageError, match=r"lmms-eval's results without the responses; give its .*_samples_<task>"
    ):
        recognise(tmp_path / "1_results.json")


# --- ids ---


def test_blanks_around_ids_do_not_matter(tmp_path: Path) -> None:
    rows = [{**row, "sample_id": f" {row['sample_id']}\t\n"} for row in right_rows()]
    assert scored(lines(tmp_path / "p.jsonl", rows)).tasks[CHOICE].metrics["accuracy"].value == 1


@pytest.mark.parametrize(
    "form", ["{}.jpg", "{}.JPEG", "images/{}.png", "C:\\data\\{}.jpg", " {}.jpg "]
)
def test_the_file_of_a_picture_is_its_id(form: str, tmp_path: Path) -> None:
    documents = task_documents(TEXT)
    rows = []
    for one in documents:
        rows.append(
            {
                "img_id": form.format(one["img_id"]),
                "question": one["question"],
                "response": one["target"],
            }
        )
    run = scored(lines(tmp_path / "p.jsonl", rows), TEXT)
    assert run.tasks[TEXT].metrics["exact_match"].value == 1
    assert run.predictions["answered"] == len(documents)


# --- text files of spreadsheets and of Windows ---


def csv_text(separator: str, first: str = "") -> str:
    rows = [f"{row['sample_id']}{separator}{row['response']}" for row in right_rows()]
    return "\r\n".join([*([first] if first else []), f"sample_id{separator}response", *rows])


@pytest.mark.parametrize(
    ("separator", "first"),
    [(";", "sep=;"), ("|", '"sep=|"'), (",", "SEP=,"), ("\t", "sep=\t"), (";", "sep=;;")],
)
def test_a_first_line_that_names_the_separator_is_none_of_the_table(
    separator: str, first: str, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_bytes(csv_text(separator, first).encode())
    assert scored(tmp_path / "p.csv").tasks[CHOICE].metrics["accuracy"].value == 1


def test_errors_below_a_line_with_the_separator_name_the_right_line(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("sep=;\nsample_id;response\ns1;B\ns2;C;D\n")
    with pytest.raises(DataError, match=r"p\.csv, line 4: found 3 cells, expected 2"):
        read(tmp_path / "p.csv")


@pytest.mark.parametrize("header", ["sample_id,response", "index\tsample_id\tprediction"])
def test_an_error_value_of_a_spreadsheet_refuses_a_text_file(header: str, tmp_path: Path) -> None:
    cells = {"sample_id": "icr-33", "index": "0", "response": "#NAME?", "prediction": "#NAME?"}
    separator = "\t" if "\t" in header else ","
    row = separator.join(cells[name] for name in header.split(separator))
    (tmp_path / "p.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"p\.csv, line 2: field `(response|prediction)` is the error #NAME\?, "
    ):
        read(tmp_path / "p.csv")


def test_a_column_in_other_case_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("sample_id,Response,score\nicr-33,B,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="with --column response=Response "):
        read(tmp_path / "p.csv")


def test_columns_that_a_message_leaves_out_are_counted(tmp_path: Path) -> None:
    header = ",".join(f"column_{number:02}" for number in range(20))
    (tmp_path / "p.csv").write_text(f"{header}\n{'1,' * 19}1\n", encoding="utf-8")
    with pytest.raises(DataError, match="'column_11' and 8 more; give"):
        read(tmp_path / "p.csv")


@pytest.mark.parametrize("library", ["pandas", "arrow"])
def test_a_data_frame_with_two_columns_of_one_name_is_refused(library: str) -> None:
    names = ["sample_id", "response", "response"]
    if library == "pandas":
        frame = pd.DataFrame([["icr-33", "B", "A"]], columns=names)
    else:
        frame = pa.table([pa.array(["icr-33"]), pa.array(["B"]), pa.array(["A"])], names=names)
    with pytest.raises(UsageError, match="column 'response' is duplicated, expected different"):
        score(frame, CHOICE)


def test_a_series_is_no_data_frame() -> None:
    with pytest.raises(UsageError, match="predictions, row 1: is of type str, expected a mapping"):
        score(pd.Series(["B"], index=["icr-33"]), CHOICE)


@pytest.mark.parametrize("number", [7, 7.0], ids=["whole", "of-a-data-frame"])
def test_a_number_is_an_id(number: float, tmp_path: Path) -> None:
    [prediction] = read(lines(tmp_path / "p.jsonl", [{"sample_id": number, "response": "B"}]))
    assert prediction.keys == {"sample_id": "7"}


def test_an_id_that_has_lost_digits_is_refused() -> None:
    frame = pd.DataFrame({"sample_id": [20061990123456789, None], "response": ["B", "A"]})
    with pytest.raises(DataError, match="an id as a text, because this number has lost its last"):
        score(frame, CHOICE)


@pytest.mark.parametrize("value", [True, 7.5, ["icr-33"]])
def test_another_value_is_no_id(value: object, tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", [{"sample_id": value, "response": "B"}])
    with pytest.raises(DataError, match=r"field `sample_id` is .*, expected a non-empty string"):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_a_file_whose_mark_names_its_encoding_is_read(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding.endswith(("le", "be")) else ""
    for name, text in {
        "p.csv": csv_text(","),
        "p.jsonl": "\n".join(map(json.dumps, right_rows())),
    }.items():
        (tmp_path / name).write_bytes((mark + text).encode(encoding))
        assert scored(tmp_path / name).tasks[CHOICE].metrics["accuracy"].value == 1


def test_a_file_in_the_encoding_of_windows_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes("sample_id,response\ns1,A\ns2,Ödem\n".encode("cp1252"))
    with pytest.raises(
        DataError, match=r"p\.csv, line 3: byte 0xd6 is not UTF-8; save the file as UTF-8"
    ):
        read(tmp_path / "p.csv")


def test_a_response_may_have_a_nul_and_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"sample_id": "s", "response": "B\\u0000\\r\\nC\\u2028"}\n')
    assert read(tmp_path / "p.jsonl")[0].response == "B\0\r\nC\u2028"


def test_a_csv_header_that_begins_like_an_archive_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("PK,index,prediction\n0,1,B\n")
    assert [one.response for one in read(tmp_path / "p.csv")] == ["B"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x1f\x8b\x08\x00", "is compressed with gzip, expected a file of predictions; unpack it"),
        (b"\x28\xb5\x2f\xfd", "is compressed with Zstandard"),
    ],
)
def test_a_compressed_file_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl.gz").write_bytes(content + bytes(40))
    with pytest.raises(UsageError, match=message):
        recognise(tmp_path / "p.jsonl.gz")


# --- repeats ---


def test_one_of_several_repeats_of_lmms_eval_is_scored(tmp_path: Path) -> None:
    rows = []
    for number, document in enumerate(task_documents(CHOICE)):
        place = {"doc_id": number, "target": document["target"]}
        rows.append(
            {**place, "resps": [["None."], [document["target"]]], "filtered_resps": ["[none]"]}
        )
    path = lines(tmp_path / f"1_samples_{CHOICE}.jsonl", rows)
    with pytest.raises(
        UsageError, match="several responses to a question, those of the epochs 1, 2; choose one"
    ):
        scored(path)
    assert scored(path, epoch=2).tasks[CHOICE].metrics["accuracy"].value == 1
