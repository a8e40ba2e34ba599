"""Rows with columns: JSONL, JSON and CSV whose columns the user names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where, wrong
from medtasks.core.errors import UsageError
from medtasks.data.sources import read_csv_rows, read_json_list, read_jsonl
from medtasks.importers.prediction import Prediction, content_of, one_response, optional_text

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
    return predictions_in_rows(_source_rows(path, layout, columns.get("response", "response")), columns)


def predictions_in_rows(
    rows: Iterable[tuple[Where, Mapping[str, Any]]], columns: Mapping[str, str]
) -> list[Prediction]:
    """The predictions in rows with their places; arguments and errors as in :func:`read_columns`."""
    for column in columns:
        if column not in _COLUMNS:
            raise UsageError(f"column {column!r} is unknown; choose from {', '.join(_COLUMNS)}.")
    names = {column: columns.get(column, column) for column in _COLUMNS}
    required = tuple(dict.fromkeys((names["response"], *columns.values())))
    return [_parsed(row, where, names, required) for where, row in rows]


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
