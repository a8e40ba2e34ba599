"""Predictions in rows: lines of ms-swift and of lmms-eval, VLMEvalKit's tables, and columns that the user names."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from medtasks.catalog.records import ReleaseRow, Where, is_text, parse_row, text_field, wrong
from medtasks.core.errors import DataError, UsageError
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.core.schema import expects
from medtasks.data.sources import content_of, read_csv_rows


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


def _response(where: Where, field: str, found: object) -> str:
    """The one text in ``found``, which may be nested in lists; several repeats must be scored one at a time."""
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


def _known_texts(row: Mapping[str, Any], columns: Mapping[str, str], where: Where) -> dict[str, str]:
    """The texts of the ``columns`` (by the key that each is) that are neither missing nor null."""
    return {key: text_field(row, column, where) for key, column in columns.items() if row.get(column) is not None}


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
    last = given.messages[-1]
    response = last.content
    if "response" in row:
        if row["response"] is None:
            raise wrong(where, "response", "null", "the model's text, or no such field")
        response = _response(where, "response", row["response"])
    elif last.role != "assistant":
        raise wrong(where, "messages", row["messages"], "the assistant's message at the end, or a field `response`")
    return Prediction(where, None, {"img_id": stem, "question": question}, response)


class _Position(ReleaseRow):
    doc_id: Annotated[int, Field(ge=0)]
    target: Unicode
    input_media: tuple[Unicode, ...] = Field((), strict=False)


def parse_harness_line(row: Mapping[str, Any], where: Where) -> Prediction:
    """The prediction in a line of the harness, from the raw response if it differs from the filtered one.

    lmms-eval 0.7.3 omits the document from its lines (other versions may not), and ``resps`` if it equals
    ``filtered_resps``. Without a document, a line is identified by ``doc_id``, its position among the task's documents;
    with ``target`` and the first medium, matching can detect that the documents are different ones.
    """
    field = "resps" if row.get("resps") is not None else "filtered_resps"
    response = _response(where, field, row.get(field))
    doc = row.get("doc")
    if doc is not None:
        if not isinstance(doc, dict):
            raise wrong(where, "doc", doc, "the document as an object")
        keys = _known_texts(doc, {name: name for name in ("sample_id", "img_id", "question")}, where)
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
    response = names.pop("response")
    predictions = []
    for where, row in rows:
        for name in (response, *columns.values()):
            if name not in row:
                others = ", ".join(repr(other[:40]) for other in sorted(row)[:12])
                raise wrong(where, name, None, f"it among {others or 'no columns'}, or another name with --column")
        keys = _known_texts(row, names, where)
        sample_id = keys.pop("sample_id", None)
        if sample_id is None and not {"img_id", "question"} <= keys.keys():
            expected = f"a sample id, or both `{names['img_id']}` and `{names['question']}`"
            raise wrong(where, names["sample_id"], None, expected)
        if _JUDGED & row.keys():
            keys |= _known_texts(row, {"target": "answer"}, where)
        verdict = row.get("eval_json")
        if verdict is not None and not isinstance(verdict, dict):
            raise wrong(where, "eval_json", verdict, "a judge's verdict as an object")
        predictions.append(Prediction(where, sample_id, keys, _response(where, response, row[response]), verdict))
    return predictions


def read_vlmevalkit(path: Path) -> list[Prediction]:
    """The predictions in VLMEvalKit's ``.xlsx``, ``.tsv`` or ``.csv`` file; the format is detected from its content.

    ``index`` is the tool's sample id; ``sample_id``, ``img_id`` and ``image_path`` identify the sample better, if the
    dataset has such a column. An empty cell of ``prediction`` is an empty response.

    Raises:
        DataError: the file cannot be read, or a row lacks ``prediction`` or does not identify its sample.
    """
    data = content_of(path)
    predictions = []
    for where, row in _sheet(path, data) if data.startswith(b"PK") else read_csv_rows(path):
        if "prediction" not in row:
            raise wrong(where, "prediction", None, f"it among {', '.join(map(repr, sorted(row)[:12]))}")
        keys = identifying(row)
        sample_id = keys.pop("sample_id", None)
        image = row.get("image_path", "").strip()
        if image and "img_id" not in keys and not image.startswith("["):
            keys["img_id"] = PureWindowsPath(image).stem
        for key, column in (("id", "index"), ("target", "answer")):
            if row.get(column, "").strip():
                keys[key] = row[column].strip()
        if sample_id is None and not {"id", "question"} & keys.keys():
            raise wrong(where, "index", None, "it, or `sample_id`")
        predictions.append(Prediction(where, sample_id, keys, row["prediction"]))
    return predictions


def _sheet(path: Path, data: bytes) -> Iterator[tuple[Where, Mapping[str, str]]]:
    """The rows of a workbook's first sheet, by the names in its first row; ``line`` counts the sheet's rows."""
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > MAX_JSON_BYTES:
            raise DataError(f"{path}: has {unpacked:,} bytes unpacked, more than the limit of {MAX_JSON_BYTES:,}.")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(cell or "").strip() for cell in next(rows, ())]
        cells = []
        for row in rows:  # which may be 16,384 cells wide
            given = zip(names, row, strict=False)
            cells.append({name: str(cell) for name, cell in given if name and cell is not None})
    except DataError:
        raise
    except Exception as error:  # zipfile, XML or openpyxl may raise anything
        raise DataError(f"{path}: not a readable workbook ({error}); save it again, or as .tsv.") from error
    if not any(cells):
        raise DataError(f"{path}: its first sheet has no row below the header; write or fetch it again.")
    empty = dict.fromkeys(filter(None, names), "")
    for number, filled in enumerate(cells, start=2):
        if filled:
            yield Where(path.name, number, unit="row"), {**empty, **filled}
