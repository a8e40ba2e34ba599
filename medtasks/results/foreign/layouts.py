"""The layouts by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from medtasks.data.sources import read_json_list, read_jsonl
from medtasks.errors import DataError, UsageError
from medtasks.files import read_regular
from medtasks.results.foreign import columns as generic
from medtasks.results.foreign.inspect_log import read_inspect
from medtasks.results.foreign.lmms_eval_samples import parse_harness_line
from medtasks.results.foreign.ms_swift import parse_ms_swift_line
from medtasks.results.foreign.prediction import Prediction
from medtasks.results.foreign.vlmevalkit import read_vlmevalkit

__all__ = ["LAYOUTS", "Layout", "read_predictions"]

Layout = Literal["ms-swift", "jsonl", "json", "csv", "lmms-eval", "vlmevalkit", "inspect"]
LAYOUTS: tuple[str, ...] = get_args(Layout)
_NO_COLUMNS: Mapping[str, str] = {}


def read_predictions(path: Path, layout: Layout, columns: Mapping[str, str] = _NO_COLUMNS) -> list[Prediction]:
    """The predictions in ``path``, in the order of its lines.

    Args:
        path: the file.
        layout: ``ms-swift`` (as the Kvasir-VQA-x1 authors publish theirs), ``lmms-eval`` (the harness's
            ``*_samples_<task>.jsonl``), ``vlmevalkit`` (its spreadsheets), ``inspect`` (logs of Inspect), or rows with
            columns: ``jsonl``, ``json`` (one array, such as Kvasir-VQA-x1's ``*_eval.json``), ``csv``.
        columns: for rows with columns, what the file calls ``sample_id``, ``response``, ``task``, ``img_id`` and
            ``question``; each has its own name unless told otherwise.

    Raises:
        UsageError: the layout or a column is unknown, or columns are given for a layout that has its own.
        DataError: the file cannot be read, has no rows, or a row is not in the layout; names file, line and field.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"layout {layout!r} is unknown; choose one of {', '.join(LAYOUTS)}.")
    if layout == "jsonl":
        names = generic.column_names(columns)
        return [generic.parse_row(row.row, names, row.where) for row in read_jsonl(path)]
    if layout == "json":
        names = generic.column_names(columns)
        return [generic.parse_row(row.row, names, row.where) for row in read_json_list(_content(path), path.name)]
    if layout == "csv":
        return generic.read_csv(path, generic.column_names(columns))
    if columns:
        raise UsageError(f"layout {layout} has its own fields; leave the columns out, or choose jsonl, json or csv.")
    if layout == "vlmevalkit":
        return read_vlmevalkit(path)
    if layout == "inspect":
        return read_inspect(path)
    parse = parse_ms_swift_line if layout == "ms-swift" else parse_harness_line
    return [parse(row.row, row.where) for row in read_jsonl(path)]


def _content(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
