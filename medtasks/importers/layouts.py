"""The layouts of prediction files: from a row of each to its prediction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PureWindowsPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from medtasks.catalog.records import ReleaseRow, Where, is_text, parse_row, value_or_null, wrong
from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import expects, suggestion
from medtasks.data.lost_text import LostText
from medtasks.data.sources import SourceRow
from medtasks.importers.predictions import (
    Prediction,
    Row,
    finish_in,
    identifying_texts,
    known_texts,
    names_in,
    one_response,
    prediction,
    responses_in,
)

COLUMNS = ("sample_id", "response", "task", "img_id", "question")
"""What rows with columns may have, besides ``finish_reason`` and a judge's verdict."""
_JUDGED = frozenset({"eval_json", "original"})
"""Fields of Kvasir-VQA-x1's ``*_eval.json``, in which ``answer`` is the reference."""


# --- rows with columns ---


def predictions_in_rows(rows: Iterable[SourceRow], columns: Mapping[str, str]) -> list[Prediction]:
    """The predictions in rows with their places; null means that a key is unknown, other columns
    are ignored.

    ``columns`` are the names of our columns in the rows, which are then required; by default they
    have our names.
    """
    for column in columns:
        if column not in COLUMNS:
            near = suggestion(column, COLUMNS)
            raise UsageError(
                f"column {column!r} is unknown{near}; choose from {', '.join(COLUMNS)}."
            )
    names = {column: columns.get(column, column) for column in COLUMNS}
    required = {"response", *columns}
    return [_of_row(row, where, names, required) for where, row in rows]


def _of_row(
    row: Row, where: Where, names: Mapping[str, str], required: Collection[str]
) -> Prediction:
    """The prediction in a row, whose columns ``names`` has by our name; it must have the
    ``required`` ones.
    """
    for column, name in names.items():
        if column in required and name not in row:
            raise _missing(column, row, where, names)
    response = names["response"]
    key_columns = {column: name for column, name in names.items() if column != "response"}
    keys = known_texts(row, key_columns, where)
    if "sample_id" not in keys and not {"img_id", "question"} <= keys.keys():
        raise _unidentified(row, where, names)
    if _JUDGED & row.keys():
        keys |= known_texts(row, {"target": "answer"}, where)
    verdict = row.get("eval_json")
    if verdict is not None and not isinstance(verdict, dict):
        raise wrong(where, "eval_json", verdict, "a judge's verdict as an object")
    _require_text_kept(row, response, where)
    text = one_response(where, response, row[response])
    return prediction(where, keys, text, finish_in(row, where), verdict=verdict)


def _unidentified(row: Row, where: Where, names: Mapping[str, str]) -> DataError:
    """The error of a row that lacks what identifies its sample, as columns or in its cells."""
    picture_and_question = f"both `{names['img_id']}` and `{names['question']}`"
    has_columns = {names["img_id"], names["question"]} <= row.keys()
    if names["sample_id"] not in row and not has_columns:
        return _missing("sample_id", row, where, names, f", or {picture_and_question},")
    expected = f"a sample id, or {picture_and_question}"
    return wrong(where, names["sample_id"], value_or_null(row, names["sample_id"]), expected)


def _missing(
    column: str, row: Row, where: Where, names: Mapping[str, str], instead: str = ""
) -> DataError:
    """The error that a row lacks one of our columns; ``instead`` says which others would do."""
    free = [name for name in map(str, row) if name not in names.values()]
    same = [name for name in free if name.casefold() == names[column].casefold()]
    candidates = same or free
    is_clear = len(candidates) == 1 and candidates[0].isidentifier()
    example = candidates[0] if is_clear else "NAME"
    return DataError(
        f"{where}: field `{names[column]}` is missing, expected it{instead} among "
        f"{names_in(row)}; give the file's own name with --column {column}={example} "
        f"(in Python: columns={{{column!r}: {example!r}}})."
    )


def _require_text_kept(row: Row, field: str, where: Where) -> None:
    """Refuse a response that a spreadsheet program has replaced."""
    if isinstance(row[field], LostText):
        raise DataError(
            f"{where}: field `{field}` is {row[field]}, expected a text; a spreadsheet program "
            "has replaced the text, so write the predictions again, as .tsv or JSONL."
        )


