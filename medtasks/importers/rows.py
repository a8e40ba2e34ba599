"""Predictions in rows: ms-swift's lines, the harness's own sample files, and rows whose columns the user names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from medtasks.catalog.records import Where, is_text, wrong
from medtasks.core.errors import UsageError
from medtasks.data.sources import read_csv_rows, read_json_list, read_jsonl
from medtasks.importers.prediction import Prediction, content_of, one_response, optional_text

_ROLES = ("system", "user", "assistant")


def parse_ms_swift_line(row: Mapping[str, Any], where: Where) -> Prediction:
    """The prediction in a line with ``images``, ``messages`` and perhaps ``response``.

    The image id is the stem of the one image's path, the question the last user message without its ``<image>``.
    ``response`` takes precedence over the assistant's message, which in some files is the reference; so a
    ``response`` of null is an error.

    Raises:
        DataError: a field is missing or invalid.
    """
    messages = _messages(row, where)
    asked = [content for role, content in messages if role == "user"]
    question = asked[-1].replace("<image>", " ").strip() if asked else ""
    if not question:
        raise wrong(where, "messages", row["messages"], "a user's message with a question")
    keys = {"img_id": _img_id(row, where), "question": question}
    if "response" in row:
        if row["response"] is None:
            raise wrong(where, "response", "null", "the model's text, or no such field")
        return Prediction(where, None, keys, one_response(where, "response", row["response"]))
    role, content = messages[-1]
    if role != "assistant":
        raise wrong(where, "messages", row["messages"], "the assistant's message at the end, or a field `response`")
    return Prediction(where, None, keys, content)


def _messages(row: Mapping[str, Any], where: Where) -> list[tuple[str, str]]:
    found = row.get("messages")
    if not isinstance(found, list) or not found:
        raise wrong(where, "messages", found, "a list of messages")
    messages = []
    for number, message in enumerate(found):
        place = f"messages[{number}]"
        if not isinstance(message, dict):
            raise wrong(where, place, message, "an object with `role` and `content`")
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise wrong(where, f"{place}.role", role, f"one of {', '.join(_ROLES)}")
        if not is_text(content):
            raise wrong(where, f"{place}.content", content, "a text")
        messages.append((role, content))
    return messages


def _img_id(row: Mapping[str, Any], where: Where) -> str:
    images = row.get("images")
    if not isinstance(images, list) or len(images) != 1:
        raise wrong(where, "images", images, "a list of one image")
    path = images[0].get("path") if isinstance(images[0], dict) else images[0]
    # handles both separators: these paths come from other machines
    stem = PureWindowsPath(path).stem.strip() if is_text(path) else ""
    if not stem:
        raise wrong(where, "images[0]", images[0], "a path that ends in <img_id>.jpg")
    return stem


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
    return Prediction(where, None, _position(row, where), response)


def _position(row: Mapping[str, Any], where: Where) -> dict[str, str]:
    doc_id, target, media = row.get("doc_id"), row.get("target"), row.get("input_media")
    if isinstance(doc_id, bool) or not isinstance(doc_id, int) or doc_id < 0:
        raise wrong(where, "doc_id", doc_id, "the document's number, or `doc` with its sample_id")
    if not is_text(target):
        raise wrong(where, "target", target, "the document's reference answer, as a text")
    if media is not None and not (isinstance(media, list) and all(map(is_text, media))):
        raise wrong(where, "input_media", media, "a list of paths")
    return {"doc_id": str(doc_id), "target": target, **({"medium": media[0]} if media else {})}


_COLUMNS = ("sample_id", "response", "task", "img_id", "question")
_JUDGED = frozenset({"eval_json", "original"})
"""Fields of Kvasir-VQA-x1's ``*_eval.json``, in which ``answer`` is the reference; other files may differ."""


def read_columns(path: Path, layout: str, columns: Mapping[str, str]) -> list[Prediction]:
    """The predictions in the rows of ``path``; null means that a key is unknown, other columns are ignored.

    Args:
        path: the file.
        layout: ``jsonl``, ``json`` (one array) or ``csv`` (an empty cell is an empty response, or an unknown key).
        columns: the file's names for our columns, which are then required; by default they have our names.

    Raises:
        UsageError: a column is not one of ours.
        DataError: the file cannot be read, a column is missing or is not a text, or a row does not identify its sample.
    """
    for column in columns:
        if column not in _COLUMNS:
            raise UsageError(f"column {column!r} is unknown; choose from {', '.join(_COLUMNS)}.")
    names = {column: columns.get(column, column) for column in _COLUMNS}
    required = tuple(dict.fromkeys((names["response"], *columns.values())))
    return [_parsed(row, where, names, required) for where, row in _source_rows(path, layout, names["response"])]


def _source_rows(path: Path, layout: str, response: str) -> Iterator[tuple[Where, Mapping[str, Any]]]:
    if layout == "csv":
        for where, row in read_csv_rows(path):
            yield where, {name: cell if name == response or cell.strip() else None for name, cell in row.items()}
    else:
        for one in read_jsonl(path) if layout == "jsonl" else read_json_list(content_of(path), path.name):
            yield one.where, one.row


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
