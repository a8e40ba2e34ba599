"""Files of predictions: recognising their layout, and reading them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import read_lines
from medtasks.data.csv_rows import read_csv_rows, separator_of
from medtasks.data.json_rows import read_json_rows
from medtasks.data.lost_text import LostText, text_or_lost
from medtasks.data.parquet import read_parquet
from medtasks.data.sources import (
    ZIP_MARK,
    SourceRow,
    content_of,
    decoded,
    encoding_of,
    first_bytes,
    read_jsonl,
)
from medtasks.data.table_formats import PARQUET_MARK, archive_members, refuse_unreadable
from medtasks.data.workbooks import is_cut, read_workbook
from medtasks.importers.inspect_logs import read_inspect
from medtasks.importers.layouts import (
    lmms_eval_predictions,
    ms_swift_prediction,
    predictions_in_rows,
    vlmevalkit_prediction,
)
from medtasks.importers.predictions import End, Prediction

LAYOUTS: Mapping[str, str] = {
    "ms-swift": "ms-swift's JSONL",
    "jsonl": "JSONL with columns",
    "json": "a JSON array with columns",
    "csv": "CSV with columns",
    "parquet": "Parquet with columns",
    "lmms-eval": "a sample file of lmms-eval",
    "vlmevalkit": "a prediction file of VLMEvalKit",
    "inspect": "an Inspect log",
}
"""Layouts, with their names for users."""

_SAMPLES = re.compile(r"_samples_(?P<task>[A-Za-z0-9_]+)\.jsonl$")


def task_in_name(path: Path) -> str | None:
    """The task that lmms-eval wrote into the name of a sample file."""
    match = _SAMPLES.search(path.name)
    return match["task"] if match else None


# --- reading ---


def read_predictions(path: Path, layout: str, columns: Mapping[str, str]) -> list[Prediction]:
    """The predictions in ``path``, in the order of its lines, of all epochs.

    ``columns`` are the file's names for ``sample_id``, ``response``, ``task``, ``img_id`` and
    ``question`` in the layouts with columns; by default the same. Errors name file, line and field.
    """
    if layout in _TABLES:
        rows = _TABLES[layout](path, columns.get("response", "response"))
        return predictions_in_rows(rows, columns)
    if columns:
        fix = f"leave the columns out, or choose one of {', '.join(_TABLES)}"
        raise UsageError(f"layout {layout} has its own fields; {fix}.")
    predictions = [*_LOGS[layout](path)]
    if not predictions:
        fix = "write it with its samples (`--log-samples`)"
        raise DataError(f"{path}: the log has no samples; {fix}.")
    return predictions


def _csv_rows(path: Path, response_column: str) -> Iterator[SourceRow]:
    """The rows of a CSV file, in which cells of white space alone are empty.

    An empty cell means that a key, such as the sample's id, is unknown. The column of responses is
    left as it is, because white space may be all that the model wrote; but an error value of a
    spreadsheet program is a `LostText`.
    """
    for where, row in read_csv_rows(path):
        cells: dict[str, str | LostText] = {}
        for name, cell in row.items():
            if name == response_column:
                cells[name] = text_or_lost(cell)
            else:
                cells[name] = cell if cell.strip() else ""
        yield SourceRow(where, cells)


def _json_rows(path: Path, response_column: str) -> Iterable[SourceRow]:
    """The rows of a JSON or JSONL file.

    A file of one object without a response is read as a wrapper around a list of rows.
    """
    return read_json_rows(path, is_row=lambda row: response_column in row)


def _parquet_rows(path: Path, response_column: str) -> Iterator[SourceRow]:
    """The rows of a Parquet file, whose cells are typed, so no column is special."""
    del response_column
    return read_parquet(path)


def _read_ms_swift(path: Path) -> Iterator[Prediction]:
    return (ms_swift_prediction(row, where) for where, row in read_jsonl(path))


def _read_lmms_eval(path: Path) -> Iterator[Prediction]:
    return chain.from_iterable(lmms_eval_predictions(row, where) for where, row in read_jsonl(path))


def _read_vlmevalkit(path: Path) -> Iterator[Prediction]:
    """The predictions in VLMEvalKit's ``.xlsx``, ``.tsv`` or ``.csv`` file."""
    if first_bytes(path) != ZIP_MARK:
        for where, row in _csv_rows(path, "prediction"):
            yield vlmevalkit_prediction(row, where)
        return
    for where, row in read_workbook(path):
        prediction = vlmevalkit_prediction(row, where)
        if is_cut(prediction.response):
            prediction = replace(prediction, end=End.CELL_LIMIT)
        yield prediction


