"""Predictions in rows: ms-swift's lines, the harness's own sample files, and rows whose columns the user names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from medtasks.catalog.records import ReleaseRow, Where, is_text, parse_row, text_field, wrong
from medtasks.core.errors import UsageError
from medtasks.core.schema import expects


@dataclass(frozen=True)
class Prediction:
    """One response, its place in the file, and what identifies the sample that it answers.

    ``keys`` may have ``img_id`` and ``question``, ``task``, ``id`` (the other tool's sample id), ``target`` (its
    reference answer), and for a harness line ``doc_id`` (position among the task's documents) and ``medium``.
    ``verdict`` is a judge's verdict on the response, ``failed`` the reason why there is no response.
    """

    where: Where
    sample_id: str | None
    keys: Mapping[str, str]
    response: str
    verdict: Mapping[str, Any] | None = None
    failed: str | None = None


def identifying(row: Mapping[str, Any]) -> dict[str, str]:
    """The texts in another tool's row that identify its sample."""
    names = ("sample_id", "img_id", "question", "task")
    return {name: row[name].strip() for name in names if is_text(row.get(name)) and row[name].strip()}


def one_response(where: Where, field: str, found: object) -> str:
    """The one text in ``found``, which may be nested in lists; an empty text is a response too.

    Raises:
        DataError: no text, several texts (repeats must be scored one at a time), or another type.
    """
    texts, waiting = [], [found]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif is_text(item):
            texts.append(item)
        else:
            raise wrong(where, field, item, "the text of a response")
    if len(texts) != 1:
        raise wrong(where, field, found, f"one response for the sample, not {len(texts)}")
    return texts[0]


def optional_text(row: Mapping[str, Any], field: str, where: Where) -> str | None:
    """The text of ``field``; None if it is missing or null.

    Raises:
        DataError: the field is not a text, or is blank.
    """
    return None if row.get(field) is None else text_field(row, field, where)


Unicode = Annotated[str, expects("a text", is_text)]


class _Message(BaseModel, strict=True):
    role: Literal["system", "user", "assistant"]
    content: Unicode


class _SwiftRow(ReleaseRow):
    messages: Annotated[tuple[_Message, ...], Field(strict=False, min_length=1)]
    images: Annotated[list[Any], expects("a list of one image", lambda value: type(value) is list and len(value) == 1)]


def parse_ms_swift_line(row: Mapping[str, Any], where: Where) -> Prediction:
    """The prediction in a line with ``images``, ``messages`` and perhaps ``response``.

    The image id is the stem of the one image's path, the question the last user message without its ``<image>``.
    ``response`` takes precedence over the assistant's message, which in some files is the reference; so a
    ``response`` of null is an error.
    """
    given = parse_row(_SwiftRow, row, where)
    asked = [message.content for message in given.messages if message.role == "user"]
    question = asked[-1].replace("<image>", " ").strip() if asked else ""
    if not question:
        raise wrong(where, "messages", row["messages"], "a user's message with a question")
    image = given.images[0]
    path = image.get("path") if isinstance(image, dict) else image
    # handles both separators: these paths come from other machines
    stem = PureWindowsPath(path).stem.strip() if is_text(path) else ""
    if not stem:
        raise wrong(where, "images[0]", image, "a path that ends in <img_id>.jpg")
    keys = {"img_id": stem, "question": question}
    if "response" in row:
        if row["response"] is None:
            raise wrong(where, "response", "null", "the model's text, or no such field")
        return Prediction(where, None, keys, one_response(where, "response", row["response"]))
    last = given.messages[-1]
    if last.role != "assistant":
        raise wrong(where, "messages", row["messages"], "the assistant's message at the end, or a field `response`")
    return Prediction(where, None, keys, last.content)


class _Position(ReleaseRow):
    doc_id: Annotated[int, Field(ge=0)]
    target: Unicode
    input_media: tuple[Unicode, ...] = Field((), strict=False)


def parse_harness_line(row: Mapping[str, Any], where: Where) -> Prediction:
    """The prediction in a line of the harness, from the raw response if it differs from the filtered one.

    lmms-eval 0.7.3 omits the document from its lines (other versions may not), and ``resps`` if it equals
    ``filtered_resps``. Without a document, a line is identified by ``doc_id``, its position among the task's documents;
    with ``target`` and the first medium, matching can detect that the documents are different ones.

    Raises:
        DataError: a field is missing or invalid, or the sample was answered more than once.
    """
    field = "resps" if row.get("resps") is not None else "filtered_resps"
    response = one_response(where, field, row.get(field))
    doc = row.get("doc")
    if doc is not None:
        if not isinstance(doc, dict):
            raise wrong(where, "doc", doc, "the document as an object")
        named = {name: optional_text(doc, name, where) for name in ("sample_id", "img_id", "question")}
        keys = {name: text for name, text in named.items() if text is not None}
        sample_id = keys.pop("sample_id", None)
        if sample_id is not None or len(keys) == 2:
            return Prediction(where, sample_id, keys, response)
    place = parse_row(_Position, row, where)
    media = {"medium": place.input_media[0]} if place.input_media else {}
    return Prediction(where, None, {"doc_id": str(place.doc_id), "target": place.target, **media}, response)


_COLUMNS = ("sample_id", "response", "task", "img_id", "question")
_JUDGED = frozenset({"eval_json", "original"})
"""Fields of Kvasir-VQA-x1's ``*_eval.json``, in which ``answer`` is the reference; other files may differ."""


def predictions_in_rows(
    rows: Iterable[tuple[Where, Mapping[str, Any]]], columns: Mapping[str, str]
) -> list[Prediction]:
    """The predictions in rows with their places; null means that a key is unknown, other columns are ignored.

    ``columns`` are the names of our columns in the rows, which are then required; by default they have our names.

    Raises:
        UsageError: a column is not one of ours.
        DataError: a column is missing or is not a text, or a row does not identify its sample.
    """
    for column in columns:
        if column not in _COLUMNS:
            raise UsageError(f"column {column!r} is unknown; choose from {', '.join(_COLUMNS)}.")
    names = {column: columns.get(column, column) for column in _COLUMNS}
    required = tuple(dict.fromkeys((names["response"], *columns.values())))
    return [_parsed(row, where, names, required) for where, row in rows]


def _parsed(row: Mapping[str, Any], where: Where, names: Mapping[str, str], required: tuple[str, ...]) -> Prediction:
    for name in required:
        if name not in row:
            others = ", ".join(repr(other[:40]) for other in sorted(row)[:12])
            raise wrong(where, name, None, f"it among {others or 'no columns'}, or another name with --column")
    texts = {column: optional_text(row, name, where) for column, name in names.items() if column != "response"}
    sample_id = texts.pop("sample_id")
    keys = {column: text for column, text in texts.items() if text is not None}
    if sample_id is None and not {"img_id", "question"} <= set(keys):
        expected = f"a sample id, or both `{names['img_id']}` and `{names['question']}`"
        raise wrong(where, names["sample_id"], None, expected)
    if _JUDGED & row.keys() and (target := optional_text(row, "answer", where)) is not None:
        keys["target"] = target
    verdict = row.get("eval_json")
    if verdict is not None and not isinstance(verdict, dict):
        raise wrong(where, "eval_json", verdict, "a judge's verdict as an object")
    response = names["response"]
    return Prediction(where, sample_id, keys, one_response(where, response, row[response]), verdict)
