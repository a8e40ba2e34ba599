"""Rows with columns: JSONL and CSV whose columns the user names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.data.records import Where
from medtasks.data.records.base import wrong
from medtasks.data.sources import read_csv_rows
from medtasks.errors import UsageError
from medtasks.results.foreign.prediction import Prediction, one_response, optional_text

_MEANINGS = ("sample_id", "response", "task", "img_id", "question")
_JUDGED = frozenset({"eval_json", "original"})
"""Fields of Kvasir-VQA-x1's ``*_eval.json``, in which ``answer`` is the reference; elsewhere it may be anything."""


@dataclass(frozen=True)
class Columns:
    """The file's name of each column, and the names that the user gave: these columns are required."""

    names: Mapping[str, str]
    named: tuple[str, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that every row must have."""
        return tuple(dict.fromkeys((self.names["response"], *self.named)))


def column_names(columns: Mapping[str, str]) -> Columns:
    """``columns`` checked, with default names for the rest.

    Raises:
        UsageError: a column that is not one of ours.
    """
    for meaning in columns:
        if meaning not in _MEANINGS:
            raise UsageError(f"column {meaning!r} is unknown; choose from {', '.join(_MEANINGS)}.")
    return Columns({meaning: columns.get(meaning, meaning) for meaning in _MEANINGS}, tuple(columns.values()))


def parse_row(row: Mapping[str, Any], columns: Columns, where: Where) -> Prediction:
    """The prediction in a row; other columns are ignored, null means that a key is not known.

    Raises:
        DataError: a column is missing or is not a text, or nothing in the row identifies its sample.
    """
    for name in columns.required:
        if name not in row:
            others = ", ".join(repr(other[:40]) for other in sorted(row)[:12])
            raise wrong(where, name, None, f"it beside {others or 'nothing'}, or another name in the mapping")
    texts = {
        meaning: optional_text(row, columns.names[meaning], where) for meaning in _MEANINGS if meaning != "response"
    }
    sample_id = texts.pop("sample_id")
    keys = {meaning: text for meaning, text in texts.items() if text is not None}
    if sample_id is None and not {"img_id", "question"} <= set(keys):
        expected = f"a sample id, or both `{columns.names['img_id']}` and `{columns.names['question']}`"
        raise wrong(where, columns.names["sample_id"], None, expected)
    if _JUDGED & row.keys():
        keys |= {"target": target} if (target := optional_text(row, "answer", where)) is not None else {}
    name = columns.names["response"]
    return Prediction(where, sample_id, keys, one_response(where, name, row[name]), _verdict(row, where))


def _verdict(row: Mapping[str, Any], where: Where) -> Mapping[str, Any] | None:
    verdict = row.get("eval_json")
    if verdict is not None and not isinstance(verdict, dict):
        raise wrong(where, "eval_json", verdict, "a judge's verdict as an object")
    return verdict


def read_csv(path: Path, columns: Columns) -> list[Prediction]:
    """Predictions of a CSV file with a header row; an empty cell is an empty response, or a key that is not known.

    Raises:
        DataError: as :func:`parse_row` and :func:`medtasks.data.sources.read_csv_rows`.
    """
    predictions = []
    for where, row in read_csv_rows(path):
        answer = columns.names["response"]
        known = {name: cell if name == answer or cell.strip() else None for name, cell in row.items()}
        predictions.append(parse_row(known, columns, where))
    return predictions
