"""The layouts of prediction files: recognising and reading them."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from medtasks.catalog.records import ReleaseRow, Where, is_text, parse_row, text_field, wrong
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import MAX_JSON_BYTES, check_regular, read_lines
from medtasks.core.schema import expects
from medtasks.data.release import open_archive, read_member
from medtasks.data.sources import SourceRow, content_of, read_csv_rows, read_json, read_jsonl, separator_of

LAYOUTS: Mapping[str, str] = {
    "ms-swift": "ms-swift's JSONL",
    "jsonl": "JSONL with columns",
    "json": "a JSON array with columns",
    "csv": "CSV with columns",
    "lmms-eval": "a sample file of lmms-eval",
    "vlmevalkit": "a prediction file of VLMEvalKit",
    "inspect": "an Inspect log",
}
"""Layouts, with their names for users."""

_SAMPLES = re.compile(r"_samples_(?P<task>[A-Za-z0-9_]+)\.jsonl$")

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Prediction:
    """One response, its place in the file, and what identifies the sample that it answers.

    ``keys`` may have ``sample_id``, ``img_id`` and ``question``, ``task``, ``id`` (the other tool's sample id),
    ``target`` (its reference answer), and for a harness line ``doc_id`` (position among the task's documents) and
    ``input_media``. ``verdict`` is a judge's verdict on the response, ``failed`` the reason why there is no response.
    """

    where: Where
    keys: Mapping[str, str]
    response: str
    verdict: Mapping[str, Any] | None = None
    failed: str | None = None


def read_predictions(path: Path, layout: str, columns: Mapping[str, str]) -> list[Prediction]:
    """The predictions in ``path``, in the order of its lines.

    ``columns`` are the file's names for ``sample_id``, ``response``, ``task``, ``img_id`` and ``question`` in the
    layouts with columns; by default the same. Errors name file, line and field.
    """
    if layout in ("jsonl", "json", "csv"):
        rows = _cells(path, columns.get("response", "response")) if layout == "csv" else read_jsonl(path)
        return predictions_in_rows(rows, columns)
    if columns:
        raise UsageError(f"layout {layout} has its own fields; leave the columns out, or choose jsonl, json or csv.")
    readers: dict[str, tuple[Callable[[Path], Iterable[SourceRow]], Callable[[Row, Where], Prediction]]] = {
        "ms-swift": (read_jsonl, _of_ms_swift),
        "lmms-eval": (read_jsonl, _of_lmms_eval),
        "vlmevalkit": (_vlmevalkit_rows, _of_vlmevalkit),
        "inspect": (_inspect_samples, _of_inspect),
    }
    read, parse = readers[layout]
    predictions = [parse(row, where) for where, row in read(path)]
    if not predictions:
        raise DataError(f"{path}: the log has no samples; write it with its samples (`--log-samples`).")
    return predictions


def _cells(path: Path, response: str) -> Iterator[SourceRow]:
    """The rows of a CSV file: an empty cell is an empty response, or an unknown key."""
    for where, row in read_csv_rows(path):
        yield SourceRow(where, {name: cell if name == response or cell.strip() else None for name, cell in row.items()})


def recognise(path: Path) -> str:
    """The layout of the file ``path``; a :class:`UsageError` if it is none of ours."""
    layout: str | None = None
    with reading(path, "check the path"):
        check_regular(path)
        if zipfile.is_zipfile(path):
            with open_archive(path) as archive:
                if "xl/workbook.xml" in archive.namelist():
                    layout = "vlmevalkit"
                elif any(name.startswith(("samples/", "_journal/")) for name in archive.namelist()):
                    layout = "inspect"
        else:
            layout = _of_text(path)
    if layout is None:
        raise UsageError(
            f"{path}: its layout is not recognised, expected JSON, JSONL, CSV, or a file of "
            f"VLMEvalKit or Inspect; convert it, or name its layout with --from ({', '.join(LAYOUTS)})."
        )
    return layout


def task_in_name(path: Path) -> str | None:
    """The task that lmms-eval wrote into the name of a sample file."""
    match = _SAMPLES.search(path.name)
    return match["task"] if match else None


def _of_text(path: Path) -> str | None:
    # lazily: a JSON file may be one long line
    lines = (line.decode("utf-8-sig", errors="replace").strip() for line in read_lines(path))
    first = next(filter(None, lines), None)
    if first is None:
        raise DataError(f"{path}: the file is empty; write or fetch it again.")
    if first.startswith("["):
        return "json"
    if first.startswith("{"):
        try:
            row = json.loads(first)
        except (ValueError, RecursionError):  # several lines, or damaged: the layout's reader reports where
            return "jsonl" if path.suffix == ".jsonl" else "inspect"
        if {"eval", "samples"} <= row.keys():
            return "inspect"
        if "messages" in row:
            return "ms-swift"
        return "lmms-eval" if "filtered_resps" in row else "jsonl"
    separator = separator_of(first)
    names = {name.strip().strip('"') for name in first.split(separator)}
    if "prediction" in names and (separator == "\t" or "index" in names):
        return "vlmevalkit"
    return "csv" if separator != "\t" and len(names) > 1 else None


def _response(where: Where, field: str, found: object) -> str:
    """The text in ``found``, which may be nested in lists of one; several repeats must be scored one at a time."""
    while isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, list):
        raise wrong(where, field, found, f"one response for the sample, not {len(found)}")
    if not is_text(found):
        raise wrong(where, field, found, "the text of a response")
    return found


def _known_texts(row: Row, columns: Mapping[str, str], where: Where) -> dict[str, str]:
    """The texts of the ``columns`` (by the key that each is) that are neither missing nor null."""
    return {key: text_field(row, column, where) for key, column in columns.items() if row.get(column) is not None}


def _identifying(row: Row, **others: str) -> dict[str, str]:
    """The texts in another tool's row that identify its sample, and those of ``others`` (its names by our keys)."""
    names = {name: name for name in ("sample_id", "img_id", "question", "task")} | others
    return {key: row[name].strip() for key, name in names.items() if is_text(row.get(name)) and row[name].strip()}


Unicode = Annotated[str, expects("a text", is_text)]


class _Message(BaseModel, strict=True):
    role: Literal["system", "user", "assistant"]
    content: Unicode


class _SwiftRow(ReleaseRow):
    messages: Annotated[tuple[_Message, ...], Field(strict=False, min_length=1)]
    images: Annotated[list[Any], expects("a list of one image", lambda value: type(value) is list and len(value) == 1)]


def _of_ms_swift(row: Row, where: Where) -> Prediction:
    """``response`` takes precedence over the assistant's message, which in some files is the reference; so a
    ``response`` of null is an error."""
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
    if "response" not in row and last.role != "assistant":
        raise wrong(where, "messages", row["messages"], "the assistant's message at the end, or a field `response`")
    response = row.get("response", last.content)
    if response is None:
        raise wrong(where, "response", "null", "the model's text, or no such field")
    return Prediction(where, {"img_id": stem, "question": question}, _response(where, "response", response))


class _Position(ReleaseRow):
    doc_id: Annotated[int, Field(ge=0)]
    target: Unicode
    input_media: tuple[Unicode, ...] = Field((), strict=False)


def _of_lmms_eval(row: Row, where: Where) -> Prediction:
    """From the raw response if it differs from the filtered one: then the line has ``resps``.

    lmms-eval omits the document, so a line is identified by ``doc_id``, its position among the task's documents; with
    ``target`` and the first medium, matching can detect that the documents are different ones.
    """
    field = "resps" if row.get("resps") is not None else "filtered_resps"
    response = _response(where, field, row.get(field))
    place = parse_row(_Position, row, where)
    media = {"input_media": place.input_media[0]} if place.input_media else {}
    return Prediction(where, {"doc_id": str(place.doc_id), "target": place.target, **media}, response)


_COLUMNS = ("sample_id", "response", "task", "img_id", "question")
_JUDGED = frozenset({"eval_json", "original"})
"""Fields of Kvasir-VQA-x1's ``*_eval.json``, in which ``answer`` is the reference; other files may differ."""


def predictions_in_rows(rows: Iterable[SourceRow], columns: Mapping[str, str]) -> list[Prediction]:
    """The predictions in rows with their places; null means that a key is unknown, other columns are ignored.

    ``columns`` are the names of our columns in the rows, which are then required; by default they have our names.
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
        if "sample_id" not in keys and not {"img_id", "question"} <= keys.keys():
            expected = f"a sample id, or both `{names['img_id']}` and `{names['question']}`"
            raise wrong(where, names["sample_id"], None, expected)
        if _JUDGED & row.keys():
            keys |= _known_texts(row, {"target": "answer"}, where)
        verdict = row.get("eval_json")
        if verdict is not None and not isinstance(verdict, dict):
            raise wrong(where, "eval_json", verdict, "a judge's verdict as an object")
        predictions.append(Prediction(where, keys, _response(where, response, row[response]), verdict))
    return predictions


def _vlmevalkit_rows(path: Path) -> list[SourceRow]:
    """The rows of VLMEvalKit's ``.tsv``, ``.csv`` or ``.xlsx`` file, the first sheet by the names in its first row."""
    data = content_of(path)
    if not data.startswith(b"PK"):
        return read_csv_rows(path)
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    found = []
    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(cell or "").strip() for cell in next(rows, ())]
        empty = dict.fromkeys(filter(None, names), "")
        for number, row in enumerate(rows, start=2):  # which may be 16,384 cells wide
            given = zip(names, row, strict=False)
            cells = empty | {name: str(cell) for name, cell in given if name and cell is not None}
            if cells != empty:
                found.append(SourceRow(Where(path.name, number, unit="row"), cells))
    except Exception as error:  # zipfile, XML or openpyxl may raise anything
        raise DataError(f"{path}: not a readable workbook ({error}); save it again, or as .tsv.") from error
    if not found:
        raise DataError(f"{path}: its first sheet has no row below the header; write or fetch it again.")
    return found


def _of_vlmevalkit(row: Row, where: Where) -> Prediction:
    """``index`` is the tool's sample id; ``sample_id``, ``img_id`` and ``image_path`` identify the sample better, if
    the dataset has such a column. An empty cell of ``prediction`` is an empty response."""
    if "prediction" not in row:
        raise wrong(where, "prediction", None, f"it among {', '.join(map(repr, sorted(row)[:12]))}")
    keys = _identifying(row, id="index", target="answer")
    image = row.get("image_path", "").strip()
    if image and not image.startswith("["):
        keys.setdefault("img_id", PureWindowsPath(image).stem)
    if not {"sample_id", "id", "question"} & keys.keys():
        raise wrong(where, "index", None, "it, or `sample_id`")
    return Prediction(where, keys, row["prediction"])


# --- Inspect (`inspect eval`): its ``.eval`` archives and its ``.json`` files ---

_ZSTANDARD = 93


def _inspect_samples(path: Path) -> Iterator[SourceRow]:
    if zipfile.is_zipfile(path):
        with open_archive(path) as archive:
            for name in sorted(archive.namelist()):
                if name.startswith("samples/") and name.endswith(".json"):
                    yield from read_json(_member(path, archive, name), f"{path.name}/{name}")
        return
    samples = next(read_jsonl(path)).row.get("samples")
    if not isinstance(samples, list):
        raise DataError(f"{path}: has no list `samples`, so it is not an Inspect log; choose another layout.")
    for number, sample in enumerate(samples, start=1):
        where = Where(path.name, number, unit="row")
        if not isinstance(sample, dict):
            raise wrong(where, "samples", sample, "a sample as an object")
        yield SourceRow(where, sample)


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member; Inspect compresses with Zstandard, which ``zipfile`` supports from Python 3.14."""
    member = archive.getinfo(name)
    if member.compress_type != _ZSTANDARD:
        return read_member(archive, name)
    import pyarrow as pa  # type: ignore[import-untyped]

    member.compress_type, member.file_size = zipfile.ZIP_STORED, member.compress_size  # to read it as it is
    member.CRC = None  # type: ignore[assignment]  # that of the unpacked content
    packed = pa.BufferReader(read_member(archive, name))
    try:
        with pa.CompressedInputStream(packed, "zstd") as unpacked:
            data: bytes = unpacked.read(MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: member {name} is damaged ({error}); fetch the log again.") from error
    if len(data) > MAX_JSON_BYTES:
        raise DataError(f"{path}: member {name} has more than the {MAX_JSON_BYTES:,} bytes allowed.")
    return data


def _of_inspect(row: Row, where: Where) -> Prediction:
    """A sample is identified by ``sample_id`` in its metadata, its id or its input. One that ended in an error has no
    response and counts as failed."""
    if row.get("epoch", 1) != 1:
        raise wrong(where, "epoch", row["epoch"], "1; score the epochs one by one")
    metadata, name, asked = row.get("metadata"), row.get("id"), row.get("input")
    if isinstance(asked, list):  # messages, of which the user's last one has the question
        users = [message for message in asked if isinstance(message, dict) and message.get("role") == "user"]
        asked = users[-1].get("content") if users else None
    keys = _identifying({"question": _text(asked), "target": row.get("target")}, target="target")
    keys |= _identifying(metadata) if isinstance(metadata, dict) else {}
    if not isinstance(name, bool) and isinstance(name, (str, int)):
        keys["id"] = str(name)
    if (error := row.get("error")) is not None:
        reason = error.get("message") if isinstance(error, dict) else error
        return Prediction(where, keys, "", failed=str(reason or "error"))
    output: Any = row.get("output")
    try:
        response = _text(output["choices"][0]["message"]["content"])
    except (TypeError, LookupError):
        response = None
    if response is None:
        raise wrong(where, "output", output, "the model's message in `choices`")
    return Prediction(where, keys, response)


def _text(content: Any) -> str | None:
    """A message's text, which may be in parts; None if there is none."""
    if is_text(content):
        return content
    parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [part for part in parts if is_text(part)]
    return "\n".join(texts) if texts else None