_TABLES: Mapping[str, Callable[[Path, str], Iterable[SourceRow]]] = {
    "jsonl": _json_rows,
    "json": _json_rows,
    "csv": _csv_rows,
    "parquet": _parquet_rows,
}
"""Readers of layouts with columns, which are called with the name of the column of responses."""
_LOGS: Mapping[str, Callable[[Path], Iterable[Prediction]]] = {
    "ms-swift": _read_ms_swift,
    "lmms-eval": _read_lmms_eval,
    "vlmevalkit": _read_vlmevalkit,
    "inspect": read_inspect,
}


# --- recognising ---

_EXPECTED = "a file of predictions"


def recognise(path: Path) -> str:
    """The layout of the file ``path``; a :class:`UsageError` if it is none of ours."""
    first = first_bytes(path)
    refuse_unreadable(path, first, _EXPECTED)
    if first == PARQUET_MARK:
        return "parquet"
    layout = _layout_of_content(path, first)
    if layout is None:
        raise UsageError(
            f"{path}: its layout is not recognised, expected JSON, JSONL, CSV, Parquet, or a file "
            "of VLMEvalKit or Inspect; convert it, or name its layout with --from "
            f"({', '.join(LAYOUTS)})."
        )
    return layout


def _layout_of_content(path: Path, first: bytes) -> str | None:
    """The layout of an archive or text file, whose ``first`` bytes are passed; None if unknown."""
    if first == ZIP_MARK:
        return _layout_of_archive(path)
    return _layout_of_text(path, encoding_of(first))


def _layout_of_archive(path: Path) -> str | None:
    """The layout of a ZIP archive by its members; None if it is none of ours."""
    names = archive_members(path, _EXPECTED)
    if "xl/workbook.xml" in names:
        return "vlmevalkit"
    if any(name.startswith(("samples/", "_journal/")) for name in names):
        return "inspect"
    return None


def _layout_of_text(path: Path, encoding: str) -> str | None:
    """The layout of a text file by its first two lines; None if it is none of ours."""
    opening = _opening(path, encoding)
    if not opening:
        raise DataError(f"{path}: the file is empty; write or fetch it again.")
    first = opening[0].strip()
    if first.startswith("["):
        return "json"
    if first.startswith("{"):
        return _layout_of_object(path, first)
    return _layout_of_table(opening)


def _layout_of_table(opening: Sequence[str]) -> str | None:
    """The layout of a table by the names in its header; None if the text is prose."""
    separator, begin = separator_of("\n".join(opening))
    header = opening[1:] if begin else opening[:1]
    names: set[str] = set()
    for line in header:
        names.update(name.strip().strip('"') for name in line.split(separator))
    if "prediction" in names and (separator == "\t" or "index" in names):
        return "vlmevalkit"
    if separator == "\t" and "response" not in names:  # prose may have tabs
        return None
    return "csv" if len(names) > 1 else None


def _opening(path: Path, encoding: str) -> list[str]:
    """The first two lines that are not blank, without their ends."""
    if encoding != "utf-8-sig":
        lines = iter(decoded(content_of(path), path.name).splitlines())
        return [*islice(filter(str.strip, lines), 2)]
    with reading(path, "check the path"):  # lazily: a JSON file may be one long line
        texts = (line.decode(encoding, errors="replace") for line in read_lines(path))
        return [text.rstrip("\r\n") for text in islice(filter(str.strip, texts), 2)]


def _layout_of_object(path: Path, line: str) -> str:
    """The layout of a JSON file by its first object, which begins with ``line``."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):  # several lines, or damaged
        try:
            row = next(read_jsonl(path)).row
        except DataError:  # the layout's reader reports where
            return "jsonl" if path.suffix == ".jsonl" else "inspect"
    if {"results", "configs"} <= row.keys():
        raise UsageError(
            f"{path}: has lmms-eval's results without the responses; give its "
            "*_samples_<task>.jsonl files, which --log_samples writes, one by one."
        )
    if {"eval", "samples"} <= row.keys():
        return "inspect"
    if "messages" in row:
        return "ms-swift"
    return "lmms-eval" if "filtered_resps" in row else "jsonl"