# --- ms-swift ---

Unicode = Annotated[str, expects("a text", is_text)]


class _Message(BaseModel, strict=True):
    role: Literal["system", "user", "assistant"]
    content: Annotated[str | None, expects("a text", lambda value: isinstance(value, str | None))]


def _is_list_of_one(value: object) -> bool:
    return isinstance(value, list) and len(value) == 1


class _SwiftRow(ReleaseRow):
    messages: Annotated[tuple[_Message, ...], Field(strict=False, min_length=1)]
    images: Annotated[list[Any], expects("a list of one image", _is_list_of_one)]


def ms_swift_prediction(row: Row, where: Where) -> Prediction:
    """The prediction in a row.

    The response is ``response``, or else the assistant's message, which is the reference in files
    that have both.
    """
    swift_row = parse_row(_SwiftRow, row, where)
    question = _last_question(swift_row.messages)
    if not question or not is_text(question):
        raise wrong(where, "messages", row["messages"], "a user's message with a question")
    image = swift_row.images[0]
    img_id = _stem(image.get("path") if isinstance(image, dict) else image)
    if not img_id:
        raise wrong(where, "images[0]", image, "a path that ends in <img_id>.jpg")
    last = swift_row.messages[-1]
    if "response" not in row and last.role != "assistant":
        expected = "the assistant's message at the end, or a field `response`"
        raise wrong(where, "messages", row["messages"], expected)
    response = one_response(where, "response", row.get("response", last.content))
    keys = {"img_id": img_id, "question": question}
    return prediction(where, keys, response, finish_in(row, where))


def _last_question(messages: Sequence[_Message]) -> str:
    """The text of the user's last message without the mark of its image; empty without one."""
    question = ""
    for message in messages:
        if message.role == "user":
            question = message.content or ""
    return question.replace("<image>", " ").strip()


def _stem(path: object) -> str:
    """The name of the file at ``path`` without its suffix; empty if it is not a path."""
    if not is_text(path):
        return ""
    # handles both separators: these paths come from other machines
    return PureWindowsPath(path).stem.strip()


# --- lmms-eval ---


class _Position(ReleaseRow):
    doc_id: Annotated[int, Field(ge=0)]
    target: Unicode
    input_media: tuple[Unicode, ...] = Field((), strict=False)


def lmms_eval_predictions(row: Row, where: Where) -> Iterator[Prediction]:
    """A prediction for each repeat of the question, which is an epoch.

    Responses are the raw ones if they differ from the filtered ones: then the line has ``resps``.
    lmms-eval omits the document, so a line is identified by ``doc_id``, its position among the
    task's documents; with ``target`` and the first medium, matching can detect that the documents
    are different ones.
    """
    field = "resps" if row.get("resps") is not None else "filtered_resps"
    if field not in row:
        raise wrong(where, field, None, f"the responses, among {names_in(row)}")
    place = parse_row(_Position, row, where)
    media = {"input_media": place.input_media[0]} if place.input_media else {}
    keys = {"doc_id": str(place.doc_id), "target": place.target, **media}
    for epoch, response in enumerate(responses_in(where, field, row[field]), start=1):
        yield prediction(where, keys, response, epoch=epoch)


# --- VLMEvalKit ---


def vlmevalkit_prediction(row: Row, where: Where) -> Prediction:
    """The prediction in a row; an empty cell of ``prediction`` is an empty response.

    ``index`` is the tool's sample id. ``sample_id``, ``img_id`` and ``image_path`` identify the
    sample better, if the dataset has such a column.
    """
    if "prediction" not in row:
        raise DataError(
            f"{where}: field `prediction` is missing, expected it among {names_in(row)}; call the "
            "column of responses `prediction` in the first row."
        )
    _require_text_kept(row, "prediction", where)
    response = row["prediction"]
    keys = identifying_texts(row, id="index", target="answer")
    image = row.get("image_path")
    if is_text(image) and image.strip() and not image.startswith("["):
        keys.setdefault("img_id", PureWindowsPath(image.strip()).stem)
    if not {"sample_id", "id", "question"} & keys.keys():
        raise wrong(where, "index", None, "it, or `sample_id`")
    return Prediction(where, keys, response)
