"""The layouts of prediction files: recognising and reading them."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import check_regular, read_lines
from medtasks.data.archive import open_archive
from medtasks.data.sources import read_csv_rows, read_jsonl, separator_of
from medtasks.importers.inspect_log import read_inspect
from medtasks.importers.rows import (
    Prediction,
    parse_harness_line,
    parse_ms_swift_line,
    predictions_in_rows,
    read_vlmevalkit,
)

Layout = Literal["ms-swift", "jsonl", "json", "csv", "lmms-eval", "vlmevalkit", "inspect"]
LAYOUTS: Mapping[Layout, str] = {
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


def read_predictions(path: Path, layout: Layout, columns: Mapping[str, str]) -> list[Prediction]:
    """The predictions in ``path``, in the order of its lines.

    Args:
        path: the file.
        layout: ``ms-swift`` (as the Kvasir-VQA-x1 authors publish theirs), ``lmms-eval`` (the harness's
            ``*_samples_<task>.jsonl``), ``vlmevalkit`` (its spreadsheets), ``inspect`` (logs of Inspect), or rows with
            columns: ``jsonl``, ``json`` (one array, such as Kvasir-VQA-x1's ``*_eval.json``), ``csv``.
        columns: for rows with columns, the file's names for ``sample_id``, ``response``, ``task``, ``img_id`` and
            ``question``; by default the same.

    Raises:
        UsageError: a column is unknown, or columns are given for a layout that has its own.
        DataError: the file cannot be read, has no rows, or a row is not in the layout; names file, line and field.
    """
    if layout in ("jsonl", "json"):
        return predictions_in_rows(read_jsonl(path), columns)
    if layout == "csv":
        return predictions_in_rows(_cells(path, columns.get("response", "response")), columns)
    if columns:
        raise UsageError(f"layout {layout} has its own fields; leave the columns out, or choose jsonl, json or csv.")
    if layout in ("vlmevalkit", "inspect"):
        return read_vlmevalkit(path) if layout == "vlmevalkit" else read_inspect(path)
    parse = parse_ms_swift_line if layout == "ms-swift" else parse_harness_line
    return [parse(row, where) for where, row in read_jsonl(path)]


def _cells(path: Path, response: str) -> Iterator[tuple[Where, Mapping[str, Any]]]:
    """The rows of a CSV file: an empty cell is an empty response, or an unknown key."""
    for where, row in read_csv_rows(path):
        yield where, {name: cell if name == response or cell.strip() else None for name, cell in row.items()}


def recognise(path: Path) -> Layout:
    """The layout of the file ``path``.

    Raises:
        UsageError: it is not recognised.
        DataError: the file cannot be read, or is empty.
    """
    layout: Layout | None = None
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
    """The task that lmms-eval wrote into the name of a sample file.

    >>> task_in_name(Path("20260101_000000_samples_mi_cxr_icr.jsonl"))
    'mi_cxr_icr'
    """
    match = _SAMPLES.search(path.name)
    return match["task"] if match else None


def _of_text(path: Path) -> Layout | None:
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
